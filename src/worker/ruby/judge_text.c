/* SPDX-License-Identifier: Apache-2.0 */
/* What is decided on bytes: text that Ruby would read as something else than it looks like, and the plain patterns. They are
 * matched by Ruby's own engine, since they are Ruby's own patterns. */
#include "ruby_first.h"

#include "base/utf8.h"
#include "judge_inside.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

struct place {
    unsigned line, column;
};

static struct place place_of(const struct rb_judge *j, size_t offset)
{
    struct place p = {1, 1};
    for (size_t i = 0; i < offset && i < j->len; i++) {
        if (j->text[i] == '\n')
            p = (struct place){p.line + 1, 1};
        else
            p.column += ((unsigned char)j->text[i] & 0xc0) != 0x80;
    }
    return p;
}

/* ---- encodings ---- */

/* The name that a comment gives its file's encoding, from S on: `coding`, blanks, `:` or `=`, blanks, the name. */
static const char *declared(const char *s, const char *end, size_t *ret_len)
{
    for (; end - s > 7; s++) {
        const char *at = s + 6;
        if (strncasecmp(s, "coding", 6) != 0)
            continue;
        while (at < end && (*at == ' ' || *at == '\t'))
            at++;
        if (at == end || (*at != ':' && *at != '='))
            continue;
        for (at++; at < end && (*at == ' ' || *at == '\t' || *at == '"'); at++)
            ;
        *ret_len = 0;
        while (at + *ret_len < end &&
               (isalnum((unsigned char)at[*ret_len]) || memchr("-_.", at[*ret_len], 3)))
            ++*ret_len;
        return at;
    }
    return NULL;
}

/* Of the comment in the first line, or in the second one behind `#!`: Ruby looks nowhere else, and further down `coding:` is a
 * word of a sentence. */
static void encodings(struct rb_judge *j)
{
    const char *s = j->text, *end = s + j->len, *stop = memchr(s, '\n', j->len);
    if (stop && s[0] == '#' && s[1] == '!') {
        s = stop + 1;
        stop = memchr(s, '\n', (size_t)(end - s));
    }
    if (!stop)
        stop = end;
    while (s < stop && isspace((unsigned char)*s))
        s++;
    size_t len = 0;
    const char *name = s < stop && *s == '#' ? declared(s, stop, &len) : NULL;
    if (!name || (len == 5 && strncasecmp(name, "utf-8", 5) == 0))
        return;
    const struct place p = place_of(j, (size_t)(name - j->text));
    rb_judge_find(j, "rb.form.encoding", "save the program as UTF-8 and leave the comment out",
                  CHECK_SAY_COOKIE, name, len, p.line, p.column);
}

/* A NUL, ^D and ^Z end a program without a word: what stands behind them would be judged and not run, or the other
 * way round in another reader. */
static bool has_end_mark(struct rb_judge *j)
{
    for (size_t i = 0; i < j->len; i++)
        if (j->text[i] == 0 || j->text[i] == 4 || j->text[i] == 26) {
            struct place p = place_of(j, i);
            rb_judge_find(j, j->text[i] ? "rb.form.end-mark" : CHECK_RULE_NUL, "take it out",
                          CHECK_SAY_SYNTAX, "a character that ends the program", 33, p.line,
                          p.column);
            return true;
        }
    return false;
}

bool rb_judge_bytes(struct rb_judge *j)
{
    char size[64];
    size_t characters = 0, good = utf8_valid_prefix(j->text, j->len);
    for (size_t i = 0; i < good; i++)
        characters += ((unsigned char)j->text[i] & 0xc0) != 0x80;
    if (good < j->len) {
        struct place p = place_of(j, good);
        rb_judge_find(j, CHECK_RULE_ENCODING, "save the program as UTF-8", CHECK_SAY_SYNTAX,
                      "the source is not UTF-8", 23, p.line, p.column);
        return false;
    }
    if (characters > j->profile->source_max) {
        int n = snprintf(size, sizeof size, "%zu > %llu characters", characters,
                         (unsigned long long)j->profile->source_max);
        rb_judge_find(j, CHECK_RULE_SIZE, "write a shorter program", CHECK_SAY_SIZE, size,
                      (size_t)n, 0, 0);
        return false;
    }
    if (has_end_mark(j))
        return false;
    encodings(j);
    return j->report->count == 0;
}

/* ---- patterns ---- */

static void match(struct rb_judge *j, const struct rb_rule *rule)
{
    const OnigUChar *text = (const OnigUChar *)j->text, *end = text + j->len;
    const OnigUChar *pattern = (const OnigUChar *)rule->pattern;
    OnigErrorInfo why;
    regex_t *re = NULL;
    OnigRegion *where = onig_region_new();
    if (!where || onig_new(&re, pattern, pattern + strlen(rule->pattern), ONIG_OPTION_NONE,
                           rb_utf8_encoding(), ONIG_SYNTAX_RUBY, &why) != ONIG_NORMAL) {
        j->bad = ERR_MEMORY;
    } else {
        for (const OnigUChar *at = text;
             at <= end && onig_search(re, text, end, at, end, where, ONIG_OPTION_NONE) >= 0;
             at = text + where->end[0]) {
            struct place p = place_of(j, (size_t)where->beg[0]);
            rb_judge_find(j, rule->id, rule->hint, CHECK_SAY_NAME, j->text + where->beg[0],
                          (size_t)(where->end[0] - where->beg[0]), p.line, p.column);
            if (j->report->dropped)
                break; /* it is refused, and there is no room to say more */
        }
    }
    if (re)
        onig_free(re);
    if (where)
        onig_region_free(where, 1);
}

void rb_judge_patterns(struct rb_judge *j)
{
    for (const struct rb_rule *rule = rb_rules; rule->id; rule++)
        if (rule->pattern)
            match(j, rule);
}
