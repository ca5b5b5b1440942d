/* SPDX-License-Identifier: Apache-2.0 */
/* A key that its own upstream sends back (in a message about a wrong key, say) does not go on to a client.
 *
 * Takes:   a stream of bytes in pieces of any size, and the key.
 * Gives:   the same bytes with [key] in place of each occurrence, the same however they are cut.
 * Never:   holds back more than the length of a key.
 * Runs in: cordon-proxy.
 */
#ifndef PROXY_KEYS_HIDE_H
#define PROXY_KEYS_HIDE_H

#include "base/buf.h"

#include <stdint.h>

#define PROXY_KEY_MAX 1024

/* The key and, for each length of its beginning, how much of it is still matched when the next byte differs. */
struct proxy_hidden {
    size_t len; /* 0: nothing is hidden */
    char *key;
    uint16_t *back;
};
struct proxy_hiding {
    size_t matched;
};

ERR_MUST_USE int proxy_hidden_init(struct proxy_hidden *h, const char *key, size_t len);
void proxy_hidden_done(struct proxy_hidden *h);
/* Adds to OUT what can go on. */
ERR_MUST_USE int proxy_hide(const struct proxy_hidden *h, struct proxy_hiding *at, const char *data,
                            size_t len, struct buf *out);
/* The end of the stream: what was held back was no key. */
ERR_MUST_USE int proxy_hide_end(const struct proxy_hidden *h, struct proxy_hiding *at,
                                struct buf *out);

#endif
