/* SPDX-License-Identifier: Apache-2.0 */
/* The breaker's three states under a clock that obeys; what counts and what does not. */
#include "gate/inside.h"
#include "gate/testing.h"

static struct gate_refusal r;

#define FAIL(g, q) testing_once(g, q, "error", "NameError", "name 'x' is not defined", &r)
#define GOOD(g, q) testing_once(g, q, "ok", NULL, NULL, &r)

static void test_states(void)
{
    int state = testing_state();
    struct gate_config c = testing_config(true);
    struct gate *g = testing_open(&c, state);
    struct gate_request q = testing_request("uid:1", "print(x)");
    tap_ok(FAIL(g, &q) == 1 && FAIL(g, &q) == 1, "a breaker is closed after two failures");
    tap_ok(GOOD(g, &q) == 1 && FAIL(g, &q) == 1 && FAIL(g, &q) == 1,
           "after a success failures are counted anew");
    tap_eq_int(FAIL(g, &q), 1, "the third failure in a row is still admitted");
    tap_eq_int(
        testing_events[GATE_EVENT_BREAKER_OPEN], 2,
        "three failures in a row open the request's breaker and the tool's, and each is an event");
    tap_ok(FAIL(g, &q) == 0 && r.rule == GATE_RULE_BREAKER && r.retry_after_ms == 60000,
           "an open breaker answers at once with the time left: %s", r.reason);
    tap_ok(strstr(r.reason, "NameError") && strstr(r.reason, "60 s") && r.hint[0],
           "an open breaker says what failed and for how long");
    testing_advance(59.5);
    tap_ok(GOOD(g, &q) == 0 && r.retry_after_ms == 500,
           "half a second before its end an open breaker says 500 ms");

    /* half-open: one goes through, the others wait for how it ends */
    testing_advance(0.5);
    struct gate_plan *probe = NULL, *second = NULL;
    tap_eq_int(testing_pass(g, &q, &probe, &r), 1,
               "an open breaker lets one request through after 60 s");
    tap_eq_int(testing_events[GATE_EVENT_BREAKER_HALF_OPEN], 2,
               "a breaker that becomes half-open is an event");
    tap_ok(testing_pass(g, &q, &second, &r) == 0 && r.rule == GATE_RULE_BREAKER,
           "a half-open breaker lets no second request through");
    gate_release(probe, &(struct gate_outcome){"error", "NameError", "name 'x' is not defined"});
    tap_eq_int(testing_events[GATE_EVENT_BREAKER_OPEN], 4,
               "a failed probe opens both breakers again");
    tap_ok(GOOD(g, &q) == 0 && r.retry_after_ms == 60000,
           "a failed probe keeps the breaker open for another 60 s");
    testing_advance(60);
    tap_eq_int(GOOD(g, &q), 1, "the next probe of a half-open breaker succeeds");
    tap_eq_int(testing_events[GATE_EVENT_BREAKER_CLOSE], 2,
               "each breaker that a probe closes is an event");
    tap_ok(FAIL(g, &q) == 1 && FAIL(g, &q) == 1 && GOOD(g, &q) == 1,
           "a closed breaker counts failures from zero");
    struct gate_counters n;
    gate_counters_read(g, &n);
    tap_ok(n.breaker_opened == 4 && n.breaker_probed == 4 && n.breaker_closed == 2,
           "the breaker's counters agree with its events");
    gate_close(g);
    close(state);
}

static int fail_early(struct gate *g, const struct gate_request *q)
{
    struct gate_ticket *t = NULL;
    struct err err = ERR_INIT;
    const int e = gate_admit(g, q, &t, &r, &err);
    if (e == 1)
        gate_fail(t, &(struct gate_outcome){"timeout", "TimeoutError", "too long"});
    return e;
}

/* Whether a limit is met before the plan or behind it is chance. */
static void test_early(void)
{
    int state = testing_state();
    struct gate_config c = testing_config(true);
    struct gate *g = testing_open(&c, state);
    struct gate_request q = testing_request("uid:1", "print(x)");
    tap_ok(fail_early(g, &q) == 1 && FAIL(g, &q) == 1 && fail_early(g, &q) == 1 &&
               fail_early(g, &q) == 0 && r.rule == GATE_RULE_BREAKER,
           "a request that fails before there is a plan counts for the breaker, among others");
    testing_advance(60);
    tap_ok(fail_early(g, &q) == 1 && GOOD(g, &q) == 0 && r.retry_after_ms == 60000,
           "a probe that fails before there is a plan opens the breaker again");
    gate_close(g);
    close(state);
}

static int at_prompt(struct gate *g, const struct gate_request *q, const char *status,
                     const char *type)
{
    struct gate_plan *plan = NULL;
    int e = testing_pass(g, q, &plan, &r);
    if (e == 1)
        gate_release(plan, &(struct gate_outcome){status, type, "what it says", .at_prompt = true});
    return e;
}

static void test_prompt(void)
{
    int state = testing_state();
    struct gate_config c = testing_config(true);
    struct gate *g = testing_open(&c, state);
    struct gate_request q = testing_request("uid:1", "print(x)");
    int admitted = 0;
    for (int i = 0; i < 5; i++)
        admitted += at_prompt(g, &q, "error", "NameError");
    tap_eq_int(admitted, 5, "what a block at a prompt raises opens no breaker");
    tap_ok(FAIL(g, &q) == 1 && FAIL(g, &q) == 1 && at_prompt(g, &q, "error", "NameError") == 1 &&
               FAIL(g, &q) == 1 && FAIL(g, &q) == 0 && r.rule == GATE_RULE_BREAKER,
           "what a block at a prompt raises does not set back the count of other failures");
    testing_advance(60);
    tap_eq_int(GOOD(g, &q), 1, "the probe after the failures of others succeeds");
    for (int i = 0; i < 3; i++)
        at_prompt(g, &q, "timeout", "TimeoutError");
    tap_ok(at_prompt(g, &q, "ok", NULL) == 0 && r.rule == GATE_RULE_BREAKER,
           "blocks at a prompt that a limit ends open the breaker as others do");
    gate_close(g);
    close(state);
}

static void test_keys(void)
{
    int state = testing_state();
    struct gate_config c = testing_config(true);
    struct gate *g = testing_open(&c, state);
    struct gate_request q = testing_request("uid:1", "print(x)"), other = q, changed = q,
                        argued = q;
    snprintf(other.client.id, sizeof other.client.id, "uid:2");
    changed.code = "print(1)";
    argued.arguments = "{\"a\":1}";
    for (int i = 0; i < 3; i++) {
        FAIL(g, &q);
        GOOD(g, &changed);
    }
    tap_eq_int(FAIL(g, &q), 0,
               "a request that failed three times is refused, whatever else succeeded in between");
    tap_ok(strncmp(r.reason, "failed 3 times with: NameError", 30) == 0 &&
               strstr(r.hint, "the same again will fail again"),
           "the breaker of a request says that the same will fail again: %s", r.reason);
    tap_eq_int(GOOD(g, &changed), 1, "changed code is not refused");
    tap_eq_int(GOOD(g, &argued), 1, "other arguments are not refused");
    tap_eq_int(GOOD(g, &other), 1,
               "another client is not refused: nobody shuts the door on others");

    struct gate_request varied = testing_request("uid:1", "flaky()");
    static const char *const errors[][2] = {
        {"ValueError", "a"}, {"TypeError", "b"}, {"KeyError", "c"}};
    bool all = true;
    for (int i = 0; i < 3; i++)
        all = all && testing_once(g, &varied, "error", errors[i][0], errors[i][1], &r) == 1 &&
              GOOD(g, &changed) == 1;
    tap_ok(all && GOOD(g, &varied) == 1,
           "three different errors of one request, with successes between, open nothing");
    static const char *const same[] = {"no '/tmp/a1' at 0x7f12", "no '/tmp/b2' at 0x7f99",
                                       "no '/x' at 17"};
    all = true;
    for (int i = 0; i < 3; i++)
        all = all && testing_once(g, &varied, "error", "OSError", same[i], &r) == 1 &&
              GOOD(g, &changed) == 1;
    tap_ok(all && GOOD(g, &varied) == 0,
           "one error with other numbers and paths each time is the same failure");

    struct gate_request failing = testing_request("uid:4", "a");
    static const char *const ways[][2] = {
        {"error", "NameError"}, {"timeout", "TimeoutError"}, {"memory", "MemoryError"}};
    all = true;
    for (int i = 0; i < 3; i++) {
        failing.code = ways[i][1];
        failing.code_len = strlen(ways[i][1]);
        all = all && testing_once(g, &failing, ways[i][0], ways[i][1], "m", &r) == 1;
    }
    failing.code = "new";
    failing.code_len = 3;
    tap_ok(all && GOOD(g, &failing) == 0 && r.rule == GATE_RULE_BREAKER,
           "three programs of a client that fail in a row open the breaker of their tool");
    tap_ok(
        strncmp(r.reason,
                "the last 3 programs of run failed, the last with: MemoryError: m; try again in ",
                79) == 0 &&
            strstr(r.hint, "any program is refused until then") &&
            !strstr(r.hint, "the same again"),
        "the breaker of a tool names the last failure, and says that any program is refused: "
        "%s; %s",
        r.reason, r.hint);

    struct gate_request lost = testing_request("uid:3", "a");
    for (int i = 0; i < 3; i++) {
        static const char *const codes[] = {"b", "c", "d"};
        lost.code = codes[i];
        testing_once(g, &lost, "crashed", "JailLost", "the jail was killed from outside", &r);
    }
    tap_ok(testing_once(g, &lost, "ok", NULL, NULL, &r) == 0 && r.rule == GATE_RULE_BREAKER,
           "three lost jails in a row open the breaker of their tool");
    struct gate_request exec = lost;
    exec.tool = "exec";
    tap_eq_int(GOOD(g, &exec), 1, "the breaker of one tool does not stop another tool");
    gate_close(g);
    close(state);
}

static void test_classes(void)
{
    int state = testing_state();
    struct gate_config c = testing_config(true);
    struct gate *g = testing_open(&c, state);
    const struct {
        const char *tool, *status, *type;
        bool counts;
    } rows[] = {
        {"run", "error", "NameError", true},          {"run", "error", "ExitStatus", true},
        {"run", "timeout", "TimeoutError", true},     {"run", "memory", "MemoryError", true},
        {"run", "output", "OutputError", true},       {"run", "crashed", "Signal", true},
        {"run", "refused", "JailError", true},        {"run", "refused", "UsageError", false},
        {"run", "blocked", "ValidationError", false}, {"run", "denied", "GateError", false},
        {"run", "error", "Stopped", false},           {"exec", "error", "ExitStatus", false},
        {"exec", "timeout", "TimeoutError", true},    {"session", "error", "NameError", true},
        {"echo", "error", "OSError", true},           {"echo", "error", "ArgumentError", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char code[16];
        snprintf(code, sizeof code, "code %zu", i);
        struct gate_request q = testing_request("uid:1", code);
        q.tool = rows[i].tool;
        for (int k = 0; k < 3; k++)
            testing_once(g, &q, rows[i].status, rows[i].type, "m", &r);
        tap_eq_int(GOOD(g, &q), !rows[i].counts, "%s: %s (%s) %s", rows[i].tool, rows[i].status,
                   rows[i].type, rows[i].counts ? "counts" : "does not count");
        testing_advance(200);
    }
    gate_close(g);

    c.breaker.counts &= ~(1ULL << gate_failure_find("timeout"));
    g = testing_open(&c, state);
    struct gate_request q = testing_request("uid:1", "sleep");
    for (int k = 0; k < 5; k++)
        testing_once(g, &q, "timeout", "TimeoutError", "m", &r);
    tap_eq_int(GOOD(g, &q), 1, "policy may say that a time-out does not count");
    gate_close(g);
    close(state);
}

static void test_rare(void)
{
    int state = testing_state();
    struct gate_config c = testing_config(true);
    struct gate *g = testing_open(&c, state);
    struct gate_request q = testing_request("uid:1", "print(x)");
    bool all = true;
    for (int i = 0; i < 10; i++) {
        all = all && FAIL(g, &q) == 1;
        testing_advance(61);
    }
    tap_ok(all, "one failure a minute is no row of failures");

    /* a probe that is killed does not keep the breaker half-open for ever */
    for (int i = 0; i < 3; i++)
        FAIL(g, &q);
    testing_advance(60);
    pid_t pid = fork();
    if (pid == 0) {
        int dir = open(testing_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct gate *own = testing_open(&c, dir);
        struct gate_plan *plan = NULL;
        _exit(testing_pass(own, &q, &plan, &r) == 1 ? 0 : 1);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    tap_eq_int(status, 0, "a probe in another process, which dies with it");
    tap_eq_int(GOOD(g, &q), 1, "after a probe that died, the next request is the probe at once");
    tap_eq_int(GOOD(g, &q), 1, "a probe that succeeded has closed the breaker");

    /* an old run that ends well while the breaker is open proves nothing */
    struct gate_plan *old = NULL;
    tap_eq_int(testing_pass(g, &q, &old, &r), 1, "a run begins before the breaker opens");
    for (int i = 0; i < 3; i++)
        FAIL(g, &q);
    gate_release(old, &(struct gate_outcome){.status = "ok"});
    tap_ok(GOOD(g, &q) == 0 && r.rule == GATE_RULE_BREAKER,
           "the success of a run that began before does not close the breaker");

    /* more failing requests than rows: the table does not overflow, and nothing is refused wrongly */
    bool fine = true;
    for (int i = 0; i < 2 * GATE_BREAKERS; i++) {
        char code[16];
        snprintf(code, sizeof code, "many %d", i);
        struct gate_request m = testing_request("uid:5", code);
        fine = fine && testing_once(g, &m, "timeout", "TimeoutError", "t", &r) == 1;
        testing_advance(61); /* each begins a new row */
    }
    tap_ok(fine, "%d different failures fit into a table of %d", 2 * GATE_BREAKERS, GATE_BREAKERS);
    gate_close(g);
    close(state);
}

static void test_normalise(void)
{
    const struct {
        const char *type, *message, *want;
    } rows[] = {
        {"NameError", "name 'x' is not defined", "NameError: name * is not defined"},
        {"ValueError", "got 17, want 4.5e3", "ValueError: got #, want #"},
        {"OSError", "[Errno 2] No such file: '/tmp/a'", "OSError: [Errno #] No such file: *"},
        {"OSError", "cannot open /var/tmp/x1: denied", "OSError: cannot open /: denied"},
        {NULL, "an  odd\n\ttext", "error: an odd text"},
        {"E", NULL, "E: "},
        {"E", "it's open", "E: it*s open"},
        {"E", "\xff\x1b[31m", "E: ??[#"},
        {"E", "<object at 0x7f00aa>", "E: <object at #>"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char out[96];
        gate_breaker_normalise(rows[i].type, rows[i].message, out, sizeof out);
        tap_eq_str(out, rows[i].want, "normalised: %s", rows[i].want);
    }
    static char huge[1 << 20], small[16];
    memset(huge, '\'', sizeof huge - 1);
    gate_breaker_normalise(huge, huge, small, sizeof small);
    tap_eq_int(strlen(small), 15, "a long failure is cut to its field");
}

int main(void)
{
    test_states();
    test_early();
    test_prompt();
    test_keys();
    test_classes();
    test_rare();
    test_normalise();
    testing_end();
    return tap_done();
}
