/* SPDX-License-Identifier: Apache-2.0 */
/* A session and its branches with a supervisor each, on one listener. This one process is all of the supervisors, so
 * it decides who of them receives a call: it steps that one only.
 * Usage: test_family CORDON-NEST */
#include "base/tap.h"
#include "jail/test_guest.h"
#include "jail/test_talk.h"
#include "sys/fd.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    CROWD = 40, /* threads that are denied a call at the same time */
    SHARE = 32, /* of them wait for their supervisor; as in family.c */
};

/* A session, two branches of it, and a run over each. */
struct trio {
    struct jail_child child[3], lease[3];
    struct test_talk talk[3];
};
enum { SESSION, A, B };

/* What the holder does: copies of the descriptors travel to a client, which supervises one call. */
static bool lend(struct trio *t, int who, bool first)
{
    struct err err = ERR_INIT;
    int sv[2] = {-1, -1};
    bool good = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) == 0 &&
                jail_child_send(sv[0], &t->child[who], &err) == 0 &&
                jail_child_receive(sv[1], &t->lease[who], &err) == 0 &&
                test_talk(&t->talk[who], &t->lease[who], NULL, -1);
    fd_close(sv[0]);
    fd_close(sv[1]);
    /* an answer shows that the run watches all it has to */
    return good && (!first || test_hear(&t->talk[who])) && test_ask(&t->talk[who], "get") == 5;
}

/* As the holder does with what was branched or given back: nobody has it, and no clock runs for it. */
static bool rest(const struct trio *t, int who)
{
    return jail_child_deadline(t->child[who].control, 0) == 0;
}

static void give_back(struct trio *t, int who)
{
    jail_run_release(t->talk[who].run, 0);
    test_wait_end(&t->talk[who]);
    test_talk_end(&t->talk[who], &t->lease[who]);
    (void)rest(t, who);
}

static bool start(struct jail_template *tpl, struct trio *t)
{
    struct err err = ERR_INIT;
    struct jail_child_spec spec = test_child_spec("python-threads", true);
    spec.limits.threads = CROWD + 1;
    bool good = test_order(tpl, &spec, &t->child[SESSION]) &&
                test_call(&t->child[SESSION], "set 5", true) == 5 &&
                jail_branch(&t->child[SESSION], &t->child[A], &err) == 0 &&
                jail_branch(&t->child[SESSION], &t->child[B], &err) == 0;
    for (int who = SESSION; who <= B && good; who++)
        good = rest(t, who) && lend(t, who, who != SESSION);
    return tap_ok(good, "a session and two branches of it are in a call at the same time%s%s",
                  err.msg[0] ? ": " : "", err.msg);
}

static void end(struct trio *t)
{
    for (int who = SESSION; who <= B; who++) {
        jail_child_kill(&t->child[who]);
        jail_child_close(&t->child[who]);
    }
}

static bool waits(const struct trio *t)
{
    struct pollfd p = {.fd = t->child[SESSION].listener, .events = POLLIN};
    return poll(&p, 1, 0) == 1 && p.revents & POLLIN;
}

/* Tells WHO to make a denied call, and lets the supervisor of BY receive whatever comes of it. */
static bool received_by(struct trio *t, int who, const char *word, int by)
{
    struct pollfd p = {.fd = t->child[SESSION].listener, .events = POLLIN};
    t->talk[who].answer[0] = 0;
    if (write(t->talk[who].channel, word, strlen(word)) < 0 || poll(&p, 1, 10000) != 1)
        return false;
    while (waits(t))
        if (jail_run_step(t->talk[by].run, 1000))
            return false;
    return true;
}

static uint64_t mounts(const struct test_talk *t)
{
    const struct jail_outcome *o = jail_run_outcome(t->run);
    uint64_t n = 0;
    for (size_t i = 0; i < o->violation_count; i++)
        if (strcmp(o->violations[i].rule, "seccomp.mount") == 0)
            n += o->violations[i].times;
    return n;
}

static bool is_denied(struct test_talk *t)
{
    return test_hear(t) && strtol(t->answer, NULL, 10) == -EPERM;
}

static void relatives(struct jail_template *tpl)
{
    struct trio t = {.child = {JAIL_CHILD_NONE, JAIL_CHILD_NONE, JAIL_CHILD_NONE}};
    if (!start(tpl, &t))
        return;
    tap_ok(received_by(&t, A, "mount", B) && is_denied(&t.talk[A]),
           "a denied call that the supervisor of another branch receives is denied");
    tap_eq_int(mounts(&t.talk[A]), 1, "a denied call is in the report of the branch that made it");
    tap_eq_int(mounts(&t.talk[B]), 0,
               "a denied call is not in the report of the branch whose supervisor received it");

    bool passed = received_by(&t, A, "mount", B);
    give_back(&t, A);
    tap_ok(passed && test_call(&t.child[SESSION], "get", false) == 5,
           "a call that is received while its own supervisor leaves is kept");
    (void)lend(&t, A, false); /* asks `get`, and hears the answer to `mount` first */
    tap_ok(strtol(t.talk[A].answer, NULL, 10) == -EPERM,
           "the next supervisor of a branch answers a call that waited for one");
    tap_eq_int(mounts(&t.talk[A]), 1,
               "a call that waited for the next supervisor is in that one's report");
    for (int who = SESSION; who <= B; who++)
        give_back(&t, who);
    end(&t);
}

/* As if B's client had been killed between receiving a call and telling of it: it tells, but nobody hears. */
static void dead_client(struct jail_template *tpl)
{
    struct trio t = {.child = {JAIL_CHILD_NONE, JAIL_CHILD_NONE, JAIL_CHILD_NONE}};
    if (!start(tpl, &t))
        return;
    give_back(&t, B);
    int family = t.child[B].wake;
    t.child[B].wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (!tap_ok(lend(&t, B, false), "a client that cannot tell its relatives is in a call"))
        return;
    fd_close(t.child[B].wake);
    t.child[B].wake = family;
    bool passed = received_by(&t, A, "mount", B);
    (void)jail_run_step(t.talk[A].run, 0);
    tap_ok(passed && !t.talk[A].answer[0],
           "a relative's call that was received by a client that cannot tell of it waits");
    jail_child_kill(&t.child[B]); /* the holder does so when a client is gone */
    tap_ok(
        is_denied(&t.talk[A]) && mounts(&t.talk[A]) == 1,
        "when the holder ends the branch of the dead client, the relative's supervisor answers it");
    tap_ok(test_gone(t.child[B].guest) && test_ask(&t.talk[SESSION], "get") == 5 &&
               test_ask(&t.talk[A], "get") == 5,
           "no other branch ends with that of a dead client");
    give_back(&t, A);
    give_back(&t, SESSION);
    jail_run_free(t.talk[B].run);
    jail_child_close(&t.lease[B]);
    end(&t);
}

/* The client of B: supervises it, and so receives calls of A, until it is killed after MICROSECONDS. */
static pid_t start_client(struct trio *t, long microseconds)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    const struct itimerval soon = {.it_value = {.tv_usec = microseconds}};
    if (!lend(t, B, false) || setitimer(ITIMER_REAL, &soon, NULL) < 0)
        _exit(1);
    for (;;)
        if (jail_run_step(t->talk[B].run, 1000))
            _exit(2);
}

/* A floods its own supervisor, and B's, which is killed at any instant: also while it has the lock. */
static void killed_clients(struct jail_template *tpl)
{
    enum { ROUNDS = 60, CALLS = 300 };
    struct trio t = {.child = {JAIL_CHILD_NONE, JAIL_CHILD_NONE, JAIL_CHILD_NONE}};
    char word[16];
    int good = 0, killed = 0;
    if (!start(tpl, &t))
        return;
    give_back(&t, B);
    snprintf(word, sizeof word, "flood %d", CALLS);
    for (int i = 0; i < ROUNDS; i++) {
        int status = -1;
        pid_t client = start_client(&t, 1000 + random() % 20000), dead = 0;
        t.talk[A].answer[0] = 0;
        if (client < 0 || write(t.talk[A].channel, word, strlen(word)) < 0)
            break;
        while (!t.talk[A].answer[0] && !t.talk[A].closed) {
            if (jail_run_step(t.talk[A].run, 1000))
                break;
            if (!dead && (dead = waitpid(client, &status, WNOHANG)) == client)
                (void)eventfd_write(t.child[B].wake, 1); /* as the holder does */
        }
        if (!dead)
            waitpid(client, &status, 0);
        killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
        good += strtol(t.talk[A].answer, NULL, 10) == CALLS;
    }
    tap_eq_int(killed, ROUNDS, "the client of a branch is killed at %d random instants", ROUNDS);
    tap_eq_int(good, ROUNDS, "a relative that is denied %d calls meanwhile gets every answer",
               CALLS);
    tap_eq_int(
        jail_run_outcome(t.talk[A].run)->violations_total, ROUNDS * CALLS,
        "each denied call beside dying clients is counted in the report of its branch, once");
    give_back(&t, A);
    give_back(&t, SESSION);
    end(&t);
}

static nlink_t count_threads(const struct jail_child *c)
{
    char path[48];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%d/task", (int)jail_child_pid(c));
    return stat(path, &st) == 0 ? st.st_nlink - 2 : 0;
}

/* A's threads call when all of them are there. A's own supervisor is not stepped. */
static void crowd(struct jail_template *tpl)
{
    struct trio t = {.child = {JAIL_CHILD_NONE, JAIL_CHILD_NONE, JAIL_CHILD_NONE}};
    struct pollfd calls;
    char word[16];
    if (!start(tpl, &t))
        return;
    calls = (struct pollfd){.fd = t.child[SESSION].listener, .events = POLLIN};
    snprintf(word, sizeof word, "crowd %d", CROWD);
    t.talk[A].answer[0] = 0;
    tap_ok(write(t.talk[A].channel, word, strlen(word)) > 0 && poll(&calls, 1, 10000) == 1,
           "forty threads of a branch try a mount at the same time");
    for (int i = 0; i < 1000 && count_threads(&t.child[A]) != 1 + SHARE; i++)
        (void)jail_run_step(t.talk[B].run, 10);
    tap_eq_int(count_threads(&t.child[A]), 1 + SHARE,
               "calls beyond a branch's share are denied at once, whoever receives them");
    tap_eq_int(test_ask(&t.talk[SESSION], "mount"), -EPERM,
               "while a branch has used up its share, a relative's call is answered");
    tap_eq_int(
        mounts(&t.talk[SESSION]), 1,
        "while a branch has used up its share, a relative's denied call is in that one's report");
    tap_ok(test_hear(&t.talk[A]) && strtol(t.talk[A].answer, NULL, 10) == CROWD,
           "all forty calls of a crowd are denied");
    tap_eq_int(mounts(&t.talk[A]), SHARE,
               "of a crowd, the branch's report has those calls that waited for its supervisor");
    tap_eq_int(mounts(&t.talk[B]), 0, "of a crowd, no call is in the report of a relative");
    for (int who = SESSION; who <= B; who++)
        give_back(&t, who);
    end(&t);
}

/* Children of the init above them. */
static int count_members(const struct jail_child *c)
{
    char path[64], text[1024];
    FILE *f;
    int n = 0, init = 0;
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", c->init);
    f = fopen(path, "re");
    while (f && fgets(text, sizeof text, f))
        if (strncmp(text, "Pid:", 4) == 0)
            init = (int)strtol(text + 4, NULL, 10);
    if (f)
        fclose(f);
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", init, init);
    f = fopen(path, "re");
    text[0] = 0;
    if (f && fgets(text, sizeof text, f))
        for (const char *p = text; *p; p++)
            n += *p == ' ';
    if (f)
        fclose(f);
    return n;
}

static bool has_members(const struct jail_child *c, int count)
{
    for (int i = 0; i < 500 && count_members(c) != count; i++)
        usleep(20000);
    return count_members(c) == count;
}

static void cheats(struct jail_template *tpl)
{
    static const char *const ways[] = {"fd", "caps", "silent", "hide"};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct trio t = {.child = {JAIL_CHILD_NONE, JAIL_CHILD_NONE, JAIL_CHILD_NONE}};
        struct jail_child b = JAIL_CHILD_NONE;
        struct err err = ERR_INIT;
        char word[32];
        if (!start(tpl, &t))
            return;
        snprintf(word, sizeof word, "cheat %s", ways[i]);
        (void)test_ask(&t.talk[SESSION], word);
        give_back(&t, SESSION);
        tap_ok(jail_branch(&t.child[SESSION], &b, &err) == ERR_MISSING,
               "a session that cheats when it is forked (%s) is seen: %s", ways[i], err.msg);
        tap_ok(test_gone(t.child[SESSION].guest), "a session that cheats when it is forked ends");
        tap_ok(has_members(&t.child[A], 2),
               "the process that a cheating session made ends too: two branches are left");
        tap_ok(test_ask(&t.talk[A], "mount") == -EPERM && mounts(&t.talk[A]) == 1 &&
                   test_ask(&t.talk[B], "get") == 5,
               "branches of a session that cheats go on, and what they are denied is in their own "
               "reports");
        give_back(&t, A);
        give_back(&t, B);
        end(&t);
    }
}

int main(int argc, char **argv)
{
    struct jail_template *tpl = test_begin(argc, argv);
    if (!tap_ok(tpl != NULL, "a template starts"))
        return tap_done();
    relatives(tpl);
    dead_client(tpl);
    killed_clients(tpl);
    crowd(tpl);
    cheats(tpl);
    jail_template_free(tpl);
    return tap_done();
}
