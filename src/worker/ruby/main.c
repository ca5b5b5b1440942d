/* SPDX-License-Identifier: Apache-2.0 */
/* cordon-ruby: the frame's program, with Ruby as its language. */
#include "call.h"
#include "interp.h"
#include "program.h"
#include "stand_in.h"

#include <stdio.h>
#include <string.h>

static int started(struct err *err)
{
    (void)err;
    return 0; /* all of ours is made when a program has come */
}

/* Ruby keeps descriptors of its own, and the jail closes all but ours when it is entered: so it starts behind that. A
 * template starts it at once; its children get others. */
static int start(const struct worker_start *how, struct err *err)
{
    if (how->alone)
        return 0;
    rb_stand_in_fix_pid();
    return rb_interp_start(err);
}

static int expect(const struct check_ruleset *rules)
{
    struct err err = ERR_INIT;
    (void)rules;
    if (rb_interp_start(&err) == 0)
        return 0;
    fprintf(stderr, "cordon-ruby: %s\n", err.msg);
    return -1;
}

static int judge(const struct worker_job *job, struct check_report *report, struct err *err)
{
    int r = rb_interp_start(err);
    return r < 0 ? r : rb_program_judge(job, report, err);
}

static void before_fork(void)
{
    /* nothing of Ruby's is held between two calls of it */
}

static size_t sample(const char *libraries, bool only_print, char *to, size_t size)
{
    static const char body[] = RB_PROGRAM_SAMPLE "puts x\n", print[] = "puts 1\n";
    const size_t len = only_print ? sizeof print - 1 : sizeof body - 1;
    (void)libraries;
    (void)size;
    _Static_assert(sizeof body <= 1024, "a rehearsal has room for it");
    memcpy(to, only_print ? print : body, len);
    return len;
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
    /* Ruby's reader of descriptor 0 reads whatever that is */
}

static const struct worker_language ruby = {
    .sessions = true,
    .methods = true,
    .template = true,
    .program = "cordon-ruby",
    .compute_rule = "rb.compute.call",
    .start = start,
    .started = started,
    .load = rb_program_load,
    .before_fork = before_fork,
    .after_fork = rb_interp_after_fork,
    .warm = rb_program_warm,
    .sample = sample,
    .expect = expect,
    .rules = rules,
    .incomplete = rb_call_incomplete,
    .names = rb_call_names,
    .before_branch = rb_interp_before_branch,
    .judge = judge,
    .prepare = rb_program_prepare,
    .close = rb_program_close,
    .begin = rb_program_begin,
    .execute = rb_program_execute,
    .report = rb_program_report,
    .finish = rb_program_finish,
    .forget = rb_program_forget,
    .set_variable = set_variable,
    .input_comes = input_comes,
    .empty_input = rb_interp_empty_input,
    .set_interrupt = rb_interp_set_interrupt,
    .drop_interrupt = rb_interp_drop_interrupt,
};

int main(int argc, char **argv)
{
    return worker_main(&ruby, argc, argv);
}
