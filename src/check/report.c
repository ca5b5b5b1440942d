/* SPDX-License-Identifier: Apache-2.0 */
/* A report keeps what it can and counts the rest: a program of a thousand wrong lines must not make a
 * thousand messages, and it is refused all the same. The first hundred in the order of the source are
 * kept, whatever the order they were found in. */
#include "check/report.h"

#include "base/jsonw.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 1024 /* of any string in a finding */

void check_report_init(struct check_report *report)
{
    *report = (struct check_report){0};
    /* twice what the kept ones can need: one that is pushed out leaves its strings behind */
    arena_init(&report->arena, 2ULL * CHECK_FINDINGS_MAX * 5 * TEXT_MAX);
}

void check_report_done(struct check_report *report)
{
    arena_done(&report->arena);
    *report = (struct check_report){0};
}

static int order(const void *a, const void *b)
{
    const struct check_finding *x = a, *y = b;
    if (x->line != y->line)
        return x->line < y->line ? -1 : 1;
    if (x->column != y->column)
        return x->column < y->column ? -1 : 1;
    int r = strcmp(x->rule, y->rule);
    return r ? r : strcmp(x->operand, y->operand);
}

static const char *said(const char *s)
{
    return s ? s : "";
}

/* What does not fit is cut at a whole character. */
static const char *keep(struct check_report *report, const char *s, bool *bad)
{
    size_t len = strnlen(s, TEXT_MAX);
    const char *copy = arena_memdup(&report->arena, s, utf8_valid_prefix(s, len));
    *bad |= copy == NULL;
    return copy;
}

int check_report_add(struct check_report *report, const struct check_finding *finding)
{
    base_assert(!report->ended);
    struct check_finding f = {said(finding->rule),    said(finding->layer), said(finding->operand),
                              said(finding->message), said(finding->hint),  finding->line,
                              finding->column};
    if (!report->findings) {
        report->findings =
            arena_alloc(&report->arena, CHECK_FINDINGS_MAX * sizeof *report->findings);
        if (!report->findings)
            return ERR_MEMORY;
    }
    struct check_finding *place = &report->findings[report->count];
    if (report->count == CHECK_FINDINGS_MAX) { /* the one furthest down gives way */
        place = &report->findings[0];
        for (size_t i = 1; i < report->count; i++)
            if (order(&report->findings[i], place) > 0)
                place = &report->findings[i];
        report->dropped++;
        if (report->arena.max - report->arena.used < 6UL * TEXT_MAX || order(&f, place) > 0)
            return 0;
    }
    bool bad = false;
    f.rule = keep(report, f.rule, &bad);
    f.layer = keep(report, f.layer, &bad);
    f.operand = keep(report, f.operand, &bad);
    f.message = keep(report, f.message, &bad);
    f.hint = keep(report, f.hint, &bad);
    if (bad)
        return ERR_MEMORY;
    if (report->count < CHECK_FINDINGS_MAX)
        report->count++;
    *place = f;
    return 0;
}

void check_report_end(struct check_report *report)
{
    report->ended = true;
    if (!report->count)
        return;
    qsort(report->findings, report->count, sizeof *report->findings, order);
    size_t kept = 1;
    for (size_t i = 1; i < report->count; i++)
        if (order(&report->findings[kept - 1], &report->findings[i]) != 0)
            report->findings[kept++] = report->findings[i];
    report->count = kept;
}

static bool is_same(const struct check_finding *x, const struct check_finding *y)
{
    return strcmp(x->rule, y->rule) == 0 && strcmp(x->operand, y->operand) == 0 &&
           strcmp(x->message, y->message) == 0;
}

size_t check_report_places(const struct check_report *report, size_t i,
                           struct check_place *ret_places, size_t most)
{
    const struct check_finding *all = report->findings;
    base_assert(report->ended && all && i < report->count);
    for (size_t k = 0; k < i; k++)
        if (is_same(&all[k], &all[i]))
            return 0;
    size_t n = 0;
    for (size_t k = i; k < report->count; k++) {
        if (!is_same(&all[k], &all[i]))
            continue;
        if (ret_places && n < most)
            ret_places[n] = (struct check_place){all[k].line, all[k].column};
        n++;
    }
    return n;
}

bool check_report_safe(const struct check_report *report)
{
    base_assert(report->ended);
    return report->count + report->dropped == 0;
}

/* The source is no program: the check stops there and says only that. */
static bool is_syntax(const struct check_finding *f)
{
    static const char *const rules[] = {CHECK_RULE_SYNTAX, CHECK_RULE_ENCODING, CHECK_RULE_NUL,
                                        CHECK_RULE_INTAKE, CHECK_RULE_STRUCTURE};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (strcmp(f->rule, rules[i]) == 0)
            return true;
    return false;
}

static const struct check_finding *find_syntax(const struct check_report *report)
{
    for (size_t i = 0; i < report->count; i++)
        if (is_syntax(&report->findings[i]))
            return &report->findings[i];
    return NULL;
}

/* Matters of form: nothing that runs gets further by them. */
static bool is_form(const struct check_finding *f)
{
    static const char *const rules[] = {
        "py.attr.private",           "py.key.private",         "py.form.star-import",
        "py.form.relative-import",   "py.form.bare-cr",        "py.form.encoding-cookie",
        "py.form.string-annotation", "py.form.missing-import",
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (strcmp(f->rule, rules[i]) == 0)
            return true;
    return false;
}

const char *check_report_risk(const struct check_report *report)
{
    if (check_report_safe(report))
        return "safe";
    for (size_t i = 0; i < report->count; i++)
        if (!is_form(&report->findings[i]))
            return "high";
    return report->dropped ? "high" : "medium";
}

int check_report_message(const struct check_report *report, struct buf *out)
{
    if (check_report_safe(report))
        return buf_str(out, "Code passed validation");
    const struct check_finding *syntax = find_syntax(report);
    if (syntax)
        return buf_str(out, syntax->message);
    int r = buf_str(out, "Security violations: ");
    for (size_t i = 0; r == 0 && report->findings && i < report->count; i++)
        if (check_report_places(report, i, NULL, 0))
            r = buf_printf(out, "%s%s", i ? ", " : "", report->findings[i].message);
    if (r == 0 && report->dropped)
        r = buf_printf(out, ", and %zu more", report->dropped);
    return r;
}

static void put_number(struct jsonw *j, const char *key, uint32_t n)
{
    if (n)
        jsonw_int(j, key, n);
    else
        jsonw_null(j, key);
}

/* With all its places, unless it repeats one before it. */
static void put_finding(struct jsonw *j, const struct check_report *report, size_t i)
{
    const struct check_finding *f = &report->findings[i];
    struct check_place places[CHECK_FINDINGS_MAX];
    size_t count = check_report_places(report, i, places, CHECK_FINDINGS_MAX);
    if (!f || !count)
        return;
    jsonw_open(j, NULL, '{');
    jsonw_string(j, "layer", f->layer);
    jsonw_string(j, "rule", f->rule);
    jsonw_string(j, "detail", f->message);
    jsonw_string(j, "operand", f->operand);
    put_number(j, "line", f->line);
    put_number(j, "column", f->column);
    jsonw_open(j, "places", '[');
    for (size_t k = 0; k < count; k++) {
        jsonw_open(j, NULL, '{');
        put_number(j, "line", places[k].line);
        put_number(j, "column", places[k].column);
        jsonw_close(j, '}');
    }
    jsonw_close(j, ']');
    jsonw_string(j, "hint", f->hint[0] ? f->hint : NULL);
    jsonw_close(j, '}');
}

int check_report_print_json(const struct check_report *report, struct buf *out)
{
    struct buf message;
    buf_init(&message, 2 * CHECK_FINDINGS_MAX * TEXT_MAX);
    int r = check_report_message(report, &message);
    struct jsonw j = {.out = out, .bad = r};
    jsonw_open(&j, NULL, '{');
    jsonw_string(&j, "status", check_report_safe(report) ? "ok" : "blocked");
    jsonw_string(&j, "layer", check_report_safe(report) ? NULL : "input");
    jsonw_bool(&j, "is_safe", check_report_safe(report));
    jsonw_string(&j, "risk_level", check_report_risk(report));
    jsonw_open(&j, "blocked_operations", '[');
    if (find_syntax(report))
        jsonw_string(&j, NULL, "syntax_error");
    else
        for (size_t i = 0; report->findings && i < report->count; i++)
            if (check_report_places(report, i, NULL, 0))
                jsonw_string(&j, NULL, report->findings[i].message);
    jsonw_close(&j, ']');
    jsonw_string(&j, "message", message.data ? message.data : "");
    jsonw_open(&j, "violations", '[');
    for (size_t i = 0; i < report->count; i++)
        put_finding(&j, report, i);
    jsonw_close(&j, ']');
    jsonw_close(&j, '}');
    buf_done(&message);
    return j.bad;
}

/* The places of finding I after its first. */
static int print_places(const struct check_report *report, size_t i, struct buf *out)
{
    struct check_place places[CHECK_FINDINGS_MAX];
    size_t count = check_report_places(report, i, places, CHECK_FINDINGS_MAX);
    int r = count > 1 ? buf_str(out, "    and at ") : 0;
    for (size_t k = 1; r == 0 && k < count; k++)
        r = buf_printf(out, "%s%u:%u", k > 1 ? ", " : "", places[k].line, places[k].column);
    return r == 0 && count > 1 ? buf_str(out, "\n") : r;
}

int check_report_print_text(const struct check_report *report, const char *file, struct buf *out)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < report->count; i++) {
        const struct check_finding *f = &report->findings[i];
        if (!check_report_places(report, i, NULL, 0))
            continue;
        r = buf_str(out, file);
        if (r == 0 && f->line)
            r = buf_printf(out, ":%u", f->line);
        if (r == 0 && f->line && f->column)
            r = buf_printf(out, ":%u", f->column);
        if (r == 0)
            r = buf_printf(out, ": %s [%s]\n", f->message, f->rule);
        if (r == 0)
            r = print_places(report, i, out);
        if (r == 0 && f->hint[0])
            r = buf_printf(out, "    %s\n", f->hint);
    }
    if (r == 0 && report->dropped)
        r = buf_printf(out, "%s: %zu more\n", file, report->dropped);
    if (r == 0 && check_report_safe(report))
        r = buf_str(out, "Code passed validation\n");
    else if (r == 0)
        r = buf_printf(out, "%zu finding%s, risk %s\n", report->count + report->dropped,
                       report->count + report->dropped == 1 ? "" : "s", check_report_risk(report));
    return r;
}
