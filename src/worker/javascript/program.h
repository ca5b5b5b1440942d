/* SPDX-License-Identifier: Apache-2.0 */
/* A JavaScript program between the frame and the engine: the functions of struct worker_language that are about one.
 *
 * Takes:   a job that came whole, and the frame's word that it may run.
 * Gives:   findings; then the value, the fault and the exit status of the script that the judge made.
 * Never:   runs a text that came; runs anything after a program ended itself.
 * Runs in: cordon-javascript, in the jail, behind all its locks: template and child.
 */
#ifndef WORKER_JAVASCRIPT_PROGRAM_H
#define WORKER_JAVASCRIPT_PROGRAM_H

#include "worker/frame/language.h"

/* What a small program does that uses what most programs use. */
#define JS_PROGRAM_SAMPLE                                                                          \
    "const sample = (n) => (n < 2 ? n : sample(n - 1) + sample(n - 2));\n"                         \
    "let x = [...Array(9).keys()].map((i) => ({ i, f: sample(i) })).filter(({ f }) => f % 2);\n"   \
    "x = x.map(({ i, f }) => `${i}:${f}`).join(',').replace(/1/, 'a').split(',').sort();\n"

/* As worker/frame/language.h has them. */
int js_program_judge(const struct worker_job *job, struct check_report *report, struct err *err);
int js_program_load(const struct check_ruleset *rules, struct err *err);
int js_program_warm(const struct check_ruleset *rules);
int js_program_close(const struct check_ruleset *rules);
int js_program_prepare(const struct worker_job *job);
int js_program_begin(const struct worker_job *job);
void js_program_execute(const struct worker_job *job);
int js_program_report(const struct worker_job *job, bool *ret_left);
void js_program_finish(const struct worker_job *job);
void js_program_forget(void);
bool js_program_incomplete(const char *text);
int js_program_names(const char *word);

/* Before that: programs are TypeScript. */
void js_program_set_typescript(bool typescript);
/* Engine and judge, once; a second call does nothing. */
ERR_MUST_USE int js_program_start(struct err *err);

#endif
