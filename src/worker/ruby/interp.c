/* SPDX-License-Identifier: Apache-2.0 */
/* ruby_options() is the whole start of the interpreter, as the program `ruby` has it: load path, encodings, prelude. It is
 * given an empty program, which nobody runs. Its guess of the stack's place asks for the address of a variable of
 * a function that outlives it: the frame's main, by way of our caller. */
#include "interp.h"

#include "ruby_first.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/auxv.h>
#include <unistd.h>

static int require(VALUE name)
{
    int state = 0;
    rb_protect(rb_require_string, name, &state);
    if (state)
        rb_set_errinfo(Qnil);
    return state;
}

void rb_interp_load(const char *name)
{
    (void)require(rb_utf8_str_new_cstr(name));
}

/* Its sentence about a timer that the jail does not give (filters/ruby.inc) is for nobody. */
static int setup_quietly(void)
{
    int ours = dup(STDERR_FILENO), nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (ours < 0 || nowhere < 0 || dup2(nowhere, STDERR_FILENO) < 0)
        return -1;
    int r = ruby_setup();
    if (dup2(ours, STDERR_FILENO) < 0)
        return -1;
    close(ours);
    close(nowhere);
    return r;
}

int rb_interp_start(const struct worker_start *start, struct err *err)
{
    static char words[][64] = {"ruby", "--disable=gems,did_you_mean,error_highlight,rubyopt",
                               "-Eutf-8", "-e", ""};
    static char *argv[] = {words[0], words[1], words[2], words[3], words[4], NULL};
    (void)start;
    if (ruby_api_version[0] != RUBY_API_VERSION_MAJOR ||
        ruby_api_version[1] != RUBY_API_VERSION_MINOR)
        return err_set(err, ERR_MISSING, "built for Ruby %d.%d, but libruby is %d.%d; rebuild",
                       RUBY_API_VERSION_MAJOR, RUBY_API_VERSION_MINOR, ruby_api_version[0],
                       ruby_api_version[1]);
    /* the name of the program lies above every frame of the stack */
    ruby_init_stack((VALUE *)(getauxval(AT_EXECFN) & ~15UL));
    if (setup_quietly() != 0)
        return err_set(err, ERR_MISSING, "libruby does not start");
    int state = 0;
    void *nothing = ruby_options(5, argv);
    if (!ruby_executable_node(nothing, &state))
        return err_set(err, ERR_MISSING, "libruby does not read its options (%d)", state);
    ruby_verbose = Qnil; /* warnings are for those who develop a library */
    rb_funcall(rb_stdout, rb_intern("sync="), 1,
               Qtrue);        /* what was printed before a kill has left */
    signal(SIGPIPE, SIG_IGN); /* as ruby does: a closed stream is an exception, not a death */
    return 0;
}

void rb_interp_finish(void)
{
    (void)ruby_cleanup(0);
}
