/* SPDX-License-Identifier: Apache-2.0 */
/* The fork of a live session: its process clones itself, with variables and all, and the branch gets files,
 * streams and channel of its own. The guest's code has run there, so nothing that happens in it is believed. It
 * is held in a system call while we work (user notification), three times:
 *
 *   1  clone    the session stands still: is it alone, holds it no file open? Its files are copied.
 *               Then this one clone continues; its flags are a register, so they are what we saw.
 *   2  capset   the branch, in a user and a mount namespace of its own, with every capability there and no
 *               use of any: seccomp and Landlock came along. Its files are laid over the session's, its
 *               descriptors replaced, its ids mapped, its init told. Then the call drops its capabilities.
 *   3  capset   again: did it? Does it stand in its own files, hold none of the session's? Only then it
 *               goes on.
 *
 * Why the init above the session is its parent, and no pid namespace of its own: as pid 1 a process ignores its
 * own abort, and one more process above it would share the guest's memory; and both would die with the
 * session's namespace. So session and branches are siblings under one init, which ends with the
 * last of them. What a shared pid namespace would let them do to each other is a signal, and that the
 * supervisor lets pass to oneself only.
 *
 * A branch has the session's listener: the kernel gives one to a chain of filters. Relatives may be in calls, or be
 * forked, at the same time: family.c gives us the calls of this session and of its new branch only, and the
 * supervisors of the others theirs. branch_look.c says which process the new branch is. If anything goes wrong after
 * the clone, the session and this one process are killed, and no relative is.
 *
 * Waits: epoll_wait in wait_call; the session to fork; PATIENCE_MS; the fork fails
 *        fd_send in *; the session or its init: a packet that fits; at once; the fork fails */
#include "jail/branch.h"

#include "base/clock.h"
#include "jail/copy.h"
#include "jail/inside.h"
#include "jail/supervisor/branching.h"
#include "jail/supervisor/running.h"
#include "jail/supervisor/within.h"
#include "sys/fd.h"
#include "sys/kernel.h"
#include "sys/listener.h"
#include "sys/pidfd.h"
#include "wire/msg.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_MS = 3000 }; /* relatives may keep the processors busy */

/* ---- being told ---- */

static int answer(const struct jail_branching *b, uint64_t id, int error, uint32_t flags)
{
    return sys_listener_answer(b->session->listener, id, error, flags);
}

static bool still_held(const struct jail_branching *b, uint64_t id)
{
    return sys_listener_holds(b->session->listener, id);
}

/* Calls of the session, and of its new branch from its first call on, are ours to answer. */
static bool is_of_fork(void *ctx, pid_t pid)
{
    const struct jail_branching *b = ctx;
    return pid == b->guest || (b->branch && pid == b->branch) ||
           (b->cloned && !b->branch && jail_branch_is_new(b, pid));
}

/* ---- waiting for a call ---- */

static int watch(const struct jail_branching *b, int fd, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.fd = fd};
    return epoll_ctl(b->epoll, EPOLL_CTL_ADD, fd, &e);
}

static int watch_session(struct jail_branching *b, struct err *err)
{
    int r = jail_family_join(&b->family, b->session, err);
    if (r < 0)
        return r;
    b->epoll = epoll_create1(EPOLL_CLOEXEC);
    return b->epoll < 0 || watch(b, b->session->listener, EPOLLIN) < 0 ||
                   watch(b, b->session->wake, EPOLLIN | EPOLLET) < 0 ||
                   watch(b, b->session->guest, EPOLLIN) < 0
               ? err_sys(err, "watch the session")
               : 0;
}

/* The next call NR of process PID (0: of either). What else the two try meanwhile is refused; their end is not. */
static int wait_call(struct jail_branching *b, int nr, pid_t pid, union sys_notice *in,
                     struct err *err)
{
    const uint64_t deadline = clock_now_ns() + PATIENCE_MS * CLOCK_NS_PER_MS;
    for (;;) {
        uint64_t now = clock_now_ns();
        struct epoll_event e;
        int left = now < deadline ? (int)((deadline - now) / CLOCK_NS_PER_MS) + 1 : 0;
        int n = left ? epoll_wait(b->epoll, &e, 1, left) : 0;
        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0)
            return err_set(err, ERR_STATE, "the session did not fork within %d seconds",
                           PATIENCE_MS / 1000);
        if (n < 0)
            return err_sys(err, "listen to the session");
        if (e.data.fd == b->session->guest)
            return err_set(err, ERR_MISSING, "the session ended while it was forked");
        if (!jail_family_receive(&b->family, is_of_fork, b, in))
            continue;
        if (in->notif.data.nr == nr && (!pid || (pid_t)in->notif.pid == pid))
            return 0;
        bool ends = in->notif.data.nr == SYS_exit_group;
        (void)answer(b, in->notif.id, ends ? 0 : EPERM,
                     ends ? SECCOMP_USER_NOTIF_FLAG_CONTINUE : 0);
    }
}

/* ---- helpers (within.h) ---- */

static int make_files(void *p)
{
    struct jail_branching *b = p;
    const struct jail_limits *l = &b->session->limits;
    char size[32], inodes[32];
    snprintf(size, sizeof size, "%llu", (unsigned long long)l->disk);
    snprintf(inodes, sizeof inodes, "%llu",
             (unsigned long long)l->inodes + (b->session->laid < 0 ? 3 : JAIL_LAYER_INODES));
    if (jail_within_session(b->session) < 0) {
        err_sys(&b->err, "enter the session's namespaces");
        return 1;
    }
    FD_AUTO fs = fsopen("tmpfs", FSOPEN_CLOEXEC);
    if (fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "size", size, 0) < 0 ||
        fsconfig(fs, FSCONFIG_SET_STRING, "nr_inodes", inodes, 0) < 0 ||
        fsconfig(fs, FSCONFIG_SET_STRING, "mode", "0755", 0) < 0 ||
        fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0 ||
        (b->mount = fsmount(fs, FSMOUNT_CLOEXEC,
                            MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)) < 0 ||
        (b->dir = openat(b->mount, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) {
        err_sys(&b->err, "make the branch's file system");
        return 1;
    }
    return (b->session->laid < 0
                ? jail_copy_tree(b->session->files, b->dir, &b->err)
                : jail_copy_layered(b->session->files, b->session->laid, b->dir, &b->err)) < 0;
}

static int mount_copy(void *p)
{
    struct jail_branching *b = p;
    struct jail_spec defaults;
    char name[24], user[40], mnt[40];
    jail_spec_init(&defaults);
    unsigned long id = (unsigned long)defaults.inner_id;
    snprintf(name, sizeof name, "%d", (int)b->branch);
    snprintf(user, sizeof user, "%s/ns/user", name);
    snprintf(mnt, sizeof mnt, "%s/ns/mnt", name);
    const int own = jail_within_owner(b->session);
    FD_AUTO users = own < 0 ? -1 : openat(b->proc, user, O_RDONLY | O_CLOEXEC);
    FD_AUTO mounts = own < 0 ? -1 : openat(b->proc, mnt, O_RDONLY | O_CLOEXEC);
    /* the map of a namespace is written in the one above it, by whoever has every right there */
    if (users < 0 || mounts < 0 || setns(b->session->guest, CLONE_NEWUSER) < 0)
        err_sys(&b->err, "enter the session's namespaces");
    else if (jail_ns_map(b->proc, name, id, id, id, id) < 0)
        err_sys(&b->err, "map the branch's id");
    else if (setns(users, CLONE_NEWUSER) < 0 || setns(mounts, CLONE_NEWNS) < 0)
        err_sys(&b->err, "enter the branch's namespaces");
    else if (move_mount(b->mount, "", AT_FDCWD, JAIL_OWN, MOVE_MOUNT_F_EMPTY_PATH) < 0)
        err_sys(&b->err, "lay the branch's files over the session's");
    return b->err.code != 0;
}

static int run_helper(struct jail_branching *b, int (*how)(void *), struct err *err)
{
    return jail_within_run(how, b, &b->err, err);
}

/* Upon the same checkout as the session: its upper layer was copied. */
static int lay_branch(struct jail_branching *b, struct err *err)
{
    struct jail_child c = *b->session;
    struct stat st = {0};
    c.guest = b->pidfd;
    c.files = b->dir;
    c.generation++;
    c.laid = c.lower = -1;
    int r = jail_branch_layer(&c, b->session->lower, err);
    b->layers = c.laid;
    b->lower = c.lower;
    FD_AUTO at = openat(b->dir, JAIL_WORKSPACE_IN, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (r == 0 && (at < 0 || fstat(at, &st) < 0))
        r = err_sys(err, "look at the branch's /workspace");
    if (r == 0)
        b->own_overlay = st.st_dev;
    return r == JAIL_LAYER_NONE ? err_set(err, ERR_MISSING, "the branch's /workspace has no layers")
                                : r;
}

/* ---- the three holds ---- */

static int ask_to_fork(const struct jail_branching *b, struct err *err)
{
    char storage[16];
    struct buf frame = {.data = storage, .cap = sizeof storage, .max = sizeof storage - 1};
    struct wire_writer w;
    wire_begin(&w, &frame, WIRE_FORK);
    int r = wire_end(&w);
    struct fd_packet p = {.data = storage, .len = frame.len};
    return r < 0 || fd_send(b->session->channel, &p) < 0 ? err_sys(err, "ask the session to fork")
                                                         : 0;
}

/* *ret_refused: it was told that there will be no fork, and goes on. */
static int hold_clone(struct jail_branching *b, bool *ret_refused, struct err *err)
{
    union sys_notice in = {0};
    for (;;) {
        int r = wait_call(b, SYS_clone, b->guest, &in, err);
        if (r < 0)
            return r;
        if (in.notif.data.args[0] == JAIL_BRANCH_FLAGS && in.notif.data.args[1] == 0)
            break;
        (void)answer(b, in.notif.id, EPERM, 0); /* not the one that was asked for */
    }
    int r = jail_branch_may_fork(b, err);
    if (r == 0)
        r = run_helper(b, make_files, err);
    if (r < 0) {
        *ret_refused = answer(b, in.notif.id, EBUSY, 0) == 0;
        return r;
    }
    b->cloned = true;
    return answer(b, in.notif.id, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE) < 0
               ? err_sys(err, "let the session fork")
               : 0;
}

static int give_descriptors(const struct jail_branching *b, uint64_t id, struct err *err)
{
    for (int i = 0; i < JAIL_STREAMS; i++) {
        struct seccomp_notif_addfd add = {.id = id,
                                          .flags = SECCOMP_ADDFD_FLAG_SETFD,
                                          .srcfd = (uint32_t)b->theirs[i],
                                          .newfd = (uint32_t)i};
        if (ioctl(b->session->listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add) < 0)
            return err_sys(err, "give the branch its descriptors");
    }
    return 0;
}

/* From here on the init above the session waits for the branch, too, and tells its supervisor. */
static int tell_init(const struct jail_branching *b, struct err *err)
{
    char storage[16];
    struct buf frame = {.data = storage, .cap = sizeof storage, .max = sizeof storage - 1};
    struct wire_writer w;
    int fds[2] = {b->pidfd, b->control};
    wire_begin(&w, &frame, WIRE_MEMBER);
    int r = wire_end(&w);
    struct fd_packet p = {.data = storage, .len = frame.len, .fds = fds, .nfds = 2};
    return r < 0 || fd_send(b->session->control, &p) < 0 ? err_sys(err, "tell the init") : 0;
}

/* The session itself comes forward: the kernel refused the clone (a limit on tasks or namespaces). Believed
 * only if there is really nobody more. */
static int clone_failed(const struct jail_branching *b, uint64_t id, struct err *err)
{
    bool true_word = jail_branch_find_new(b) == 0;
    (void)answer(b, id, EPERM, 0);
    return true_word
               ? err_set(err, ERR_STATE, "the kernel refused the fork: too many branches or tasks")
               : err_set(err, ERR_MISSING, "the session did not show the process that it forked");
}

static int hold_first(struct jail_branching *b, bool *ret_failed, struct err *err)
{
    union sys_notice in = {0};
    int r = wait_call(b, SYS_capset, 0, &in, err);
    if (r < 0)
        return r;
    if ((pid_t)in.notif.pid == b->guest) {
        r = clone_failed(b, in.notif.id, err);
        *ret_failed = r == ERR_STATE;
        return r;
    }
    b->branch = (pid_t)in.notif.pid;
    b->pidfd = (int)syscall(SYS_pidfd_open, b->branch, 0);
    if (b->pidfd < 0 || !still_held(b, in.notif.id)) /* is_of_fork saw that it is the new one */
        return err_set(err, ERR_MISSING, "the process that the session showed is not its fork");
    r = run_helper(b, mount_copy, err);
    if (r == 0 && b->session->laid >= 0)
        r = lay_branch(b, err);
    if (r == 0)
        r = give_descriptors(b, in.notif.id, err);
    if (r == 0)
        r = tell_init(b, err);
    if (r == 0 && answer(b, in.notif.id, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE) < 0)
        r = err_sys(err, "let the branch drop its capabilities");
    return r;
}

static int hold_second(struct jail_branching *b, struct err *err)
{
    union sys_notice in = {0};
    int r = wait_call(b, SYS_capset, b->branch, &in, err);
    if (r == 0)
        r = jail_branch_released(b, err);
    if (r == 0 && answer(b, in.notif.id, 0, 0) < 0)
        r = err_sys(err, "let the branch go");
    return r;
}

/* ---- descriptors ---- */

static int make_ends(struct jail_branching *b, struct jail_child *c, struct err *err)
{
    int pair[2], in[2], out[2], errs[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, "descriptors for a branch");
    c->channel = pair[0];
    b->theirs[3] = pair[1];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, "descriptors for a branch");
    c->control = pair[0];
    b->control = pair[1];
    if (pipe2(in, O_CLOEXEC) < 0)
        return err_sys(err, "descriptors for a branch");
    b->theirs[0] = in[0];
    c->in = in[1];
    if (pipe2(out, O_CLOEXEC) < 0)
        return err_sys(err, "descriptors for a branch");
    c->out = out[0];
    b->theirs[1] = out[1];
    if (pipe2(errs, O_CLOEXEC) < 0)
        return err_sys(err, "descriptors for a branch");
    c->err = errs[0];
    b->theirs[2] = errs[1];
    if (fcntl(c->out, F_SETFL, O_NONBLOCK) < 0 || fcntl(c->err, F_SETFL, O_NONBLOCK) < 0)
        return err_sys(err, "descriptors for a branch");
    c->listener = fcntl(b->session->listener, F_DUPFD_CLOEXEC, 0);
    c->init = fcntl(b->session->init, F_DUPFD_CLOEXEC, 0);
    c->calls = fcntl(b->session->calls, F_DUPFD_CLOEXEC, 0);
    c->wake = fcntl(b->session->wake, F_DUPFD_CLOEXEC, 0);
    return c->listener < 0 || c->init < 0 || c->calls < 0 || c->wake < 0
               ? err_sys(err, "descriptors for a branch")
               : 0;
}

static void release_parts(struct jail_branching *b)
{
    for (int i = 0; i < JAIL_STREAMS; i++)
        fd_close(b->theirs[i]);
    fd_close(b->control);
    fd_close(b->mount);
    fd_close(b->dir);
    fd_close(b->layers);
    fd_close(b->lower);
    fd_close(b->pidfd);
    fd_close(b->proc);
    fd_close(b->epoll);
    jail_family_leave(&b->family);
}

/* Finds the new branch if it did not come forward. False: there is none that we could kill and none that we could
 * not. */
static bool find_branch(struct jail_branching *b)
{
    struct err ignored = ERR_INIT;
    pid_t pid = b->pidfd < 0 ? jail_branch_find_new(b) : 0;
    if (pid > 0) {
        b->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
        if (b->pidfd >= 0 && !jail_branch_is_new(b, pid)) { /* dead, and its number another's */
            fd_close(fd_take(&b->pidfd));
            return false;
        }
        (void)tell_init(b, &ignored); /* so that the init reaps it */
    }
    return pid != 0 || b->pidfd >= 0;
}

static void kill_one(int pidfd)
{
    syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
}

/* The fork failed after the clone: the session is not what it was, and its new branch is nobody's. Relatives go on.
 * We look again when the session has been killed: from then on the kernel links no new child of it. */
static void kill_both(struct jail_branching *b)
{
    bool there = find_branch(b);
    kill_one(b->session->guest);
    if (!there)
        there = find_branch(b);
    if (there) /* one that we cannot see: then all of them go */
        kill_one(b->pidfd >= 0 ? b->pidfd : b->session->init);
}

static int prepare(struct jail_branching *b, struct jail_child *c, struct err *err)
{
    struct stat st;
    if (!b->session->session)
        return err_set(err, ERR_STATE, "only a session can be forked");
    if (b->session->generation >= JAIL_GENERATIONS)
        return err_set(err, ERR_STATE, "a fork of a fork, %d deep: start a new session",
                       JAIL_GENERATIONS);
    b->proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    b->guest = sys_pidfd_pid(b->session->guest);
    if (b->proc < 0 || fstat(b->session->files, &st) < 0)
        return err_sys(err, "look at the session");
    if (!b->guest)
        return err_set(err, ERR_MISSING, "the session has ended");
    b->files = st.st_dev;
    FD_AUTO at = openat(b->session->files, JAIL_WORKSPACE_IN, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (b->session->laid >= 0 && (at < 0 || fstat(at, &st) < 0))
        return err_sys(err, "look at the session's /workspace");
    b->overlay = b->session->laid < 0 ? 0 : st.st_dev;
    FD_AUTO ns = jail_branch_open(b, b->guest, "ns/user", O_RDONLY);
    if (ns < 0 || fstat(ns, &b->user_ns) < 0)
        return err_sys(err, "look at the session's user namespace");
    int r = watch_session(b, err);
    if (r == 0)
        r = make_ends(b, c, err);
    /* Whoever forks may be stopped in the middle of it; the branch's init finds its deadline when it is told of it. */
    uint64_t until = clock_now_ns() + JAIL_GIVE_BACK_MS * CLOCK_NS_PER_MS;
    if (r == 0 && (jail_child_deadline(b->session->control, until) < 0 ||
                   jail_child_deadline(c->control, until) < 0))
        r = err_sys(err, "set a clock for the fork");
    return r;
}

int jail_branch(const struct jail_child *session, struct jail_child *ret_branch, struct err *err)
{
    struct jail_child c = JAIL_CHILD_NONE;
    struct jail_branching b = {.session = session,
                               .pidfd = -1,
                               .proc = -1,
                               .family = JAIL_FAMILY_NONE,
                               .epoll = -1,
                               .mount = -1,
                               .dir = -1,
                               .layers = -1,
                               .lower = -1,
                               .theirs = {-1, -1, -1, -1},
                               .control = -1};
    int r = prepare(&b, &c, err);
    bool untouched = r < 0;
    if (r == 0)
        r = ask_to_fork(&b, err);
    if (r == 0)
        r = hold_clone(&b, &untouched, err);
    if (r < 0 && untouched && err_is_host(err))
        err->code = r = ERR_STATE; /* we lack something, and it had no part in that: it goes on */
    bool failed = false;
    if (r == 0)
        r = hold_first(&b, &failed, err);
    if (r == 0)
        r = hold_second(&b, err);
    if (r < 0 && b.cloned && !failed) {
        kill_both(&b);
        err->code = r = ERR_MISSING;
    }
    if (r == 0) {
        c.guest = fd_take(&b.pidfd);
        c.files = fd_take(&b.dir);
        c.laid = fd_take(&b.layers);
        c.lower = fd_take(&b.lower);
        c.tag = session->tag;
        c.session = true;
        c.generation = session->generation + 1;
        c.limits = session->limits;
        c.layers = session->layers;
        memcpy(c.filter, session->filter, sizeof c.filter);
        *ret_branch = c;
    } else {
        jail_child_close(&c);
    }
    release_parts(&b);
    return r;
}
