/* SPDX-License-Identifier: Apache-2.0 */
/* `cordon escalate`: what to do after a failure, by the one table in gate/escalate.h. */
#include "gate/escalate.h"
#include "base/jsonw.h"
#include "commands.h"
#include "options.h"
#include "policy/policy.h"
#include "result.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct escalate_options {
    const char *category, *tier;
    uint64_t attempt, retries;
    bool optional, json, help;
};

static int read_words(const struct escalate_options *o, struct gate_failure_report *f,
                      struct err *err)
{
    if (!o->category)
        return err_set(err, ERR_USAGE, "--category is needed; see --help");
    int category = gate_error_category_find(o->category), tier = gate_tier_find(o->tier);
    if (category < 0)
        return err_set(err, ERR_USAGE,
                       "--category: '%.40s' is none of: CODE, LOGIC, FORMAT, SCHEMA, TIMEOUT, "
                       "EARLY_ABORT, HOST, REFUSAL",
                       o->category);
    if (tier < 0)
        return err_set(err, ERR_USAGE,
                       "--tier: '%.40s' is none of: worker, coder, architect, ingest", o->tier);
    if (o->attempt == 0)
        return err_set(err, ERR_USAGE, "--attempt is needed and counts from 1; see --help");
    *f = (struct gate_failure_report){.category = (enum gate_error_category)category,
                                      .tier = (enum gate_tier)tier,
                                      .attempt = o->attempt,
                                      .retries = o->retries,
                                      .optional = o->optional};
    return 0;
}

static int retries_of_policy(uint64_t *ret_retries, struct err *err)
{
    struct policy_store *store = NULL;
    int r = policy_open(NULL, &store, err);
    if (r == 0)
        *ret_retries = policy_now(store)->escalation.retries;
    policy_close(store);
    return r < 0 ? err->code = ERR_USAGE : 0;
}

static int print_json(const struct gate_failure_report *f, const struct gate_advice *a)
{
    struct buf out;
    buf_init(&out, 4096);
    struct jsonw j = {.out = &out};
    jsonw_open(&j, NULL, '{');
    jsonw_string(&j, "action", gate_step_name(a->step));
    jsonw_string(&j, "category", gate_error_category_name(f->category));
    jsonw_string(&j, "tier", gate_tier_name(f->tier));
    jsonw_int(&j, "attempt", (int64_t)f->attempt);
    jsonw_string(&j, "next_tier",
                 a->step == GATE_STEP_RETRY || a->step == GATE_STEP_ESCALATE
                     ? gate_tier_name(a->next)
                     : NULL);
    jsonw_int(&j, "retries_left", (int64_t)a->retries_left);
    jsonw_string(&j, "reason", a->reason);
    jsonw_close(&j, '}');
    int r = j.bad ? EXIT_FAILED : puts(out.data) < 0 ? EXIT_FAILED : EXIT_DONE;
    buf_done(&out);
    return r;
}

int cmd_escalate(int argc, char **argv)
{
    struct escalate_options o = {.tier = "worker", .retries = UINT64_MAX};
    const struct option_row rows[] = {
        {"category", OPTION_STRING, &o.category, "NAME",
         "CODE, LOGIC, FORMAT, SCHEMA, TIMEOUT, EARLY_ABORT, HOST or REFUSAL"},
        {"attempt", OPTION_COUNT, &o.attempt, "N", "which attempt of the tier failed, from 1"},
        {"tier", OPTION_STRING, &o.tier, "TIER", "worker, coder, architect or ingest (worker)"},
        {"retries", OPTION_COUNT, &o.retries, "N", "tries after the first, each tier (policy; 2)"},
        {"optional", OPTION_FLAG, &o.optional, NULL, "the step may be left out"},
        {"json", OPTION_FLAG, &o.json, NULL, "one JSON object"},
        {"help", OPTION_FLAG, &o.help, NULL, "this text"},
    };
    struct gate_failure_report f = {0};
    struct gate_advice a;
    struct err err = ERR_INIT;
    int next = 0, r = options_parse(argc, argv, rows, sizeof rows / sizeof *rows, &next, &err);
    if (r == 0 && o.help) {
        puts(
            "usage: cordon escalate --category NAME --attempt N [OPTIONS]\n\n"
            "Says what to do after a failure, and why: retry, escalate to the next tier, skip, or\n"
            "stop. Tiers go worker, coder, architect; ingest goes to architect.\n");
        options_print(rows, sizeof rows / sizeof *rows);
        exits_print(EXITS_ADVICE);
        return EXIT_DONE;
    }
    if (r == 0 && next < argc)
        r = err_set(&err, ERR_USAGE, "unexpected argument '%.40s'; see --help", argv[next]);
    if (r == 0 && o.retries == UINT64_MAX)
        r = retries_of_policy(&o.retries, &err);
    if (r == 0)
        r = read_words(&o, &f, &err);
    if (r < 0) {
        result_complain("cordon escalate", err.msg);
        return EXIT_USAGE;
    }
    gate_escalate(&f, &a);
    if (o.json)
        return print_json(&f, &a);
    printf("%s%s%s\n%s\n", gate_step_name(a.step), a.step == GATE_STEP_ESCALATE ? " to " : "",
           a.step == GATE_STEP_ESCALATE ? gate_tier_name(a.next) : "", a.reason);
    return EXIT_DONE;
}
