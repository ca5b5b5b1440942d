/* SPDX-License-Identifier: Apache-2.0 */
/* The judge of JavaScript, as C calls it: the bundle of judge/, in a context that no program runs in.
 *
 * Takes:   the bytes of a source, whatever they are; files of the workspace that it imports.
 * Gives:   every finding; and the scripts that were made of the judged trees, which are what runs.
 * Never:   executes anything of the source; hands a value of the judge's context to a program, or the other way round.
 * Runs in: cordon-javascript, in the jail.
 */
#ifndef WORKER_JAVASCRIPT_JUDGE_H
#define WORKER_JAVASCRIPT_JUDGE_H

#include "base/err.h"
#include "check/report.h"
#include "engine_first.h"
#include "policy/profile.h"

#include <stdbool.h>
#include <stddef.h>

struct js_source {
    const char *name; /* what the program is called in a trace */
    const char *text;
    size_t len;
    bool session; /* its declarations stay */
    bool module;  /* it is one, whatever it looks like */
    bool typescript;
};

/* What becomes of a script's value. */
enum js_script_kind {
    JS_SCRIPT_PROGRAM, /* that of the last one is the program's */
    JS_SCRIPT_MODULE,  /* a function, which is kept */
    JS_SCRIPT_LINK /* a function, which is called with a list of those; what it gives is the program's */
};

/* Its lines are those of the file that it was made of. */
struct js_script {
    enum js_script_kind kind;
    JSStringRef name, text;
};

struct js_judged {
    struct js_script *scripts; /* what runs, one after the other */
    size_t count;              /* 0: nothing does */
    bool value;                /* its last expression is to be shown */
    bool async;                /* it gives a promise; of {value} */
};

/* Once, before the first program: evaluates the bundle. */
ERR_MUST_USE int js_judge_start(struct err *err);

/* In a template, once: what most programs need of the judge is compiled. */
ERR_MUST_USE int js_judge_warm(const struct policy_profile *profile, bool typescript,
                               struct err *err);

/* REPORT must be initialised; it is ended here. ERR_MEMORY and ERR_STATE are our own failure; the caller refuses then. */
ERR_MUST_USE int js_judge(const struct policy_profile *profile, const struct js_source *source,
                          struct check_report *report, struct js_judged *ret, struct err *err);
void js_judged_done(struct js_judged *judged);

/* A text that is no program yet, and may become one by more lines. */
bool js_judge_incomplete(const struct policy_profile *profile, const char *text, bool typescript);

#endif
