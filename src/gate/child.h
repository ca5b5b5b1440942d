/* SPDX-License-Identifier: Apache-2.0 */
/* A program that is asked one question: a judge, or the keeper of the approvals.
 *
 * Takes:   a command line, the bytes of its input.
 * Gives:   what it wrote, how it ended.
 * Never:   lets it live past its time, write without bound, keep our descriptors or our terminal.
 * Runs in: the supervisor.
 */
#ifndef GATE_CHILD_H
#define GATE_CHILD_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct gate_child {
    pid_t pid; /* leader of its own session and group; 0: there is none */
    int pidfd, out;
    struct buf text; /* what it wrote; has a ceiling */
    bool ended, late, flooded;
    int status; /* of waitpid, once it ended */
};

/* The input is a sealed file, so nobody has to feed it. KEEP becomes its descriptor 3; -1: none. ENV
 * is all of its environment. */
ERR_MUST_USE int gate_child_start(struct gate_child *c, const char *const *argv,
                                  const char *const *env, const void *input, size_t input_len,
                                  int keep, size_t output_max, struct err *err);

/* Until each has ended, or its time (on clock_now_ns) has come and it was killed. */
void gate_children_wait(struct gate_child *c, const uint64_t *deadlines, size_t count);
void gate_child_done(struct gate_child *c); /* kills what is left of it */

#endif
