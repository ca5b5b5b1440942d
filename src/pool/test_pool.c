/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the holder that need no process: requests and replies there and back and broken, sessions
 * under a clock of our own, the arithmetic of the stock, the bounded log, lists of shared folders. */
#include "base/clock.h"
#include "base/tap.h"
#include "jail/put.h"
#include "pool/registry.h"
#include "pool/shares.h"
#include "pool/stock.h"
#include "sys/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MS(n) ((n)*CLOCK_NS_PER_MS)

/* ---- messages ---- */

static struct pool_request sample(enum wire_type type)
{
    struct jail_spec spec;
    jail_spec_init(&spec);
    struct pool_request q = {.type = type,
                             .name = "notes-1",
                             .profile = "standard",
                             .role = "analyst",
                             .reason = "it was done",
                             .note = "for the next one",
                             .packages = true,
                             .yes = true,
                             .number = 1234,
                             .limits = spec.limits,
                             .use = {1, 2, 3, 4},
                             .set = {4, 5, 6}};
    q.limits.flood = q.limits.output * LIMIT_FLOOD_FACTOR;
    return q;
}

static int there_and_back(const struct pool_request *q, struct pool_request *ret)
{
    static char storage[4096];
    struct buf b;
    struct err err = ERR_INIT;
    buf_init(&b, sizeof storage);
    int r = pool_request_write(q, &b, &err);
    base_assert(b.len <= sizeof storage);
    memcpy(storage, b.data, b.len);
    if (r == 0)
        r = pool_request_read(storage, b.len, ret, &err);
    buf_done(&b);
    return r;
}

static void requests(void)
{
    static const enum wire_type types[] = {
        WIRE_LEASE,          WIRE_SESSION_NEW,       WIRE_SESSION_CALL, WIRE_SESSION_BRANCH,
        WIRE_BACK,           WIRE_SESSION_NEXT,      WIRE_POOL_NEXT,    WIRE_SESSION_EXPORT,
        WIRE_SESSION_CLOSE,  WIRE_SESSION_INTERRUPT, WIRE_POOL_SET,     WIRE_POOL_STOP,
        WIRE_SESSION_LAYERS, WIRE_SESSION_OWNER,     WIRE_SESSION_BEGUN};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        struct pool_request q = sample(types[i]), got;
        tap_ok(there_and_back(&q, &got) == 0 && got.type == types[i], "%s there and back",
               wire_name(types[i]));
    }
    struct pool_request q = sample(WIRE_SESSION_NEW), got;
    tap_ok(there_and_back(&q, &got) == 0 && strcmp(got.name, q.name) == 0 &&
               strcmp(got.profile, q.profile) == 0 && strcmp(got.role, q.role) == 0 &&
               got.packages && got.number == 1234 &&
               memcmp(&got.limits, &q.limits, sizeof q.limits) == 0,
           "every field of a request arrives");
    q = sample(WIRE_BACK);
    tap_ok(there_and_back(&q, &got) == 0 && got.yes && got.use.memory == 4 &&
               strcmp(got.reason, "it was done") == 0 && strcmp(got.note, "for the next one") == 0,
           "every field of BACK arrives");

    static const char *const bad_names[] = {
        "-a", "A", "a b", "a/b", "..", "\x1b[", "caf\xc3\xa9", "123456789012345678901234567890123"};
    for (size_t i = 0; i < sizeof bad_names / sizeof *bad_names; i++)
        tap_ok(!pool_name_good(bad_names[i]), "no name for a session: %zu", i);
    tap_ok(pool_name_good("a") && pool_name_good("s-00ff") && pool_name_good("2_b"),
           "good names of sessions are taken");

    q = sample(WIRE_SESSION_CALL);
    q.name[0] = 0;
    tap_eq_int(there_and_back(&q, &got), ERR_FORMAT, "a call needs a name");
    q = sample(WIRE_SESSION_NEW);
    q.name[0] = 0;
    tap_eq_int(there_and_back(&q, &got), 0, "a new session needs no name");
    snprintf(q.profile, sizeof q.profile, "root");
    tap_eq_int(there_and_back(&q, &got), ERR_FORMAT, "a profile that does not exist is refused");
    q = sample(WIRE_LEASE);
    q.limits.memory = 1;
    tap_eq_int(there_and_back(&q, &got), ERR_FORMAT, "a memory limit of one byte is refused");
    q = sample(WIRE_SESSION_NEW);
    q.number = UINT64_MAX;
    tap_eq_int(there_and_back(&q, &got), ERR_FORMAT, "an idle time past all bounds is refused");
    q = sample(WIRE_POOL_SET);
    q.set.warm = POOL_WARM + 1;
    tap_eq_int(there_and_back(&q, &got), ERR_FORMAT,
               "more children than a template may have are refused");
    q.set.warm = UINT64_MAX;
    tap_eq_int(there_and_back(&q, &got), 0,
               "a request to keep as many children as there are is accepted");

    struct buf b;
    struct wire_writer w;
    struct err err = ERR_INIT;
    buf_init(&b, 4096);
    wire_begin(&w, &b, WIRE_POOL_STOP);
    wire_put_uint(&w, 2);
    tap_ok(wire_end(&w) == 0 && pool_request_read(b.data, b.len, &got, &err) == ERR_FORMAT,
           "a truth value is 0 or 1");
    buf_reset(&b);
    wire_begin(&w, &b, WIRE_BACK);
    wire_put_uint(&w, 1);
    wire_put_uints(&w, (const uint64_t[]){1, 2, 3}, 3);
    wire_put_text(&w, "");
    wire_put_text(&w, "");
    tap_ok(wire_end(&w) == 0 && pool_request_read(b.data, b.len, &got, &err) == ERR_FORMAT,
           "a list of another length is refused");
    char longer[POOL_NAME + 8];
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    buf_reset(&b);
    wire_begin(&w, &b, WIRE_SESSION_CLOSE);
    wire_put_text(&w, longer);
    tap_ok(wire_end(&w) == 0 && pool_request_read(b.data, b.len, &got, &err) == ERR_FORMAT,
           "a name is never cut to another one's");
    buf_reset(&b);
    wire_begin(&w, &b, WIRE_POOL_END);
    tap_ok(wire_end(&w) == 0 && pool_request_read(b.data, b.len, &got, &err) == ERR_FORMAT,
           "a reply is no request");
    buf_done(&b);
}

static void replies(void)
{
    static const enum wire_type types[] = {WIRE_LENT,       WIRE_DECLINED,    WIRE_AGREED,
                                           WIRE_SESSION_IS, WIRE_SESSION_LOG, WIRE_POOL_IS,
                                           WIRE_POOL_END};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        struct pool_reply p = {.type = types[i], .name = "n", .state = "idle", .reason = "r"}, got;
        for (size_t k = 0; k < 14; k++)
            p.numbers[k] = k << 40;
        struct buf b;
        struct err err = ERR_INIT;
        buf_init(&b, 4096);
        int r = pool_reply_write(&p, &b, &err);
        if (r == 0)
            r = pool_reply_read(b.data, b.len, &got, &err);
        tap_ok(r == 0 && got.type == types[i], "%s there and back", wire_name(types[i]));
        if (types[i] == WIRE_SESSION_IS)
            tap_ok(got.session.dropped == p.session.dropped && strcmp(got.state, "idle") == 0,
                   "every field of a reply arrives");
        struct pool_request q;
        tap_ok(pool_request_read(b.data, b.len, &q, &err) < 0, "%s is no request",
               wire_name(types[i]));
        buf_done(&b);
    }
}

/* ---- sessions ---- */

static void sessions(void)
{
    static struct pool_registry reg;
    static int child[POOL_SESSIONS + 4], client_a, client_b;
    struct pool_reply no = {0};
    const struct pool_use_numbers use = {2, 1000, 500, 0};
    uint64_t now = MS(1000);
    pool_registry_init(&reg);
    tap_ok(pool_registry_next_ns(&reg) == UINT64_MAX, "without a session nothing is due");

    struct pool_session *s = pool_registry_add(&reg, "one", &child[0], now, &no);
    tap_ok(s && strcmp(s->name, "one") == 0 && reg.alive == 1, "a session is made");
    if (!s)
        return;
    tap_ok(!pool_registry_add(&reg, "one", &child[1], now, &no) &&
               strcmp(no.state, POOL_WHY_EXISTS) == 0,
           "a second session of one name is refused");
    struct pool_session *auto_named = pool_registry_add(&reg, "", &child[1], now, &no);
    tap_ok(auto_named && pool_name_good(auto_named->name), "a name is made up");

    tap_ok(pool_registry_lend(&reg, "one", &client_a, now, &no) == s && s->client == &client_a,
           "a session is lent to a client");
    tap_ok(!pool_registry_lend(&reg, "one", &client_b, now, &no) &&
               strcmp(no.state, POOL_WHY_BUSY) == 0,
           "a session is lent to one client at a time");
    tap_ok(!pool_registry_lend(&reg, "two", &client_b, now, &no) &&
               strcmp(no.state, POOL_WHY_UNKNOWN) == 0,
           "a session that is not there is unknown");
    now += MS(POOL_SESSION_IDLE_MS + 1);
    tap_ok(pool_registry_due(&reg, now) == auto_named,
           "an idle session is due after its idle time");
    tap_ok(pool_registry_end(&reg, auto_named, now, "idle for 30 minutes") == &child[1] &&
               !pool_registry_due(&reg, now),
           "a busy session is not due");
    char name[POOL_NAME + 1];
    snprintf(name, sizeof name, "%s", auto_named->name);
    tap_ok(!pool_registry_lend(&reg, name, &client_b, now, &no) &&
               strcmp(no.state, POOL_WHY_ENDED) == 0 && strstr(no.reason, "idle for 30 minutes"),
           "the end of an idle session is told to who asks later: %s", no.reason);
    pool_registry_back(s, &use, now);
    tap_ok(s->state == POOL_SESSION_IDLE && s->host_calls == 2 && s->wall_us == 1000,
           "the use of a session that is given back is added up");
    tap_ok(!pool_registry_due(&reg, now + MS(POOL_SESSION_IDLE_MS) - 1) &&
               pool_registry_due(&reg, now + MS(POOL_SESSION_IDLE_MS)) == s,
           "a session is due exactly its idle time after the call");
    tap_ok(pool_registry_next_ns(&reg) == now + MS(POOL_REMEMBER_MS),
           "the registry's next deadline is when the ended session is forgotten");

    s->died_ns = now;
    tap_ok(!pool_registry_due(&reg, now) && pool_registry_due(&reg, now + MS(POOL_DEATH_MS)) == s,
           "a session whose process died is due after the time its client has to tell why");
    tap_ok(!pool_registry_lend(&reg, "one", &client_a, now, &no) &&
               strcmp(no.state, POOL_WHY_ENDED) == 0,
           "a session whose process died is lent to nobody");
    tap_ok(pool_registry_end(&reg, s, now, "its process died") == &child[0],
           "a session whose process died ends");
    s = pool_registry_add(&reg, "one", &child[0], now, &no);
    tap_ok(s && pool_registry_find(&reg, "one") == s, "a new session may have an old one's name");
    (void)pool_registry_due(&reg, now + MS(POOL_REMEMBER_MS));
    tap_ok(reg.over == 0 && reg.alive == 1, "after a while the end is forgotten");

    size_t made = 1;
    while (pool_registry_add(&reg, "", &child[made], now, &no))
        made++;
    tap_ok(made == POOL_SESSIONS && strcmp(no.state, POOL_WHY_FULL) == 0, "%zu sessions at once",
           made);
    size_t ended = 0;
    for (uint64_t after = 0; (s = pool_registry_after(&reg, after)); after = s->serial) {
        if (s->state != POOL_SESSION_OVER)
            (void)pool_registry_end(&reg, s, now + ended, "closed");
        ended++;
    }
    tap_ok(ended == POOL_SESSIONS && reg.alive == 0 && reg.over == POOL_REMEMBERED,
           "a walk over all of them, ending each, sees each once");
    for (size_t i = 0; i < 3; i++) {
        s = pool_registry_add(&reg, "x", &child[0], now, &no);
        if (s)
            (void)pool_registry_end(&reg, s, now + 1000, "closed");
    }
    tap_ok(reg.over == POOL_REMEMBERED && !pool_registry_find(&reg, name),
           "who ended first is forgotten first");
    pool_registry_done(&reg);
    tap_eq_int(reg.logs.bytes, 0, "logs of ended sessions leave nothing");
}

/* ---- the log ---- */

static void logs(void)
{
    struct pool_log_account all = {.max = 10000};
    struct pool_log a, b;
    pool_log_init(&a, 4000);
    pool_log_init(&b, 100000);
    for (int i = 0; i < 100; i++) {
        char *at = pool_log_add(&a, &all, 100);
        if (at)
            memset(at, 'a' + i % 26, 100);
    }
    tap_ok(a.bytes <= 4000 && a.records > 20 && a.records + a.dropped == 100,
           "a log keeps to its size: %llu kept, %llu dropped", (unsigned long long)a.records,
           (unsigned long long)a.dropped);
    const char *data = NULL;
    size_t len = 0, seen = 0;
    const struct pool_record *r = pool_log_next(&a, NULL, &data, &len);
    tap_ok(r && len == 100 && data[0] == 'a' + (int)a.dropped % 26, "the oldest went first");
    for (; r; r = pool_log_next(&a, r, &data, &len))
        seen++;
    tap_eq_int(seen, a.records, "all records of a log are walked over");
    tap_ok(!pool_log_add(&a, &all, 5000) && a.records == 0,
           "a record that never fits is counted as dropped");
    for (int i = 0; i < 100; i++)
        (void)!pool_log_add(&b, &all, 300);
    tap_ok(all.bytes <= 10000, "all logs together keep to their limit");
    tap_ok(!pool_log_add(&a, &all, 300), "a log does not push out another log's records");
    pool_log_done(&a, &all);
    pool_log_done(&b, &all);
    tap_eq_int(all.bytes, 0, "logs that are done hold no bytes");
}

/* ---- the stock ---- */

static void stock(void)
{
    struct pool_memory plenty = {24 * GIB, 20 * GIB, 512 * MIB, 0};
    struct pool_stock s = {.warm = 4};
    tap_eq_int(pool_stock_ask(&s, &plenty, POOL_CHILD_COST), 4, "an empty stock is filled");
    s.asked = 4;
    tap_eq_int(pool_stock_ask(&s, &plenty, POOL_CHILD_COST), 0, "children are not asked for twice");
    s = (struct pool_stock){.warm = 4, .ready = 3};
    tap_eq_int(pool_stock_ask(&s, &plenty, POOL_CHILD_COST), 1,
               "one child is asked for where one was taken");
    s = (struct pool_stock){.warm = 4, .waiters = 3, .asked = 4};
    tap_eq_int(pool_stock_ask(&s, &plenty, POOL_CHILD_COST), 3,
               "children are asked for waiting clients and for the stock");
    s = (struct pool_stock){.warm = 64};
    tap_eq_int(pool_stock_ask(&s, &plenty, POOL_CHILD_COST), 8,
               "at most eight children are asked for at a time");
    struct pool_memory tight = {24 * GIB, 20 * GIB, 5 * MIB, 0};
    tap_eq_int(pool_stock_ask(&s, &tight, POOL_CHILD_COST), 2,
               "no more children are asked for than the memory budget allows");
    tight.used = 5 * MIB;
    s.waiters = 3;
    tap_eq_int(pool_stock_ask(&s, &tight, POOL_CHILD_COST), 3,
               "children for waiting clients are asked for beyond the budget");
    struct pool_memory poor = {24 * GIB, 400 * MIB, 512 * MIB, 0};
    tap_ok(pool_memory_short(&poor) && pool_stock_ask(&s, &poor, POOL_CHILD_COST) == 0,
           "a machine that is short of memory gets no child");
    struct pool_memory small = {2 * GIB, 400 * MIB, 512 * MIB, 0};
    tap_ok(!pool_memory_short(&small),
           "a small machine with a fifth of its memory free is not short");
    struct pool_memory read = {0};
    pool_memory_parse("MemTotal:       24620000 kB\nMemFree:  1 kB\nMemAvailable:   23000000 kB\n",
                      &read);
    tap_ok(read.total == 24620000 * KIB && read.available == 23000000 * KIB,
           "the machine's memory is read from meminfo");

    struct pool_backoff b = {0};
    uint64_t now = MS(1000), waited[12];
    for (int i = 0; i < 12; i++) {
        pool_backoff_failed(&b, MS(10), now);
        waited[i] = b.retry_ns - now;
    }
    tap_ok(waited[0] == 0 && waited[1] == MS(100) && waited[2] == MS(200) &&
               waited[11] == MS(30000),
           "a template that fails is tried again at once, then later and later, then every 30 s");
    tap_ok(pool_backoff_broken(&b), "a template that fails twelve times is said to be broken");
    pool_backoff_failed(&b, MS(60000), now);
    tap_ok(b.retry_ns == now && !pool_backoff_broken(&b),
           "a template that lived a minute is tried again at once");

    struct jail_spec spec;
    jail_spec_init(&spec);
    struct jail_limits has = spec.limits, want = has;
    tap_ok(!pool_limits_cannot(&has, &want), "a request with the limits of the stock is served");
    want.memory /= 2;
    want.wall_ms = 10;
    tap_ok(!pool_limits_cannot(&has, &want), "a request with tighter limits is served");
    want.memory = has.memory + 1;
    tap_eq_str(pool_limits_cannot(&has, &want), "memory", "a wider memory limit is not served");
    want = has;
    want.disk /= 2;
    tap_eq_str(pool_limits_cannot(&has, &want), "disk",
               "another disk limit is not served, as a child's cannot be changed any more");
}

/* ---- folders of the host ---- */

/* What is said of a list of these bytes. */
static int read_words(const char *words, size_t len)
{
    struct pool_shares *s = NULL;
    struct err err = ERR_INIT;
    FD_AUTO fd = -1;
    int r = fd_sealed(words, len, &fd, &err);
    if (r == 0)
        r = pool_shares_read(fd, &s, &err);
    pool_shares_free(s);
    return r;
}

static void broken_lists(void)
{
#define SAYS(words, want, what) tap_ok(read_words(words, sizeof words - 1) == (want), what)
    SAYS("r\0/a\0/b\0001\0002\0", 0, "a list of one folder is read");
    SAYS("r\0/a\0/b\0001\0002\0w\0/a\0/c\0001\0002\0", 0, "a list of two folders is read");
    SAYS("r\0/a\0/b\0001\0002", ERR_FORMAT, "a list without its last NUL is refused");
    SAYS("r\0/a\0/b\0001\0", ERR_FORMAT, "a list that ends in the middle of a folder is refused");
    SAYS("x\0/a\0/b\0001\0002\0", ERR_FORMAT, "a folder that is shown in no known way is refused");
    SAYS("rw\0/a\0/b\0001\0002\0", ERR_FORMAT, "a word that only begins with r is refused");
    SAYS("r\0a\0/b\0001\0002\0", ERR_FORMAT,
         "a folder whose path depends on the reader's is refused");
    SAYS("r\0/a\0/b\0001\0000\0", ERR_FORMAT, "a folder without an inode is refused");
    SAYS("r\0/a\0/b\0-1\0002\0", ERR_FORMAT, "a device that is no number is refused");
    SAYS("r\0/a\0/b\0001\00099999999999999999999\0", ERR_FORMAT,
         "an inode past 64 bits is refused");
    SAYS("r\0/a\0/usr/x\0001\0002\0", ERR_USAGE, "a list cannot cover what the interpreter reads");
    for (const struct language *l = language_next(NULL); l; l = language_next(l)) {
        char words[80];
        const int n = snprintf(words, sizeof words, "r%c/a%c%s%c1%c2", 0, 0,
                               l->place ? l->place : "/usr", 0, 0);
        tap_ok(read_words(words, (size_t)n + 1) == ERR_USAGE,
               "a list cannot cover the worker of %s", l->name);
    }
    SAYS("r\0/a\0/tmp\0001\0002\0", ERR_USAGE, "a list cannot cover a session's own files");
#undef SAYS
    struct pool_shares *s = NULL;
    struct err err = ERR_INIT;
    FD_AUTO open_memory = memfd_create("list", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    static const char words[] = "r\0/a\0/b\0001\0002";
    tap_ok(write(open_memory, words, sizeof words) == (ssize_t)sizeof words &&
               pool_shares_read(open_memory, &s, &err) == ERR_FORMAT,
           "a list that its sender could still change is refused");
    FD_AUTO file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    tap_ok(pool_shares_read(file, &s, &err) == ERR_FORMAT, "a list that is no memory is refused");
}

static void swapped_folder(void)
{
    char top[] = "/tmp/cordon-test-XXXXXX", folder[64], away[64];
    struct err err = ERR_INIT;
    struct pool_shares *s = NULL;
    struct jail_bind bind = {.source = folder, .dest = "/shown", .writable = true, .moved = true};
    const struct jail_spec spec = {.binds = &bind, .nbinds = 1};
    base_assert(mkdtemp(top));
    snprintf(folder, sizeof folder, "%s/folder", top);
    snprintf(away, sizeof away, "%s/away", top);
    base_assert(mkdir(folder, 0700) == 0);
    tap_ok(pool_shares_new(&spec, &s, &err) == 0 && s && s->count == 1 && s->binds[0].writable &&
               strcmp(s->binds[0].source, folder) == 0 && strcmp(s->binds[0].dest, "/shown") == 0,
           "a folder comes back from its list");
    FD_AUTO same = jail_bind_open(&s->binds[0], &err);
    base_assert(rename(folder, away) == 0 && mkdir(folder, 0700) == 0);
    FD_AUTO other = jail_bind_open(&s->binds[0], &err);
    tap_ok(same >= 0 && other == ERR_STATE,
           "a folder that came to the name of a listed one is not taken for it");
    base_assert(rmdir(folder) == 0 && symlink("away", folder) == 0);
    FD_AUTO link = jail_bind_open(&s->binds[0], &err);
    tap_ok(link == ERR_USAGE, "a link to the listed folder is not taken for it");
    pool_shares_free(s);
    base_assert(unlink(folder) == 0 && rmdir(away) == 0 && rmdir(top) == 0);
}

int main(void)
{
    requests();
    replies();
    sessions();
    logs();
    stock();
    broken_lists();
    swapped_folder();
    return tap_done();
}
