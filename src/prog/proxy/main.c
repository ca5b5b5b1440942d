/* SPDX-License-Identifier: Apache-2.0 */
/* cordon-proxy: what `cordon proxy` becomes. It has the keys of the upstreams and the connections to them; what clients and models
 * wrote is parsed by cordon-proxy-front, which it starts, and starts again where one of them made it fall over.
 *
 * Waits: write in say; standard error; none (the kernel's own); nothing is held
 *        waitpid in end_front; a process that was killed; none (the kernel reaps it); nothing is held */
#include "base/clock.h"
#include "clients.h"
#include "flow/context.h"
#include "programs.h"
#include "proxy/keys/keys.h"
#include "sys/child.h"
#include "sys/fd.h"
#include "sys/gateway.h"
#include "sys/state.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LISTENER = 6 }; /* src/prog/cordon/serve_http.h */
enum { URL = 2, POLICY, COUNT };
#define QUICK 8 /* fronts in a row that did not live for a second */

static void say(const char *what)
{
    char line[STATE_PATH_MAX + 400];
    const int n = snprintf(line, sizeof line, "cordon proxy: %s\n", what);
    if (n > 0 && write(STDERR_FILENO, line, (size_t)n) < 0)
        return; /* nobody is there to be told */
}

/* No core, nobody looks into its memory, no program that it starts gains anything; as many descriptors as it may have. */
static int narrow(struct err *err)
{
    const struct rlimit none = {0, 0};
    struct rlimit files;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
        setrlimit(RLIMIT_CORE, &none) < 0)
        return err_sys(err, "no new privileges, no core");
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    return 0;
}

static int take_signals(struct err *err)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    signal(SIGPIPE, SIG_IGN);
    const int fd = sigprocmask(SIG_BLOCK, &set, NULL) < 0
                       ? -1
                       : signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? err_sys(err, "signals") : fd;
}

/* ---- the front ---- */

static int start_front(struct proxy_keys *k, const char *path, int config, pid_t *ret_pid,
                       struct err *err)
{
    int pair[2];
    const pid_t self = getpid();
    static const char *const none[] = {NULL};
    const char *const words[] = {path, "--from-cordon-proxy", NULL};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, "a socket for the front");
    const pid_t pid = fork();
    if (pid == 0)
        sys_child_exec(words, none, (const int[]){LISTENER, config, -1, pair[1]}, 4, true, self);
    fd_close(pair[1]);
    k->sock = pair[0];
    *ret_pid = pid;
    return pid < 0 ? err_sys(err, "fork") : 0;
}

static void end_front(struct proxy_keys *k, pid_t pid)
{
    fd_close(k->sock);
    k->sock = -1;
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    memset(k->calls, 0, sizeof k->calls);
    wire_queue_done(&k->out);
}

/* Until a signal comes. A front that ended is started again: its calls are over, the gateway is not. */
static int serve(struct proxy_keys *k, const char *path, int config, int stop, struct err *err)
{
    pid_t pid = 0;
    int r = 0;
    for (int quick = 0; quick < QUICK;) {
        const uint64_t began = clock_now_ns();
        wire_queue_init(&k->out, 2 * LIMIT_PROXY_BACKLOG);
        r = start_front(k, path, config, &pid, err);
        if (r < 0)
            return r;
        r = proxy_keys_run(k, stop, err);
        end_front(k, pid);
        if (r == 0)
            return 0;
        say(err->msg);
        quick = clock_now_ns() - began < CLOCK_NS_PER_S ? quick + 1 : 0;
    }
    return r;
}

/* ---- the beginning ---- */

static int open_state(struct proxy_keys *k, struct err *err)
{
    char folder[STATE_PATH_MAX];
    int r = state_path(folder, sizeof folder, err);
    if (r == 0)
        r = state_open(folder, true, &k->state, err);
    if (r == 0)
        proxy_calls_load(k);
    return r;
}

static int open_curl(struct proxy_keys *k, struct err *err)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK || !(k->multi = curl_multi_init()))
        return err_set(err, ERR_MEMORY, "libcurl cannot be started");
    return 0;
}

static int check_policy(const struct policy *p, struct err *err)
{
    return p->nupstreams ? 0
                         : err_set(err, ERR_USAGE,
                                   "the policy names no upstreams; docs/proxy.md has an example");
}

/* Runs of this state folder find the gateway by what it says here; the descriptor stays open for as long as we live. */
static int announce(const struct proxy_keys *k, struct err *err)
{
    static int held = -1;
    struct buf models;
    buf_init(&models, LIMIT_GATEWAY);
    int r = clients_models(k->policy, &models, err);
    if (r == 0)
        r = gateway_announce(k->state, LISTENER, &models, &held, err);
    buf_done(&models);
    if (r == 1)
        say("another gateway of this state folder serves llm() and the judges of the arena");
    return r < 0 ? r : 0;
}

static void tell(const char *url, const struct clients *c)
{
    char line[STATE_PATH_MAX + 300];
    snprintf(line, sizeof line, "%s/v1 (Anthropic: %s), %s", url, url,
             c->told[0] ? c->told : "tokens as the policy names them");
    say(line);
}

static int prepare(struct flow_context *context, struct proxy_keys *k, struct clients *c,
                   const char *policy, struct err *err)
{
    int r = flow_context_open(context, *policy ? policy : NULL, err);
    k->policy = context->policy;
    if (r == 0)
        r = check_policy(k->policy, err);
    if (r == 0)
        r = narrow(err);
    if (r == 0)
        r = proxy_keys_read(k, err);
    if (r == 0)
        r = clients_read(k->policy, c, err);
    if (r == 0)
        r = flow_context_open_gate(context, NULL, NULL, err);
    k->gate = context->gate;
    k->audit = context->audit;
    k->clients = c->names;
    k->budgets = c->budgets;
    k->nclients = c->count;
    if (r == 0)
        r = open_state(k, err);
    return r == 0 ? open_curl(k, err) : r;
}

int main(int argc, char **argv)
{
    static struct proxy_keys keys;
    static struct clients clients;
    struct flow_context context = {0};
    struct err err = ERR_INIT;
    char front[4096];
    int config = -1, stop = -1;
    if (argc != COUNT || strcmp(argv[1], "--from-cordon") != 0) {
        say("started by cordon proxy only; see cordon-proxy(1)");
        return 2;
    }
    close_range(3, ~0U, CLOSE_RANGE_CLOEXEC); /* for us alone: not for what we start */
    keys.state = keys.sock = -1;
    int r = prepare(&context, &keys, &clients, argv[POLICY], &err);
    if (r == 0)
        r = programs_find("cordon-proxy-front", front, sizeof front, &err);
    if (r == 0)
        r = stop = take_signals(&err);
    if (r >= 0)
        r = clients_config(keys.policy, &clients, &config, &err);
    if (r == 0)
        r = announce(&keys, &err);
    if (r == 0) {
        tell(argv[URL], &clients);
        r = serve(&keys, front, config, stop, &err);
    }
    if (r < 0)
        say(err.msg);
    if (keys.multi)
        curl_multi_cleanup(keys.multi);
    proxy_keys_wipe(&keys);
    flow_context_close(&context);
    return r == 0 ? 0 : r == ERR_USAGE ? 2 : 1;
}
