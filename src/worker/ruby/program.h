/* SPDX-License-Identifier: Apache-2.0 */
/* A Ruby program between the frame and the interpreter: the functions of struct worker_language that are about one.
 *
 * Takes:   a job that came whole, and the frame's word that it may run.
 * Gives:   findings; then the value, the fault and the exit status of the code that was judged.
 * Never:   runs what it has not judged; serves a second program, which would find what the first one changed.
 * Runs in: cordon-ruby, in the jail, behind all its locks: template and child.
 */
#ifndef WORKER_RUBY_PROGRAM_H
#define WORKER_RUBY_PROGRAM_H

#include "worker/frame/language.h"

/* What a small program does that uses what most programs use. */
#define RB_PROGRAM_SAMPLE                                                                          \
    "def sample(n) = n < 2 ? n : sample(n - 1) + sample(n - 2)\n"                                  \
    "x = (1..9).map { |i| [i, sample(i)] }.to_h.select { |k, v| v.odd? }\n"                        \
    "x = x.map { |k, v| \"#{k}:#{v}\" }.join(',').sub(/1/, 'a').split(',').sort\n"

/* As worker/frame/language.h has them. */
int rb_program_judge(const struct worker_job *job, struct check_report *report, struct err *err);
int rb_program_load(const struct check_ruleset *rules, struct err *err);
int rb_program_warm(const struct check_ruleset *rules);
int rb_program_close(const struct check_ruleset *rules);
int rb_program_prepare(const struct worker_job *job);
int rb_program_begin(const struct worker_job *job);
void rb_program_execute(const struct worker_job *job);
int rb_program_report(const struct worker_job *job, bool *ret_left);
void rb_program_finish(const struct worker_job *job);
void rb_program_forget(void);

#endif
