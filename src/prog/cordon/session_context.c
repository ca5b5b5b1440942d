/* SPDX-License-Identifier: Apache-2.0 */
/* What the calls of one process share. The policy may change between two of them, so what the options left unsaid is filled
 * in anew each time. */
#include "session.h"

#include "base/limits.h"
#include "programs.h"
#include "ready.h"
#include "result.h"
#include "sys/fd.h"

#include <stdio.h>
#include <unistd.h>

void session_context_init(struct session_context *h, const char *who)
{
    *h = (struct session_context){.who = who, .holder.sock = -1, .stop = -1};
    jail_options_init(&h->jail);
    h->jail.served = ready_served();
    jail_spec_init(&h->spec);
    arena_init(&h->mem, 4 * MIB);
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* A session has limits of its own in the policy: of a call, and of what it holds. A ceiling below them cuts them: nobody
 * asked for them. */
static void session_limits(struct jail_options *o, const struct policy *p)
{
    struct jail_limits *said = &o->limits;
    if (said->wall_ms == UINT64_MAX)
        said->wall_ms = less(p->sessions.timeout_ms, p->ceilings.timeout_ms);
    if (said->cpu_ms == UINT64_MAX)
        said->cpu_ms = less(p->sessions.timeout_ms, p->ceilings.cpu_ms);
    if (said->output == UINT64_MAX)
        said->output = less(p->sessions.output, p->ceilings.output);
}

static int jail_options_calls(struct session_context *h, struct err *err)
{
    struct jail_options o = h->jail; /* what was not said stays unsaid: the policy may change */
    session_limits(&o, h->flow.policy);
    int r = jail_options_fill(&o, h->flow.policy, &h->spec, &h->by, &h->mem, err);
    h->spec.env = (const char **)h->jail.env.items; /* on top of what the session has */
    h->spec.envc = h->jail.env.count;
    h->spec.keep_files = true;
    return r;
}

static uint64_t memory_budget(const struct policy *p)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    uint64_t all = pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : 0;
    return all / 100 * p->sessions.memory_percent;
}

int session_context_open(struct session_context *h, const struct tool_options *tools, bool start,
                         struct err *err)
{
    char holder[4096];
    struct pool_environment environment;
    bool fresh = false;
    int r = flow_context_open(&h->flow, h->jail.policy, err);
    if (r < 0)
        return r;
    r = jail_options_calls(h, err);
    if (r == 0)
        r = tools_choose(tools, h->flow.policy, &h->tools, err);
    h->tool_options = tools;
    if (r == 0 && start)
        r = programs_find("cordon-holder", holder, sizeof holder, err);
    if (r == 0)
        r = jail_options_venv(h->jail.venv, h->flow.policy, &h->mem, &h->flow.venv, err);
    if (r == 0)
        r = pool_environment_open(&environment, h->flow.policy, h->flow.venv, err);
    if (r == 0)
        r = start ? pool_client_start(&h->holder, &environment, holder, &fresh, err)
                  : pool_client_open(&h->holder, &environment, POOL_ANSWER_MS, err);
    h->holder.budget = memory_budget(h->flow.policy);
    if (r == 0)
        session_note_ends(h); /* now: after a call root may be given up */
    if (r == 0 && fresh) {
        struct pool_set_numbers set = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
        struct pool_answer a;
        pool_numbers(h->flow.policy, &set);
        r = pool_client_set(&h->holder, NULL, &set, &a, err);
    }
    return r;
}

void session_context_close(struct session_context *h)
{
    pool_client_close(&h->holder);
    fd_close(h->stop);
    output_rules_free(h->rules);
    flow_context_close(&h->flow);
    arena_done(&h->mem);
}

int session_context_refresh(struct session_context *h, struct err *err)
{
    struct err broken = ERR_INIT;
    int r = flow_context_refresh(&h->flow, &broken);
    if (r < 0) {
        char text[sizeof broken.msg + 64];
        snprintf(text, sizeof text, "%s; the policy of before stays in force", broken.msg);
        result_complain(h->who, text);
    }
    if (r != 1)
        return 0;
    output_rules_free(h->rules);
    h->rules = NULL;
    h->gate_is_open = false;
    arena_done(&h->mem);
    arena_init(&h->mem, 4 * MIB);
    jail_spec_init(&h->spec);
    h->holder.budget = memory_budget(h->flow.policy);
    return jail_options_calls(h, err);
}
