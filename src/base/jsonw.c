/* SPDX-License-Identifier: Apache-2.0 */
/* A writer only, and by hand: a library would want the ten megabytes of a run's output copied into
 * a tree of its own first, and refuses strings that are not UTF-8, which is just what a guest
 * writes. */
#include "base/jsonw.h"

#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

static void note(struct jsonw *j, int r)
{
    if (r < 0 && !j->bad)
        j->bad = r;
}

static size_t plain_prefix(const unsigned char *s, size_t len)
{
    size_t n = 0;
    while (n < len && s[n] >= 0x20 && s[n] < 0x7f && s[n] != '"' && s[n] != '\\')
        n++;
    return n;
}

static void escaped(struct jsonw *j, const unsigned char *s, size_t len)
{
    for (size_t i = 0; i < len && !j->bad;) {
        size_t plain = plain_prefix(s + i, len - i);
        if (plain) {
            note(j, buf_add(j->out, s + i, plain));
            i += plain;
            continue;
        }
        uint32_t cp;
        int n = utf8_decode(s + i, len - i, &cp);
        if (n <= 0) {
            cp = 0xfffd;
            n = 1;
        }
        i += (size_t)n;
        if (cp == '"' || cp == '\\')
            note(j, buf_printf(j->out, "\\%c", (int)cp));
        else if (cp == '\n' || cp == '\t' || cp == '\r')
            note(j, buf_str(j->out, cp == '\n' ? "\\n" : cp == '\t' ? "\\t" : "\\r"));
        else if (cp >= 0x10000)
            note(j, buf_printf(j->out, "\\u%04x\\u%04x", 0xd800 + ((cp - 0x10000) >> 10),
                               0xdc00 + (cp & 0x3ff)));
        else
            note(j, buf_printf(j->out, "\\u%04x", cp));
    }
}

/* Most strings, and all keys, have nothing to escape: one look, one copy. */
static void quoted(struct jsonw *j, const unsigned char *s, size_t len)
{
    char *at = NULL;
    size_t plain = plain_prefix(s, len);
    if (j->bad)
        return;
    note(j, buf_reserve(j->out, plain + 2, &at));
    if (!at)
        return;
    at[0] = '"';
    memcpy(at + 1, s, plain);
    at[plain + 1] = '"';
    buf_added(j->out, plain == len ? plain + 2 : plain + 1);
    if (plain < len) {
        escaped(j, s + plain, len - plain);
        note(j, buf_add(j->out, "\"", 1));
    }
}

static void item(struct jsonw *j, const char *key)
{
    if (j->comma)
        note(j, buf_add(j->out, ", ", 2));
    j->comma = true;
    if (key) {
        quoted(j, (const unsigned char *)key, strlen(key));
        note(j, buf_add(j->out, ": ", 2));
    }
}

void jsonw_open(struct jsonw *j, const char *key, char bracket)
{
    item(j, key);
    note(j, buf_add(j->out, &bracket, 1));
    j->comma = false;
}

void jsonw_close(struct jsonw *j, char bracket)
{
    note(j, buf_add(j->out, &bracket, 1));
    j->comma = true;
}

void jsonw_bytes(struct jsonw *j, const char *key, const void *s, size_t len)
{
    item(j, key);
    quoted(j, s, len);
}

void jsonw_string(struct jsonw *j, const char *key, const char *s)
{
    if (s)
        jsonw_bytes(j, key, s, strlen(s));
    else
        jsonw_null(j, key);
}

void jsonw_int(struct jsonw *j, const char *key, int64_t n)
{
    char digits
        [24]; /* by hand: a record of the audit has a dozen, and printf costs more than all of them */
    size_t at = sizeof digits;
    uint64_t left = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
    do
        digits[--at] = (char)('0' + left % 10);
    while ((left /= 10));
    if (n < 0)
        digits[--at] = '-';
    item(j, key);
    note(j, buf_add(j->out, digits + at, sizeof digits - at));
}

void jsonw_decimal(struct jsonw *j, const char *key, double n)
{
    char text[400]; /* the largest double has 309 digits before the point */
    item(j, key);
    int len = snprintf(text, sizeof text, "%.3f", n);
    if (!(n - n == 0)) { /* JSON has no word for what is not finite */
        note(j, buf_str(j->out, "null"));
        return;
    }
    /* what stands before the last three digits is the caller's locale's: JSON wants a point */
    int whole = 0;
    while (text[whole] == '-' || (text[whole] >= '0' && text[whole] <= '9'))
        whole++;
    note(j, buf_add(j->out, text, (size_t)whole));
    note(j, buf_str(j->out, "."));
    note(j, buf_add(j->out, text + len - 3, 3));
}

void jsonw_bool(struct jsonw *j, const char *key, bool b)
{
    item(j, key);
    note(j, buf_str(j->out, b ? "true" : "false"));
}

void jsonw_null(struct jsonw *j, const char *key)
{
    item(j, key);
    note(j, buf_str(j->out, "null"));
}

void jsonw_raw(struct jsonw *j, const char *key, const char *json, size_t len)
{
    item(j, key);
    note(j, buf_add(j->out, json, len));
}
