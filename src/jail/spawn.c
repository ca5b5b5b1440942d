/* cordon-nest is cloned straight into its namespaces, sharing our memory until it execs (vfork): no page
 * is copied. As root a child first becomes the guest's id for good and clones from there, so that the
 * id map it writes for itself is its own to write, and nothing above the guest is root. The child is
 * handed to us (CLONE_PARENT), so it is ours to wait for in every case. */
#include "jail/outside.h"

#include "jail/inside.h"
#include "sys/fd.h"
#include "sys/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NEST_CONTROL = 3, NEST_NET = 4 }; /* its descriptors; see prog/nest/main.c */

struct stage {
    const struct jail_spawn *s;
    int proc;
    int net[2]; /* from the maker of the network to cordon-nest */
    pid_t nest; /* set by whoever cloned it */
    int error;  /* errno of the first step that failed */
    const char *step;
};

static int fail(struct stage *st, const char *step)
{
    st->error = errno;
    st->step = step;
    return 1;
}

/* Shares our memory but not our descriptors, and lives until it has handed the namespace over. */
static int start_net_maker(struct stage *st)
{
    static char stack[16 * 1024] __attribute__((aligned(16)));
    static struct jail_net_maker maker;
    maker = (struct jail_net_maker){.proc = st->proc, .out = st->net[1]};
    return clone(jail_net_make, stack + sizeof stack, CLONE_VM | SIGCHLD, &maker);
}

/* In the new namespaces, our memory, an own descriptor table: only plain system calls from here on. */
static int become_nest(void *p)
{
    struct stage *st = p;
    static char name[] = "cordon-nest", word[] = "--from-cordon";
    static char *const argv[] = {name, word, NULL}, *const env[] = {NULL};
    sigset_t none;
    sigemptyset(&none);
    if (st->s->spec->mode == JAIL_FULL &&
        (jail_ns_no_setgroups(st->proc) < 0 ||
         jail_ns_map_self(st->proc, 0, st->s->id->uid, 0, st->s->id->gid) < 0))
        return fail(st, "map the id of the jail's user namespace");
    if (st->net[1] >= 0 && start_net_maker(st) < 0)
        return fail(st, "make the network namespace");
    int control = fcntl(st->s->control, F_DUPFD_CLOEXEC, 64);
    int nest = fcntl(st->s->nest, F_DUPFD_CLOEXEC, 64), net = fcntl(st->net[0], F_DUPFD_CLOEXEC, 64);
    if (control < 0 || nest < 0 || dup2(control, NEST_CONTROL) < 0 ||
        (net >= 0 && dup2(net, NEST_NET) < 0))
        return fail(st, "hand over the sockets");
    sigprocmask(SIG_SETMASK, &none, NULL);
    execveat(nest, "", argv, env, AT_EMPTY_PATH);
    return fail(st, "run cordon-nest");
}

static pid_t clone_nest(struct stage *st, int extra)
{
    static char stack[64 * 1024] __attribute__((aligned(16)));
    int flags = CLONE_VM | CLONE_VFORK | SIGCHLD | extra | (int)jail_ns_outer_flags(st->s->spec);
    pid_t pid = clone(become_nest, stack + sizeof stack, flags, st);
    if (pid < 0)
        fail(st, "create the namespaces");
    return pid;
}

/* Root only: give up root for good, then clone. Raw calls: glibc's wrappers would tell other threads of
 * the process whose memory this still is. */
static int step_down(void *p)
{
    struct stage *st = p;
    const struct jail_identity *id = st->s->id;
    if (id->change &&
        (syscall(SYS_setgroups, 0, NULL) < 0 ||
         syscall(SYS_setresgid, id->gid, id->gid, id->gid) < 0 ||
         syscall(SYS_setresuid, id->uid, id->uid, id->uid) < 0))
        return fail(st, "become the guest's id");
    /* The change made us undumpable, and /proc/self/uid_map root's; cordon-nest undoes this. */
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    st->nest = clone_nest(st, CLONE_PARENT);
    return 0;
}

static pid_t start_stepping_down(struct stage *st)
{
    static char stack[64 * 1024] __attribute__((aligned(16)));
    if (st->s->cgroup < 0)
        return clone(step_down, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, st);
    /* Born in the cgroup: only clone3 can, and it cannot be given a stack from C: a plain copy. */
    struct sys_clone_args args = {.flags = CLONE_INTO_CGROUP,
                                  .exit_signal = SIGCHLD,
                                  .cgroup = (uint64_t)st->s->cgroup};
    pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);
    if (pid == 0)
        _exit(step_down(st));
    return pid;
}

int jail_spawn_nest(const struct jail_spawn *s, pid_t *ret_pid, struct err *err)
{
    sigset_t all, before;
    FD_AUTO proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (proc < 0)
        return err_sys(err, "open /proc");
    /* Shared, since a copy of us may have to tell us the pid. */
    struct stage *st = mmap(NULL, sizeof *st, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (st == MAP_FAILED)
        return err_sys(err, "mmap");
    *st = (struct stage){.s = s, .proc = proc, .net = {-1, -1}, .nest = -1};
    if (s->spec->mode == JAIL_FULL && !jail_off(s->spec, net) &&
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, st->net) < 0) {
        munmap(st, sizeof *st);
        return err_sys(err, "socketpair");
    }
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    int r = 0;
    if (!s->id->change && s->cgroup < 0) { /* also when we have stepped down ourselves */
        st->nest = clone_nest(st, 0);
    } else {
        pid_t helper = start_stepping_down(st);
        if (helper < 0)
            fail(st, "clone");
        while (helper > 0 && waitpid(helper, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    fd_close(st->net[0]);
    fd_close(st->net[1]);
    if (st->error) {
        if (st->nest > 0)
            while (waitpid(st->nest, NULL, 0) < 0 && errno == EINTR)
                ;
        errno = st->error;
        err_sys(err, "%s", st->step);
        r = err_layer(err, "process");
    } else {
        *ret_pid = st->nest;
    }
    munmap(st, sizeof *st);
    return r;
}
