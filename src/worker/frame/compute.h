/* SPDX-License-Identifier: Apache-2.0 */
/* Closing the table of computation (jail/compute.h), and telling the supervisor what it refuses.
 *
 * Takes:   a worker whose language has loaded all that its program may need, and looks for no file any more.
 * Gives:   a process that can open no file; an event for each kind of call that the guest tried.
 * Never:   runs code of the guest, or lets one run while the table is open.
 * Runs in: a worker: a child of a template, or one that was started for its program.
 */
#ifndef WORKER_FRAME_COMPUTE_H
#define WORKER_FRAME_COMPUTE_H

#include "base/err.h"
#include "policy/profile.h"

#include <stdbool.h>

/* The profile computes only, and this process is still open. */
bool worker_compute_pending(const struct policy_profile *profile);

/* Closes, for the rest of the process's life. */
ERR_MUST_USE int worker_compute_close(struct err *err);

/* The time zone is fixed by name, or the C library would look at its file again for every date. 0, or -1. */
int worker_compute_zone(void);

/* In a rehearsal, which runs a program of ours behind a table of its own that lets it load no other: never closes. */
void worker_compute_rehearse(void);

/* While the guest's code runs, refused calls are told to the supervisor; at other times it expects no such message. */
void worker_compute_guest(bool running);

#endif
