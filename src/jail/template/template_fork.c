/* SPDX-License-Identifier: Apache-2.0 */
/* The template's side of making a child: descriptors, the builder's stack, and the wait until the launcher is
 * cloned. The next child's builder is there before its order is: its namespaces are a fifth of the way. While a builder works, the template sleeps, since both use the same memory and the same errno.
 * A launcher has memory of its own: while it locks itself, the next child can be begun. The stacks lie in one map that children do not inherit, so a child neither sees nor
 * pays for its siblings.
 *
 * Waits: poll in wait_word; a builder; FD_PATIENCE_MS; the child is not built
 *        waitpid in drop_next; a builder; none (the kernel's own: it was killed); gone
 *        send in spawn; one byte that fits; at once; an error
 *        write in take_locked; one byte that fits; at once; an error
 *        fd_receive in take_locked; nobody: poll said that it is there; at once; the child is not built */
#include "jail/template/template_fork.h"

#include "jail/inside.h"
#include "sys/fd.h"
#include "wire/msg.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DEEPER = 64 * 1024 }; /* where a launcher starts on our stack: below anything we may use */

__attribute__((noinline)) char *jail_fork_launcher_stack(void)
{
    return (char *)((uintptr_t)__builtin_frame_address(0) & ~(uintptr_t)63) - DEEPER;
}

static void file_system(const struct jail_limits *l, char ret_options[JAIL_BUILD_OPTIONS])
{
    memset(ret_options, 0, JAIL_BUILD_OPTIONS);
    /* the root and the two folders are ours */
    snprintf(ret_options, JAIL_BUILD_OPTIONS, "mode=0755,size=%llu,nr_inodes=%llu",
             (unsigned long long)l->disk, (unsigned long long)l->inodes + 3);
}

/* Whether ids beside our own are mapped here: for those the holder gave us the rights, too. */
static bool has_ids(int proc)
{
    char map[128];
    unsigned long inside, outside, count;
    return fd_read_file(proc, "self/uid_map", map, sizeof map) > 0 &&
           sscanf(map, "%lu %lu %lu", &inside, &outside, &count) == 3 && count == JAIL_TEMPLATE_IDS;
}

/* The owner of a user namespace has every right in it, so for what it does to a child the template is that child for a
 * moment, and otherwise has no right over it; 0: itself again. The kernel forgets at each change that we may be looked
 * into, as a builder that writes its id map in our memory must be, and that we die with our init. */
static int act_as(const struct jail_fork *n, unsigned id)
{
    const long keep = -1;
    if (!n->ids)
        return 0;
    const bool changed = id ? syscall(SYS_setresgid, keep, (long)id, keep) == 0 &&
                                  syscall(SYS_setresuid, keep, (long)id, keep) == 0
                            : syscall(SYS_setresuid, keep, 0L, keep) == 0 &&
                                  syscall(SYS_setresgid, keep, 0L, keep) == 0;
    base_assert(changed || id); /* as somebody else it must not go on */
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    return changed ? 0 : -1;
}

static int start(struct jail_fork *n, struct err *err)
{
    *n = (struct jail_fork){
        .proc = JAIL_FD_TEMPLATE_PROC,
        .ruleset = JAIL_FD_TEMPLATE_RULESET,
        .limits = JAIL_FD_TEMPLATE_LIMITS,
        .next = {.init = -1, .ends = {{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}}}};
    n->ids = has_ids(n->proc);
    jail_attest_before(&n->own, n->proc, JAIL_KIND_TEMPLATE);
    /* An object of our IPC namespace: a child that finds it has none of its own. */
    n->own.queue = msgget(IPC_PRIVATE, 0600) + 1;
    if (n->own.queue <= 0)
        return err_sys(err, "a message queue, which children must not find");
    /* A clone that is not glibc's fork must set the number that pthread locks take for the owner. */
    if (prctl(PR_GET_TID_ADDRESS, &n->tid) < 0 || !n->tid || *n->tid != gettid())
        return err_set(
            err, ERR_MISSING,
            "templates need a kernel with CONFIG_CHECKPOINT_RESTORE (PR_GET_TID_ADDRESS)");
    struct jail_spec spec;
    jail_spec_init(&spec);
    file_system(&spec.limits, n->usual);
    size_t size = (size_t)JAIL_BUILDER_STACK * JAIL_CHILDREN;
    n->stacks = mmap(NULL, size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (n->stacks == MAP_FAILED || madvise(n->stacks, size, MADV_DONTFORK) < 0)
        return err_sys(err, "memory for the stacks of builders");
    (void)madvise(n->stacks, size, MADV_NOHUGEPAGE); /* a kernel without huge pages says no */
    return 0;
}

int jail_fork_open(struct jail_fork **ret, struct err *err)
{
    static struct jail_fork fork;
    *ret = &fork;
    return fork.stacks ? 0 : start(&fork, err);
}

static bool one_thread(const struct jail_fork *n)
{
    struct stat st;
    return fstatat(n->proc, "self/task", &st, 0) == 0 && st.st_nlink == 3;
}

static size_t free_slot(struct jail_fork *n)
{
    for (size_t i = 0; i < n->used; i++)
        if (!n->builders[i])
            return i;
    return n->used < JAIL_CHILDREN ? n->used++ : JAIL_CHILDREN;
}

void jail_fork_reap(struct jail_fork *n)
{
    pid_t pid;
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
        for (size_t i = 0; i < n->used; i++)
            if (n->builders[i] == pid)
                n->builders[i] = 0;
}

/* ---- descriptors ---- */

enum { OURS, THEIRS };

static int make_ends(struct jail_ends *e, struct err *err)
{
    int on = 1;
    *e = (struct jail_ends){{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, e->channel) < 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, e->control) < 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, e->ready) < 0 ||
        setsockopt(e->ready[OURS], SOL_SOCKET, SO_PASSCRED, &on, sizeof on) < 0 ||
        pipe2(e->out, O_CLOEXEC) < 0 || pipe2(e->err, O_CLOEXEC) < 0 ||
        pipe2(e->in, O_CLOEXEC) < 0 || fcntl(e->out[OURS], F_SETFL, O_NONBLOCK) < 0 ||
        fcntl(e->err[OURS], F_SETFL, O_NONBLOCK) < 0)
        return err_sys(err, "descriptors for a child");
    int reader = e->in[0]; /* the one pipe that we write */
    e->in[0] = e->in[1];
    e->in[1] = reader;
    return 0;
}

static void close_ends(struct jail_ends *e, int side)
{
    int *all[] = {e->channel, e->control, e->ready, e->in, e->out, e->err};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        fd_close(all[i][side]);
        all[i][side] = -1;
    }
}

/* ---- one child ---- */

/* Until the builder has said WORD, or is dead: only then the memory is ours again. The launcher may even
 * speak before it has said the last one; what it says is for jail_fork_finish. */
static int wait_word(struct jail_fork *n, char want, struct err *err)
{
    const int ready = n->next.ends.ready[OURS];
    char word = 0;
    struct pollfd p[2] = {{.fd = ready, .events = POLLIN}, {.fd = n->next.init, .events = POLLIN}};
    if (poll(p, 2, FD_PATIENCE_MS) <= 0)
        return err_set(err, ERR_MISSING, "a child was not built " JAIL_TOO_LATE);
    if (recv(ready, &word, 1, MSG_PEEK | MSG_DONTWAIT) == 1) {
        if (word == want && recv(ready, &word, 1, MSG_DONTWAIT) != 1)
            return err_sys(err, "listen to a builder");
        return 0;
    }
    *err = n->building.err; /* it is dead, and what it wrote in our memory is all there is */
    return err->code ? err->code : err_set(err, ERR_MISSING, "the builder of a child died");
}

static void order_to_spec(const struct jail_child_spec *order, struct jail_spec *spec)
{
    jail_spec_init(spec);
    spec->kind = JAIL_KIND_CHILD;
    spec->memory_by_rlimit = true;
    if (!order)
        return;
    spec->branches = order->session;
    spec->filter = order->filter;
    spec->limits = order->limits;
}

/* The builder is cloned with every signal blocked, and stays so. */
static int clone_builder(struct jail_fork *n, struct err *err)
{
    struct jail_spec spec;
    char *top = n->stacks + (n->next.slot + 1) * JAIL_BUILDER_STACK;
    order_to_spec(NULL, &spec); /* no order changes them */
    /* the network is the template's, and empty: nothing is gained by making some later */
    int flags = CLONE_VM | CLONE_PIDFD | SIGCHLD |
                (int)(jail_ns_outer_flags(&spec) | jail_ns_later_flags(&spec));
    /* Until its next word, since a change of ids in the middle would shut /proc to it. */
    pid_t pid = act_as(n, n->building.id) < 0
                    ? -1
                    : clone(jail_child_build, top, flags, &n->building, &n->next.init);
    if (pid < 0) {
        err_sys(err, "create the namespaces of a child");
        return err_layer(err, "process");
    }
    n->builders[n->next.slot] = n->next.pid = pid;
    close_ends(&n->next.ends, THEIRS);
    return 0;
}

/* Nothing may run on in memory that is about to be used again. */
static void drop_next(struct jail_fork *n)
{
    if (n->next.pid) {
        (void)act_as(n, n->building.id);
        syscall(SYS_pidfd_send_signal, n->next.init, SIGKILL, NULL, 0);
        (void)act_as(n, 0);
        if (n->builders[n->next.slot] == n->next.pid) { /* not reaped yet */
            while (waitpid(n->next.pid, NULL, 0) < 0 && errno == EINTR)
                ;
            n->builders[n->next.slot] = 0;
        }
        fd_close(fd_take(&n->next.init));
    }
    n->next.pid = 0;
    close_ends(&n->next.ends, OURS);
    close_ends(&n->next.ends, THEIRS);
}

/* Everything but the builder. Nothing of the interpreter runs from here to the order. */
static int open_next(struct jail_fork *n, struct err *err)
{
    struct jail_ends *e = &n->next.ends;
    drop_next(n); /* it died */
    if (!one_thread(n))
        return err_set(err, ERR_STATE, "the template has more than one thread");
    n->next.slot = free_slot(n);
    if (n->next.slot == JAIL_CHILDREN)
        return err_set(err, ERR_LIMIT, "this template has %d children", JAIL_CHILDREN);
    int r = make_ends(e, err);
    n->building = (struct jail_building){
        .fork = n,
        .id = n->ids ? (unsigned)n->next.slot + 1 : 0,
        .fds = {e->in[THEIRS], e->out[THEIRS], e->err[THEIRS], e->channel[THEIRS], e->ready[THEIRS],
                e->control[THEIRS], n->proc, n->ruleset, n->limits}};
    memcpy(n->building.mounted, n->usual, sizeof n->usual);
    return r;
}

static bool next_waits(const struct jail_fork *n)
{
    return n->next.pid && n->builders[n->next.slot] == n->next.pid;
}

void jail_fork_prepare(struct jail_fork *n)
{
    struct err ignored = ERR_INIT;
    if (next_waits(n))
        return;
    const bool made = open_next(n, &ignored) == 0 && clone_builder(n, &ignored) == 0 &&
                      wait_word(n, JAIL_BUILD_MADE, &ignored) == 0;
    (void)act_as(n, 0);
    if (!made)
        drop_next(n);
}

static int spawn(struct jail_fork *n, const struct jail_spec *spec, struct err *err)
{
    static const char order = JAIL_BUILD_ORDER;
    struct jail_building *b = &n->building;
    b->spec = spec;
    b->stack = jail_fork_launcher_stack();
    file_system(&spec->limits, b->options);
    memcpy(n->usual, b->options, sizeof n->usual);
    if (!n->next.pid) {
        memcpy(b->mounted, b->options, sizeof b->mounted);
        if (clone_builder(n, err) < 0)
            return err->code;
    } else if (send(n->next.ends.ready[OURS], &order, 1, MSG_NOSIGNAL) != 1) {
        return err_sys(err, "wake the builder of a child");
    }
    return wait_word(n, JAIL_BUILD_CLONED, err);
}

int jail_fork_begin(struct jail_fork *n, const struct jail_child_spec *order,
                    struct jail_expected *ret, struct err *err)
{
    struct jail_spec spec;
    struct jail_ends *e = &n->next.ends;
    order_to_spec(order, &spec);
    int r = jail_spec_check(&spec, err);
    if (r == 0 && !next_waits(n))
        r = open_next(n, err);
    if (r == 0) {
        if (n->hooks->before_fork)
            n->hooks->before_fork(n->hooks->ctx);
        r = spawn(n, &spec, err);
        (void)act_as(n, 0);
        if (n->hooks->after_fork)
            n->hooks->after_fork(n->hooks->ctx);
        if (r < 0)
            drop_next(n);
    }
    if (r < 0)
        return r;
    struct jail_child c = {.channel = fd_take(&e->channel[OURS]),
                           .control = fd_take(&e->control[OURS]),
                           .in = fd_take(&e->in[OURS]),
                           .out = fd_take(&e->out[OURS]),
                           .err = fd_take(&e->err[OURS]),
                           .init = fd_take(&n->next.init),
                           .listener = -1,
                           .guest = -1,
                           .files = -1,
                           .calls = -1,
                           .wake = -1,
                           .laid = -1,
                           .lower = -1,
                           .tag = order->tag,
                           .session = order->session,
                           .limits = order->limits};
    snprintf(c.filter, sizeof c.filter, "%s", order->filter);
    *ret =
        (struct jail_expected){.child = c, .id = n->building.id, .ready = fd_take(&e->ready[OURS])};
    n->next.pid = 0;
    return 0;
}

/* ---- its end: the child is locked ---- */

static int get_fd(int pidfd, int number)
{
    return (int)syscall(SYS_pidfd_getfd, pidfd, number, 0);
}

/* The launcher's word, and what only it and the builder have. */
static int take_locked(const struct jail_expected *e, struct jail_child *c, struct err *err)
{
    char frame[4096];
    struct fd_packet packet = {.data = frame, .len = sizeof frame};
    struct wire_reader r;
    int got = fd_receive(e->ready, &packet);
    if (got <= 0)
        return err_set(err, ERR_MISSING, "a child died before it was locked");
    if (wire_open(&r, frame, packet.len, err) < 0)
        return err->code;
    if (r.type != WIRE_LOCKED)
        return err_set(err, ERR_FORMAT, "%s from a child that is being locked", wire_name(r.type));
    int64_t code = wire_get_int(&r);
    struct err why = ERR_INIT;
    wire_get_text(&r, why.layer, sizeof why.layer);
    wire_get_text(&r, why.msg, sizeof why.msg);
    if (code < 0) {
        *err = why;
        return err->code = (int)code;
    }
    jail_layers_read(&r, &c->layers);
    c->guest = (int)syscall(SYS_pidfd_open, packet.sender, 0);
    c->listener = c->guest < 0 ? -1 : get_fd(c->guest, JAIL_BUILD_LISTENER);
    c->files = get_fd(c->init, JAIL_BUILD_FILES);
    if (c->listener < 0 || c->files < 0)
        return err_sys(err, "take over the child's descriptors");
    return write(e->ready, "", 1) != 1 ? err_sys(err, "let the child go") : 0;
}

void jail_fork_kill(const struct jail_fork *n, const struct jail_expected *e)
{
    (void)act_as(n, e->id);
    jail_child_kill(&e->child);
    (void)act_as(n, 0);
}

int jail_fork_finish(const struct jail_fork *n, struct jail_expected *e,
                     struct jail_child *ret_child, struct err *err)
{
    struct jail_child c = e->child;
    int r = act_as(n, e->id) < 0 ? err_sys(err, "take the id of a child") : take_locked(e, &c, err);
    (void)act_as(n, 0);
    fd_close(e->ready);
    if (r < 0) { /* its builder is waited for as every other one */
        jail_fork_kill(n, e);
        jail_child_close(&c);
        return r;
    }
    *ret_child = c;
    return 0;
}
