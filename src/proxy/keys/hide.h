/* SPDX-License-Identifier: Apache-2.0 */
/* A key that its own upstream sends back (in a message about a wrong key, say) does not go on to a client.
 *
 * Takes:   a stream of bytes in pieces of any size, and the key.
 * Gives:   the same bytes with [key] in place of each occurrence, the same however they are cut; also of those in which characters of
 *          the key are escaped as JSON does: PHP writes \/ for a slash, .NET \u002B for a plus.
 * Never:   holds back more than PROXY_HIDE_HELD bytes; undoes another encoding, which only who wants to give its key away would use.
 * Runs in: cordon-proxy.
 */
#ifndef PROXY_KEYS_HIDE_H
#define PROXY_KEYS_HIDE_H

#include "base/buf.h"

#include <stdint.h>

#define PROXY_KEY_MAX   1024
#define PROXY_HIDE_HELD (8 * PROXY_KEY_MAX) /* a character that is escaped has six bytes */

/* The key and, for each length of its beginning, how much of it is still matched when the next byte differs. */
struct proxy_hidden {
    size_t len; /* 0: nothing is hidden */
    char *key;
    uint16_t *back;
};
/* How far a stream is. */
struct proxy_hiding {
    size_t matched;        /* bytes of the key, as they are */
    size_t written;        /* characters of the key, as JSON writes them: ... */
    struct buf raw, sizes; /* ... their bytes, and how many bytes each of them has */
    char escape[6];        /* a character that is not whole yet */
    size_t escaped;
};

void proxy_hiding_init(struct proxy_hiding *at);
void proxy_hiding_done(struct proxy_hiding *at);
ERR_MUST_USE int proxy_hidden_init(struct proxy_hidden *h, const char *key, size_t len);
void proxy_hidden_done(struct proxy_hidden *h);
/* Adds to OUT what can go on. */
ERR_MUST_USE int proxy_hide(const struct proxy_hidden *h, struct proxy_hiding *at, const char *data,
                            size_t len, struct buf *out);
/* The end of the stream: what was held back was no key. */
ERR_MUST_USE int proxy_hide_end(const struct proxy_hidden *h, struct proxy_hiding *at,
                                struct buf *out);

#endif
