/* SPDX-License-Identifier: Apache-2.0 */
/* clone3: a new process that shares the caller's memory, on a stack of its own, in a chosen cgroup, with a chosen number
 * in its pid namespace.
 *
 * Takes:   the kernel's arguments with a stack in them, and a function.
 * Gives:   the pid, or a negative errno. The new process exits with what the function returns.
 * Never:   touches memory of the C library; errno stays as it was.
 * Runs in: the builder.
 */
#ifndef SYS_CLONE_H
#define SYS_CLONE_H

#include "sys/kernel.h"

#include <sys/types.h>

pid_t sys_clone(const struct sys_clone_args *args, int (*run)(void *), void *ctx);
/* The same with pid NUMBER in its own namespace, if the kernel and the namespace have it to give. */
pid_t sys_clone_numbered(struct sys_clone_args *args, pid_t number, int (*run)(void *), void *ctx);

#endif
