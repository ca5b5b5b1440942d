/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a seccomp filter in user space, so that both architectures are tested on either.
 *
 * Takes:   a classic BPF program and the data of one call.
 * Gives:   what the kernel would answer, or why it would not load the program.
 * Never:   accepts an instruction that the kernel's own walk over plainly allowed calls would not.
 * Runs in: tests only.
 */
#ifndef JAIL_BPF_SIM_H
#define JAIL_BPF_SIM_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>

struct bpf_sim {
    uint32_t action;    /* SECCOMP_RET_* with data */
    unsigned steps;     /* instructions run */
    bool looked_at_arg; /* then the kernel cannot remember the answer for the number */
};

/* NULL, or what is wrong with the program: a jump out of it, an odd load, no return at the end. */
const char *bpf_sim_check(const struct sock_filter *p, unsigned len);

/* PROGRAM passed bpf_sim_check. */
struct bpf_sim bpf_sim_run(const struct sock_filter *p, const struct seccomp_data *data);

#endif
