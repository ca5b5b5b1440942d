/* SPDX-License-Identifier: Apache-2.0 */
/* A line carries two seals. The hash covers every byte before it, the hash of the line before among
 * them, and anybody can check it with sha256sum. The signature over that hash needs the key: it tells
 * a record of ours that the head does not know yet (we were killed between the two writes) from one
 * that somebody appended, and it finds a chain that was computed anew.
 *
 * The hash covers bytes, not JSON: there is no canonical form to agree on, and no parser between the
 * file and the verdict. */
#include "audit/inside.h"

#include <nettle/memops.h>
#include <stdio.h>
#include <string.h>

#define HEAD_SEQ  "{\"seq\": "
#define HEAD_PREV ", \"prev\": \""
#define HEAD_TIME "\", \"timestamp\": "
#define HEAD_TS   ", \"ts\": "
#define HEAD_KIND ", \"kind\": \""
#define TAIL_HASH ", \"hash\": \""
#define TAIL_MAC  "\", \"mac\": \""
#define TAIL_END  "\"}"
#define LEN(text) (sizeof text - 1)
#define TAIL      (LEN(TAIL_HASH) + 2 * AUDIT_HASH + LEN(TAIL_MAC) + 2 * AUDIT_HASH + LEN(TAIL_END))

void audit_hex(const uint8_t *bytes, size_t n, char *out)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[2 * n] = 0;
}

static int nibble(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool audit_unhex(const char *text, size_t n, uint8_t *out)
{
    for (size_t i = 0; i < n; i++) {
        int high = nibble(text[2 * i]), low = high < 0 ? -1 : nibble(text[2 * i + 1]);
        if (low < 0)
            return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

void audit_sign(struct hmac_sha256_ctx *key, char tag, const void *data, size_t len,
                uint8_t out[AUDIT_HASH])
{
    hmac_sha256_update(key, 1, (const uint8_t *)&tag);
    hmac_sha256_update(key, len, data);
    hmac_sha256_digest(key, AUDIT_HASH, out); /* and is ready for the next */
}

bool audit_signed(struct hmac_sha256_ctx *key, char tag, const void *data, size_t len,
                  const uint8_t mac[AUDIT_HASH])
{
    uint8_t want[AUDIT_HASH];
    audit_sign(key, tag, data, len, want);
    return memeql_sec(want, mac, AUDIT_HASH);
}

/* ---- writing ---- */

static char *put(char *at, const char *text, size_t len)
{
    memcpy(at, text, len);
    return at + len;
}

static char *put_number(char *at, uint64_t n)
{
    char digits[20];
    size_t i = sizeof digits;
    do
        digits[--i] = (char)('0' + n % 10);
    while ((n /= 10));
    return put(at, digits + i, sizeof digits - i);
}

int audit_line_write(struct buf *out, uint64_t seq, uint64_t ts, const char *body, size_t len,
                     uint8_t hash[AUDIT_HASH], struct hmac_sha256_ctx *key)
{
    char head[256], *at = head, tail[TAIL + 1];
    uint8_t mac[AUDIT_HASH];
    struct sha256_ctx sha;
    size_t before = out->len;
    at = put(at, HEAD_SEQ, LEN(HEAD_SEQ));
    at = put_number(at, seq);
    at = put(at, HEAD_PREV, LEN(HEAD_PREV));
    audit_hex(hash, AUDIT_HASH, at);
    at = put(at + 2 * AUDIT_HASH, HEAD_TIME, LEN(HEAD_TIME));
    at = put_number(at, ts / 1000);
    *at++ = '.';
    *at++ = (char)('0' + ts / 100 % 10);
    *at++ = (char)('0' + ts / 10 % 10);
    *at++ = (char)('0' + ts % 10);
    at = put(at, HEAD_TS, LEN(HEAD_TS));
    at = put_number(at, ts);
    at = put(at, ", ", 2);
    int r = buf_add(out, head, (size_t)(at - head));
    if (r == 0)
        r = buf_add(out, body, len);
    if (r < 0)
        return r;
    sha256_init(&sha);
    sha256_update(&sha, out->len - before, (const uint8_t *)out->data + before);
    sha256_digest(&sha, AUDIT_HASH, hash);
    audit_sign(key, 'r', hash, AUDIT_HASH, mac);
    at = put(tail, TAIL_HASH, LEN(TAIL_HASH));
    audit_hex(hash, AUDIT_HASH, at);
    at = put(at + 2 * AUDIT_HASH, TAIL_MAC, LEN(TAIL_MAC));
    audit_hex(mac, AUDIT_HASH, at);
    at = put(at + 2 * AUDIT_HASH, TAIL_END "\n", LEN(TAIL_END) + 1);
    return buf_add(out, tail, (size_t)(at - tail));
}

/* ---- reading ---- */

static bool skip(const char **at, const char *end, const char *text, size_t len)
{
    if ((size_t)(end - *at) < len || memcmp(*at, text, len) != 0)
        return false;
    *at += len;
    return true;
}

static bool number(const char **at, const char *end, uint64_t *ret)
{
    const char *from = *at;
    uint64_t n = 0;
    for (; *at < end && **at >= '0' && **at <= '9'; ++*at)
        if (__builtin_mul_overflow(n, 10, &n) ||
            __builtin_add_overflow(n, (uint64_t)(**at - '0'), &n))
            return false;
    *ret = n;
    return *at > from && (*from != '0' || *at == from + 1);
}

const char *audit_line_parse(const char *line, size_t len, struct audit_line *ret)
{
    const char *at = line, *end = line + len;
    uint64_t whole, part;
    *ret = (struct audit_line){.kind = AUDIT_KINDS};
    if (len <= TAIL)
        return "too short for a record";
    const char *tail = end - TAIL;
    if (!skip(&at, tail, HEAD_SEQ, LEN(HEAD_SEQ)) || !number(&at, tail, &ret->seq))
        return "it has no sequence number";
    if (!skip(&at, tail, HEAD_PREV, LEN(HEAD_PREV)) || tail - at < 2 * AUDIT_HASH ||
        !audit_unhex(at, AUDIT_HASH, ret->prev))
        return "it does not name the record before it";
    at += 2 * AUDIT_HASH;
    if (!skip(&at, tail, HEAD_TIME, LEN(HEAD_TIME)) || !number(&at, tail, &whole) ||
        !skip(&at, tail, ".", 1))
        return "it has no time";
    while (at < tail && *at >= '0' && *at <= '9')
        at++;
    if (!skip(&at, tail, HEAD_TS, LEN(HEAD_TS)) || !number(&at, tail, &part))
        return "it has no time";
    ret->ts = part;
    if (!skip(&at, tail, HEAD_KIND, LEN(HEAD_KIND)))
        return "it has no kind";
    for (int k = 0; k < AUDIT_KINDS; k++) {
        const char *name = audit_kind_name((enum audit_kind)k);
        size_t n = strlen(name);
        if ((size_t)(tail - at) > n && memcmp(at, name, n) == 0 && at[n] == '"')
            ret->kind = (enum audit_kind)k;
    }
    ret->hashed = (size_t)(tail - line);
    at = tail;
    if (!skip(&at, end, TAIL_HASH, LEN(TAIL_HASH)) || !audit_unhex(at, AUDIT_HASH, ret->hash))
        return "it has no hash";
    at += 2 * AUDIT_HASH;
    if (!skip(&at, end, TAIL_MAC, LEN(TAIL_MAC)) || !audit_unhex(at, AUDIT_HASH, ret->mac))
        return "it has no signature";
    at += 2 * AUDIT_HASH;
    return skip(&at, end, TAIL_END, LEN(TAIL_END)) ? NULL : "it does not end as a record does";
}

const char *audit_line_check(const char *line, const struct audit_line *l,
                             struct hmac_sha256_ctx *key)
{
    struct sha256_ctx sha;
    uint8_t hash[AUDIT_HASH];
    sha256_init(&sha);
    sha256_update(&sha, l->hashed, (const uint8_t *)line);
    sha256_digest(&sha, AUDIT_HASH, hash);
    if (memcmp(hash, l->hash, AUDIT_HASH) != 0)
        return "its bytes do not have its hash: it was edited";
    if (!audit_signed(key, 'r', l->hash, AUDIT_HASH, l->mac))
        return "its signature is not of our key: the chain was computed anew";
    return NULL;
}

/* A quote inside a string is always escaped, so `, "key": ` with bare quotes is a member and never
 * somebody's text. Members of the top level stand before `args`, which is the only object that can
 * have one of the same name. */
bool audit_line_member(const char *line, size_t len, const char *key, const char **ret,
                       size_t *ret_len)
{
    char want[48];
    int n = snprintf(want, sizeof want, ", \"%s\": ", key);
    const char *end = line + len,
               *at = n > 0 && (size_t)n < sizeof want ? memmem(line, len, want, (size_t)n) : NULL;
    if (!at)
        return false;
    at += n;
    const char *from = at;
    if (at < end && *at == '"') {
        for (at++; at < end && *at != '"'; at++)
            if (*at == '\\')
                at++;
        if (at >= end)
            return false;
        at++;
    } else {
        while (at < end && *at != ',' && *at != '}' && *at != '[' && *at != '{')
            at++;
    }
    *ret = from;
    *ret_len = (size_t)(at - from);
    return at > from;
}
