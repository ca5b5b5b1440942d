/* SPDX-License-Identifier: Apache-2.0 */
/* A writer is stopped (SIGSTOP) inside call number N of what it does under and beside the locks, for N = 1, 2, ...
 * until it comes through. Whatever it held, the next writer either writes its record, or is refused within its deadline
 * by a sentence that names the stopped one. After SIGCONT everything that was acknowledged is there and verify passes.
 *
 * The calls are wrapped by the linker (--wrap), so what is tested is what ships. */
#include "audit/inside.h"
#include "audit/read.h"
#include "audit/test_folder.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/tap.h"

#include <signal.h>

static struct folder folder;

enum call { WRITE, SIGN, FDATASYNC, CALLS };
static const char *const call_names[CALLS] = {"write", "a signature", "fdatasync"};
static struct {
    bool armed, after; /* after: the call is done, and has not returned */
    enum call call;
    int left;
} stop;

static bool due(enum call call)
{
    return stop.armed && stop.call == call && --stop.left == 0;
}

#define STOP_AROUND(call, type, real)                                                              \
    do {                                                                                           \
        bool now = due(call);                                                                      \
        if (now && !stop.after)                                                                    \
            raise(SIGSTOP);                                                                        \
        type got = real;                                                                           \
        if (now && stop.after)                                                                     \
            raise(SIGSTOP);                                                                        \
        return got;                                                                                \
    } while (0)

ssize_t __real_write(int fd, const void *p, size_t n);
ssize_t __wrap_write(int fd, const void *p, size_t n);
ssize_t __wrap_write(int fd, const void *p, size_t n)
{
    STOP_AROUND(WRITE, ssize_t, __real_write(fd, p, n));
}

int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);
int __wrap_fdatasync(int fd)
{
    STOP_AROUND(FDATASYNC, int, __real_fdatasync(fd));
}

/* Head, table of runs and window are stores to memory; each is signed on the way. */
void __real_nettle_hmac_sha256_digest(struct hmac_sha256_ctx *ctx, size_t len, uint8_t *out);
void __wrap_nettle_hmac_sha256_digest(struct hmac_sha256_ctx *ctx, size_t len, uint8_t *out);
void __wrap_nettle_hmac_sha256_digest(struct hmac_sha256_ctx *ctx, size_t len, uint8_t *out)
{
    if (due(SIGN))
        raise(SIGSTOP);
    __real_nettle_hmac_sha256_digest(ctx, len, out);
}

/* ---- one writer ---- */

#define LOCK_MS 150

static struct audit *open_log(void)
{
    struct audit_config c;
    audit_config_init(&c);
    c.lock_ms = LOCK_MS;
    return folder_open(&folder, &c);
}

/* A run, begin and end. 0: both are acknowledged. */
static int one_run(struct audit *a, const char *id, struct err *err)
{
    const struct audit_outcome o = {.status = "ok", .wall_us = 10};
    struct audit_facts f = {.execution_id = id, .client_id = "uid:1", .tool = "run"};
    struct audit_ticket t;
    int r = audit_begin_run(a, &f, &t, err);
    f.outcome = &o;
    return r == 0 ? audit_end_run(a, &t, &f, err) : r;
}

/* Whether it was stopped; a status if it came through. */
static pid_t stopped_writer(enum call call, int n, bool after, int *ret_status)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        struct err err = ERR_INIT;
        stop.call = call;
        stop.left = n;
        stop.after = after;
        stop.armed = true;
        struct audit *a = open_log();
        int r = a ? one_run(a, "stopped", &err) : -1;
        if (r < 0)
            printf("# the writer that was stopped: %s\n", err.msg);
        audit_close(a);
        fflush(stdout);
        _exit(r < 0);
    }
    waitpid(pid, ret_status, WUNTRACED);
    return pid;
}

struct tally {
    int wrote, refused, unnamed;
    uint64_t slowest_ms;
};

static void next_run(pid_t stopped, struct tally *t, const char *where)
{
    struct err err = ERR_INIT;
    char want[40];
    uint64_t before = clock_now_ns();
    struct audit_config c;
    struct audit *a = NULL;
    audit_config_init(&c);
    c.lock_ms = LOCK_MS;
    c.state = folder.path;
    c.now_ms = folder_now;
    c.now_ctx = &folder;
    int r = audit_open(&c, &a, &err);
    if (r == 0)
        r = one_run(a, "next", &err);
    audit_close(a);
    uint64_t ms = (clock_now_ns() - before) / CLOCK_NS_PER_MS;
    t->slowest_ms = ms > t->slowest_ms ? ms : t->slowest_ms;
    if (r == 0) {
        t->wrote++;
        return;
    }
    t->refused++;
    snprintf(want, sizeof want, "by pid %d (", (int)stopped);
    if (r != ERR_STATE || !strstr(err.msg, want) || !strstr(err.msg, "stopped)")) {
        t->unnamed++;
        printf("# %s: %d %s\n", where, r, err.msg);
    }
}

static bool verified(void)
{
    struct audit_verdict v;
    struct err err = ERR_INIT;
    int r = audit_verify(folder.path, NULL, &v, &err);
    if (r < 0 || !v.good)
        printf("# %s %s\n", err.msg, v.why);
    return r == 0 && v.good && v.torn_bytes == 0;
}

static void at_each(enum call call, bool after)
{
    struct tally t = {0};
    int stops = 0, verifies = 0, ended = 0, status = 0;
    for (int n = 1; n < 200; n++) {
        char where[64];
        pid_t pid = stopped_writer(call, n, after, &status);
        if (!WIFSTOPPED(status))
            break;
        stops++;
        snprintf(where, sizeof where, "%s %d", call_names[call], n);
        next_run(pid, &t, where);
        kill(pid, SIGCONT);
        ended += waitpid(pid, &status, 0) == pid && status == 0;
        verifies += verified();
    }
    tap_ok(stops > 0 && status == 0, "a writer is stopped %s %s, at each of %d",
           after ? "after" : "before", call_names[call], stops);
    tap_ok(t.wrote + t.refused == stops && t.unnamed == 0,
           "the next one writes (%d) or is refused by the name of the stopped one (%d); slowest "
           "%llu ms",
           t.wrote, t.refused, (unsigned long long)t.slowest_ms);
    tap_eq_int(ended, stops, "each stopped writer ends well after SIGCONT");
    tap_eq_int(verifies, stops, "verify passes after each writer that was stopped");
    if (call == FDATASYNC)
        tap_eq_int(t.refused, 0, "nobody depends on a writer that was stopped in fdatasync");
}

/* A reader that is stopped while it takes its look keeps writers out: by name, too. */
static void stopped_reader(void)
{
    int status;
    struct tally t = {0};
    pid_t pid = fork();
    if (pid == 0) {
        struct audit_walk *w;
        struct err err = ERR_INIT;
        int fd = -1;
        char path[400];
        snprintf(path, sizeof path, "%s/seal/head", folder.path);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        struct flock l = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
        if (audit_walk_new(folder.path, &w, &err) < 0 || fcntl(fd, F_OFD_SETLK, &l) < 0)
            _exit(1);
        raise(SIGSTOP);
        _exit(0);
    }
    waitpid(pid, &status, WUNTRACED);
    next_run(pid, &t, "a reader");
    tap_ok(t.refused == 1 && t.unnamed == 0, "a stopped reader with the lock is named");
    kill(pid, SIGCONT);
    waitpid(pid, &status, 0);
    next_run(pid, &t, "a reader that is gone");
    tap_eq_int(t.wrote, 1, "records are written once a stopped reader has gone on");
}

/* Its second wait on the same handle is brief: whoever writes ten records does not wait ten times. */
static void waits_once(void)
{
    struct err err = ERR_INIT;
    int status;
    struct audit_config c;
    audit_config_init(&c);
    c.lock_ms = 2000;
    struct audit *a = folder_open(&folder, &c);
    pid_t pid = stopped_writer(WRITE, 1, false, &status);
    const struct audit_facts f = {.tool = "t"};
    uint64_t first = clock_now_ns();
    int r = audit_event(a, AUDIT_TOOL, &f, &err);
    uint64_t second = clock_now_ns();
    int again = audit_event(a, AUDIT_TOOL, &f, &err);
    uint64_t end = clock_now_ns();
    tap_ok(r == ERR_STATE && again == ERR_STATE && end - second < second - first,
           "the second wait of a handle is shorter than the first (%llu and %llu ms)",
           (unsigned long long)((second - first) / CLOCK_NS_PER_MS),
           (unsigned long long)((end - second) / CLOCK_NS_PER_MS));
    kill(pid, SIGCONT);
    waitpid(pid, &status, 0);
    tap_eq_int(audit_event(a, AUDIT_TOOL, &f, &err), 0, "the handle is good once the lock is free");
    audit_close(a);
}

int main(void)
{
    struct err err = ERR_INIT;
    if (!tap_ok(folder_make(&folder), "a folder for the log is made"))
        return tap_done();
    struct audit *a = open_log();
    if (!tap_ok(a && one_run(a, "first", &err) == 0, "a log to begin with: %s", err.msg))
        return tap_done();
    audit_close(a);
    for (int call = 0; call < CALLS; call++) {
        at_each((enum call)call, false);
        if (call != SIGN)
            at_each((enum call)call, true);
    }
    stopped_reader();
    waits_once();
    tap_ok(verified(), "at the end verify passes");
    tap_ok(folder_remove(&folder), "the folder of the log is removed");
    return tap_done();
}
