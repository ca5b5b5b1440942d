/* Any bytes as a request and as a reply: refused, or the same bytes when written again. */
#include "pool/proto.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void same(const struct buf *b, const uint8_t *data, size_t size)
{
    base_assert(b->len == size && memcmp(b->data, data, size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pool_request q;
    struct pool_reply p;
    struct err err = ERR_INIT;
    struct buf b;
    buf_init(&b, LIMIT_FRAME + 1);
    if (pool_request_read(data, size, &q, &err) == 0) {
        base_assert(!q.name[0] || pool_name_good(q.name));
        base_assert(pool_request_write(&q, &b, &err) == 0);
        same(&b, data, size);
    } else {
        base_assert(err.code != 0); /* a refusal says why */
    }
    buf_reset(&b);
    if (pool_reply_read(data, size, &p, &err) == 0) {
        base_assert(pool_reply_write(&p, &b, &err) == 0);
        same(&b, data, size);
    }
    buf_done(&b);
    return 0;
}
