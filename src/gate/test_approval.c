/* SPDX-License-Identifier: Apache-2.0 */
/* The approvals: the store under a clock that obeys, all modes through the real cordon-approvals,
 * and who may answer. Usage: test_approval CORDON-APPROVALS. */
#include "gate/approval.h"
#include "gate/lineage.h"
#include "gate/record.h"
#include "gate/store.h"
#include "gate/testing.h"

static struct gate_refusal r;
static struct err err;
static const char *program;

/* ---- the store ---- */

static struct buf reply;

static const char *result(void)
{
    static char word[32];
    gate_record_copy(reply.data, reply.len, "result", word, sizeof word);
    return word;
}

static const char *reply_id(void)
{
    static char id[24];
    gate_record_copy(reply.data, reply.len, "id", id, sizeof id);
    return id;
}

static int ask(struct gate_store *s, const char *client, const char *bound, uint64_t now)
{
    struct buf q;
    buf_init(&q, 65536);
    buf_reset(&reply);
    int e = gate_record_text(&q, "op", "ask") | gate_record_text(&q, "client", client) |
            gate_record_text(&q, "binding", bound) | gate_record_text(&q, "code", "print(1)") |
            gate_record_text(&q, "lineage", "1 1 1 1 1 0\n") |
            gate_record_number(&q, "expiry", 1000) | gate_record_end(&q);
    if (e == 0)
        e = gate_store_handle(s, q.data, q.len, now, &reply, &err);
    buf_done(&q);
    return e;
}

static int answer(struct gate_store *s, const char *id, bool yes, uint64_t now)
{
    struct buf q;
    buf_init(&q, 65536);
    buf_reset(&reply);
    int e = gate_record_text(&q, "op", "answer") | gate_record_text(&q, "id", id) |
            gate_record_number(&q, "yes", yes) | gate_record_text(&q, "by", "uid 7") |
            gate_record_text(&q, "why", "looks fine") | gate_record_end(&q);
    if (e == 0)
        e = gate_store_handle(s, q.data, q.len, now, &reply, &err);
    buf_done(&q);
    return e;
}

static void test_store(void)
{
    int state = testing_state();
    char path[128], id[24], second[24];
    struct gate_store *s = NULL;
    buf_init(&reply, 1 << 20);
    snprintf(path, sizeof path, "%s/approvals.db", testing_dir);
    tap_eq_int(gate_store_open(path, &s, &err), 0, "a new database of approvals is made");
    tap_ok(ask(s, "uid:1", "B1", 1000) == 0 && strcmp(result(), "waiting") == 0 &&
               gate_record_count(reply.data, reply.len, "new") == 1,
           "a question is stored and waits");
    snprintf(id, sizeof id, "%s", reply_id());
    tap_ok(ask(s, "uid:1", "B1", 1100) == 0 && strcmp(reply_id(), id) == 0 &&
               gate_record_count(reply.data, reply.len, "new") == 0,
           "a request that is asked about again has the same question");
    tap_ok(ask(s, "uid:1", "B2", 1100) == 0 && strcmp(reply_id(), id) != 0,
           "other code is another question");
    tap_ok(ask(s, "uid:2", "B1", 1100) == 0 && strcmp(reply_id(), id) != 0,
           "the same code of another client is another question");
    tap_ok(answer(s, id, true, 1500) == 0 && strcmp(result(), "recorded") == 0,
           "a question is answered yes");
    tap_ok(answer(s, id, false, 1500) == 0 && strcmp(result(), "late") == 0,
           "a question takes no second answer");
    tap_ok(ask(s, "uid:2", "B1", 1600) == 0 && strcmp(result(), "waiting") == 0 &&
               ask(s, "uid:1", "B2", 1600) == 0 && strcmp(result(), "waiting") == 0,
           "a yes is for its own client and code only");
    tap_ok(ask(s, "uid:1", "B1", 2400) == 0 && strcmp(result(), "granted") == 0 &&
               strcmp(reply_id(), id) == 0,
           "a yes is good for as long as its question was");
    tap_ok(ask(s, "uid:1", "B1", 2401) == 0 && strcmp(result(), "waiting") == 0 &&
               strcmp(reply_id(), id) != 0,
           "a yes is good for one use");
    snprintf(second, sizeof second, "%s", reply_id());
    tap_ok(answer(s, second, true, 2500) == 0 && ask(s, "uid:1", "B1", 3500) == 0 &&
               strcmp(result(), "waiting") == 0 && strcmp(reply_id(), second) != 0,
           "a yes that was not used in time is none");
    snprintf(second, sizeof second, "%s", reply_id());
    tap_ok(answer(s, second, true, 4500) == 0 && strcmp(result(), "late") == 0,
           "nobody answers after the time: expiry means no");
    tap_ok(ask(s, "uid:1", "B1", 5000) == 0, "a question that expired is asked anew");
    snprintf(second, sizeof second, "%s", reply_id());
    tap_ok(answer(s, second, false, 5100) == 0 && ask(s, "uid:1", "B1", 5200) == 0 &&
               strcmp(result(), "denied") == 0 && ask(s, "uid:1", "B1", 5300) == 0 &&
               strcmp(result(), "denied") == 0,
           "a no stays a no: people are not nagged");
    tap_ok(ask(s, "uid:1", "B1", 6200) == 0 && strcmp(result(), "waiting") == 0,
           "a no is forgotten when its time is over");
    int e = 0;
    for (int i = 0; i < 100; i++) {
        char bound[16];
        snprintf(bound, sizeof bound, "M%d", i);
        e |= ask(s, "uid:9", bound, 7000);
    }
    tap_ok(e == 0 && strcmp(result(), "waiting") == 0 && ask(s, "uid:9", "M100", 7000) == 0 &&
               strcmp(result(), "full") == 0,
           "the 101st unanswered question of a client is not taken");
    tap_ok(gate_store_handle(s, "op 3\nfoo\n.\n", 11, 0, &reply, &err) == ERR_USAGE &&
               gate_store_handle(s, "op 3\nask", 8, 0, &reply, &err) == ERR_FORMAT,
           "requests of an unknown kind are refused");
    gate_store_close(s);
    buf_done(&reply);
    close(state);
}

/* The clock is set back between a yes and its use. */
static void test_clock(void)
{
    enum { T = 10000000, HOUR = 3600000 };
    int state = testing_state();
    char path[128], id[24];
    struct gate_store *s = NULL;
    buf_init(&reply, 1 << 20);
    snprintf(path, sizeof path, "%s/approvals.db", testing_dir);
    tap_ok(gate_store_open(path, &s, &err) == 0 && ask(s, "uid:1", "B", T) == 0 &&
               answer(s, reply_id(), true, T + 1) == 0 && ask(s, "uid:1", "B", T - 5000) == 0 &&
               strcmp(result(), "granted") == 0,
           "a yes counts where the clock went back by some seconds");
    tap_ok(ask(s, "uid:1", "B", T) == 0 && answer(s, reply_id(), true, T + 1) == 0 &&
               strcmp(result(), "recorded") == 0,
           "the same is asked and answered once more");
    tap_ok(ask(s, "uid:1", "B", T - HOUR) == 0 && strcmp(result(), "waiting") == 0,
           "a yes does not count where the clock was set back by an hour");
    tap_ok(ask(s, "uid:1", "B", T + 2) == 0 && strcmp(result(), "waiting") == 0,
           "that yes does not count again when the clock has come so far once more");
    snprintf(id, sizeof id, "%s", reply_id());
    tap_ok(answer(s, id, true, T - HOUR) == 0 && strcmp(result(), "late") == 0,
           "a question is not answered where the clock was set back by an hour");
    gate_store_close(s);
    buf_done(&reply);
    close(state);
}

/* Two processes want to use one yes: one gets it. */
static void test_single_use(void)
{
    int state = testing_state(), granted = 0, rounds = 25;
    char path[128];
    struct gate_store *s = NULL;
    buf_init(&reply, 1 << 20);
    snprintf(path, sizeof path, "%s/approvals.db", testing_dir);
    for (int i = 0; i < rounds; i++) {
        char bound[16], id[24];
        snprintf(bound, sizeof bound, "R%d", i);
        if (gate_store_open(path, &s, &err) < 0 || ask(s, "uid:1", bound, 1000) < 0)
            break;
        snprintf(id, sizeof id, "%s", reply_id());
        if (answer(s, id, true, 1000) < 0)
            break;
        gate_store_close(s);
        pid_t pids[4];
        for (int k = 0; k < 4; k++) {
            pids[k] = fork();
            if (pids[k] == 0) {
                struct gate_store *own = NULL;
                int e = gate_store_open(path, &own, &err);
                e = e == 0 ? ask(own, "uid:1", bound, 1100) : e;
                _exit(e < 0 ? 2 : strcmp(result(), "granted") == 0);
            }
        }
        for (int k = 0; k < 4; k++) {
            int status = 0;
            waitpid(pids[k], &status, 0);
            granted += WEXITSTATUS(status) == 1;
            if (WEXITSTATUS(status) > 1)
                granted += 1000;
        }
    }
    tap_eq_int(granted, rounds, "of four that want one yes, one gets it, each time");
    buf_done(&reply);
    close(state);
}

/* ---- the modes, with the real program ---- */

static struct gate_lineage person(uid_t uid, pid_t pid, int tty)
{
    struct gate_lineage l = {.count = 1};
    l.items[0] = (struct gate_process){
        .pid = pid, .sid = pid, .tty = tty, .start = 1, .uid = uid, .server = false};
    return l;
}

static int say(struct gate *g, const char *id, bool yes, const struct gate_lineage *who)
{
    struct gate_refusal refusal;
    int e = gate_approval_answer(g, id, who, yes, "because", &refusal, &err);
    if (e < 0)
        printf("# %s\n", err.msg);
    return e;
}

static void test_hitl(void)
{
    int state = testing_state();
    struct gate_config c = testing_config(false);
    c.approvals_program = program;
    c.approval.mode = GATE_HITL;
    struct gate *g = testing_open(&c, state);
    struct gate_request q = testing_request("uid:1", "print(1)\n");
    struct gate_lineage human = person(getuid(), 99999999, 34817);
    struct gate_plan *plan = NULL;
    char id[24];
    q.arguments = "{\"profile\":\"strict\"}";
    tap_ok(testing_pass(g, &q, &plan, &r) == 0 && r.rule == GATE_RULE_APPROVAL && r.approval[0] &&
               strstr(r.hint, "cordon approve"),
           "HITL: a run is refused until a person says yes: %s", r.reason);
    snprintf(id, sizeof id, "%s", r.approval);
    tap_eq_int(testing_events[GATE_EVENT_APPROVAL_ASKED], 1, "a question is an event");
    tap_ok(testing_pass(g, &q, &plan, &r) == 0 && strcmp(r.approval, id) == 0 &&
               testing_events[GATE_EVENT_APPROVAL_ASKED] == 1,
           "a request that is made again has the same question");
    struct arena mem;
    struct gate_approval *items = NULL, one;
    size_t count = 0;
    arena_init(&mem, 1 << 20);
    tap_ok(gate_approvals_list(g, true, &mem, &items, &count, &err) == 0 && count == 1 &&
               strcmp(items[0].id, id) == 0 && items[0].state == GATE_ASKED &&
               items[0].expires == items[0].asked + 900,
           "an open question is in the list, with its expiry");
    tap_ok(gate_approval_show(g, id + 3, &mem, &one, &err) == 1 && one.code_len == 9 &&
               memcmp(one.code, "print(1)\n", 9) == 0 && strcmp(one.arguments, q.arguments) == 0 &&
               strlen(one.hash) == 64 && strcmp(one.client, "uid:1") == 0 &&
               strcmp(one.tool, "run") == 0,
           "a question shows the exact code and arguments, by a short id");
    tap_eq_int(gate_approval_show(g, "ap-none", &mem, &one, &err), 0,
               "an unknown id shows no question");
    char long_id[5000];
    memset(long_id, 'a', sizeof long_id);
    long_id[sizeof long_id - 1] = 0;
    tap_eq_int(gate_approval_show(g, long_id, &mem, &one, &err), 0,
               "an id of 4999 letters is nobody's");
    tap_eq_int(say(g, id, true, &human), 1, "a person says yes");
    tap_ok(testing_events[GATE_EVENT_APPROVAL_ANSWERED] == 1 && strcmp(testing_subject, id) == 0 &&
               strstr(testing_detail, "yes by uid ") && strstr(testing_detail, "because"),
           "the answer is an event: %s", testing_detail);
    struct gate_request changed = q;
    changed.code = "print(2)\n";
    tap_ok(testing_pass(g, &changed, &plan, &r) == 0 && strcmp(r.approval, id) != 0,
           "one byte of the code changed: a new question");
    changed = q;
    changed.arguments = "{\"profile\":\"open\"}";
    tap_ok(testing_pass(g, &changed, &plan, &r) == 0 && strcmp(r.approval, id) != 0,
           "other arguments: a new question");
    tap_ok(testing_pass(g, &q, &plan, &r) == 1 && strcmp(gate_plan_approval(plan), id) == 0,
           "exactly the approved code runs, and the plan names the approval");
    gate_release(plan, &(struct gate_outcome){.status = "ok"});
    tap_ok(testing_events[GATE_EVENT_APPROVAL_USED] == 1 && strstr(testing_detail, "because") &&
               strstr(testing_detail, "uid "),
           "the event of an approval says who approved and why: %s", testing_detail);
    tap_ok(testing_pass(g, &q, &plan, &r) == 0 && r.rule == GATE_RULE_APPROVAL &&
               strcmp(r.approval, id) != 0,
           "approved code runs once: the next time a person is asked again");
    snprintf(id, sizeof id, "%s", r.approval);
    tap_eq_int(say(g, id, false, &human), 1, "a person says no");
    tap_ok(testing_pass(g, &q, &plan, &r) == 0 && r.rule == GATE_RULE_DENIED &&
               strstr(r.reason, "because"),
           "a run that a person denied is refused with the person's reason: %s", r.reason);
    tap_ok(gate_approval_show(g, id, &mem, &one, &err) == 1 && one.state == GATE_DENIED &&
               strstr(one.by, "uid ") && strcmp(one.why, "because") == 0 &&
               one.answered >= one.asked,
           "the record of an answer has who answered and why");
    tap_eq_int(gate_running(g, NULL, 0), 0, "a question holds no slot");
    arena_done(&mem);
    gate_close(g);

    /* calls that guest code makes: of risk low they are covered by the yes to the code */
    struct gate_request call = testing_request("uid:1", "{\"args\":[1]}");
    struct gate_tool_rule medium = {"echo", GATE_RISK_MEDIUM};
    call.tool = "echo";
    g = testing_open(&c, state);
    tap_eq_int(testing_once(g, &call, "ok", NULL, NULL, &r), 1, "a call of risk low asks nobody");
    gate_close(g);
    c.tools = &medium;
    c.ntools = 1;
    g = testing_open(&c, state);
    tap_ok(testing_once(g, &call, "ok", NULL, NULL, &r) == 0 && r.rule == GATE_RULE_APPROVAL,
           "a call of risk medium is asked about");
    gate_close(g);
    c.ntools = 0;

    /* without the program nobody can be asked, and nothing runs */
    c.approvals_program = NULL;
    g = testing_open(&c, state);
    tap_eq_int(testing_pass(g, &q, &plan, &r), ERR_MISSING,
               "no cordon-approvals: an error, no plan");
    c.approvals_program = "/bin/false";
    tap_eq_int(testing_pass(g, &q, &plan, &r), ERR_STATE,
               "a cordon-approvals that fails: an error, no plan");
    gate_close(g);
    close(state);
}

static void test_wait(void)
{
    int state = testing_state();
    struct gate_config c = testing_config(false);
    c.approvals_program = program;
    c.approval.mode = GATE_HITL;
    c.rates.concurrent = 1;
    struct gate *g = testing_open(&c, state);
    struct gate_request q = testing_request("uid:1", "print(1)\n");
    struct gate_plan *plan = NULL;
    q.approval_wait_ms = 60000;
    pid_t human = fork();
    if (human == 0) {
        int dir = open(testing_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct gate *own = testing_open(&c, dir);
        struct gate_lineage who = person(getuid(), 99999999, 34817);
        struct arena mem;
        struct gate_approval *items = NULL;
        size_t count = 0;
        arena_init(&mem, 1 << 20);
        while (count == 0) {
            nanosleep(&(struct timespec){0, 20000000}, NULL);
            if (gate_approvals_list(own, true, &mem, &items, &count, &err) < 0)
                _exit(2);
        }
        /* whoever waits for a person does not hold the only slot */
        struct gate_request other = testing_request("uid:2", "x");
        struct gate_ticket *t = NULL;
        if (gate_admit(own, &other, &t, &r, &err) != 1)
            _exit(3);
        gate_abandon(t);
        _exit(say(own, items[0].id, true, &who) == 1 ? 0 : 4);
    }
    int e = testing_pass(g, &q, &plan, &r), status = -1;
    waitpid(human, &status, 0);
    tap_ok(e == 1 && status == 0, "a run that waits goes on when a person says yes (%d, %#x)", e,
           (unsigned)status);
    if (plan)
        gate_release(plan, &(struct gate_outcome){.status = "ok"});
    gate_close(g);

    c.approval.expiry_ms = 300;
    g = testing_open(&c, state);
    plan = NULL;
    e = testing_pass(g, &q, &plan, &r);
    tap_ok(e == 0 && r.rule == GATE_RULE_DENIED && strstr(r.reason, "nobody answered"),
           "a question that nobody answers expires, which means no: %s", r.reason);
    tap_eq_int(testing_events[GATE_EVENT_APPROVAL_DENIED], 1,
               "a question that expires is one denial event");
    gate_close(g);
    close(state);
}

/* Who waits as long as the question is valid wakes up when that ends, a little before or after it. */
static void test_wait_ends_with_question(void)
{
    enum { TIMES = 10 };
    int state = testing_state(), no = 0;
    struct gate_config c = testing_config(false);
    struct gate_approval *items = NULL;
    struct arena mem;
    size_t count = 0;
    c.approvals_program = program;
    c.approval.mode = GATE_HITL;
    c.approval.expiry_ms = 100;
    struct gate *g = testing_open(&c, state);
    arena_init(&mem, 1 << 20);
    memset(testing_events, 0, sizeof testing_events);
    for (int i = 0; i < TIMES; i++) {
        char code[16];
        snprintf(code, sizeof code, "print(%d)", i);
        struct gate_request q = testing_request("uid:1", code);
        struct gate_plan *plan = NULL;
        q.approval_wait_ms = c.approval.expiry_ms;
        no += testing_pass(g, &q, &plan, &r) == 0 && r.rule == GATE_RULE_DENIED &&
              strstr(r.reason, "nobody answered");
        if (gate_approvals_list(g, true, &mem, &items, &count, &err) < 0 || count)
            break;
    }
    tap_eq_int(no, TIMES, "no answer as long as a question is valid means no: %s", r.reason);
    tap_eq_int(testing_events[GATE_EVENT_APPROVAL_ASKED], TIMES,
               "a question that expired is not asked anew for whoever waited");
    tap_eq_int(testing_events[GATE_EVENT_APPROVAL_DENIED], TIMES,
               "each question that expired is one denial event");
    tap_eq_int((long long)count, 0, "nothing that nobody waits for is left in the queue");
    arena_done(&mem);
    gate_close(g);
    close(state);
}

static void test_every_n(void)
{
    int state = testing_state(), asked = 0, ran = 0;
    struct gate_config c = testing_config(false);
    c.approvals_program = program;
    c.approval.mode = GATE_EVERY_N;
    struct gate *g = testing_open(&c, state);
    struct gate_lineage human = person(getuid(), 99999999, 34817);
    struct gate_request q = testing_request("uid:1", "step()");
    for (int i = 0; i < 4; i++)
        ran += testing_once(g, &q, "ok", NULL, NULL, &r);
    tap_eq_int(ran, 4, "EVERY_N 5: four steps run without a question");
    for (int i = 0; i < 3; i++)
        asked += testing_once(g, &q, "ok", NULL, NULL, &r) == 0 && r.rule == GATE_RULE_APPROVAL;
    tap_eq_int(asked, 3, "EVERY_N 5: the fifth step asks, and trying again does not get past it");
    struct gate_request sly = q;
    sly.code = "other()";
    tap_ok(testing_once(g, &sly, "ok", NULL, NULL, &r) == 0 && r.rule == GATE_RULE_APPROVAL,
           "other code does not get past the fifth step's question");
    struct gate_request other = testing_request("uid:2", "step()");
    tap_eq_int(testing_once(g, &other, "ok", NULL, NULL, &r), 1,
               "another client has its own count");
    tap_ok(testing_once(g, &q, "ok", NULL, NULL, &r) == 0 && say(g, r.approval, true, &human) == 1,
           "a person says yes");
    ran = 0;
    struct gate_request call = testing_request("uid:1", "{}");
    call.tool = "echo";
    for (int i = 0; i < 5; i++)
        ran += testing_once(g, &q, "ok", NULL, NULL, &r) +
               10 * testing_once(g, &call, "ok", NULL, NULL, &r);
    tap_eq_int(
        ran, 55,
        "EVERY_N 5: the approved step and four more run; the calls that they make are no steps");
    tap_ok(testing_once(g, &q, "ok", NULL, NULL, &r) == 0 && r.rule == GATE_RULE_APPROVAL,
           "the sixth step after a yes asks again");
    gate_close(g);
    c.approval.mode = GATE_AUTONOMOUS;
    g = testing_open(&c, state);
    ran = 0;
    for (int i = 0; i < 20; i++)
        ran += testing_once(g, &q, "ok", NULL, NULL, &r);
    tap_eq_int(ran, 20, "AUTONOMOUS asks nobody");
    gate_close(g);
    close(state);
}

/* ---- who may answer ---- */

static void test_who(void)
{
    struct gate_lineage asker = {.count = 4}, who = {.count = 3};
    char why[160];
    const struct gate_process init = {.pid = 1, .sid = 1, .start = 1, .uid = 0, .server = true},
                              tmux = {.pid = 50, .sid = 50, .start = 5, .uid = 7, .server = true},
                              agent = {.pid = 100, .sid = 90, .start = 10, .uid = 7, .tty = 1},
                              run = {.pid = 200, .sid = 200, .start = 20, .uid = 7};
    asker.items[0] = run;
    asker.items[1] = agent;
    asker.items[2] = tmux;
    asker.items[3] = init;
    const struct {
        const char *what;
        struct gate_process self, parent, grand;
        bool other_user, want;
    } rows[] = {
        {"a person at another terminal",
         {.pid = 300, .sid = 290, .start = 30, .uid = 7, .tty = 2},
         {.pid = 290, .sid = 290, .start = 29, .uid = 7, .tty = 2},
         tmux,
         false,
         true},
        {"a person at another terminal, where policy wants another user",
         {.pid = 300, .sid = 290, .start = 30, .uid = 7, .tty = 2},
         {.pid = 290, .sid = 290, .start = 29, .uid = 7, .tty = 2},
         tmux,
         true,
         false},
        {"root at another terminal",
         {.pid = 300, .sid = 290, .start = 30, .uid = 0, .tty = 2},
         {.pid = 290, .sid = 290, .start = 29, .uid = 0, .tty = 2},
         init,
         true,
         true},
        {"the asker itself", run, agent, tmux, false, false},
        {"a child of the agent",
         {.pid = 300, .sid = 90, .start = 30, .uid = 7, .tty = 1},
         agent,
         tmux,
         false,
         false},
        {"a child of the agent at a terminal of its own",
         {.pid = 300, .sid = 300, .start = 30, .uid = 7, .tty = 9},
         agent,
         tmux,
         false,
         false},
        {"a child of the agent that became root",
         {.pid = 300, .sid = 300, .start = 30, .uid = 0, .tty = 9},
         agent,
         tmux,
         false,
         false},
        {"a process without a terminal (it forked twice)",
         {.pid = 300, .sid = 300, .start = 30, .uid = 7},
         init,
         init,
         false,
         false},
        {"a process at the terminal of the asker",
         {.pid = 300, .sid = 299, .start = 30, .uid = 7, .tty = 0},
         init,
         init,
         false,
         false},
        {"a stranger with the agent's old pid",
         {.pid = 100, .sid = 300, .start = 77, .uid = 7, .tty = 3},
         tmux,
         init,
         false,
         true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        who.items[0] = rows[i].self;
        who.items[1] = rows[i].parent;
        who.items[2] = rows[i].grand;
        why[0] = 0;
        tap_eq_int(gate_lineage_may_answer(&asker, &who, rows[i].other_user, why, sizeof why),
                   rows[i].want, "%s: %s", rows[i].what, rows[i].want ? "may answer" : why);
    }
    who.items[0] = (struct gate_process){.pid = 300, .sid = 300, .start = 30, .uid = 7};
    who.items[1] = who.items[2] = init;
    tap_ok(gate_lineage_apart(&asker, &who, false, why, sizeof why) &&
               !gate_lineage_apart(&asker, &who, true, why, sizeof why),
           "a server of its own is apart from who asked, without a terminal, but no other user");
    who.items[1] = agent;
    tap_ok(!gate_lineage_apart(&asker, &who, false, why, sizeof why),
           "a server that the asking program started is not apart: %s", why);

    struct gate_lineage self, again;
    struct buf text;
    buf_init(&text, 16384);
    tap_ok(gate_lineage_read(&self, getpid(), &err) == 0 && self.items[0].pid == getpid() &&
               self.items[1].pid == getppid() && self.items[0].uid == getuid() &&
               self.items[0].sid == getsid(0) && self.items[0].start > 0,
           "the lineage of a process has all of its %zu ancestors", self.count);
    tap_ok(gate_lineage_write(&self, &text) == 0 &&
               gate_lineage_parse(&again, text.data, text.len) == 0 && again.count == self.count &&
               again.items[0].start == self.items[0].start &&
               again.items[self.count - 1].pid == self.items[self.count - 1].pid &&
               again.items[self.count - 1].server == self.items[self.count - 1].server,
           "a lineage is written and read again");
    tap_ok(gate_lineage_parse(&again, "1 2 3\n", 6) < 0 && gate_lineage_parse(&again, "", 0) < 0 &&
               gate_lineage_parse(&again, "1 1 1 1 1 0", 11) < 0,
           "a lineage that was cut is refused");
    buf_done(&text);
}

/* In earnest: the process that asked tries to answer. */
static void test_self(void)
{
    int state = testing_state();
    struct gate_config c = testing_config(false);
    c.approvals_program = program;
    c.approval.mode = GATE_HITL;
    struct gate *g = testing_open(&c, state);
    struct gate_request q = testing_request("uid:1", "print(1)\n");
    struct gate_plan *plan = NULL;
    struct gate_lineage self;
    char id[24];
    tap_eq_int(testing_pass(g, &q, &plan, &r), 0, "a request is asked about");
    snprintf(id, sizeof id, "%s", r.approval);
    tap_ok(gate_lineage_read(&self, getpid(), &err) == 0 &&
               gate_approval_answer(g, id, &self, true, "me", &r, &err) == 0 &&
               strstr(r.reason, "who asks does not answer"),
           "who asked cannot say yes: %s", r.reason);
    pid_t deep = fork();
    if (deep == 0) {
        for (int i = 0, status = 0; i < GATE_LINEAGE_MAX; i++) {
            pid_t next = fork();
            if (next > 0)
                _exit(waitpid(next, &status, 0) == next && WIFEXITED(status) ? WEXITSTATUS(status)
                                                                             : 3);
        }
        _exit(gate_lineage_read(&self, getpid(), &err) == ERR_LIMIT ? 0 : 1);
    }
    int depth = -1;
    waitpid(deep, &depth, 0);
    tap_eq_int(depth, 0, "a tree too deep to be known whole is an error, not a shorter one");
    pid_t child = fork();
    if (child == 0) {
        int dir = open(testing_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        setsid();
        struct gate *own = testing_open(&c, dir);
        int e = gate_lineage_read(&self, getpid(), &err);
        e = e == 0 ? gate_approval_answer(own, id, &self, true, "child", &r, &err) : 2;
        _exit(e == 0 ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    tap_eq_int(status, 0, "a child of the asking process cannot say yes, in a session of its own");
    tap_ok(testing_pass(g, &q, &plan, &r) == 0 && r.rule == GATE_RULE_APPROVAL,
           "a question that its asker tried to answer still waits");
    struct gate_lineage away = {.count = 1};
    away.items[0] = (struct gate_process){.pid = 99999, .sid = 99999, .start = 9, .uid = getuid()};
    tap_ok(gate_approval_by_tool(g, id, &away, true, "x", &r, &err) == 0 &&
               strstr(r.reason, "approval.tool") &&
               gate_approval_by_tool(g, id, &away, false, "x", &r, &err) == 0,
           "by the tool nobody answers where the policy has none: %s", r.reason);
    tap_eq_int(gate_approval_answer(g, id, &self, false, "on second thoughts", &r, &err), 1,
               "the asking process may say no");
    gate_close(g);
    close(state);
}

/* What a call starts was decided with the call. */
static void test_part_of(void)
{
    int state = testing_state();
    struct gate_config c = testing_config(false);
    c.approvals_program = program;
    c.approval.mode = GATE_HITL;
    struct gate *g = testing_open(&c, state);
    struct gate_request call = testing_request("uid:1", "{}"),
                        q = testing_request("uid:1", "print(1)\n");
    struct gate_plan *outer = NULL, *plan = NULL;
    call.tool = "echo"; /* harmless: nobody is asked about it */
    tap_ok(testing_pass(g, &call, &outer, &r) == 1, "a harmless call is planned");
    gate_plan_start(outer, "echo");
    tap_ok(testing_pass(g, &q, &plan, &r) == 0 && r.rule == GATE_RULE_APPROVAL,
           "a run by itself is asked about");
    q.part_of = outer;
    tap_ok(testing_pass(g, &q, &plan, &r) == 1, "a run that a decided call starts is not");
    gate_release(plan, &(struct gate_outcome){"ok", NULL, NULL});
    q.role = "explore";
    tap_ok(testing_pass(g, &q, &plan, &r) == 0 && r.rule == GATE_RULE_ROLE,
           "the role of a run that a decided call starts is looked at all the same");
    gate_release(outer, &(struct gate_outcome){"ok", NULL, NULL});
    gate_close(g);
    close(state);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    program = argv[1];
    test_store();
    test_clock();
    test_single_use();
    test_hitl();
    test_wait();
    test_wait_ends_with_question();
    test_every_n();
    test_who();
    test_self();
    test_part_of();
    testing_end();
    return tap_done();
}
