/* SPDX-License-Identifier: Apache-2.0 */
/* The judge of Ruby: the instructions that a source was compiled to, walked in C.
 *
 * Takes:   the bytes of a source, whatever they are.
 * Gives:   every finding; and the compiled code, so that what was judged is what runs.
 * Never:   executes anything of the source, loads for it, or calls a method that a program could have defined.
 * Runs in: cordon-ruby, in the jail, before the process's one program.
 */
#ifndef WORKER_RUBY_JUDGE_H
#define WORKER_RUBY_JUDGE_H

#include "base/err.h"
#include "check/report.h"
#include "policy/profile.h"

#include <stdbool.h>

#define RB_JUDGE_LIBRARIES 64

struct rb_judged {
    unsigned long code; /* VALUE of the compiled program; 0: there is none */
    bool shows;         /* its last instruction makes a value, and neither binds nor defines */
    const char *libraries
        [RB_JUDGE_LIBRARIES]; /* that it requires, or that what it calls requires: of rules.h */
    size_t library_count;
};

struct rb_source {
    const char *path; /* what the program is called in a backtrace */
    const char *text; /* with a NUL behind its LEN bytes */
    size_t len;
    const char *
        method; /* that the text defines, in an anonymous module, which is what its code gives; NULL: it is a program */
    /* What compiles it, for rb_protect: to the VALUE of its instructions. NULL: as a program by itself. */
    unsigned long (*compile)(unsigned long source);
};

/* REPORT must be initialised; it is ended here. ERR_MEMORY and ERR_STATE are our own failure; the caller refuses then. */
ERR_MUST_USE int rb_judge(const struct policy_profile *profile, const struct rb_source *source,
                          struct check_report *report, struct rb_judged *ret, struct err *err);

/* Whether the rules find nothing in CODE, a VALUE of instructions that SOURCE was compiled to once more. */
bool rb_judge_again(const struct policy_profile *profile, const struct rb_source *source,
                    unsigned long code);

#endif
