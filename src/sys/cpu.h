/* SPDX-License-Identifier: Apache-2.0 */
/* Moves a new child process to another CPU.
 *
 * The kernel starts a new process on its parent's CPU, where it waits until the parent sleeps. Where both have work,
 * one waits and another CPU is idle. `make gains GAINS=OTHER_CPU` shows the gain on a quiet machine: a cold run takes 1.31
 * of bare Python without it, 1.22 with it (2 CPUs, aarch64). On a busy machine no CPU is idle, and a child that was moved
 * waits behind others: there a cold run took 1.4 times as long and `cordon exec` twice as long, so nothing is moved.
 *
 * Takes:   the pid of a child of the caller.
 * Gives:   nothing: it is a hint, and a call that fails changes nothing.
 * Never:   leaves the child bound, touches another process's mask, errno, or memory of the C library (the builder
 *          shares its memory with its parent).
 * Runs in: the builder.
 */
#ifndef SYS_CPU_H
#define SYS_CPU_H

#include <stdbool.h>
#include <sys/types.h>

/* Moves it unless the machine is crowded. */
void sys_cpu_spread_child(pid_t child);

/* Whether as many processes want to run, on average over a minute, as there are CPUs: LOAD as sysinfo has it. */
bool sys_cpu_crowded(unsigned long load, int cpus);

void sys_cpu_move_child(pid_t child);

#endif
