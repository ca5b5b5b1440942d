/* SPDX-License-Identifier: Apache-2.0 */
/* One client is one contained front: what one client does to its front is its own affair. The front is started with the
 * client's two descriptors and a socket to us, and with nothing else.
 *
 * Waits: waitpid in end_front; the front; none (the kernel's own: it was killed); its end */
#include "serve/holding.h"

#include "base/clock.h"
#include "sys/child.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

_Noreturn static void exec_front(const struct serve_config *f, bool http, bool metrics, int in,
                                 int out, int sock, pid_t parent)
{
    char numbers[4][24];
    const uint64_t limits[4] = {f->limits.timeout_ms, f->limits.memory, f->limits.output,
                                f->answer_ms};
    for (int i = 0; i < 4; i++)
        snprintf(numbers[i], sizeof numbers[0], "%llu", (unsigned long long)limits[i]);
    const char *const argv[] = {f->front,
                                "--from-cordond",
                                numbers[0],
                                numbers[1],
                                numbers[2],
                                numbers[3],
                                f->profile,
                                f->workspaces,
                                f->elicits ? "elicits" : "",
                                f->question_ms,
                                f->approves ? "approves" : "",
                                http ? f->names : NULL,
                                metrics ? "metrics" : NULL,
                                NULL};
    const char *const env[] = {NULL};
    const int fds[] = {in, out, -1, sock};
    sys_child_exec(argv, env, fds, 4, false, parent);
}

static int start_front(struct serve_client *c, int in, int out, struct err *err)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, "a socket for the front");
    c->sock = pair[0];
    c->told = true; /* by its words */
    const pid_t self = getpid();
    c->front = fork();
    if (c->front == 0)
        exec_front(c->config, c->listener >= 0, c->metrics, in, out, pair[1], self);
    fd_close(pair[1]);
    if (c->front < 0) {
        c->front = 0;
        return err_sys(err, "fork");
    }
    return 0;
}

int serve_client_start(struct serve_client *c, struct serve_shared *all, uid_t user, int in,
                       int out, struct err *err)
{
    *c = (struct serve_client){
        .all = all, .config = &all->config, .sock = -1, .user = user, .listener = -1, .token = -1};
    return start_front(c, in, out, err);
}

int serve_client_start_http(struct serve_client *c, struct serve_shared *all, int listener,
                            int token, bool metrics, struct err *err)
{
    *c = (struct serve_client){.all = all,
                               .config = &all->config,
                               .sock = -1,
                               .user = getuid(),
                               .metrics = metrics,
                               .listener = listener,
                               .token = token,
                               .renewed_ns = clock_now_ns()};
    return start_front(c, listener, token, err);
}

static void end_front(struct serve_client *c)
{
    fd_close(fd_take(&c->sock));
    if (!c->front)
        return;
    kill(c->front, SIGKILL);
    while (waitpid(c->front, NULL, 0) < 0 && errno == EINTR)
        ;
    c->front = 0;
}

/* The connections of a front end with it, and so do the requests that came by them; sessions and jobs stay. One that cannot
 * live is not started for ever. */
static bool renew(struct serve_client *c, uint64_t now_ns)
{
    struct err err = ERR_INIT;
    if (c->listener < 0)
        return false;
    end_front(c);
    c->quick = now_ns - c->renewed_ns < CLOCK_NS_PER_S ? c->quick + 1 : 0;
    c->renewed_ns = now_ns;
    c->all->figures.fronts++;
    serve_asks_cancel_all(c, now_ns);
    return c->quick < 8 && start_front(c, c->listener, c->token, &err) == 0;
}

/* False: not now, or never. */
static bool put(struct serve_client *c, const struct buf *frame)
{
    struct iovec iov = {frame->data, frame->len};
    const struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    return !c->gone && sendmsg(c->sock, &m, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)frame->len;
}

/* One that does not fit now is not needed: the next one says the same. */
static void send_note(struct serve_client *c, struct serve_ask *ask)
{
    const struct serve_answer going = {
        .request = ask->q.number, .stand = SERVE_GOING, .number = ask->due_ms};
    struct buf frame;
    struct err err = ERR_INIT;
    buf_init(&frame, 4096);
    if (serve_answer_write(&going, NULL, &frame, &err) == 0)
        (void)put(c, &frame);
    buf_done(&frame);
    ask->due_ms = 0;
}

/* What the job printed since, before any answer, with the handle that the question is answered by. */
static void send_shown(struct serve_client *c, struct serve_ask *ask)
{
    const struct buf *text = &ask->job->runner.text;
    const size_t most = text->len < LIMIT_SERVE_SHOWN ? text->len : LIMIT_SERVE_SHOWN;
    struct serve_answer going = {.request = ask->q.number, .stand = SERVE_GOING, .number = 1};
    struct buf frame;
    struct err err = ERR_INIT;
    memcpy(going.handle, ask->job->handle, sizeof going.handle);
    buf_init(&frame, 2 * LIMIT_SERVE_SHOWN);
    bool sent = serve_answer_write(&going, NULL, &frame, &err) == 0 && put(c, &frame);
    buf_reset(&frame);
    sent = sent &&
           serve_piece_write(ask->q.number, text->data + ask->shown, most - ask->shown, &frame,
                             &err) == 0 &&
           put(c, &frame);
    buf_done(&frame);
    if (!sent)
        return; /* the socket is full: the next turn tries again */
    ask->shown = most;
    ask->job->told = true;
}

/* The head of an answer with the first piece, or the next piece. False: the socket is full. */
static bool send_some(struct serve_client *c, struct serve_ask *a)
{
    struct buf frame;
    struct err err = ERR_INIT;
    buf_init(&frame, 2 * LIMIT_SERVE_PIECE);
    const char *bytes = serve_asks_bytes(a);
    const size_t len = serve_piece_length(a->answer.body - a->sent);
    int k = !a->opened ? serve_answer_write(&a->answer, bytes, &frame, &err)
                       : serve_piece_write(a->q.number, bytes + a->sent, len, &frame, &err);
    const bool done = k == 0 && put(c, &frame);
    buf_done(&frame);
    if (!done)
        return false;
    a->sent += len;
    a->opened = true;
    if (a->sent == a->answer.body)
        serve_asks_free(a);
    return true;
}

static void send_limits(struct serve_client *c)
{
    struct buf frame;
    struct err err = ERR_INIT;
    buf_init(&frame, 4096);
    c->told = serve_limits_write(&c->config->limits, &frame, &err) == 0 && put(c, &frame);
    buf_done(&frame);
}

void serve_client_write(struct serve_client *c)
{
    if (!c->told && !c->gone)
        send_limits(c);
    for (size_t i = 0; i < SERVE_PLACES; i++) {
        if (serve_asks_shows(c, &c->asks[i]))
            send_shown(c, &c->asks[i]);
        if (c->asks[i].state == SERVE_WAITING && c->asks[i].due_ms)
            send_note(c, &c->asks[i]);
    }
    for (size_t i = 0; i < SERVE_PLACES; i++)
        while (c->asks[i].state == SERVE_ANSWERING)
            if (!send_some(c, &c->asks[i]))
                return;
}

bool serve_client_wants_write(const struct serve_client *c)
{
    for (size_t i = 0; i < SERVE_PLACES; i++)
        if (c->asks[i].state == SERVE_ANSWERING)
            return !c->gone;
    return !c->told && !c->gone;
}

/* A front that sends as fast as we read would keep us from everybody else, signals too; what is left, poll finds again. */
void serve_client_read(struct serve_client *c, uint64_t now_ns)
{
    static char frame[LIMIT_FRAME];
    struct err err = ERR_INIT;
    for (int i = 0; i < LIMIT_SERVE_TURN && c->sock >= 0; i++) {
        ssize_t n = recv(c->sock, frame, sizeof frame, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n > 0 && (c->gone || serve_asks_take(c, frame, (size_t)n, now_ns, &err) == 0))
            continue;
        if (c->gone) /* it has written what there was */
            fd_close(fd_take(&c->sock));
        else if (!renew(c, now_ns))
            serve_client_leave(c, false, now_ns);
    }
}

void serve_client_close_sessions(struct serve_client *c, uint64_t now_ns)
{
    for (size_t i = 0; i < LIMIT_SERVE_SESSIONS; i++) {
        struct serve_session *s = &c->sessions[i];
        struct serve_request q = {.verb = SERVE_SESSION_CLOSE}; /* of no front: no number */
        struct err err = ERR_INIT;
        if (!serve_session_lives(s) || s->closing || !(c->gone || s->unwanted))
            continue;
        memcpy(q.handle, s->handle, sizeof q.handle);
        struct serve_job *job = serve_jobs_start(c, &q, s->handle, NULL, now_ns, &err);
        if (!job && err.code == ERR_LIMIT)
            return; /* the end of another runner makes room */
        if (job)
            serve_jobs_give_up(job, now_ns);
        s->closing = job != NULL;
        /* one that cannot be closed ends by itself when it was idle for long enough */
        s->used = s->closing;
        s->tries++;
    }
}

void serve_client_leave(struct serve_client *c, bool waits, uint64_t now_ns)
{
    if (c->gone)
        return;
    c->gone = true;
    /* the front ends with it */
    if (!waits || shutdown(c->sock, SHUT_WR) < 0)
        fd_close(fd_take(&c->sock));
    for (size_t i = 0; i < SERVE_PLACES; i++)
        serve_asks_free(&c->asks[i]);
    for (size_t i = 0; i < LIMIT_SERVE_JOBS; i++) {
        c->jobs[i].kept = false;
        if (c->jobs[i].used)
            serve_jobs_give_up(&c->jobs[i], now_ns);
    }
    serve_client_close_sessions(c, now_ns);
}

bool serve_client_idle(const struct serve_client *c)
{
    for (size_t i = 0; i < LIMIT_SERVE_JOBS; i++)
        if (c->jobs[i].used && !c->jobs[i].ended_ns)
            return false;
    for (size_t i = 0; i < LIMIT_SERVE_SESSIONS; i++)
        if (c->gone && serve_session_lives(&c->sessions[i]))
            return false;
    return !c->gone || c->sock < 0;
}

bool serve_client_drained(const struct serve_client *c)
{
    for (size_t i = 0; i < SERVE_PLACES; i++)
        if (c->asks[i].state != SERVE_FREE && c->asks[i].state != SERVE_BODY)
            return false;
    for (size_t i = 0; i < LIMIT_SERVE_JOBS; i++)
        if (c->jobs[i].used && !c->jobs[i].ended_ns)
            return false;
    return true;
}

void serve_client_cancel(struct serve_client *c, uint64_t now_ns)
{
    for (size_t i = 0; i < LIMIT_SERVE_JOBS; i++)
        if (c->jobs[i].used)
            serve_jobs_cancel(&c->jobs[i], now_ns);
}

void serve_client_done(struct serve_client *c)
{
    for (size_t i = 0; i < SERVE_PLACES; i++)
        serve_asks_free(&c->asks[i]);
    for (size_t i = 0; i < LIMIT_SERVE_JOBS; i++)
        if (c->jobs[i].used)
            serve_jobs_forget(&c->jobs[i]);
    end_front(c);
}
