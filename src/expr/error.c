/* SPDX-License-Identifier: Apache-2.0 */
/* A message may quote hostile text, so quoting lives here, once: what CPython's repr() escapes (control,
 * bidirectional, zero-width and unassigned characters) comes out as an escape, and a cut never
 * leaves half a character behind. Which characters those are depends on the Unicode version, so the
 * table is made at build time of the Python that is the reference of all tests. */
#include "expr/error.h"

#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *cordon_class(enum cordon_status status)
{
    static const char *const names[] = {
        "",
        "UnsafeExpressionError",
        "TypeError",
        "ZeroDivisionError",
        "OverflowError",
        "KeyError",
        "LimitError",
        "ContextError",
        "SchemaError",
        "BytecodeError",
        "MemoryError",
        "UnreadError",
    };
    return (size_t)status < sizeof names / sizeof *names ? names[status] : "";
}

void expr_text_add(struct expr_text *t, const char *s, size_t len)
{
    if (t->len < t->size) {
        size_t cap = t->size - t->len;
        memcpy(t->out + t->len, s, len < cap ? len : cap);
    }
    t->len += len;
}

void expr_text_str(struct expr_text *t, const char *s)
{
    expr_text_add(t, s, strlen(s));
}

size_t expr_text_end(struct expr_text *t)
{
    if (t->size == 0)
        return t->len;
    size_t n = t->len;
    if (n >= t->size) {
        n = t->size - 1;
        while (n && ((unsigned char)t->out[n] & 0xc0) == 0x80)
            n--;
    }
    t->out[n] = 0;
    return t->len;
}

size_t expr_text_clip(const char *s, size_t len, size_t max)
{
    if (len <= max)
        return len;
    while (max && ((unsigned char)s[max] & 0xc0) == 0x80)
        max--;
    return max;
}

void expr_text_trim(char *s)
{
    size_t len = strlen(s), lead = len;
    uint32_t cp;
    while (lead && len - lead < 4 && ((unsigned char)s[lead - 1] & 0xc0) == 0x80)
        lead--;
    if (lead && (unsigned char)s[lead - 1] >= 0xc0 &&
        utf8_decode((const unsigned char *)s + lead - 1, len - lead + 1, &cp) <= 0)
        s[lead - 1] = 0;
}

/* Characters that a terminal or a reader would take for something else: those repr() escapes. */
static bool hidden(uint32_t cp)
{
    size_t low = 0, high = expr_printable_count;
    if (cp < 0x7f)
        return cp < 0x20;
    while (low < high) { /* how many edges are at or before it */
        size_t mid = low + (high - low) / 2;
        if (expr_printable_edges[mid] <= cp)
            low = mid + 1;
        else
            high = mid;
    }
    return low % 2 == 0;
}

static void escape(struct expr_text *t, uint32_t cp, bool json)
{
    char b[16];
    if (cp == '\n' || cp == '\t' || cp == '\r')
        snprintf(b, sizeof b, "\\%c", cp == '\n' ? 'n' : cp == '\t' ? 't' : 'r');
    else if (cp < 0x100 && !json)
        snprintf(b, sizeof b, "\\x%02x", cp);
    else if (cp < 0x10000)
        snprintf(b, sizeof b, "\\u%04x", cp);
    else if (json)
        snprintf(b, sizeof b, "\\u%04x\\u%04x", 0xd800 + ((cp - 0x10000) >> 10),
                 0xdc00 + ((cp - 0x10000) & 0x3ff));
    else
        snprintf(b, sizeof b, "\\U%08x", cp);
    expr_text_str(t, b);
}

static void quoted(struct expr_text *t, const char *s, size_t len, char quote, bool json)
{
    expr_text_add(t, &quote, 1);
    for (size_t i = 0; i < len;) {
        uint32_t cp;
        int n = utf8_decode((const unsigned char *)s + i, len - i, &cp);
        if (n <= 0) { /* of a caller that cut its text: the replacement character */
            expr_text_str(t, "\xef\xbf\xbd");
            i++;
            continue;
        }
        if (cp == (unsigned char)quote || cp == '\\') {
            char b[2] = {'\\', (char)cp};
            expr_text_add(t, b, 2);
        } else if (hidden(cp)) {
            escape(t, cp, json);
        } else {
            expr_text_add(t, s + i, (size_t)n);
        }
        i += (size_t)n;
    }
    expr_text_add(t, &quote, 1);
}

void expr_text_repr(struct expr_text *t, const char *s, size_t len)
{
    bool single = len && memchr(s, '\'', len), dbl = len && memchr(s, '"', len);
    quoted(t, s, len, single && !dbl ? '"' : '\'', false);
}

void expr_text_quote(struct expr_text *t, const char *s, size_t len)
{
    quoted(t, s, len, '"', true);
}

void expr_fail_with(struct cordon_error *err, enum cordon_status status, const char *fmt, ...)
{
    if (!err)
        return;
    va_list ap;
    va_start(ap, fmt);
    err->status = status;
    err->line = err->column = err->end_column = 0;
    err->offset = err->end = 0;
    err->hint[0] = 0;
    vsnprintf(err->message, sizeof err->message, fmt, ap);
    va_end(ap);
    expr_text_trim(err->message);
}

/* The start of the line that holds AT, and the line's number. */
static size_t line_start(const char *s, size_t at, unsigned *ret_line)
{
    size_t start = 0;
    unsigned line = 1;
    for (size_t i = 0; i < at; i++)
        if (s[i] == '\n' || (s[i] == '\r' && !(i + 1 < at && s[i + 1] == '\n'))) {
            start = i + 1;
            line++;
        }
    *ret_line = line;
    return start;
}

static unsigned characters(const char *s, size_t from, size_t to)
{
    unsigned n = 0;
    for (; from < to; from++)
        n += ((unsigned char)s[from] & 0xc0) != 0x80;
    return n;
}

void expr_place(struct cordon_error *err, const char *source, size_t len, size_t offset, size_t end)
{
    if (!err)
        return;
    if (offset > len)
        offset = len;
    if (end > len)
        end = len;
    if (end < offset)
        end = offset;
    size_t start = line_start(source, offset, &err->line);
    err->offset = offset;
    err->end = end;
    err->column = characters(source, start, offset) + 1;
    size_t stop = offset;
    while (stop < end && source[stop] != '\n' && source[stop] != '\r')
        stop++;
    err->end_column = err->column + characters(source, offset, stop);
}

size_t cordon_caret(const struct cordon_error *err, const char *source, size_t len, char *out,
                    size_t size)
{
    struct expr_text t = {.out = out, .size = size};
    if (!err->line || err->offset > len)
        return expr_text_end(&t);
    unsigned line;
    size_t start = line_start(source, err->offset, &line), stop = err->offset;
    while (stop < len && source[stop] != '\n' && source[stop] != '\r')
        stop++;
    /* a window of the line around the place */
    size_t from = err->offset - start > 60 ? err->offset - 60 : start;
    size_t to = stop - err->offset > 60 ? err->offset + 60 : stop;
    while (from < err->offset && ((unsigned char)source[from] & 0xc0) == 0x80)
        from++;
    expr_text_str(&t, from > start ? "  ..." : "  ");
    unsigned before = from > start ? 5 : 2, under = 0;
    for (size_t i = from; i < to;) {
        uint32_t cp;
        int n = utf8_decode((const unsigned char *)source + i, len - i, &cp);
        bool show = n > 0 && !hidden(cp);
        if (n <= 0)
            n = 1;
        before += i < err->offset;
        under += i >= err->offset && i < err->end;
        expr_text_add(&t, show ? source + i : "?", show ? (size_t)n : 1);
        i += (size_t)n;
    }
    expr_text_str(&t, "\n");
    while (before--)
        expr_text_str(&t, " ");
    do
        expr_text_str(&t, "^");
    while (under-- > 1);
    expr_text_str(&t, "\n");
    return expr_text_end(&t);
}
