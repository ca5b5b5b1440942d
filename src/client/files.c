/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a session, as base64: any bytes, a part at a time where the server gives no more at once. */
#include "client/inside.h"

#include <stdlib.h>
#include <string.h>

#define COUNT(args) (sizeof(args) / sizeof *(args))

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* NULL: no memory. To be freed. */
static char *encode(const unsigned char *data, size_t len)
{
    char *out = malloc((len + 2) / 3 * 4 + 1), *at = out;
    for (size_t i = 0; out && i < len; i += 3) {
        const size_t left = len - i;
        const unsigned word = (unsigned)data[i] << 16 |
                              (left > 1 ? (unsigned)data[i + 1] : 0) << 8 |
                              (left > 2 ? data[i + 2] : 0);
        *at++ = digits[word >> 18];
        *at++ = digits[word >> 12 & 63];
        *at++ = left > 1 ? digits[word >> 6 & 63] : '=';
        *at++ = left > 2 ? digits[word & 63] : '=';
    }
    if (out)
        *at = 0;
    return out;
}

/* Adds the bytes. */
static int decode(const char *text, size_t len, struct buf *out)
{
    unsigned word = 0;
    int bits = 0;
    for (size_t i = 0; i < len && text[i] != '='; i++) {
        const char *digit = text[i] ? strchr(digits, text[i]) : NULL;
        if (!digit)
            return CORDON_CLIENT_PROTOCOL;
        word = word << 6 | (unsigned)(digit - digits);
        bits += 6;
        if (bits < 8)
            continue;
        bits -= 8;
        const char byte = (char)(word >> bits & 255);
        if (buf_add(out, &byte, 1) < 0)
            return CORDON_CLIENT_MEMORY;
    }
    return 0;
}

int cordon_session_put(struct cordon_session *s, const char *path, const void *data, size_t len)
{
    struct cordon_answer *a = NULL;
    char *text = len > CLIENT_MESSAGE_MAX ? NULL : encode(data, len);
    const struct client_arg args[] = {{.name = "session_id", .text = s->id},
                                      {.name = "path", .text = path},
                                      {.name = "text", .text = text},
                                      {.name = "encoding", .text = "base64"}};
    int r = len > CLIENT_MESSAGE_MAX
                ? client_fail(s->client, CORDON_CLIENT_ARGUMENT, "a message has at most 4 MiB")
            : !text ? client_fail(s->client, CORDON_CLIENT_MEMORY, "no memory")
                    : client_do(s->client, "write_file", args, COUNT(args), NULL, CLIENT_FILE, &a);
    cordon_answer_free(a);
    free(text);
    return r;
}

/* The part of a file that begins at OFFSET, which then is where the next one begins; 0: there is none. */
static int get_part(struct cordon_session *s, const char *path, uint64_t *offset, struct buf *out)
{
    const struct client_arg args[] = {{.name = "session_id", .text = s->id},
                                      {.name = "path", .text = path},
                                      {.name = "offset", .number = *offset},
                                      {.name = "encoding", .text = "base64"}};
    struct cordon_answer *a;
    size_t len = 0;
    int64_t next = 0;
    int r = client_do(s->client, "read_file", args, COUNT(args), NULL, CLIENT_FILE, &a);
    if (r == 0) {
        const char *data = cordon_answer_string(a, CORDON_FILE_INFO_DATA, &len);
        struct client_value v;
        const bool more = client_member(a->raw, a->raw_len, CORDON_FILE_INFO_NEXT_OFFSET, &v) &&
                          v.kind != JSON_NULL;
        r = data ? decode(data, len, out) : CORDON_CLIENT_PROTOCOL;
        if (r)
            client_fail(s->client, r, "%s",
                        r == CORDON_CLIENT_MEMORY ? "no memory for the file"
                                                  : "the server's part of a file is no base64");
        else if (more &&
                 (!client_integer(&v, &next) || next <= (int64_t)*offset)) /* it would never end */
            r = client_fail(s->client, CORDON_CLIENT_PROTOCOL,
                            "the server's part of a file does not lead on");
        *offset = more ? (uint64_t)next : 0;
    }
    cordon_answer_free(a);
    return r;
}

int cordon_session_get(struct cordon_session *s, const char *path, void **ret_data, size_t *ret_len)
{
    struct buf out;
    uint64_t offset = 0;
    int r;
    buf_init(&out, SIZE_MAX / 4);
    do
        r = get_part(s, path, &offset, &out);
    while (r == 0 && offset);
    if (r == 0 && !out.data &&
        buf_str(&out, "") < 0) /* an empty file, too, is memory to be freed */
        r = client_fail(s->client, CORDON_CLIENT_MEMORY, "no memory for the file");
    *ret_len = r ? 0 : out.len;
    *ret_data = r ? NULL : out.data;
    if (r)
        buf_done(&out);
    return r;
}
