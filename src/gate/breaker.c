/* SPDX-License-Identifier: Apache-2.0 */
/* Three states: closed, open, half-open. What fails again and again is answered at once for a while;
 * then one request goes through as a probe, and how it ends decides. Each failure counts twice: for the
 * tool, whatever the code, where a success of the tool begins a new row; and, where the program is to
 * blame, for the same request with the same normalised error, where successes of other programs in
 * between change nothing. Keys contain the client: no client can open the breaker of another.
 *
 * A row is there only while something failed; the usual request finds an empty table. */
#include "gate/inside.h"

#include "base/clock.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum key { KEY_NONE, KEY_REQUEST, KEY_TOOL };

/* The first row that fits decides. NULL fits everything. */
static const struct {
    const char *status, *type;
    int kind; /* of tool; -1: any */
    int failure;
    const char *why;
} classes[] = {
    {"ok", NULL, -1, -1, "no failure"},
    {"blocked", NULL, -1, -1, "the check's business, and the anomaly rules'"},
    {"denied", NULL, -1, -1, "our own refusals must not feed us"},
    {"error", "Stopped", -1, -1, "somebody stopped it"},
    {"error", "KeyboardInterrupt", -1, -1, "somebody stopped it"},
    {"error", "ArgumentError", GATE_TOOL_CALL, -1, "the caller's fault, not the tool's"},
    {"error", NULL, GATE_TOOL_CALL, GATE_FAILURE_TOOL, "a tool that was called failed"},
    {"timeout", NULL, GATE_TOOL_CALL, GATE_FAILURE_TOOL, "a tool that was called hangs"},
    {"crashed", "JailLost", -1, GATE_FAILURE_LOST, "the jail was killed from outside"},
    {"crashed", "WorkerLost", -1, GATE_FAILURE_LOST, "the worker was lost before the program ran"},
    {"error", "ExitStatus", GATE_TOOL_EXECUTION, GATE_FAILURE_ERROR, "exited non-zero"},
    {"error", NULL, -1, GATE_FAILURE_ERROR, "raised"},
    {"timeout", NULL, -1, GATE_FAILURE_TIMEOUT, "too long"},
    {"memory", NULL, -1, GATE_FAILURE_MEMORY, "too much memory"},
    {"output", NULL, -1, GATE_FAILURE_OUTPUT, "too much output"},
    {"crashed", NULL, -1, GATE_FAILURE_CRASHED, "killed by a signal"},
    {"refused", "UsageError", -1, -1, "the caller's fault: nothing was tried"},
    {"refused", NULL, -1, GATE_FAILURE_REFUSED, "no jail for it"},
};

static const enum key failure_keys[] = {
#define X(name, word, key, text) KEY_##key,
    GATE_FAILURES(X)
#undef X
};

static int classify(const struct gate_tool *tool, const struct gate_outcome *o)
{
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (strcmp(classes[i].status, o->status) == 0 &&
            (!classes[i].type || (o->type && strcmp(classes[i].type, o->type) == 0)) &&
            (classes[i].kind < 0 || classes[i].kind == (int)tool->kind))
            return classes[i].failure;
    return -1;
}

/* Whoever mistypes a name three times at a prompt is no loop, and waits for nothing. What a limit ends costs as much
 * there as anywhere. */
static bool is_own_mistake(const struct gate_outcome *o, int failure)
{
    return o->at_prompt && failure == GATE_FAILURE_ERROR;
}

static bool counts(const struct gate *g, const struct gate_tool *tool, int failure)
{
    /* grep and diff say "no" with their exit status: for a bare program it is data */
    if (failure < 0 || (failure == GATE_FAILURE_ERROR && tool->unjudged))
        return false;
    return g->config->breaker.counts >> failure & 1;
}

void gate_breaker_normalise(const char *type, const char *message, char *out, size_t size)
{
    size_t n = 0;
    const unsigned char *p = (const unsigned char *)(message ? message : "");
    n = (size_t)snprintf(out, size, "%s: ", type ? type : "error");
    if (n >= size)
        n = size - 1;
    while (*p && n + 1 < size) {
        unsigned char c = *p;
        if (c == '\'' || c == '"' || c == '`') { /* a quoted word, if it ends */
            const unsigned char *end = (const unsigned char *)strchr((const char *)p + 1, c);
            out[n++] = '*';
            p = end ? end + 1 : p + 1;
        } else if (isdigit(c)) { /* numbers, addresses, ids that begin with a digit */
            while (isalnum(*p) || *p == '.' || *p == '_')
                p++;
            out[n++] = '#';
        } else if (c == '/' && p[1] && !isspace(p[1])) { /* a path */
            while (*p && !isspace(*p) && *p != ':' && *p != ',')
                p++;
            out[n++] = '/';
        } else if (isspace(c)) {
            while (isspace(*p))
                p++;
            out[n++] = ' ';
        } else {
            out[n++] = c > 32 && c < 127 ? (char)c : '?';
            p++;
        }
    }
    out[n] = 0;
}

void gate_breaker_keys(struct gate_ticket *t)
{
    const struct gate_request *q = &t->request;
    uint64_t client = gate_hash(q->client.id, strlen(q->client.id), 2);
    t->tool_key = gate_hash(t->tool->name, strlen(t->tool->name), client);
    uint64_t code = q->code_hash ? gate_hash(q->code_hash, GATE_HASH_SIZE, t->tool_key)
                                 : gate_hash(q->code, q->code_len, t->tool_key);
    t->request_key =
        gate_hash(q->arguments ? q->arguments : "", q->arguments ? strlen(q->arguments) : 0, code);
}

/* Which of the two a breaker is, for the record. */
static const char *subject_of(const struct gate_ticket *t, uint64_t key)
{
    return key == t->tool_key ? t->tool->name : "the same request";
}

static uint32_t find(const struct gate *g, uint64_t key)
{
    for (uint32_t i = 0; i < GATE_BREAKERS; i++)
        if (g->map.at->breaker_keys[i] == key)
            return i;
    return GATE_BREAKERS;
}

/* A row for KEY: its own, a free one, or the one that matters least. */
static uint32_t slot(struct gate *g, uint64_t key, const struct gate_ticket *t, uint64_t now)
{
    struct gate_shared *s = g->map.at;
    uint32_t at = find(g, key), best = GATE_BREAKERS;
    if (at < GATE_BREAKERS)
        return at;
    for (uint32_t i = 0; i < GATE_BREAKERS && best == GATE_BREAKERS; i++)
        if (s->breaker_keys[i] == 0)
            best = i;
    for (int open = 0; open < 2 && best == GATE_BREAKERS; open++)
        for (uint32_t i = 0; i < GATE_BREAKERS; i++)
            if ((s->breakers[i].state != GATE_BREAKER_CLOSED) == open &&
                (best == GATE_BREAKERS || s->breakers[i].last_ns < s->breakers[best].last_ns))
                best = i;
    struct gate_breaker_row *b = &s->breakers[best];
    gate_store(&s->breaker_keys[best], 0);
    *b = (struct gate_breaker_row){.last_ns = now};
    strncpy(b->tool, t->tool->name, sizeof b->tool - 1);
    memcpy(b->client, t->request.client.id, sizeof b->client);
    gate_store(&s->breaker_keys[best], key);
    return best;
}

static bool probe_lives(const struct gate *g, uint64_t number)
{
    const struct gate_shared *s = g->map.at;
    for (uint32_t i = 0; i < gate_rows_high(s); i++)
        if (gate_load(&s->rows[i].state) != GATE_ROW_FREE && s->rows[i].number == number)
            return gate_row_alive(&g->map, i);
    return false;
}

void gate_breaker_ask(struct gate *g, const struct gate_ticket *t, uint64_t now,
                      struct gate_breaker_word *w)
{
    const uint64_t keys[2] = {t->tool_key, t->request_key},
                   cooldown = g->config->breaker.cooldown_ms * CLOCK_NS_PER_MS;
    *w = (struct gate_breaker_word){.probe = {UINT32_MAX, UINT32_MAX}};
    for (int k = 0; k < 2; k++) {
        uint32_t i = find(g, keys[k]);
        if (i == GATE_BREAKERS)
            continue;
        const struct gate_breaker_row *b = &g->map.at->breakers[i];
        if (b->state == GATE_BREAKER_CLOSED)
            continue;
        uint64_t since = now > b->opened_ns ? now - b->opened_ns : 0, wait = 0;
        if (b->state == GATE_BREAKER_OPEN && since < cooldown)
            wait = cooldown - since;
        else if (b->state == GATE_BREAKER_HALF && probe_lives(g, b->probe))
            wait = CLOCK_NS_PER_S; /* how long a probe takes nobody knows */
        if (wait == 0) {
            w->probe[k] = i;
        } else if (wait > w->wait_ns) {
            w->refuse = true;
            w->of_tool = k == 0;
            w->wait_ns = wait;
            memcpy(w->text, b->text, sizeof w->text);
            w->text[sizeof w->text - 1] = 0;
        }
    }
}

void gate_breaker_probe(struct gate *g, const struct gate_ticket *t,
                        const struct gate_breaker_word *w)
{
    for (int k = 0; k < 2; k++) {
        if (w->probe[k] == UINT32_MAX)
            continue;
        struct gate_breaker_row *b = &g->map.at->breakers[w->probe[k]];
        b->probe = t->number;
        gate_store(&b->state, GATE_BREAKER_HALF);
        gate_count(g, GATE_COUNTER_breaker_probed);
        gate_note(g, GATE_EVENT_BREAKER_HALF_OPEN, t,
                  subject_of(t, k == 0 ? t->tool_key : t->request_key), b->text, 0);
    }
}

static void fed_success(struct gate *g, uint64_t key, const struct gate_ticket *t)
{
    struct gate_shared *s = g->map.at;
    uint32_t i = find(g, key);
    if (i == GATE_BREAKERS)
        return;
    struct gate_breaker_row *b = &s->breakers[i];
    /* one that began before the breaker opened proves nothing */
    if (b->state != GATE_BREAKER_CLOSED && b->probe != t->number)
        return;
    if (b->state != GATE_BREAKER_CLOSED) {
        gate_count(g, GATE_COUNTER_breaker_closed);
        gate_note(g, GATE_EVENT_BREAKER_CLOSE, t, subject_of(t, key), b->text, 0);
    }
    gate_store(&s->breaker_keys[i], 0);
}

static void fed_failure(struct gate *g, uint64_t key, const struct gate_ticket *t, bool same_only,
                        const char *text, uint64_t now)
{
    struct gate_breaker_row *b = &g->map.at->breakers[slot(g, key, t, now)];
    uint64_t error = gate_hash(text, strlen(text), 3),
             cooldown = g->config->breaker.cooldown_ms * CLOCK_NS_PER_MS;
    bool probe = b->state == GATE_BREAKER_HALF && b->probe == t->number;
    if (b->state != GATE_BREAKER_CLOSED && !probe)
        return;
    if (b->state == GATE_BREAKER_CLOSED) {
        /* in a row means soon after each other: not one a day */
        bool old = t->admitted_ns > b->last_ns && t->admitted_ns - b->last_ns > cooldown;
        bool other = same_only && b->error != error;
        b->failures = old || other ? 1 : b->failures + 1;
    }
    b->error = error;
    b->last_ns = now;
    snprintf(b->text, sizeof b->text, "%s", text);
    if (!probe && b->failures < g->config->breaker.failures)
        return;
    b->opened_ns = now;
    b->probe = 0;
    gate_store(&b->state, GATE_BREAKER_OPEN);
    gate_count(g, GATE_COUNTER_breaker_opened);
    gate_note(g, GATE_EVENT_BREAKER_OPEN, t, subject_of(t, key), b->text,
              g->config->breaker.cooldown_ms / 1000);
}

void gate_breaker_feed(struct gate *g, const struct gate_ticket *t, const struct gate_outcome *o,
                       uint64_t now)
{
    char text[sizeof g->map.at->breakers[0].text];
    int failure = classify(t->tool, o);
    if (is_own_mistake(o, failure))
        return;
    if (strcmp(o->status, "ok") == 0) {
        fed_success(g, t->request_key, t);
        fed_success(g, t->tool_key, t);
    } else if (counts(g, t->tool, failure)) {
        gate_breaker_normalise(o->type, o->message, text, sizeof text);
        if (failure_keys[failure] == KEY_REQUEST)
            fed_failure(g, t->request_key, t, true, text, now);
        fed_failure(g, t->tool_key, t, false, text, now);
    } else if (failure >= 0 && failure_keys[failure] == KEY_REQUEST) {
        fed_success(g, t->tool_key, t); /* policy says that this is no failure */
    }
}
