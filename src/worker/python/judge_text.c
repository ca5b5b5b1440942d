/* SPDX-License-Identifier: Apache-2.0 */
/* Small scanners over a source or a string in it. They live apart from the walk so that they can be
 * tested, and fuzzed, without an interpreter. */
#include "judge_text.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

/* The length of the line end at S, or 0. */
static size_t line_end(const char *s, const char *end)
{
    if (*s == '\n')
        return 1;
    if (*s != '\r')
        return 0;
    return s + 1 < end && s[1] == '\n' ? 2 : 1;
}

static uint32_t characters(const char *s, size_t len)
{
    uint32_t n = 0;
    for (size_t i = 0; i < len; i++)
        n += ((unsigned char)s[i] & 0xc0) != 0x80;
    return n;
}

struct text_place py_text_place(const char *text, size_t len, size_t offset)
{
    const char *s = text, *end = text + len, *start = text;
    struct text_place place = {1, 1};
    const char *stop = offset < len ? text + offset : end;
    while (s < stop) {
        size_t n = line_end(s, end);
        if (n && s + n <= stop) {
            place.line++;
            start = s + n;
        }
        s += n ? n : 1;
    }
    place.column = characters(start, (size_t)(stop - start)) + 1;
    return place;
}

struct text_place py_text_node_place(struct text_cursor *c, uint32_t line, uint32_t column,
                                     size_t *ret_offset)
{
    const char *end = c->text + c->len;
    if (!c->line || line < c->line)
        *c = (struct text_cursor){.text = c->text, .len = c->len, .line = 1};
    const char *s = c->text + c->start;
    while (s < end && c->line < line) {
        size_t n = line_end(s, end);
        s += n ? n : 1;
        if (n) {
            c->line++;
            c->start = (size_t)(s - c->text);
            c->bytes = c->characters = 0;
        }
    }
    size_t left = c->len - c->start;
    uint32_t at = column < left ? column : (uint32_t)left;
    if (at < c->bytes)
        c->bytes = c->characters = 0;
    c->characters += characters(c->text + c->start + c->bytes, at - c->bytes);
    c->bytes = at;
    if (ret_offset)
        *ret_offset = c->start + at;
    return (struct text_place){line, c->characters + 1};
}

size_t py_text_bare_cr(const char *text, size_t len)
{
    const char *s = text;
    while ((s = memchr(s, '\r', len - (size_t)(s - text)))) {
        size_t at = (size_t)(s - text);
        if (at + 1 == len || s[1] != '\n')
            return at;
        s += 2;
        if ((size_t)(s - text) >= len)
            break;
    }
    return len;
}

static bool is_utf8(struct text_piece name)
{
    static const char *const words[] = {"utf-8", "utf8", "utf_8", "utf-8-sig", "utf_8_sig"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == name.len && strncasecmp(words[i], name.at, name.len) == 0)
            return true;
    return false;
}

/* `coding`, then `:` or `=`, blanks, and a name: anywhere in the comment. */
static bool declares(const char *s, const char *end, struct text_piece *ret_name)
{
    for (; end - s > 7; s++) {
        if (memcmp(s, "coding", 6) != 0 || (s[6] != ':' && s[6] != '='))
            continue;
        const char *name = s + 7;
        while (name < end && (*name == ' ' || *name == '\t'))
            name++;
        const char *stop = name;
        while (stop < end && (isalnum((unsigned char)*stop) || memchr("-_.", *stop, 3)))
            stop++;
        if (stop > name) {
            *ret_name = (struct text_piece){name, (size_t)(stop - name)};
            return true;
        }
    }
    return false;
}

bool py_text_cookie(const char *text, size_t len, struct text_piece *ret_name)
{
    const char *s = text, *end = text + len;
    for (int line = 0; line < 2 && s < end; line++) {
        const char *stop = s;
        while (stop < end && *stop != '\n' && *stop != '\r')
            stop++;
        const char *first = s;
        while (first < stop && (*first == ' ' || *first == '\t' || *first == '\f'))
            first++;
        if (first < stop && *first != '#')
            return false; /* code: a declaration below it is a comment */
        if (first < stop && declares(first, stop, ret_name))
            return !is_utf8(*ret_name);
        s = stop < end ? stop + line_end(stop, end) : end;
    }
    return false;
}

enum text_field py_text_next_field(struct text_fields *f, struct text_piece *ret_name,
                                   struct text_piece *ret_field)
{
    for (;;) {
        if (!f->field) { /* the next brace, and past the argument's own name */
            const char *brace =
                f->at < f->end ? memchr(f->at, '{', (size_t)(f->end - f->at)) : NULL;
            if (!brace)
                return TEXT_FIELD_NONE;
            f->field = brace;
            f->at = brace + 1;
            while (f->at < f->end && !memchr(".[!:{}", *f->at, 6))
                f->at++;
        }
        if (f->at == f->end || (*f->at != '.' && *f->at != '[')) {
            f->field = NULL; /* a conversion, a format or the end: no more look-ups here */
            continue;
        }
        bool item = *f->at++ == '[';
        const char *name = f->at;
        while (f->at < f->end &&
               (item ? *f->at != ']' && *f->at != '{' : !memchr(".[!:{}", *f->at, 6)))
            f->at++;
        *ret_name = (struct text_piece){name, (size_t)(f->at - name)};
        if (item && f->at < f->end && *f->at == ']')
            f->at++;
        *ret_field = (struct text_piece){f->field, (size_t)(f->at - f->field)};
        return item ? TEXT_FIELD_ITEM : TEXT_FIELD_ATTRIBUTE;
    }
}

bool py_text_next_word(struct text_piece *rest, struct text_piece *ret_word)
{
    size_t from = 0;
    while (from < rest->len && !is_word(rest->at[from]))
        from++;
    size_t to = from;
    while (to < rest->len && is_word(rest->at[to]))
        to++;
    *ret_word = (struct text_piece){rest->at + from, to - from};
    rest->at += to;
    rest->len -= to;
    return to > from;
}
