/* The builder is cloned straight into its namespaces, in our memory: no page is copied, and how it went is
 * in the stage. We wait for its word that the program runs; its death before that is the end of the
 * pipe. As root, unless we have stepped down ourselves, a child first becomes the guest's id for good and
 * clones from there, so that the id map is the builder's own to write, and nothing above the guest is
 * root. The builder is handed to us (CLONE_PARENT), so it is ours to wait for in every case.
 *
 * Waits: waitpid in wait_for; a helper that clones and ends, or the builder; none (the kernel's own: it
 *          ends or was killed); goes on
 *        poll in run_builder; the builder; FD_PATIENCE_MS; killed: no jail
 *        read in run_builder; nobody: poll said that it is there; at once; its word */
#include "jail/outside.h"

#include "jail/inside.h"
#include "sys/clone.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct helper {
    const struct jail_spawn *s;
    struct jail_stage stage;
    struct jail_proof own;
    pid_t builder;                                      /* set by whoever cloned it */
    char stack[64 * 1024] __attribute__((aligned(16))); /* the builder's, until it is cordon-nest */
};

static pid_t clone_builder(struct helper *h, int extra)
{
    int flags = CLONE_VM | SIGCHLD | extra | (int)jail_ns_outer_flags(h->stage.spec);
    pid_t pid = clone(jail_build, h->stack + sizeof h->stack, flags, &h->stage);
    if (pid < 0) {
        err_sys(&h->stage.err, "create the namespaces (cordon doctor tells what is missing)");
        err_layer(&h->stage.err, "process");
    }
    return pid;
}

/* Enter the cgroup while still root, give root up for good, then clone. Raw calls: glibc's wrappers
 * would tell the other threads of the process whose memory this may still be. */
static int step_down(void *p)
{
    struct helper *h = p;
    const struct jail_identity *id = h->s->id;
    if (h->s->cgroup && h->s->cgroup->version == 1 &&
        jail_cgroup_move_in(h->s->cgroup, 0, &h->stage.err) < 0)
        return 1;
    if (id->change && (syscall(SYS_setgroups, 0, NULL) < 0 ||
                       syscall(SYS_setresgid, id->gid, id->gid, id->gid) < 0 ||
                       syscall(SYS_setresuid, id->uid, id->uid, id->uid) < 0)) {
        err_sys(&h->stage.err, "become the guest's id");
        return 1;
    }
    /* The change made us undumpable, and /proc/self/uid_map root's. */
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    h->builder = clone_builder(h, CLONE_PARENT);
    return 0;
}

static pid_t start_helper(struct helper *h)
{
    static char stack[16 * 1024] __attribute__((aligned(16)));
    const struct jail_cgroup *cg = h->s->cgroup;
    if (!cg || cg->version != 2)
        return clone(step_down, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, h);
    struct sys_clone_args args = {.flags = CLONE_VM | CLONE_VFORK | CLONE_INTO_CGROUP,
                                  .exit_signal = SIGCHLD,
                                  .stack = (uint64_t)(uintptr_t)stack,
                                  .stack_size = sizeof stack,
                                  .cgroup = (uint64_t)cg->dir[JAIL_CGROUP_MEMORY]};
    pid_t pid = sys_clone(&args, step_down, h);
    if (pid < 0)
        errno = -pid;
    return pid;
}

static void wait_for(pid_t pid)
{
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

static int run_builder(struct helper *h)
{
    static const int deadly[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    const struct jail_spawn *s = h->s;
    struct err *err = &h->stage.err;
    sigset_t all, before;
    sigfillset(&all); /* no handler of ours may run in a process that shares our memory */
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++) {
        struct sigaction now;
        if (sigaction(deadly[i], NULL, &now) == 0 && now.sa_handler == SIG_DFL)
            sigdelset(&all, deadly[i]); /* and what would simply end us still may, while we sleep */
    }
    sigprocmask(SIG_SETMASK, &all, &before);
    if (!s->id->change && !s->cgroup) {
        h->builder = clone_builder(h, 0);
    } else {
        pid_t helper = start_helper(h);
        if (helper < 0)
            err_sys(err, "clone into the cgroup");
        wait_for(helper);
    }
    fd_close(h->stage.started[1]); /* the builder's copy is what the pipe lives by */
    char word = 0;
    struct pollfd p = {.fd = h->stage.started[0], .events = POLLIN};
    bool said = h->builder > 0 && poll(&p, 1, FD_PATIENCE_MS) == 1;
    bool runs = said && read(h->stage.started[0], &word, 1) == 1;
    fd_close(h->stage.started[0]);
    if (!runs && h->builder > 0) { /* dead or stuck: before we look at what it wrote, it is gone */
        kill(h->builder, SIGKILL);
        wait_for(h->builder);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (!runs && err->code == 0)
        err_set(err, ERR_MISSING,
                said || h->builder <= 0 ? "the builder of the jail was killed"
                                        : "the jail was not built within 10 seconds");
    return runs ? 0 : err->code;
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
    h->stage = (struct jail_stage){.spec = s->spec,
                                   .own = &h->own,
                                   .own_rest = &h->own,
                                   .uid = s->id->uid,
                                   .gid = s->id->gid,
                                   .proc = proc,
                                   .own_proc = -1,
                                   .user_limits = -1,
                                   .nest = s->nest,
                                   .cell = s->cell,
                                   .control = {s->control[0], s->control[1]},
                                   .stdio = {s->stdio[0], s->stdio[1], s->stdio[2]},
                                   .channel = s->channel,
                                   .worker = s->worker,
                                   .binds = s->binds,
                                   .quota = -1,
                                   .ruleset = -1,
                                   .listener = -1};
    int r =
        pipe2(h->stage.started, O_CLOEXEC) < 0 ? err_sys(&h->stage.err, "pipe") : run_builder(h);
    if (r < 0) {
        *err = h->stage.err;
        jail_spawn_done(h);
        return r;
    }
    *ret = (struct jail_spawned){
        .nest = h->builder, .layers = h->stage.layers, .refused = h->stage.refused, .memory = h};
    return 0;
}
