/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments travel as JSON, written by Ruby's own library: what a program did to that changes only what the program itself
 * says. The answer is waited for with the interpreter's lock released, so that other threads run on. */
#include "host.h"

#include "ruby_first.h"

#include "base/limits.h"
#include "interp.h"
#include "worker/frame/channel.h"
#include "worker/frame/host.h"
#include "worker/frame/input.h"

#include <ruby/thread.h>

/* FINAL(x): x is the answer; ends here. */
static VALUE final(VALUE self, VALUE x)
{
    (void)self;
    VALUE text = rb_obj_as_string(x);
    worker_channel_pieces(WIRE_FINAL, RSTRING_PTR(text), (size_t)RSTRING_LEN(text));
    rb_exit(0);
    return Qnil;
}

struct question {
    const char *name, *json;
    size_t len;
    struct worker_answer answer;
    bool sent, answered;
};

/* Without the interpreter's lock: nothing of Ruby is touched. One call at a time; the answer is copied by its asker before the
 * next one is let in. */
static void *ask(void *ctx)
{
    struct question *q = ctx;
    worker_host_lock();
    uint64_t id = worker_host_ask(q->name, q->json, q->len);
    q->sent = id != 0;
    q->answered = q->sent && worker_host_wait(id, &q->answer) == 0;
    return NULL;
}

/* {"message": ..., "category": ...} is raised; the exception has a method `category`. */
_Noreturn static void raise_error(VALUE error)
{
    const bool both = RB_TYPE_P(error, T_HASH);
    VALUE said = both ? rb_hash_aref(error, rb_str_new_cstr("message")) : error;
    VALUE e = rb_exc_new_str(rb_eRuntimeError, rb_obj_as_string(said));
    rb_ivar_set(e, rb_intern("@category"),
                both ? rb_hash_aref(error, rb_str_new_cstr("category")) : Qnil);
    rb_define_attr(rb_singleton_class(e), "category", 1, 0);
    rb_exc_raise(e);
}

static VALUE tool_function(int argc, VALUE *argv, VALUE self)
{
    const bool named = rb_keyword_given_p() && argc > 0;
    VALUE json = rb_path2class("JSON"), both = rb_hash_new();
    (void)self;
    rb_hash_aset(both, rb_str_new_cstr("args"), rb_ary_new_from_values(argc - named, argv));
    rb_hash_aset(both, rb_str_new_cstr("kwargs"), named ? argv[argc - 1] : Qnil);
    VALUE text = rb_obj_as_string(rb_funcall(json, rb_intern("generate"), 1, both));
    struct question q = {.name = rb_id2name(rb_frame_this_func()),
                         .json = RSTRING_PTR(text),
                         .len = (size_t)RSTRING_LEN(text)};
    if (q.len > LIMIT_CALL)
        rb_raise(rb_eArgError, "the arguments are longer than %llu bytes",
                 (unsigned long long)LIMIT_CALL);
    rb_thread_call_without_gvl(ask, &q, NULL, NULL);
    VALUE answer = q.answered ? rb_utf8_str_new(q.answer.json, (long)q.answer.len) : Qnil;
    const bool good = q.answered && q.answer.good;
    worker_host_unlock();
    RB_GC_GUARD(text);
    if (NIL_P(answer))
        rb_raise(rb_eIOError,
                 q.sent ? "the tool's side of the channel is gone" : "the call could not be sent");
    VALUE value = rb_funcall(json, rb_intern("parse"), 1, answer);
    if (!good)
        raise_error(value);
    return value;
}

/* At a prompt the person who sits there is asked before a line is read. */
static VALUE ask_gets(int argc, VALUE *argv, VALUE self)
{
    (void)self;
    worker_input_ask();
    return rb_funcallv(rb_stdin, rb_frame_this_func(), argc, argv);
}

void rb_host_ask(void)
{
    rb_define_global_function("gets", ask_gets, -1);
    rb_define_global_function("readline", ask_gets, -1);
}

void rb_host_load(void)
{
    if (worker_host_count() > 0)
        rb_interp_load("json");
}

void rb_host_define(void)
{
    rb_define_global_function("FINAL", final, 1);
    for (size_t i = 0; i < worker_host_count(); i++)
        rb_define_global_function(worker_host_name(i), tool_function, -1);
}
