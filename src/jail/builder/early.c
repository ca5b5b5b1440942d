/* SPDX-License-Identifier: Apache-2.0 */
/* A worker is ours until it has read the first byte of a program, so it need not wait outside until its root
 * is built: it is executed first, and while the loader puts it together the builder builds the root around
 * it. Then it closes the locks itself, with the functions and in the order of apply.c, before it starts its
 * interpreter; nothing of the guest comes to it before the builder has its proof.
 *
 * `make gains GAINS="--alone EARLY"`: a cold run takes 3 to 5 % longer without it (2 CPUs, aarch64).
 *
 *   builder                                    worker
 *   id map, session, rlimits
 *   clone, pid 2 ----------------------------> execve, by descriptor; variables that are ours
 *   private root: its root, too                loader: /usr is the same in both roots
 *   rules, network ----------- SETUP --------> main
 *                <------------- here ---------
 *   old root gone                              network, inner user namespace, locks, proof
 *                <------------ LOCKED --------
 *   listener taken ------------ go ----------> its interpreter started: READY
 *
 * Before its first word to the builder it may look up a path; after it, it does not until the old root is
 * gone. What it has of the old root then is the files that its loader mapped, and no way to a folder.
 *
 * Waits: poll in hear; the worker; FD_PATIENCE_MS; the jail is not built
 *        waitpid in gone; the worker; none (the kernel's own: it was killed); its error
 *        write in *; one byte that fits; at once; an error
 *        read in jail_entered; the builder, in the worker; none (the builder gives up after FD_PATIENCE_MS
 *          and kills it); ends
 *        fd_send in send_setup; the worker: a packet that fits; at once; an error
 *        fd_receive in hear; nobody: poll said that it is there; at once; an error
 *        fd_receive in receive_setup; the builder, in the worker; none (the builder gives up after
 *          FD_PATIENCE_MS and kills it); ends */
#include "jail/enter.h"

#include "jail/inside.h"
#include "jail/run.h"
#include "jail/template.h"
#include "sys/clone.h"
#include "sys/cpu.h"
#include "sys/fd.h"
#include "sys/raw.h"
#include "wire/msg.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { /* descriptors that come with SETUP */
       SETUP_PROC,
       SETUP_RULESET,
       SETUP_NET,
       SETUP_CONTROL,
       SETUP_FDS
};
enum { /* what a worker has besides its streams and its channel until it has heard go */
       AT_LISTENER = JAIL_FD_ORDERS + 1,
       AT_CONTROL,
       AT_END
};

/* ---- the builder ---- */

/* In the builder's memory, beside it: plain calls only, and no errno. */
static int execute(void *p)
{
    const struct jail_stage *st = p;
    const int from[] = {st->channel, st->orders[1], st->worker};
    long high[3];
    for (int i = 0; i < 3; i++) /* one may sit on another one's place */
        high[i] = raw_syscall(SYS_fcntl, from[i], F_DUPFD_CLOEXEC, 16, 0, 0);
    raw_syscall(SYS_dup3, high[0], JAIL_FD_CHANNEL, 0, 0, 0);
    raw_syscall(SYS_dup3, high[1], JAIL_FD_ORDERS, 0, 0, 0);
    raw_syscall(SYS_dup3, high[2], JAIL_FD_ORDERS + 1, O_CLOEXEC, 0, 0);
    raw_syscall(SYS_close_range, JAIL_FD_ORDERS + 2, ~0U, 0, 0, 0);
    raw_syscall(SYS_chdir, (long)"/", 0, 0, 0, 0); /* where the new root will be */
    return (int)-raw_syscall(SYS_execveat, JAIL_FD_ORDERS + 1, (long)"", (long)st->spec->argv,
                             (long)st->spec->env, AT_EMPTY_PATH);
}

int jail_early_start(struct jail_stage *st)
{
    static char stack[16 * 1024] __attribute__((aligned(16)));
    struct err *err = &st->err;
    struct sys_clone_args args = {.flags = CLONE_VM,
                                  .exit_signal = SIGCHLD,
                                  .stack = (uint64_t)(uintptr_t)stack,
                                  .stack_size = sizeof stack};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, st->orders) < 0)
        return err_sys(err, "socketpair");
    if (st->stdio[0] < 0 && (st->stdio[0] = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0)
        return err_sys(err, "open /dev/null");
    int r = jail_fds_place(0, st->stdio, 3, NULL, 0, err);
    if (r == 0) {
        jail_apply_session(st->spec);
        r = jail_rlimits_apply(st->spec, err);
        if (r < 0)
            err_layer(err, "resources");
    }
    if (r < 0)
        return r;
    st->early = jail_build_clone(st, &args, 2, execute);
    if (st->early < 0) {
        errno = -st->early;
        err_sys(err, "the worker");
        return err_layer(err, "process");
    }
    sys_cpu_spread_child(st->proc, st->early); /* we have work of our own meanwhile */
    fd_close(st->orders
                 [1]); /* its copy is what the socket lives by; the number it may still read here */
    return 0;
}

static int send_setup(const struct jail_stage *st)
{
    const struct jail_spec *spec = st->spec;
    char storage[6144];
    struct buf b = {.data = storage, .cap = sizeof storage, .max = sizeof storage - 1};
    uint64_t limits[JAIL_LIMIT_COUNT];
    int fds[SETUP_FDS] = {[SETUP_PROC] = st->proc,
                          [SETUP_RULESET] = st->ruleset,
                          [SETUP_NET] = st->net,
                          [SETUP_CONTROL] = st->control[1]};
    struct wire_writer w;
    memcpy(limits, &spec->limits, sizeof limits);
    wire_begin(&w, &b, WIRE_SETUP);
    wire_put_text(&w, spec->filter);
    wire_put_text(&w, spec->cwd);
    wire_put_uint(&w, spec->inner_id);
    wire_put_uint(&w, spec->memory_by_rlimit);
    wire_put_uints(&w, limits, JAIL_LIMIT_COUNT);
    wire_put_uint(&w, st->own->root);
    wire_put_uints(&w, st->own->namespaces, JAIL_PROOF_NAMESPACES);
    if (wire_end(&w) < 0)
        return -1;
    struct fd_packet p = {.data = b.data, .len = b.len, .fds = fds, .nfds = SETUP_FDS};
    return fd_send(st->orders[0], &p);
}

/* The worker's next word. 1: it is there. */
static int hear(struct jail_stage *st, int alive, struct fd_packet *p)
{
    struct pollfd ready[2] = {{.fd = st->orders[0], .events = POLLIN},
                              {.fd = alive, .events = POLLIN}};
    int n = poll(ready, 2, FD_PATIENCE_MS);
    if (n == 0) {
        err_set(&st->err, ERR_MISSING, "the worker was not locked " JAIL_TOO_LATE);
        err_layer(&st->err, "process");
    }
    if (n <= 0 || !(ready[0].revents & POLLIN))
        return -1;
    return fd_receive(st->orders[0], p);
}

static int take_locked(struct jail_stage *st, const struct fd_packet *p)
{
    struct wire_reader r;
    struct err why = ERR_INIT;
    if (wire_open(&r, p->data, p->len, &st->err) < 0 || r.type != WIRE_LOCKED)
        return err_set(&st->err, ERR_FORMAT, "not what a worker says when it is locked");
    int64_t code = wire_get_int(&r);
    wire_get_text(&r, why.layer, sizeof why.layer);
    wire_get_text(&r, why.msg, sizeof why.msg);
    if (code < 0) {
        st->err = why;
        return st->err.code = (int)code;
    }
    jail_layers_read(&r, &st->layers);
    return 0;
}

/* It died, or never came to be. */
static int gone(struct jail_stage *st)
{
    int status = 0;
    kill(st->early, SIGKILL);
    while (waitpid(st->early, &status, 0) < 0 && errno == EINTR)
        ;
    st->early = 0;
    if (st->err.code)
        return st->err.code;
    if (WIFEXITED(status) && WEXITSTATUS(status) > 0)
        jail_tell_exit(WEXITSTATUS(status), &st->err);
    else
        err_set(&st->err, ERR_MISSING,
                "the worker was killed before it was locked; try `cordon doctor`");
    return err_layer(&st->err, "process");
}

int jail_early_finish(struct jail_stage *st, int (*close_doors)(const struct jail_stage *st),
                      pid_t *ret_pid)
{
    char frame[4096];
    struct fd_packet p = {.data = frame, .len = sizeof frame};
    FD_AUTO alive = (int)syscall(SYS_pidfd_open, st->early, 0);
    if (alive < 0 || send_setup(st) < 0 || hear(st, alive, &p) != 1)
        return gone(st);
    int left = close_doors(st); /* with the worker at its locks */
    if (left < 0) {
        err_set(&st->err, ERR_SYS, "leave the host's root: %s", strerror(-left));
        err_layer(&st->err, "filesystem");
        return gone(st);
    }
    p.len = sizeof frame;
    if (hear(st, alive, &p) != 1 || take_locked(st, &p) < 0)
        return gone(st);
    st->listener = (int)syscall(SYS_pidfd_getfd, alive, AT_LISTENER, 0);
    if (st->listener < 0 || write(st->orders[0], "", 1) != 1) {
        if (errno != ESRCH && errno != EPIPE) { /* those are the worker's end: gone() tells of it */
            err_sys(&st->err, "take over the worker's listener");
            err_layer(&st->err, "syscalls");
        }
        return gone(st);
    }
    *ret_pid = st->early;
    return 0;
}

/* ---- the worker ---- */

struct setup {
    struct jail_spec spec;
    struct jail_proof own;
    struct jail_stage stage;
    int fds[SETUP_FDS];
    char filter[32], cwd[4096];
};

static int receive_setup(struct setup *setup, struct err *err)
{
    char frame[6144];
    struct fd_packet p = {.data = frame, .len = sizeof frame, .fds = setup->fds, .nfds = SETUP_FDS};
    struct jail_spec *spec = &setup->spec;
    uint64_t limits[JAIL_LIMIT_COUNT];
    struct wire_reader r;
    if (fd_receive(JAIL_FD_ORDERS, &p) != 1 || p.nfds != SETUP_FDS)
        return err_sys(err, "receive the setup of the jail");
    if (wire_open(&r, frame, p.len, err) < 0 || r.type != WIRE_SETUP)
        return err_set(err, ERR_FORMAT, "not a setup of a jail");
    jail_spec_init(spec);
    wire_get_text(&r, setup->filter, sizeof setup->filter);
    wire_get_text(&r, setup->cwd, sizeof setup->cwd);
    spec->kind = JAIL_KIND_PROGRAM;
    spec->locks_itself = true;
    spec->filter = setup->filter;
    spec->cwd = setup->cwd;
    spec->inner_id = wire_get_uint(&r);
    spec->memory_by_rlimit = wire_get_uint(&r) != 0;
    if (wire_get_uints(&r, limits, JAIL_LIMIT_COUNT) != JAIL_LIMIT_COUNT)
        return err_set(err, ERR_FORMAT, "a setup without limits");
    memcpy(&spec->limits, limits, sizeof limits);
    setup->own.root = wire_get_uint(&r);
    if (wire_get_uints(&r, setup->own.namespaces, JAIL_PROOF_NAMESPACES) != JAIL_PROOF_NAMESPACES)
        return err_set(err, ERR_FORMAT, "a setup without namespaces");
    setup->stage = (struct jail_stage){.spec = spec,
                                       .own = &setup->own,
                                       .proc = setup->fds[SETUP_PROC],
                                       .ruleset = setup->fds[SETUP_RULESET],
                                       .listener = -1};
    return 0;
}

/* The network belongs to the outer user namespace, and so it is entered before the inner one. */
static int move_in(const struct setup *setup, struct err *err)
{
    if (setns(setup->fds[SETUP_NET], CLONE_NEWNET) < 0) {
        err_sys(err, "enter the network namespace");
        return err_layer(err, "network");
    }
    if (unshare((int)jail_ns_inner_flags(&setup->spec)) < 0) {
        err_sys(err, "a user namespace of its own");
        return err_layer(err, "process");
    }
    return 0;
}

static int lock(struct setup *setup)
{
    struct jail_stage *st = &setup->stage;
    struct jail_proof proof;
    int status;
    if (move_in(setup, &st->err) < 0 || jail_apply_identity(st, &proof, &status) ||
        jail_apply_locks(st, &proof))
        return 1;
    jail_attest_after(&proof, st->spec, status);
    int leftover = fcntl(0, F_DUPFD, AT_END);
    if (dup2(st->listener, AT_LISTENER) < 0 || dup2(setup->fds[SETUP_CONTROL], AT_CONTROL) < 0 ||
        close_range(AT_END, ~0U, 0) < 0) {
        err_sys(&st->err, "close_range");
        err_layer(&st->err, "process");
        return 1;
    }
    proof.acts[JAIL_ACT_leftover] = fcntl(leftover, F_GETFD) < 0;
    return jail_apply_last(st, &proof) || jail_apply_tell(AT_CONTROL, &proof) < 0;
}

int jail_enter(struct err *err)
{
    static struct setup setup;
    if (fcntl(JAIL_FD_ORDERS, F_GETFD) < 0)
        return 0;
    if (write(JAIL_FD_ORDERS, "", 1) != 1)
        return err_sys(err, "speak to the builder");
    int r = receive_setup(&setup, err);
    if (r < 0)
        return r;
    struct jail_stage *st = &setup.stage;
    if (lock(&setup) && st->err.code == 0)
        err_set(&st->err, ERR_MISSING, "the worker was not locked");
    if (jail_apply_say(JAIL_FD_ORDERS, st) < 0 || st->err.code)
        return err_set(err, ERR_STATE, "not locked"); /* the builder says why */
    return 0;
}

int jail_entered(struct err *err)
{
    char word = 0;
    if (fcntl(JAIL_FD_ORDERS, F_GETFD) < 0)
        return 0;
    /* The builder has taken the listener and removed the old root before it answers. */
    if (read(JAIL_FD_ORDERS, &word, 1) != 1 || close_range(JAIL_FD_ORDERS, ~0U, 0) < 0)
        return err_set(err, ERR_STATE, "the builder did not let it go");
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    return 0;
}
