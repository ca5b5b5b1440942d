/* SPDX-License-Identifier: Apache-2.0 */
/* The channel of a worker, in a live jail: the guest (this program again, with --guest) finds it as
 * descriptor 3 and nothing else besides its streams; the supervisor's loop tells of what comes; a
 * worker that says it is done is believed about its own end and nothing more; and its time begins when it is told to go.
 * Usage: test_channel CORDON-NEST */
#include "base/tap.h"
#include "jail/child.h"
#include "jail/run.h"
#include "sys/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- the guest ---- */

static unsigned open_besides_channel(void)
{
    unsigned n = 0;
    for (int fd = 0; fd < 64; fd++)
        n += fd != 3 && fcntl(fd, F_GETFD) >= 0;
    return n;
}

static int guest(const char *how)
{
    char word[64];
    int n = snprintf(word, sizeof word, "%u streams, flags %d", open_besides_channel(),
                     fcntl(3, F_GETFD));
    if (write(3, word, (size_t)n) != n)
        return 1;
    if (read(3, word, sizeof word) != 2 || memcmp(word, "go", 2) != 0)
        return 2;
    if (strcmp(how, "exits") == 0)
        return 5;
    if (strcmp(how, "waits") == 0)
        for (;;)
            pause();
    if (strcmp(how, "closes") == 0) {
        close(3);
        return usleep(20000) < 0;
    }
    for (int i = 0; i < 2000; i++)
        if (write(1, "0123456789abcdef", 16) != 16)
            return 3;
    if (write(3, "done", 4) != 4)
        return 4;
    for (;;) /* it said that it is done, and goes on */
        if (write(1, "after", 5) < 0)
            return 6;
}

/* ---- the supervisor ---- */

struct seen {
    struct jail_run *run;
    int channel;
    useconds_t judging; /* we take so long before its time starts */
    char first[64];
    unsigned told, closed;
    uint64_t bytes;
    char head[32];
};

static void take(void *ctx, enum jail_stream stream, const void *data, size_t len)
{
    struct seen *s = ctx;
    (void)stream;
    for (size_t i = 0; i < len && s->bytes + i < sizeof s->head; i++)
        s->head[s->bytes + i] = ((const char *)data)[i];
    s->bytes += len;
}

static bool on_channel(void *ctx)
{
    struct seen *s = ctx;
    char word[64] = "";
    ssize_t n = read(s->channel, word, sizeof word - 1);
    s->told++;
    if (n <= 0) {
        s->closed++;
        return false;
    }
    if (!s->first[0]) {
        memcpy(s->first, word, sizeof word);
        usleep(s->judging);
        jail_run_clock(s->run);
        return write(s->channel, "go", 2) == 2;
    }
    jail_run_violation(s->run, "input", "test.rule", "a detail", "a hint", 7);
    jail_run_violation(s->run, "input", "test.rule", "a detail", "a hint", 7);
    jail_run_violation(s->run, "input", "test.rule", "a detail", "a hint", 8);
    jail_run_end_now(s->run, 9);
    return true;
}

/* s->judging is the caller's to set. */
static bool one(const char *nest, const char *self, const char *how, uint64_t wall_ms,
                struct seen *s)
{
    const char *argv[] = {"/guest", "--guest", how, NULL}, *env[] = {NULL};
    struct jail_bind bind = {.source = self, .dest = "/guest"};
    struct jail_spec spec;
    struct err err = ERR_INIT;
    int sv[2];
    *s = (struct seen){.judging = s->judging};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
        return tap_ok(false, "a pair of sockets is made");
    s->channel = sv[0];
    jail_spec_init(&spec);
    spec.filter = "exec";
    spec.program = argv[0];
    spec.argv = argv;
    spec.argc = 3;
    spec.env = env;
    spec.binds = &bind;
    spec.nbinds = 1;
    spec.limits.wall_ms = wall_ms ? wall_ms : spec.limits.wall_ms;
    spec.before_ms = s->judging ? 10000 : 0;
    struct jail_start start = {.nest = nest,
                               .memory_by = JAIL_MEMORY_RLIMIT,
                               .input = -1,
                               .channel = sv[1],
                               .channel_ours = sv[0],
                               .sink = {.ctx = s, .bytes = take, .channel = on_channel}};
    int r = jail_run_new(&spec, &start, &s->run, &err);
    fd_close(sv[1]);
    if (r < 0) {
        fd_close(sv[0]);
        return tap_ok(false, "%s: a jail is built (%s)", how, err.msg);
    }
    while (!jail_run_step(s->run, 10000))
        ;
    fd_close(sv[0]);
    return true;
}

int main(int argc, char **argv)
{
    char self[4096];
    struct seen s = {0};
    if (argc == 3 && strcmp(argv[1], "--guest") == 0)
        return guest(argv[2]);
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (argc != 2 || n < 0)
        return 2;
    self[n] = 0;
    if (one(argv[1], self, "exits", 0, &s)) {
        const struct jail_outcome *o = jail_run_outcome(s.run);
        tap_eq_str(s.first, "3 streams, flags 0",
                   "a guest has descriptor 3 and its streams, and no other");
        tap_eq_int(o->end, JAIL_END_EXIT, "a guest with a channel still ends by itself");
        tap_eq_int(o->exit_code, 5, "a guest with a channel has its own exit code");
        jail_run_free(s.run);
    }
    if (one(argv[1], self, "closes", 0, &s)) {
        tap_eq_int(s.closed, 1, "a channel that the guest closed is told once");
        jail_run_free(s.run);
    }
    if (one(argv[1], self, "goes-on", 0, &s)) {
        const struct jail_outcome *o = jail_run_outcome(s.run);
        tap_eq_int(o->end, JAIL_END_EXIT, "a guest that said it is done has ended");
        tap_eq_int(o->exit_code, 9,
                   "a guest that said it is done ends with the caller's exit code");
        tap_ok(s.bytes >= 32000 && memcmp(s.head, "0123456789abcdef0123456789abcdef", 32) == 0,
               "what a guest wrote before it was done is there (%llu bytes)",
               (unsigned long long)s.bytes);
        /* of CPU time there may be none: it says that it is done right after it was told to go */
        tap_ok(o->memory > 0, "the memory that a guest used is told");
        tap_eq_int(o->violation_count, 2, "what the worker saw is told with its line");
        tap_ok(o->violation_count == 2 && o->violations[0].line == 7 &&
                   o->violations[0].times == 2 && o->violations[1].line == 8,
               "the same violation twice is one with a count");
        jail_run_free(s.run);
    }
    /* cordon-nest has a timer of its own behind ours: a second later, whenever ours was started */
    s = (struct seen){.judging = 1300000};
    if (one(argv[1], self, "waits", 1000, &s)) {
        const struct jail_outcome *o = jail_run_outcome(s.run);
        tap_eq_int(o->end, JAIL_END_WALL,
                   "a guest that was told to go late ends by its time limit");
        tap_ok(o->wall_us >= 1000000,
               "a guest that was told to go late has all of its time (%llu us)",
               (unsigned long long)o->wall_us);
        jail_run_free(s.run);
    }
    return tap_done();
}
