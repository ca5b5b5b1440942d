/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of each verb stands here, whole. Of what a client sent, only numbers and handles that we made get into
 * it: code goes to the runner's standard input. What the operator chose (profile, role, policy) is the same for every run,
 * and the gate that the runner passes is the command line's own. */
#include "serve/holding.h"

#include <stdio.h>

static void word(struct serve_words *w, const char *s)
{
    base_assert(w->count < SERVE_WORDS_MAX);
    w->argv[w->count++] = s;
}

static void option(struct serve_words *w, const char *name, const char *value)
{
    if (!value || !*value)
        return;
    word(w, name);
    word(w, value);
}

static void limit(struct serve_words *w, const char *name, uint64_t n, const char *unit)
{
    base_assert(w->used < 4);
    snprintf(w->numbers[w->used], sizeof w->numbers[0], "%llu%s", (unsigned long long)n, unit);
    option(w, name, w->numbers[w->used++]);
}

/* What was asked for may be less than the operator's, never more. */
static uint64_t tighter(uint64_t asked, uint64_t given)
{
    return asked && asked < given ? asked : given;
}

struct serve_limits serve_words_limits(const struct serve_config *f, const struct serve_request *q)
{
    const struct serve_limits *g = &f->limits;
    return (struct serve_limits){tighter(q->limits.timeout_ms, g->timeout_ms),
                                 tighter(q->limits.memory, g->memory),
                                 tighter(q->limits.output, g->output)};
}

/* Which rules hold: the operator's words, for every verb that asks the gate. */
static void chosen(struct serve_words *w, const struct serve_config *f, bool profile, bool role)
{
    if (profile)
        option(w, "--profile", f->profile);
    if (role)
        option(w, "--role", f->role);
    option(w, "--policy", f->policy);
}

static void build_files(struct serve_words *w, const struct serve_config *f,
                        const struct serve_request *q)
{
    word(w, "session");
    word(w, "files");
    chosen(w, f, false, true);
    word(w, q->handle);
    word(w, serve_verb_files(q->verb));
}

static void build_session(struct serve_words *w, const struct serve_config *f,
                          const struct serve_request *q, const struct serve_for *named)
{
    static const char *const verbs[SERVE_VERB_COUNT] = {[SERVE_SESSION_RUN] = "run",
                                                        [SERVE_SESSION_NEW] = "new",
                                                        [SERVE_SESSION_FORK] = "fork",
                                                        [SERVE_SESSION_CLOSE] = "close",
                                                        [SERVE_SESSION_INTERRUPT] = "interrupt"};
    const struct serve_limits l = serve_words_limits(f, q);
    const bool runs = q->verb == SERVE_SESSION_RUN, makes = q->verb == SERVE_SESSION_NEW;
    base_assert(verbs[q->verb]);
    word(w, "session");
    word(w, verbs[q->verb]);
    word(w, runs ? "--events" : "--json");
    if (runs)
        word(w, "--images");
    chosen(w, f, makes, runs || makes);
    option(w, "--lang", serve_language(q->language));
    if (runs) {
        limit(w, "--timeout", l.timeout_ms, "ms");
        limit(w, "--output", l.output, "");
    }
    if (makes) {
        limit(w, "--memory", l.memory, "");
        limit(w, "--idle", LIMIT_SERVE_IDLE_MS, "ms");
        option(w, "--workspace", named->workspace);
    } else {
        word(w, q->handle);
    }
    if (makes || q->verb == SERVE_SESSION_FORK)
        word(w, named->session);
    if (runs)
        word(w, "-");
}

static void build_answer(struct serve_words *w, const struct serve_config *f, pid_t asker)
{
    base_assert(asker); /* asks.c looked */
    word(w, "approve");
    word(w, "elicited");
    snprintf(w->numbers[w->used], sizeof w->numbers[0], "%d", (int)asker);
    word(w, w->numbers[w->used++]);
    if (f->policy[0])
        word(w, f->policy);
}

static void build_run(struct serve_words *w, const struct serve_config *f,
                      const struct serve_request *q)
{
    const struct serve_limits l = serve_words_limits(f, q);
    word(w, f->cordon);
    word(w, "run");
    word(w, "--events");
    word(w, "--images");
    chosen(w, f, true, true);
    option(w, "--lang", serve_language(q->language));
    limit(w, "--timeout", l.timeout_ms, "ms");
    limit(w, "--memory", l.memory, "");
    limit(w, "--output", l.output, "");
    word(w, "-");
}

void serve_words(struct serve_words *w, const struct serve_config *f, const struct serve_request *q,
                 const struct serve_for *named)
{
    if (q->verb == SERVE_RUN) {
        build_run(w, f, q);
        return;
    }
    word(w, f->cordon);
    if (q->verb == SERVE_CHECK) {
        word(w, "check");
        word(w, "--json");
        chosen(w, f, true, false);
        option(w, "--lang", serve_language(q->language));
        word(w, "-");
    } else if (q->verb == SERVE_METRICS) {
        word(w, "serve");
        word(w, "--from-cordond");
        word(w, "--metrics");
        word(w, "0");
        chosen(w, f, false, false);
    } else if (q->verb == SERVE_APPROVAL_ANSWER) {
        build_answer(w, f, named->asker);
    } else if (q->verb == SERVE_APPROVALS) {
        word(w, "approve");
        word(w, "served");
        if (f->policy[0])
            word(w, f->policy);
    } else if (serve_verb_files(q->verb)) {
        build_files(w, f, q);
    } else {
        build_session(w, f, q, named);
    }
}
