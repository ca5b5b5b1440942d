/* SPDX-License-Identifier: Apache-2.0 */
/* A child of a template from its first instruction to the guest's first byte. Two processes, as for a
 * program (build.c, apply.c), and the same locks in the same order; what differs is why:
 *
 *   template --clone, shared memory--> builder, pid 1    id map; with an order its own files on /live/own
 *     builder --clone, memory copied--> launcher, pid 2    locks, proof, then `entry` instead of execve
 *
 * The root is the template's: the mounts that a new mount namespace copies are locked in it. The memory is
 * copied, so what the launcher has to say it sends; and it stands on the template's own stack, further
 * down than the template is, since that is the one that the interpreter knows and that can grow.
 * Descriptors are closed first of all: with them every sibling's sockets are gone.
 *
 * Waits: read in *; the template's word, in the builder of a child; none (the template kills it after
 *          FD_PATIENCE_MS, or it waits for an order by design); ends with the template
 *        write in *; the template to read one byte; at once; goes on
 *        CLONE_VFORK in use_up_number; a process that ends at once; none (the kernel's own); goes on
 *        waitpid in use_up_number; the same process, which has ended; none (the kernel's own); goes on */
#include "jail/template/template_fork.h"

#include "jail/inside.h"
#include "sys/raw.h"
#include "wire/msg.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the launcher ---- */

int jail_child_lock(struct jail_stage *st, bool has_listener)
{
    const int last = has_listener ? JAIL_BUILD_LISTENER : JAIL_FD_CHANNEL;
    struct jail_proof proof;
    int status;
    if (jail_apply_identity(st, &proof, &status) || jail_apply_locks(st, &proof))
        return 1;
    jail_attest_after(&proof, st->spec, status);
    /* The listener onto its place; left then are the streams, the channel and what the template waits at. */
    int leftover = dup(0);
    if ((has_listener && dup2(st->listener, last) < 0) ||
        close_range((unsigned)last + 1, ~0U, 0) < 0) {
        err_sys(&st->err, "close_range");
        err_layer(&st->err, "process");
        return 1;
    }
    proof.acts[JAIL_ACT_leftover] = fcntl(leftover, F_GETFD) < 0;
    return jail_apply_last(st, &proof);
}

/* The template's answer. Closing its end while the builder's own word lies there unread resets ours: told
 * first, and the answer is behind it. */
static bool hear(int ready)
{
    char word;
    ssize_t n;
    do
        n = read(ready, &word, 1);
    while (n < 0 && (errno == ECONNRESET || errno == EINTR));
    return n == 1;
}

static int launch(void *p)
{
    struct jail_building *b = p;
    const struct jail_template_hooks *hooks = b->fork->hooks;
    struct jail_stage st = {.spec = b->spec,
                            .own = &b->fork->own,
                            .proc = JAIL_BUILD_PROC,
                            .ruleset = JAIL_BUILD_RULESET,
                            .user_limits = JAIL_BUILD_LIMITS,
                            .listener = -1};
    int r = jail_child_lock(&st, true);
    if (r && st.err.code == 0)
        err_set(&st.err, ERR_MISSING, "the child died while it was locked");
    /* The template takes the listener before it answers. */
    if (jail_apply_say(JAIL_BUILD_READY, &st) < 0 || r || !hear(JAIL_BUILD_READY) ||
        close_range(JAIL_FD_CHANNEL + 1, ~0U, 0) < 0)
        return 1; /* an exit that is notified, where nobody listens: the builder ends it */
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    _exit(hooks->entry(hooks->ctx)); /* with whatever threads it has */
}

/* ---- the builder ---- */

#define OWN_FLAGS (MS_NOSUID | MS_NODEV | MS_NOEXEC)

static int own_files(const struct jail_building *b, struct err *err)
{
    if (mount("cordon", JAIL_OWN, "tmpfs", OWN_FLAGS, b->mounted) < 0)
        return err_sys(err, "mount the child's file system");
    int dir = open(JAIL_OWN, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir != JAIL_BUILD_FILES) /* the lowest that is free */
        return err_sys(err, "open the child's file system");
    if (mkdirat(dir, "workspace", 0755) < 0 || mkdirat(dir, "tmp", 01777) < 0 ||
        fchmodat(dir, "tmp", 01777, 0) < 0)
        return err_sys(err, "mkdir in the child's file system");
    return 0;
}

/* Until there is an order the template is awake: plain calls, and no errno. */
static bool hear_order(void)
{
    static const char made = JAIL_BUILD_MADE;
    char word = 0;
    raw_syscall(SYS_write, JAIL_BUILD_READY, (long)&made, 1, 0, 0);
    return raw_syscall(SYS_read, JAIL_BUILD_READY, (long)&word, 1, 0, 0) == 1 &&
           word == JAIL_BUILD_ORDER;
}

static int end_at_once(void *ignored)
{
    (void)ignored;
    return 0;
}

/* Children are pid 2. What imports is not: a library that keeps its pid, to notice a fork, would not notice. */
static int use_up_number(const struct jail_building *b)
{
    pid_t pid = clone(end_at_once, b->stack, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
    return pid < 0 || waitpid(pid, NULL, 0) != pid ? -1 : 0;
}

int jail_child_build(void *p)
{
    struct jail_building *b = p;
    const int count = sizeof b->fds / sizeof *b->fds;
    int guest = -1;
    if (jail_fds_place(0, b->fds, (size_t)count, NULL, 0, &b->err) < 0 ||
        close_range((unsigned)count, ~0U, 0) < 0) {
        err_layer(&b->err, "process");
        return 1;
    }
    /* the id that the template had when it cloned us; from here on we have no other */
    if (jail_ns_map_self(JAIL_BUILD_PROC, 0, b->id, 0, b->id) < 0 ||
        (b->id && (syscall(SYS_setresgid, 0, 0, 0) < 0 || syscall(SYS_setresuid, 0, 0, 0) < 0))) {
        err_sys(&b->err, "map the id of the child's user namespace");
        err_layer(&b->err, "process");
        return 1;
    }
    if (own_files(b, &b->err) < 0) {
        err_layer(&b->err, "filesystem");
        return 1;
    }
    if (!b->spec && !hear_order())
        return 1; /* the template is gone, or has no use for us */
    if (strcmp(b->mounted, b->options) != 0 &&
        mount("cordon", JAIL_OWN, "tmpfs", MS_REMOUNT | OWN_FLAGS, b->options) < 0) {
        err_sys(&b->err, "change the size of the child's file system");
        err_layer(&b->err, "filesystem");
        return 1;
    }
    int flags = SIGCHLD | CLONE_PIDFD | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID |
                (b->load ? CLONE_VM : 0) | (int)jail_ns_inner_flags(b->spec);
    if (b->load && use_up_number(b) < 0) {
        err_sys(&b->err, "a process before the one that imports");
        err_layer(&b->err, "process");
        return 1;
    }
    /* From here on the template may be awake: plain calls only, and no errno. */
    if (clone(b->load ? jail_load_launch : launch, b->stack, flags, b, &guest, NULL, b->fork->tid) <
        0) {
        err_sys(&b->err, "the launcher, in a user namespace of its own");
        err_layer(&b->err, "process");
        return 1;
    }
    static const char cloned = JAIL_BUILD_CLONED;
    raw_syscall(SYS_write, JAIL_BUILD_READY, (long)&cloned, 1, 0, 0);
    raw_syscall(SYS_close_range, 0, JAIL_BUILD_CONTROL - 1, 0, 0, 0);
    raw_syscall(SYS_close_range, JAIL_BUILD_CONTROL + 1, JAIL_BUILD_LIMITS, 0, 0, 0);
    jail_child_init(JAIL_BUILD_CONTROL, guest);
}
