/* SPDX-License-Identifier: Apache-2.0 */
/* Knuth, Morris and Pratt: each byte is looked at once, and what is held back is always a beginning of the key, so it needs no
 * buffer of its own. */
#include "proxy/keys/hide.h"

#include <stdlib.h>
#include <string.h>

int proxy_hidden_init(struct proxy_hidden *h, const char *key, size_t len)
{
    h->key = malloc(len + 1);
    h->back = calloc(len + 1, sizeof *h->back);
    if (!h->key || !h->back)
        return ERR_MEMORY;
    memcpy(h->key, key, len);
    h->key[len] = 0;
    h->len = len;
    for (size_t i = 1, k = 0; i < len; i++) {
        while (k && key[i] != key[k])
            k = h->back[k];
        k += key[i] == key[k];
        h->back[i + 1] = (uint16_t)k;
    }
    return 0;
}

void proxy_hidden_done(struct proxy_hidden *h)
{
    if (h->key)
        explicit_bzero(h->key, h->len);
    free(h->key);
    free(h->back);
    *h = (struct proxy_hidden){0};
}

int proxy_hide(const struct proxy_hidden *h, struct proxy_hiding *at, const char *data, size_t len,
               struct buf *out)
{
    int r = h->len ? 0 : buf_add(out, data, len);
    for (size_t i = 0; r == 0 && h->len && i < len; i++) {
        size_t k = at->matched;
        while (k && data[i] != h->key[k])
            k = h->back[k];
        if (data[i] == h->key[k]) { /* what was matched and is not any more goes on */
            r = buf_add(out, h->key, at->matched - k);
            at->matched = k + 1;
        } else {
            r = buf_add(out, h->key, at->matched);
            if (r == 0)
                r = buf_add(out, data + i, 1);
            at->matched = 0;
        }
        if (r == 0 && at->matched == h->len) {
            r = buf_str(out, "[key]");
            at->matched = 0;
        }
    }
    return r;
}

int proxy_hide_end(const struct proxy_hidden *h, struct proxy_hiding *at, struct buf *out)
{
    const size_t held = at->matched;
    at->matched = 0;
    return held ? buf_add(out, h->key, held) : 0;
}
