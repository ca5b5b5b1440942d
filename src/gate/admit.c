/* SPDX-License-Identifier: Apache-2.0 */
/* Admission: the cheap questions, before anything is judged. All of them are answered under one lock:
 * the stop flag, the breakers, the rate, a slot. Who gets no slot queues.
 *
 * Waits: gate_bell_sleep in gate_admit_poll; a slot; the request's wait_ms, by steps of 100 ms; refused:
 *          gate.busy */
#include "gate/inside.h"

#include "base/clock.h"
#include "sys/lock.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int refuse_by_err(struct gate_refusal *r, enum gate_rule rule, const struct err *err)
{
    return gate_refuse(r, rule, 1000, "try again in a moment", "%s", err->msg);
}

int gate_refuse_stopped(const struct gate *g, struct gate_refusal *r)
{
    const struct gate_shared *s = g->map.at;
    return gate_refuse(
        r, GATE_RULE_STOPPED, 0, "do not try again until a person has said `cordon resume`",
        "stopped by %.90s%s%.200s", s->stopped_by, s->stopped_why[0] ? ": " : "", s->stopped_why);
}

/* Questions that need no state. */
static int may_at_all(const struct gate *g, const struct gate_request *q,
                      const struct gate_tool **ret_tool, struct gate_refusal *r)
{
    const char *name = q->role ? q->role : g->config->role;
    const struct gate_role *role = gate_role_find(g->config, name);
    const struct gate_tool *tool = gate_tool_find(g->config, q->tool);
    if (!role)
        return gate_refuse(r, GATE_RULE_ROLE, 0, "see `cordon policy show` for the roles there are",
                           "there is no role '%.40s'", name);
    if (!gate_role_may(role, q->tool))
        return gate_refuse(r, GATE_RULE_ROLE, 0,
                           "use a tool of the role, or let a worker of type execute do it",
                           "role %.40s does not have the tool %.40s", name, q->tool);
    if (!tool)
        return gate_refuse(r, GATE_RULE_TOOL, 0, "use one of the tools that are there",
                           "there is no tool '%.40s'", q->tool);
    if (gate_tool_risk(g->config, tool) == GATE_RISK_CRITICAL)
        return gate_refuse(r, GATE_RULE_SYSTEM, 0, "no client may use it",
                           "tool %.40s is of risk critical", q->tool);
    *ret_tool = tool;
    return 1;
}

/* The breaker of a tool counts failures of programs that may differ from each other and from the one that is asked for
 * now: only the breaker of a request may say that the same will fail again. */
static int refuse_broken(const struct gate *g, const struct gate_tool *tool,
                         const struct gate_breaker_word *w, struct gate_refusal *r)
{
    const unsigned long long times = g->config->breaker.failures,
                             left = (w->wait_ns + CLOCK_NS_PER_S - 1) / CLOCK_NS_PER_S;
    const uint64_t ms = (w->wait_ns + 999999) / CLOCK_NS_PER_MS;
    const bool runs = tool->kind == GATE_TOOL_EXECUTION;
    char many[32] = "";
    if (!w->of_tool)
        return gate_refuse(
            r, GATE_RULE_BREAKER, ms,
            "the same again will fail again, and is refused until then: change the code, and it "
            "runs at once",
            "failed %llu times with: %s; try again in %llu s", times, w->text, left);
    if (times > 1)
        snprintf(many, sizeof many, "%llu ", times);
    return gate_refuse(
        r, GATE_RULE_BREAKER, ms,
        runs ? "any program is refused until then, so that failures in a loop cost little; to go "
               "on at once set breakers.cooldown to 1s in the policy (breakers.counts: what "
               "counts); cordon audit tail shows the failures"
             : "any call of it is refused until then; to go on at once set breakers.cooldown to "
               "1s in the policy; cordon audit tail shows the failures",
        "the last %s%s%s of %.40s failed%s with: %s; try again in %llu s", many,
        runs ? "program" : "call", times > 1 ? "s" : "", tool->name, times > 1 ? ", the last" : "",
        w->text, left);
}

/* As gate_window_wait. Those of the client that wait in the queue count as turns, and some may have been killed there: where
 * they are what refuses it, the dead go first. Who is refused serves no queue, so nobody else might ever find them. */
static uint64_t turn_wait(struct gate *g, uint32_t client, uint64_t now)
{
    const uint64_t waiting = gate_queue_waiting(g, client),
                   wait = gate_window_wait(g, client, waiting, now);
    if (!wait || !waiting)
        return wait;
    g->map.at->counters[GATE_COUNTER_lost] += gate_rows_reap(&g->map);
    return gate_window_wait(g, client, gate_queue_waiting(g, client), now);
}

/* Under the lock. 1 or 2 (queued): the ticket has a row. */
static int enter(struct gate *g, struct gate_ticket *t, uint64_t now, struct gate_refusal *r)
{
    struct gate_breaker_word word = {0};
    struct err err = ERR_INIT;
    /* what a call starts runs in the slot of the run that calls, and what its code does is nothing against its client */
    const bool part = t->request.part_of, slots = t->tool->kind == GATE_TOOL_EXECUTION && !part;
    if (gate_load(&g->map.at->stopped))
        return gate_refuse_stopped(g, r);
    if (gate_client_find(g, t->request.client.id, now, &t->client, &err) < 0)
        return refuse_by_err(r, GATE_RULE_BUSY, &err);
    struct gate_client_row *client = &g->map.at->clients[t->client];
    if (client->refused)
        gate_refusals_flush(g, &t->request.client, client, now);
    if (!part)
        gate_breaker_ask(g, t, now, &word);
    if (word.refuse)
        return refuse_broken(g, t->tool, &word, r);
    const uint64_t wait = slots ? turn_wait(g, t->client, now) : 0;
    if (wait)
        return gate_refuse(r, GATE_RULE_RATE, (wait + 999999) / CLOCK_NS_PER_MS,
                           "or do more in one run",
                           "rate limit: %llu runs per %llu s; try again in %llu s",
                           (unsigned long long)g->config->rates.executions,
                           (unsigned long long)(g->config->rates.window_ms / 1000),
                           (unsigned long long)((wait + CLOCK_NS_PER_S - 1) / CLOCK_NS_PER_S));
    if (gate_row_take(&g->map, &t->row, &err) < 0)
        return refuse_by_err(r, GATE_RULE_BUSY, &err);
    struct gate_row *row = &g->map.at->rows[t->row];
    t->number = row->number;
    row->client = t->client;
    row->most = (uint32_t)g->config->rates.concurrent;
    row->most_of_client = (uint32_t)g->config->rates.concurrent_per_client;
    snprintf(row->run, sizeof row->run, "%s", t->request.run ? t->request.run : "");
    snprintf(row->tool, sizeof row->tool, "%s", t->request.tool);
    if (!part)
        gate_breaker_probe(g, t, &word);
    gate_row_set(&g->map, t->row, slots ? GATE_ROW_WAITING : GATE_ROW_PARKED, now);
    if (!slots)
        return 1;
    gate_queue_serve(g, now);
    return gate_load(&row->state) == GATE_ROW_RUNNING ? 1 : 2;
}

/* Under the lock. */
void gate_leave(struct gate_ticket *t, uint64_t now)
{
    struct gate *g = t->g;
    gate_row_free(&g->map, t->row);
    gate_queue_serve(g, now);
}

/* A refusal that is ours to count and to tell. */
int gate_refused(struct gate *g, const struct gate_ticket *t, const struct gate_refusal *r)
{
    char detail[400];
    __atomic_add_fetch(&g->map.at->counters[GATE_COUNTER_refused], 1, __ATOMIC_RELAXED);
    snprintf(detail, sizeof detail, "%s: %s", r->word, r->reason);
    gate_note(g, GATE_EVENT_REFUSED, t, r->approval, detail, r->retry_after_ms / 1000);
    gate_tell(g);
    return 0;
}

int gate_admit_start(struct gate *g, const struct gate_request *q, struct gate_ticket **ret_ticket,
                     struct gate_refusal *r, struct err *err)
{
    struct gate_ticket *t = malloc(sizeof *t);
    if (!t)
        return err_set(err, ERR_MEMORY, "no memory");
    *t = (struct gate_ticket){.g = g, .request = *q};
    int e = may_at_all(g, q, &t->tool, r);
    if (e == 1) {
        gate_breaker_keys(t);
        e = gate_map_lock(&g->map, err);
        if (e == 0) {
            t->admitted_ns = gate_now(g);
            e = enter(g, t, t->admitted_ns, r);
            gate_map_unlock(&g->map);
        }
    }
    if (e == 0)
        gate_refused(g, t, r);
    if (e <= 0) {
        free(t);
        return e;
    }
    gate_tell(g);
    *ret_ticket = t;
    return e;
}

/* The lock of the tables timed out. A row whose own lock is free belongs to nobody: the next process that needs a slot
 * sees that and takes it. */
void gate_lose(struct gate_ticket *t)
{
    base_assert(t->tool); /* a ticket is given out only for a tool that was found */
    if (t->tool->kind == GATE_TOOL_EXECUTION) {
        t->g->map.mine[t->row] = 0;
        lock_release(t->g->map.fd, 1 + (off_t)t->row);
    }
    free(t);
}

static void refuse_busy(const struct gate *g, const struct gate_ticket *t, struct gate_refusal *r)
{
    const unsigned long long most = g->config->rates.concurrent, ms = t->request.wait_ms;
    if (gate_unwanted(&t->request))
        gate_refuse(r, GATE_RULE_BUSY, 1000, "",
                    "queue: all %llu slots are taken; the wait was given up", most);
    else if (ms == 0)
        gate_refuse(r, GATE_RULE_BUSY, 1000, "without --no-wait it waits for one",
                    "queue: all %llu slots are taken; try again in a moment", most);
    else
        gate_refuse(
            r, GATE_RULE_BUSY, 1000, "or end one of those that run",
            "queue: all %llu slots are taken, and none came free in %llu%s; try again later", most,
            ms % 1000 ? ms : ms / 1000, ms % 1000 ? " ms" : " s");
}

bool gate_unwanted(const struct gate_request *q)
{
    struct pollfd p = {.fd = q->stop ? *q->stop : -1, .events = POLLIN};
    return p.fd >= 0 && poll(&p, 1, 0) == 1;
}

/* The wait is over: out of the queue, unless the slot came in this very moment. */
static int give_up(struct gate_ticket *t, struct gate_refusal *r, struct err *err)
{
    struct gate *g = t->g;
    int e = gate_map_lock(&g->map, err);
    if (e < 0) {
        gate_lose(t);
        return e;
    }
    bool came = gate_load(&g->map.at->rows[t->row].state) == GATE_ROW_RUNNING;
    bool stopped = gate_load(&g->map.at->stopped);
    if (!came || stopped)
        gate_leave(t, gate_now(g));
    gate_map_unlock(&g->map);
    if (came && !stopped)
        return 1;
    if (stopped)
        gate_refuse_stopped(g, r);
    else
        refuse_busy(g, t, r);
    gate_refused(g, t, r);
    free(t);
    return 0;
}

int gate_admit_poll(struct gate_ticket *t, uint64_t wait_ms, struct gate_refusal *r,
                    struct err *err)
{
    struct gate *g = t->g;
    struct gate_row *row = &g->map.at->rows[t->row];
    uint64_t end = clock_now_ns() + wait_ms * CLOCK_NS_PER_MS;
    for (;;) {
        uint32_t bell = gate_load(&row->bell);
        if (gate_load(&g->map.at->stopped))
            return give_up(t, r, err);
        if (gate_load(&row->state) == GATE_ROW_RUNNING)
            return 1;
        uint64_t now = clock_now_ns();
        if (now >= end || gate_unwanted(&t->request))
            return 2;
        uint64_t left = (end - now + CLOCK_NS_PER_MS - 1) / CLOCK_NS_PER_MS;
        uint64_t look = gate_queue_look_ms(g, t->row);
        gate_bell_sleep(&row->bell, bell, left < look ? left : look);
        if (gate_load(&row->bell) != bell)
            continue;
        int e = gate_map_lock(&g->map,
                              err); /* no bell: a process that held a slot may have been killed */
        if (e < 0) {
            gate_lose(t);
            return e;
        }
        gate_queue_serve(g, gate_now(g));
        gate_map_unlock(&g->map);
    }
}

/* Waits for a slot, and says once that it waits. */
int gate_wait_for_slot(struct gate_ticket *t, uint64_t wait_ms, struct gate_refusal *r,
                       struct err *err)
{
    struct gate *g = t->g;
    if (wait_ms > 0) {
        __atomic_add_fetch(&g->map.at->counters[GATE_COUNTER_waited], 1, __ATOMIC_RELAXED);
        gate_note(g, GATE_EVENT_WAITING, t, "", "every slot is taken", (wait_ms + 999) / 1000);
        gate_tell(g);
    }
    int e = gate_admit_poll(t, wait_ms, r, err);
    return e == 2 ? give_up(t, r, err) : e;
}

int gate_admit(struct gate *g, const struct gate_request *q, struct gate_ticket **ret_ticket,
               struct gate_refusal *r, struct err *err)
{
    struct gate_ticket *t = NULL;
    int e = gate_admit_start(g, q, &t, r, err);
    if (e <= 0 || !t)
        return e;
    if (e != 1)
        e = gate_wait_for_slot(t, q->wait_ms, r, err);
    if (e == 1)
        *ret_ticket = t;
    return e;
}

void gate_abandon(struct gate_ticket *t)
{
    gate_fail(t, NULL);
}

void gate_fail(struct gate_ticket *t, const struct gate_outcome *outcome)
{
    struct err err = ERR_INIT;
    if (!t)
        return;
    if (gate_map_lock(&t->g->map, &err) == 0) {
        if (outcome && !t->request.part_of)
            gate_breaker_feed(t->g, t, outcome, gate_now(t->g));
        gate_leave(t, gate_now(t->g));
        gate_map_unlock(&t->g->map);
        gate_tell(t->g);
        free(t);
    } else {
        gate_lose(t);
    }
}
