/* SPDX-License-Identifier: Apache-2.0 */
/* A runner leads a session of its own: no terminal to type at, and Ctrl-C is for us. Its input is a sealed file in
 * memory, which comes with its words: one that does not read cannot block us. The kernel kills it when we are killed, and its jail dies with it.
 *
 * Waits: CLONE_VFORK in start; the new process, until it is another program; none (who could stop it could stop us); nothing is held
 *        read in take_text; nobody: the socket is non-blocking; at once; comes again after poll
 *        read in take_said; nobody: the pipe is non-blocking; at once; comes again after poll
 *        waitpid in serve_runner_done; a runner; none (the kernel's own: it was killed); its status */
#include "serve/runner.h"

#include "base/clock.h"
#include "base/limits.h"
#include "sys/child.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct starting {
    const char *const *argv;
    const int *streams;
    pid_t parent;
};

static int become(void *ctx)
{
    const struct starting *s = ctx;
    sys_child_exec(s->argv, (const char *const *)environ, s->streams, 3, true, s->parent);
}

/* In our memory until it is another program: a copy of it would cost the copying, and then us a page fault for each page
 * that we write, in the middle of a request. */
static pid_t start(const struct starting *s)
{
    static char stack[64 * KIB] __attribute__((aligned(16)));
    return clone(become, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD,
                 (void *)(uintptr_t)s);
}

int serve_runner_start(struct serve_runner *r, const char *cordon, struct err *err)
{
    int out[2] = {-1, -1}, said[2] = {-1, -1}, order[2] = {-1, -1}, k = 0;
    *r = SERVE_RUNNER_INIT;
    buf_init(&r->text, LIMIT_SERVE_ANSWER);
    /* what it prints goes by a socket: that takes one call where a pipe takes five (sys/nowait.c) */
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, out) < 0 || pipe2(said, O_CLOEXEC) < 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, order) < 0)
        k = err_sys(err, "pipes for a runner");
    r->out = out[0];
    r->err = said[0];
    r->order = order[0];
    const char *const argv[] = {cordon, "--from-cordond", NULL};
    const int streams[3] = {order[1], out[1], said[1]};
    r->pid = k < 0 ? -1 : start(&(struct starting){argv, streams, getpid()});
    for (int i = 0; i < 3; i++)
        fd_close(streams[i]);
    if (r->pid < 0) {
        r->pid = 0;
        k = k < 0 ? k : err_sys(err, "clone");
    } else {
        r->pidfd = (int)syscall(SYS_pidfd_open, r->pid, 0);
        if (r->pidfd < 0 || fcntl(r->out, F_SETFL, O_NONBLOCK) < 0 ||
            fcntl(r->err, F_SETFL, O_NONBLOCK) < 0)
            k = err_sys(err, "watch a runner");
    }
    if (k < 0)
        serve_runner_done(r);
    return k;
}

/* The words with a NUL after each of them. */
static int join(const char *const *argv, char *words, size_t size, size_t *ret_len, struct err *err)
{
    size_t at = 0;
    for (; *argv; argv++) {
        const size_t len = strlen(*argv) + 1;
        if (len > size - at)
            return err_set(err, ERR_LIMIT, "a command line that is too long for a runner");
        memcpy(words + at, *argv, len);
        at += len;
    }
    *ret_len = at;
    return 0;
}

void serve_runner_expect(struct serve_runner *r, const char *const *argv)
{
    char words[LIMIT_SERVE_WORDS];
    struct err err = ERR_INIT;
    size_t len = 0;
    if (join(argv, words, sizeof words, &len, &err) == 0)
        (void)!send(r->order, words, len, MSG_DONTWAIT | MSG_NOSIGNAL);
}

int serve_runner_order(struct serve_runner *r, uid_t user, const char *const *argv,
                       const void *input, size_t len, struct err *err)
{
    char words[LIMIT_SERVE_WORDS];
    union {
        char space[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {{0}};
    FD_AUTO in = -1;
    struct iovec iov = {words, 0};
    /* the user, as the first of the words */
    const size_t head = (size_t)snprintf(words, sizeof words, "%u", (unsigned)user) + 1;
    int k = join(argv, words + head, sizeof words - head, &iov.iov_len, err);
    iov.iov_len += head;
    if (k == 0)
        k = fd_sealed(input, len, &in, err);
    if (k < 0)
        return k;
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.space,
                       .msg_controllen = sizeof control.space};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &in, sizeof in);
    if (sendmsg(r->order, &m, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)iov.iov_len)
        return err_sys(err, "give a runner its words");
    return 0;
}

static void take_text(struct serve_runner *r)
{
    static char chunk[64 * KIB];
    while (r->out >= 0) {
        ssize_t n = read(r->out, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            fd_close(fd_take(&r->out));
        } else if (!r->flooded && buf_add(&r->text, chunk, (size_t)n) < 0) {
            r->flooded = true;
            serve_runner_kill(r);
        }
    }
}

/* Keeps the beginning and throws the rest away, so that a talkative runner does not block. */
static void take_said(struct serve_runner *r)
{
    char chunk[4096];
    while (r->err >= 0) {
        ssize_t n = read(r->err, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            fd_close(fd_take(&r->err));
            return;
        }
        const size_t have = strlen(r->said), most = sizeof r->said - 1 - have;
        const size_t take = (size_t)n < most ? (size_t)n : most;
        memcpy(r->said + have, chunk, take);
        r->said[have + take] = 0;
    }
}

/* Its exit status, before its end: what it still does is for nobody. */
static void take_done(struct serve_runner *r)
{
    unsigned char said[SERVE_RUNNER_SAID] = {0};
    const ssize_t n = r->order < 0 ? -1 : recv(r->order, said, sizeof said, MSG_DONTWAIT);
    if (n == 0)
        fd_close(fd_take(&r->order));
    if (n != SERVE_RUNNER_SAID || r->done)
        return;
    r->done = true;
    r->status = said[0];
    r->session_over = said[1];
}

void serve_runner_take(struct serve_runner *r)
{
    int status = 0;
    if (r->pid == 0)
        return;
    /* first whether it is done or gone, then what it left: nothing comes after that */
    const bool gone = waitpid(r->pid, &status, WNOHANG) == r->pid;
    take_done(r);
    take_text(r);
    take_said(r);
    if (!gone)
        return;
    r->pid = 0;
    if (!r->done) {
        r->killed = WIFSIGNALED(status);
        r->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    fd_close(fd_take(&r->pidfd));
    fd_close(fd_take(&r->out));
    fd_close(fd_take(&r->err));
    fd_close(fd_take(&r->order));
}

bool serve_runner_stands_still(const struct serve_runner *r)
{
    siginfo_t info = {0};
    return r->pid && waitid(P_PID, (id_t)r->pid, &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid;
}

void serve_runner_release(struct serve_runner *r)
{
    if (r->done)
        fd_close(fd_take(&r->order));
}

bool serve_runner_held(const struct serve_runner *r)
{
    return r->done && r->order >= 0;
}

void serve_runner_stop(struct serve_runner *r, uint64_t now_ns)
{
    if (r->pid == 0 || r->kill_ns)
        return;
    kill(r->pid, SIGTERM); /* a child that is not reaped: the number is still its own */
    r->kill_ns = now_ns + LIMIT_SERVE_STOP_MS * CLOCK_NS_PER_MS;
}

void serve_runner_kill(struct serve_runner *r)
{
    if (r->pid)
        kill(r->pid, SIGKILL);
}

bool serve_runner_ended(const struct serve_runner *r)
{
    return r->pid == 0 || r->done;
}

bool serve_runner_over(const struct serve_runner *r)
{
    return r->pid == 0;
}

void serve_runner_done(struct serve_runner *r)
{
    if (r->pid) {
        kill(r->pid, SIGKILL);
        while (waitpid(r->pid, NULL, 0) < 0 && errno == EINTR)
            ;
        r->pid = 0;
    }
    fd_close(fd_take(&r->pidfd));
    fd_close(fd_take(&r->out));
    fd_close(fd_take(&r->err));
    fd_close(fd_take(&r->order));
    buf_done(&r->text);
}
