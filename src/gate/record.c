/* SPDX-License-Identifier: Apache-2.0 */
/* Both ends are ours, but what is carried is hostile (code, arguments), so lengths are stated and
 * nothing is searched for in it. */
#include "gate/record.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int gate_record_bytes(struct buf *out, const char *name, const void *data, size_t len)
{
    int r = buf_printf(out, "%s %zu\n", name, len);
    if (r == 0 && len)
        r = buf_add(out, data, len);
    return r == 0 ? buf_str(out, "\n") : r;
}

int gate_record_text(struct buf *out, const char *name, const char *text)
{
    return gate_record_bytes(out, name, text ? text : "", text ? strlen(text) : 0);
}

int gate_record_number(struct buf *out, const char *name, uint64_t n)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, n);
    return gate_record_text(out, name, text);
}

int gate_record_end(struct buf *out)
{
    return buf_str(out, ".\n");
}

int gate_record_next(struct gate_record *r, struct gate_field *f)
{
    const char *p = r->at;
    size_t len = 0;
    if (r->end - p == 2 && memcmp(p, ".\n", 2) == 0) {
        r->at = r->end;
        return 0;
    }
    f->name = p;
    while (p < r->end && (islower((unsigned char)*p) || *p == '_'))
        p++;
    f->name_len = (size_t)(p - f->name);
    if (f->name_len == 0 || f->name_len > 32 || p == r->end || *p++ != ' ')
        return ERR_FORMAT;
    const char *digits = p;
    for (; p < r->end && isdigit((unsigned char)*p); p++) {
        len = len * 10 + (size_t)(*p - '0');
        if (len > GATE_RECORD_MAX)
            return ERR_FORMAT;
    }
    if (p == digits || p == r->end || *p++ != '\n')
        return ERR_FORMAT;
    if ((size_t)(r->end - p) < len + 1 || p[len] != '\n')
        return ERR_FORMAT;
    f->data = p;
    f->len = len;
    r->at = p + len + 1;
    return 1;
}

bool gate_record_valid(const void *data, size_t len)
{
    struct gate_record r = {data, (const char *)data + len};
    struct gate_field f;
    int e = 1;
    while (data && e == 1)
        e = gate_record_next(&r, &f);
    return data && e == 0;
}

struct gate_field gate_record_find(const void *data, size_t len, const char *name)
{
    struct gate_record r = {data, (const char *)data + len};
    struct gate_field f;
    while (gate_record_next(&r, &f) == 1)
        if (f.name_len == strlen(name) && memcmp(f.name, name, f.name_len) == 0)
            return f;
    return (struct gate_field){"", 0, "", 0};
}

void gate_record_copy(const void *data, size_t len, const char *name, char *out, size_t size)
{
    struct gate_field f = gate_record_find(data, len, name);
    size_t n = f.len < size - 1 ? f.len : size - 1;
    memcpy(out, f.data, n);
    out[n] = 0;
}

uint64_t gate_record_count(const void *data, size_t len, const char *name)
{
    struct gate_field f = gate_record_find(data, len, name);
    uint64_t n = 0;
    for (size_t i = 0; i < f.len; i++) {
        if (!isdigit((unsigned char)f.data[i]) || n > (UINT64_MAX - 9) / 10)
            return 0;
        n = n * 10 + (uint64_t)(f.data[i] - '0');
    }
    return n;
}
