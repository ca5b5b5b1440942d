/* SPDX-License-Identifier: Apache-2.0 */
/* The stages in their order: binary, known strings, patterns, cut; then, when the text is asked for, the
 * escape. Binary means bytes that are not UTF-8, or a NUL. It is a
 * property of the whole stream, so its text is replaced whole, also when only the last byte showed it. A
 * sequence that the end of the stream cut in half is the cut's fault and becomes U+FFFD.
 *
 * The two stages that look for something hold back what the next bytes could change; nothing else is
 * kept but the head and the tail. Each byte passes each stage once. */
#include "output/clean.h"

#include "base/limits.h"
#include "base/utf8.h"
#include "output/rules.h"

#include <stdlib.h>
#include <string.h>

int output_rules_new(const struct output_known *known, size_t count, unsigned what,
                     struct output_rules **ret_rules, struct err *err)
{
    struct output_rules *r = calloc(1, sizeof *r);
    if (!r)
        return err_set(err, ERR_MEMORY, "no memory for the output's rules");
    r->what = what;
    int e = output_known_build(r, known, count, err);
    if (e < 0)
        output_rules_free(r);
    else
        *ret_rules = r;
    return e;
}

void output_rules_free(struct output_rules *rules)
{
    if (rules)
        output_known_free(rules);
    free(rules);
}

void output_clean_init(struct output_clean *c, const struct output_rules *rules, uint64_t cap,
                       enum output_unit unit)
{
    memset(c, 0, sizeof *c);
    c->rules = rules;
    c->known.before = c->pattern.before = -1;
    buf_init(&c->known.held, LIMIT_OUTPUT_MAX);
    buf_init(&c->pattern.held, LIMIT_OUTPUT_MAX);
    if (unit == OUTPUT_CHARACTERS)
        output_capture_init_characters(&c->kept, cap);
    else
        output_capture_init(&c->kept, cap);
}

void output_clean_done(struct output_clean *c)
{
    buf_done(&c->known.held);
    buf_done(&c->pattern.held);
    output_capture_done(&c->kept);
}

bool output_hold(struct output_clean *c, struct buf *held, const void *data, size_t len)
{
    if (buf_add(held, data, len) == 0)
        return true;
    c->lost = true;
    return false;
}

void output_keep(struct output_clean *c, const void *data, size_t len)
{
    if (len)
        output_capture_add(&c->kept, data, len);
}

/* The bytes at the front that are text. Stops at a NUL, at a wrong byte, at an unfinished sequence. */
static size_t text_prefix(const unsigned char *s, size_t len)
{
    const uint64_t ones = 0x0101010101010101ULL, tops = 0x8080808080808080ULL;
    size_t i = 0;
    while (i < len) {
        uint64_t w;
        for (; i + 8 <= len; i += 8) {
            memcpy(&w, s + i, 8);
            if ((w | (w - ones)) & tops) /* a byte that is no ASCII, or zero */
                break;
        }
        for (; i < len && s[i] - 1U < 0x7f; i++)
            if (i % 8 == 7)
                break; /* back to whole words */
        if (i < len && s[i] - 1U < 0x7f) {
            i++;
            continue;
        }
        uint32_t cp;
        int n = i < len && s[i] ? utf8_decode(s + i, len - i, &cp) : 0;
        if (n <= 0)
            break;
        i += (size_t)n;
    }
    return i;
}

/* Completes the sequence that the last chunk cut; returns how many of the new bytes it took. */
static size_t complete(struct output_clean *c, const unsigned char *s, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        uint32_t cp;
        c->part[c->npart++] = s[i];
        int n = utf8_decode(c->part, c->npart, &cp);
        if (n < 0)
            continue;
        if (n == 0)
            c->binary = true;
        else
            output_known_feed(c, c->part, (size_t)n, false);
        c->npart = 0;
        return i + 1;
    }
    return len;
}

void output_clean_add(struct output_clean *c, const void *data, size_t len)
{
    const unsigned char *s = data;
    base_assert(!c->ended);
    c->bytes_in += len;
    if (c->binary || c->lost || !len)
        return;
    if (c->npart) {
        size_t n = complete(c, s, len);
        s += n;
        len -= n;
        if (c->binary || !len)
            return;
    }
    size_t n = text_prefix(s, len);
    if (n)
        output_known_feed(c, s, n, false);
    if (n == len)
        return;
    uint32_t cp;
    if (s[n] && utf8_decode(s + n, len - n, &cp) < 0) {
        c->npart = len - n;
        memcpy(c->part, s + n, c->npart);
    } else {
        c->binary = true;
    }
}

void output_clean_end(struct output_clean *c)
{
    if (c->ended)
        return;
    if (!c->binary && !c->lost) {
        static const unsigned char half[] = "\xef\xbf\xbd";
        output_known_feed(c, half, c->npart ? 3 : 0, false);
        output_known_feed(c, NULL, 0, true);
    }
    c->ended = true;
}

bool output_clean_truncated(const struct output_clean *c)
{
    return !c->binary && (c->lost || output_capture_truncated(&c->kept));
}

/* ---- escape ---- */

static int escape_html(const char *s, size_t len, struct buf *out)
{
    size_t from = 0;
    int r = 0;
    for (size_t i = 0; i < len && r == 0; i++) {
        const char *to = NULL;
        switch (s[i]) {
        case '&':
            to = "&amp;";
            break;
        case '<':
            to = "&lt;";
            break;
        case '>':
            to = "&gt;";
            break;
        case '"':
            to = "&quot;";
            break;
        case '\'':
            to = "&#x27;";
            break;
        default:
            continue;
        }
        r = buf_add(out, s + from, i - from);
        if (r == 0)
            r = buf_str(out, to);
        from = i + 1;
    }
    return r < 0 ? r : buf_add(out, s + from, len - from);
}

static int escaped(struct output_visible *v, enum output_escape escape, const char *s, size_t len,
                   struct buf *out)
{
    switch (escape) {
    case OUTPUT_ESCAPE_HTML:
        return escape_html(s, len, out);
    case OUTPUT_ESCAPE_TERMINAL:
        return output_visible_add(v, s, len, out);
    case OUTPUT_ESCAPE_NONE:
        break;
    }
    return buf_add(out, s, len);
}

/* The head, without the beginning of a sequence that the cut went through. */
static size_t whole_head(const struct output_clean *c)
{
    const struct buf *h = &c->kept.head;
    size_t len = h->len;
    for (size_t back = 1; back <= 3 && back <= h->len; back++) {
        unsigned char b = (unsigned char)h->data[h->len - back];
        if ((b & 0xc0) != 0x80) {
            size_t want = b < 0x80 ? 1 : b < 0xe0 ? 2 : b < 0xf0 ? 3 : 4;
            if (want > back)
                len -= back;
            break;
        }
    }
    return len;
}

uint64_t output_clean_cut(const struct output_clean *c)
{
    const struct output_capture *k = &c->kept;
    if (c->binary || !output_capture_truncated(k))
        return 0;
    return k->total - output_capture_tail(k) - (k->characters ? k->head_units : whole_head(c));
}

/* What follows the head: the end of it, then the tail, or the marker and the tail. */
static int after_head(const struct output_clean *c, size_t from, struct output_visible *v,
                      enum output_escape escape, struct buf *out)
{
    struct buf rest;
    const struct buf *h = &c->kept.head;
    size_t len = output_clean_truncated(c) ? whole_head(c) : h->len;
    int r = len > from ? escaped(v, escape, h->data + from, len - from, out) : 0;
    buf_init(&rest, output_capture_rest_max(&c->kept));
    if (r == 0 && c->lost && !output_capture_truncated(&c->kept))
        r = buf_str(&rest, OUTPUT_MARKER);
    if (r == 0)
        r = output_capture_rest(&c->kept, &rest);
    if (r == 0 && rest.len)
        r = escaped(v, escape, rest.data, rest.len, out);
    if (r == 0 && escape == OUTPUT_ESCAPE_TERMINAL)
        r = output_visible_end(v, out);
    buf_done(&rest);
    return r;
}

int output_clean_text(const struct output_clean *c, enum output_escape escape, struct buf *out)
{
    struct output_visible v = {0};
    base_assert(c->ended);
    return c->binary ? buf_str(out, OUTPUT_BINARY) : after_head(c, 0, &v, escape, out);
}

int output_clean_show(struct output_clean *c, enum output_escape escape, struct buf *out)
{
    size_t len = whole_head(c), from = c->shown;
    if (c->told)
        return 0;
    if (c->binary) {
        c->told = true;
        return buf_str(out, OUTPUT_BINARY);
    }
    if (c->ended) {
        c->told = true;
        return after_head(c, from, &c->visible, escape, out);
    }
    c->shown = len;
    return len > from ? escaped(&c->visible, escape, c->kept.head.data + from, len - from, out) : 0;
}

int output_clean_once(const struct output_rules *rules, const void *data, size_t len, uint64_t cap,
                      enum output_unit unit, enum output_escape escape, struct buf *out)
{
    struct output_clean c;
    output_clean_init(&c, rules, cap, unit);
    output_clean_add(&c, data, len);
    output_clean_end(&c);
    int r = output_clean_text(&c, escape, out);
    output_clean_done(&c);
    return r;
}
