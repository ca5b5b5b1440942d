/* SPDX-License-Identifier: Apache-2.0 */
/* cordon-ruby: the frame's program, with Ruby as its language. It serves one program and ends: there are no sessions and no
 * template of it yet, so the frame refuses both. */
#include "interp.h"
#include "program.h"

static int started(struct err *err)
{
    (void)err;
    return 0; /* all of ours is made when a program has come */
}

static int expect(const struct check_ruleset *rules)
{
    (void)rules;
    return 0;
}

static void rules(const struct check_ruleset *others)
{
    (void)others; /* each job names its own */
}

static void set_variable(const char *name, const char *value)
{
    (void)name; /* ENV is the C library's environment, and nothing besides */
    (void)value;
}

static void input_comes(void)
{
    /* nothing was read yet */
}

static const struct worker_language ruby = {
    .program = "cordon-ruby",
    .compute_rule = "rb.compute.call",
    .start = rb_interp_start,
    .started = started,
    .expect = expect,
    .rules = rules,
    .judge = rb_program_judge,
    .prepare = rb_program_prepare,
    .begin = rb_program_begin,
    .execute = rb_program_execute,
    .report = rb_program_report,
    .finish = rb_program_finish,
    .forget = rb_program_forget,
    .set_variable = set_variable,
    .input_comes = input_comes,
};

int main(int argc, char **argv)
{
    return worker_main(&ruby, argc, argv);
}
