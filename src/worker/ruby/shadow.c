/* SPDX-License-Identifier: Apache-2.0 */
/* Methods are redefined where they were defined, so that there is no other one to be reached: not by an explicit receiver, not
 * by `send`, not by taking the new one away. Whoever is asked, the sentence is the same. */
#include "shadow.h"

#include "ruby_first.h"

#include "worker/frame/channel.h"

static _Noreturn void refuse(const char *rule, const char *text, const char *hint)
{
    const int line = rb_sourceline();
    worker_event(NULL, "process", rule, text, hint, line > 0 ? (unsigned)line : 0);
    rb_raise(rb_eSecurityError, "%s", text);
}

#define REFUSE(function, rule, text)                                                               \
    static VALUE function(int argc, VALUE *argv, VALUE self)                                       \
    {                                                                                              \
        (void)argc;                                                                                \
        (void)argv;                                                                                \
        (void)self;                                                                                \
        refuse(rule, text " blocked by Cordon sandbox", "compute it in Ruby");                     \
    }

REFUSE(no_system, "rb.shadow.system", "system()")
REFUSE(no_exec, "rb.shadow.exec", "exec()")
REFUSE(no_spawn, "rb.shadow.spawn", "spawn()")
REFUSE(no_fork, "rb.shadow.fork", "fork()")
REFUSE(no_backtick, "rb.shadow.backtick", "backtick execution")
REFUSE(no_open, "rb.shadow.open", "open()")
REFUSE(no_popen, "rb.shadow.popen", "popen()")

void rb_shadow_install(void)
{
    static const struct {
        const char *name;
        VALUE (*function)(int, VALUE *, VALUE);
    } kernel[] = {{"system", no_system}, {"exec", no_exec},  {"spawn", no_spawn},
                  {"fork", no_fork},     {"`", no_backtick}, {"open", no_open}};
    VALUE process = rb_path2class("Process");
    for (size_t i = 0; i < sizeof kernel / sizeof *kernel; i++)
        rb_define_global_function(kernel[i].name, kernel[i].function, -1);
    rb_define_singleton_method(process, "exec", no_exec, -1);
    rb_define_singleton_method(process, "spawn", no_spawn, -1);
    rb_define_singleton_method(process, "fork", no_fork, -1);
    rb_define_singleton_method(rb_cIO, "popen", no_popen, -1);
    rb_undef_method(rb_singleton_class(process), "daemon");
}
