/* SPDX-License-Identifier: Apache-2.0 */
/* Moves a new child process to another CPU.
 *
 * The kernel starts a new process on its parent's CPU, where it waits until the parent sleeps. Where both have work,
 * one waits and another CPU is idle. `make gains GAINS=OTHER_CPU` shows the gain on a quiet machine: a cold run takes 1.31
 * of bare Python without it, 1.22 with it (2 CPUs, aarch64). On a busy machine no CPU is idle, and a child that was moved
 * waits behind others: there a cold run took 1.4 times as long and `cordon exec` twice as long, so nothing is moved. What
 * counts is how many processes want to run now: the average of a minute calls a machine busy that has been idle for as long.
 *
 * Takes:   /proc, and the pid of a child of the caller.
 * Gives:   nothing: it is a hint, and a call that fails changes nothing.
 * Never:   leaves the child bound, touches another process's mask, errno, or memory of the C library (the builder
 *          shares its memory with its parent).
 * Runs in: the builder.
 */
#ifndef SYS_CPU_H
#define SYS_CPU_H

#include <stdbool.h>
#include <sys/types.h>

/* Moves it unless the machine is crowded. PROC is /proc. */
void sys_cpu_spread_child(int proc, pid_t child);

/* Whether more processes want to run than there are CPUs, as the text of /proc/loadavg has it; a text that does not say
 * so is no reason to move anything. The caller and its new child are among them. */
bool sys_cpu_crowded(const char *loadavg, int cpus);

void sys_cpu_move_child(pid_t child);

#endif
