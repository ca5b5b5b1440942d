/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's part of a run: reads the job, judges it, waits for the word, has the language run what was judged.
 *
 * Takes:   messages of the supervisor, in the order that driver.c states.
 * Gives:   the report before any guest code runs; value, fault and exit status after it.
 * Never:   runs what it has not judged, or judges one text and runs another.
 * Runs in: a worker, in the jail, behind all its locks.
 */
#ifndef WORKER_FRAME_DRIVER_H
#define WORKER_FRAME_DRIVER_H

#include "base/err.h"
#include "check/ruleset.h"

#define WORKER_DRIVER_INCOMPLETE                                                                   \
    "incomplete" /* the operand of a syntax finding: more lines, please */

/* The rules of a built-in profile, so that none have to come on the channel. ERR_USAGE: no such profile. */
ERR_MUST_USE int worker_driver_profile(const char *name, struct err *err);
/* Of a template: the rules of a profile that is not built in, which its holder sends first. */
ERR_MUST_USE int worker_driver_told(struct err *err);
const struct check_ruleset *worker_driver_rules(void); /* NULL: none yet */

/* Of a child that nobody waits for yet: what the channel and the language write first is written now. 0, or -1: this
 * interpreter is not fit to run anything. */
int worker_driver_warm(void);

/* In a child of a template, while it waits for its first job: closes the table of computation, if its profile has one
 * (compute.h). A child that somebody waits for leaves it to its first program. 0, or -1: it must not run anything. */
int worker_driver_close(void);

/* Sends READY to the supervisor. Its messages wait in the socket until worker_driver_serve. */
void worker_driver_ready(void);

/* Serves until the supervisor is gone or a job ended the process. Returns the exit status. */
int worker_driver_serve(void);

#endif
