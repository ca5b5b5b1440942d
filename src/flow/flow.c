/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of one run, in their order. A step prepares what the next one needs, or ends the run and says why in the
 * result. Whatever was opened is closed in either case. */
#include "flow/steps.h"

#include "base/clock.h"
#include "base/limits.h"
#include "gate/escalate.h"

#include <stdio.h>
#include <string.h>

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
    if (f->cleaning && f->req->escape == OUTPUT_ESCAPE_NONE)
        flow_result_markup(f->result);
    f->result->cleaned = f->result->ran;
    return FLOW_GO_ON;
}

static const struct {
    const char *name;
    int (*run)(struct flow *f, struct err *err);
    bool always; /* also when an earlier step ended the run */
} steps[] = {
    /* clang-format off */
    {"intake",   flow_intake,   false}, /* the program is found in the text that a model wrote */
    {"connect",  flow_connect,  false}, /* the client connects to the holder, which accepts while the gate decides */
    {"prepare",  flow_prepare,  false}, /* the request becomes data: what is asked, shown and recorded */
    {"admit",    flow_admit,    false}, /* the gate: stop flag, role, breaker, rate, slot; all cheap */
    {"start",    flow_start,    false}, /* a restricted child is leased from the holder, or a cold worker is started */
    {"record",   flow_record,   false}, /* the record of the beginning is on disk before the code is parsed */
    {"precheck", flow_precheck, false}, /* a session's code is judged in a child that never ran guest code */
    {"check",    flow_check,    false}, /* the child judges the program that it would run */
    {"retry",    flow_retry,    false}, /* a child that died by a fault of the host before GO is replaced once, cold */
    {"decide",   flow_decide,   false}, /* the gate asks people and the arena, and makes the plan */
    {"confirm",  flow_confirm,  false}, /* what was approved is compared with what would run now */
    {"run",      flow_execute,  false}, /* the worker gets GO; the run goes on until its end */
    {"collect",  flow_collect,  false}, /* the files that the program left are listed */
    {"clean",    clean_streams, true},  /* the output is cleaned */
    {"finish",   flow_finish,   true},  /* the record of the end is written; the slot is free */
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
    f.broker_sock = f.files_program = f.files_process.sock = f.space_timer = -1;
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
    flow_inputs_close(&f);
    flow_shown_close(&f);
    for (int i = 0; i < 2 && f.cleaning; i++)
        output_clean_done(&f.clean[i]);
    if (r < 0 && r != ERR_USAGE && result->status == FLOW_OK)
        flow_result_refuse(result, err);
    /* that a generation was cut is what the gateway said; that the program ended of it is the program's word */
    result->category = gate_error_category_name(
        f.generation_cut && result->status == FLOW_ERROR &&
                strncmp(result->message, FLOW_LLM_CUT, strlen(FLOW_LLM_CUT)) == 0
            ? GATE_ERROR_EARLY_ABORT
            : gate_error_category_of(flow_status_name(result->status), result->type));
    return r == ERR_USAGE ? r : 0;
}
