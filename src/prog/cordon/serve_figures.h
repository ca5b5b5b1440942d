/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of gate and pool, for the metrics of `cordon serve`.
 *
 * Takes:   the state folder, the policy.
 * Gives:   Prometheus' text format on standard output.
 * Never:   waits for the gate's lock, starts a holder, or writes to the state.
 * Runs in: `cordon`, started by cordond.
 */
#ifndef PROG_CORDON_SERVE_FIGURES_H
#define PROG_CORDON_SERVE_FIGURES_H

#include "base/err.h"

/* POLICY: the operator's file, or NULL. */
ERR_MUST_USE int serve_figures_print(const char *policy, struct err *err);

#endif
