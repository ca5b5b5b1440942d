/* SPDX-License-Identifier: Apache-2.0 */
/* cordon-javascript: the frame's program, with JavaScript as its language. */
#include "engine.h"
#include "host.h"
#include "program.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static int started(struct err *err)
{
    (void)err;
    signal(SIGPIPE, SIG_IGN); /* as Node does: a closed stream is no death */
    return 0;                 /* all of ours is made when the profile's first program is expected */
}

/* The engine keeps descriptors of its own, and the jail closes all but ours when it is entered: so it starts behind that. A
 * template starts it at once; its children get others. */
static int start(const struct worker_start *how, struct err *err)
{
    js_program_set_typescript(how->dialect && strcmp(how->dialect, "typescript") == 0);
    return how->alone ? 0 : js_program_start(err);
}

static int expect(const struct check_ruleset *rules)
{
    struct err err = ERR_INIT;
    (void)rules;
    if (js_program_start(&err) == 0)
        return 0;
    fprintf(stderr, "cordon-javascript: %s\n", err.msg);
    return -1;
}

static int judge(const struct worker_job *job, struct check_report *report, struct err *err)
{
    int r = js_program_start(err);
    return r < 0 ? r : js_program_judge(job, report, err);
}

static void before_fork(void)
{
    /* nothing of the engine's is held between two calls of it */
}

static void after_fork(void)
{
    js_engine_after_fork();
    js_host_other_chance();
    signal(SIGPIPE, SIG_IGN); /* handlers are not shared with the process that loaded */
}

static size_t sample(const char *libraries, bool only_print, char *to, size_t size)
{
    static const char body[] = JS_PROGRAM_SAMPLE "console.log(x);\n", print[] = "console.log(1);\n";
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
    (void)name; /* process.env is made of the C library's environment when a program begins */
    (void)value;
}

static void input_comes(void)
{
    /* the reader of descriptor 0 reads whatever that is */
}

static const struct worker_language javascript = {
    .sessions = true,
    .template = true,
    .program = "cordon-javascript",
    .compute_rule = "js.compute.call",
    .start = start,
    .started = started,
    .load = js_program_load,
    .before_fork = before_fork,
    .after_fork = after_fork,
    .warm = js_program_warm,
    .sample = sample,
    .expect = expect,
    .rules = rules,
    .incomplete = js_program_incomplete,
    .names = js_program_names,
    .judge = judge,
    .prepare = js_program_prepare,
    .close = js_program_close,
    .begin = js_program_begin,
    .execute = js_program_execute,
    .report = js_program_report,
    .finish = js_program_finish,
    .forget = js_program_forget,
    .set_variable = set_variable,
    .input_comes = input_comes,
    .empty_input = js_host_drop_input,
    .set_interrupt = js_host_set_interrupt,
    .drop_interrupt = js_host_drop_interrupt,
};

int main(int argc, char **argv)
{
    return worker_main(&javascript, argc, argv);
}
