/* SPDX-License-Identifier: Apache-2.0 */
/* What cordond does by time, and nobody can wait for: when a run is answered with a job, how often its client hears of it
 * before, how long sessions and results stay. The time is a number here. */
#include "base/clock.h"
#include "base/tap.h"
#include "serve/holding.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define S  CLOCK_NS_PER_S
#define T0 (1000 * S) /* when everything here begins */

/* A client whose first request waits for its first job, which prints nothing and does not end. */
static struct serve_client *waiting(struct serve_shared *all, enum serve_verb verb)
{
    struct serve_client *c = calloc(1, sizeof *c);
    if (!c)
        abort();
    all->config.answer_ms = LIMIT_SERVE_ANSWER_MS;
    *c = (struct serve_client){.all = all, .config = &all->config, .sock = -1};
    c->jobs[0] = (struct serve_job){
        .used = true, .verb = verb, .runner = SERVE_RUNNER_INIT, .started_ns = T0};
    memset(c->jobs[0].handle, 'j', SERVE_HANDLE);
    c->asks[0] = (struct serve_ask){.state = SERVE_WAITING,
                                    .q = {.number = 1, .verb = verb},
                                    .job = &c->jobs[0],
                                    .asked_ns = T0,
                                    .told_ns = T0};
    return c;
}

static void test_long_run(void)
{
    struct serve_shared all = {0};
    struct serve_client *c = waiting(&all, SERVE_RUN);
    struct serve_ask *a = &c->asks[0];
    uint64_t late = 0, notes = 0;
    tap_eq_int(serve_asks_next(c), T0 + 5 * S, "there is nothing to say of a run for five seconds");
    for (uint64_t s = 1; s < 45; s++) {
        serve_asks_tick(c, T0 + s * S);
        notes += a->due_ms != 0;
        late += a->due_ms && a->due_ms != s * 1000;
        late += (a->due_ms != 0) != (s % 5 == 0);
        a->due_ms = 0; /* as if it was sent */
    }
    tap_ok(notes == 8 && late == 0, "a client hears of a long run every five seconds");
    tap_ok(a->state == SERVE_WAITING, "a run of 44 seconds is waited for");
    serve_asks_tick(c, T0 + 45 * S);
    tap_ok(a->state == SERVE_ANSWERING && a->answer.stand == SERVE_RUNNING &&
               a->answer.number == 45000 && strcmp(a->answer.handle, c->jobs[0].handle) == 0,
           "a run of 45 seconds is answered with the handle of a job");
    tap_ok(serve_jobs_find(c, c->jobs[0].handle) == &c->jobs[0],
           "a job that was told is found by its handle");
    serve_asks_free(a);
    free(c);
}

static void test_session_in_the_making(void)
{
    struct serve_shared all = {0};
    struct serve_client *c = waiting(&all, SERVE_SESSION_NEW);
    serve_asks_tick(c, T0 + 46 * S);
    tap_ok(c->asks[0].state == SERVE_WAITING, "a session that is being made does not become a job");
    serve_asks_free(&c->asks[0]);
    free(c);
}

static void test_result(void)
{
    struct serve_shared all = {0};
    struct serve_client *c = waiting(&all, SERVE_RUN);
    struct serve_job *j = &c->jobs[0];
    const uint64_t last = T0 + LIMIT_SERVE_KEEP_MS * CLOCK_NS_PER_MS;
    serve_asks_free(&c->asks[0]);
    j->kept = true;
    j->ended_ns = T0;
    serve_jobs_tick(c, last);
    tap_ok(serve_jobs_find(c, j->handle) == j, "the result of a job is there for ten minutes");
    tap_eq_int(serve_jobs_next(c, last), last, "the end of a result is awaited");
    serve_jobs_tick(c, last + 1);
    tap_ok(!serve_jobs_find(c, j->handle), "the result of a job is gone after ten minutes");
    free(c);
}

/* A result of LEN bytes that its client was told of; there are no bytes. */
static struct serve_job *keep(struct serve_client *c, size_t at, size_t len, uint64_t ended_ns)
{
    struct serve_job *j = &c->jobs[at];
    *j = (struct serve_job){
        .used = true, .kept = true, .runner = SERVE_RUNNER_INIT, .ended_ns = ended_ns};
    j->runner.text.len = len;
    return j;
}

static void test_large_results(void)
{
    struct serve_shared all = {0};
    struct serve_client *few = waiting(&all, SERVE_RUN), *many = waiting(&all, SERVE_RUN),
                        *more = waiting(&all, SERVE_RUN);
    struct serve_client *const clients[] = {NULL, few, many, more};
    all.clients = clients;
    all.places = 4;
    few->user = 1;
    many->jobs[0].used = false;
    const struct serve_job *own = keep(few, 1, LIMIT_SERVE_KEPT * 2 / 5, T0);
    struct serve_job *sent = keep(many, 1, LIMIT_SERVE_KEPT / 4, T0 + S);
    const struct serve_job *old = keep(more, 1, LIMIT_SERVE_KEPT / 4, T0 + 2 * S),
                           *last = keep(many, 2, LIMIT_SERVE_KEPT / 4, T0 + 3 * S);
    sent->readers = 1;
    serve_jobs_trim(&all);
    tap_ok(!old->used, "where results are too many bytes, the oldest of the user with most goes");
    tap_ok(own->used, "what another user has stays, though it is older and the largest");
    tap_ok(sent->used, "a result that is being sent stays");
    tap_ok(last->used, "once they are not too many, the others stay");
    sent->kept = false;
    tap_eq_int(serve_jobs_next(many, T0 + S), T0 + 3 * S + LIMIT_SERVE_KEEP_MS * CLOCK_NS_PER_MS,
               "nothing is due for a result that is being sent");
    serve_jobs_tick(many, T0 + S);
    tap_ok(sent->used, "a result that nobody else can ask for stays until it was sent");
    sent->readers = 0;
    serve_jobs_tick(many, T0 + S);
    tap_ok(!sent->used, "a result that nobody else can ask for is forgotten once it was sent");
    free(few);
    free(many);
    free(more);
}

static void test_idle_session(void)
{
    static const char handle[SERVE_HANDLE + 1] = "mcp-aaaaaaaaaaaaaaaaaaaaaaaaaa";
    struct serve_shared all = {0};
    struct serve_client *c = waiting(&all, SERVE_SESSION_RUN);
    struct serve_job *j = &c->jobs[0];
    struct buf list;
    const uint64_t last = T0 + LIMIT_SERVE_IDLE_MS * CLOCK_NS_PER_MS;
    buf_init(&list, 4096);
    serve_asks_free(&c->asks[0]);
    memcpy(j->session, handle, sizeof handle);
    tap_ok(serve_sessions_add(c, handle, T0), "a session is noted");
    tap_ok(serve_sessions_list(c, T0 + 100 * S, &list) == 0 &&
               strstr(list.data, "\"expires_in_s\": 1700"),
           "the list of sessions tells when one ends");
    tap_ok(serve_sessions_find(c, handle, last + 1),
           "a session in which a call goes on is not idle");
    j->ended_ns = T0;
    tap_ok(serve_sessions_find(c, handle, last), "a session is there for 30 minutes after a call");
    const struct serve_session *s = serve_sessions_find(c, handle, last + 1);
    tap_ok(s && s->over && !serve_session_lives(s),
           "a session is over after 30 idle minutes, and its client may still name it");
    buf_reset(&list);
    tap_ok(serve_sessions_list(c, last + 1, &list) == 0 && strncmp(list.data, "[]", 2) == 0,
           "a session that is over is not in the list");
    buf_done(&list);
    free(c);
}

/* How many of our own close the session, once they are started where that is due. */
static size_t closing(struct serve_client *c, const char *handle)
{
    size_t n = 0;
    serve_client_close_sessions(c, T0);
    for (size_t i = 0; i < LIMIT_SERVE_JOBS; i++)
        n += c->jobs[i].used && !c->jobs[i].ended_ns && c->jobs[i].verb == SERVE_SESSION_CLOSE &&
             strcmp(c->jobs[i].session, handle) == 0;
    return n;
}

/* Whoever makes a session may have made it when it is ended. */
static void test_given_up_session(void)
{
    static const char handle[SERVE_HANDLE + 1] = "mcp-aaaaaaaaaaaaaaaaaaaaaaaaaa";
    struct serve_shared all = {.config = {.cordon = "/proc/self/exe"}};
    struct serve_client *c = waiting(&all, SERVE_SESSION_NEW);
    struct serve_job *j = &c->jobs[0];
    serve_asks_free(&c->asks[0]);
    memcpy(j->session, handle, sizeof handle);
    j->runner.kill_ns = T0;
    j->runner.status = 128 + 15;
    serve_jobs_tick(c, T0);
    tap_ok(j->ended_ns && !serve_sessions_find(c, handle, T0),
           "a session whose maker was ended is not there for its client");
    tap_eq_int(closing(c, handle), 1, "a session whose maker was ended is closed");
    serve_client_done(c);
    free(c);
}

/* The one that is there, if any; its client sees it. */
static bool kill_runner(struct serve_client *c)
{
    for (size_t i = 0; i < LIMIT_SERVE_JOBS; i++) {
        struct serve_job *j = &c->jobs[i];
        struct pollfd end = {.fd = j->runner.pidfd, .events = POLLIN};
        if (!j->used || serve_runner_over(&j->runner))
            continue;
        serve_runner_kill(&j->runner);
        (void)poll(&end, 1, -1);
        j->stirred = true;
        serve_jobs_tick(c, T0);
        return true;
    }
    return false;
}

/* Whoever closes a session may not have closed it when it is killed, and its client tries in vain then. */
static void test_killed_close(void)
{
    static const char handle[SERVE_HANDLE + 1] = "mcp-aaaaaaaaaaaaaaaaaaaaaaaaaa";
    struct serve_shared all = {.config = {.cordon = "/proc/self/exe"}};
    struct serve_client *c = waiting(&all, SERVE_SESSION_CLOSE);
    struct serve_job *j = &c->jobs[0];
    size_t again = 0;
    serve_asks_free(&c->asks[0]);
    memcpy(j->session, handle, sizeof handle);
    j->deadline_ns = T0 + 900 * S;
    tap_ok(serve_sessions_add(c, handle, T0), "a session is there");
    serve_jobs_give_up(j, T0);
    tap_eq_int(j->deadline_ns, T0 + 10 * S,
               "who closes a session, and nobody waits for it, has ten seconds");
    j->runner.killed = true;
    j->runner.status = 128 + 9;
    serve_jobs_tick(c, T0);
    tap_ok(j->ended_ns && !serve_sessions_find(c, handle, T0),
           "a session is not there for its client when whoever closed it was killed");
    tap_eq_int(closing(c, handle), 1, "a session is closed when whoever closed it was killed");
    tap_eq_int(closing(c, handle), 1, "one of ours closes such a session at a time");
    serve_jobs_tick(c, T0); /* forgets the one that was killed */
    tap_eq_int(serve_jobs_next(c, T0 + S), T0 + 10 * S,
               "one of ours that hangs has ten seconds, too");
    while (kill_runner(c) && again < 9)
        again += closing(c, handle);
    tap_eq_int(again, 2, "a session whose closing is killed is closed by another, three times");
    tap_ok(serve_client_idle(c), "nothing of such a session is left to wait for");
    serve_client_done(c);
    free(c);
}

/* Whoever closes a session may fail by itself, because the policy is broken or the holder does not answer: the session is there. */
static void test_failed_close(void)
{
    static const char handle[SERVE_HANDLE + 1] = "mcp-aaaaaaaaaaaaaaaaaaaaaaaaaa";
    static const int statuses[] = {2, 125};
    for (size_t i = 0; i < 2; i++) {
        struct serve_shared all = {.config = {.cordon = "/proc/self/exe"}};
        struct serve_client *c = waiting(&all, SERVE_SESSION_CLOSE);
        struct serve_job *j = &c->jobs[0];
        serve_asks_free(&c->asks[0]);
        memcpy(j->session, handle, sizeof handle);
        j->deadline_ns = T0 + 900 * S;
        tap_ok(serve_sessions_add(c, handle, T0), "a session is there");
        j->runner.status = statuses[i];
        serve_jobs_tick(c, T0);
        const struct serve_session *s = j->ended_ns ? serve_sessions_find(c, handle, T0) : NULL;
        tap_eq_int(s && serve_session_lives(s), i == 0,
                   i == 0 ? "a session stays its client's when whoever closed it failed"
                          : "a session that the holder does not have is over");
        tap_eq_int(closing(c, handle), 0, "no session is closed by us while its client is there");
        c->gone = true;
        tap_eq_int(closing(c, handle), i == 0,
                   i == 0 ? "a session whose closing failed is closed when its client leaves"
                          : "of a session that is forgotten nothing is left to close");
        while (kill_runner(c))
            ;
        serve_client_done(c);
        free(c);
    }
}

/* How work is counted whose client gave it up, by whether its runner said that it was done, and with which status. */
static void test_crossed_end(void)
{
    static const struct {
        enum serve_verb verb;
        bool done;
        int status;
        enum serve_end end;
        const char *name;
    } cases[] = {
        {SERVE_RUN, true, 0, SERVE_END_OK,
         "a run that had ended well when it was given up is counted as ok"},
        {SERVE_RUN, true, 125, SERVE_END_NEVER_RAN,
         "a run that was refused before it was given up is counted as that"},
        {SERVE_RUN, true, 128 + 15, SERVE_END_CANCELLED,
         "a run that ended because it was given up is counted as cancelled"},
        {SERVE_RUN, false, 128 + 9, SERVE_END_CANCELLED,
         "a run that was given up and had to be killed is counted as cancelled"},
        {SERVE_CHECK, true, 2, SERVE_END_CANCELLED,
         "a check that was given up is counted as cancelled, whatever its status"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct serve_shared all = {0};
        struct serve_client *c = waiting(&all, cases[i].verb);
        struct serve_job *j = &c->jobs[0];
        serve_asks_free(&c->asks[0]);
        j->runner.kill_ns = T0;
        j->runner.done = cases[i].done;
        j->runner.status = cases[i].status;
        serve_jobs_tick(c, T0);
        tap_eq_int(all.figures.ended[cases[i].verb][cases[i].end], 1, "%s", cases[i].name);
        free(c);
    }
}

static void test_handles(void)
{
    enum { MANY = 1024 }; /* that a letter is never seen by chance: 1 in 10^11 */
    static char handles[MANY][SERVE_HANDLE + 1];
    struct err err = ERR_INIT;
    size_t bad = 0, seen[SERVE_HANDLE][256] = {{0}}, least = 32;
    for (size_t i = 0; i < MANY; i++) {
        bad += serve_handle_new(SERVE_HANDLE_SESSION, handles[i], &err) < 0 ||
               !serve_handle_good(SERVE_HANDLE_SESSION, handles[i]);
        for (size_t k = 0; k < SERVE_HANDLE; k++)
            seen[k][(unsigned char)handles[i][k]]++;
    }
    for (size_t k = 4; k < SERVE_HANDLE; k++) {
        size_t letters = 0;
        for (size_t l = 0; l < 256; l++)
            letters += seen[k][l] != 0;
        least = letters < least ? letters : least;
    }
    tap_eq_int(bad, 0, "handles are of their form");
    tap_eq_int(least, 32, "each of the 26 random letters of a handle is any of 32");
}

/* Cancels of a request that nobody made, as many as the socket takes: a front may send what it likes. */
static size_t fill(int sock)
{
    struct wire_writer w;
    struct buf frame;
    size_t sent = 0;
    buf_init(&frame, 64);
    wire_begin(&w, &frame, WIRE_SERVE_CANCEL);
    wire_put_uint(&w, 77);
    wire_put_uint(&w, 0);
    tap_ok(wire_end(&w) == 0, "a packet of a front is written");
    while (send(sock, frame.data, frame.len, MSG_DONTWAIT) == (ssize_t)frame.len)
        sent++;
    buf_done(&frame);
    return sent;
}

static void test_flood(void)
{
    struct serve_shared all = {0};
    struct serve_client *c = waiting(&all, SERVE_RUN);
    int pair[2];
    char frame[64];
    size_t left = 0;
    tap_ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0, "a socket is there");
    c->sock = pair[0];
    const size_t sent = fill(pair[1]);
    tap_ok(sent > LIMIT_SERVE_TURN, "a front sends more than is read in a row");
    serve_client_read(c, T0);
    while (recv(c->sock, frame, sizeof frame, MSG_DONTWAIT) > 0)
        left++;
    tap_eq_int(left, sent - LIMIT_SERVE_TURN,
               "of a front that sends without end so many packets are read, and then the others "
               "have their turn");
    close(pair[0]);
    close(pair[1]);
    serve_asks_free(&c->asks[0]);
    free(c);
}

/* One tick, of a poll that saw the end of the runners that are gone. */
static void tick_ready(struct serve_shared *all, uint64_t now_ns)
{
    struct pollfd p[LIMIT_SERVE_READY];
    serve_ready_watch(all, p);
    (void)poll(p, LIMIT_SERVE_READY, 0);
    serve_ready_tick(all, p, now_ns);
}

static size_t waiting_runners(const struct serve_shared *all)
{
    size_t n = 0;
    for (size_t i = 0; i < LIMIT_SERVE_READY; i++)
        n += !serve_runner_over(&all->ready[i]);
    return n;
}

/* A runner that waits is there, is killed, and cordond sees it. The time until another may be started. */
static uint64_t kill_waiting(struct serve_shared *all, uint64_t now_ns)
{
    if (waiting_runners(all) == 0)
        tick_ready(all, now_ns);
    for (size_t i = 0; i < LIMIT_SERVE_READY; i++) {
        struct pollfd end = {.fd = all->ready[i].pidfd, .events = POLLIN};
        if (serve_runner_over(&all->ready[i]))
            continue;
        serve_runner_kill(&all->ready[i]);
        (void)poll(&end, 1, -1);
        break;
    }
    all->draining = true; /* so that none is started by the tick that sees it */
    tick_ready(all, now_ns);
    all->draining = false;
    const uint64_t next = serve_ready_next(all);
    return next > now_ns ? next - now_ns : 0;
}

static void test_ready_ends(void)
{
    static const uint64_t pauses[] = {0, 0, 0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 64, 64};
    static const char *const words[] = {"cordon", NULL};
    struct serve_shared all = {.config = {.cordon = "/proc/self/exe"}, .wants_ready = true};
    struct serve_runner taken = SERVE_RUNNER_INIT;
    uint64_t now = T0;
    size_t wrong = 0, early = 0;
    for (size_t i = 0; i < LIMIT_SERVE_READY; i++)
        all.ready[i] = SERVE_RUNNER_INIT;
    for (size_t i = 0; i < sizeof pauses / sizeof *pauses; i++) {
        const uint64_t pause = kill_waiting(&all, now);
        wrong += pause != pauses[i] * S;
        now += pause;
        if (pause)
            tick_ready(&all, now - 1);
        early += pause && waiting_runners(&all) != 0;
    }
    tap_eq_int(wrong, 0,
               "eight runners that end while they wait, one after the other: a pause, which "
               "doubles with each that follows, up to 64 s");
    tap_eq_int(early, 0, "no runner is started to wait in such a pause");
    tick_ready(&all, now);
    tap_eq_int(waiting_runners(&all), 1, "a runner is started to wait when such a pause is over");
    tap_ok(serve_ready_take(&all, &taken, 0, words, "", 0), "a runner that waits is taken");
    tap_eq_int(kill_waiting(&all, now), 0,
               "the end of a runner that waits is the first again when another was taken");
    serve_runner_done(&taken);
    serve_ready_done(&all);
}

int main(int argc, char **argv)
{
    char order;
    (void)argv;
    if (argc > 1) /* as a runner, which waits for what it is told, and then to be killed */
        return read(STDIN_FILENO, &order, 1) == 1 ? pause() : 0;
    test_flood();
    test_long_run();
    test_session_in_the_making();
    test_result();
    test_large_results();
    test_idle_session();
    test_given_up_session();
    test_killed_close();
    test_failed_close();
    test_crossed_end();
    test_handles();
    test_ready_ends();
    return tap_done();
}
