/* SPDX-License-Identifier: Apache-2.0 */
/* What a holder and its clients do with children, for tests: failures are told as comments. */
#include "jail/test_talk.h"

#include "base/tap.h"
#include "jail/test_guest.h"
#include "sys/fd.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static bool complain(const char *what, const struct err *err)
{
    printf("# %s: %s (%s)\n", what, err->msg, err->layer);
    return false;
}

static void print_err(void *ctx, enum jail_stream stream, const void *data, size_t len)
{
    (void)ctx, (void)stream;
    printf("# %.*s", (int)len, (const char *)data);
}

static struct jail_template *start_template(const char *nest)
{
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n < 0 ? 0 : n] = 0;
    char name[32]; /* one of this test's own, so that it can count what it started */
    snprintf(name, sizeof name, "/" TEST_GUEST_NAME, (int)getpid());
    const char *argv[] = {name, "--template", NULL}, *env[] = {NULL};
    struct jail_bind bind = {.source = self, .dest = name};
    struct jail_sink sink = {.bytes = print_err};
    struct jail_template *t = NULL;
    struct jail_spec spec;
    struct err err = ERR_INIT;
    jail_spec_init(&spec);
    spec.kind = JAIL_KIND_TEMPLATE;
    spec.filter = "template";
    spec.program = argv[0];
    spec.cwd = "/";
    spec.argv = argv;
    spec.argc = 2;
    spec.env = env;
    spec.binds = &bind;
    spec.nbinds = 1;
    if (jail_template_new(&spec, nest, &sink, &t, &err) < 0)
        printf("# no template: %s (%s)\n", err.msg, err.layer);
    return t;
}

struct jail_template *test_begin(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--template") == 0)
        exit(test_guest_template());
    if (argc < 2)
        exit(2);
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGPIPE, SIG_IGN);
    return start_template(argv[1]);
}

struct jail_child_spec test_child_spec(const char *filter, bool session)
{
    struct jail_spec defaults;
    jail_spec_init(&defaults);
    struct jail_child_spec spec = {
        .tag = 7, .filter = filter, .limits = defaults.limits, .session = session};
    spec.limits.threads = strcmp(filter, "python") == 0 ? 0 : 2;
    spec.limits.disk = 1 << 20;
    spec.limits.memory = 96 << 20;
    spec.limits.wall_ms *= tap_slow();
    spec.limits.cpu_ms *= tap_slow();
    return spec;
}

bool test_order(struct jail_template *t, const struct jail_child_spec *spec, struct jail_child *c)
{
    struct err err = ERR_INIT;
    enum jail_template_event e = JAIL_TEMPLATE_NOTHING;
    if (jail_template_order(t, spec, &err) < 0)
        return complain("an order was not taken", &err);
    while (e == JAIL_TEMPLATE_NOTHING)
        e = jail_template_step(t, 10000, c, &err);
    if (e == JAIL_TEMPLATE_CHILD)
        return true;
    return complain("no child was born", &err);
}

static void take(void *ctx, enum jail_stream stream, const void *data, size_t len)
{
    struct test_talk *t = ctx;
    (void)stream;
    size_t cap = sizeof t->said - 1 - t->said_len;
    memcpy(t->said + t->said_len, data, len < cap ? len : cap);
    t->said_len += len < cap ? len : cap;
}

static bool on_channel(void *ctx)
{
    struct test_talk *t = ctx;
    ssize_t n = read(t->channel, t->answer, sizeof t->answer - 1);
    t->answer[n > 0 ? n : 0] = 0;
    t->closed |= n <= 0;
    return n > 0;
}

bool test_hear(struct test_talk *t)
{
    while (!t->answer[0] && !t->closed)
        if (jail_run_step(t->run, 10000))
            return false;
    return t->answer[0] != 0;
}

bool test_talk(struct test_talk *t, struct jail_child *c, const struct jail_limits *limits,
               int input)
{
    struct err err = ERR_INIT;
    struct jail_adopt a = {.input = input,
                           .sink = {.ctx = t, .bytes = take, .channel = on_channel}};
    *t = (struct test_talk){.channel = c->channel};
    if (limits)
        a.limits = *limits;
    int r = jail_run_adopt(c, &a, &t->run, &err);
    return r == 0 || complain("a child was not adopted", &err);
}

long test_ask(struct test_talk *t, const char *word)
{
    t->answer[0] = 0;
    if (write(t->channel, word, strlen(word)) < 0 || !test_hear(t))
        return -9999;
    return strtol(t->answer, NULL, 10);
}

void test_wait_end(struct test_talk *t)
{
    while (!jail_run_step(t->run, 10000))
        ;
}

void test_talk_end(struct test_talk *t, struct jail_child *c)
{
    jail_run_free(t->run);
    jail_child_close(c);
}

/* A child that has said ready. */
bool test_fresh(struct jail_template *tpl, const char *filter, bool session, struct jail_child *c,
                struct test_talk *t, const struct jail_limits *limits)
{
    struct jail_child_spec spec = test_child_spec(filter, session);
    if (!test_order(tpl, &spec, c) || !test_talk(t, c, limits, -1))
        return false;
    bool ready = test_hear(t) && strcmp(t->answer, "ready") == 0;
    t->answer[0] = 0;
    return ready;
}

bool test_gone(int pidfd)
{
    struct pollfd p = {.fd = pidfd, .events = POLLIN};
    return poll(&p, 1, 10000) == 1;
}

bool test_has_rule(const struct jail_run *run, const char *rule)
{
    const struct jail_outcome *o = jail_run_outcome(run);
    for (size_t i = 0; i < o->violation_count; i++)
        if (strcmp(o->violations[i].rule, rule) == 0)
            return true;
    return false;
}

/* What a client does with a session that it was lent: one call, and gives it back. */
long test_call(const struct jail_child *c, const char *word, bool first)
{
    struct jail_child lease = JAIL_CHILD_NONE;
    struct test_talk t;
    struct err err = ERR_INIT;
    int sv[2] = {-1, -1};
    long r = -9998;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
        return r;
    if (jail_child_send(sv[0], c, &err) == 0 && jail_child_receive(sv[1], &lease, &err) == 0 &&
        test_talk(&t, &lease, NULL, -1)) {
        if (!first || test_hear(&t))
            r = test_ask(&t, word);
        jail_run_release(t.run, 0);
        test_wait_end(&t);
        test_talk_end(&t, &lease);
    }
    fd_close(sv[0]);
    fd_close(sv[1]);
    return r;
}

bool test_session(struct jail_template *tpl, const char *filter, struct jail_child *c)
{
    struct jail_child_spec spec = test_child_spec(filter, true);
    return test_order(tpl, &spec, c) && test_call(c, "set 5", true) == 5;
}
