/* SPDX-License-Identifier: Apache-2.0 */
/* Stop and resume across processes, and the share of a client that does not flood beside one that
 * does: both with real processes. */
#include "gate/inside.h"
#include "gate/testing.h"

#include <poll.h>

static struct gate_refusal r;
static struct err err;

/* A supervisor: runs until it is stopped. DEAF ones do not listen. Its exit status says how it went. */
static pid_t supervisor(const struct gate_config *c, int n, bool deaf)
{
    int ready[2];
    if (pipe2(ready, O_CLOEXEC) < 0)
        exit(1);
    pid_t pid = fork();
    if (pid == 0) {
        int dir = open(testing_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct gate *g = testing_open(c, dir);
        char id[24], code[8];
        snprintf(id, sizeof id, "run-%d", n);
        snprintf(code, sizeof code, "c%d", n);
        struct gate_request q = testing_request("uid:1", code);
        q.run = id;
        struct gate_plan *plan = NULL;
        if (testing_pass(g, &q, &plan, &r) != 1 || write(ready[1], "", 1) != 1)
            _exit(1);
        struct pollfd p = {.fd = deaf ? -1 : gate_stop_fd(g), .events = POLLIN};
        if (poll(&p, 1, 60000) != 1)
            _exit(2);
        gate_release(plan, &(struct gate_outcome){"error", "Stopped", "stopped"});
        gate_close(g);
        _exit(0);
    }
    char byte;
    close(ready[1]);
    if (read(ready[0], &byte, 1) != 1)
        printf("# a supervisor failed\n");
    close(ready[0]);
    return pid;
}

static void test_stop(void)
{
    int state = testing_state(), status[4], good = 0;
    struct gate_config c = testing_config(false);
    struct gate *g = testing_open(&c, state);
    struct gate_running list[16];
    size_t count = 99;
    pid_t pids[4];
    struct gate_request q = testing_request("uid:2", "x");
    struct gate_stop_info info;
    for (int i = 0; i < 4; i++)
        pids[i] = supervisor(&c, i, false);
    tap_eq_int(gate_running(g, list, 16), 4, "four supervisors run");
    /* one queued, too: in a process of its own, since it sleeps */
    c.rates.concurrent = 4;
    pid_t waiter = fork();
    if (waiter == 0) {
        int dir = open(testing_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct gate *own = testing_open(&c, dir);
        struct gate_request w = testing_request("uid:3", "x");
        struct gate_ticket *t = NULL;
        w.wait_ms = 60000;
        _exit(gate_admit(own, &w, &t, &r, &err) == 0 && r.rule == GATE_RULE_STOPPED ? 0 : 1);
    }
    nanosleep(&(struct timespec){0, 200000000}, NULL);
    int e = gate_stop(g, "uid 0, pid 7", "it went\nwild", 30000, list, 16, &count, &err);
    tap_ok(e == 0 && count == 4, "a stop names %zu runs", count);
    for (int i = 0; i < 4; i++) {
        waitpid(pids[i], &status[i], 0);
        good += status[i] == 0;
    }
    tap_eq_int(good, 4, "all four supervisors hear the stop and end their runs");
    int ended = 0;
    for (size_t i = 0; i < count && i < 16; i++)
        ended += strcmp(list[i].end, "ended") == 0 && strncmp(list[i].run, "run-", 4) == 0;
    tap_eq_int(ended, 4, "each stopped run is reported by its id and how it ended");
    tap_ok(testing_events[GATE_EVENT_STOP] == 1 && testing_events[GATE_EVENT_STOPPED_RUN] == 4,
           "one event for the stop, one for each run");
    waitpid(waiter, &status[0], 0);
    tap_eq_int(status[0], 0, "a request in the queue is told of the stop at once");
    tap_ok(testing_once(g, &q, "ok", NULL, NULL, &r) == 0 && r.rule == GATE_RULE_STOPPED &&
               strstr(r.reason, "it went wild") && strstr(r.reason, "uid 0"),
           "new requests are refused by name while the gate is stopped: %s", r.reason);
    gate_stop_read(g, &info);
    tap_ok(info.stopped && strcmp(info.why, "it went wild") == 0 && info.since > 1000000000,
           "the flag of a stop says who stopped, why and since when");
    gate_close(g);

    /* it survives the loss of the mapped file: a reboot, a new version */
    unlinkat(state, "gate.live", 0);
    g = testing_open(&c, state);
    tap_ok(testing_once(g, &q, "ok", NULL, NULL, &r) == 0 && r.rule == GATE_RULE_STOPPED &&
               strstr(r.reason, "it went wild"),
           "the gate is still stopped with a new state file");
    tap_eq_int(gate_resume(g, "uid 0", "fixed", &err), 0, "resume succeeds after a stop");
    tap_eq_int(testing_events[GATE_EVENT_RESUME], 1, "resume is one event");
    tap_eq_int(testing_once(g, &q, "ok", NULL, NULL, &r), 1, "resume lets new runs in");
    struct pollfd p = {.fd = gate_stop_fd(g), .events = POLLIN};
    tap_eq_int(poll(&p, 1, 0), 0, "the stop descriptor is not readable after resume");
    pids[0] = supervisor(&c, 9, true);
    tap_ok(gate_stop(g, "uid 0", "", 300, list, 16, &count, &err) == 0 && count == 1 &&
               strcmp(list[0].end, "killed") == 0 && strcmp(list[0].run, "run-9") == 0,
           "a supervisor that does not answer a stop is killed");
    waitpid(pids[0], &status[0], 0);
    tap_ok(WIFSIGNALED(status[0]) && WTERMSIG(status[0]) == SIGKILL,
           "the killed supervisor ends by SIGKILL");
    tap_ok(gate_stop(g, "uid 0", "again", 100, list, 16, &count, &err) == 0 && count == 0,
           "a stop of a stopped gate finds no run");
    tap_eq_int(gate_resume(g, "uid 0", "", &err), 0, "resume succeeds after two stops");
    tap_eq_int(gate_resume(g, "uid 0", "", &err), 0, "resume succeeds when nothing is stopped");
    /* as on a disk without inodes: the file of the stop cannot be made, and the mapped page has the flag */
    tap_ok(mkdirat(state, "stopped", 0700) == 0 &&
               gate_stop(g, "uid 0", "", 100, list, 16, &count, &err) == 0 &&
               testing_once(g, &q, "ok", NULL, NULL, &r) == 0 && r.rule == GATE_RULE_STOPPED,
           "a stop that cannot be kept in a file of its own holds, and is no error");
    unlinkat(state, "stopped", AT_REMOVEDIR);
    tap_eq_int(gate_resume(g, "uid 0", "", &err), 0, "resume succeeds after a stop without a file");
    gate_close(g);
    close(state);
}

/* A plan is not made of what was admitted before the stop. */
static void test_stop_between(void)
{
    int state = testing_state();
    struct gate_config c = testing_config(false);
    struct gate *g = testing_open(&c, state), *other = testing_open(&c, state);
    struct gate_request q = testing_request("uid:1", "x");
    struct gate_ticket *t = NULL;
    struct gate_plan *plan = NULL;
    size_t count;
    tap_eq_int(gate_admit(g, &q, &t, &r, &err), 1, "a request is admitted before a stop");
    /* the process that holds it is us, and hears nothing while it stops: not to be killed */
    pid_t pid = fork();
    if (pid == 0) {
        int dir = open(testing_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct gate *own = testing_open(&c, dir);
        struct gate_running list[1];
        _exit(gate_stop(own, "uid 0", "", 60000, list, 1, &count, &err) < 0);
    }
    struct pollfd p = {.fd = gate_stop_fd(g), .events = POLLIN};
    tap_eq_int(poll(&p, 1, 30000), 1, "the gate is stopped between admission and decision");
    tap_ok(gate_decide(t, testing_clean(), &plan, &r, &err) == 0 && r.rule == GATE_RULE_STOPPED,
           "a request that was admitted before a stop gets no plan");
    int status = -1;
    waitpid(pid, &status, 0);
    tap_eq_int(status, 0, "the stop saw the admitted request end");
    gate_close(other);
    gate_close(g);
    close(state);
}

/* A process that was stopped by a signal in the worst moment, with the lock of the state in its hand. */
static void test_stop_stuck(void)
{
    int state = testing_state(), status = -1;
    struct gate_config c = testing_config(false);
    struct gate *g = testing_open(&c, state);
    struct gate_running list[4];
    size_t count = 0;
    pid_t run = supervisor(&c, 1, false), stuck = fork();
    if (stuck == 0) {
        int dir = open(testing_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct gate *own = testing_open(&c, dir);
        if (gate_map_lock(&own->map, &err) == 0)
            raise(SIGSTOP);
        _exit(0);
    }
    waitpid(stuck, &status, WUNTRACED);
    tap_ok(WIFSTOPPED(status), "a process holds the lock of the gate and does not move");
    pid_t later = fork(); /* ends what the others wait for, so that the supervisor can go */
    if (later == 0) {
        struct pollfd p = {.fd = gate_stop_fd(g), .events = POLLIN};
        _exit(poll(&p, 1, 60000) == 1 && kill(stuck, SIGKILL) == 0 ? 0 : 1);
    }
    tap_ok(gate_stop(g, "uid 0", "stuck", 30000, list, 4, &count, &err) == 0 && count == 1 &&
               strcmp(list[0].end, "ended") == 0,
           "stop does not wait for the lock");
    waitpid(later, &status, 0);
    tap_eq_int(status, 0, "other processes hear the stop before the lock is free");
    waitpid(stuck, NULL, 0);
    waitpid(run, &status, 0);
    tap_eq_int(status, 0, "a run that heard the stop ended by itself");
    gate_close(g);
    close(state);
}

/* ---- fairness ---- */

struct board {
    unsigned long long runs[8];
    int ready, go, stop;
};

static pid_t worker(struct board *b, const struct gate_config *c, int client, bool patient)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    int dir = open(testing_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct gate *g = testing_open(c, dir);
    char id[16];
    snprintf(id, sizeof id, "uid:%d", client);
    struct gate_request q = testing_request(id, "x");
    q.wait_ms = patient ? 30000 : 0;
    __atomic_add_fetch(&b->ready, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&b->go, __ATOMIC_ACQUIRE))
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    while (!__atomic_load_n(&b->stop, __ATOMIC_ACQUIRE)) {
        struct gate_plan *plan = NULL;
        if (testing_pass(g, &q, &plan, &r) != 1) {
            if (!patient) /* hammers at the door */
                nanosleep(&(struct timespec){0, 200000}, NULL);
            continue;
        }
        nanosleep(&(struct timespec){0, 5000000}, NULL); /* the run */
        gate_release(plan, &(struct gate_outcome){.status = "ok"});
        if (!__atomic_load_n(&b->stop, __ATOMIC_ACQUIRE))
            __atomic_add_fetch(&b->runs[client], 1, __ATOMIC_RELAXED);
    }
    gate_close(g);
    _exit(0);
}

static unsigned long long all_runs(const struct board *b)
{
    unsigned long long all = 0;
    for (int i = 0; i < 8; i++)
        all += __atomic_load_n(&b->runs[i], __ATOMIC_RELAXED);
    return all;
}

/* CLIENTS[i] processes of client i, all at once until there were RUNS; the share of each goes to SHARE. */
static void contest(const int *clients, int n, bool hammer, unsigned runs, double *share)
{
    int state = testing_state(), total = 0;
    struct gate_config c = testing_config(false);
    c.on_event = NULL;
    c.rates.executions = GATE_RATE_MAX;
    c.rates.window_ms = 1;
    c.rates.concurrent = 4;
    struct gate *g = testing_open(&c, state);
    struct board *b =
        mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pids[64];
    for (int i = 0; i < n; i++)
        for (int k = 0; k < clients[i] && total < 64; k++)
            pids[total++] = worker(b, &c, i, !(hammer && i == 0 && k % 2));
    while (__atomic_load_n(&b->ready, __ATOMIC_ACQUIRE) < total)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    __atomic_store_n(&b->go, 1, __ATOMIC_RELEASE);
    while (all_runs(b) < runs)
        nanosleep(&(struct timespec){0, 5000000}, NULL);
    __atomic_store_n(&b->stop, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < total; i++)
        waitpid(pids[i], NULL, 0);
    for (int i = 0; i < n; i++)
        share[i] = (double)b->runs[i] / (double)all_runs(b);
    munmap(b, sizeof *b);
    gate_close(g);
    close(state);
}

/* Turns by client: by number of processes the small client would have 12 % (10 % of three). How near it comes to its
 * half depends on how soon a busy machine lets its four queue again, so the bound lies between the two. */
static void test_fair(void)
{
    double share[4];
    contest((const int[]){30, 4}, 2, false, 1000, share);
    tap_ok(share[1] > 0.28 && share[0] > 0.15,
           "30 processes against 4: the smaller client has %.1f %% of a fair 50", share[1] * 100);
    contest((const int[]){30, 4}, 2, true, 1000, share);
    tap_ok(
        share[1] > 0.28 && share[0] > 0.15,
        "half of 30 processes hammer without waiting: the smaller client has %.1f %% of a fair 50",
        share[1] * 100);
    contest((const int[]){30, 4, 4}, 3, false, 1000, share);
    tap_ok(share[1] > 0.20 && share[2] > 0.20 && share[0] > 0.10,
           "three clients, one floods: %.1f %% and %.1f %% of a fair 33.3", share[1] * 100,
           share[2] * 100);
}

int main(void)
{
    test_stop();
    test_stop_between();
    test_stop_stuck();
    test_fair();
    testing_end();
    return tap_done();
}
