/* SPDX-License-Identifier: Apache-2.0 */
/* cordon-ruby: the frame's program, with Ruby as its language. It serves one program and ends: there are no sessions and no
 * template of it yet, so the frame refuses both. */
#include "interp.h"
#include "program.h"

#include <stdio.h>

static int started(struct err *err)
{
    (void)err;
    return 0; /* all of ours is made when a program has come */
}

/* Ruby keeps descriptors of its own, and the jail closes all but ours when it is entered: so it starts behind that. */
static int start(const struct worker_start *how, struct err *err)
{
    (void)how;
    (void)err;
    return 0;
}

static int start_ruby(struct err *err)
{
    static const struct worker_start alone = {.alone = true};
    static bool up;
    int r = up ? 0 : rb_interp_start(&alone, err);
    up = r == 0;
    return r;
}

static int expect(const struct check_ruleset *rules)
{
    struct err err = ERR_INIT;
    (void)rules;
    if (start_ruby(&err) == 0)
        return 0;
    fprintf(stderr, "cordon-ruby: %s\n", err.msg);
    return -1;
}

static int judge(const struct worker_job *job, struct check_report *report, struct err *err)
{
    int r = start_ruby(err);
    return r < 0 ? r : rb_program_judge(job, report, err);
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
    .methods = true,
    .program = "cordon-ruby",
    .compute_rule = "rb.compute.call",
    .start = start,
    .started = started,
    .expect = expect,
    .rules = rules,
    .judge = judge,
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
