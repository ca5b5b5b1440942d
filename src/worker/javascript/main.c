/* SPDX-License-Identifier: Apache-2.0 */
/* cordon-javascript: the frame's program, with JavaScript as its language. */
#include "engine.h"
#include "host.h"
#include "program.h"

#include <signal.h>
#include <string.h>

/* The engine keeps descriptors of its own, and the jail closes all but ours when it is entered: so it starts behind that. A
 * template starts it at once; its children get others. */
static int start(const struct worker_start *how, struct err *err)
{
    signal(SIGPIPE, SIG_IGN); /* as Node does: a closed stream is no death */
    js_program_set_typescript(how->dialect && strcmp(how->dialect, "typescript") == 0);
    return how->alone ? 0 : js_program_start(err);
}

static void after_fork(void)
{
    js_engine_after_fork();
    js_host_other_chance();
    signal(SIGPIPE, SIG_IGN); /* handlers are not shared with the process that loaded */
}

static const struct worker_language javascript = {
    .sessions = true,
    .template = true,
    .program = "cordon-javascript",
    .compute_rule = "js.compute.call",
    .start = start,
    .wake = js_program_start,
    .load = js_program_load,
    .after_fork = after_fork,
    .warm = js_program_warm,
    .sample = JS_PROGRAM_SAMPLE "console.log(x);\n",
    .sample_print = "console.log(1);\n",
    .incomplete = js_program_incomplete,
    .names = js_program_names,
    .judge = js_program_judge,
    .prepare = js_program_prepare,
    .close = js_program_close,
    .begin = js_program_begin,
    .execute = js_program_execute,
    .report = js_program_report,
    .finish = js_program_finish,
    .forget = js_program_forget,
    .empty_input = js_host_drop_input,
    .set_interrupt = js_host_set_interrupt,
    .drop_interrupt = js_host_drop_interrupt,
};

int main(int argc, char **argv)
{
    return worker_main(&javascript, argc, argv);
}
