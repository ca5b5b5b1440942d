/* SPDX-License-Identifier: Apache-2.0 */
/* The judge's report becomes the result. What no worker is given (too long, or no program) gets its verdict here, in the
 * same form, so that nobody who reads a result has to tell the two apart. */
#include "flow/steps.h"

#include "base/limits.h"

#include <stdio.h>
#include <string.h>

static void report_findings(struct flow *f)
{
    struct flow_result *r = f->result;
    const struct check_report *report = &f->worker.report;
    bool rules = false;
    for (size_t i = 0; i < report->count; i++) {
        const struct check_finding *from = &report->findings[i];
        struct flow_violation v = {.line = from->line, .column = from->column};
        v.times = check_report_places(report, i, v.places, FLOW_PLACES);
        if (!v.times)
            continue;
        v.place_count = v.times < FLOW_PLACES ? v.times : FLOW_PLACES;
        snprintf(v.layer, sizeof v.layer, "%s", from->layer);
        snprintf(v.rule, sizeof v.rule, "%s", from->rule);
        snprintf(v.detail, sizeof v.detail, "%s", from->message);
        snprintf(v.hint, sizeof v.hint, "%s", from->hint);
        flow_result_violation(r, &v);
        rules = rules || strchr(from->rule, '.');
    }
    r->violations_total += report->dropped;
    struct buf text;
    buf_init(&text, 64 * KIB);
    if (check_report_message(report, &text) < 0)
        buf_reset(&text);
    flow_result_say(r, FLOW_BLOCKED, "input", "CODE",
                    !rules                      ? "ValidationError"
                    : f->req->kind == FLOW_CALL ? "REPLSecurityError"
                                                : "SecurityError",
                    text.data ? text.data : "refused by the check");
    if (report->count)
        r->line = report->findings[0].line;
    buf_done(&text);
}

/* The judge's own verdict, given here over what no worker is given. */
static int refuse_unread(struct flow *f, const char *rule, const char *text, const char *hint)
{
    struct check_finding finding = {
        .rule = rule, .layer = "input", .operand = "", .message = text, .hint = hint};
    if (check_report_add(&f->worker.report, &finding) < 0)
        return ERR_MEMORY;
    check_report_end(&f->worker.report);
    f->result->judged = true;
    if (f->req->report)
        f->req->report(f->req->report_ctx, &f->worker.report);
    report_findings(f);
    return FLOW_STOP;
}

static const char *hint_for_text(const struct flow *f)
{
    if (strcmp(f->no_program_rule, CHECK_RULE_STRUCTURE) == 0)
        return "write one whole method: def NAME ... end";
    if (strcmp(f->no_program_rule, CHECK_RULE_INTAKE) != 0)
        return "write the program in UTF-8, without NUL bytes";
    static char hint[120];
    snprintf(hint, sizeof hint, "write the program alone, or in one ```%s block%s",
             f->language->name,
             flow_in_session(f) ? "" : "; --intake source takes the text as it is");
    return hint;
}

static int too_long(struct flow *f)
{
    char text[64];
    snprintf(text, sizeof text, "Code exceeds size limit (%lluKB)",
             (unsigned long long)(f->req->profile->source_max / 1000));
    return refuse_unread(f, CHECK_RULE_SIZE, text,
                         "split the program into smaller ones, each below 1 MiB");
}

int flow_verdict(struct flow *f)
{
    if (f->req->report && !f->result->judged)
        f->req->report(f->req->report_ctx, &f->worker.report);
    f->result->judged = true;
    if (!f->worker.safe) {
        report_findings(f);
        return FLOW_STOP;
    }
    return flow_only_judges(f) ? FLOW_STOP : FLOW_GO_ON;
}

int flow_verdict_unread(struct flow *f)
{
    return f->req->source_too_long
               ? too_long(f)
               : refuse_unread(f, f->no_program_rule, f->no_program, hint_for_text(f));
}
