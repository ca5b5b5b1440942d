/* SPDX-License-Identifier: Apache-2.0 */
/* Tags are taken apart as the HTML standard's tokenizer does, since a pattern over the text misses what a browser
 * accepts (`<img/src='x'/onerror=...>`, `&#106;avascript:`). Where the two could differ, this one reports: text that
 * stands in a comment, and a tag that is not closed, which the page around it may close. */
#include "output/markup.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define NAME 24 /* of a tag or an attribute: all that is looked for is shorter */

struct scan {
    const char *at, *end;
    char tag[NAME], attribute[NAME];
};

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\f' || c == '\r';
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 'a' - 'A') : c;
}

static bool is_letter(char c)
{
    return lower(c) >= 'a' && lower(c) <= 'z';
}

static void take_name(struct scan *s, const char *stops, char name[NAME])
{
    size_t n = 0;
    const char *begin = s->at;
    /* an attribute may begin with an equals sign: that is its name then */
    for (; s->at < s->end && !is_space(*s->at) && (s->at == begin || !strchr(stops, *s->at));
         s->at++)
        if (n + 1 < NAME)
            name[n++] = is_letter(*s->at) || *s->at == '-' ? lower(*s->at) : '?';
    name[n] = 0;
}

/* ---- values ---- */

/* The character that a reference stands for; 0: one that hides nothing. *USED: bytes of it, 1 where it is none. */
static unsigned reference(const char *at, const char *end, size_t *used)
{
    static const struct {
        const char *text;
        char is;
    } named[] = {{"&tab;", '\t'}, {"&newline;", '\n'}, {"&colon;", ':'}, {"&lpar;", '('}};
    const char *p = at + 1;
    unsigned value = 0;
    *used = 1;
    for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
        size_t n = strlen(named[i].text), same = 0;
        while (same < n && at + same < end && lower(at[same]) == named[i].text[same])
            same++;
        if (same == n) {
            *used = n;
            return (unsigned char)named[i].is;
        }
    }
    if (p == end || *p++ != '#')
        return '&';
    const bool hex = p < end && lower(*p) == 'x';
    for (p += hex; p < end; p++) {
        const char c = lower(*p);
        const int digit = c >= '0' && c <= '9'          ? c - '0'
                          : hex && c >= 'a' && c <= 'f' ? c - 'a' + 10
                                                        : -1;
        if (digit < 0)
            break;
        value = value > 0xffff ? value : value * (hex ? 16 : 10) + (unsigned)digit;
    }
    *used = (size_t)(p - at) + (p < end && *p == ';');
    return value;
}

/* A browser drops spaces and control characters in a scheme, and takes references for what they stand for. */
static const char *scheme_in(const char *at, const char *end)
{
    static const char *const schemes[] = {"javascript:", "vbscript:", "data:text/html"};
    size_t matched[sizeof schemes / sizeof *schemes] = {0};
    while (at < end) {
        size_t used = 1;
        const unsigned c = *at == '&' ? reference(at, end, &used) : (unsigned char)*at;
        at += used;
        if (c <= ' ')
            continue;
        const char letter = c < 128 ? lower((char)c) : 0;
        for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
            const char *text =
                schemes[i]; /* no scheme's beginning comes again inside it: no way back is needed */
            matched[i] = letter == text[matched[i]] ? matched[i] + 1 : letter == text[0];
            if (!text[matched[i]])
                return text;
        }
    }
    return NULL;
}

/* From behind the equals sign to behind the value. */
static void take_value(struct scan *s, const char **ret_begin, const char **ret_end)
{
    while (s->at < s->end && is_space(*s->at))
        s->at++;
    const char quote = s->at < s->end && (*s->at == '"' || *s->at == '\'') ? *s->at : 0;
    const char *begin = s->at + (quote != 0), *end = begin;
    if (quote) {
        end = memchr(begin, quote, (size_t)(s->end - begin));
        s->at = end ? end + 1 : begin; /* the rest may be in it or not: it is looked at as if not */
        end = end ? end : s->end;
    } else {
        while (end < s->end && !is_space(*end) && *end != '>')
            end++;
        s->at = end;
    }
    *ret_begin = begin;
    *ret_end = end;
}

/* ---- tags ---- */

/* Tags that load or run what one of their attributes says; a value must be there. Without one they do nothing, and Python
 * prints such text for its own things: <object object at 0x...>, <frame at 0x...>. */
static bool loads(const char *tag)
{
    static const char *const tags[] = {"iframe", "frame",  "frameset", "object", "embed",
                                       "applet", "portal", "meta",     "base",   "link"};
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
        if (strcmp(tag, tags[i]) == 0)
            return true;
    return false;
}

/* One attribute; true where it makes a browser run something. A handler without a value is none: <function on_click at
 * 0x...> is how Python prints a function. */
static bool take_attribute(struct scan *s, const char **ret_scheme)
{
    const char *begin, *end;
    bool has_value = false;
    *ret_scheme = NULL;
    take_name(s, "/>=", s->attribute);
    while (s->at < s->end && is_space(*s->at))
        s->at++;
    if (s->at < s->end && *s->at == '=') {
        s->at++;
        take_value(s, &begin, &end);
        *ret_scheme = scheme_in(begin, end);
        has_value = end > begin;
    }
    const bool handler = strncmp(s->attribute, "on", 2) == 0 && s->attribute[2];
    return *ret_scheme || (has_value && (handler || loads(s->tag)));
}

/* From behind the `<` of a tag to its end. */
static bool take_tag(struct scan *s, char what[OUTPUT_MARKUP_WORDS])
{
    const char *scheme;
    take_name(s, "/>", s->tag);
    bool runs = strcmp(s->tag, "script") == 0;
    snprintf(what, OUTPUT_MARKUP_WORDS, "<%s>", s->tag);
    while (s->at < s->end && *s->at != '>') {
        if (is_space(*s->at) || *s->at == '/') {
            s->at++;
            continue;
        }
        if (take_attribute(s, &scheme) && !runs) {
            runs = true;
            snprintf(what, OUTPUT_MARKUP_WORDS, "<%s %s%s%s>", s->tag, s->attribute,
                     scheme ? "=" : "", scheme ? scheme : "");
        }
    }
    return runs;
}

size_t output_markup(const char *text, size_t len, char what[OUTPUT_MARKUP_WORDS])
{
    struct scan s = {.at = text, .end = text + len};
    char words[OUTPUT_MARKUP_WORDS];
    size_t count = 0;
    what[0] = 0;
    while (s.at < s.end && (s.at = memchr(s.at, '<', (size_t)(s.end - s.at)))) {
        s.at++;
        if (s.at == s.end || !is_letter(*s.at))
            continue;
        if (take_tag(&s, words) && count++ == 0)
            memcpy(what, words, sizeof words);
    }
    return count;
}
