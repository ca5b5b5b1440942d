/* SPDX-License-Identifier: Apache-2.0 */
/* A run or a judgement of the command line, by the machine's server instead of by ourselves.
 *
 * Takes:   what `cordon run` and `cordon check` were asked, as far as the server's table of requests has it.
 * Gives:   the server's answer, printed as our own would be, and the exit status.
 * Never:   believes a server that is neither root, nor ours, nor the owner of the socket, or that is in a jail; runs
 *          anything itself.
 * Runs in: `cordon`.
 */
#ifndef PROG_CORDON_BY_DAEMON_H
#define PROG_CORDON_BY_DAEMON_H

#include "policy/policy.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct by_daemon {
    const char *who;  /* for complaints */
    const char *code; /* of LEN bytes */
    size_t len;
    const char *language;                /* NULL: not said */
    uint64_t timeout_ms, memory, output; /* UINT64_MAX: not said */
    bool check, json;
};

/* Whether the policy has it, and we are not the server's own runner. */
bool by_daemon_wanted(const struct policy *policy);
/* True: it is done, and *RET_STATUS is the exit status. False: nothing was asked, and nothing printed; the flow refuses
 * what the policy wants to go this way. */
bool by_daemon_do(const struct policy *policy, const struct by_daemon *q, int *ret_status);

#endif
