/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the numbers that a decoded call shows.
 *
 * Takes:   a value.
 * Gives:   its name without the family's prefix, or NULL.
 * Never:   lists what a filter never denies.
 * Runs in: the supervisor, tests.
 */
#ifndef JAIL_DECODE_NAMES_H
#define JAIL_DECODE_NAMES_H

#include <stdint.h>

struct decode_name {
    uint32_t value;
    const char *name;
};

/* Each ends with an entry without a name. */
extern const struct decode_name decode_families[], decode_types[], decode_sockopts[],
    decode_clone[], decode_ptrace[], decode_prctl[], decode_ioctl[], decode_fcntl[], decode_bpf[],
    decode_prio[], decode_sched[];

const char *decode_name_of(const struct decode_name *names, uint32_t value);

#endif
