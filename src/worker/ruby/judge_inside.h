/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the judge: what its three files share.
 *
 * Takes:   one judgement that is under way.
 * Gives:   findings in its report.
 * Never:   is included outside the judge.
 * Runs in: cordon-ruby.
 */
#ifndef WORKER_RUBY_JUDGE_INSIDE_H
#define WORKER_RUBY_JUDGE_INSIDE_H

#include "check/sentence.h"
#include "judge.h"

struct rb_judge {
    const struct policy_profile *profile;
    const char *text;
    size_t len;
    struct check_report *report;
    struct rb_judged *ret;
    bool ruled;         /* the profile has rules of the language */
    bool plain;         /* the patterns hold for its whole text */
    const char *method; /* that the text is to define; NULL: none */
    bool defines;       /* it does */
    int bad;            /* an error of ours */
    unsigned line;      /* of the instructions that are looked at */
};

struct rb_rule {
    const char *id, *pattern, *methods, *constants, *hint;
};
extern const struct rb_rule rb_rules[]; /* ended by one without an id */

/* LINE 0: of the whole source. COLUMN 0: not known. A finding of the same rule on the same line is told once. */
void rb_judge_find(struct rb_judge *j, const char *rule, const char *hint, enum check_sentence what,
                   const char *operand, size_t len, unsigned line, unsigned column);

/* judge_text.c: what the bytes alone tell. False: they are no text that could be compiled. */
bool rb_judge_bytes(struct rb_judge *j);
void rb_judge_patterns(struct rb_judge *j);

/* judge_code.c: INSTRUCTIONS is the array that to_a gives. */
void rb_judge_code(struct rb_judge *j, unsigned long instructions);

#endif
