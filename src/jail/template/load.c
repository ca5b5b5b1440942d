/* SPDX-License-Identifier: Apache-2.0 */
/* Code of packages runs when it is imported, and it is code that somebody else wrote. It must end up in the
 * template's memory, since children are forked from there, but it need not run in the template: memory is shared by
 * CLONE_VM, and everything else that a process may do is its own. So the process that imports is built as a child is (child_build.c),
 * behind the same locks, with one difference: its memory is the template's.
 *
 *   template --clone, shared memory--> builder, pid 1 of new namespaces    id map, files of its own
 *     asleep     builder --clone, shared memory--> importer, pid 3        locks, proof, `load`; then killed
 *
 * While it runs the template is in one system call, and neither a descriptor nor a capability of the template
 * is within its reach. What it can reach is the memory: hostile code may leave there what the template executes
 * later. What a template holds then is written in SECURITY.md, and it is little.
 *
 * Its words come by a pipe on descriptor 3, where a child has its channel: a descriptor that a package opens and
 * keeps so never has that number.
 *
 * Waits: read in wait_loaded; what imports, in the template; none (the holder ends a template that makes nothing for a
 *          minute); the end of the pipe
 *        waitpid in run_load; the builder; none (the kernel's own: its socket is closed, and it
 *          ends); goes on
 *        write in jail_load_launch; the template to read one byte; at once; goes on
 *        ppoll in jail_load_launch; nobody, in what has imported; none (the template kills it); killed */
#include "jail/template/template_fork.h"

#include "jail/inside.h"
#include "sys/fd.h"
#include "sys/raw.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILTER "packages"
#define LOADED 'L' /* the importer's word; the builder's is JAIL_BUILD_CLONED */

/* ---- the importer ---- */

int jail_load_launch(void *p)
{
    static const char word = LOADED;
    struct jail_building *b = p;
    struct jail_stage st = {.spec = b->spec,
                            .own = &b->fork->own,
                            .proc = JAIL_BUILD_PROC,
                            .ruleset = JAIL_BUILD_RULESET,
                            .user_limits = JAIL_BUILD_LIMITS,
                            .listener = -1};
    ssize_t n = readlinkat(JAIL_BUILD_PROC, "self", b->number, sizeof b->number - 1);
    b->number[n < 0 ? 0 : n] = 0;
    if (jail_child_lock(&st, false)) {
        b->err = st.err;
        if (b->err.code == 0)
            err_set(&b->err, ERR_MISSING, "what imports was not locked");
        return 1;
    }
    b->loaded = b->load(b->ctx);
    (void)!write(JAIL_FD_CHANNEL, &word, 1);
    for (;;) /* its threads are counted, then it is killed */
        raw_syscall(SYS_ppoll, 0, 0, 0, 0, 0);
}

/* ---- the template ---- */

/* True: `load` has returned. False: its process is dead. */
static bool wait_loaded(int words)
{
    char word = 0;
    long n;
    do
        n = raw_syscall(SYS_read, words, (long)&word, 1, 0, 0);
    while ((n == 1 && word != LOADED) || n == -EINTR);
    return n == 1;
}

static bool one_thread(const struct jail_building *b, int proc)
{
    char path[sizeof b->number + sizeof "/task"];
    struct stat st;
    snprintf(path, sizeof path, "%.*s/task", (int)strspn(b->number, "0123456789"), b->number);
    return fstatat(proc, path, &st, 0) == 0 && st.st_nlink == 3;
}

static int judge(const struct jail_fork *n, bool returned, struct err *err)
{
    const struct jail_building *b = &n->building;
    if (b->err.code) {
        *err = b->err;
        return err->code;
    }
    if (!returned)
        return err_set(err, ERR_STATE, "a module that is loaded ahead has ended the process");
    if (b->loaded == 0 && !one_thread(b, n->proc))
        return err_set(err, ERR_STATE, "a module that was loaded ahead has started a thread");
    return b->loaded < 0 ? err_set(err, ERR_STATE, "the modules could not be loaded ahead") : 0;
}

static void fill_spec(struct jail_spec *spec)
{
    jail_spec_init(spec);
    spec->kind = JAIL_KIND_CHILD;
    spec->memory_by_rlimit = true;
    spec->filter = FILTER;
    spec->limits.memory = LIMIT_MEMORY_MAX;
    spec->limits.cpu_ms = LIMIT_WALL_MS_MAX;
}

static int run_load(struct jail_fork *n, const struct jail_spec *spec, const int words[2],
                    const int control[2], struct err *err)
{
    struct jail_building *b = &n->building;
    const int flags =
        CLONE_VM | SIGCHLD | (int)(jail_ns_outer_flags(spec) | jail_ns_later_flags(spec));
    const int fds[] = {0, 1, 2, words[1], words[1], control[1], n->proc, n->ruleset, n->limits};
    _Static_assert(sizeof fds == sizeof b->fds, "one for each place");
    memcpy(b->fds, fds, sizeof fds);
    memcpy(b->mounted, n->usual, sizeof n->usual);
    memcpy(b->options, n->usual, sizeof n->usual);
    b->spec = spec;
    b->stack = jail_fork_launcher_stack();
    pid_t pid = clone(jail_child_build, n->stacks + JAIL_BUILDER_STACK, flags, b);
    if (pid < 0)
        return err_sys(err, "create the namespaces of what imports");
    fd_close(words[1]);
    fd_close(control[1]);
    bool returned = wait_loaded(words[0]);
    int r = judge(n, returned, err);
    fd_close(control[0]); /* the init above it kills it, and ends */
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    *n->tid = gettid(); /* the C library's number of this thread, which was the importer's */
    return r;
}

int jail_template_load(int (*load)(void *ctx), void *ctx, struct err *err)
{
    struct jail_fork *n;
    struct jail_spec spec;
    int words[2], control[2];
    int r = jail_fork_open(&n, err);
    if (r < 0)
        return r;
    if (pipe2(words, O_CLOEXEC) < 0)
        return err_sys(err, "pipe");
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) < 0) {
        fd_close(words[0]);
        fd_close(words[1]);
        return err_sys(err, "socketpair");
    }
    sigset_t all, before;
    sigfillset(&all); /* no handler may run in a process that shares its memory with another one */
    sigprocmask(SIG_SETMASK, &all, &before);
    fill_spec(&spec);
    n->building = (struct jail_building){.fork = n, .load = load, .ctx = ctx};
    r = run_load(n, &spec, words, control, err);
    n->building = (struct jail_building){0};
    fd_close(words[0]);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return r;
}

int jail_template_confine(struct err *err)
{
    struct jail_spec spec;
    int listener;
    fill_spec(&spec);
    int r = jail_landlock_enter(JAIL_FD_TEMPLATE_RULESET, err);
    if (r == 0)
        r = jail_seccomp_apply(&spec, &listener, err);
    if (r == 0 && close_range(JAIL_FD_TEMPLATE_PROC, JAIL_FD_TEMPLATE_LAST, 0) < 0)
        r = err_sys(err, "close_range");
    return r;
}
