/* SPDX-License-Identifier: Apache-2.0 */
/* cordon-ruby: the frame's program, with Ruby as its language. */
#include "call.h"
#include "interp.h"
#include "program.h"
#include "stand_in.h"

/* Ruby keeps descriptors of its own, and the jail closes all but ours when it is entered: so it starts behind that. A
 * template starts it at once; its children get others. */
static int start(const struct worker_start *how, struct err *err)
{
    if (how->alone)
        return 0;
    rb_stand_in_fix_pid();
    return rb_interp_start(err);
}

static const struct worker_language ruby = {
    .sessions = true,
    .methods = true,
    .template = true,
    .program = "cordon-ruby",
    .compute_rule = "rb.compute.call",
    .start = start,
    .wake = rb_interp_start,
    .load = rb_program_load,
    .after_fork = rb_interp_after_fork,
    .warm = rb_program_warm,
    .sample = RB_PROGRAM_SAMPLE "puts x\n",
    .sample_print = "puts 1\n",
    .incomplete = rb_call_incomplete,
    .names = rb_call_names,
    .before_branch = rb_interp_before_branch,
    .judge = rb_program_judge,
    .prepare = rb_program_prepare,
    .close = rb_program_close,
    .begin = rb_program_begin,
    .execute = rb_program_execute,
    .report = rb_program_report,
    .finish = rb_program_finish,
    .forget = rb_program_forget,
    .empty_input = rb_interp_empty_input,
    .set_interrupt = rb_interp_set_interrupt,
    .drop_interrupt = rb_interp_drop_interrupt,
};

int main(int argc, char **argv)
{
    return worker_main(&ruby, argc, argv);
}
