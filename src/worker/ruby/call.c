/* SPDX-License-Identifier: Apache-2.0 */
/* A text means what the variables make of it that earlier calls bound: `x /a/` divides, or calls x with a pattern. So it is
 * compiled where it will run. Ruby compiles and runs in one go; between the two it tells whoever traces compilations, and a
 * trace that raises ends it there. The first time that is how the instructions are had, the second time they are
 * judged once more and then run. */
#include "ruby_first.h"

#include "call.h"

#include "worker/frame/names.h"

#include <ruby/debug.h>
#include <string.h>

static struct {
    VALUE eval, keep, variables; /* methods of the binding, as they were before any guest */
    VALUE compiled;              /* what the trace was told of */
    VALUE stop;                  /* the exception by which it ends the first time */
    const struct policy_profile *profile; /* the second time */
    const struct rb_source *source;
} call;

static VALUE method_of(VALUE object, const char *name)
{
    return rb_obj_method(object, ID2SYM(rb_intern(name)));
}

void rb_call_open(void)
{
    static bool open;
    if (open)
        return;
    VALUE binding = rb_const_get(rb_cObject, rb_intern("TOPLEVEL_BINDING"));
    rb_gc_register_address(&call.eval);
    rb_gc_register_address(&call.keep);
    rb_gc_register_address(&call.variables);
    rb_gc_register_address(&call.compiled);
    rb_gc_register_address(&call.stop);
    call.eval = method_of(binding, "eval");
    call.keep = method_of(binding, "local_variable_set");
    call.variables = method_of(binding, "local_variables");
    call.stop = rb_exc_new_cstr(rb_eException, "compiled");
    call.compiled = Qnil;
    open = true;
}

/* ---- compiling ---- */

static VALUE evaluate(VALUE from)
{
    const struct rb_source *s = (const struct rb_source *)from;
    VALUE words[] = {rb_utf8_str_new(s->text, (long)s->len), rb_utf8_str_new_cstr(s->path),
                     INT2FIX(1)};
    return rb_method_call(3, words, call.eval);
}

static void on_compiled(VALUE trace, void *ignored)
{
    (void)ignored;
    call.compiled = rb_funcall(trace, rb_intern("instruction_sequence"), 0);
    rb_exc_raise(call.stop);
}

unsigned long rb_call_compile(unsigned long source)
{
    int state = 0;
    VALUE trace = rb_tracepoint_new(0, RUBY_EVENT_SCRIPT_COMPILED, on_compiled, NULL);
    call.compiled = Qnil;
    rb_tracepoint_enable(trace);
    rb_protect(evaluate, source, &state);
    rb_tracepoint_disable(trace);
    VALUE compiled = call.compiled;
    call.compiled = Qnil;
    if (NIL_P(compiled)) {
        if (!state) /* nothing was compiled, and yet something ran */
            rb_raise(rb_eSecurityError, "the text was not compiled as a text is");
        rb_jump_tag(state);
    }
    rb_set_errinfo(Qnil);
    return compiled;
}

/* Ruby has no word for it; these are what its parser says at the end of a text that could go on. */
bool rb_call_incomplete(const char *text)
{
    static const char *const signs[] = {"unexpected end-of-input", "meets end of file",
                                        "anywhere before EOF"};
    const struct rb_source source = {.path = "-", .text = text, .len = strlen(text)};
    int state = 0;
    bool part = false;
    rb_call_open();
    rb_protect(rb_call_compile, (VALUE)&source, &state);
    VALUE error = state ? rb_errinfo() : Qnil;
    rb_set_errinfo(Qnil);
    if (!RTEST(rb_obj_is_kind_of(error, rb_eSyntaxError)))
        return false;
    VALUE said = rb_attr_get(error, rb_intern("mesg")); /* where an exception keeps its text */
    for (size_t i = 0; RB_TYPE_P(said, T_STRING) && i < sizeof signs / sizeof *signs; i++)
        part = part || strstr(StringValueCStr(said), signs[i]);
    return part;
}

/* ---- running ---- */

static VALUE the_trace;

static void on_run(VALUE trace, void *ignored)
{
    (void)ignored;
    rb_tracepoint_disable(trace); /* what the program itself compiles is its own */
    if (!rb_judge_again(call.profile, call.source,
                        rb_funcall(trace, rb_intern("instruction_sequence"), 0)))
        rb_raise(rb_eSecurityError, "the call is not what was judged");
}

unsigned long rb_call_run(const struct policy_profile *profile, const struct rb_source *source)
{
    call.profile = profile;
    call.source = source;
    the_trace = rb_tracepoint_new(0, RUBY_EVENT_SCRIPT_COMPILED, on_run, NULL);
    rb_tracepoint_enable(the_trace);
    return evaluate((VALUE)source);
}

static VALUE keep(VALUE value)
{
    VALUE words[] = {ID2SYM(rb_intern("_")), value};
    return rb_method_call(2, words, call.keep);
}

void rb_call_keep(unsigned long value)
{
    int state = 0;
    rb_protect(keep, value, &state);
    rb_set_errinfo(Qnil);
}

/* ---- names ---- */

static const char *const keywords[] = {
    "alias", "begin", "break",  "case",   "class",  "def",   "defined?", "do",     "else",
    "elsif", "end",   "ensure", "false",  "for",    "if",    "in",       "module", "next",
    "nil",   "not",   "or",     "redo",   "rescue", "retry", "return",   "self",   "super",
    "then",  "true",  "undef",  "unless", "until",  "when",  "while",    "yield"};

static void add_symbols(struct worker_names *to, VALUE list)
{
    for (long i = 0; RB_TYPE_P(list, T_ARRAY) && i < RARRAY_LEN(list); i++) {
        VALUE x = rb_ary_entry(list, i);
        const char *name = SYMBOL_P(x) ? rb_id2name(SYM2ID(x)) : NULL;
        if (name)
            worker_names_add(to, name, strlen(name));
    }
}

static VALUE collect(VALUE to)
{
    struct worker_names *f = (struct worker_names *)to;
    add_symbols(f, rb_method_call(0, NULL, call.variables));
    add_symbols(f, rb_mod_constants(0, NULL, rb_cObject));
    add_symbols(f, rb_class_private_instance_methods(0, NULL, rb_cObject));
    return Qnil;
}

/* Of a word alone; what an object answers to is not asked, since that could be the guest's code. */
int rb_call_names(const char *word)
{
    struct worker_names found;
    int state = 0;
    rb_call_open();
    worker_names_begin(&found, word);
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        worker_names_add(&found, keywords[i], strlen(keywords[i]));
    if (!strchr(word, '.'))
        rb_protect(collect, (VALUE)&found, &state);
    rb_set_errinfo(Qnil);
    return worker_names_send(&found);
}
