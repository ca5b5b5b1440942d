/* SPDX-License-Identifier: Apache-2.0 */
/* The sockets that a service manager listens at and hands to `cordon serve --activated`.
 *
 * Takes:   LISTEN_FDS and what goes with it, sd_listen_fds(3).
 * Gives:   at most one unix socket and one of TCP, out of the way of the numbers that cordond looks at.
 * Never:   takes one that does not listen, or that it has no use for: that is a mistake in the unit.
 * Runs in: `cordon`, before it becomes cordond.
 */
#ifndef PROG_CORDON_SERVE_ACTIVATED_H
#define PROG_CORDON_SERVE_ACTIVATED_H

#include "base/err.h"

struct serve_activated {
    int sock, http; /* -1: none was given */
};

/* ERR_USAGE: none was given, or not these. */
ERR_MUST_USE int serve_activated_take(struct serve_activated *ret, struct err *err);

#endif
