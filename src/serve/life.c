/* SPDX-License-Identifier: Apache-2.0 */
/* How a server begins, reads its policy again and ends. cordond knows no policy: `cordon serve --from-cordond` is started
 * with the operator's words, judges them as at the beginning, and prints three numbers. Runs that are under way have
 * their limits on their command lines and keep them.
 *
 * Waits: read in take_signals; nobody: the descriptor is non-blocking; at once; comes again after poll */
#include "serve/serving.h"

#include "base/clock.h"
#include "base/units.h"
#include "sys/fd.h"
#include "sys/nowait.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define CLIENTS (LIMIT_SERVE_CLIENTS + SERVE_FRONTS)

int serve_life_begin(struct serve_server *s, struct err *err)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    s->phase = SERVE_SERVING;
    s->until_ns = UINT64_MAX;
    s->reader = SERVE_RUNNER_INIT;
    for (size_t i = 0; i < LIMIT_SERVE_READY; i++)
        s->all.ready[i] = SERVE_RUNNER_INIT;
    sys_notify_open(&s->manager);
    s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return s->signals < 0 ? err_sys(err, "signals") : 0;
}

void serve_life_end(struct serve_server *s)
{
    serve_runner_done(&s->reader);
    serve_ready_done(&s->all);
    fd_close(fd_take(&s->signals));
    fd_close(fd_take(&s->manager.sock));
}

/* WHAT may be a whole line of the reader's. */
static void complain(const char *what)
{
    char line[500];
    const size_t len = strlen(what), end = len && what[len - 1] == '\n';
    const int n = snprintf(line, sizeof line, "cordond: the policy was not read again: %.*s\n",
                           (int)(len - end), what);
    (void)!sys_write_now(STDERR_FILENO, line, n < (int)sizeof line ? (size_t)n : sizeof line - 1);
}

/* ---- the policy, again ---- */

static void add_word(const char **argv, size_t *n, const char *name, const char *value)
{
    if (!*value)
        return;
    argv[(*n)++] = name;
    argv[(*n)++] = value;
}

static void start_reader(struct serve_server *s, uint64_t now_ns)
{
    const struct serve_config *f = &s->all.config;
    const char *argv[16] = {f->cordon, "serve", "--from-cordond"};
    size_t n = 3;
    char line[80];
    struct err err = ERR_INIT;
    add_word(argv, &n, "--profile", f->profile);
    add_word(argv, &n, "--role", f->role);
    add_word(argv, &n, "--policy", f->policy);
    add_word(argv, &n, "--timeout", f->timeout);
    add_word(argv, &n, "--memory", f->memory);
    add_word(argv, &n, "--output", f->output);
    snprintf(line, sizeof line, "RELOADING=1\nMONOTONIC_USEC=%llu",
             (unsigned long long)(now_ns / 1000));
    sys_notify_send(&s->manager, line);
    s->again = false;
    s->reloading = serve_runner_start(&s->reader, argv[0], &err) == 0 &&
                   serve_runner_order(&s->reader, getuid(), argv, "", 0, &err) == 0;
    s->reader_until_ns = now_ns + LIMIT_SERVE_RELOAD_MS * CLOCK_NS_PER_MS;
    if (!s->reloading) {
        serve_runner_done(&s->reader);
        complain(err.msg);
        sys_notify_send(&s->manager, "READY=1");
    }
}

/* "TIMEOUT MEMORY OUTPUT\n", as cmd_serve prints them. */
static bool parse(const struct buf *text, struct serve_limits *ret)
{
    char line[100], *at = line;
    uint64_t numbers[3];
    snprintf(line, sizeof line, "%.*s", (int)text->len, text->len ? text->data : "");
    for (int i = 0; i < 3; i++) {
        char *end = at + strcspn(at, " \n");
        const bool last = !*end;
        *end = 0;
        if (units_count(at, &numbers[i]) < 0 || numbers[i] == 0 || (last && i < 2))
            return false;
        at = end + !last;
    }
    *ret = (struct serve_limits){numbers[0], numbers[1], numbers[2]};
    return true;
}

static void take_limits(struct serve_server *s)
{
    const struct serve_runner *r = &s->reader;
    struct serve_limits limits;
    if (r->status != 0 || !parse(&r->text, &limits)) {
        complain(r->said[0] ? r->said : "its reader gave no limits");
        return;
    }
    s->all.config.limits = limits;
    serve_ready_done(&s->all); /* others take their place, which know the new ones */
    for (size_t i = 0; i < CLIENTS; i++)
        if (s->clients[i])
            s->clients[i]->told = false;
}

static void look_at_reader(struct serve_server *s, uint64_t now_ns)
{
    if (!s->reloading)
        return;
    serve_runner_take(&s->reader);
    if (!serve_runner_over(&s->reader)) {
        if (now_ns >= s->reader_until_ns)
            serve_runner_kill(&s->reader);
        return;
    }
    take_limits(s);
    serve_runner_done(&s->reader);
    s->reloading = false;
    if (s->again && s->phase == SERVE_SERVING)
        start_reader(s, now_ns);
    else
        sys_notify_send(&s->manager, "READY=1");
}

/* ---- the end ---- */

static bool drained(const struct serve_server *s)
{
    for (size_t i = 0; i < CLIENTS; i++)
        if (s->clients[i] && !serve_client_drained(s->clients[i]))
            return false;
    return true;
}

static void enter(struct serve_server *s, enum serve_phase phase, uint64_t most_ms, uint64_t now_ns)
{
    if (s->phase == SERVE_SERVING) {
        sys_notify_send(&s->manager, "STOPPING=1");
        s->all.draining = true;
        serve_ready_done(&s->all);
        fd_close(
            fd_take(&s->listener)); /* who comes now finds nobody, or waits for the next server */
    }
    s->phase = phase;
    s->until_ns = now_ns + most_ms * CLOCK_NS_PER_MS;
}

void serve_life_leave(struct serve_server *s, uint64_t now_ns)
{
    if (s->phase == SERVE_LEAVING)
        return;
    enter(s, SERVE_LEAVING, LIMIT_SERVE_END_MS, now_ns);
    for (size_t i = 0; i < CLIENTS; i++)
        if (s->clients[i])
            serve_client_leave(s->clients[i], true, now_ns);
}

static bool may_leave(const struct serve_server *s)
{
    return (s->phase == SERVE_DRAINING || s->phase == SERVE_CANCELLING) && drained(s);
}

static void look_at_phase(struct serve_server *s, uint64_t now_ns)
{
    if (may_leave(s)) {
        serve_life_leave(s, now_ns);
    } else if (s->phase == SERVE_DRAINING && now_ns >= s->until_ns) {
        enter(s, SERVE_CANCELLING, LIMIT_SERVE_END_MS, now_ns);
        for (size_t i = 0; i < CLIENTS; i++)
            if (s->clients[i])
                serve_client_cancel(s->clients[i], now_ns);
    }
}

bool serve_life_over(const struct serve_server *s, uint64_t now_ns)
{
    return (s->phase == SERVE_CANCELLING || s->phase == SERVE_LEAVING) && now_ns > s->until_ns;
}

/* ---- signals, and time ---- */

static void take_signals(struct serve_server *s, uint64_t now_ns)
{
    struct signalfd_siginfo info;
    while (read(s->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        const bool serving = s->phase == SERVE_SERVING;
        if (info.ssi_signo == SIGHUP && serving && !s->reloading)
            start_reader(s, now_ns);
        else if (info.ssi_signo == SIGHUP)
            s->again = true;
        else if (info.ssi_signo == SIGTERM && serving)
            enter(s, SERVE_DRAINING, s->all.config.drain_ms, now_ns);
        else
            serve_life_leave(s, now_ns);
    }
}

void serve_life_look(struct serve_server *s, bool signals, uint64_t now_ns)
{
    if (signals)
        take_signals(s, now_ns);
    look_at_reader(s, now_ns);
    look_at_phase(s, now_ns);
    (void)sys_notify_alive(&s->manager, now_ns);
}

uint64_t serve_life_next(const struct serve_server *s)
{
    uint64_t next = s->until_ns;
    /* the last answer may have been sent after the phase was looked at: nothing else wakes us then */
    if (may_leave(s))
        return 0;
    if (s->reloading && s->reader_until_ns < next)
        next = s->reader_until_ns;
    if (s->manager.every_ns && s->manager.next_ns < next)
        next = s->manager.next_ns;
    return next;
}
