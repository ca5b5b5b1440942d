/* SPDX-License-Identifier: Apache-2.0 */
/* The helper shares our memory, so that it reports by writing there, and our descriptors, so that what it opens is ours.
 * Whoever owns a template's user namespace may enter those below it; that owner's rights over the session's processes
 * end when it has entered, so the names of a branch's namespaces are opened before.
 *
 * Waits: sys_child_wait in jail_within_run; a helper in our memory; FD_PATIENCE_MS; it is killed, and nothing came of it */
#include "jail/supervisor/within.h"

#include "jail/outside.h"
#include "sys/child.h"
#include "sys/fd.h"
#include "sys/pidfd.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int jail_within_run(int (*how)(void *ctx), void *ctx, struct err *told, struct err *err)
{
    enum { STACK = 256 * 1024 };
    sigset_t all, before;
    char *stack =
        mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED)
        return err_sys(err, "a stack for a helper");
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    int dumpable = prctl(PR_GET_DUMPABLE), status = 0;
    *told = (struct err)ERR_INIT;
    /* Not CLONE_VFORK: that waits for a stopped helper for ever. We touch nothing while it lives. */
    pid_t pid = clone(how, stack + STACK, CLONE_VM | CLONE_FILES | SIGCHLD, ctx);
    if (pid < 0)
        err_sys(told, "a helper");
    bool late = pid > 0 && sys_child_wait(pid, FD_PATIENCE_MS, &status) < 0;
    if (late)
        err_set(told, ERR_MISSING, "a helper for a session was stopped, or took 10 seconds");
    prctl(PR_SET_DUMPABLE, dumpable, 0, 0, 0); /* a change of ids in our memory undid it */
    sigprocmask(SIG_SETMASK, &before, NULL);
    munmap(stack, STACK);
    if (pid > 0 && status && told->code == 0)
        err_set(told, ERR_MISSING, "a helper for a session died");
    if (told->code)
        *err = *told;
    return told->code;
}

/* Raw calls, as in spawn.c. */
int jail_within_owner(const struct jail_child *session)
{
    struct stat st;
    if (geteuid() != 0 || fstat(session->files, &st) < 0)
        return 0;
    const unsigned uid = jail_identity_owner(st.st_uid), gid = jail_identity_owner(st.st_gid);
    return syscall(SYS_setgroups, 0, NULL) < 0 || syscall(SYS_setresgid, gid, gid, gid) < 0 ||
                   syscall(SYS_setresuid, uid, uid, uid) < 0
               ? -1
               : 0;
}

static int enter_init(const struct jail_child *session, int namespaces)
{
    return setns(session->init, namespaces) < 0 || syscall(SYS_setresgid, 0, 0, 0) < 0 ||
                   syscall(SYS_setresuid, 0, 0, 0) < 0
               ? -1
               : 0;
}

int jail_within_session(const struct jail_child *session)
{
    return jail_within_owner(session) < 0 ? -1 : enter_init(session, CLONE_NEWUSER | CLONE_NEWNS);
}

static int open_namespace(const struct jail_child *session, const char *name)
{
    char path[48];
    snprintf(path, sizeof path, "/proc/%d/ns/%s", (int)sys_pidfd_pid(session->guest), name);
    FD_AUTO fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && !jail_child_alive(session)) { /* its number may be another's by now */
        errno = ESRCH;
        return -1;
    }
    return fd_take(&fd);
}

int jail_within_mounts(const struct jail_child *session)
{
    if (!session->generation)
        return jail_within_session(session);
    if (jail_within_owner(session) < 0)
        return -1;
    FD_AUTO users = open_namespace(session, "user");
    FD_AUTO mounts = users < 0 ? -1 : open_namespace(session, "mnt");
    return mounts < 0 || enter_init(session, CLONE_NEWUSER) < 0 ||
                   setns(users, CLONE_NEWUSER) < 0 || setns(mounts, CLONE_NEWNS) < 0
               ? -1
               : 0;
}
