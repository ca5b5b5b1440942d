/* SPDX-License-Identifier: Apache-2.0 */
/* Whose request a text was that is no message: half a surrogate pair, a number beyond all or too many brackets may stand anywhere in what a model
 * wrote. A reply without the id of the request finds nobody, and the client waits until it gives up. So the id is looked
 * for by brackets and quotes alone, and is taken only where there is no doubt: one object, whole, that has a method, and one
 * id in it. An answer to a question of ours has an id of our making; it is no request, and gets none. */
#include "serve/front/inside.h"

#include <stdio.h>
#include <string.h>

struct scan {
    const char *text;
    size_t len, at;
    size_t depth, wholes; /* brackets that are open; times that the last one was closed */
    size_t ids, methods;  /* members of the outermost object */
    size_t value;         /* where that of the id begins */
};

static void skip_blanks(struct scan *s)
{
    while (s->at < s->len && memchr(" \t\r\n", s->text[s->at], 4))
        s->at++;
}

/* AT is at a quote, and then behind the one that closes it. */
static void skip_string(struct scan *s)
{
    for (s->at++; s->at < s->len && s->text[s->at] != '"'; s->at++)
        if (s->text[s->at] == '\\')
            s->at++;
    s->at = s->at < s->len ? s->at + 1 : s->len;
}

static bool is_name(const struct scan *s, size_t from, size_t to, const char *name)
{
    const size_t n = strlen(name);
    return to - from == n + 2 && memcmp(s->text + from + 1, name, n) == 0;
}

static void take_string(struct scan *s)
{
    const size_t from = s->at;
    skip_string(s);
    const size_t to = s->at;
    skip_blanks(s);
    if (s->depth != 1 || s->at == s->len || s->text[s->at] != ':')
        return;
    s->methods += is_name(s, from, to, "method");
    if (!is_name(s, from, to, "id"))
        return;
    s->ids++;
    s->at++;
    skip_blanks(s);
    s->value = s->at;
}

static void take_all(struct scan *s)
{
    while (s->at < s->len && s->wholes < 2) {
        const char c = s->text[s->at];
        if (c == '"') {
            take_string(s);
            continue;
        }
        if (c == '{' || c == '[')
            s->depth++;
        else if ((c == '}' || c == ']') && s->depth && --s->depth == 0)
            s->wholes++;
        s->at++;
    }
}

void serve_rpc_whose(const char *text, size_t len, char id[LIMIT_SERVE_ID + 1])
{
    struct scan s = {.text = text, .len = len};
    json_error_t where;
    snprintf(id, LIMIT_SERVE_ID + 1, "null");
    skip_blanks(&s);
    if (s.at == len || text[s.at] != '{')
        return;
    take_all(&s);
    if (s.depth || s.wholes != 1 || s.ids != 1 || s.methods != 1)
        return;
    s.at = s.value;
    if (text[s.at] == '"')
        skip_string(&s);
    else
        while (s.at < len && memchr("-0123456789", text[s.at], 11))
            s.at++;
    json_t *v = json_loadb(text + s.value, s.at - s.value, JSON_DECODE_ANY, &where);
    char found[LIMIT_SERVE_ID + 1];
    if (serve_rpc_id(v, found))
        memcpy(id, found, sizeof found);
    json_decref(v);
}
