/* SPDX-License-Identifier: Apache-2.0 */
/* Who answers which call. The kernel gives one listener to a chain of filters (a second one: EBUSY), and a branch
 * inherits the session's chain. So the supervisors of all branches read one listener, and the kernel hands a call to
 * whichever of them asks first; nor can it be put back. What a supervisor receives that is not its own it leaves in
 * memory that all of them share, wakes them, and the one whose branch made the call takes it from there. An answer
 * names a call by its id, and the listener takes it from any of them.
 *
 * So every call is judged, answered and recorded by the supervisor of the branch that made it, and by no other. While
 * nobody has the branch (it waits between two calls), its call waits in the shared memory for its next supervisor.
 *
 * Why a hostile branch cannot influence a relative:
 *   - It reaches neither the memory nor the eventfd: they are made in the holder, and only our processes have them.
 *   - What is in the memory was written by the kernel: it receives directly into a slot. Whose call it is, is what
 *     /proc says about the process that makes it, read while the listener says that this call still waits.
 *   - It can fill slots with calls of its own only, SHARE of them: what is beyond is refused by whoever receives it.
 *     A family has fewer members than there are shares.
 *   - Receiving takes turns (a lock), since the kernel lets a reader sleep if another one was faster. The lock is held
 *     for a few system calls, none of which waits for a guest.
 *
 * Why the death of a client harms its own branch only: a slot is filled by the same system call that receives, so
 * there is no moment in which a relative's call is in the dead process alone. The kernel frees its lock (a robust
 * mutex). The holder, which learns of each client's end, wakes the family (jail_child_kill): a call that nobody was told
 * of is found. A client that is stopped (SIGSTOP) while it has the lock makes its relatives' denied calls wait until it
 * goes on or is killed; their time limits hold.
 *
 * Waits: nanosleep in lock_slots; another supervisor that receives; LOCK_TRIES times; the caller is woken again
 *        sys_listener_receive in next_call; nobody: poll said that a call is there, and only the owner of the lock
 *          receives; at once; ENOENT, its caller was killed
 *        write in wake_all; nobody: a counter of 64 bits; at once; goes on */
#include "jail/supervisor/family.h"

#include "jail/spec.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    SHARE = 32, /* calls of one branch that may wait in slots; each of its threads can make one */
    SLOTS = SHARE * (1 + JAIL_BRANCH_ROOM + 1), /* session, branches, one being forked */
    LOCK_TRIES = 40,
    LOCK_PAUSE_NS = 50 * 1000,
};

/* A call that was received and is not yet with its supervisor. No pid: the slot is free. */
struct slot {
    union sys_notice notice;
    pid_t process; /* what notice.notif.pid is a thread of; 0: not looked up yet */
};

/* Whoever has the lock may read and write the rest. */
struct jail_family_calls {
    pthread_mutex_t lock;
    size_t used; /* no slot from here on is filled */
    struct slot slot[SLOTS];
};

static void wake_all(int wake)
{
    const uint64_t one = 1;
    if (wake >= 0 && write(wake, &one, sizeof one) < 0)
        return; /* EAGAIN after 2^64 writes: then it is readable anyway */
}

void jail_family_wake(const struct jail_child *child)
{
    wake_all(child->wake);
}

static struct jail_family_calls *map(int calls)
{
    void *at =
        mmap(NULL, sizeof(struct jail_family_calls), PROT_READ | PROT_WRITE, MAP_SHARED, calls, 0);
    return at == MAP_FAILED ? NULL : (struct jail_family_calls *)at;
}

/* Between processes, and freed by the kernel when the one that has it dies. */
static int make_lock(int calls)
{
    pthread_mutexattr_t kind;
    struct jail_family_calls *at = map(calls);
    if (!at)
        return -1;
    int error = pthread_mutexattr_init(&kind);
    if (error == 0)
        error = pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
    if (error == 0)
        error = pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    if (error == 0)
        error = pthread_mutex_init(&at->lock, &kind);
    munmap(at, sizeof *at);
    errno = error;
    return error ? -1 : 0;
}

int jail_family_new(struct jail_child *child, struct err *err)
{
    FD_AUTO calls = memfd_create("cordon-calls", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    FD_AUTO wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (calls < 0 || wake < 0 || ftruncate(calls, sizeof(struct jail_family_calls)) < 0 ||
        fcntl(calls, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0 ||
        make_lock(calls) < 0)
        return err_sys(err, "memory for the calls of a session");
    child->calls = fd_take(&calls);
    child->wake = fd_take(&wake);
    return 0;
}

int jail_family_join(struct jail_family *f, const struct jail_child *child, struct err *err)
{
    struct stat st;
    *f = (struct jail_family)JAIL_FAMILY_NONE;
    if (child->calls < 0 || child->wake < 0 || fstat(child->calls, &st) < 0 ||
        st.st_size != sizeof(struct jail_family_calls))
        return err_set(err, ERR_FORMAT, "a session without the memory of its family");
    struct jail_family_calls *calls = map(child->calls);
    if (!calls)
        return err_sys(err, "map the memory of the session's family");
    *f = (struct jail_family){.listener = child->listener, .wake = child->wake, .calls = calls};
    return 0;
}

void jail_family_leave(struct jail_family *f)
{
    if (f->calls)
        munmap(f->calls, sizeof *f->calls);
    *f = (struct jail_family)JAIL_FAMILY_NONE;
}

/* ---- the lock ---- */

/* A few tries. After that whoever has it may be stopped: our caller has clocks to look at, and comes back. */
static bool lock_slots(const struct jail_family *f)
{
    const struct timespec pause = {.tv_nsec = LOCK_PAUSE_NS};
    for (int i = 0; i < LOCK_TRIES; i++) {
        int error = pthread_mutex_trylock(&f->calls->lock);
        if (error == EOWNERDEAD) /* each slot is whole, or free, at every moment: nothing to mend */
            error = pthread_mutex_consistent(&f->calls->lock);
        if (error == 0)
            return true;
        nanosleep(&pause, NULL);
    }
    return false;
}

/* ---- slots; all of these with the lock held ---- */

static bool is_free(const struct slot *s)
{
    return s->notice.notif.pid == 0;
}

static void clear(struct slot *s)
{
    memset(s, 0, sizeof *s);
}

/* The process that thread TID is of; 0: it is gone. */
static pid_t process_of(uint32_t tid)
{
    char path[32], text[4096];
    snprintf(path, sizeof path, "/proc/%u/status", tid);
    const char *at =
        fd_read_file(AT_FDCWD, path, text, sizeof text) > 0 ? strstr(text, "\nTgid:") : NULL;
    long pid = at ? strtol(at + strlen("\nTgid:"), NULL, 10) : 0;
    return pid > 0 ? (pid_t)pid : 0;
}

/* What was read about a number is true only if the caller still waits: else it may be another process's. */
static bool is_ours(const struct jail_family *f, struct slot *s, jail_family_ours *ours, void *ctx)
{
    const pid_t caller = (pid_t)s->notice.notif.pid;
    bool mine = ours(ctx, s->process ? s->process : caller);
    if (mine && !s->process) /* as most: made by the first thread of our own branch */
        s->process = caller;
    if (!s->process) {
        s->process = process_of(s->notice.notif.pid);
        mine = s->process && s->process != caller && ours(ctx, s->process);
    }
    return mine && sys_listener_holds(f->listener, s->notice.notif.id);
}

/* Forgets calls whose callers are dead; counts those of PROCESS. */
static size_t sweep(struct jail_family *f, pid_t process)
{
    size_t count = 0, used = 0;
    for (size_t i = 0; i < f->calls->used; i++) {
        struct slot *s = &f->calls->slot[i];
        if (!is_free(s) && !sys_listener_holds(f->listener, s->notice.notif.id))
            clear(s);
        if (is_free(s))
            continue;
        used = i + 1;
        count += s->process == process;
    }
    f->calls->used = used;
    return count;
}

static void take(struct slot *s, union sys_notice *ret)
{
    *ret = s->notice;
    clear(s);
}

/* One of ours that a relative received. If there is another one, we wake ourselves: we are asked for one. */
static bool take_waiting(struct jail_family *f, jail_family_ours *ours, void *ctx,
                         union sys_notice *ret)
{
    bool taken = false;
    for (size_t i = 0; i < f->calls->used; i++) {
        struct slot *s = &f->calls->slot[i];
        if (is_free(s) || !is_ours(f, s, ours, ctx))
            continue;
        if (taken) {
            wake_all(f->wake);
            break;
        }
        take(s, ret);
        taken = true;
    }
    return taken;
}

static struct slot *free_slot(struct jail_family *f)
{
    size_t i = 0;
    while (i < f->calls->used && !is_free(&f->calls->slot[i]))
        i++;
    if (i == SLOTS)
        return NULL;
    clear(&f->calls->slot[i]); /* the supervisor that wrote it last may have died in the middle */
    if (i == f->calls->used)
        f->calls->used++;
    return &f->calls->slot[i];
}

/* A call that nobody will be told of: its branch has more of them waiting than it has slots, or it cannot be said
 * whose it is. As every supervisor would: it is refused, and only the end of a process is let pass. */
static void refuse(const struct jail_family *f, const struct seccomp_notif *n)
{
    bool ends = n->data.nr == SYS_exit_group;
    (void)sys_listener_answer(f->listener, n->id, ends ? 0 : EPERM,
                              ends ? SECCOMP_USER_NOTIF_FLAG_CONTINUE : 0);
}

/* The next call of the family. True: it is ours. */
static bool next_call(struct jail_family *f, jail_family_ours *ours, void *ctx,
                      union sys_notice *ret)
{
    struct pollfd p = {.fd = f->listener, .events = POLLIN};
    if (poll(&p, 1, 0) != 1 || !(p.revents & POLLIN))
        return false;
    struct slot *s = free_slot(f);
    if (!s) { /* dead callers have all of them */
        (void)sweep(f, 0);
        s = free_slot(f);
    }
    if (!s || sys_listener_receive(f->listener, &s->notice) < 0)
        return false;
    if (is_ours(f, s, ours, ctx)) {
        take(s, ret);
        return true;
    }
    if (!s->process || sweep(f, s->process) > SHARE) {
        refuse(f, &s->notice.notif);
        clear(s);
    } else {
        wake_all(f->wake);
    }
    return false;
}

bool jail_family_receive(struct jail_family *f, jail_family_ours *ours, void *ctx,
                         union sys_notice *ret)
{
    if (!lock_slots(f)) {
        wake_all(
            f->wake); /* so that our loop comes back: a write, which is read now, may have woken it */
        return false;
    }
    bool got = take_waiting(f, ours, ctx, ret) || next_call(f, ours, ctx, ret);
    pthread_mutex_unlock(&f->calls->lock);
    return got;
}
