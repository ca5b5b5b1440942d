/* SPDX-License-Identifier: Apache-2.0 */
/* Admission and decision: roles, slots, the sliding window, iterations, buckets; and what happens to
 * all of it when a process is killed. */
#include "gate/map.h"
#include "gate/testing.h"

static struct gate_refusal r;
static struct err err;

static void test_roles(void)
{
    int state = testing_state();
    struct gate_config c = testing_config(true);
    struct gate *g = testing_open(&c, state);
    struct gate_request q = testing_request("uid:1", "print(1)");
    const struct {
        const char *role, *tool;
        int admitted;
        enum gate_rule rule;
    } rows[] = {
        {NULL, "run", 1, 0},
        {"execute", "exec", 1, 0},
        {"execute", "echo", 1, 0},
        {"explore", "run", 0, GATE_RULE_ROLE},
        {"analyze", "session", 0, GATE_RULE_ROLE},
        {"explore", "ReadFile", 1, 0},
        {"explore", "WriteFile", 0, GATE_RULE_ROLE},
        {"explore", "Jq", 0, GATE_RULE_ROLE},
        {"analyze", "Jq", 1, 0},
        {"execute", "LoadModule", 1, 0},
        {"analyze", "Find", 0, GATE_RULE_ROLE},
        {"execute", "nothing", 0, GATE_RULE_TOOL},
        {"admin", "run", 0, GATE_RULE_ROLE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct gate_plan *plan = NULL;
        q.role = rows[i].role;
        q.tool = rows[i].tool;
        int e = testing_pass(g, &q, &plan, &r);
        tap_ok(e == rows[i].admitted && (e || r.rule == rows[i].rule), "role %s, tool %s: %s",
               q.role ? q.role : "(default)", q.tool, e ? "admitted" : r.word);
        if (plan)
            gate_release(plan, &(struct gate_outcome){.status = "ok"});
    }
    tap_ok(gate_role_may(&gate_worker_types[0], "Find") &&
               !gate_role_may(&gate_worker_types[1], "Find") &&
               gate_role_may(&gate_worker_types[1], "Jq") &&
               !gate_role_may(&gate_worker_types[0], "WriteFile") &&
               gate_role_may(&gate_worker_types[2], "WriteFile"),
           "the worker types explore and execute have their tools");
    gate_close(g);

    struct gate_tool_rule critical = {"exec", GATE_RISK_CRITICAL};
    c.tools = &critical;
    c.ntools = 1;
    g = testing_open(&c, state);
    q.role = NULL;
    q.tool = "exec";
    tap_ok(testing_once(g, &q, "ok", NULL, NULL, &r) == 0 && r.rule == GATE_RULE_SYSTEM,
           "a tool that policy calls critical is open to nobody");
    gate_close(g);
    close(state);
}

static void test_report(void)
{
    int state = testing_state();
    struct gate_config c = testing_config(true);
    struct gate *g = testing_open(&c, state);
    struct gate_request q = testing_request("uid:1", "eval('1')");
    struct gate_ticket *t = NULL;
    struct gate_plan *plan = NULL;
    struct check_report bad, open;
    check_report_init(&bad);
    struct check_finding f = {"py.call.eval", "input", "eval", "Blocked function: eval", "", 1, 1};
    tap_eq_int(check_report_add(&bad, &f), 0, "a report with a finding");
    check_report_end(&bad);
    check_report_init(&open);
    const struct {
        const struct check_report *report;
        const char *tool, *what;
        int want;
    } rows[] = {
        {NULL, "run", "no report", 0},          {&bad, "run", "a report with a finding", 0},
        {&open, "run", "an unended report", 0}, {testing_clean(), "run", "a clean one", 1},
        {NULL, "exec", "nothing to judge", 1},  {&bad, "exec", "a finding all the same", 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        q.tool = rows[i].tool;
        plan = NULL;
        int e = gate_admit(g, &q, &t, &r, &err);
        e = e == 1 ? gate_decide(t, rows[i].report, &plan, &r, &err) : -1;
        tap_ok(e == rows[i].want && (e || r.rule == GATE_RULE_CHECK), "%s with %s: %s", q.tool,
               rows[i].what, e == 1 ? "a plan" : r.word);
        if (plan) {
            tap_ok(gate_plan_confirm(plan, testing_clean(), &r) == 1 &&
                       gate_plan_confirm(plan, &bad, &r) == 0 && r.rule == GATE_RULE_CHECK,
                   "%s: a second report must agree with the first", q.tool);
            gate_plan_start(plan, q.tool);
            gate_release(plan, &(struct gate_outcome){.status = "ok"});
        }
    }
    check_report_done(&bad);
    check_report_done(&open);
    tap_eq_int(gate_running(g, NULL, 0), 0, "no slot is taken after all decisions");
    gate_close(g);
    close(state);
}

static void test_window(void)
{
    int state = testing_state();
    struct gate_config c = testing_config(true);
    struct gate *g = testing_open(&c, state);
    struct gate_request q = testing_request("uid:1", "print(1)");
    int admitted = 0;
    for (int i = 0; i < 100; i++) {
        admitted += testing_once(g, &q, "ok", NULL, NULL, &r);
        testing_advance(0.1);
    }
    tap_eq_int(admitted, 100, "100 executions in 10 s are admitted");
    tap_ok(testing_once(g, &q, "ok", NULL, NULL, &r) == 0 && r.rule == GATE_RULE_RATE,
           "the 101st execution in a minute is refused by the rule rate");
    tap_eq_int(r.retry_after_ms, 50000,
               "the 101st execution is told to come back in 50 s, as the first is 10 s old");
    struct gate_request other = testing_request("uid:2", "print(1)");
    tap_eq_int(testing_once(g, &other, "ok", NULL, NULL, &r), 1,
               "the rate of one client does not concern another client");
    testing_advance(49.999);
    tap_ok(testing_once(g, &q, "ok", NULL, NULL, &r) == 0 && r.retry_after_ms == 1,
           "one millisecond before its window ends a client is refused, with 1 ms to go");
    testing_advance(0.001);
    tap_eq_int(testing_once(g, &q, "ok", NULL, NULL, &r), 1,
               "60 s after its first execution a client is admitted");
    tap_ok(testing_once(g, &q, "ok", NULL, NULL, &r) == 0 && r.retry_after_ms == 100,
           "only one execution is admitted then, as the second is 100 ms younger");
    gate_close(g);

    /* any window, tried: a greedy client for ten minutes, then every window of 60 s is counted */
    static uint64_t times[4000];
    int n = 0, worst = 0;
    c.rates.executions = 37;
    g = testing_open(&c, state);
    struct gate_request greedy = testing_request("uid:3", "print(1)");
    for (int i = 0; i < 60000 && n < 4000; i++) {
        testing_advance(0.01);
        if (testing_once(g, &greedy, "ok", NULL, NULL, &r) == 1)
            times[n++] = testing_now;
        else if (r.retry_after_ms > 20 && i % 3 == 0)
            testing_advance((double)(i % 700) / 100.0);
    }
    for (int i = 0; i < n; i++) {
        int in = 0;
        for (int k = i; k < n && times[k] < times[i] + 60 * CLOCK_NS_PER_S; k++)
            in++;
        worst = in > worst ? in : worst;
    }
    tap_eq_int(worst, 37, "no window of 60 s holds more than the limit, and some hold all of it");
    gate_close(g);
    close(state);
}

static void test_slots(void)
{
    int state = testing_state();
    struct gate_config c = testing_config(true);
    struct gate_plan *plans[10] = {0}, *plan = NULL;
    struct gate_ticket *line = NULL;
    c.rates.concurrent_per_client = 6;
    struct gate *g = testing_open(&c, state);
    struct gate_request a = testing_request("uid:1", "a"), b = testing_request("uid:2", "b");
    int got = 0;
    for (int i = 0; i < 6; i++)
        got += testing_pass(g, &a, &plans[i], &r);
    tap_eq_int(got, 6, "one client has six slots");
    tap_ok(testing_pass(g, &a, &plan, &r) == 0 && r.rule == GATE_RULE_BUSY,
           "a client gets no seventh slot: rates.concurrent_per_client");
    for (int i = 6; i < 10; i++)
        got += testing_pass(g, &b, &plans[i], &r);
    tap_eq_int(got, 10, "ten requests of two clients have a slot");
    tap_ok(testing_pass(g, &b, &plan, &r) == 0 && r.rule == GATE_RULE_BUSY && r.retry_after_ms > 0,
           "the eleventh request is refused at once where nobody waits");
    struct gate_running list[16];
    tap_ok(gate_running(g, list, 16) == 10 && list[0].supervisor == getpid() &&
               strcmp(list[9].client, "uid:2") == 0 && strcmp(list[9].tool, "run") == 0,
           "the list of runs has all that hold a slot");
    tap_eq_int(gate_admit_start(g, &b, &line, &r, &err), 2, "a request of an event loop is queued");
    tap_eq_int(gate_admit_poll(line, 0, &r, &err), 2,
               "a queued request stays queued while no slot is free");
    gate_release(plans[0], &(struct gate_outcome){.status = "ok"});
    tap_eq_int(gate_admit_poll(line, 0, &r, &err), 1, "a released slot goes to the queued request");
    tap_ok(testing_pass(g, &a, &plan, &r) == 0 && r.rule == GATE_RULE_BUSY,
           "a slot that went to a queued request is not given to another");
    gate_abandon(line);
    for (int i = 1; i < 10; i++)
        gate_release(plans[i], &(struct gate_outcome){.status = "ok"});
    struct gate_counters n;
    gate_counters_read(g, &n);
    tap_ok(n.admitted == 11 && n.planned == 10 && n.released == 10 && n.refused == 3,
           "the gate counted %llu admitted, %llu planned, %llu released, %llu refused",
           (unsigned long long)n.admitted, (unsigned long long)n.planned,
           (unsigned long long)n.released, (unsigned long long)n.refused);
    gate_close(g);
    close(state);
}

static void test_many_clients(void)
{
    int state = testing_state(), refused = 0, admitted = 0;
    struct gate_config c = testing_config(true);
    struct gate *g = testing_open(&c, state);
    for (int i = 0; i < GATE_CLIENTS + 5; i++) {
        char id[32];
        snprintf(id, sizeof id, "peer:1:%d:1", i);
        struct gate_request q = testing_request(id, "x");
        if (testing_once(g, &q, "ok", NULL, NULL, &r) == 1)
            admitted++;
        else
            refused += r.rule == GATE_RULE_BUSY;
    }
    tap_ok(admitted == GATE_CLIENTS && refused == 5,
           "a client beyond the size of the table of clients is refused by name");
    testing_advance(61);
    struct gate_request q = testing_request("peer:1:late:1", "x");
    tap_eq_int(testing_once(g, &q, "ok", NULL, NULL, &r), 1,
               "a minute later clients that left have made room for others");
    gate_close(g);
    close(state);
}

static void test_iterations(void)
{
    int state = testing_state();
    struct gate_config c = testing_config(true);
    struct gate *g = testing_open(&c, state);
    struct gate_request q = testing_request("uid:1", "step()");
    int admitted = 0;
    q.task = "session-1";
    for (int i = 0; i < 50; i++) {
        admitted += testing_once(g, &q, "ok", NULL, NULL, &r);
        testing_advance(1);
    }
    tap_eq_int(admitted, 50, "a task may have 50 iterations");
    tap_ok(testing_once(g, &q, "ok", NULL, NULL, &r) == 0 && r.rule == GATE_RULE_ITERATIONS,
           "the 51st iteration of a task is refused: %s", r.reason);
    testing_advance(61);
    tap_ok(testing_once(g, &q, "ok", NULL, NULL, &r) == 0 && r.rule == GATE_RULE_ITERATIONS,
           "waiting does not give a task more iterations");
    q.task = "session-2";
    tap_eq_int(testing_once(g, &q, "ok", NULL, NULL, &r), 1, "another task begins at one");
    q.task = NULL;
    tap_eq_int(testing_once(g, &q, "ok", NULL, NULL, &r), 1,
               "a request without a task is not counted");
    q.task = "session-1";
    struct gate_request stranger = q;
    snprintf(stranger.client.id, sizeof stranger.client.id, "uid:2");
    tap_eq_int(testing_once(g, &stranger, "ok", NULL, NULL, &r), 1,
               "the same name of another client is another task");
    gate_close(g);
    close(state);
}

static void test_buckets(void)
{
    int state = testing_state();
    struct gate_config c = testing_config(true);
    struct gate *g = testing_open(&c, state);
    uint64_t wait = 0;
    int e = 0, taken = 0;
    for (int i = 0; i < 12; i++) {
        e |= gate_bucket_take(g, "uid:1 api", 1, &wait, &err);
        taken += wait == 0;
    }
    tap_ok(e == 0 && taken == 10, "a full bucket gives a burst of 10, not more (%d)", taken);
    tap_ok(wait > 999000000ULL && wait <= 1000000001ULL,
           "a bucket of one token a second says %llu ns to wait", (unsigned long long)wait);
    testing_now += wait;
    tap_ok(gate_bucket_take(g, "uid:1 api", 1, &wait, &err) == 0 && wait == 0,
           "a bucket has one token after exactly the time it said");
    tap_ok(gate_bucket_take(g, "uid:1 api", 1, &wait, &err) == 0 && wait > 0,
           "a bucket has only one token after that time");
    tap_ok(gate_bucket_take(g, "uid:2 api", 10, &wait, &err) == 0 && wait == 0,
           "another bucket is full while one is empty");
    tap_ok(gate_bucket_take(g, "uid:2 api", 11, &wait, &err) == 0 && wait == UINT64_MAX,
           "more tokens than a bucket holds are never there");
    testing_advance(3600);
    taken = 0;
    for (int i = 0; i < 20; i++)
        taken += gate_bucket_take(g, "uid:1 api", 1, &wait, &err) == 0 && wait == 0;
    tap_eq_int(taken, 10, "an hour later a bucket is full, and does not overflow");
    gate_close(g);
    close(state);
}

/* ---- killed ---- */

/* Takes COUNT slots, tells, and waits to be killed. */
static pid_t holder(const struct gate_config *c, const char *client, int count, bool in_line)
{
    int ready[2];
    if (pipe2(ready, O_CLOEXEC) < 0)
        exit(1);
    pid_t pid = fork();
    if (pid == 0) {
        int state = open(testing_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct gate *g = testing_open(c, state);
        struct gate_request q = testing_request(client, "held");
        for (int i = 0; i < count; i++) {
            struct gate_ticket *t = NULL;
            if (gate_admit_start(g, &q, &t, &r, &err) != (in_line ? 2 : 1))
                _exit(1);
        }
        if (write(ready[1], "", 1) != 1)
            _exit(1);
        pause();
        _exit(0);
    }
    char byte;
    close(ready[1]);
    if (read(ready[0], &byte, 1) != 1)
        printf("# the holder failed\n");
    close(ready[0]);
    return pid;
}

static void finish(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void test_killed(void)
{
    int state = testing_state();
    struct gate_config c = testing_config(false);
    struct gate_plan *plan = NULL;
    struct gate *g = testing_open(&c, state);
    struct gate_request q = testing_request("uid:2", "x");
    pid_t a = holder(&c, "uid:1", 10, false);
    tap_ok(testing_pass(g, &q, &plan, &r) == 0 && r.rule == GATE_RULE_BUSY,
           "a request is refused while another process has all slots");
    finish(a);
    tap_eq_int(testing_once(g, &q, "ok", NULL, NULL, &r), 1,
               "the slots of a killed process are free again");
    struct gate_counters n;
    gate_counters_read(g, &n);
    tap_eq_int(n.lost, 10, "the slots of a killed process are counted as lost");

    a = holder(&c, "uid:1", 10, false);
    pid_t b = holder(&c, "uid:3", 3, true);
    q.wait_ms = 20000;
    pid_t killer = fork();
    if (killer == 0) {
        struct gate_standing now = {0};             /* until we are in the queue, too */
        struct gate *own = testing_open(&c, state); /* that of its parent has the parent's locks */
        for (int i = 0; i < 15000 && now.waiting < 4; i++) {
            nanosleep(&(struct timespec){0, 1000000}, NULL);
            gate_standing(own, &now);
        }
        kill(b, SIGKILL); /* those before us in the queue, then those in the slots */
        kill(a, SIGKILL);
        _exit(0);
    }
    tap_eq_int(testing_once(g, &q, "ok", NULL, NULL, &r), 1,
               "who queues gets the slot of one that was killed");
    waitpid(killer, NULL, 0);
    finish(a);
    finish(b);
    tap_eq_int(gate_running(g, NULL, 0), 0, "no slot is taken when every process has ended");
    tap_eq_int(testing_events[GATE_EVENT_WAITING], 1,
               "a queued request is told once that it waits");
    gate_close(g);
    close(state);
}

/* The queue counts as turns of the rate: one whose every process was killed must not hold its client up for ever. */
static void test_killed_in_queue(void)
{
    int state = testing_state();
    struct gate_config c = testing_config(false);
    struct gate_request q = testing_request("uid:2", "x");
    struct gate_plan *plan = NULL;
    c.rates.executions = 10;
    struct gate *g = testing_open(&c, state);
    pid_t slots = holder(&c, "uid:1", 10, false), queue = holder(&c, "uid:2", 10, true);
    tap_ok(testing_pass(g, &q, &plan, &r) == 0 && r.rule == GATE_RULE_RATE,
           "a client whose queue is as long as its rate is refused by the rate");
    finish(queue);
    finish(slots);
    tap_eq_int(testing_once(g, &q, "ok", NULL, NULL, &r), 1,
               "a client whose whole queue was killed has its turn");
    gate_close(g);
    close(state);
}

/* Processes that do nothing but enter and leave, killed in the middle of it again and again: the state
 * stays whole, and no slot is lost. */
/* Two policies of one state folder: slots that one gives back go to the other by the other's own number. */
static void test_two_policies(void)
{
    int state = testing_state();
    struct gate_config wide = testing_config(false), tight = wide;
    wide.rates.concurrent = 3;
    tight.rates.concurrent = 1;
    struct gate *w = testing_open(&wide, state), *n = testing_open(&tight, state);
    struct gate_request q = testing_request("uid:1", "x");
    struct gate_plan *plans[3] = {NULL}, *after = NULL;
    struct gate_ticket *waits = NULL, *more = NULL;
    const struct gate_outcome ok = {"ok", NULL, NULL};
    bool begun = true;
    for (int i = 0; i < 3; i++)
        begun = testing_pass(w, &q, &plans[i], &r) == 1 && begun;
    tap_ok(begun && gate_admit_start(n, &q, &waits, &r, &err) == 2,
           "a run of a policy with one slot waits while three of another run");
    gate_release(plans[0], &ok);
    gate_release(plans[1], &ok);
    tap_eq_int(gate_admit_poll(waits, 1, &r, &err), 2,
               "a run of a policy with one slot waits on while another runs");
    gate_release(plans[2], &ok);
    tap_eq_int(gate_admit_poll(waits, 1, &r, &err), 1,
               "a run of a policy with one slot begins when nothing runs");
    begun = testing_pass(w, &q, &plans[0], &r) == 1 && testing_pass(w, &q, &plans[1], &r) == 1;
    tap_ok(begun && gate_admit_start(w, &q, &more, &r, &err) == 2,
           "a run of a policy with three slots waits while three run, of whichever policy");
    if (gate_decide(waits, testing_clean(), &after, &r, &err) == 1)
        gate_release(after, &ok);
    tap_eq_int((long long)gate_running(w, NULL, 0), 3,
               "the end of a run of a policy with one slot lets one of the other policy begin");
    gate_abandon(more);
    gate_release(plans[0], &ok);
    gate_release(plans[1], &ok);
    gate_close(n);
    gate_close(w);
    close(state);
}

/* As many clients as the table has, each with an execution whose process was killed. */
static void test_killed_clients(void)
{
    int state = testing_state();
    struct gate_config c = testing_config(true);
    c.rates.concurrent = GATE_CLIENTS;
    struct gate *g = testing_open(&c, state);
    struct gate_request q = testing_request("uid:999", "x");
    pid_t pids[4];
    for (size_t k = 0; k < sizeof pids / sizeof *pids; k++) {
        pids[k] = fork();
        if (pids[k] != 0)
            continue;
        struct gate *own = testing_open(&c, open(testing_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        for (size_t i = k; i < GATE_CLIENTS; i += sizeof pids / sizeof *pids) {
            struct gate_ticket *t = NULL;
            char id[24];
            snprintf(id, sizeof id, "uid:%zu", i);
            struct gate_request held = testing_request(id, "held");
            if (gate_admit_start(own, &held, &t, &r, &err) != 1)
                _exit(1);
        }
        kill(getpid(), SIGKILL);
    }
    bool killed = true;
    for (size_t k = 0; k < sizeof pids / sizeof *pids; k++) {
        int status = 0;
        killed = waitpid(pids[k], &status, 0) == pids[k] && WIFSIGNALED(status) && killed;
    }
    tap_ok(killed && testing_once(g, &q, "ok", NULL, NULL, &r) == 0 && r.rule == GATE_RULE_BUSY,
           "one client more than the table has is refused within the window: %s", r.reason);
    testing_advance(61);
    tap_eq_int(testing_once(g, &q, "ok", NULL, NULL, &r), 1,
               "after the window a client gets the row of one whose execution was killed");
    gate_close(g);
    close(state);
}

static void test_killed_often(void)
{
    int state = testing_state(), rounds = 150;
    struct gate_config c = testing_config(false);
    c.rates.executions = GATE_RATE_MAX;
    c.rates.window_ms = 1;
    struct gate *g = testing_open(&c, state);
    bool whole = true;
    srandom(7);
    for (int i = 0; i < rounds; i++) {
        pid_t pids[3];
        for (int k = 0; k < 3; k++) {
            pids[k] = fork();
            if (pids[k] == 0) {
                int dir = open(testing_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                struct gate *own = testing_open(&c, dir);
                char id[16];
                snprintf(id, sizeof id, "uid:%d", k);
                for (unsigned n = 0;; n++) {
                    struct gate_request q = testing_request(id, n % 3 ? "x" : "y");
                    q.wait_ms = 100;
                    (void)testing_once(own, &q, n % 5 ? "ok" : "timeout", "TimeoutError", "t", &r);
                }
            }
        }
        nanosleep(&(struct timespec){0, 1000000 + random() % 4000000}, NULL);
        for (int k = 0; k < 3; k++)
            finish(pids[k]);
        struct gate_running list[1];
        struct gate_request q = testing_request("uid:9", "after");
        int e = testing_once(g, &q, "ok", NULL, NULL, &r);
        if (gate_running(g, list, 1) != 0 || (e != 1 && r.rule != GATE_RULE_RATE)) {
            printf("# round %d: %d %s\n", i, e, r.reason);
            whole = false;
        }
    }
    tap_ok(whole, "%d times three processes killed at random: the gate goes on", rounds);
    gate_close(g);
    close(state);
}

static void test_state_files(void)
{
    int state = testing_state();
    struct gate_config c = testing_config(true);
    struct gate *g = testing_open(&c, state);
    struct stat st;
    tap_ok(fstatat(state, "gate.live", &st, 0) == 0 && (st.st_mode & 0777) == 0600 &&
               fstatat(state, "stop.bell", &st, 0) == 0 && S_ISFIFO(st.st_mode) &&
               (st.st_mode & 0777) == 0600,
           "the files of the gate are their owner's alone");
    tap_ok(fstatat(state, "approvals.db", &st, 0) < 0 && errno == ENOENT,
           "there is no database of approvals before somebody is asked");
    gate_close(g);
    int fd = openat(state, "gate.live", O_RDWR | O_CLOEXEC);
    tap_ok(fd >= 0 && pwrite(fd, "something else\n", 16, 0) == 16,
           "the state file is damaged on purpose");
    struct gate *none = NULL;
    tap_ok(gate_open(&c, state, &none, &err) == ERR_STATE && strstr(err.msg, "gate.live"),
           "a state file that the gate did not make is refused: %s", err.msg);
    tap_ok(pwrite(fd, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16, 0) == 16,
           "the state file looks as if its maker was killed");
    close(fd);
    g = testing_open(&c, state);
    struct gate_request q = testing_request("uid:1", "x");
    tap_eq_int(testing_once(g, &q, "ok", NULL, NULL, &r), 1,
               "a state file that was left unfinished is made by the next gate");
    gate_close(g);

    /* another boot: the same file with another id; times of then are dropped */
    c.rates.executions = 1;
    g = testing_open(&c, state);
    tap_eq_int(testing_once(g, &q, "ok", NULL, NULL, &r), 0, "the window of the rate is full");
    gate_close(g);
    fd = openat(state, "gate.live", O_RDWR | O_CLOEXEC);
    tap_ok(pwrite(fd, "another boot", 12, offsetof(struct gate_shared, boot)) == 12,
           "the state file looks as if from another boot");
    close(fd);
    g = testing_open(&c, state);
    tap_eq_int(testing_once(g, &q, "ok", NULL, NULL, &r), 1,
               "the rate's window is empty after a reboot");
    gate_close(g);

    static uint64_t wrong[sizeof(struct gate_shared) / 8];
    fd = openat(state, "gate.live", O_RDWR | O_CLOEXEC);
    memset(wrong, 0x7f, sizeof wrong); /* absurd indices and times behind a good head */
    bool wrote = pread(fd, wrong, 56, 0) == 56;
    wrong[7] = 0; /* not stopped */
    wrote = wrote && pwrite(fd, wrong, sizeof wrong, 0) == (ssize_t)sizeof wrong;
    close(fd);
    g = testing_open(&c, state);
    int e = testing_once(g, &q, "ok", NULL, NULL, &r);
    tap_ok(wrote && (e == 0 || e == 1),
           "nonsense in the tables of the state file is not used as an index: %s",
           e ? "admitted" : r.word);
    gate_close(g);
    close(state);
}

static void test_config(void)
{
    const struct gate_config good = testing_config(true);
    struct gate_config c = good;
    tap_ok(c.rates.executions == 100 && c.rates.window_ms == 60000 && c.rates.concurrent == 10 &&
               c.breaker.failures == 3 && c.breaker.cooldown_ms == 60000 && c.iterations == 50 &&
               c.approval.mode == GATE_AUTONOMOUS && c.approval.every_n == 5 && !c.arena.on &&
               strcmp(c.role, "execute") == 0,
           "the defaults are those of docs/policy.md");
    tap_eq_int(gate_config_check(&c, &err), 0, "the default configuration passes its check");
    c.rates.executions = GATE_RATE_MAX + 1;
    tap_ok(gate_config_check(&c, &err) == ERR_USAGE && strstr(err.msg, "rates.executions"),
           "a configuration that makes no sense is refused by name: %s", err.msg);
    struct gate_client id;
    gate_client_uid(&id, 1000);
    tap_eq_str(id.id, "uid:1000", "a client of the command line is its uid");
}

int main(void)
{
    test_config();
    test_roles();
    test_report();
    test_window();
    test_slots();
    test_many_clients();
    test_iterations();
    test_buckets();
    test_state_files();
    test_killed();
    test_killed_in_queue();
    test_killed_clients();
    test_two_policies();
    test_killed_often();
    testing_end();
    return tap_done();
}
