/* SPDX-License-Identifier: Apache-2.0 */
/* The rehearsal of a child: the whole way of one small program, with the other end of the channel played too.
 *
 * Takes:   a fork of a template.
 * Gives:   an interpreter that has done what every run does, and that is then thrown away.
 * Never:   says anything to the template's holder.
 * Runs in: cordon-python: a fork of the template that nobody is ever given.
 */
#ifndef WORKER_PYTHON_REHEARSE_H
#define WORKER_PYTHON_REHEARSE_H

#include <stdbool.h>

/* IMPORTS: modules that were loaded ahead, separated by commas; NULL: none. Or a program that does no more than
 * print. 0: it went as it should. */
int py_rehearse(const char *imports, bool only_print);

#endif
