/* SPDX-License-Identifier: Apache-2.0 */
/* The holder, live: templates, children and sessions with a small guest in the interpreter's place. This program
 * is all of it: the holder (in a process of its own), its clients, the template (--template) and the
 * guest, which does what it is told over its channel. Usage: test_holder CORDON-NEST [ROUNDS [GUEST]]
 * GUEST: this program from another build, for a holder under a sanitizer, which no jail lets in. */
#include "base/clock.h"
#include "base/tap.h"
#include "jail/template.h"
#include "pool/testing.h"
#include "pool/testing_kept.h"
#include "sys/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the guest ---- */

static int guest(void *ctx)
{
    static int kept = 1;
    char word[64], answer[32];
    (void)ctx;
    for (ssize_t n; (n = read(3, word, sizeof word - 1)) > 0;) {
        word[n] = 0;
        if (strncmp(word, "set ", 4) == 0)
            kept = (int)strtol(word + 4, NULL, 10);
        else if (strcmp(word, "exit") == 0)
            _exit(7);
        else if (strcmp(word, "fork") == 0)
            (void)jail_branch_here();
        int len = snprintf(answer, sizeof answer, "%d", kept);
        if (strcmp(word, "fork") != 0 && write(3, answer, (size_t)len) != len)
            return 1;
    }
    return 0;
}

static int be_template(void)
{
    const struct jail_template_hooks hooks = {.entry = guest};
    struct err err = ERR_INIT;
    return jail_template_serve(&hooks, &err) < 0;
}

/* ---- children for one run ---- */

static void leases(void)
{
    struct pool_client a = client(), b = client();
    struct jail_child x = JAIL_CHILD_NONE, y = JAIL_CHILD_NONE;
    struct pool_reply row;
    struct err err = ERR_INIT;
    struct pool_answer answer;
    char word[16];
    tap_ok(!lease(&a, 0, &x, word) && strcmp(word, POOL_WHY_COLD) == 0,
           "a cold template is said to be cold at once, and started");
    tap_ok(set(3) && stock_is_full(), "three children wait");
    (void)look(&row);
    tap_ok(strcmp(row.name, "strict") == 0 && strcmp(row.state, "ready") == 0,
           "status says that the template is ready");
    tap_ok(lease(&a, 0, &x, NULL) && lease(&b, 0, &y, NULL), "two clients have a child each");
    tap_ok(ask(&x, "set 5") == 5 && ask(&y, "get") == 1, "two clients have different children");
    tap_ok(x.layers.on[JAIL_LAYER_SYSCALLS] && x.limits.memory == limits().memory,
           "a leased child comes with what it proved and is locked with");
    tap_ok(!lease(&a, 0, &x, word) && strcmp(word, POOL_WHY_ORDER) == 0,
           "a client has one child at a time");
    tap_ok(stock_is_full(), "the stock is filled again");
    tap_eq_int(look(NULL).lent, 2, "the holder counts two lent children");

    FD_AUTO dies = fcntl(x.guest, F_DUPFD_CLOEXEC, 3);
    pool_client_close(&a);
    tap_ok(dead_soon(dies), "the child of a closed connection is dead though we hold it");
    const struct pool_use_numbers use = {0};
    tap_ok(pool_client_back(&b, false, "", "", &use, NULL, 0, &answer, &err) == 0 &&
               !answer.declined,
           "a child is given back");
    tap_ok(dead_soon(y.guest), "a child that is given back dies");
    jail_child_close(&x);
    jail_child_close(&y);
    tap_eq_int(look(NULL).lent, 0, "no child is lent after both came back");
    tap_ok(lease(&b, 0, &y, NULL) && ask(&y, "get") == 1,
           "the next one over the same connection is a fresh one");
    jail_child_close(&y);
    pool_client_close(&b);

    b = client();
    struct jail_limits other = limits();
    other.disk /= 2;
    int r = pool_client_lease(&b, "strict", false, &other, 5000, &y, &answer, &err);
    tap_ok(r == 0 && !answer.declined && y.limits.disk == other.disk,
           "a child is made for a request with other limits");
    jail_child_close(&y);
    pool_client_close(&b);

    tap_ok(set(0) && look(NULL).ready == 0, "a stock of no children holds none");
    b = client();
    tap_ok(!lease(&b, 0, &y, word) && strcmp(word, POOL_WHY_EMPTY) == 0,
           "a client that does not wait is told that no child is ready");
    pool_client_close(&b);
    b = client();
    tap_ok(lease(&b, 5000, &y, NULL) && ask(&y, "get") == 1,
           "a client that waits gets a child that is made now");
    jail_child_close(&y);
    pool_client_close(&b);
    tap_ok(set(3) && stock_is_full(), "a stock of three is filled again");
}

static void ahead(void)
{
    struct pool_client a = client();
    struct jail_child x;
    struct pool_lease l = {.profile = "strict", .limits = limits(), .patience_ms = 5000};
    struct pool_answer said;
    struct err err = ERR_INIT;
    tap_ok(!pool_client_ahead(&a, &l, &err) && stock_is_full() && look(NULL).lent == 1,
           "a child is lent to a client that asked ahead");
    tap_ok(pool_client_look(&a, 1, &said, &err) == 0 && !look(NULL).lent,
           "a child that was asked for ahead goes back when the client asks something else");
    tap_ok(pool_client_ahead(&a, &l, &err) == 0 && lease(&a, 0, &x, NULL) && ask(&x, "get") == 1 &&
               look(NULL).lent == 1,
           "a lease finds the child that was asked for ahead");
    jail_child_close(&x);
    pool_client_close(&a);
}

/* Many clients at once, more than there are children: each gets one, nobody is left out. */
static void crowd(void)
{
    enum { MANY = 24 };
    pid_t pids[MANY];
    int good = 0;
    for (int i = 0; i < MANY; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            struct jail_child c = JAIL_CHILD_NONE;
            struct pool_client p = client();
            bool ok = lease(&p, 20000, &c, NULL) && ask(&c, "set 9") == 9;
            _exit(!ok);
        }
    }
    for (int i = 0; i < MANY; i++) {
        int status = 1;
        waitpid(pids[i], &status, 0);
        good += status == 0;
    }
    tap_eq_int(good, MANY, "%d clients at once: each is served", MANY);
    tap_ok(stock_is_full(), "the stock is full again after many clients at once");
}

/* ---- the template ---- */

/* This program again, as another process: what runs it is known by its file, wherever it is mounted. */
static bool runs_us(const char *pid)
{
    char path[64];
    struct stat ours, theirs;
    snprintf(path, sizeof path, "/proc/%.20s/exe", pid);
    return stat(self, &ours) == 0 && stat(path, &theirs) == 0 && ours.st_dev == theirs.st_dev &&
           ours.st_ino == theirs.st_ino;
}

static bool is_below_nest(const char *pid)
{
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/%.20s/status", pid);
    const char *at =
        fd_read_file(AT_FDCWD, path, text, sizeof text) > 0 ? strstr(text, "\nPPid:\t") : NULL;
    if (!at)
        return false;
    snprintf(path, sizeof path, "/proc/%ld/comm", strtol(at + 7, NULL, 10));
    return fd_read_file(AT_FDCWD, path, text, sizeof text) > 0 &&
           strcmp(text, "cordon-nest\n") == 0;
}

/* The one under cordon-nest: those that it made are under inits of their own. */
static pid_t find_template(void)
{
    DIR *d = opendir("/proc");
    pid_t found = 0;
    for (struct dirent *e; d && !found && (e = readdir(d));)
        if (strtol(e->d_name, NULL, 10) > 0 && runs_us(e->d_name) && is_below_nest(e->d_name))
            found = (pid_t)strtol(e->d_name, NULL, 10);
    if (d)
        closedir(d);
    return found;
}

/* A stopped template stands for a machine that is too busy. */
static void template_is_slow(void)
{
    struct pool_client a = client();
    struct jail_child x = JAIL_CHILD_NONE;
    struct pool_answer answer;
    struct err err = ERR_INIT;
    struct jail_limits l = limits();
    pid_t pid = find_template();
    tap_ok(set(0) && look(NULL).ready == 0 && pid > 0 && kill(pid, SIGSTOP) == 0,
           "a template without a stock is stopped");
    int r = pool_client_lease(&a, "strict", false, &l, 100, &x, &answer, &err);
    unsigned long waited = 0;
    const char *said = answer.reply.reason;
    tap_ok(r == 0 && answer.declined &&
               sscanf(said, "no child was made within %lu ms", &waited) == 1 && waited >= 100 &&
               strstr(said, "try again"),
           "a client that waited in vain is told how long, and what to do: %s", said);
    kill(pid, SIGCONT);
    pool_client_close(&a);
    a = client();
    tap_ok(lease(&a, 5000, &x, NULL), "a template that goes on makes children again");
    jail_child_close(&x);
    pool_client_close(&a);
    tap_ok(set(3) && stock_is_full(), "the stock of a template that goes on is filled again");
}

static void template_dies(void)
{
    struct pool_client a = client();
    struct jail_child x = JAIL_CHILD_NONE;
    struct pool_template_numbers before = look(NULL);
    tap_ok(lease(&a, 0, &x, NULL), "a child is lent to a client");
    pid_t pid = find_template();
    tap_ok(pid > 0 && kill(pid, SIGKILL) == 0, "the template of a leased child is killed (%d)",
           (int)pid);
    tap_ok(dead_soon(x.guest), "a leased child dies with its template");
    jail_child_close(&x);
    pool_client_close(&a);
    bool repaired = false;
    struct pool_reply row;
    for (int i = 0; i < 2000 && !repaired; i++) {
        struct pool_template_numbers n = look(&row);
        repaired =
            n.crashes == before.crashes + 1 && n.starts == before.starts + 1 && n.ready == n.warm;
        usleep(5000);
    }
    tap_ok(repaired, "a killed template is noticed and started again: %s", row.reason);
    a = client();
    tap_ok(lease(&a, 0, &x, NULL) && ask(&x, "get") == 1,
           "children of a template that was started again work");
    jail_child_close(&x);
    pool_client_close(&a);
}

/* ---- sessions ---- */

static bool is_stopped(uint64_t pid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%llu/stat", (unsigned long long)pid);
    for (int i = 0; i < 1000; i++) {
        const char *paren =
            fd_read_file(AT_FDCWD, path, text, sizeof text) > 0 ? strrchr(text, ')') : NULL;
        if (paren && paren[2] == 'T')
            return true;
        usleep(2000);
    }
    return false;
}

static void life(void)
{
    struct pool_client c = client(), d = client();
    struct jail_child x = JAIL_CHILD_NONE;
    struct pool_answer a;
    struct err err = ERR_INIT;
    tap_ok(new_session(&c, "one", 60000, &x, &a) && strcmp(a.reply.name, "one") == 0,
           "a session is made, and lent to who made it");
    tap_eq_int(ask(&x, "set 42"), 42, "a variable is set");
    struct jail_child y = JAIL_CHILD_NONE;
    tap_ok(!call(&d, "one", false, &y, &a) && strcmp(a.reply.state, POOL_WHY_BUSY) == 0,
           "a session that is lent is busy for other clients: %s", a.reply.reason);
    tap_ok(!new_session(&d, "one", 60000, &y, &a) && strcmp(a.reply.state, POOL_WHY_EXISTS) == 0,
           "a second session of the same name is refused");
    tap_ok(back(&c, true, "", "{\"call\":1}\n", &x), "a session is given back");
    pool_client_close(&c);
    tap_ok(call(&d, "one", false, &x, &a) && a.reply.lent.call == 0 && a.reply.lent.host_calls == 1,
           "a session that was given back is lent to another client");
    tap_eq_int(ask(&x, "get"), 42, "a session's variable lives on for the next client");
    tap_ok(back(&d, true, "", "{\"call\":2}\n", &x), "a session is given back by the next client");

    int fd = -1;
    char text[64] = "";
    tap_ok(pool_client_export(&d, "one", &fd, &a, &err) == 0 && a.reply.log.records == 2 &&
               read(fd, text, sizeof text - 1) > 0,
           "the records of a session are exported");
    tap_eq_str(text, "{\"call\":1}\n{\"call\":2}\n",
               "a session's records are what its clients saw, in order");
    fd_close(fd);

    tap_ok(pool_client_next(&d, 0, &a, &err) == 0 && a.reply.type == WIRE_SESSION_IS &&
               strcmp(a.reply.state, "idle") == 0 && a.reply.session.calls == 1 &&
               a.reply.session.pid > 0,
           "an idle session is in the list");
    tap_ok(is_stopped(a.reply.session.pid), "a session is stopped between two calls");

    tap_ok(call(&d, "one", false, &x, &a), "a session is lent for a call");
    pool_client_close(&d);
    tap_ok(dead_soon(x.guest), "a session whose client goes away during a call is dead");
    jail_child_close(&x);
    d = client();
    tap_ok(!call(&d, "one", false, &x, &a) && strcmp(a.reply.state, POOL_WHY_ENDED) == 0 &&
               strstr(a.reply.reason, "client went away"),
           "a later call is told that the session's client went away: %s", a.reply.reason);
    pool_client_close(&d);
}

/* Until the holder has so many: it ends a session when it comes to it. True in time. */
static bool sessions_are(uint64_t count)
{
    for (int i = 0; i < 2000; i++) {
        if (look_holder().sessions == count)
            return true;
        usleep(5000);
    }
    return false;
}

static void ends(void)
{
    struct pool_client c = client();
    struct jail_child x = JAIL_CHILD_NONE;
    struct pool_answer a;
    struct err err = ERR_INIT;
    const uint64_t others = look_holder().sessions;
    tap_ok(new_session(&c, "short", 100, &x, &a) && back(&c, true, "", NULL, &x) &&
               sessions_are(others),
           "a session that may idle for 0.1 s ends");
    tap_ok(!call(&c, "short", false, &x, &a) && strcmp(a.reply.state, POOL_WHY_ENDED) == 0 &&
               strstr(a.reply.reason, "idle for"),
           "a session that idled for too long ends, and the reason is told: %s", a.reply.reason);

    tap_ok(new_session(&c, "timed", 60000, &x, &a) &&
               back(&c, false, "wall time limit of 120s", "{}\n", &x),
           "a client ends a session and gives the reason");
    tap_ok(!call(&c, "timed", false, &x, &a) && strstr(a.reply.reason, "wall time limit"),
           "the reason why a session ended is remembered: %s", a.reply.reason);
    int fd = -1;
    tap_ok(pool_client_export(&c, "timed", &fd, &a, &err) == 0 && a.reply.log.records == 1,
           "the records of an ended session are remembered");
    fd_close(fd);

    tap_ok(new_session(&c, "", 60000, &x, &a), "a session is made whose process will die");
    char name[POOL_NAME + 1];
    snprintf(name, sizeof name, "%s", a.reply.name);
    FD_AUTO guest_fd = fcntl(x.guest, F_DUPFD_CLOEXEC, 3);
    tap_ok(back(&c, true, "", NULL, &x) &&
               syscall(SYS_pidfd_send_signal, guest_fd, SIGKILL, NULL, 0) == 0 &&
               dead_soon(guest_fd) && sessions_are(others),
           "the process of an idle session is killed");
    tap_ok(!call(&c, name, false, &x, &a) && strstr(a.reply.reason, "process"),
           "a session whose process died is over: %s", a.reply.reason);

    tap_ok(new_session(&c, "closed", 60000, &x, &a) && back(&c, true, "", NULL, &x) &&
               pool_client_end(&c, "closed", &a, &err) == 0 && !a.declined,
           "a session is closed by its client");
    tap_ok(!call(&c, "closed", false, &x, &a) && strstr(a.reply.reason, "closed"),
           "a closed session takes no calls, and says why");
    tap_ok(!call(&c, "never", false, &x, &a) && strcmp(a.reply.state, POOL_WHY_UNKNOWN) == 0,
           "a session that never was is unknown");

    struct pool_client d = client();
    tap_ok(new_session(&c, "stuck", 60000, &x, &a) && pool_client_end(&d, "stuck", &a, &err) == 0 &&
               !a.declined && dead_soon(x.guest),
           "a session in a call can be closed by another client");
    tap_ok(!back(&c, false, "lost", "{}\n", &x),
           "the client of a session that another one closed is told");
    pool_client_close(&d);
    pool_client_close(&c);
}

/* Sends the two packets of a branch with what a second client does between them. The child of a lease stands in for
 * the branch: to the holder both are nothing but descriptors. */
static void closed_while_forked(void)
{
    struct pool_client c = client(), d = client(), e = client();
    struct jail_child x = JAIL_CHILD_NONE, y = JAIL_CHILD_NONE;
    struct pool_answer a;
    struct pool_reply said = {0};
    struct err err = ERR_INIT;
    char frame[4096];
    struct buf b = {.data = frame, .cap = sizeof frame, .max = sizeof frame - 1};
    const struct pool_request q = {.type = WIRE_SESSION_BRANCH};
    const uint64_t bad = look_holder().bad_frames;
    tap_ok(new_session(&c, "forked", 60000, &x, &a) && back(&c, true, "", NULL, &x) &&
               call(&c, "forked", true, &x, &a) && lease(&d, 5000, &y, NULL),
           "a session is lent to be forked");
    tap_ok(pool_request_write(&q, &b, &err) == 0 &&
               send(c.sock, b.data, b.len, MSG_NOSIGNAL) == (ssize_t)b.len &&
               recv(c.sock, frame, sizeof frame, 0) > 0,
           "the holder agrees to take a branch of it");
    tap_ok(pool_client_end(&e, "forked", &a, &err) == 0 && !a.declined, "the session is closed");
    tap_ok(jail_child_send(c.sock, &y, &err) == 0,
           "a branch is sent to the holder after its session was closed");
    ssize_t n = recv(c.sock, frame, sizeof frame, 0);
    tap_ok(n > 0 && pool_reply_read(frame, (size_t)n, &said, &err) == 0 &&
               said.type == WIRE_DECLINED && strcmp(said.state, POOL_WHY_ENDED) == 0,
           "a branch of a session that was closed meanwhile is declined: %s", said.reason);
    tap_eq_int(look_holder().bad_frames, bad,
               "a branch of a closed session is not taken for a bad frame");
    tap_ok(!back(&c, true, "", NULL, &x) && pool_client_look(&c, 1, &a, &err) == 0,
           "the connection that sent a late branch lives on");
    jail_child_close(&y);
    pool_client_close(&c);
    pool_client_close(&d);
    pool_client_close(&e);
}

/* The guest's answer to FORK is no word of its own; the jail's are not shown here. */
static void records_are_bounded(void)
{
    struct pool_client c = client();
    struct jail_child x = JAIL_CHILD_NONE;
    struct pool_answer a;
    struct err err = ERR_INIT;
    int fd = -1;
    static char record[1024 * 1024];
    memset(record, 'x', sizeof record);
    record[sizeof record - 1] = 0;
    tap_ok(new_session(&c, "talker", 60000, &x, &a), "a session that says a lot");
    bool good = back(&c, true, "", record, &x);
    for (int i = 0; i < 10 && good; i++)
        good = call(&c, "talker", false, &x, &a) && back(&c, true, "", record, &x);
    tap_ok(good && pool_client_export(&c, "talker", &fd, &a, &err) == 0 &&
               a.reply.log.bytes <= POOL_LOG && a.reply.log.dropped >= 3 &&
               a.reply.log.records + a.reply.log.dropped == 11,
           "a session that says much keeps %llu records, %llu were dropped",
           (unsigned long long)a.reply.log.records, (unsigned long long)a.reply.log.dropped);
    fd_close(fd);
    tap_ok(pool_client_end(&c, "talker", &a, &err) == 0,
           "a session with dropped records is closed");
    pool_client_close(&c);
}

/* ---- clients that are none ---- */

static int raw(void)
{
    struct pool_client c = client();
    return c.sock;
}

static void strangers(void)
{
    struct pool_holder_numbers before = look_holder();
    static char junk[4096];
    for (size_t i = 0; i < sizeof junk; i++)
        junk[i] = (char)(i * 37);
    int closed = 0;
    for (int i = 0; i < 20; i++) {
        int s = raw();
        char byte;
        struct pollfd p = {.fd = s, .events = POLLIN};
        (void)!send(s, junk + i, 1 + (size_t)i * 100, MSG_NOSIGNAL);
        closed += poll(&p, 1, 5000) == 1 && recv(s, &byte, 1, 0) <= 0;
        fd_close(s);
    }
    tap_eq_int(closed, 20, "a connection that sends garbage is closed, and no other");
    tap_eq_int(look_holder().bad_frames - before.bad_frames, 20,
               "connections that sent garbage are counted as bad frames");

    int fds[2], s = raw();
    char frame[64];
    struct buf b = {.data = frame, .cap = sizeof frame, .max = sizeof frame - 1};
    struct pool_request q = {.type = WIRE_POOL_NEXT};
    struct err err = ERR_INIT;
    if (pipe2(fds, O_CLOEXEC) == 0 && pool_request_write(&q, &b, &err) == 0) {
        struct fd_packet p = {.data = frame, .len = b.len, .fds = fds, .nfds = 2};
        (void)!fd_send(s, &p);
    }
    char byte;
    tap_ok(recv(s, &byte, 1, 0) <= 0,
           "a connection that sends descriptors nobody asked for is closed");
    fd_close(s);
    fd_close(fds[0]);
    fd_close(fds[1]);

    int many[POOL_CLIENTS + 40];
    const size_t count = sizeof many / sizeof *many;
    for (size_t i = 0; i < count; i++)
        many[i] = raw();
    struct pool_client c = client();
    struct jail_child x = JAIL_CHILD_NONE;
    tap_ok(lease(&c, 5000, &x, NULL), "%zu that say nothing: the one who asks is served", count);
    jail_child_close(&x);
    pool_client_close(&c);
    for (size_t i = 0; i < count; i++)
        fd_close(many[i]);

    /* one that asks and does not read */
    s = raw();
    b.len = 0;
    if (pool_request_write(&q, &b, &err) == 0)
        for (int i = 0; i < 5000; i++)
            if (send(s, frame, b.len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
                break;
    tap_ok(look_holder().pid == (uint64_t)holder,
           "a client that asks and never reads stops nobody");
    fd_close(s);
    if (geteuid() == 0) {
        uint64_t refused = look_holder().refused_peers;
        pid_t other = fork();
        if (other == 0) {
            struct pool_socket at = {.dir = -1};
            int sock = -1;
            if (pool_socket_open(&at, false, &err) < 0 || setgid(61234) < 0 || setuid(61234) < 0)
                _exit(2);
            /* the folder is open already: only the holder's own check is left */
            _exit(pool_socket_connect(&at, POOL_ANSWER_MS, &sock, &err) == 0 && sock >= 0 ? 1 : 0);
        }
        int status = 2;
        waitpid(other, &status, 0);
        tap_ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "another user gets nothing");
        (void)refused;
    }
}

/* It was silent for long, and asks in the moment when the holder has no room: while the holder stands still others come,
 * then it asks, so that the holder sees the others first. */
static void asks_late(void)
{
    int many[POOL_CLIENTS];
    struct pool_client a = client();
    struct err err = ERR_INIT;
    struct pool_lease l = {.profile = "strict", .limits = limits(), .patience_ms = 5000};
    struct jail_child x = JAIL_CHILD_NONE;
    struct pool_answer answer;
    enum { LATE = 8 };
    uint64_t with_us = look_holder().clients; /* it has been let in */
    for (size_t i = 0; i < POOL_CLIENTS - LATE; i++)
        many[i] = raw();
    for (int i = 0; i < 20000 && look_holder().clients < with_us + POOL_CLIENTS - LATE; i++)
        sched_yield();
    for (size_t i = POOL_CLIENTS - LATE; i < POOL_CLIENTS - 1; i++)
        many[i] = raw();
    kill(holder, SIGSTOP);
    many[POOL_CLIENTS - 1] = raw();
    int ordered = pool_client_order(&a, &l, &err);
    kill(holder, SIGCONT);
    int r = ordered == 0 ? pool_client_take(&a, &l, &x, &answer, &err) : -1;
    tap_ok(r == 0 && !answer.declined,
           "a client that asks just before it would have to make room is served");
    if (r < 0)
        printf("# %s\n", err.msg);
    jail_child_close(&x);
    pool_client_close(&a);
    for (size_t i = 0; i < POOL_CLIENTS; i++)
        fd_close(many[i]);
}

static unsigned long own_memory(pid_t pid, unsigned *ret_fds)
{
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *d = opendir(path);
    *ret_fds = 0;
    while (d && readdir(d))
        ++*ret_fds;
    if (d)
        closedir(d);
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    const char *at =
        fd_read_file(AT_FDCWD, path, text, sizeof text) > 0 ? strstr(text, "VmRSS:") : NULL;
    return at ? strtoul(at + 6, NULL, 10) : 0;
}

static void many_leases(int rounds)
{
    unsigned fds_before = 0, fds_after = 0;
    unsigned long before = 0, after = 0;
    bool good = true;
    uint64_t began = 0;
    for (int i = 0; i < rounds + 50 && good; i++) {
        if (i == 50) {
            good = stock_is_full();
            before = own_memory(holder, &fds_before);
            began = clock_now_ns();
        }
        struct pool_client c = client();
        struct jail_child x = JAIL_CHILD_NONE;
        char word[16] = "";
        bool got = lease(&c, 10000, &x, word);
        long heard = got ? ask(&x, "get") : 0;
        if (!got || heard != 1)
            printf("# lease %d: %s %s, heard %ld\n", i, got ? "got" : "declined:", word, heard);
        good = good && got && heard == 1;
        jail_child_close(&x);
        pool_client_close(&c);
    }
    uint64_t took = clock_now_ns() - began;
    tap_ok(good && stock_is_full(), "%d leases, one after the other", rounds);
    after = own_memory(holder, &fds_after);
    printf("#= %d leases: %.0f a second; holder: descriptors %u -> %u, memory %lu -> %lu KB\n",
           rounds, rounds / ((double)took / 1e9), fds_before, fds_after, before, after);
    tap_ok(fds_after < fds_before + 8 && after <= before + 256,
           "many leases leave nothing in the holder");
}

static void stops(void)
{
    struct pool_client c = client(), d = client();
    struct jail_child x = JAIL_CHILD_NONE, y = JAIL_CHILD_NONE;
    struct pool_answer a;
    struct err err = ERR_INIT;
    tap_ok(new_session(&c, "last", 60000, &x, &a) && back(&c, true, "", NULL, &x),
           "a session is made");
    tap_ok(pool_client_stop(&c, false, &a, &err) == 0 && a.declined,
           "a session keeps the holder from stopping: %s", a.reply.reason);
    tap_ok(call(&c, "last", false, &x, &a) && lease(&d, 5000, &y, NULL),
           "a client has a call and another one a lease");
    tap_ok(kill(holder, SIGKILL) == 0 && waitpid(holder, NULL, 0) == holder,
           "the holder is killed");
    tap_ok(dead_soon(x.guest) && dead_soon(y.guest), "no child outlives the holder");
    jail_child_close(&x);
    jail_child_close(&y);
    pool_client_close(&c);
    pool_client_close(&d);
    tap_ok(start_holder(), "another holder starts in place of a killed one");
    c = client();
    tap_ok(pool_client_stop(&c, false, &a, &err) == 0 && !a.declined, "the holder is told to stop");
    int status = 1;
    tap_ok(waitpid(holder, &status, 0) == holder && status == 0,
           "the holder that was told to stop ends with status 0");
    pool_client_close(&c);
    tap_ok(pool_client_open(&c, NULL, POOL_ANSWER_MS, &err) == 0 && c.sock < 0,
           "the socket of a stopped holder is gone");
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    (void)st, (void)kind, (void)where;
    return remove(path);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--template") == 0)
        return be_template();
    if (argc < 2)
        return 2;
    nest = argv[1];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n < 0 ? 0 : n] = 0;
    if (argc > 3)
        snprintf(self, sizeof self, "%s", argv[3]);
    signal(SIGPIPE, SIG_IGN);
    snprintf(state, sizeof state, "/tmp/cordon-test-holder-XXXXXX");
    if (!mkdtemp(state) || setenv("CORDON_STATE", state, 1) < 0)
        return 1;
    if (tap_ok(start_holder(), "the holder starts")) {
        leases();
        ahead();
        crowd();
        template_is_slow();
        template_dies();
        life();
        ends();
        closed_while_forked();
        layers_are_kept();
        owners_take_along();
        records_are_bounded();
        strangers();
        asks_late();
        many_leases(argc > 2 ? (int)strtol(argv[2], NULL, 10) : 300);
        stops();
    }
    if (nftw(state, remove_one, 8, FTW_DEPTH | FTW_PHYS) != 0)
        return 1;
    return tap_done();
}
