/* SPDX-License-Identifier: Apache-2.0 */
/* The goal of a session has no file that a guest could write: it is the last of the calls of ModifyGoal that the audit has of the
 * session. The broker finds those records and reads nothing in them; what they say is read here. */
#include "tools/inside.h"

#include <stdlib.h>
#include <string.h>

struct goals {
    json_t *versions; /* of those that are still told, the last at the end */
    json_int_t count; /* of all */
};

static json_t *marked(struct tools_call *c, const json_t *text)
{
    return tools_mark(c, json_is_string(text) ? json_string_value(text) : "",
                      json_string_length(text));
}

/* What a record of the audit has as the arguments of its call: {"args": {"arguments": "{\"goal\": ...}"}}. Redacted, they may be no
 * JSON any more: then they are told as they stand there. */
static json_t *version_of(struct tools_call *c, const char *line, size_t len, json_int_t number)
{
    json_t *record = json_loadb(line, len, 0, NULL);
    const json_t *said = json_object_get(json_object_get(record, "args"), "arguments");
    json_t *args = json_is_string(said)
                       ? json_loadb(json_string_value(said), json_string_length(said), 0, NULL)
                       : NULL;
    const json_t *goal = json_object_get(args, "goal");
    json_t *ret =
        json_pack("{s:I, s:o, s:o, s:O}", "version", number, "goal",
                  marked(c, json_is_string(goal) ? goal : said), "why",
                  marked(c, json_object_get(args, "why")), "ts", json_object_get(record, "ts"));
    json_decref(args);
    json_decref(record);
    return ret;
}

static int read_goals(struct tools_call *c, const char *lines, size_t len, struct goals *g)
{
    const char *at = lines, *end = lines + len;
    size_t told = 0;
    char *next = NULL;
    g->versions = json_array();
    g->count = (json_int_t)strtoll(len ? lines : "0", &next, 10);
    for (const char *s = at; s < end; s++)
        told += *s == '\n';
    at = memchr(lines, '\n', len);
    for (json_int_t number = g->count - (json_int_t)told + 1; at && at + 1 < end; number++) {
        const char *line = at + 1;
        at = memchr(line, '\n', (size_t)(end - line));
        json_t *one = version_of(c, line, (size_t)((at ? at : end) - line), number);
        if (json_array_append_new(g->versions, one) < 0)
            return -1;
    }
    return g->versions ? 0 : -1;
}

/* ---- the difference ---- */

static size_t line_length(const char *s)
{
    return strcspn(s, "\n");
}

/* Where the lines of A and B part, from the beginning. */
static void skip_common(const char **a, const char **b)
{
    while (**a && **b) {
        const size_t n = line_length(*a), m = line_length(*b);
        if (n != m || strncmp(*a, *b, n) != 0)
            return;
        *a += n + ((*a)[n] == '\n');
        *b += m + ((*b)[m] == '\n');
    }
}

static size_t count_lines(const char *s)
{
    size_t n = 0;
    for (; *s; s += line_length(s) + (s[line_length(s)] == '\n'))
        n++;
    return n;
}

static const char *nth_line(const char *s, size_t n)
{
    while (n--)
        s += line_length(s) + (s[line_length(s)] == '\n');
    return s;
}

/* Of the two, how many lines at the end are the same. */
static size_t common_end(const char *a, size_t na, const char *b, size_t nb)
{
    size_t same = 0;
    while (same < na && same < nb) {
        const char *x = nth_line(a, na - same - 1), *y = nth_line(b, nb - same - 1);
        if (line_length(x) != line_length(y) || strncmp(x, y, line_length(x)) != 0)
            break;
        same++;
    }
    return same;
}

static int add_lines(json_t *list, char sign, const char *s, size_t count)
{
    for (; count--; s += line_length(s) + (s[line_length(s)] == '\n'))
        if (json_array_append_new(list, json_sprintf("%c%.*s", sign, (int)line_length(s), s)) < 0)
            return -1;
    return 0;
}

/* The lines that were taken away, then those that came; what is the same before and behind them is left out. */
static json_t *difference(const char *before, const char *now)
{
    json_t *list = json_array();
    skip_common(&before, &now);
    const size_t na = count_lines(before), nb = count_lines(now),
                 same = common_end(before, na, now, nb);
    if (list &&
        (add_lines(list, '-', before, na - same) < 0 || add_lines(list, '+', now, nb - same) < 0)) {
        json_decref(list);
        list = NULL;
    }
    return list;
}

/* ---- answers ---- */

static const char *goal_at(const json_t *versions, size_t i)
{
    const char *goal = json_string_value(json_object_get(json_array_get(versions, i), "goal"));
    return goal ? goal : "";
}

static json_t *modified(struct tools_call *c, const struct goals *g)
{
    const size_t n = json_array_size(g->versions);
    const json_t *given = json_object_get(c->args, "goal");
    json_t *now = tools_mark(c, json_string_value(given), json_string_length(given));
    const char *before = n ? goal_at(g->versions, n - 1) : "";
    return now ? json_pack("{s:s, s:I, s:o, s:s, s:o}", "source", "the goal of the session",
                           "version", g->count + 1, "goal", now, "before", before, "diff",
                           difference(before, json_string_value(now)))
               : NULL;
}

static json_t *told(const struct goals *g)
{
    const size_t n = json_array_size(g->versions);
    for (size_t i = 0; i < n; i++)
        if (json_object_set_new(
                json_array_get(g->versions, i), "diff",
                i || g->count == (json_int_t)n
                    ? difference(i ? goal_at(g->versions, i - 1) : "", goal_at(g->versions, i))
                    : json_null()) < 0)
            return NULL;
    return json_pack("{s:s, s:I, s:s, s:O}", "source", "the goal of the session", "version",
                     g->count, "goal", n ? goal_at(g->versions, n - 1) : "", "versions",
                     g->versions);
}

enum tools_end tools_goal_answer(struct tools_call *c, const char *lines, size_t len)
{
    struct goals g = {0};
    if (read_goals(c, lines, len, &g) == 0)
        c->answer = strcmp(c->name, "Goal") == 0 ? told(&g) : modified(c, &g);
    json_decref(g.versions);
    return c->answer ? TOOLS_OK : tools_fail(c, "no memory");
}
