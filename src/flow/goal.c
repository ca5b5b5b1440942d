/* SPDX-License-Identifier: Apache-2.0 */
/* A goal that a guest could write past the gate would be none, and a file of ours would have to follow sessions as they are made,
 * forked and ended. The audit has both already, in order and signed: the goal is read from it. A record is found by members
 * that we wrote; a quotation mark that a guest sent has a backslash before it there, so no text of a guest's looks like one. */
#include "flow/steps.h"

#include "audit/read.h"
#include "base/clock.h"
#include "base/limits.h"
#include "tools/process.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define TOLD     10  /* versions that are told; all are counted */
#define MOST     960 /* bytes of a goal, as JSON: the audit cuts longer texts */
#define FORKS    8   /* of which a goal is followed to where it was made */
#define SINCE_MS (7ULL * 24 * 3600 * 1000)

bool flow_goal_is(const char *tool)
{
    return strcmp(tool, "ModifyGoal") == 0 || strcmp(tool, "Goal") == 0;
}

bool flow_goal_fits(struct buf *text)
{
    char why[120];
    if (text->len <= MOST)
        return true;
    snprintf(why, sizeof why, "\"the goal and its reason have %zu bytes; at most %d are recorded\"",
             text->len, MOST);
    buf_reset(text);
    (void)!buf_str(text, why); /* without a reason it is refused as well */
    return false;
}

struct history {
    const char *tool;
    const char *key, *value; /* which records: session or execution_id */
    uint64_t before;         /* only those with smaller numbers */
    uint64_t count;
    struct buf lines[LIMIT_MADE]; /* a ring: of version V in V % LIMIT_MADE */
    char from[80];                /* the session that it was forked of; empty: of none */
    uint64_t forked;              /* the number of that record */
};

static bool has(const struct audit_step *s, const char *key, const char *value)
{
    char text[200];
    const int n = snprintf(text, sizeof text, "\"%s\": \"%s\"", key, value);
    return n > 0 && (size_t)n < sizeof text && memmem(s->text, s->len, text, (size_t)n);
}

static void forget(struct history *h)
{
    h->count = 0;
    h->forked = 0;
    h->from[0] = 0;
}

static void take_event(struct history *h, const struct audit_step *s)
{
    static const char member[] = "\"from\": \"";
    if (has(s, "event", "opened") || has(s, "event", "forked"))
        forget(h);
    if (!has(s, "event", "forked"))
        return;
    const char *from = memmem(s->text, s->len, member, sizeof member - 1);
    if (from) {
        from += sizeof member - 1;
        snprintf(h->from, sizeof h->from, "%.*s", (int)strcspn(from, "\""), from);
        h->forked = s->seq;
    }
}

static int take(struct history *h, const struct audit_step *s)
{
    if (s->wrong || s->seq >= h->before || !has(s, h->key, h->value))
        return 0;
    if (has(s, "kind", "session"))
        take_event(h, s);
    if (!has(s, "kind", "tool") || !has(s, "tool", h->tool) || !has(s, "status", "ok"))
        return 0;
    struct buf *line = &h->lines[h->count++ % LIMIT_MADE];
    buf_reset(line);
    return buf_add(line, s->text, s->len);
}

static uint64_t week_ago(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 - SINCE_MS;
}

static int collect(struct history *h, struct err *err)
{
    struct audit_walk *walk = NULL;
    struct audit_step step;
    int r = audit_walk_new(NULL, &walk, err);
    if (r < 0)
        return r;
    if (strcmp(h->key, "session") == 0)
        audit_walk_since(walk, week_ago());
    else
        audit_walk_find(walk, h->value);
    while ((r = audit_walk_next(walk, &step, err)) == 1)
        if (take(h, &step) < 0) {
            r = err_set(err, ERR_LIMIT, "a record of %s is too long", h->tool);
            break;
        }
    audit_walk_free(walk);
    return r;
}

static void done(struct history *h)
{
    for (size_t i = 0; i < LIMIT_MADE; i++)
        buf_done(&h->lines[i]);
}

/* What the session had, and before that what the one had that it was forked of: the last MOST of them go to OUT, the oldest
 * first. */
static int tell(struct history *h, uint64_t most, int forks, uint64_t *count, struct buf *out,
                struct err *err)
{
    for (size_t i = 0; i < LIMIT_MADE; i++)
        buf_init(&h->lines[i], LIMIT_CALL);
    int r = collect(h, err);
    const uint64_t told = h->count < most ? h->count : most;
    struct history parent = {
        .tool = h->tool, .key = "session", .value = h->from, .before = h->forked};
    if (r == 0 && h->forked && forks < FORKS)
        r = tell(&parent, most - told, forks + 1, count, out, err);
    for (uint64_t v = h->count - told; v < h->count && r == 0; v++) {
        const struct buf *line = &h->lines[v % LIMIT_MADE];
        if (buf_add(out, "\n", 1) < 0 || buf_add(out, line->data, line->len) < 0)
            r = err_set(err, ERR_LIMIT, "the records of %s are too long to be told", h->tool);
    }
    *count += h->count;
    done(h);
    return r;
}

int flow_history(const struct flow *f, const char *tool, uint64_t most, uint64_t *ret_count,
                 struct buf *out, struct err *err)
{
    const bool session = f->result->session[0];
    struct err why = ERR_INIT; /* a log that was read may have left something here */
    struct history h = {.tool = tool,
                        .key = session ? "session" : "execution_id",
                        .value = session ? f->result->session : f->result->id,
                        .before = UINT64_MAX};
    const int r = tell(&h, most < LIMIT_MADE ? most : LIMIT_MADE, 0, ret_count, out, &why);
    if (r < 0)
        *err = why;
    return r;
}

enum tools_end flow_goal(const struct flow *f, struct tools_process *process, struct buf *text,
                         struct err *err)
{
    enum tools_end end = TOOLS_FAILED;
    struct buf lines, all;
    uint64_t count = 0;
    buf_init(&lines, LIMIT_ANSWER);
    buf_init(&all, LIMIT_ANSWER);
    if (flow_history(f, "ModifyGoal", TOLD, &count, &lines, err) == 0) {
        if (buf_printf(&all, "%llu", (unsigned long long)count) < 0 ||
            (lines.len && buf_add(&all, lines.data, lines.len) < 0))
            err_set(err, ERR_LIMIT, "the goals of the session are too long to be told");
        else
            end = tools_process_wrote(process, TOOLS_WROTE_GOALS, all.data, all.len, text, err);
    }
    buf_done(&lines);
    buf_done(&all);
    return end;
}
