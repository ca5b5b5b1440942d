/* SPDX-License-Identifier: Apache-2.0 */
/* One program, from its verdict to its last timer. The script that the judge made is evaluated; the engine runs microtasks whenever it is
 * left, so that between two timers none is waiting. */
#include "program.h"

#include "engine.h"
#include "host.h"
#include "judge.h"
#include "library/library.h"
#include "text.h"
#include "worker/frame/channel.h"
#include "worker/frame/compute.h"
#include "worker/frame/driver.h"
#include "worker/frame/given.h"
#include "worker/frame/host.h"
#include "worker/frame/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    struct js_judged judged;
    JSObjectRef shared; /* what the files of the library have of each other, and we of them */
    JSValueRef error;   /* protected; NULL: none */
    unsigned calls;     /* of a session: each script has its own name */
    bool stuck;         /* it awaits what nothing will bring */
    bool ready;         /* the table is closed */
    bool typescript;
} program;

/* ---- the library ---- */

static JSValueRef hook(const char *name, size_t argc, const JSValueRef *argv, JSValueRef *thrown)
{
    JSGlobalContextRef ctx = js_engine_run();
    JSValueRef value = js_text_property(ctx, program.shared, name);
    JSObjectRef function = JSValueIsObject(ctx, value) ? JSValueToObject(ctx, value, NULL) : NULL;
    return function ? JSObjectCallAsFunction(ctx, function, NULL, argc, argv, thrown) : NULL;
}

static void set_global(JSGlobalContextRef ctx, const char *name, JSValueRef value)
{
    JSStringRef key = JSStringCreateWithUTF8CString(name);
    JSObjectSetProperty(ctx, JSContextGetGlobalObject(ctx), key, value,
                        kJSPropertyAttributeDontEnum, NULL);
    JSStringRelease(key);
}

/* What the judge writes into each loop of a session's call: $cordonFlag[0] && $cordonGiveWay(). Constants of the global scope are no properties
 * of an object, and the judge refuses a program that has their names: so a program does not see them. */
static int declare_interrupt(JSGlobalContextRef ctx, JSValueRef host, struct err *err)
{
    static const char text[] = "const $cordonFlag = $cordon.flag, $cordonGiveWay = "
                               "$cordon.giveWay; delete globalThis.$cordon;";
    set_global(ctx, "$cordon", host);
    return js_engine_evaluate(ctx, "cordon:interrupt", text, sizeof text - 1, err) ? 0 : err->code;
}

static int evaluate_library(bool closed, struct err *err)
{
    JSGlobalContextRef ctx = js_engine_run();
    JSValueRef words[] = {js_host_object(ctx), program.shared};
    if (declare_interrupt(ctx, words[0], err) < 0)
        return err->code;
    for (size_t i = 0; i < js_library_count; i++) {
        const struct js_library_file *f = &js_library[i];
        JSValueRef thrown = NULL;
        if (strcmp(f->name, JS_LIBRARY_CLOSE) == 0 && !closed)
            continue;
        JSValueRef made = js_engine_evaluate(ctx, f->name, f->text, f->len, err);
        if (!made)
            return err->code;
        JSObjectCallAsFunction(ctx, JSValueToObject(ctx, made, NULL), NULL, 2, words, &thrown);
        if (thrown) {
            size_t len;
            char *said = js_text_of(ctx, thrown, &len);
            err_set(err, ERR_STATE, "%s: %.180s", f->name, said ? said : "");
            free(said);
            return ERR_STATE;
        }
    }
    return 0;
}

/* Once in a process, or in the template that it comes from: for the rules of its profile. */
static int install(const struct policy_profile *profile, struct err *err)
{
    static const char closed[] = "text is not run as code here";
    JSGlobalContextRef ctx = js_engine_run();
    if (program.shared)
        return 0;
    const bool ruled = policy_profile_judges(profile);
    program.shared = JSObjectMake(ctx, NULL, NULL);
    JSValueProtect(ctx, program.shared);
    int r = evaluate_library(ruled, err);
    if (r == 0 && ruled) {
        JSStringRef why = js_text_new(closed, sizeof closed - 1);
        JSGlobalContextSetEvalEnabled(ctx, false, why);
        JSStringRelease(why);
    }
    JSGlobalContextSetUnhandledRejectionCallback(ctx, js_host_unhandled(ctx), NULL);
    return r;
}

int js_program_start(struct err *err)
{
    int r = js_engine_start(err);
    return r < 0 ? r : js_judge_start(err);
}

/* ---- judging ---- */

static bool is_call(const struct worker_job *job)
{
    return job->kind == WORKER_CALL || job->kind == WORKER_LINE;
}

static bool ends_in(const char *name, const char *ending)
{
    const size_t n = strlen(name), e = strlen(ending);
    return n >= e && strcmp(name + n - e, ending) == 0;
}

int js_program_judge(const struct worker_job *job, struct check_report *report, struct err *err)
{
    char call[32];
    snprintf(call, sizeof call, "<call %u>", program.calls + 1);
    const struct js_source source = {.name = job->kind == WORKER_CALL ? call : job->name,
                                     .text = job->source,
                                     .len = job->len,
                                     .session = is_call(job),
                                     .module =
                                         ends_in(job->name, ".mjs") || ends_in(job->name, ".mts"),
                                     .typescript = program.typescript};
    js_judged_done(&program.judged);
    return js_judge(check_ruleset_profile(job->rules), &source, report, &program.judged, err);
}

void js_program_set_typescript(bool typescript)
{
    program.typescript = typescript;
}

bool js_program_incomplete(const char *text)
{
    return js_judge_incomplete(check_ruleset_profile(worker_driver_rules()), text,
                               program.typescript);
}

static int close_table(const struct policy_profile *profile)
{
    struct err err = ERR_INIT;
    if (!worker_compute_pending(profile))
        return 0;
    return worker_compute_zone() < 0 ? -1 : worker_compute_close(&err);
}

static int make_ready(const struct policy_profile *profile)
{
    struct err err = ERR_INIT;
    if (install(profile, &err) < 0) {
        fprintf(stderr, "cordon-javascript: %s\n", err.msg);
        return -1;
    }
    program.ready = close_table(profile) == 0;
    return program.ready ? 0 : -1;
}

int js_program_close(const struct check_ruleset *rules)
{
    return close_table(check_ruleset_profile(rules));
}

int js_program_load(const struct check_ruleset *rules, struct err *err)
{
    const struct policy_profile *profile = check_ruleset_profile(rules);
    int r = install(profile, err);
    if (r == 0)
        r = js_judge_warm(profile, program.typescript, err);
    if (r < 0)
        return r;
    if (js_program_warm(rules) < 0)
        return err_set(err, ERR_STATE, "not even a small program runs");
    js_engine_settle();
    return 0;
}

/* Judged and run as a program is, inside of a block: nothing of it is left. */
int js_program_warm(const struct check_ruleset *rules)
{
    static const char text[] = "{" JS_PROGRAM_SAMPLE "x;}";
    const struct js_source source = {
        .name = "-", .text = text, .len = sizeof text - 1, .typescript = program.typescript};
    struct js_judged judged;
    struct check_report report;
    struct err err = ERR_INIT;
    check_report_init(&report);
    int r = js_judge(check_ruleset_profile(rules), &source, &report, &judged, &err);
    if (r == 0 && judged.count > 0 &&
        !JSEvaluateScript(js_engine_run(), judged.scripts[0].text, NULL, NULL, 1, NULL))
        r = -1;
    const bool good = r == 0 && judged.count > 0;
    js_judged_done(&judged);
    check_report_done(&report);
    return good ? 0 : -1;
}

int js_program_prepare(const struct worker_job *job)
{
    return make_ready(check_ruleset_profile(job->rules));
}

/* ---- running ---- */

static void give_words(JSGlobalContextRef ctx)
{
    extern char **environ;
    JSValueRef process = js_text_property(ctx, program.shared, "process");
    JSValueRef list = js_text_property(ctx, process, "argv"),
               variables = js_text_property(ctx, process, "env");
    JSObjectRef words = JSValueToObject(ctx, list, NULL);
    JSObjectSetPropertyAtIndex(ctx, words, 0, js_text_value(ctx, "cordon", 6), NULL);
    JSObjectSetPropertyAtIndex(ctx, words, 1, js_text_value(ctx, "program", 7), NULL);
    for (size_t i = 0; i < worker_given_count(); i++) {
        const char *word = worker_given_word(i);
        JSObjectSetPropertyAtIndex(ctx, words, (unsigned)i + 2,
                                   js_text_value(ctx, word, strlen(word)), NULL);
    }
    for (char **word = environ; *word; word++) {
        const char *equals = strchr(*word, '=');
        if (!equals)
            continue;
        JSStringRef key = js_text_new(*word, (size_t)(equals - *word));
        JSObjectSetProperty(ctx, JSValueToObject(ctx, variables, NULL), key,
                            js_text_value(ctx, equals + 1, strlen(equals + 1)),
                            kJSPropertyAttributeNone, NULL);
        JSStringRelease(key);
    }
}

static void give_tools(JSGlobalContextRef ctx)
{
    for (size_t i = 0; i < worker_host_count(); i++) {
        JSValueRef name = js_text_value(ctx, worker_host_name(i), strlen(worker_host_name(i)));
        hook("tool", 1, &name, NULL);
    }
}

static void drop_error(void)
{
    JSGlobalContextRef ctx = js_engine_run();
    if (program.error)
        JSValueUnprotect(ctx, program.error);
    if (js_host_end.failed)
        JSValueUnprotect(ctx, js_host_end.failed);
    program.error = js_host_end.failed = NULL;
    program.stuck = false;
}

int js_program_begin(const struct worker_job *job)
{
    JSGlobalContextRef ctx = js_engine_run();
    if (job->kind == WORKER_CALL && make_ready(check_ruleset_profile(job->rules)) < 0)
        return -1;
    if (!program.ready)
        return -1;
    drop_error();
    js_host_end.left = false;
    js_host_end.stays = job->kind == WORKER_CALL;
    js_host_asks(job->typed);
    give_words(ctx);
    give_tools(ctx);
    return 0;
}

static void fail_with(JSValueRef thrown)
{
    if (program.error || !thrown || js_host_end.left)
        return;
    JSValueProtect(js_engine_run(), thrown);
    program.error = thrown;
}

/* Timers, one after the other, until there is none; STATE: or until that promise is settled. */
static void run_timers(JSGlobalContextRef ctx, JSValueRef state)
{
    while (!program.error && !js_host_end.left) {
        JSValueRef thrown = NULL;
        if (js_host_end.failed) {
            fail_with(js_host_end.failed);
            return;
        }
        JSValueRef wait = hook("wait", 0, NULL, &thrown);
        const double ms = wait && !thrown ? JSValueToNumber(ctx, wait, NULL) : -1;
        if (!(ms >= 0) || (state && JSValueToBoolean(ctx, js_text_property(ctx, state, "settled"))))
            return;
        if (js_host_sleep(ms) < 0)
            thrown = js_host_interrupted(ctx);
        else
            hook("fire", 0, NULL, &thrown);
        fail_with(thrown);
    }
}

/* What the promise of a program with `await` at its top became: {value}. */
static JSValueRef await_top(JSGlobalContextRef ctx, JSValueRef promise)
{
    JSValueRef state = hook("follow", 1, &promise, NULL);
    if (!state)
        return NULL;
    JSValueProtect(ctx, state);
    run_timers(ctx, state);
    JSValueRef value = js_text_property(ctx, state, "value");
    if (program.error || js_host_end.left)
        value = NULL;
    else if (!JSValueToBoolean(ctx, js_text_property(ctx, state, "settled")))
        program.stuck = true;
    else if (JSValueToBoolean(ctx, js_text_property(ctx, state, "failed")))
        fail_with(value);
    else
        value = js_text_property(ctx, value, "value");
    JSValueUnprotect(ctx, state);
    return value;
}

/* The program has done its work; that its last value cannot be shown is no failure of it. */
static void send_value(JSGlobalContextRef ctx, JSValueRef value)
{
    static const char unshown[] = "<an object that cannot be shown>";
    size_t len = 0;
    JSValueRef thrown = NULL, shown = hook("show", 1, &value, &thrown);
    char *text = shown && !thrown ? js_text_of(ctx, shown, &len) : NULL;
    worker_channel_pieces(WIRE_VALUE, text ? text : unshown, text ? len : sizeof unshown - 1);
    free(text);
}

/* Microtasks run whenever the engine is left: the scripts before the last one make functions and declare, and leave none. */
static JSValueRef evaluate(JSGlobalContextRef ctx)
{
    JSObjectRef modules = NULL;
    JSValueRef value = NULL, thrown = NULL;
    unsigned kept = 0;
    for (size_t i = 0; i < program.judged.count && !thrown && !js_host_end.left; i++) {
        const struct js_script *s = &program.judged.scripts[i];
        value = JSEvaluateScript(ctx, s->text, NULL, s->name, 1, &thrown);
        if (thrown || s->kind == JS_SCRIPT_PROGRAM)
            continue;
        if (!modules)
            modules = JSObjectMakeArray(ctx, 0, NULL, NULL);
        if (s->kind == JS_SCRIPT_MODULE) {
            JSObjectSetPropertyAtIndex(ctx, modules, kept++, value, &thrown);
            continue;
        }
        JSValueRef words[] = {modules};
        value =
            JSObjectCallAsFunction(ctx, JSValueToObject(ctx, value, NULL), NULL, 1, words, &thrown);
    }
    fail_with(thrown);
    return thrown ? NULL : value;
}

static void run_program(const struct worker_job *job)
{
    JSGlobalContextRef ctx = js_engine_run();
    JSValueRef value = evaluate(ctx);
    if (value && program.judged.async && !program.error && !js_host_end.left)
        value = await_top(ctx, value);
    if (value)
        JSValueProtect(ctx, value);
    run_timers(ctx, NULL);
    if (program.error || program.stuck || js_host_end.left || !value)
        return;
    const bool shown = program.judged.value && !JSValueIsUndefined(ctx, value);
    if (shown)
        send_value(ctx, value);
    if (shown && job->typed)
        set_global(ctx, "_", value);
    JSValueUnprotect(ctx, value);
}

void js_program_execute(const struct worker_job *job)
{
    program.calls += job->kind == WORKER_CALL;
    if (setjmp(js_host_end.back) == 0)
        run_program(job);
}

/* ---- how it ended ---- */

static int exit_code(JSGlobalContextRef ctx)
{
    JSValueRef process = js_text_property(ctx, program.shared, "process");
    const double code = js_text_number(ctx, process, "exitCode");
    return code >= 0 && code < 256 ? (int)code : 0;
}

static int report_fault(JSGlobalContextRef ctx)
{
    JSValueRef f = hook("fault", 1, &program.error, NULL);
    size_t type_len, text_len, trace_len;
    char *type = js_text_string(ctx, f, "type", &type_len);
    char *text = js_text_string(ctx, f, "text", &text_len);
    char *trace = js_text_string(ctx, f, "trace", &trace_len);
    const double line = js_text_number(ctx, f, "line");
    worker_channel_fault(type ? type : "Error", text ? text : "", text ? text_len : 0,
                         line > 0 && line < 1e9 ? (unsigned)line : 0);
    if (trace) {
        js_host_write(STDERR_FILENO, trace, trace_len);
        js_host_write(STDERR_FILENO, "\n", 1);
    }
    free(type);
    free(text);
    free(trace);
    return 1;
}

int js_program_report(const struct worker_job *job, bool *ret_left)
{
    static const char stuck[] = "Warning: the program awaits what nothing will bring\n";
    enum { STUCK = 13 }; /* as Node has it */
    JSGlobalContextRef ctx = js_engine_run();
    int status = 0;
    (void)job;
    if (js_host_end.left) {
        *ret_left = true;
        return js_host_end.status;
    }
    if (setjmp(js_host_end.back) !=
        0) { /* the program's own code can run while its error is shown */
        *ret_left = true;
        return js_host_end.status;
    }
    if (program.error) {
        status = report_fault(ctx);
        hook("dropTimers", 0, NULL, NULL);
    } else if (program.stuck) {
        js_host_write(STDERR_FILENO, stuck, sizeof stuck - 1);
        status = STUCK;
    } else {
        status = exit_code(ctx);
    }
    return status;
}

void js_program_finish(const struct worker_job *job)
{
    (void)job; /* nothing of a program runs at its end, and nothing that it wrote is held back */
}

void js_program_forget(void)
{
    js_judged_done(&program.judged);
}

/* ---- names ---- */

static const char *const keywords[] = {
    "async",   "await",    "break",  "case",      "catch",  "class",      "const", "continue",
    "default", "delete",   "do",     "else",      "export", "extends",    "false", "finally",
    "for",     "function", "if",     "import",    "in",     "instanceof", "let",   "new",
    "null",    "of",       "return", "static",    "super",  "switch",     "this",  "throw",
    "true",    "try",      "typeof", "undefined", "var",    "void",       "while", "yield"};

/* Of a word alone; what an object answers to is not asked, since that could be the guest's code. */
int js_program_names(const char *word)
{
    JSGlobalContextRef ctx = js_engine_run();
    struct worker_names found;
    struct err err = ERR_INIT;
    worker_names_begin(&found, word);
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        worker_names_add(&found, keywords[i], strlen(keywords[i]));
    if (!strchr(word, '.') && install(check_ruleset_profile(worker_driver_rules()), &err) == 0) {
        size_t len;
        JSValueRef list = hook("names", 0, NULL, NULL);
        char *names = list ? js_text_of(ctx, list, &len) : NULL;
        for (const char *name = names; name && *name;) {
            const size_t n = strcspn(name, "\n");
            worker_names_add(&found, name, n);
            name += n + (name[n] != 0);
        }
        free(names);
    }
    return worker_names_send(&found);
}
