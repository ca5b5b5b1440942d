/* SPDX-License-Identifier: Apache-2.0 */
/* The second layer: what would start programs or open files by a word of Kernel's raises SecurityError when it is called.
 *
 * Takes:   the interpreter, before its program.
 * Gives:   `system`, `exec`, `spawn`, `fork`, backticks and `open` that refuse, whoever is asked for them: any object, Kernel
 *          itself, and Process and IO, which have the same by their own names.
 * Never:   keeps the original where a program could find it again.
 * Runs in: cordon-ruby, in the jail.
 */
#ifndef WORKER_RUBY_SHADOW_H
#define WORKER_RUBY_SHADOW_H

void rb_shadow_install(void);

#endif
