/* SPDX-License-Identifier: Apache-2.0 */
/* The only place that makes a plan. What takes long (the arena, a person) comes after the check, so
 * nobody is asked about code that is refused anyway, and without a slot, so ten open questions do not
 * stop the machine. The arena is asked before the person, whose time costs more. */
#include "gate/inside.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLAN_MAGIC 0x706c616e67617465ULL

struct gate_plan {
    uint64_t magic;
    struct gate_ticket *ticket;
    bool started;
    char approval[24];
};

/* Out of the slots while somebody is asked. */
static int park(struct gate_ticket *t, struct err *err)
{
    struct gate *g = t->g;
    if (t->tool->kind != GATE_TOOL_EXECUTION)
        return 0;
    int e = gate_map_lock(&g->map, err);
    if (e < 0)
        return e;
    uint64_t now = gate_now(g);
    gate_row_set(&g->map, t->row, GATE_ROW_PARKED, now);
    gate_queue_serve(g, now);
    gate_map_unlock(&g->map);
    return 0;
}

/* Under the lock: the last look before the plan, and what a plan uses up. EVERY_N may still ask:
 * *RET_CHECKPOINT. */
static int commit(struct gate_ticket *t, bool approved, bool *ret_checkpoint,
                  struct gate_refusal *r)
{
    struct gate *g = t->g;
    const struct gate_config *c = g->config;
    struct gate_client_row *client = &g->map.at->clients[t->client];
    uint64_t now = gate_now(g);
    struct gate_task_row *task = NULL;
    if (gate_load(&g->map.at->stopped))
        return gate_refuse_stopped(g, r);
    if (t->request.task && c->iterations) {
        task = gate_task_find(g, t->request.client.id, t->request.task, now);
        if (!task)
            return gate_refuse(r, GATE_RULE_BUSY, 60000,
                               "use the name of a task that is under way; one that is quiet for an "
                               "hour makes room",
                               "%d tasks are under way, the most that are counted at once",
                               GATE_TASKS);
        if (task->count >= c->iterations)
            return gate_refuse(r, GATE_RULE_ITERATIONS, 0,
                               "stop and report what was reached; a person may begin a new task "
                               "(another --task), or raise approval.iterations in the policy",
                               "the task has used its %llu executions",
                               (unsigned long long)c->iterations);
    }
    *ret_checkpoint =
        c->approval.mode == GATE_EVERY_N && !approved && client->steps + 1 >= c->approval.every_n;
    if (*ret_checkpoint)
        return 1;
    client->steps = approved ? 0 : client->steps + 1;
    if (task) {
        task->count++;
        task->last_ns = now;
    }
    gate_count(g, GATE_COUNTER_planned);
    return 1;
}

static int locked_commit(struct gate_ticket *t, bool approved, bool *ret_checkpoint,
                         struct gate_refusal *r, struct err *err)
{
    bool steps = t->g->config->approval.mode == GATE_EVERY_N &&
                 t->tool->kind == GATE_TOOL_EXECUTION && !t->request.part_of;
    if (!t->request.task && !steps) {
        /* the usual case keeps no count that needs the lock */
        if (gate_load(&t->g->map.at->stopped))
            return gate_refuse_stopped(t->g, r);
        __atomic_add_fetch(&t->g->map.at->counters[GATE_COUNTER_planned], 1, __ATOMIC_RELAXED);
        return 1;
    }
    int e = gate_map_lock(&t->g->map, err);
    if (e < 0)
        return e;
    e = commit(t, approved, ret_checkpoint, r);
    gate_map_unlock(&t->g->map);
    return e;
}

static int report_clean(const struct gate_ticket *t, const struct check_report *report,
                        struct gate_refusal *r)
{
    if (!report && t->tool->unjudged)
        return 1;
    if (report && report->ended && check_report_safe(report))
        return 1;
    return gate_refuse(r, GATE_RULE_CHECK, 0, "see the violations of the report",
                       report ? "the judge did not pass it" : "no judge has seen it");
}

/* Takes a slot again after a long question: the request waits for it at least 30 s, since it has waited for an answer. */
static int unpark(struct gate_ticket *t, bool *ret_gone, struct gate_refusal *r, struct err *err)
{
    const uint64_t patience = t->request.wait_ms > 30000 ? t->request.wait_ms : 30000;
    struct gate *g = t->g;
    if (t->tool->kind != GATE_TOOL_EXECUTION)
        return 1;
    int e = gate_map_lock(&g->map, err);
    if (e < 0)
        return e;
    uint64_t now = gate_now(g);
    gate_row_set(&g->map, t->row, GATE_ROW_WAITING, now);
    gate_queue_serve(g, now);
    gate_map_unlock(&g->map);
    if (gate_load(&g->map.at->rows[t->row].state) == GATE_ROW_RUNNING)
        return 1;
    e = gate_wait_for_slot(t, patience, r, err);
    *ret_gone = e != 1;
    return e;
}

/* 1: yes; 0: refused; and the ticket may be gone then: *RET_GONE. */
static int ask_all(struct gate_ticket *t, bool arena, const char *because, char approval[24],
                   bool *ret_gone, struct gate_refusal *r, struct err *err)
{
    char hash[65];
    gate_sha256_hex(t->request.code, t->request.code_len, hash);
    int e = park(t, err);
    if (e < 0)
        return e;
    e = arena ? gate_arena_ask(t, hash, r, err) : 1;
    if (e == 1 && because)
        e = gate_people_ask(t, because, hash, approval, r, err);
    return e == 1 ? unpark(t, ret_gone, r, err) : e;
}

static int decide(struct gate_ticket *t, const struct check_report *report, char approval[24],
                  bool *ret_gone, struct gate_refusal *r, struct err *err)
{
    const struct gate_config *c = t->g->config;
    /* a person who has read the code has read what harmless calls it makes */
    bool small = t->tool->kind == GATE_TOOL_CALL && gate_tool_risk(c, t->tool) == GATE_RISK_LOW;
    const struct gate_plan *part_of = t->request.part_of;
    base_assert(!part_of || (part_of->magic == PLAN_MAGIC && part_of->started));
    bool checkpoint = false, arena = !part_of && gate_arena_covers(t->g, t),
         own = !part_of && gate_tool_asks(c, t->tool->name),
         hitl = own || (!part_of && c->approval.mode == GATE_HITL && !small);
    int e = report_clean(t, report, r);
    if (e == 1 && (arena || hitl))
        e = ask_all(t, arena,
                    own    ? "the policy asks about every use of this tool"
                    : hitl ? "HITL: every action"
                           : NULL,
                    approval, ret_gone, r, err);
    if (e == 1)
        e = locked_commit(t, hitl, &checkpoint, r, err);
    if (e == 1 && checkpoint) {
        char because[64];
        snprintf(because, sizeof because, "EVERY_N: checkpoint after %llu steps",
                 (unsigned long long)c->approval.every_n);
        e = ask_all(t, false, because, approval, ret_gone, r, err);
        if (e == 1)
            e = locked_commit(t, true, &checkpoint, r, err);
    }
    return e;
}

int gate_decide(struct gate_ticket *t, const struct check_report *report,
                struct gate_plan **ret_plan, struct gate_refusal *r, struct err *err)
{
    struct gate *g = t->g;
    bool gone = false;
    struct gate_plan *plan = calloc(1, sizeof *plan);
    if (!plan) {
        gate_abandon(t);
        return err_set(err, ERR_MEMORY, "no memory");
    }
    int e = decide(t, report, plan->approval, &gone, r, err);
    if (e == 1) {
        plan->magic = PLAN_MAGIC;
        plan->ticket = t;
        *ret_plan = plan;
        gate_tell(g);
        return 1;
    }
    free(plan);
    if (e == 0 && !gone)
        gate_refused(g, t, r);
    if (!gone)
        gate_abandon(t);
    return e;
}

/* ---- the plan ---- */

int gate_plan_confirm(const struct gate_plan *plan, const struct check_report *again,
                      struct gate_refusal *r)
{
    base_assert(plan->magic == PLAN_MAGIC);
    return report_clean(plan->ticket, again, r);
}

void gate_plan_start(struct gate_plan *plan, const char *tool)
{
    base_assert(plan && plan->magic == PLAN_MAGIC && !plan->started);
    base_assert(strcmp(plan->ticket->request.tool, tool) == 0);
    plan->started = true;
}

const char *gate_plan_approval(const struct gate_plan *plan)
{
    return plan->approval;
}

void gate_release(struct gate_plan *plan, const struct gate_outcome *outcome)
{
    struct err err = ERR_INIT;
    if (!plan)
        return;
    base_assert(plan->magic == PLAN_MAGIC);
    struct gate_ticket *t = plan->ticket;
    struct gate *g = t->g;
    if (gate_map_lock(&g->map, &err) == 0) {
        uint64_t now = gate_now(g);
        if (!t->request.part_of)
            gate_breaker_feed(g, t, outcome, now);
        gate_count(g, GATE_COUNTER_released);
        gate_leave(t, now);
        gate_map_unlock(&g->map);
        gate_tell(g);
        free(t);
    } else {
        gate_lose(t);
    }
    plan->magic = 0;
    free(plan);
}
