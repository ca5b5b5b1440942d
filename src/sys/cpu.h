/* SPDX-License-Identifier: Apache-2.0 */
/* Moves a new child process to another CPU.
 *
 * The kernel starts a new process on its parent's CPU, where it waits until the parent sleeps. Where both have work,
 * one waits and another CPU is idle. `make bench BENCH=python`, row "cordon run, no holder", shows the gain: 1.31 of
 * bare Python without it, 1.22 with it (2 CPUs, aarch64).
 *
 * Takes:   the pid of a child of the caller.
 * Gives:   nothing: it is a hint, and a call that fails changes nothing.
 * Never:   leaves the child bound, touches another process's mask, errno, or memory of the C library (the builder
 *          shares its memory with its parent).
 * Runs in: the builder.
 */
#ifndef SYS_CPU_H
#define SYS_CPU_H

#include <sys/types.h>

void sys_cpu_move_child(pid_t child);

#endif
