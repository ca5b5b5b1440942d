/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as lines of a log, and as a text to redact: read to the end, or refused; never believed. */
#include "audit/inside.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void line(const char *text, size_t len, struct hmac_sha256_ctx *key)
{
    struct audit_line l;
    const char *member;
    size_t n;
    static const char *const keys[] = {"execution_id", "begin_seq", "code_hash", "args"};
    if (!audit_line_parse(text, len, &l)) {
        base_assert(l.hashed < len);
        base_assert(audit_line_check(text, &l, key) != NULL); /* nobody has that key */
    }
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (audit_line_member(text, len, keys[i], &member, &n))
            base_assert(member >= text && n > 0 && member + n <= text + len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct hmac_sha256_ctx key;
    static bool made;
    const char *at = (const char *)data, *end = at + size;
    struct audit_head head;
    struct buf out;
    if (!made) {
        hmac_sha256_set_key(&key, 6, (const uint8_t *)"nobody");
        made = true;
    }
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop ? stop : end;
        line(at, (size_t)(stop - at), &key);
        at = stop < end ? stop + 1 : end;
    }
    if (size >= AUDIT_HEAD_SET)
        base_assert(!audit_head_pick(data, &key, &head));
    buf_init(&out, 16 * size + 64);
    base_assert(audit_redact(NULL, NULL, (const char *)data, size, NULL, &out) == 0);
    buf_done(&out);
    return 0;
}
