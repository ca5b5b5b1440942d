/* The steps of one run, in their order. Each leaves the run where the next can take it up, or ends it with
 * a word in the result; what was opened is closed in any case. */
#include "flow/steps.h"

#include "base/clock.h"
#include "base/limits.h"
#include "gate/escalate.h"

#include <stdio.h>

static int clean_streams(struct flow *f, struct err *err)
{
    (void)err;
    for (int i = 0; i < 2 && f->cleaning; i++) {
        output_clean_end(&f->clean[i]);
        if (output_clean_text(&f->clean[i], f->req->escape, &f->result->streams[i]) < 0)
            f->result->truncated = true;
        if (output_clean_truncated(&f->clean[i]))
            f->result->truncated = true;
    }
    const struct policy *p = f->req->context->policy;
    if (f->cleaning)
        flow_result_clean(f->result, f->req->rules, f->req->escape,
                          f->req->profile && f->req->profile->guards ? p->output.guarded_cap
                                                                     : p->sessions.output);
    f->result->cleaned = f->result->ran;
    return FLOW_GO_ON;
}

static const struct {
    const char *name;
    int (*run)(struct flow *f, struct err *err);
    bool always; /* also when an earlier step ended the run */
} steps[] = {
    /* clang-format off */
    {"connect", flow_connect, false}, /* the holder of warm children comes to the door, while we are asked ourselves */
    {"prepare", flow_prepare,     false}, /* the request as data: what is asked, shown and recorded */
    {"admit",   flow_admit,       false}, /* stop flag, role, breaker, rate, place: cheap */
    {"start",   flow_start,  false}, /* a locked child is asked for, or started */
    {"record",  flow_record,      false}, /* durable before the first byte of the code meets its parser */
    {"precheck", flow_precheck, false}, /* a session's code, in a process that has run none */
    {"check",   flow_check,       false}, /* the child judges what it would run */
    {"retry",   flow_retry,       false}, /* a child that the host ended before it was told to go: once more, with a cold one */
    {"decide",  flow_decide,      false}, /* people and arena; the plan */
    {"confirm", flow_confirm,     false}, /* what was shown to somebody is still what would run */
    {"run",     flow_execute,     false}, /* the first guest byte, and the last */
    {"collect", flow_collect,     false}, /* files */
    {"clean",   clean_streams,    true},  /* output */
    {"finish",  flow_finish,      true},  /* the record of the end; the slot is free */
    /* clang-format on */
};

_Static_assert(sizeof steps / sizeof *steps <= FLOW_STEPS_MAX, "a result has room for every step");

int flow_run(const struct flow_request *req, struct flow_result *result, struct err *err)
{
    struct flow f = {
        .req = req, .result = result, .spec = req->spec, .channel = {-1, -1}, .seen_input = -1};
    int r = FLOW_GO_ON;
    flow_result_init(result);
    f.pool.sock = -1;
    if (req->session)
        snprintf(result->session, sizeof result->session, "%s", req->session);
    f.worker.fd = -1;
    f.cleaning = !req->live.bytes;
    for (int i = 0; i < 2 && f.cleaning; i++)
        output_clean_init(&f.clean[i], req->rules, req->spec.limits.output, OUTPUT_BYTES);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        if (r != FLOW_GO_ON && !steps[i].always)
            continue;
        uint64_t began = clock_now_ns();
        int now = steps[i].run(&f, err);
        result->steps[result->nsteps++] =
            (struct audit_span){steps[i].name, (clock_now_ns() - began) / 1000};
        if (now != FLOW_GO_ON)
            r = now;
        if (now < 0)
            f.failed = now;
    }
    flow_child_leave(&f);
    flow_unbind(&f);
    for (int i = 0; i < 2 && f.cleaning; i++)
        output_clean_done(&f.clean[i]);
    if (r < 0 && r != ERR_USAGE && result->status == FLOW_OK)
        flow_result_refuse(result, err);
    result->category = gate_error_category_name(
        gate_error_category_of(flow_status_name(result->status), result->type));
    return r == ERR_USAGE ? r : 0;
}
