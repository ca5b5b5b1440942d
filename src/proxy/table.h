/* SPDX-License-Identifier: Apache-2.0 */
/* What the front of the gateway and the process with the keys say to each other, beside the frames of wire/msg.h.
 *
 * Takes:   numbers of frames.
 * Gives:   their names.
 * Never:   has a key, or a way to ask for one.
 * Runs in: cordon-proxy, cordon-proxy-front.
 */
#ifndef PROXY_TABLE_H
#define PROXY_TABLE_H

#include "base/limits.h"

#include <stdint.h>

/* Where a request goes below an upstream's address. */
enum proxy_path { PROXY_CHAT, PROXY_RESPONSES, PROXY_MESSAGES, PROXY_PATHS };

/* How an upstream's answer ended. */
enum proxy_end {
    PROXY_END_WHOLE,
    PROXY_END_UNREACHABLE, /* no connection, or a certificate that cannot be verified */
    PROXY_END_BROKEN,      /* it closed the connection in the middle */
    PROXY_END_SILENT,      /* nothing for proxy.silence */
    PROXY_ENDS
};

/* The numbers of a call's end, for its record and the client's budget. */
struct proxy_over {
    uint64_t tokens_in, tokens_out, attempts, tokens_cut, onset, ms;
};
#define PROXY_OVER_NUMBERS (sizeof(struct proxy_over) / sizeof(uint64_t))

#endif
