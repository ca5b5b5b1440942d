/* SPDX-License-Identifier: Apache-2.0 */
/* cordon-nest: what sits above the guest while it runs.
 *
 * Takes:   a socket to the supervisor and a descriptor of the quota'd file system; three numbers.
 * Gives:   one EXITED message, and the certainty that nothing below it is left.
 * Never:   reads anything of the guest; needs a C library.
 * Runs in: cordon-nest, pid 1 of the jail.
 */
#ifndef JAIL_NEST_H
#define JAIL_NEST_H

#include <stdbool.h>
#include <stdint.h>

enum { JAIL_NEST_CONTROL = 3, JAIL_NEST_QUOTA = 4 }; /* its descriptors */

/* Its arguments, in decimal: the guest's pid; when it is to end, in ns of CLOCK_MONOTONIC; whether it
 * must ask for orphans, since it is no pid 1. */
enum { JAIL_NEST_GUEST, JAIL_NEST_DEADLINE, JAIL_NEST_SUBREAPER, JAIL_NEST_WORDS };

struct jail_nest {
    int control, quota; /* quota: -1 without a quota'd file system */
    int guest;
    bool subreaper;
    uint64_t deadline_ns; /* behind the supervisor's own timer */
    uint64_t survivors;   /* processes that were alive, or not waited for, when the guest ended */
};

int jail_nest_watch(struct jail_nest *n); /* returns the exit status */

#endif
