/* SPDX-License-Identifier: Apache-2.0 */
/* kill -9 at random instants, under load: several writers at once, of which one after the other dies in the middle of
 * what it does. Whatever a writer was told is written must be in the log, as it was told; and verify must pass.
 *
 * Usage: audit_kill KILLS [WRITERS]. TAP. The writers note what was acknowledged in shared memory, which outlives them. */
#include "audit/audit.h"
#include "audit/read.h"
#include "base/clock.h"
#include "base/tap.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WRITERS_MAX 16
#define NOTES       (1 << 20)

struct note {
    _Atomic uint64_t seq; /* set last: acknowledged */
    uint64_t token;
    int kind;
};

struct shared {
    _Atomic uint64_t count;
    _Atomic int failed;
    _Atomic int pause; /* the log is being looked at: do not let it grow meanwhile */
    struct note notes[NOTES];
};

static struct shared *shared;
static char state[64];

static uint64_t random_number(void)
{
    uint64_t n = 0;
    if (getrandom(&n, sizeof n, 0) != sizeof n)
        abort();
    return n;
}

static void acknowledged(enum audit_kind kind, uint64_t seq, uint64_t token)
{
    uint64_t i = atomic_fetch_add(&shared->count, 1);
    if (i >= NOTES)
        return;
    shared->notes[i].token = token;
    shared->notes[i].kind = (int)kind;
    atomic_store(&shared->notes[i].seq, seq);
}

/* Runs, events, batches; small records and some that span many pages. */
static void write_for_ever(const char *page)
{
    struct audit_config c;
    struct audit *a;
    struct err err = ERR_INIT;
    audit_config_init(&c);
    c.state = state;
    c.sync = random_number() % 2 ? AUDIT_SYNC_ON : AUDIT_SYNC_OFF;
    if (audit_open(&c, &a, &err) < 0) {
        printf("# open: %s\n", err.msg);
        atomic_store(&shared->failed, 1);
        _exit(1);
    }
    for (;;) {
        while (atomic_load(&shared->pause))
            nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
        uint64_t token = random_number();
        char id[40];
        snprintf(id, sizeof id, "t%016llx", (unsigned long long)token);
        const struct audit_arg args[] = {
            {.name = "page", .text = page, .len = token % 8 ? 40 : 1000},
            {.name = "list", .kind = AUDIT_ARG_LIST, .list = &page, .count = token % 8 == 0}};
        struct audit_facts f = {
            .execution_id = id, .client_id = "kill", .tool = "run", .args = args, .nargs = 2};
        const struct audit_outcome o = {.status = "ok", .wall_us = 10};
        struct audit_ticket t;
        struct audit_item items[20];
        int r = 0;
        switch (token % 3) {
        case 0:
            r = audit_begin_run(a, &f, &t, &err);
            if (r < 0)
                break;
            acknowledged(AUDIT_BEGIN, t.seq, token);
            f.outcome = &o;
            r = audit_end_run(a, &t, &f, &err);
            if (r == 0)
                acknowledged(AUDIT_END, audit_last_seq(a), token);
            break;
        case 1:
            r = audit_event(a, AUDIT_TOOL, &f, &err);
            if (r == 0)
                acknowledged(AUDIT_TOOL, audit_last_seq(a), token);
            break;
        default:
            for (size_t i = 0; i < 20; i++)
                items[i] = (struct audit_item){AUDIT_SESSION, f};
            r = audit_events(a, items, 20, &err);
            for (uint64_t i = 0; r == 0 && i < 20; i++)
                acknowledged(AUDIT_SESSION, audit_last_seq(a) - i, token);
        }
        if (r < 0) {
            printf("# write: %s\n", err.msg);
            atomic_store(&shared->failed, 1);
            _exit(1);
        }
    }
}

static pid_t start(const char *page)
{
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        write_for_ever(page);
    }
    return pid;
}

static bool verify(struct audit_verdict *v)
{
    struct err err = ERR_INIT;
    int r = audit_verify(state, NULL, v, &err);
    if (r < 0 || !v->good)
        printf("# %s record %llu %s:%llu: %s\n", err.msg, (unsigned long long)v->bad_seq,
               v->bad_file, (unsigned long long)v->bad_line, v->why);
    return r == 0 && v->good;
}

/* Every acknowledged record, by its number, with its own words in it. */
static uint64_t missing(uint64_t *ret_looked)
{
    struct audit_walk *w;
    struct audit_step s;
    struct err err = ERR_INIT;
    uint64_t count = atomic_load(&shared->count), last = 0, lost = 0;
    if (count > NOTES)
        count = NOTES;
    for (uint64_t i = 0; i < count; i++)
        if (shared->notes[i].seq > last)
            last = shared->notes[i].seq;
    const struct note **by_seq = calloc(last + 1, sizeof *by_seq);
    for (uint64_t i = 0; i < count; i++)
        if (shared->notes[i].seq) {
            lost += by_seq[shared->notes[i].seq] != NULL; /* one number, told twice */
            by_seq[shared->notes[i].seq] = &shared->notes[i];
            ++*ret_looked;
        }
    if (audit_walk_new(state, &w, &err) < 0)
        return UINT64_MAX;
    while (audit_walk_next(w, &s, &err) == 1) {
        char want[48];
        if (s.wrong || s.seq > last || !by_seq[s.seq])
            continue;
        int n = snprintf(want, sizeof want, "\"execution_id\": \"t%016llx\"",
                         (unsigned long long)by_seq[s.seq]->token);
        if ((int)s.kind == by_seq[s.seq]->kind && memmem(s.text, s.len, want, (size_t)n))
            by_seq[s.seq] = NULL;
    }
    audit_walk_free(w);
    for (uint64_t i = 0; i <= last; i++)
        lost += by_seq[i] != NULL;
    free(by_seq);
    return lost;
}

int main(int argc, char **argv)
{
    long kills = argc > 1 ? strtol(argv[1], NULL, 10) : 50,
         writers = argc > 2 ? strtol(argv[2], NULL, 10) : 3;
    const char *tmp = getenv("TMPDIR");
    snprintf(state, sizeof state, "%.40s/cordon-kill-XXXXXX", tmp ? tmp : "/tmp");
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char page[1001];
    memset(page, 'p', 1000);
    page[1000] = 0;
    if (!tap_ok(shared != MAP_FAILED && mkdtemp(state) && kills > 0 && writers > 0 &&
                    writers <= WRITERS_MAX,
                "%ld kills, %ld writers", kills, writers))
        return tap_done();

    struct audit_config c;
    struct audit *a = NULL;
    struct err err = ERR_INIT;
    audit_config_init(&c);
    c.state = state;
    if (!tap_ok(audit_open(&c, &a, &err) == 0, "a log to begin with: %s", err.msg))
        return tap_done();
    audit_close(a);

    pid_t pids[WRITERS_MAX] = {0};
    struct audit_verdict v = {0};
    long bad = 0, verified = 0, every = kills > 100 ? kills / 100 : 1;
    uint64_t torn = 0, ahead = 0;
    for (long i = 0; i < writers; i++)
        pids[i] = start(page);
    for (long k = 0; k < kills && !atomic_load(&shared->failed); k++) {
        struct timespec pause = {.tv_nsec = (long)(random_number() % 4000000)};
        nanosleep(&pause, NULL);
        long victim = (long)(random_number() % (uint64_t)writers);
        bool all = random_number() % 4 == 0; /* then nobody is left to repair before verify looks */
        for (long i = 0; i < writers; i++)
            if (all || i == victim)
                kill(pids[i], SIGKILL);
        for (long i = 0; i < writers; i++)
            if (all || i == victim)
                waitpid(pids[i], NULL, 0);
        if (k % every == 0) {
            atomic_store(&shared->pause, 1);
            bad += !verify(&v);
            verified++;
            torn += v.torn_bytes > 0;
            ahead += v.ahead > 0;
            atomic_store(&shared->pause, 0);
        }
        for (long i = 0; i < writers; i++)
            if (all || i == victim)
                pids[i] = start(page);
    }
    for (long i = 0; i < writers; i++) {
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
    }
    uint64_t looked = 0, lost = missing(&looked);
    tap_eq_int((long long)atomic_load(&shared->failed), 0, "no writer was refused");
    tap_eq_int(
        bad, 0,
        "verify passes after a kill, %ld times (%llu with a torn line, %llu with a head behind)",
        verified, (unsigned long long)torn, (unsigned long long)ahead);
    tap_ok(looked > (uint64_t)kills, "%llu records were acknowledged", (unsigned long long)looked);
    tap_eq_int((long long)lost, 0, "no acknowledged record is lost");
    tap_ok(audit_open(&c, &a, &err) == 0 &&
               audit_event(a, AUDIT_RESUME, &(struct audit_facts){0}, &err) == 0,
           "the next start closes the runs that are open");
    tap_ok(
        verify(&v) && v.open_runs == 0 && v.torn_bytes == 0 && v.ahead == 0,
        "after the next start verify reports no open run, no torn line and no head that is behind");
    audit_close(a);
    printf("#= audit: %ld kills, %llu acknowledged records, %llu lost, %llu in the log\n", kills,
           (unsigned long long)looked, (unsigned long long)lost, (unsigned long long)v.records);
    int status = 1;
    pid_t sweeper = fork();
    if (sweeper == 0) {
        execl("/bin/rm", "rm", "-rf", state, (char *)NULL);
        _exit(127);
    }
    tap_ok(waitpid(sweeper, &status, 0) == sweeper && status == 0,
           "the folder of the log is removed");
    return tap_done();
}
