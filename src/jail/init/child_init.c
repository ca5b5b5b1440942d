/* SPDX-License-Identifier: Apache-2.0 */
/* The init above a child of a template. The builder does not execute cordon-nest: that would cost as much as
 * the rest of the child. It goes on in the template's memory, on its own stack, while the template works: so
 * only plain system calls, no errno, no allocation, nothing static that is written. Nothing of the
 * guest reaches it: it has the supervisor's socket and the pidfds of its children, and reads no
 * memory but its stack.
 *
 * Who may ask what: whoever holds the other end of a member's socket may name one more process to watch over
 * (a branch of the session) with a socket of its own, and say when the member is to die. Even a hostile MEMBER could
 * make it no more than signal and wait for processes that the sender had a handle of, a hostile DEADLINE no more than
 * kill the sender's own. The end of a socket is the end of its member: the supervisor is gone.
 *
 * The deadline is a second clock, behind the supervisor's own: that one stands still while the supervisor is stopped.
 * The guest has no end of these sockets.
 *
 * Waits: waitid in reap_guest; a guest whose pidfd says that it is dead; at once; its status
 *        ppoll in jail_child_init; guests and supervisors, in the init of the jail; the next deadline, else none (it
 *          lives as long as they do, and the kernel ends it with them); ends */
#include "jail/template/template_fork.h"

#include "base/clock.h"
#include "sys/raw.h"
#include "wire/msg.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

enum { MEMBERS = 1 + JAIL_BRANCH_ROOM };

struct member {
    int control, guest;   /* -1: the supervisor is gone; a pidfd */
    uint64_t deadline_ns; /* when it is killed; 0: never */
};

struct family {
    struct member member[MEMBERS];
    size_t count;
};

static void shut(int fd)
{
    if (fd >= 0)
        raw_syscall(SYS_close, fd, 0, 0, 0, 0);
}

static uint64_t micro(const struct timeval *t)
{
    return (uint64_t)t->tv_sec * 1000000 + (uint64_t)t->tv_usec;
}

static void tell_exit(int control, int status, const struct rusage *used)
{
    const uint64_t usage[] = {micro(&used->ru_utime), micro(&used->ru_stime),
                              (uint64_t)used->ru_maxrss * 1024, 0};
    char storage[128];
    struct buf b = {.data = storage, .cap = sizeof storage, .max = sizeof storage - 1};
    struct wire_writer w;
    wire_begin(&w, &b, WIRE_EXITED);
    wire_put_int(&w, status);
    wire_put_uints(&w, usage, 4);
    wire_put_uints(&w, NULL, 0); /* its supervisor looks at the file system itself */
    if (wire_end(&w) == 0 && control >= 0)
        raw_syscall(SYS_sendto, control, (long)b.data, (long)b.len, MSG_NOSIGNAL | MSG_DONTWAIT, 0);
}

static void kill_guest(const struct member *m)
{
    raw_syscall(SYS_pidfd_send_signal, m->guest, SIGKILL, 0, 0, 0);
}

/* What is said on a member's socket: something for us, or nothing right now, or its end. */
enum word { SAID, NOTHING, END };

static enum word hear(struct family *f, struct member *m)
{
    union {
        struct cmsghdr head;
        char storage[CMSG_SPACE(2 * sizeof(int))];
    } ride;
    char frame[64];
    struct iovec iov = {frame, sizeof frame};
    struct msghdr msg = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &ride, .msg_controllen = sizeof ride};
    struct wire_reader r;
    int fds[2] = {-1, -1};
    memset(&ride, 0, sizeof ride);
    long n =
        raw_syscall(SYS_recvmsg, m->control, (long)&msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC, 0, 0);
    if (n > 0 && msg.msg_controllen >= CMSG_LEN(sizeof fds) && ride.head.cmsg_type == SCM_RIGHTS &&
        ride.head.cmsg_len == CMSG_LEN(sizeof fds))
        memcpy(fds, CMSG_DATA(&ride.head), sizeof fds);
    const bool good = n > 0 && wire_open(&r, frame, (size_t)n, NULL) == 0;
    const bool timed = good && r.type == WIRE_DEADLINE;
    const bool named = good && r.type == WIRE_MEMBER && fds[1] >= 0;
    if (timed)
        m->deadline_ns = wire_get_uint(&r);
    if (named && f->count < MEMBERS) {
        f->member[f->count++] = (struct member){.guest = fds[0], .control = fds[1]};
        return SAID;
    }
    if (named) /* more than we have eyes for */
        raw_syscall(SYS_pidfd_send_signal, fds[0], SIGKILL, 0, 0, 0);
    shut(fds[0]);
    shut(fds[1]);
    return named || timed ? SAID : n == -EAGAIN ? NOTHING : END;
}

/* All that was said so far. A member may be named in the moment before the one that names it dies, so this
 * comes before any burial. */
static enum word hear_all(struct family *f, struct member *m)
{
    enum word w = END;
    while (m->control >= 0 && (w = hear(f, m)) == SAID)
        ;
    return w;
}

/* The guest of this member is dead: reaped, and told. */
static void reap_guest(const struct member *m)
{
    siginfo_t info;
    struct rusage used;
    memset(&info, 0, sizeof info);
    memset(&used, 0, sizeof used);
    long r = raw_syscall(SYS_waitid, P_PIDFD, m->guest, (long)&info, WEXITED, (long)&used);
    int status = info.si_code == CLD_EXITED ? info.si_status << 8 : info.si_status & 0x7f;
    if (r == 0)
        tell_exit(m->control, status, &used);
    shut(m->control);
    shut(m->guest);
}

static uint64_t now_ns(void)
{
    struct timespec t = {0};
    raw_syscall(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&t, 0, 0, 0);
    return (uint64_t)t.tv_sec * CLOCK_NS_PER_S + (uint64_t)t.tv_nsec;
}

/* Kills those whose time is up; the time until the next one is in *ret_wait. False: no member has a deadline. */
static bool keep_time(struct family *f, struct timespec *ret_wait)
{
    uint64_t next = 0, now = 0;
    for (size_t i = 0; i < f->count; i++) {
        struct member *m = &f->member[i];
        if (!m->deadline_ns)
            continue;
        now = now ? now : now_ns();
        if (m->deadline_ns <= now) {
            kill_guest(m);
            m->deadline_ns = 0;
        } else if (!next || m->deadline_ns < next) {
            next = m->deadline_ns;
        }
    }
    uint64_t left = next ? next - now : 0;
    *ret_wait = (struct timespec){(time_t)(left / CLOCK_NS_PER_S), (long)(left % CLOCK_NS_PER_S)};
    return next != 0;
}

void jail_child_init(int control, int guest)
{
    struct family f = {.member = {{.control = control, .guest = guest}}, .count = 1};
    struct pollfd p[2 * MEMBERS];
    struct timespec wait;
    while (f.count) {
        const size_t count = f.count;
        const bool timed = keep_time(&f, &wait);
        for (size_t i = 0; i < count; i++) {
            p[2 * i] = (struct pollfd){.fd = f.member[i].control, .events = POLLIN};
            p[2 * i + 1] = (struct pollfd){.fd = f.member[i].guest, .events = POLLIN};
        }
        if (raw_syscall(SYS_ppoll, (long)p, (long)(2 * count), timed ? (long)&wait : 0, 0, 0) < 0)
            break; /* nothing interrupts us; without ears we must not go on */
        for (size_t i = count; i-- > 0;) {
            struct member *m = &f.member[i];
            const bool dead = p[2 * i + 1].revents;
            if (!dead && !p[2 * i].revents)
                continue;
            bool leashed = hear_all(&f, m) == NOTHING;
            if (dead) {
                reap_guest(m);
                *m = f.member[--f.count];
            } else if (!leashed) {
                kill_guest(m);
                shut(m->control);
                m->control = -1;
            }
        }
    }
    for (;;) /* what is left of the namespace dies with its pid 1 */
        raw_syscall(SYS_exit_group, 0, 0, 0, 0, 0);
}
