/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of the host that a program may be given.
 *
 * Takes:   names.
 * Gives:   what the flow calls when guest code calls.
 * Never:   gives a function that was not asked for by name.
 * Runs in: `cordon`.
 */
#ifndef PROG_CORDON_TOOLS_H
#define PROG_CORDON_TOOLS_H

#include "flow/worker.h"
#include "options.h"

/* Fills OUT, ended by NULL; it has ROOM + 1 places. */
ERR_MUST_USE int tools_find(const struct option_list *names, const struct flow_tool **out,
                            size_t cap, struct err *err);

#endif
