/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel says no at the worst moment: call number N of a kind fails, for N = 1, 2, ...; writes that stop half way;
 * processes that end between two calls. After each, nothing that was acknowledged is missing and verify passes.
 *
 * The calls are wrapped by the linker (--wrap), so what is tested is what ships. */
#include "audit/inside.h"
#include "audit/read.h"
#include "audit/test_folder.h"
#include "base/limits.h"
#include "base/tap.h"

#include <errno.h>
#include <sys/wait.h>

static struct folder folder;

enum call { WRITE, SIGN, FDATASYNC, FALLOCATE, FTRUNCATE, CALLS };
static const char *const call_names[CALLS] = {"write", "a signature", "fdatasync", "fallocate",
                                              "ftruncate"};
enum way { FAIL, SHORT, SHORT_FAIL, DIE };
static struct {
    bool armed;
    enum call call;
    enum way way;
    int left, error;
    bool hit, sticks; /* sticks: every later one fails too */
    bool stuck;       /* and what was written cannot be cut off again */
} fault;

static bool strikes(enum call call)
{
    if (!fault.armed || fault.call != call || --fault.left > 0 || (fault.left < 0 && !fault.sticks))
        return false;
    fault.hit = true;
    return true;
}

ssize_t __real_write(int fd, const void *p, size_t n);
ssize_t __wrap_write(int fd, const void *p, size_t n);
ssize_t __wrap_write(int fd, const void *p, size_t n)
{
    if (!strikes(WRITE))
        return __real_write(fd, p, n);
    if (fault.way == FAIL) {
        errno = fault.error;
        return -1;
    }
    ssize_t r = __real_write(fd, p, n / 2);
    if (fault.way == SHORT_FAIL) { /* and the rest of it fails */
        fault.way = FAIL;
        fault.left = 1;
    }
    if (fault.way == DIE)
        _exit(9);
    return r;
}

/* Head, table of runs and window are stores to memory; each is signed on the way. */
void __real_nettle_hmac_sha256_digest(struct hmac_sha256_ctx *ctx, size_t len, uint8_t *out);
void __wrap_nettle_hmac_sha256_digest(struct hmac_sha256_ctx *ctx, size_t len, uint8_t *out);
void __wrap_nettle_hmac_sha256_digest(struct hmac_sha256_ctx *ctx, size_t len, uint8_t *out)
{
    bool now = strikes(SIGN);
    if (now && fault.way == DIE)
        _exit(9);
    __real_nettle_hmac_sha256_digest(ctx, len, out);
}

int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);
int __wrap_fdatasync(int fd)
{
    if (!strikes(FDATASYNC))
        return __real_fdatasync(fd);
    if (fault.way == DIE)
        _exit(9);
    errno = fault.error;
    return -1;
}

int __real_fallocate64(int fd, int mode, off_t at, off_t len);
int __wrap_fallocate64(int fd, int mode, off_t at, off_t len);
int __wrap_fallocate64(int fd, int mode, off_t at, off_t len)
{
    if (!strikes(FALLOCATE))
        return __real_fallocate64(fd, mode, at, len);
    if (fault.way == DIE)
        _exit(9);
    errno = fault.error;
    return -1;
}

int __real_ftruncate64(int fd, off_t len);
int __wrap_ftruncate64(int fd, off_t len);
int __wrap_ftruncate64(int fd, off_t len)
{
    if (!strikes(FTRUNCATE) && !(fault.armed && fault.stuck))
        return __real_ftruncate64(fd, len);
    if (fault.way == DIE)
        _exit(9);
    errno = fault.error;
    return -1;
}

static void arm(enum call call, enum way way, int n, int error, bool sticks)
{
    fault.armed = true;
    fault.call = call;
    fault.way = way;
    fault.left = n;
    fault.error = error;
    fault.sticks = sticks;
    fault.hit = false;
}

/* ---- what a writer did, as it was told ---- */

struct told {
    uint64_t begun, ended, event; /* numbers of acknowledged records; 0: not acknowledged */
};

static struct told work(struct audit *a)
{
    struct told t = {0};
    struct audit_ticket ticket;
    struct err err = ERR_INIT;
    static char page[9000];
    memset(page, 'x', sizeof page - 1);
    const struct audit_arg args[] = {{.name = "a", .text = page}, {.name = "b", .text = page}};
    const struct audit_facts f = {
        .execution_id = "x", .client_id = "c", .tool = "run", .args = args, .nargs = 2};
    const struct audit_outcome o = {.status = "ok", .wall_us = 1000};
    if (audit_begin_run(a, &f, &ticket, &err) == 0) {
        t.begun = ticket.seq;
        if (audit_end_run(a, &ticket, &(struct audit_facts){.outcome = &o}, &err) == 0)
            t.ended = audit_last_seq(a);
    }
    if (audit_event(a, AUDIT_TOOL, &f, &err) == 0)
        t.event = audit_last_seq(a);
    return t;
}

static bool has(uint64_t seq, enum audit_kind kind)
{
    struct audit_walk *w;
    struct audit_step s;
    struct err err = ERR_INIT;
    bool there = false;
    if (audit_walk_new(folder.path, &w, &err) < 0)
        return false;
    audit_walk_last(w, 200);
    while (!there && audit_walk_next(w, &s, &err) == 1)
        there = s.seq == seq && !s.wrong && s.kind == kind;
    audit_walk_free(w);
    return there;
}

static bool kept(const struct told *t)
{
    return (!t->begun || has(t->begun, AUDIT_BEGIN)) && (!t->ended || has(t->ended, AUDIT_END)) &&
           (!t->event || has(t->event, AUDIT_TOOL));
}

static bool good(struct audit_verdict *v)
{
    struct err err = ERR_INIT;
    if (audit_verify(folder.path, NULL, v, &err) < 0 || !v->good) {
        printf("# %s record %llu %s:%llu: %s\n", err.msg, (unsigned long long)v->bad_seq,
               v->bad_file, (unsigned long long)v->bad_line, v->why);
        return false;
    }
    return true;
}

/* ---- one call fails, the process lives on ---- */

static void failing(enum call call, enum way way, int error, const char *how)
{
    int cases = 0, bad = 0;
    for (int n = 1; n < 60; n++) {
        struct audit_verdict v;
        struct audit *a = folder_open(&folder, NULL);
        folder.now += FOLDER_DAY; /* the page is turned on the way */
        arm(call, way, n, error, false);
        struct told t = work(a);
        fault.armed = false;
        bool hit = fault.hit;
        bool fine = good(&v) && kept(&t);
        struct told again = work(a); /* the handle is still of use, unless the disk failed */
        fine = fine && (call == FDATASYNC || (again.begun && again.ended && again.event)) &&
               good(&v) && kept(&again);
        audit_close(a);
        a = folder_open(&folder, NULL); /* ends the runs that were left open */
        fine = fine && a && good(&v) && v.open_runs == 0;
        audit_close(a);
        cases++;
        bad += !fine;
        if (!fine)
            printf("# %s number %d\n", call_names[call], n);
        if (!hit)
            break;
    }
    tap_ok(bad == 0 && cases > 1, "%s %s: %d places, nothing lost", call_names[call], how,
           cases - 1);
}

/* ---- the process ends inside the call, or right before it ---- */

static void dying(enum call call)
{
    int cases = 0, bad = 0;
    for (int n = 1; n < 60; n++) {
        int ends[2], status;
        if (pipe2(ends, O_CLOEXEC) < 0)
            break;
        folder.now += FOLDER_DAY;
        pid_t child = fork();
        if (child == 0) {
            struct audit *a = folder_open(&folder, NULL);
            struct told t = {0};
            arm(call, DIE, n, 0, false);
            for (int i = 0; a && i < 2; i++) {
                t = work(a);
                if (__real_write(ends[1], &t, sizeof t) != sizeof t)
                    _exit(1);
            }
            _exit(0);
        }
        close(ends[1]);
        struct told t[2] = {0};
        ssize_t got = read(ends[0], t, sizeof t);
        close(ends[0]);
        bool fine = waitpid(child, &status, 0) == child && WIFEXITED(status) &&
                    WEXITSTATUS(status) != 1 && got >= 0;
        struct audit_verdict v;
        fine = fine && good(&v); /* before anybody repaired */
        struct audit *a = folder_open(&folder, NULL);
        struct told mine = work(a);
        fine = fine && mine.begun && mine.ended && mine.event;
        fine = fine && good(&v) && v.open_runs == 0 && v.torn_bytes == 0 && v.ahead == 0;
        fine = fine && kept(&t[0]) && kept(&t[1]) && kept(&mine);
        audit_close(a);
        cases++;
        bad += !fine;
        if (!fine)
            printf("# %s number %d\n", call_names[call], n);
        if (fine && WEXITSTATUS(status) == 0)
            break;
    }
    tap_ok(bad == 0 && cases > 1, "killed at %s: %d places, nothing lost", call_names[call],
           cases - 1);
}

/* ---- a disk that is full, and stays so ---- */

static void full(void)
{
    struct audit *a = folder_open(&folder, NULL);
    struct audit_ticket t;
    struct err err = ERR_INIT;
    struct audit_verdict v;
    const struct audit_facts f = {.execution_id = "full", .client_id = "c", .tool = "run"};
    const struct audit_outcome o = {
        .status = "timeout", .layer = "resources", .wall_us = 5000000, .output_bytes = 7};
    tap_ok(audit_begin_run(a, &f, &t, &err) == 0, "a run begins");
    arm(WRITE, FAIL, 1, ENOSPC, true);
    struct audit_ticket second;
    tap_ok(audit_begin_run(a, &f, &second, &err) < 0 && err.sys_errno == ENOSPC && !second.open,
           "with a full disk the next run does not begin (%s)", err.msg);
    tap_ok(audit_end_run(a, &t, &(struct audit_facts){.outcome = &o}, &err) < 0,
           "with a full disk the end of a run is reported as late");
    fault.armed = false;
    tap_ok(good(&v) && v.open_runs == 1,
           "the log verifies after the disk was full, with one open run");
    struct told next = work(a);
    tap_ok(next.begun && next.ended, "a run begins and ends once the disk has space again");
    tap_ok(good(&v) && v.open_runs == 0, "the late end of a run is written before the next begin");
    audit_close(a);

    struct audit_walk *w;
    struct audit_step s;
    bool late = false;
    if (audit_walk_new(folder.path, &w, &err) == 0) {
        audit_walk_last(w, 10);
        while (audit_walk_next(w, &s, &err) == 1)
            late = late || (s.kind == AUDIT_END &&
                            memmem(s.text, s.len, "\"execution_id\": \"full\"", 22) &&
                            memmem(s.text, s.len, "\"status\": \"timeout\"", 19) &&
                            memmem(s.text, s.len, "\"execution_time_ms\": 5000", 25));
        audit_walk_free(w);
    }
    tap_ok(late, "the late end of a run has its status and its time");
}

/* Nothing more can be set aside: what is there is for the ends of runs, and no other record takes all of it. */
static void room_for_ends(void)
{
    enum { MANY = 5000, END = 16 * KIB };
    struct audit *a = folder_open(&folder, NULL);
    struct audit_ticket t;
    struct err err = ERR_INIT, unmet = ERR_INIT;
    static char page[9000];
    memset(page, 'x', sizeof page - 1);
    const struct audit_arg arg = {.name = "a", .text = page};
    const struct audit_facts f = {
        .execution_id = "room", .client_id = "c", .tool = "run", .args = &arg, .nargs = 1};
    const struct audit_outcome o = {.status = "ok", .wall_us = 1000};
    tap_ok(audit_begin_run(a, &f, &t, &err) == 0 && audit_room(a, sizeof page, &err) == 0,
           "a run begins, and there is room for the record of something else");
    arm(FALLOCATE, FAIL, 1, ENOSPC, true);
    int events = 0;
    while (events < MANY && audit_event(a, AUDIT_SESSION, &f, &err) == 0)
        events++;
    tap_ok(events && events < MANY && err.sys_errno == ENOSPC && strstr(err.msg, "state folder") &&
               a->head.end + END < a->head.reserved,
           "on a full disk %d records are written, then no more: there is room for ends (%s)",
           events, err.msg);
    tap_ok(audit_room(a, 0, &unmet) < 0 && unmet.sys_errno == ENOSPC,
           "on a full disk nothing is done that is recorded later");
    tap_ok(audit_end_run(a, &t, &(struct audit_facts){.outcome = &o}, &err) == 0,
           "on a full disk the end of a run is written after all of that");
    fault.armed = false;
    tap_ok(audit_room(a, 0, &err) == 0 && audit_event(a, AUDIT_SESSION, &f, &err) == 0,
           "records are written again once the disk has space");
    struct audit_verdict v;
    tap_ok(good(&v) && v.open_runs == 0, "the log verifies after that, with no open run");
    audit_close(a);
}

int main(void)
{
    if (!tap_ok(folder_make(&folder), "a folder for the log is made"))
        return tap_done();
    failing(WRITE, FAIL, ENOSPC, "says that the disk is full");
    failing(WRITE, FAIL, EINTR, "is interrupted");
    failing(WRITE, SHORT, 0, "stops half way");
    failing(WRITE, SHORT_FAIL, ENOSPC, "fails half way");
    fault.stuck = true;
    failing(WRITE, SHORT_FAIL, ENOSPC, "fails half way, and so does cutting it off");
    fault.stuck = false;
    failing(FALLOCATE, FAIL, ENOSPC, "finds no room");
    failing(FALLOCATE, FAIL, EOPNOTSUPP, "is not to be had");
    failing(FTRUNCATE, FAIL, EIO, "fails");
    failing(FDATASYNC, FAIL, EIO, "fails");
    dying(WRITE);
    dying(SIGN);
    dying(FDATASYNC);
    dying(FALLOCATE);
    dying(FTRUNCATE);
    full();
    room_for_ends();
    tap_ok(folder_remove(&folder), "the folder of the log is removed");
    return tap_done();
}
