/* SPDX-License-Identifier: Apache-2.0 */
/* A program that another interpreter runs is judged by ours first, in a process that ends with its verdict.
 *
 * A session's code is judged in a process that has run none of it. What a guest left behind in its own process may
 * answer for the judge there: so the verdict that counts is one of a clean child, warm where there is one. The
 * session's own judge is asked afterwards as well, since it makes the tree that is run; it can refuse, but its yes
 * alone is nothing.
 *
 * Cost: the step `judge` in the record of a call; `meson test -C build evidence -v` prints it. */
#include "flow/steps.h"

#include <stdio.h>
#include <string.h>

/* The verdict becomes the call's own. */
static void take_verdict(struct flow *f, struct flow_result *verdict)
{
    struct flow_result *r = f->result;
    for (size_t i = 0; i < verdict->violation_count; i++)
        flow_result_violation(r, &verdict->violations[i]);
    const bool rule = f->req->kind == FLOW_CALL && strcmp(verdict->type, "SecurityError") == 0;
    flow_result_say(r, verdict->status, verdict->layer, verdict->category,
                    rule ? "REPLSecurityError" : verdict->type, verdict->reason);
    snprintf(r->message, sizeof r->message, "%s", verdict->message);
    r->line = verdict->line;
    r->judged = verdict->judged;
}

/* Files that the program imports are in the session, and not in the clean child. That one is right about all the rest; what is imported is judged
 * by the session's own judge, before it runs, and refused there if there is no such file. Where not every finding was kept, one that was not may be another. */
static bool wants_files(const struct flow *f, const struct flow_result *verdict)
{
    bool only = f->language->imports && verdict->violation_count > 0;
    uint64_t kept = 0;
    for (size_t i = 0; i < verdict->violation_count; i++) {
        only = only && strcmp(verdict->violations[i].rule, CHECK_RULE_MISSING) == 0;
        kept += verdict->violations[i].times;
    }
    return only && kept == verdict->violations_total;
}

int flow_precheck(struct flow *f, struct err *err)
{
    const struct flow_request *req = f->req;
    struct flow_result verdict;
    const bool other = req->kind == FLOW_EXEC && req->judged_by;
    if (!other && (req->kind != FLOW_CALL || (req->child_fresh && req->session_call == 0)))
        return FLOW_GO_ON; /* in a process that has run nothing its own judge will do */
    struct flow_request clean = {.kind = FLOW_CHECK,
                                 .context = req->context,
                                 .profile = other ? req->judged_by : req->profile,
                                 .name = req->name,
                                 .source = other ? req->source : f->source,
                                 .source_len = other ? req->source_len : f->source_len,
                                 .source_too_long = req->source_too_long,
                                 .tools = req->tools,
                                 .memory_by = req->memory_by,
                                 .input = -1,
                                 .nest = req->nest,
                                 .language = other ? req->language : f->language->name,
                                 .python = req->python,
                                 .find = req->find,
                                 .stop = -1,     /* an interrupt waits for the call */
                                 .pool = !other, /* the rules of a template are its profile's */
                                 .rules = req->rules,
                                 .escape = req->escape,
                                 .report = req->report,
                                 .report_ctx = req->report_ctx};
    jail_spec_init(&clean.spec);
    if (other) {
        clean.spec.limits = req->spec.limits;
        clean.spec.limits.processes = 0;
    }
    clean.spec.env = (const char **)pool_env;
    clean.spec.envc = POOL_ENV;
    int r = flow_run(&clean, &verdict, err);
    if (r == 0 && verdict.status != FLOW_OK && (other || !wants_files(f, &verdict))) {
        take_verdict(f, &verdict);
        r = FLOW_STOP;
    } else if (r == 0) {
        f->result->judged = true;
    }
    flow_result_done(&verdict);
    return r;
}
