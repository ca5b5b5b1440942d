/* SPDX-License-Identifier: Apache-2.0 */
/* The table of computation: a second filter that a worker closes over its first one, before the guest's first
 * instruction.
 *
 * Takes:   a process behind every lock of a run, which has loaded all that its program may need.
 * Gives:   the same process, able to compute, to use the descriptors it holds, and to end.
 * Never:   allows what the first one refuses: filters stack, and the stricter answer wins.
 * Runs in: a worker, after the verdict on the first program and before it runs.
 */
#ifndef JAIL_COMPUTE_H
#define JAIL_COMPUTE_H

#include "base/err.h"
#include "jail/filter.h"

#include <stdbool.h>

/* What the table says of a call that it refused. Called in a signal handler, between two instructions of whatever made
 * the call: plain memory and plain system calls only. */
typedef void jail_compute_refused(const struct jail_filter *f, const struct jail_call *call);

/* Leaves the guest's folder, closes the table and proves it by a refused call. The calls that only this table
 * refuses fail with EPERM after REFUSED was told; those that the first table notifies go to the supervisor as before. */
ERR_MUST_USE int jail_compute_only(jail_compute_refused *refused, struct err *err);
bool jail_computes_only(void);

#endif
