/* SPDX-License-Identifier: Apache-2.0 */
/* The builder is cloned straight into its namespaces, in our memory: no page is copied, and how it went is
 * in the stage. We wait for its word that the program runs; its death before that is the end of the
 * pipe, and whoever may stop the run is heard meanwhile: a process that is stopped while it builds holds up
 * nobody but its own run. As root, unless we have stepped down ourselves, a child first becomes the guest's id for good and
 * clones from there, so that the id map is the builder's own to write, and nothing above the guest is
 * root. The builder is handed to us (CLONE_PARENT), so it is ours to wait for in every case.
 *
 * Waits: waitpid in wait_for; the helper that clones, or the builder; none (the kernel's own: it has ended or was
 *          killed); goes on
 *        poll in await_word; the builder; FD_PATIENCE_MS; killed: no jail
 *        read in await_word; nobody: poll said that it is there; at once; its word
 *        write in map_block; the builder to read one byte; at once; the jail is not built
 *        poll in end_launcher; the launcher, which was killed; FD_PATIENCE_MS; its memory is not given back */
#include "jail/outside.h"

#include "base/clock.h"
#include "jail/inside.h"
#include "sys/clone.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct helper {
    const struct jail_spawn *s;
    struct jail_stage stage;
    struct jail_proof own;
    pid_t builder;  /* set by the kernel for whoever clones it */
    pid_t stepping; /* the helper that steps down; 0: none, or it was waited for */
    int stepped;    /* its pidfd */
    bool lasts;     /* somebody may still be in this memory */
    char stack[64 * 1024] __attribute__((aligned(16))); /* the builder's, until it is cordon-nest */
};

static pid_t clone_builder(struct helper *h, int extra)
{
    int flags =
        CLONE_VM | CLONE_PARENT_SETTID | SIGCHLD | extra | (int)jail_ns_outer_flags(h->stage.spec);
    pid_t pid =
        clone(jail_build, h->stack + sizeof h->stack, flags, &h->stage, &h->builder, NULL, NULL);
    if (pid < 0) {
        err_sys(&h->stage.err, "create the namespaces (cordon doctor tells what is missing)");
        err_layer(&h->stage.err, "process");
    }
    return pid;
}

/* The map of a block of ids is written from outside, by whoever may take any of them: the two rights are kept over the
 * change of ids, for this one process, which ends as soon as it has used them. */
static int keep_id_rights(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    const uint32_t both = 1U << CAP_SETUID | 1U << CAP_SETGID;
    const struct __user_cap_data_struct data[2] = {{.effective = both, .permitted = both}};
    return (int)syscall(SYS_capset, &head, data);
}

static int map_block(struct helper *h, pid_t builder)
{
    char who[16];
    snprintf(who, sizeof who, "%d", (int)builder);
    if (jail_ns_map_block(h->stage.proc, who, h->stage.uid, h->stage.gid, h->stage.spec->ids) < 0 ||
        write(h->stage.mapped[1], "M", 1) != 1) {
        err_sys(&h->stage.err, "map the ids of a template and its children");
        err_layer(&h->stage.err, "process");
        return 1;
    }
    return 0;
}

/* Enter the cgroup while still root, give root up for good, then clone. Raw calls: glibc's wrappers
 * would tell the other threads of the process whose memory this may still be. */
static int step_down(void *p)
{
    struct helper *h = p;
    const struct jail_identity *id = h->s->id;
    const bool block = h->stage.spec->ids != 0;
    if (h->s->cgroup && h->s->cgroup->version == 1 &&
        jail_cgroup_move_in(h->s->cgroup, 0, &h->stage.err) < 0)
        return 1;
    if (block && prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0)
        return 1;
    if (id->change && (syscall(SYS_setgroups, 0, NULL) < 0 ||
                       syscall(SYS_setresgid, id->gid, id->gid, id->gid) < 0 ||
                       syscall(SYS_setresuid, id->uid, id->uid, id->uid) < 0 ||
                       (block && keep_id_rights() < 0))) {
        err_sys(&h->stage.err, "become the guest's id");
        return 1;
    }
    /* The change made us undumpable, and /proc/self/uid_map root's. */
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    pid_t builder = clone_builder(h, CLONE_PARENT);
    return builder < 0 || (block && map_block(h, builder));
}

/* Not CLONE_VFORK: that waits for a stopped helper for ever. */
static void start_helper(struct helper *h)
{
    static char stack[16 * 1024] __attribute__((aligned(16)));
    const struct jail_cgroup *cg = h->s->cgroup;
    struct sys_clone_args args = {.flags = CLONE_VM | CLONE_PIDFD,
                                  .pidfd = (uint64_t)(uintptr_t)&h->stepped,
                                  .exit_signal = SIGCHLD,
                                  .stack = (uint64_t)(uintptr_t)stack,
                                  .stack_size = sizeof stack};
    if (cg && cg->version == 2) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (uint64_t)cg->dir[JAIL_CGROUP_MEMORY];
    }
    pid_t pid = sys_clone(&args, step_down, h);
    if (pid < 0) {
        errno = -pid;
        err_sys(&h->stage.err, "a process that gives up root%s", cg ? ", in its cgroup" : "");
    } else {
        h->stepping = pid;
    }
}

static void wait_for(pid_t pid)
{
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* Ended or killed, it is waited for as soon as that can be: it counts in the cgroup until then. */
static void helper_done(struct helper *h)
{
    if (h->stepping > 0)
        kill(h->stepping, SIGKILL);
    wait_for(h->stepping);
    fd_close(h->stepped);
    h->stepping = 0;
    h->stepped = -1;
}

enum heard { NOTHING, RUNS, DIED, STOPPED };

/* Others work in our memory meanwhile: no call here fails, or it would write errno. */
static enum heard await_word(struct helper *h)
{
    enum { WORD, HELPER, OTHERS };
    const struct jail_spawn *s = h->s;
    const uint64_t until = clock_now_ns() + FD_PATIENCE_MS * CLOCK_NS_PER_MS;
    struct pollfd p[OTHERS + JAIL_STOPS] = {
        [WORD] = {.fd = h->stage.started[0], .events = POLLIN},
        [HELPER] = {.fd = h->stepped, .events = POLLIN},
    };
    for (size_t i = 0; i < s->nstops; i++)
        p[OTHERS + i] = (struct pollfd){.fd = s->stops[i], .events = POLLIN};
    for (uint64_t now; (now = clock_now_ns()) < until;) {
        char word;
        int n = poll(p, OTHERS + s->nstops, (int)((until - now) / CLOCK_NS_PER_MS) + 1);
        if (n <= 0)
            continue;
        if (p[WORD].revents)
            return read(p[WORD].fd, &word, 1) == 1 ? RUNS : DIED;
        for (size_t i = 0; i < s->nstops; i++)
            if (p[OTHERS + i].revents)
                return STOPPED;
        helper_done(h);
        p[HELPER].fd = -1;
    }
    return NOTHING;
}

/* Without a pid namespace the launcher does not die with its builder, and may not have come to wish for it: it would go
 * on in memory that is given back. False: it may still be there. */
static bool end_launcher(const struct jail_stage *st)
{
    if (st->spec->mode == JAIL_FULL || st->launcher <= 0)
        return true;
    FD_AUTO fd = (int)syscall(SYS_pidfd_open, st->launcher, 0);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (fd < 0)
        return errno == ESRCH;
    syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
    return poll(&p, 1, FD_PATIENCE_MS) == 1;
}

/* 0: the program runs. 1: one of the caller's descriptors said that it shall not. */
static int run_builder(struct helper *h)
{
    static const int deadly[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    const struct jail_spawn *s = h->s;
    struct err *err = &h->stage.err;
    sigset_t all, before;
    sigfillset(&all); /* no handler of ours may run in a process that shares our memory */
    sigprocmask(SIG_SETMASK, NULL, &before);
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++) {
        struct sigaction now;
        /* What would simply end us still may, while we sleep. What the caller has blocked it hears by a
         * descriptor, as one of the stops, and says what became of the run. */
        if (!sigismember(&before, deadly[i]) && sigaction(deadly[i], NULL, &now) == 0 &&
            now.sa_handler == SIG_DFL)
            sigdelset(&all, deadly[i]);
    }
    sigprocmask(SIG_SETMASK, &all, &before);
    if (!s->id->change && !s->cgroup)
        (void)clone_builder(h, 0);
    else
        start_helper(h);
    fd_close(h->stage.started[1]); /* the others' copies are what the pipe lives by */
    fd_close(h->stage.mapped[0]);
    fd_close(h->stage.mapped[1]);
    enum heard heard = await_word(h);
    helper_done(h); /* only now is it certain whether there is a builder */
    fd_close(h->stage.started[0]);
    if (heard != RUNS && h->builder > 0) { /* before we look at what it wrote, it is gone */
        kill(h->builder, SIGKILL);
        wait_for(h->builder);
        h->lasts = !end_launcher(&h->stage);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (heard == RUNS || heard == STOPPED)
        return heard == STOPPED;
    if (err->code == 0)
        err_set(err, ERR_MISSING,
                heard == NOTHING ? "the jail was not built " JAIL_TOO_LATE
                                 : "the builder of the jail was killed");
    return err->code;
}

void jail_spawn_done(void *memory)
{
    free(memory);
}

int jail_spawn(const struct jail_spawn *s, struct jail_spawned *ret, struct err *err)
{
    FD_AUTO proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (proc < 0)
        return err_sys(err, "open /proc");
    struct helper *h = malloc(sizeof *h);
    if (!h)
        return err_set(err, ERR_MEMORY, "no memory");
    /* A supervisor that runs others already hides from dumps, and so could not write the id maps. */
    if (prctl(PR_GET_DUMPABLE) == 0)
        prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    jail_attest_own(&h->own, s->id->user_ns);
    h->s = s;
    h->builder = -1;
    h->stepping = 0;
    h->stepped = -1;
    h->lasts = false;
    h->stage = (struct jail_stage){.spec = s->spec,
                                   .own = &h->own,
                                   .own_rest = &h->own,
                                   .uid = s->id->uid,
                                   .gid = s->id->gid,
                                   .mapped = {-1, -1},
                                   .proc = proc,
                                   .own_proc = -1,
                                   .user_limits = -1,
                                   .nest = s->nest,
                                   .control = {s->control[0], s->control[1]},
                                   .stdio = {s->stdio[0], s->stdio[1], s->stdio[2]},
                                   .channel = s->channel,
                                   .worker = s->worker,
                                   .binds = s->binds,
                                   .quota = -1,
                                   .ruleset = -1,
                                   .listener = -1};
    const bool piped = pipe2(h->stage.started, O_CLOEXEC) == 0 &&
                       (!s->spec->ids || pipe2(h->stage.mapped, O_CLOEXEC) == 0);
    int r = piped ? run_builder(h) : err_sys(&h->stage.err, "pipe");
    if (r != 0) {
        if (r < 0)
            *err = h->stage.err;
        if (!h->lasts)
            jail_spawn_done(h);
        return r;
    }
    *ret = (struct jail_spawned){
        .nest = h->builder, .layers = h->stage.layers, .refused = h->stage.refused, .memory = h};
    return 0;
}
