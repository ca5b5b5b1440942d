/* SPDX-License-Identifier: Apache-2.0 */
/* What a judged and jailed Python run costs beside a bare one and beside bubblewrap.
 *
 * Every case runs a few times a round, in turn, so that whatever the machine does meanwhile falls on all of them;
 * the ratios are what is compared. A warm run is measured as a client sees it that keeps running (an agent's
 * server): from the request for a child to the whole result, with the judge, all layers and the end of the
 * child in it. The last of the warm rows is the flow as `cordon run` has it: gate, output and audit too. */
#include "flow/flow.h"
#include "peers.h"
#include "pool/pool.h"
#include "pool/pool_client.h"
#include "sys/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum {
    BARE,
    BWRAP,
    EXEC,
    START,
    ONESHOT,
    WARM,
    WARM_NEW,
    FLOW,
    WARM_PANDAS,
    ON_DEMAND,
    FORK,
    CASES
};
static struct row {
    const char *key, *name, *note;
    double goal; /* of bare; 0: none */
    double *ms, p50, p95, p99;
    const char *off;
    char why[240];
} rows[CASES] = {
    [BARE] = {"bare", "bare python3 -I -S -c pass"},
    [BWRAP] = {"bwrap", "bubblewrap + python3"},
    [EXEC] = {"exec", "cordon exec -- /bin/true", "the jail, gate and audit alone"},
    [START] = {"start", "libpython to its first tree",
               "no jail, no judge: the floor under the next row"},
    [ONESHOT] = {"oneshot", "cordon run, no holder",
                 "a process of its own: all layers, judge, audit without fsync", 1.25},
    [WARM] = {"warm", "warm run",
              "judge, all layers, result; a client that stays: its next child waits", 1.0 / 20},
    [WARM_NEW] = {"warm-new", "warm run, new connection", "as `cordon run` does it"},
    [FLOW] = {"flow", "the same with gate, output, audit",
              "audit without fsync; after a pause, with cold caches"},
    [WARM_PANDAS] = {"pandas", "warm run, import pandas", "goal: 1.3 of the warm run"},
    [ON_DEMAND] = {"on-demand", "run with no warm child ready",
                   "the template forks and locks one on request", 1.0 / 5},
    [FORK] = {"fork", "fork of a live session", "variables and files", 1.0 / 4},
};
static char dir[] = "/tmp/cordon-bench-XXXXXX", bin[64];
/* A round has each case a few times in a row: then it, too, and not only the peer that came before, has the caches to
 * itself; and the cases still share the machine's good and bad minutes. */
enum { IN_A_ROW = 5, UNCOUNTED = 3 };
static unsigned rounds = 40;
static double *own; /* of each round, the steps of gate, output and audit, in microseconds */

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static double spawn_once(const char *const *argv)
{
    posix_spawn_file_actions_t quiet;
    int status;
    pid_t pid;
    posix_spawn_file_actions_init(&quiet);
    posix_spawn_file_actions_addopen(&quiet, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
    double before = now_ms();
    int e = posix_spawn(&pid, argv[0], &quiet, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&quiet);
    if (e != 0 || waitpid(pid, &status, 0) != pid)
        return -1;
    double after = now_ms();
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? after - before : -1;
}

/* ---- one warm run, by hand ---- */

struct talk {
    struct flow_worker worker;
    bool over;
};

static void no_bytes(void *ctx, enum jail_stream s, const void *p, size_t n)
{
    (void)ctx;
    (void)s;
    (void)p;
    (void)n;
}

static bool hear(void *ctx)
{
    struct talk *t = ctx;
    return flow_worker_read(&t->worker);
}

static int wait_for(struct talk *t, struct jail_run *run, enum flow_worker_state state)
{
    double until = now_ms() + 5000;
    while (t->worker.state < state && now_ms() < until)
        if (jail_run_step(run, 1000))
            break;
    return t->worker.state == state ? 0 : -1;
}

/* How a client comes to its child: it stays, and its next child is there; it stays, and asks when it needs one;
 * it is new each time. */
enum way { STAYS, ASKS, ANEW };

static double warm_once(const char *profile, bool packages, const char *source, uint64_t patience,
                        enum way way, struct err *err)
{
    static struct {
        struct pool_client client;
        pid_t opened_by;
    } kept[ANEW + 1][2];
    struct pool_client *client = &kept[way][packages].client;
    const bool anew = way == ANEW, mine = kept[way][packages].opened_by == getpid();
    struct jail_child child = JAIL_CHILD_NONE;
    struct pool_answer answer;
    struct flow_result result;
    struct jail_run *run = NULL;
    struct talk t = {0};
    struct jail_spec spec;
    double took = -1, before;
    jail_spec_init(&spec);
    if (!policy_profile_find(profile)->threads)
        spec.limits.threads = 0;
    before = now_ms();
    if (!mine || client->sock < 0) {
        if (pool_client_open(client, NULL, POOL_ANSWER_MS, err) < 0)
            return -1;
        kept[way][packages].opened_by = getpid();
        if (!anew)
            before = now_ms(); /* a client that stays has its connection */
    }
    if (pool_client_lease(client, profile, packages, &spec.limits, patience, &child, &answer, err) <
            0 ||
        answer.declined) {
        if (err->code == 0)
            err_set(err, ERR_STATE, "no child: %s", answer.reply.reason);
        return -1;
    }
    flow_result_init(&result);
    flow_worker_init(&t.worker, child.channel, &result);
    t.worker.has_rules = true;
    struct jail_adopt a = {.limits = spec.limits, .input = -1, .sink = {&t, no_bytes, hear}};
    struct flow_job job = {.kind = FLOW_JOB_RUN,
                           .profile = policy_profile_find(profile),
                           .name = "bench.py",
                           .source = source,
                           .len = strlen(source)};
    int channel = child.channel;
    if (jail_run_adopt(&child, &a, &run, err) == 0) {
        t.worker.run = run;
        if (flow_worker_give(&t.worker, &job, err) == 0 &&
            wait_for(&t, run, FLOW_WORKER_JUDGED) == 0 && flow_worker_go(&t.worker, err) == 0 &&
            wait_for(&t, run, FLOW_WORKER_DONE) == 0) {
            while (!jail_run_step(run, 1000))
                ;
            if (jail_run_outcome(run)->exit_code == 0 && jail_run_outcome(run)->bytes[0] == 2)
                took = now_ms() - before;
        }
    }
    if (took < 0 && err->code == 0)
        err_set(err, ERR_STATE, "the run ended in state %d", t.worker.state);
    jail_run_free(run);
    fd_close(channel);
    flow_worker_done(&t.worker);
    flow_result_done(&result);
    struct pool_use_numbers use = {0};
    struct err ignored = ERR_INIT;
    const struct pool_lease next = {
        .profile = profile, .packages = packages, .limits = spec.limits, .patience_ms = patience};
    if (anew || pool_client_back(client, false, "", "", &use, NULL, 0, &answer, &ignored) < 0 ||
        (way == STAYS && pool_client_ahead(client, &next, &ignored) < 0))
        pool_client_close(client);
    return took;
}

/* ---- the same through the whole flow ---- */

static double own_us; /* of the last run: its steps of gate, output and audit */

static double flow_once(struct flow_context *context, struct err *err)
{
    static char nest[4096], python[4096];
    struct flow_result result;
    struct flow_request req = {.kind = FLOW_RUN,
                               .context = context,
                               .name = "bench.py",
                               .source = "print(1)\n",
                               .source_len = 9,
                               .input = -1,
                               .nest = nest,
                               .python = python,
                               .stop = -1,
                               .pool = true};
    snprintf(nest, sizeof nest, "%s/cordon-nest", bin);
    snprintf(python, sizeof python, "%s/cordon-python", bin);
    jail_spec_init(&req.spec);
    req.spec.env = (const char **)pool_env; /* as `cordon run`: a child has them already */
    req.spec.envc = POOL_ENV;
    req.profile = policy_find_profile(context->policy, "strict");
    double before = now_ms();
    if (flow_run(&req, &result, err) < 0)
        return -1;
    double took = now_ms() - before;
    bool good = result.status == FLOW_OK && result.warm && result.streams[0].len == 2;
    if (!good)
        err_set(err, ERR_STATE, "%s, %s: %s", flow_status_name(result.status),
                result.warm ? "warm" : "not warm", result.reason);
    static const char *const ours[] = {"prepare", "admit", "record", "decide", "clean", "finish"};
    own_us = 0;
    for (size_t i = 0; i < result.nsteps; i++)
        for (size_t k = 0; k < sizeof ours / sizeof *ours; k++)
            own_us += strcmp(result.steps[i].name, ours[k]) == 0 ? (double)result.steps[i].us : 0;
    flow_result_done(&result);
    return good ? took : -1;
}

/* ---- sessions ---- */

static double fork_once(const char *name, struct err *err)
{
    static struct pool_client client = {.sock = -1};
    struct jail_child session = JAIL_CHILD_NONE, branch = JAIL_CHILD_NONE;
    struct pool_answer answer;
    struct pool_use_numbers use = {0};
    if (client.sock < 0 && pool_client_open(&client, NULL, POOL_ANSWER_MS, err) < 0)
        return -1;
    if (pool_client_call(&client, name, true, &session, &answer, err) < 0 || answer.declined) {
        if (err->code == 0)
            err_set(err, ERR_STATE, "%s", answer.reply.reason);
        return -1;
    }
    double before = now_ms();
    int r = jail_branch(&session, &branch, err);
    double took = r == 0 ? now_ms() - before : -1;
    jail_child_kill(&branch);
    jail_child_close(&branch);
    jail_child_close(&session);
    if (pool_client_back(&client, true, "", "", &use, NULL, 0, &answer, err) < 0)
        return -1;
    return took;
}

/* ---- figures ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double once(int i, struct flow_context *context, struct err *err)
{
    static char cordon[4096], program[4096];
    const char *words[PEER_WORDS];
    switch (i) {
    case BARE:
        return spawn_once((const char *[]){"/usr/bin/python3", "-I", "-S", "-c", "pass", NULL});
    case BWRAP: {
        size_t n = 0;
        peer_bwrap(words, 0);
        while (words[n + 1])
            n++;
        const char *const python[] = {"/usr/bin/python3", "-I", "-S", "-c", "pass", NULL};
        memcpy(words + n, python, sizeof python);
        return spawn_once(words);
    }
    case START:
        snprintf(program, sizeof program, "%s/python_start", bin);
        return spawn_once((const char *[]){program, NULL});
    case EXEC:
        snprintf(cordon, sizeof cordon, "%s/cordon", bin);
        return spawn_once((const char *[]){cordon, "exec", "--", "/bin/true", NULL});
    case ONESHOT:
        snprintf(cordon, sizeof cordon, "%s/cordon", bin);
        snprintf(program, sizeof program, "%s/pass.py", dir);
        return spawn_once(
            (const char *[]){cordon, "run", "--policy", "no-pool.yaml", program, NULL});
    case WARM:
        return warm_once("strict", false, "print(1)\n", 2000, STAYS, err);
    case WARM_NEW:
        return warm_once("strict", false, "print(1)\n", 2000, ANEW, err);
    case WARM_PANDAS:
        return warm_once("standard", true, "import pandas\nprint(1)\n", 20000, STAYS, err);
    case FLOW:
        return flow_once(context, err);
    case ON_DEMAND:
        return warm_once("open", false, "print(1)\n", 2000, ASKS, err);
    default:
        return fork_once("bench", err);
    }
}

/* The first rounds are not counted: the pool fills. */
static void measure_case(int i, unsigned round, struct flow_context *context)
{
    for (unsigned k = 0; k < IN_A_ROW; k++) {
        struct err err = ERR_INIT;
        double ms = once(i, context, &err);
        if (ms < 0 && round >= UNCOUNTED) {
            snprintf(rows[i].why, sizeof rows[i].why, "%s", err.code ? err.msg : "it failed");
            rows[i].off = rows[i].why;
            return;
        }
        if (round >= UNCOUNTED) {
            unsigned at = (round - UNCOUNTED) * IN_A_ROW + k;
            rows[i].ms[at] = ms;
            if (i == FLOW)
                own[at] = own_us;
        }
        nanosleep(&(struct timespec){0, 6000000}, NULL); /* refilling is not the next one's bill */
    }
}

static void measure(struct flow_context *context)
{
    const unsigned count = rounds * IN_A_ROW;
    for (unsigned r = 0; r < rounds + UNCOUNTED; r++)
        for (int i = 0; i < CASES; i++)
            if (!rows[i].off)
                measure_case(i, r, context);
    qsort(own, count, sizeof(double), by_value);
    for (int i = 0; i < CASES; i++) {
        if (rows[i].off)
            continue;
        qsort(rows[i].ms, count, sizeof(double), by_value);
        rows[i].p50 = rows[i].ms[count / 2];
        rows[i].p95 = rows[i].ms[(count - 1) * 95 / 100];
        rows[i].p99 = rows[i].ms[(count - 1) * 99 / 100];
    }
}

/* One client that never pauses, with gate, output and audit and without, by turns: mean ms of each. */
static void busy(struct flow_context *context, double ret[2])
{
    enum { TURNS = 60, EACH = 20 };
    const int cases[2] = {WARM_NEW, FLOW};
    for (int k = 0; k < 2; k++)
        ret[k] = 0;
    for (int t = 0; t < TURNS; t++)
        for (int k = 0; k < 2; k++) {
            double began = now_ms();
            for (int i = 0; i < EACH; i++) {
                struct err err = ERR_INIT; /* none in time: it has cost its time all the same */
                (void)once(cases[k], context, &err);
            }
            ret[k] += (now_ms() - began) / (TURNS * EACH);
        }
}

/* Two clients at once: runs a second. */
static double throughput(double ms_long)
{
    int *done = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    double until = now_ms() + ms_long;
    pid_t pids[2];
    for (int k = 0; k < 2; k++) {
        pids[k] = fork();
        if (pids[k] == 0) {
            struct err err = ERR_INIT;
            while (now_ms() < until)
                done[k] += warm_once("strict", false, "print(1)\n", 2000, STAYS, &err) > 0;
            _exit(0);
        }
    }
    for (int k = 0; k < 2; k++)
        waitpid(pids[k], NULL, 0);
    double rate = (done[0] + done[1]) / (ms_long / 1e3);
    munmap(done, 4096);
    return rate;
}

/* Memory that processes take, the kernel's own for them included. Not what is free: that has the kernel's lists of
 * pages for each processor in it, which are larger than sixty children. */
static long taken_kb(void)
{
    static const char *const kinds[] = {
        "AnonPages:",    "Shmem:",      "PageTables:", "KernelStack:",
        "SReclaimable:", "SUnreclaim:", "Percpu:"};
    char text[4096];
    long sum = 0;
    if (fd_read_file(AT_FDCWD, "/proc/meminfo", text, sizeof text) <= 0)
        return 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const char *at = strstr(text, kinds[i]);
        sum += at ? strtol(at + strlen(kinds[i]), NULL, 10) : 0;
    }
    return sum;
}

static int set_warm(const char *profile, uint64_t warm, struct err *err)
{
    struct pool_client c;
    struct pool_answer answer;
    struct pool_set_numbers set = {.warm = warm,
                                   .budget = UINT64_MAX,
                                   .idle_exit_ms = UINT64_MAX,
                                   .renew_ms = UINT64_MAX,
                                   .renew_runs = UINT64_MAX};
    const struct pool_kind kind = {.profile = profile};
    int r = pool_client_open(&c, NULL, POOL_ANSWER_MS, err);
    if (r == 0)
        r = pool_client_set(&c, &kind, &set, &answer, err);
    if (r == 0 && answer.declined)
        r = err_set(err, ERR_STATE, "%s", answer.reply.reason);
    pool_client_close(&c);
    return r;
}

/* What 60 more waiting children take from the machine, kernel memory included: the middle of a few looks, for others
 * take and give memory meanwhile. */
static double idle_mb(void)
{
    enum { LOOKS = 3 };
    struct err err = ERR_INIT;
    double each[LOOKS];
    for (int i = 0; i < LOOKS; i++) {
        if (set_warm("strict", 4, &err) < 0)
            return INFINITY; /* no child, no figure */
        sleep(2);
        long before = taken_kb();
        if (set_warm("strict", 64, &err) < 0)
            return INFINITY; /* no child, no figure */
        sleep(3);
        each[i] = (double)(taken_kb() - before) / 60 / 1024;
    }
    (void)!set_warm("strict", 8, &err);
    qsort(each, LOOKS, sizeof *each, by_value);
    return each[LOOKS / 2];
}

/* For bench/gains, which measures two builds by turns: each line on standard input is a turn, and is answered by a line
 * of milliseconds. */
static int take_turns(const char *key, struct flow_context *context)
{
    char line[16];
    int i = 0;
    while (i < CASES && strcmp(rows[i].key, key) != 0)
        i++;
    const bool rate = strcmp(key, "rate") == 0;
    if (i == CASES && !rate) {
        fprintf(stderr, "bench: no row has the name %s\n", key);
        return 2;
    }
    while (fgets(line, sizeof line, stdin)) {
        if (rate)
            printf("%.4f", 1e3 / throughput(400));
        for (unsigned k = 0; i < CASES && k < IN_A_ROW; k++) {
            struct err err = ERR_INIT;
            double ms = once(i, context, &err);
            if (ms < 0)
                fprintf(stderr, "bench: %s: %s\n", key, err.code ? err.msg : "it failed");
            else
                printf("%.4f ", ms);
            nanosleep(&(struct timespec){0, 6000000}, NULL);
        }
        puts("");
        fflush(stdout);
    }
    return 0;
}

static int report(double rate, double idle, const double mean[2])
{
    int missed = 0;
    printf("%-36s %8s %8s %8s %8s  goal\n", "", "p50 ms", "p95 ms", "p99 ms", "/bare");
    for (int i = 0; i < CASES; i++) {
        const struct row *r = &rows[i];
        if (r->off) {
            printf("%-36s not measured: %s\n", r->name, r->off);
            missed = missed || i >= ONESHOT;
            continue;
        }
        double goal = i == WARM_PANDAS ? 1.3 * rows[WARM].p50 / rows[BARE].p50 : r->goal;
        double ratio = r->p50 / rows[BARE].p50;
        printf("%-36s %8.3f %8.3f %8.3f %8.3f", r->name, r->p50, r->p95, r->p99, ratio);
        if (goal > 0)
            printf("  %.3f %s", goal, ratio <= goal ? "met" : "missed");
        printf("%s%s\n", r->note ? "   " : "", r->note ? r->note : "");
        missed = missed || (goal > 0 && ratio > goal);
    }
    if (!rows[WARM].off) {
        double p95 = rows[WARM].p95 / rows[BARE].p50;
        printf("%-36s %35.3f  %.3f %s\n", "warm run, p95 of bare p50", p95, 1.0 / 9,
               p95 <= 1.0 / 9 ? "met" : "missed");
        missed = missed || p95 > 1.0 / 9;
    }
    if (!rows[FLOW].off) {
        const double own_ms = own[rounds * IN_A_ROW / 2] / 1000, busy_ratio = mean[1] / mean[0],
                     cold_ratio = rows[FLOW].p50 / rows[WARM_NEW].p50;
        puts("gate, output and audit");
        printf("  %-34s %8.3f ms   a part of it while the holder looks for a child\n",
               "their own steps, after a pause", own_ms);
        printf("  %-34s %8.3f of the run without them  1.100 %s\n", "after a pause, caches cold",
               cold_ratio, cold_ratio <= 1.1 ? "met" : "missed");
        printf("  %-34s %8.3f of the run without them (%.3f ms)  1.100 %s\n",
               "one run after the other", busy_ratio, mean[0],
               busy_ratio <= 1.1 ? "met" : "missed");
        missed = missed || busy_ratio > 1.1 || cold_ratio > 1.1;
    }
    printf("%-36s %8.0f a second  800 %s\n", "warm runs, two clients", rate,
           rate >= 800 ? "met" : "missed");
    printf("%-36s %8.2f MB  1.1 %s\n", "idle warm child, kernel included", idle,
           idle > 0 && idle <= 1.1 ? "met" : "missed");
    puts("The ratios are of p50. Absolute times prove nothing: they are this machine's in this "
         "minute.");
    return missed || rate < 800 || idle > 1.1;
}

static int measure_all(struct flow_context *context)
{
    double mean[2];
    measure(context);
    busy(context, mean);
    double rate = throughput(4000), idle = idle_mb();
    return report(rate, idle, mean);
}

static int prepare(struct flow_context *context, struct err *err)
{
    char path[4096];
    struct pool_client c;
    struct pool_answer answer;
    struct jail_child child = JAIL_CHILD_NONE;
    struct pool_session_spec spec = {
        .name = "bench", .profile = "strict", .role = "execute", .idle_ms = 600000};
    struct pool_use_numbers use = {0};
    struct jail_spec defaults;
    jail_spec_init(&defaults);
    spec.limits = defaults.limits;
    spec.limits.threads = 0;
    snprintf(path, sizeof path, "%s/cordon-holder", bin);
    int r = pool_client_start(&c, NULL, path, NULL, err);
    if (r == 0)
        r = pool_client_new(&c, &spec, &child, &answer, err);
    if (r == 0 && answer.declined)
        r = err_set(err, ERR_STATE, "%s", answer.reply.reason);
    if (r == 0) {
        jail_child_close(&child);
        r = pool_client_back(&c, true, "", "", &use, NULL, 0, &answer, err);
    }
    pool_client_close(&c);
    if (r == 0)
        r = set_warm("strict", 8, err);
    if (r == 0)
        r = set_warm("open", 0, err);
    if (r == 0)
        r = flow_context_open(context, NULL, err);
    return r == 0 ? flow_context_open_gate(context, NULL, NULL, err) : r;
}

static bool write_file(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "we");
    return f && fputs(text, f) >= 0 && fclose(f) == 0;
}

static bool copy_build(const char *build)
{
    static const char *const names[] = {"cordon", "cordon-nest", "cordon-python", "cordon-holder",
                                        "bench/python_start"};
    enum { NAMES = sizeof names / sizeof *names };
    char paths[NAMES][4096];
    const char *copied[NAMES + 1] = {NULL};
    snprintf(bin, sizeof bin, "%s/bin", dir);
    for (int i = 0; i < NAMES; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/%s", build, names[i]);
        copied[i] = paths[i];
    }
    return mkdir(bin, 0755) == 0 && peer_copy(copied, bin) == 0;
}

static bool write_files(void)
{
    static const char policy[] =
        "version: 1\nrates: {executions: 1000, window: 1ms, concurrent: 200}\n"
        "audit: {sync: \"off\", duplicates: 0}\n";
    char path[256];
    snprintf(path, sizeof path, "%s/cordon", dir);
    return mkdir(path, 0700) == 0 && write_file("cordon/policy.yaml", policy) &&
           write_file("no-pool.yaml", "version: 1\npool: {enabled: false}\n") &&
           write_file("pass.py", "pass\n");
}

static bool parse(int argc, char **argv, const char **ret_key)
{
    if (argc == 4 && strcmp(argv[2], "--turns") == 0)
        *ret_key = argv[3];
    else if (argc == 4 && strcmp(argv[2], "--rounds") == 0)
        rounds = (unsigned)strtoul(argv[3], NULL, 10);
    else if (argc != 2)
        return false;
    return rounds >= 3 && rounds <= 100000;
}

int main(int argc, char **argv)
{
    struct flow_context context = {0};
    struct err err = ERR_INIT;
    struct pool_client c;
    struct pool_answer answer;
    char path[256];
    const char *key = NULL;
    if (!parse(argc, argv, &key)) {
        fputs("usage: python_bench BUILD [--rounds N | --turns ROW]\n", stderr);
        return 2;
    }
    if (!mkdtemp(dir) || chmod(dir, 0700) < 0 || chdir(dir) < 0)
        return 2;
    if (!copy_build(argv[1]))
        return 2;
    if (!write_files())
        return 2;
    setenv("XDG_CONFIG_HOME", dir, 1);
    snprintf(path, sizeof path, "%s/state", dir);
    setenv("CORDON_STATE", path, 1);
    own = calloc(rounds * IN_A_ROW, sizeof(double));
    for (int i = 0; i < CASES; i++)
        rows[i].ms = calloc(rounds * IN_A_ROW, sizeof(double));
    if (!key)
        printf("One run of Python: %u rounds, each case %d times in a row\n", rounds, IN_A_ROW);
    if (prepare(&context, &err) < 0) {
        fprintf(stderr, "bench: %s\n", err.msg);
        return 2;
    }
    int missed = key ? take_turns(key, &context) : measure_all(&context);
    flow_context_close(&context);
    if (pool_client_open(&c, NULL, POOL_ANSWER_MS, &err) == 0)
        (void)!pool_client_stop(&c, true, &answer, &err);
    pool_client_close(&c);
    const char *strict = getenv("BENCH_STRICT");
    const char *const rm[] = {"/bin/rm", "-rf", "--one-file-system", dir, NULL};
    spawn_once(rm);
    return missed && (key || (strict && strcmp(strict, "1") == 0));
}
