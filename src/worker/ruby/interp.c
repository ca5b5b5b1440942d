/* SPDX-License-Identifier: Apache-2.0 */
/* ruby_options() is the whole start of the interpreter, as the program `ruby` has it: load path, encodings, prelude. It is
 * given an empty program, which nobody runs. Its guess of the stack's place asks for the address of a variable of
 * a function that outlives it: the frame's main, by way of our caller. */
#include "interp.h"

#include "ruby_first.h"

#include "base/limits.h"
#include "jail/compute.h"
#include "worker/frame/driver.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* What Ruby keeps in its process and a child of a template has not: the descriptors by which a signal wakes it, and its
 * handlers. Memory is shared with the process that loads, nothing else is (jail/template/load.c). */
enum { KEPT = 8 };
static struct {
    int fds[KEPT];
    size_t count;
    struct sigaction handlers[NSIG];
} kept;

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

int rb_interp_start(struct err *err)
{
    static bool up;
    static char words[][64] = {"ruby", "--disable=gems,did_you_mean,error_highlight,rubyopt",
                               "-Eutf-8", "-e", ""};
    static char *argv[] = {words[0], words[1], words[2], words[3], words[4], NULL};
    if (up)
        return 0;
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
    up = true;
    return 0;
}

/* ---- templates ---- */

static int note_descriptors(struct err *err)
{
    for (int fd = 3; fd < (int)LIMIT_DESCRIPTORS_MAX; fd++) {
        if (!rb_reserved_fd_p(fd))
            continue;
        if (kept.count == KEPT)
            return err_set(err, ERR_STATE, "Ruby keeps more than %d descriptors", KEPT);
        kept.fds[kept.count++] = fd;
    }
    return 0;
}

/* Objects that outlive a few collections are old, and later ones do not look at them again: a child writes less. */
int rb_interp_settle(struct err *err)
{
    for (int i = 0; i < 4; i++)
        rb_gc_start();
    for (int i = 1; i < NSIG; i++)
        if (sigaction(i, NULL, &kept.handlers[i]) < 0)
            kept.handlers[i].sa_handler = SIG_DFL;
    return note_descriptors(err);
}

/* An event of its own for each process, or a device where a session that only computes could not make one for its branch
 * (stand_in.c). */
static void open_descriptors(void)
{
    const struct check_ruleset *rules = worker_driver_rules();
    const bool computes = rules && check_ruleset_profile(rules)->compute_only;
    for (size_t i = 0; i < kept.count; i++) {
        int fd = computes ? open("/dev/null", O_RDWR | O_CLOEXEC | O_NONBLOCK)
                          : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (fd >= 0 && fd != kept.fds[i]) {
            (void)dup3(fd, kept.fds[i], O_CLOEXEC);
            close(fd);
        }
    }
}

static void set_handlers(void)
{
    for (int i = 1; i < NSIG; i++)
        if (kept.handlers[i].sa_handler != SIG_DFL)
            (void)sigaction(i, &kept.handlers[i], NULL);
}

void rb_interp_before_branch(void)
{
    for (size_t i = 0; i < kept.count && !jail_computes_only(); i++)
        close(kept.fds[i]);
}

void rb_interp_after_fork(void)
{
    static bool forked; /* a branch has the handlers of its session */
    if (!jail_computes_only())
        open_descriptors();
    if (!forked)
        set_handlers();
    forked = true;
    rb_thread_atfork();
}

/* ---- interrupts, streams ---- */

int rb_interp_set_interrupt(void)
{
    return sigaction(SIGINT, &kept.handlers[SIGINT], NULL);
}

static VALUE raise_pending(VALUE nothing)
{
    (void)nothing;
    rb_thread_check_ints();
    return Qnil;
}

void rb_interp_drop_interrupt(void)
{
    int state = 0;
    rb_protect(raise_pending, Qnil, &state);
    rb_set_errinfo(Qnil);
}

static VALUE flush(VALUE stream)
{
    return rb_io_flush(stream);
}

void rb_interp_flush(void)
{
    int state = 0;
    rb_protect(flush, rb_stdout, &state);
    rb_protect(flush, rb_stderr, &state);
    rb_set_errinfo(Qnil);
}

static VALUE read_all(VALUE stream)
{
    return rb_funcall(stream, rb_intern("read"), 0);
}

void rb_interp_empty_input(void)
{
    int state = 0;
    rb_protect(read_all, rb_stdin, &state);
    rb_set_errinfo(Qnil);
}

void rb_interp_finish(void)
{
    (void)ruby_cleanup(0);
}
