/* SPDX-License-Identifier: Apache-2.0 */
/* The policy's words become the plain structs that gate and audit take; the rooms do not know each other,
 * so the copying is here. */
#include "flow/context.h"

#include "base/limits.h"
#include "sys/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int flow_context_open(struct flow_context *h, const char *policy, struct err *err)
{
    *h = (struct flow_context){0};
    int r = policy_open(policy, &h->store, err);
    if (r < 0)
        return r;
    h->policy = policy_now(h->store);
    return flow_pin_state(h->policy, err);
}

int flow_pin_state(const struct policy *policy, struct err *err)
{
    const char *folder = policy->state.folder;
    /* an earlier policy of this process may have pinned one */
    return state_pin(folder ? folder : "", policy_is_final(policy, "state.folder"), err);
}

/* ---- gate ---- */

static void gate_happened(void *ctx, const struct gate_event *e)
{
    static const struct {
        enum gate_event_kind event;
        enum audit_kind kind;
    } table[] = {
        {GATE_EVENT_REFUSALS, AUDIT_REFUSAL},
        {GATE_EVENT_BREAKER_OPEN, AUDIT_BREAKER},
        {GATE_EVENT_BREAKER_HALF_OPEN, AUDIT_BREAKER},
        {GATE_EVENT_BREAKER_CLOSE, AUDIT_BREAKER},
        {GATE_EVENT_APPROVAL_ASKED, AUDIT_APPROVAL},
        {GATE_EVENT_APPROVAL_ANSWERED, AUDIT_APPROVAL},
        {GATE_EVENT_APPROVAL_USED, AUDIT_APPROVAL},
        {GATE_EVENT_APPROVAL_DENIED, AUDIT_APPROVAL},
        {GATE_EVENT_ARENA_VERDICT, AUDIT_APPROVAL},
        {GATE_EVENT_ARENA, AUDIT_APPROVAL},
        {GATE_EVENT_STOP, AUDIT_STOP},
        {GATE_EVENT_STOPPED_RUN, AUDIT_STOP},
        {GATE_EVENT_RESUME, AUDIT_RESUME},
    };
    struct flow_context *h = ctx;
    struct err err = ERR_INIT;
    if (h->notice)
        h->notice(e);
    const struct audit_arg args[] = {
        {.name = "event", .kind = AUDIT_ARG_TEXT, .text = e->name},
        {.name = "subject", .kind = AUDIT_ARG_TEXT, .text = e->subject ? e->subject : ""},
        {.name = "detail", .kind = AUDIT_ARG_TEXT, .text = e->detail ? e->detail : ""},
        {.name = "seconds", .kind = AUDIT_ARG_NUMBER, .number = (int64_t)e->seconds},
    };
    struct audit_facts f = {.execution_id = e->run,
                            .client_id = e->client,
                            .tool = e->tool,
                            .args = args,
                            .nargs = sizeof args / sizeof *args};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].event == e->kind && h->audit &&
            audit_event(h->audit, table[i].kind, &f, &err) < 0) {
            h->audit_failed = err.code;
            snprintf(h->audit_why, sizeof h->audit_why, "%s", err.msg);
        }
}

/* Who judges where the policy names nobody: so that an arena that is on works as soon as there is a gateway, and blocks until then. */
static const struct policy_judge own_judges[] = {
    {.name = "reviewer", .model = "", .prompt = "reviewer"},
    {.name = "sceptic", .model = "", .prompt = "sceptic"},
};
enum { OWN_JUDGES = sizeof own_judges / sizeof *own_judges, JUDGE_WORDS = 7 };

/* To the gate a judge that is a model is a command like any other: cordon-ask, with the rules and the model that the policy names. */
static void fill_judge(const struct flow_context *h, const struct policy_judge *from,
                       const char **words, struct gate_judge *to)
{
    const bool model = from->command.count == 0;
    *to = (struct gate_judge){.name = from->name,
                              .kind = model ? GATE_JUDGE_MODEL : GATE_JUDGE_COMMAND,
                              .argv = from->command.items,
                              .timeout_ms = from->timeout_ms};
    if (!model)
        return;
    const char *const argv[JUDGE_WORDS] = {h->ask,       "--from-cordon", "judge", h->state,
                                           from->prompt, from->model,     NULL};
    memcpy(words, argv, sizeof argv);
    to->argv = h->ask[0] ? words : NULL;
}

static int fill_judges(struct flow_context *h, struct err *err)
{
    const struct policy *p = h->policy;
    const bool own = p->arena.njudges == 0;
    h->njudges = own ? OWN_JUDGES : p->arena.njudges;
    h->judges = calloc(h->njudges, sizeof *h->judges);
    h->judge_words = calloc(h->njudges * JUDGE_WORDS, sizeof *h->judge_words);
    if (!h->judges || !h->judge_words)
        return err_set(err, ERR_MEMORY, "no memory");
    int r = state_path(h->state, sizeof h->state, err);
    for (size_t i = 0; r == 0 && i < h->njudges; i++)
        fill_judge(h, own ? &own_judges[i] : &p->arena.judges[i], h->judge_words + i * JUDGE_WORDS,
                   &h->judges[i]);
    return r;
}

static int fill_tables(struct flow_context *h, struct err *err)
{
    const struct policy *p = h->policy;
    h->roles = calloc(p->nroles + 1, sizeof *h->roles);
    h->tools = calloc(p->ntools + 1, sizeof *h->tools);
    h->host = calloc(p->ntools + 1, sizeof *h->host);
    if (!h->roles || !h->tools || !h->host)
        return err_set(err, ERR_MEMORY, "no memory");
    for (size_t i = 0; i < p->nroles; i++)
        h->roles[i] = (struct gate_role){.name = p->roles[i].name,
                                         .tools = p->roles[i].tools.items,
                                         .ntools = p->roles[i].tools.count};
    for (size_t i = 0; i < p->ntools; i++)
        h->tools[i] = (struct gate_tool_rule){.name = p->tools[i].name,
                                              .risk = (enum gate_risk)p->tools[i].risk,
                                              .approval = p->tools[i].approval};
    h->nhost = 0;
    for (size_t i = 0; i < p->ntools; i++)
        if (p->tools[i].command.count) /* its risk is a rule; what it does nobody here knows */
            h->host[h->nhost++] = (struct gate_tool){.name = p->tools[i].name,
                                                     .kind = GATE_TOOL_CALL,
                                                     .category = GATE_CATEGORY_HOST,
                                                     .unjudged = true};
    return fill_judges(h, err);
}

static int open_gate(struct flow_context *h, const char *approvals, struct err *err)
{
    const struct policy *p = h->policy;
    struct gate_config *c = &h->gate_config;
    int r = fill_tables(h, err);
    if (r < 0)
        return r;
    gate_config_init(c);
    if (h->brief)
        c->lock_ms = LIMIT_LOCK_BRIEF_MS;
    c->role = p->run.role;
    c->roles = h->roles;
    c->nroles = p->nroles;
    c->tools = h->tools;
    c->ntools = p->ntools;
    c->host = h->host;
    c->nhost = h->nhost;
    c->rates.executions = p->rates.executions;
    c->rates.window_ms = p->rates.window_ms;
    c->rates.concurrent = p->rates.concurrent;
    c->rates.concurrent_per_client = p->rates.concurrent_per_client;
    c->rates.model_calls = p->rates.model_calls;
    c->rates.model_window_ms = p->rates.model_window_ms;
    c->rates.model_burst = p->rates.model_burst;
    c->breaker.failures = p->breakers.failures;
    c->breaker.cooldown_ms = p->breakers.cooldown_ms;
    c->breaker.counts = 0;
    for (size_t i = 0; i < p->breakers.counts.count; i++) {
        int bit = gate_failure_find(p->breakers.counts.items[i]);
        if (bit >= 0)
            c->breaker.counts |= UINT64_C(1) << bit;
    }
    c->approval.mode = (enum gate_mode)p->approval.mode;
    c->approval.every_n = p->approval.every_n;
    c->approval.expiry_ms = p->approval.expiry_ms;
    c->approval.approvers = (enum gate_approvers)p->approval.approvers;
    c->approval.elicitation = p->approval.elicitation;
    c->approval.tool = p->approval.tool;
    c->iterations = p->approval.iterations;
    c->arena.on = p->arena.enabled;
    c->arena.judges = h->judges;
    c->arena.njudges = h->njudges;
    c->arena.quorum = p->arena.quorum;
    c->arena.timeout_ms = p->arena.timeout_ms;
    c->arena.risk = (enum gate_risk)p->arena.risk;
    c->arena.paths = p->arena.paths.items;
    c->arena.npaths = p->arena.paths.count;
    if (approvals) {
        snprintf(h->approvals, sizeof h->approvals, "%s", approvals);
        c->approvals_program = h->approvals;
    }
    c->on_event = gate_happened;
    c->ctx = h;
    return gate_open(c, -1, &h->gate, err);
}

/* ---- audit ---- */

/* A secret of the caller's environment that somebody put into a command line. The audit knows secrets by their names
 * and forms; these it cannot know. */
static int take_secrets(void *ctx, const char *text, size_t len, struct buf *out)
{
    const struct flow_context *h = ctx;
    for (size_t at = 0;;) {
        const struct output_known *found = NULL;
        size_t where = len;
        for (size_t i = 0; i < h->nsecrets; i++) {
            const struct output_known *k = &h->secrets[i];
            const char *hit = memmem(text + at, len - at, k->text, k->len);
            if (hit && (size_t)(hit - text) < where) {
                where = (size_t)(hit - text);
                found = k;
            }
        }
        int r = buf_add(out, text + at, where - at);
        if (r < 0 || !found)
            return r;
        if ((r = buf_str(out, found->label)) < 0)
            return r;
        at = where + found->len;
    }
}

static int open_audit(struct flow_context *h, struct err *err)
{
    struct audit_config c;
    audit_config_init(&c);
    audit_config_apply(&c, h->policy);
    c.announce = h->announce;
    if (h->brief)
        c.lock_ms = LIMIT_LOCK_BRIEF_MS;
    h->nsecrets =
        output_env_secrets((const char *const *)environ, SIZE_MAX, h->secrets, FLOW_SECRETS);
    if (h->nsecrets) {
        c.redact = take_secrets;
        c.redact_ctx = h;
    }
    return audit_open(&c, &h->audit, err);
}

/* ---- a policy that changes ---- */

static int note_policy(struct flow_context *h, const char *event, const char *detail,
                       struct err *err)
{
    const struct audit_arg args[] = {
        {.name = "event", .kind = AUDIT_ARG_TEXT, .text = event},
        {.name = "detail", .kind = AUDIT_ARG_TEXT, .text = detail},
    };
    struct audit_facts f = {.args = args, .nargs = sizeof args / sizeof *args};
    return audit_event(h->audit, AUDIT_POLICY, &f, err);
}

static void close_gate(struct flow_context *h)
{
    if (h->gate)
        gate_close(h->gate);
    if (h->audit)
        audit_close(h->audit);
    h->gate = NULL;
    h->audit = NULL;
    free(h->roles);
    free(h->tools);
    free(h->host);
    free(h->judges);
    free(h->judge_words);
    h->roles = NULL;
    h->tools = NULL;
    h->host = NULL;
    h->judges = NULL;
    h->judge_words = NULL;
}

int flow_context_refresh(struct flow_context *h, struct err *err)
{
    struct err unsaid = ERR_INIT;
    const struct policy *before = policy_hold(h->store); /* gate and audit point into it */
    int r = policy_refresh(h->store, err);
    if (r == 1) {
        close_gate(h);
        h->policy = policy_now(h->store);
        h->changed = true;
    } else if (r < 0 && h->audit && note_policy(h, "policy.broken", err->msg, &unsaid) < 0) {
        h->audit_failed = unsaid.code;
    }
    policy_release(h->store, before);
    return r;
}

int flow_context_open_gate(struct flow_context *h, const char *approvals, const char *ask,
                           struct err *err)
{
    if (h->gate && h->was_brief == h->brief)
        return 0;
    if (h->gate)
        close_gate(h);
    h->was_brief = h->brief;
    int r = open_audit(h, err);
    if (r == 0 && h->changed)
        r = note_policy(h, "policy.changed", "a changed policy is in force", err);
    if (r == 0) {
        h->changed = false;
        if (ask)
            snprintf(h->ask, sizeof h->ask, "%s", ask);
        r = open_gate(h, approvals, err);
    }
    return r;
}

bool flow_context_is_current(struct flow_context *h)
{
    struct err broken = ERR_INIT; /* who opens it anew meets that, too */
    return h->gate && h->audit && policy_refresh(h->store, &broken) == 0 &&
           gate_is_current(h->gate) && audit_is_current(h->audit);
}

void flow_context_close(struct flow_context *h)
{
    if (h->is_ahead)
        pool_client_close(&h->ahead);
    close_gate(h);
    policy_close(h->store);
    *h = (struct flow_context){0};
}
