/* SPDX-License-Identifier: Apache-2.0 */
/* One program, from its verdict to its last value: the object that the compiler made is walked by the judge, and that very
 * object is executed. */
#include "program.h"

#include "ruby_first.h"

#include "call.h"
#include "host.h"
#include "interp.h"
#include "judge.h"
#include "shadow.h"
#include "worker/frame/channel.h"
#include "worker/frame/compute.h"
#include "worker/frame/given.h"

#include <string.h>

static struct {
    struct rb_judged judged;
    VALUE code; /* the same, where the collector sees it */
    VALUE error;
    bool called; /* of a method: the code that it stands in is behind us */
    bool ready;  /* its libraries are loaded, and the table is closed */
} program;

/* As ruby has them: -e and - where there is no file. */
static const char *path_of(const struct worker_job *job)
{
    return strcmp(job->name, "<string>") == 0  ? "-e"
           : strcmp(job->name, "<stdin>") == 0 ? "-"
                                               : job->name;
}

static void show_collector(void)
{
    static bool known;
    if (known)
        return;
    program.code = program.error = Qnil;
    rb_gc_register_address(&program.code);
    rb_gc_register_address(&program.error);
    known = true;
}

static bool is_call(const struct worker_job *job)
{
    return job->kind == WORKER_CALL || job->kind == WORKER_LINE;
}

static struct rb_source source_of(const struct worker_job *job)
{
    return (struct rb_source){.path = path_of(job),
                              .text = job->source,
                              .len = job->len,
                              .method = is_call(job) ? NULL : worker_given_method_name(),
                              .compile = is_call(job) ? rb_call_compile : NULL};
}

int rb_program_judge(const struct worker_job *job, struct check_report *report, struct err *err)
{
    show_collector();
    if (is_call(job))
        rb_call_open();
    const struct rb_source source = source_of(job);
    int r = rb_judge(check_ruleset_profile(job->rules), &source, report, &program.judged, err);
    if (r == 0 && check_report_safe(report) && !program.judged.code)
        return err_set(err, ERR_STATE, "a clean report on nothing");
    program.code = r == 0 && program.judged.code ? program.judged.code : Qnil;
    return r;
}

/* Of a profile that computes only: what its programs may need later is loaded before the table is closed. A template does it for
 * all its children. */
static void load_late(const struct policy_profile *profile)
{
    static bool loaded;
    static const char *const late[] = {"enc/trans/single_byte",
                                       "enc/trans/utf_16_32",
                                       "enc/utf_16le",
                                       "enc/utf_16be",
                                       "enc/utf_32le",
                                       "enc/utf_32be",
                                       "enc/iso_8859_1",
                                       "enc/windows_1252",
                                       "unicode_normalize/normalize",
                                       "pp",
                                       "json"};
    for (size_t i = 0; i < sizeof late / sizeof *late && profile->compute_only && !loaded; i++)
        rb_interp_load(late[i]);
    loaded = true;
}

static int close_table(const struct policy_profile *profile)
{
    struct err err = ERR_INIT;
    if (!worker_compute_pending(profile))
        return 0;
    load_late(profile);
    return worker_compute_zone() < 0 ? -1 : worker_compute_close(&err);
}

int rb_program_close(const struct check_ruleset *rules)
{
    return close_table(check_ruleset_profile(rules));
}

/* What stands before every program of the profile: once in a process, or once in the template it comes from. */
static void install(const struct policy_profile *profile)
{
    static bool installed;
    if (!installed && policy_profile_judges(profile))
        rb_shadow_install();
    installed = true;
}

int rb_program_load(const struct check_ruleset *rules, struct err *err)
{
    const struct policy_profile *profile = check_ruleset_profile(rules);
    load_late(profile);
    if (rb_program_warm(rules) < 0)
        return err_set(err, ERR_STATE, "not even a small program runs");
    install(profile);
    return rb_interp_settle(err);
}

static int make_ready(const struct policy_profile *profile)
{
    rb_host_load();
    install(profile);
    program.ready = close_table(profile) == 0;
    return program.ready ? 0 : -1;
}

/* Between the report and GO: nothing of the program runs, only Ruby's own libraries. */
int rb_program_prepare(const struct worker_job *job)
{
    for (size_t i = 0; i < program.judged.library_count; i++)
        rb_interp_load(program.judged.libraries[i]);
    if (worker_given_method_name())
        rb_interp_load("json");
    return make_ready(check_ruleset_profile(job->rules));
}

/* The first exit block, so the last one that runs: behind it Ruby takes itself apart, and restores signals that the table of
 * computation does not let it restore. That is not the program's doing. */
static void stop_telling(VALUE nothing)
{
    (void)nothing;
    worker_compute_guest(false);
}

/* A call of a session. Its tools may be others than those of the call before. */
static int begin_call(const struct worker_job *job)
{
    if (make_ready(check_ruleset_profile(job->rules)) < 0)
        return -1;
    rb_host_define();
    if (job->typed)
        rb_host_ask();
    return 0;
}

int rb_program_begin(const struct worker_job *job)
{
    program.error = Qnil;
    program.called = false;
    if (job->kind == WORKER_CALL)
        return begin_call(job);
    VALUE words = rb_const_get(rb_cObject, rb_intern("ARGV"));
    if (!program.ready)
        return -1;
    rb_ary_clear(words);
    for (size_t i = 0; i < worker_given_count(); i++)
        rb_ary_push(words, rb_utf8_str_new_cstr(worker_given_word(i)));
    ruby_script(path_of(job));
    rb_host_define();
    rb_set_end_proc(stop_telling, Qnil);
    return 0;
}

/* ---- running ---- */

static VALUE evaluate(VALUE code)
{
    return rb_funcall(code, rb_intern("eval"), 0);
}

static VALUE inspect(VALUE value)
{
    return rb_obj_as_string(rb_inspect(value));
}

/* The program has done its work; that its last value cannot be shown is no failure of it. */
static void send_value(VALUE value)
{
    static const char unshown[] = "<an object whose inspect raised>";
    int state = 0;
    VALUE text = rb_protect(inspect, value, &state);
    if (state) {
        rb_set_errinfo(Qnil);
        worker_channel_pieces(WIRE_VALUE, unshown, sizeof unshown - 1);
    } else {
        worker_channel_pieces(WIRE_VALUE, RSTRING_PTR(text), (size_t)RSTRING_LEN(text));
    }
}

/* Judged and run as a program is; nothing of it is left. */
int rb_program_warm(const struct check_ruleset *rules)
{
    static const char text[] = RB_PROGRAM_SAMPLE "x\n";
    const struct rb_source source = {.path = "-", .text = text, .len = sizeof text - 1};
    struct rb_judged judged;
    struct check_report report;
    struct err err = ERR_INIT;
    int state = 0;
    show_collector();
    check_report_init(&report);
    int r = rb_judge(check_ruleset_profile(rules), &source, &report, &judged, &err);
    if (r == 0 && judged.code) {
        program.code = judged.code;
        rb_protect(evaluate, program.code, &state);
        program.code = Qnil;
    }
    rb_set_errinfo(Qnil);
    check_report_done(&report);
    return r == 0 && judged.code && !state ? 0 : -1;
}

/* An object of names becomes keywords. */
static int add_keyword(VALUE name, VALUE value, VALUE to)
{
    rb_hash_aset(to, rb_to_symbol(name), value);
    return ST_CONTINUE;
}

/* The arguments are read before anything of the program runs. Nobody else has the object that the method is called on, nor the
 * module that it comes from. */
static VALUE call_method(VALUE code)
{
    size_t len;
    const char *json = worker_given_method_json(&len);
    const ID name = rb_intern(worker_given_method_name());
    VALUE args =
        rb_funcall(rb_path2class("JSON"), rb_intern("parse"), 1, rb_utf8_str_new(json, (long)len));
    VALUE module = evaluate(code);
    VALUE object = rb_obj_alloc(rb_cObject);
    if (!RB_TYPE_P(module, T_MODULE))
        rb_raise(rb_eTypeError, "the method's module is none");
    rb_extend_object(object, module);
    program.called = true;
    if (RB_TYPE_P(args, T_HASH)) {
        VALUE keywords = rb_hash_new();
        rb_hash_foreach(args, add_keyword, keywords);
        return rb_funcallv_kw(object, name, 1, &keywords, RB_PASS_KEYWORDS);
    }
    return rb_funcallv(object, name, (int)RARRAY_LEN(args), RARRAY_CONST_PTR(args));
}

static VALUE run_call(VALUE from)
{
    const struct worker_job *job = (const struct worker_job *)from;
    const struct rb_source source = source_of(job);
    return rb_call_run(check_ruleset_profile(job->rules), &source);
}

void rb_program_execute(const struct worker_job *job)
{
    int state = 0;
    const bool in_session = job->kind == WORKER_CALL;
    const bool method = !in_session && worker_given_method_name() != NULL;
    VALUE value = in_session ? rb_protect(run_call, (VALUE)job, &state)
                             : rb_protect(method ? call_method : evaluate, program.code, &state);
    const bool shown = method || (program.judged.shows && !NIL_P(value));
    if (state)
        program.error = rb_errinfo();
    else if (shown)
        send_value(value);
    rb_set_errinfo(Qnil);
    if (!state && shown && job->typed)
        rb_call_keep(value);
}

/* ---- how it ended ---- */

struct fault {
    const char *path;
    VALUE type, text, whole;
    unsigned line;
};

/* The line in the program's own file that is nearest to where it was raised. */
static unsigned own_line(VALUE error, const char *path)
{
    VALUE places = rb_funcall(error, rb_intern("backtrace_locations"), 0);
    for (long i = 0; RB_TYPE_P(places, T_ARRAY) && i < RARRAY_LEN(places); i++) {
        VALUE place = rb_ary_entry(places, i);
        VALUE file = rb_funcall(place, rb_intern("path"), 0);
        VALUE line = rb_funcall(place, rb_intern("lineno"), 0);
        if (RB_TYPE_P(file, T_STRING) && strcmp(RSTRING_PTR(file), path) == 0 && FIXNUM_P(line) &&
            FIX2LONG(line) > 0)
            return (unsigned)FIX2LONG(line);
    }
    return 0;
}

/* As ruby has it: the whole program is `<main>`, and nobody called it. */
static void tidy_backtrace(VALUE error)
{
    VALUE lines = rb_funcall(error, rb_intern("backtrace"), 0), tidy = rb_ary_new();
    const long count = RB_TYPE_P(lines, T_ARRAY) && !program.called ? RARRAY_LEN(lines) : 0;
    for (long i = 0; i + 1 < count; i++)
        rb_ary_push(tidy, rb_funcall(rb_ary_entry(lines, i), rb_intern("sub"), 2,
                                     rb_str_new_cstr("<compiled>"), rb_str_new_cstr("<main>")));
    if (count > 1)
        rb_funcall(error, rb_intern("set_backtrace"), 1, tidy);
}

/* What the program put into its exception is its own: this runs as the rest of it did. */
static VALUE read_fault(VALUE to)
{
    struct fault *f = (struct fault *)to;
    VALUE options = rb_hash_new();
    f->type = rb_class_name(rb_obj_class(program.error));
    f->text = rb_obj_as_string(rb_funcall(program.error, rb_intern("message"), 0));
    f->line = own_line(program.error, f->path);
    tidy_backtrace(program.error);
    rb_hash_aset(options, ID2SYM(rb_intern("highlight")), Qfalse);
    rb_hash_aset(options, ID2SYM(rb_intern("order")), ID2SYM(rb_intern("top")));
    f->whole =
        rb_funcallv_kw(program.error, rb_intern("full_message"), 1, &options, RB_PASS_KEYWORDS);
    return Qnil;
}

static VALUE print_fault(VALUE whole)
{
    return rb_funcall(rb_stderr, rb_intern("write"), 1, rb_obj_as_string(whole));
}

static VALUE exit_status(VALUE error)
{
    return rb_funcall(error, rb_intern("status"), 0);
}

int rb_program_report(const struct worker_job *job, bool *ret_left)
{
    struct fault f = {.path = path_of(job), .type = Qnil, .text = Qnil, .whole = Qnil};
    int state = 0;
    if (NIL_P(program.error))
        return 0;
    if (RTEST(rb_obj_is_kind_of(program.error, rb_eSystemExit))) {
        *ret_left = true;
        VALUE status = rb_protect(exit_status, program.error, &state);
        rb_set_errinfo(Qnil);
        return !state && FIXNUM_P(status) ? (int)(FIX2LONG(status) & 0xff) : 1;
    }
    rb_protect(read_fault, (VALUE)&f, &state);
    rb_set_errinfo(Qnil);
    const bool text = RB_TYPE_P(f.text, T_STRING);
    worker_channel_fault(RB_TYPE_P(f.type, T_STRING) ? StringValueCStr(f.type) : "Exception",
                         text ? RSTRING_PTR(f.text) : "", text ? (size_t)RSTRING_LEN(f.text) : 0,
                         f.line);
    if (RB_TYPE_P(f.whole, T_STRING))
        rb_protect(print_fault, f.whole, &state);
    rb_set_errinfo(Qnil);
    return 1;
}

void rb_program_finish(const struct worker_job *job)
{
    if (job->kind == WORKER_CALL)
        rb_interp_flush();
    else
        rb_interp_finish();
}

void rb_program_forget(void)
{
    program.judged = (struct rb_judged){0};
}
