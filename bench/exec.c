/* SPDX-License-Identifier: Apache-2.0 */
/* What a jailed start costs beside a bare one and beside the peers.
 *
 * Every case runs once a round, in an order shuffled anew, so that whatever the machine does
 * meanwhile falls on all of them alike; the ratios are what is compared, never times of two runs.
 * All cases start by the same clone(CLONE_VFORK) and one exec, so that the small price of starting
 * is the same for all: no setpriv, no shell, no unshare(1) in between. */
#include "peers.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GOAL        0.60
#define WARM_UP     5
#define ORDINARY_ID 61234 /* an ordinary uid that no account has */
#define PAUSE_NS    500000

struct bench_case {
    const char *name, *note;
    const char *argv[PEER_WORDS];
    bool as_user;
    int filter, mounts; /* inherited filter, mount namespace to enter; or -1 */
    const char *off;    /* why it is not measured */
    char why[200];
    double *ms, p10, p50, p95, mean;
};

enum { BARE, JAIL, CORDON, BWRAP, BWRAP_FILTER, CRUN, JAIL_USER, CORDON_USER, BWRAP_USER, CASES };

static char dir[] = "/tmp/cordon-bench-XXXXXX";
/* State and policy of this bench alone, by user: without fsync (a disk's time says nothing about a jail),
 * and without a rate that would stop it. */
static char state[2][96], config[2][96];
static char *const clean_env[2][4] = {{(char[]){"PATH=/usr/bin:/bin"}, state[0], config[0], NULL},
                                      {(char[]){"PATH=/usr/bin:/bin"}, state[1], config[1], NULL}};
static _Alignas(16) char stack[64 << 10];
static int devnull = -1, complaints = -1;

/* ---- one start ---- */

/* Runs in our memory until its exec. Raw calls where libc would keep books of its own. */
static int child(void *arg)
{
    const struct bench_case *c = arg;
    if (c->filter >= 0 && dup2(c->filter, PEER_FILTER_FD) < 0)
        _exit(124);
    if (c->mounts >= 0 && setns(c->mounts, CLONE_NEWNS) < 0)
        _exit(124);
    if (c->as_user && (syscall(SYS_setgroups, 0, NULL) < 0 ||
                       syscall(SYS_setresgid, ORDINARY_ID, ORDINARY_ID, ORDINARY_ID) < 0 ||
                       syscall(SYS_setresuid, ORDINARY_ID, ORDINARY_ID, ORDINARY_ID) < 0))
        _exit(124);
    dup2(devnull, STDIN_FILENO);
    dup2(devnull, STDOUT_FILENO);
    dup2(complaints, STDERR_FILENO);
    execve(c->argv[0], (char *const *)c->argv, clean_env[c->as_user]);
    _exit(126);
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Milliseconds from before the clone to after the wait; negative if it did not exit 0. */
static double start_once(struct bench_case *c, int *ret_status)
{
    if (c->filter >= 0)
        lseek(c->filter, 0, SEEK_SET); /* the peer reads on from where the last one stopped */
    double before = now_ms();
    pid_t pid = clone(child, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, c);
    if (pid < 0 || waitpid(pid, ret_status, 0) != pid)
        return -1;
    double after = now_ms();
    return WIFEXITED(*ret_status) && WEXITSTATUS(*ret_status) == 0 ? after - before : -1;
}

/* One start that is not measured: a peer that cannot run here is named with its own words. Exit 127
 * says nothing about who is not there: the loader ends so inside a container, too. */
static void try_once(struct bench_case *c)
{
    int status = 0;
    if (c->off)
        return;
    if (access(c->argv[0], X_OK) < 0) {
        snprintf(c->why, sizeof c->why, "%s: %s", c->argv[0], strerror(errno));
        c->off = c->why;
        return;
    }
    if (start_once(c, &status) >= 0)
        return;
    char said[120] = "";
    ssize_t n = pread(complaints, said, sizeof said - 1, 0);
    said[n < 0 ? 0 : n] = 0;
    said[strcspn(said, "\n")] = 0;
    snprintf(c->why, sizeof c->why, "%s %d: %s", WIFEXITED(status) ? "exit" : "signal",
             WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status),
             *said ? said : "it said nothing");
    c->off = c->why;
    if (ftruncate(complaints, 0) < 0 || lseek(complaints, 0, SEEK_SET) < 0)
        complaints = devnull;
}

/* ---- the cases ---- */

static void set_words(struct bench_case *c, const char *const *words)
{
    size_t i = 0;
    for (; words[i]; i++)
        c->argv[i] = words[i];
    c->argv[i] = NULL;
}

/* A folder for state and one for the policy, owned by who uses them. */
static bool make_folders(int user)
{
    static const char policy[] = "version: 1\n"
                                 "rates: {executions: 1000, window: 1ms, concurrent: 200}\n"
                                 "audit: {sync: \"off\", duplicates: 0}\n";
    static const char *const places[] = {"state", "config", "config/cordon",
                                         "config/cordon/policy.yaml"};
    char path[160];
    snprintf(state[user], sizeof state[user], "CORDON_STATE=%s/%d/state", dir, user);
    snprintf(config[user], sizeof config[user], "XDG_CONFIG_HOME=%s/%d/config", dir, user);
    snprintf(path, sizeof path, "%s/%d", dir, user);
    if (mkdir(path, 0755) < 0)
        return false;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(path, sizeof path, "%s/%d/%s", dir, user, places[i]);
        if (i < 3 && mkdir(path, 0700) < 0)
            return false;
        FILE *f = i == 3 ? fopen(path, "we") : NULL;
        if (i == 3 && (!f || fputs(policy, f) < 0 || fclose(f) != 0))
            return false;
        if (user && chown(path, ORDINARY_ID, ORDINARY_ID) < 0)
            return false;
    }
    return true;
}

static void lay_out(struct bench_case *c, const char *cordon)
{
    static char copy[64], jail_copy[64], nest_copy[64], jail[4096], crun_state[64];
    char nest[4096];
    const bool root = geteuid() == 0;
    for (int i = 0; i < CASES; i++)
        c[i].filter = c[i].mounts = -1;
    c[BARE].name = "bare /bin/true";
    set_words(&c[BARE], (const char *[]){"/bin/true", NULL});
    snprintf(jail, sizeof jail, "%.*s/bench/jail_only", (int)(strrchr(cordon, '/') - cordon),
             cordon);
    snprintf(copy, sizeof copy, "%s/cordon", dir);
    snprintf(jail_copy, sizeof jail_copy, "%s/jail_only", dir);
    snprintf(nest_copy, sizeof nest_copy, "%s/cordon-nest", dir);
    c[JAIL].name = "cordon's jail alone";
    c[JAIL].note = "a program of the bench: all layers and their proof, no policy, gate or audit";
    set_words(&c[JAIL], (const char *[]){jail_copy, nest_copy, "/bin/true", NULL});
    c[CORDON].name = "cordon exec";
    c[CORDON].note = "with policy, gate and audit (without fsync)";
    set_words(&c[CORDON], (const char *[]){copy, "exec", "--", "/bin/true", NULL});
    c[BWRAP].name = "bubblewrap";
    c[BWRAP].note = "no filter, no Landlock, no limits, nothing reported";
    peer_bwrap(c[BWRAP].argv, 0);
    c[BWRAP_FILTER].name = "bubblewrap + filter";
    c[BWRAP_FILTER].note = "cordon's own filter; EPERM where cordon reports";
    peer_bwrap(c[BWRAP_FILTER].argv, 1);
    c[BWRAP_FILTER].filter = peer_filter();
    c[CRUN].name = "crun";
    c[CRUN].note = "filter compiled at each start; no Landlock, no cgroup";
    snprintf(crun_state, sizeof crun_state, "%s/crun", dir);
    set_words(&c[CRUN], (const char *[]){"/usr/bin/crun", "--cgroup-manager=disabled", "--root",
                                         crun_state, "run", "--bundle", dir, "bench", NULL});
    if (!root)
        c[CRUN].off = "measured as root only";
    else if (peer_crun_bundle(dir) < 0)
        c[CRUN].off = "its bundle could not be written";
    else
        c[CRUN].mounts = peer_crun_mounts();
    c[JAIL_USER].name = "its jail, rootless";
    c[CORDON_USER].name = "cordon exec, rootless";
    c[BWRAP_USER].name = "bubblewrap, rootless";
    c[JAIL_USER].as_user = c[CORDON_USER].as_user = c[BWRAP_USER].as_user = true;
    if (!make_folders(0) || (root && !make_folders(1)))
        c[CORDON].off = c[CORDON_USER].off = "its state could not be laid out";
    set_words(&c[CORDON_USER], c[CORDON].argv);
    set_words(&c[JAIL_USER], c[JAIL].argv);
    snprintf(nest, sizeof nest, "%s-nest", cordon);
    if (peer_copy((const char *[]){cordon, nest, jail, NULL}, dir) < 0)
        c[JAIL].off = c[CORDON].off = c[JAIL_USER].off = c[CORDON_USER].off =
            "the programs could not be copied";
    if (!root)
        c[JAIL_USER].off = c[CORDON_USER].off = c[BWRAP_USER].off =
            "the rows above are rootless already";
    peer_bwrap(c[BWRAP_USER].argv, 0);
}

/* ---- figures ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void judge(struct bench_case *c, unsigned rounds)
{
    double sum = 0;
    qsort(c->ms, rounds, sizeof *c->ms, by_value);
    for (unsigned i = 0; i < rounds; i++)
        sum += c->ms[i];
    c->mean = sum / rounds;
    c->p50 = rounds % 2 ? c->ms[rounds / 2] : (c->ms[rounds / 2 - 1] + c->ms[rounds / 2]) / 2;
    c->p10 = c->ms[(rounds - 1) / 10];
    c->p95 = c->ms[(rounds - 1) * 95 / 100];
}

/* Fisher and Yates, with a generator of our own: the order should differ, not be secret. */
static void shuffle(int order[CASES])
{
    static uint64_t seed = 1;
    for (int i = CASES - 1; i > 0; i--) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        int j = (int)((seed >> 33) % (unsigned)(i + 1)), was = order[i];
        order[i] = order[j];
        order[j] = was;
    }
}

static int measure(struct bench_case *c, unsigned rounds)
{
    int order[CASES], status = 0;
    for (int i = 0; i < CASES; i++)
        order[i] = i;
    for (unsigned r = 0; r < rounds + WARM_UP; r++) {
        shuffle(order);
        for (int k = 0; k < CASES; k++) {
            struct bench_case *x = &c[order[k]];
            if (x->off)
                continue;
            double ms = start_once(x, &status);
            if (ms < 0) {
                fprintf(stderr, "bench: %s failed in round %u (status %#x)\n", x->name, r,
                        (unsigned)status);
                return -1;
            }
            if (r >= WARM_UP)
                x->ms[r - WARM_UP] = ms;
            /* the kernel takes network namespaces apart after the wait: not on the next one's bill
             */
            nanosleep(&(struct timespec){0, PAUSE_NS}, NULL);
        }
    }
    for (int i = 0; i < CASES; i++)
        if (!c[i].off)
            judge(&c[i], rounds);
    return 0;
}

static void print_load(const char *when)
{
    char text[64] = "unknown";
    FILE *f = fopen("/proc/loadavg", "re");
    if (f && !fgets(text, sizeof text, f))
        text[0] = 0;
    if (f)
        fclose(f);
    text[strcspn(text, "\n")] = 0;
    printf("load average at the %s: %s (%ld cores)\n", when, text, sysconf(_SC_NPROCESSORS_ONLN));
    fflush(stdout);
}

/* The goal is about what users start: with policy, gate and audit. Returns how many were missed. */
static int judge_exec(const struct bench_case *c, const struct bench_case *peer)
{
    if (c->off || peer->off) {
        printf("goal: %s at most %.2f of bubblewrap's p50: cannot be told here, missed\n", c->name,
               GOAL);
        return 1;
    }
    double ratio = c->p50 / peer->p50;
    printf("goal: %s at most %.2f of bubblewrap's p50: %.2f, ", c->name, GOAL, ratio);
    if (ratio <= GOAL)
        printf("met");
    else
        printf("missed by %.2f, which is %.3f ms", ratio - GOAL, c->p50 - GOAL * peer->p50);
    printf(" (p10, least disturbed: %.2f)\n", c->p10 / peer->p10);
    return ratio > GOAL;
}

static int print_table(const struct bench_case *c)
{
    printf("%-22s %8s %8s %8s %8s %7s %7s\n", "", "p10 ms", "p50 ms", "p95 ms", "mean ms", "/bare",
           "/bwrap");
    for (int i = 0; i < CASES; i++) {
        if (c[i].off) {
            printf("%-22s not measured: %s\n", c[i].name, c[i].off);
            continue;
        }
        const struct bench_case *peer = c[i].as_user ? &c[BWRAP_USER] : &c[BWRAP];
        printf("%-22s %8.3f %8.3f %8.3f %8.3f %7.2f ", c[i].name, c[i].p10, c[i].p50, c[i].p95,
               c[i].mean, c[i].p50 / c[BARE].p50);
        if (peer->off)
            printf("%7s", "-");
        else
            printf("%7.2f", c[i].p50 / peer->p50);
        printf("%s%s\n", c[i].note ? "   " : "", c[i].note ? c[i].note : "");
    }
    puts("The ratios are of p50. Absolute times prove nothing: they are this machine's in this "
         "minute.");
    return judge_exec(&c[CORDON], &c[BWRAP]) + (c[CORDON_USER].as_user && geteuid() == 0
                                                    ? judge_exec(&c[CORDON_USER], &c[BWRAP_USER])
                                                    : 0);
}

static void sweep(void)
{
    struct bench_case rm = {
        .argv = {"/bin/rm", "-rf", "--one-file-system", dir}, .filter = -1, .mounts = -1};
    int status;
    start_once(&rm, &status);
}

int main(int argc, char **argv)
{
    static struct bench_case cases[CASES];
    struct stat before, after;
    unsigned long rounds = 200;
    char *end = (char[]){""};
    if (argc == 4 && strcmp(argv[2], "--rounds") == 0)
        rounds = strtoul(argv[3], &end, 10);
    if ((argc != 2 && argc != 4) || *end || rounds < 3 || rounds > 1000000) {
        fputs("usage: exec_bench CORDON [--rounds N]\n", stderr);
        return 2;
    }
    /* not /dev/null itself: crun gives its streams to the container's user, and it would keep it */
    if (stat("/dev/null", &before) < 0) {
        perror("bench: /dev/null");
        return 2;
    }
    devnull = memfd_create("silence", MFD_CLOEXEC);
    complaints = memfd_create("complaints", MFD_CLOEXEC);
    if (devnull < 0 || complaints < 0 || !mkdtemp(dir) || chmod(dir, 0755) < 0) {
        perror("bench");
        return 2;
    }
    int r = 0;
    lay_out(cases, argv[1]);
    for (int i = 0; i < CASES && r == 0; i++) {
        try_once(&cases[i]);
        cases[i].ms = calloc(rounds, sizeof *cases[i].ms);
        r = cases[i].ms ? 0 : -1;
    }
    printf("One start of /bin/true: %lu rounds, every case once a round in shuffled order\n",
           rounds);
    print_load("start");
    if (r == 0)
        r = cases[BARE].off ? -1 : measure(cases, (unsigned)rounds);
    sweep();
    if (stat("/dev/null", &after) < 0 || after.st_uid != before.st_uid ||
        after.st_gid != before.st_gid || after.st_mode != before.st_mode) {
        fprintf(stderr, "bench: a peer has changed the machine's /dev/null: owner %d:%d, mode %o\n",
                (int)after.st_uid, (int)after.st_gid, after.st_mode);
        return 2;
    }
    if (r < 0)
        return 2;
    print_load("end");
    const char *strict = getenv("BENCH_STRICT");
    return print_table(cases) && strict && strcmp(strict, "1") == 0;
}
