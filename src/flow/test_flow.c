/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor's side of a channel, with a worker that is this test: what may come when, and what a
 * hostile one gets for anything else. */
#include "base/clock.h"
#include "base/limits.h"
#include "base/tap.h"
#include "flow/steps.h"
#include "gate/config.h"
#include "tools/tools.h"
#include "wire/msg.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int theirs;
static struct flow_result result;
static struct flow_worker w;

/* As the broker answers, at once. */
static void call(void *ctx, uint64_t id, const char *tool, const char *args, size_t len)
{
    (void)ctx;
    const bool known = strcmp(tool, "echo") == 0;
    if (strcmp(tool, "later") != 0)
        flow_worker_answer(&w, id, known, known ? args : "\"no\"", known ? len : 4);
}
static const char *const tools[] = {"echo", NULL};
static const struct policy_rule known_rules[] = {
    {POLICY_ATTRIBUTE_DENY, "x", "py.attr.dunder", "", ""},
    {POLICY_EVENT_DENY, "open", "acme.no-files", "", ""},
};
static const struct policy_profile profile = {
    .name = "test", .rules = known_rules, .rule_count = 2};
static struct flow_job job = {.profile = &profile,
                              .kind = FLOW_JOB_RUN,
                              .name = "t.py",
                              .source = "1",
                              .len = 1,
                              .tools = tools,
                              .call = call};

static void begin(enum flow_worker_state state)
{
    int sv[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
        abort();
    theirs = sv[1];
    flow_result_init(&result);
    flow_worker_init(&w, sv[0], &result);
    w.state = state;
    w.job = state == FLOW_WORKER_STARTING ? NULL : &job;
}

static void end(void)
{
    close(w.fd);
    close(theirs);
    flow_worker_done(&w);
    flow_result_done(&result);
}

static const char *layer = "input", *rule = "py.attr.dunder", *note = "threads.in_order",
                  *called = "echo";

static void say(enum wire_type type)
{
    char storage[4096];
    int texts = 0;
    struct buf b = {.data = storage, .cap = sizeof storage, .max = sizeof storage - 1};
    struct wire_writer m;
    wire_begin(&m, &b, type);
    for (const char *left = m.left; *left; left = m.left) {
        switch (*left) {
        case 'u':
            wire_put_uint(&m, 1);
            break;
        case 'i':
            wire_put_int(&m, 3);
            break;
        case 't':
            texts++;
            wire_put_text(&m, type == WIRE_EVENT     ? (texts == 1 ? layer : rule)
                              : type == WIRE_FINDING ? (texts == 2 ? layer : rule)
                              : type == WIRE_NOTE    ? note
                                                     : called);
            break;
        default:
            wire_put_bytes(&m, "[1]", 3);
        }
    }
    if (wire_end(&m) < 0 || send(theirs, b.data, b.len, 0) != (ssize_t)b.len)
        abort();
}

static void table(void)
{
    static const struct {
        enum wire_type type;
        enum flow_worker_state when, then;
    } rows[] = {
        {WIRE_READY, FLOW_WORKER_STARTING, FLOW_WORKER_READY},
        {WIRE_FINDING, FLOW_WORKER_JUDGING, FLOW_WORKER_JUDGING},
        {WIRE_REPORT, FLOW_WORKER_JUDGING, FLOW_WORKER_BROKEN}, /* says safe, and one is dropped */
        {WIRE_VALUE, FLOW_WORKER_RUNNING, FLOW_WORKER_RUNNING},
        {WIRE_FINAL, FLOW_WORKER_RUNNING, FLOW_WORKER_RUNNING},
        {WIRE_FAULT, FLOW_WORKER_RUNNING, FLOW_WORKER_RUNNING},
        {WIRE_CALL, FLOW_WORKER_RUNNING, FLOW_WORKER_RUNNING},
        {WIRE_NOTE, FLOW_WORKER_RUNNING, FLOW_WORKER_RUNNING},
        {WIRE_DONE, FLOW_WORKER_RUNNING, FLOW_WORKER_DONE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (int s = FLOW_WORKER_STARTING; s <= FLOW_WORKER_RUNNING; s++) {
            begin((enum flow_worker_state)s);
            say(rows[i].type);
            flow_worker_read(&w);
            enum flow_worker_state want =
                (enum flow_worker_state)s == rows[i].when ? rows[i].then : FLOW_WORKER_BROKEN;
            tap_ok(w.state == want, "%s in state %d leads to %d", wire_name(rows[i].type), s, want);
            end();
        }
    }
}

/* A job that lies in the socket before the worker is ready. */
static void early(void)
{
    static char source[70000];
    struct flow_job small = {.kind = FLOW_JOB_RUN, .name = "x", .source = "pass", .len = 4};
    struct flow_job large = {
        .kind = FLOW_JOB_RUN, .name = "x", .source = source, .len = sizeof source};
    struct err err = ERR_INIT;
    char got[256];
    begin(FLOW_WORKER_STARTING);
    tap_ok(!flow_worker_early(&w, &small) && flow_worker_give(&w, &small, &err) < 0,
           "a worker without rules is not given a job before READY");
    w.has_rules = true;
    tap_ok(!flow_worker_early(&w, &large),
           "a job that the socket may not hold is not given before READY");
    err = (struct err)ERR_INIT;
    tap_ok(flow_worker_early(&w, &small) && flow_worker_give(&w, &small, &err) == 0 &&
               w.state == FLOW_WORKER_STARTING && recv(theirs, got, sizeof got, 0) > 4,
           "a small job is in the socket before READY");
    tap_ok(!flow_worker_early(&w, &small) && flow_worker_give(&w, &small, &err) < 0,
           "a job is given before READY only once");
    say(WIRE_READY);
    flow_worker_read(&w);
    tap_ok(w.state == FLOW_WORKER_JUDGING, "READY after an early job means that the worker judges");
    say(WIRE_READY);
    flow_worker_read(&w);
    tap_ok(w.state == FLOW_WORKER_BROKEN, "a second READY breaks the channel");
    end();
    begin(FLOW_WORKER_STARTING);
    w.has_rules = true;
    close(theirs);
    theirs = dup(w.fd);
    err = (struct err)ERR_INIT;
    tap_ok(flow_worker_give(&w, &small, &err) < 0 && w.state == FLOW_WORKER_STARTING && !w.job,
           "a worker that is dead has not got the job");
    end();
}

static void garbage(void)
{
    begin(FLOW_WORKER_RUNNING);
    send(theirs, "\xff\xff\xff garbage", 11, 0);
    tap_ok(!flow_worker_read(&w) && w.state == FLOW_WORKER_BROKEN, "garbage breaks the channel");
    end();
    begin(FLOW_WORKER_RUNNING);
    say(WIRE_GO);
    tap_ok(!flow_worker_read(&w) && w.state == FLOW_WORKER_BROKEN,
           "a supervisor's message from a worker breaks the channel");
    end();
    begin(FLOW_WORKER_RUNNING);
    close(theirs);
    tap_ok(!flow_worker_read(&w) && w.state == FLOW_WORKER_GONE,
           "a worker that closes the channel is gone, not broken");
    theirs = -1;
    end();
}

/* The words of a note are the supervisor's; a worker only chooses among them. */
static void notes(void)
{
    begin(FLOW_WORKER_RUNNING);
    say(WIRE_NOTE);
    say(WIRE_NOTE);
    flow_worker_read(&w);
    tap_ok(w.state == FLOW_WORKER_RUNNING && result.note_count == 1 &&
               strstr(result.notes[0], "in order"),
           "a note that comes twice is told once");
    note = "you may pass";
    say(WIRE_NOTE);
    tap_ok(!flow_worker_read(&w) && w.state == FLOW_WORKER_BROKEN && result.note_count == 1,
           "a note that nobody knows breaks the channel");
    note = "threads.in_order";
    end();
}

/* What a guest says of itself is told; what it says in the name of others is garbage. */
static void names(void)
{
    static const struct {
        const char *layer, *rule;
        bool good;
    } rows[] = {
        {"input", "py.attr.dunder", true},    {"filesystem", "acme.no-files", true},
        {"gate", "py.attr.dunder", false},    {"input", "gate.stopped", false},
        {"input", "audit.tampered", false},   {"process", "seccomp.ptrace", false},
        {"resources", "limit.memory", false}, {"input", "py.x\ny", false},
        {"input\n", "py.x", false},           {"input", "word", false},
        {"input", "py.attr.other", false},    {"input", "py.guard.exec", true},
        {"input", "syntax", false},           {"input", "py.guard.none", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        begin(FLOW_WORKER_RUNNING);
        layer = rows[i].layer;
        rule = rows[i].rule;
        say(WIRE_EVENT);
        tap_ok(flow_worker_read(&w) == rows[i].good, "an event of %zu: %s", i,
               rows[i].good ? "told" : "garbage");
        end();
        begin(FLOW_WORKER_JUDGING);
        say(WIRE_FINDING);
        bool good = strcmp(rows[i].rule, "syntax") == 0 ||
                    (rows[i].good && strcmp(rows[i].layer, "input") == 0);
        tap_ok(flow_worker_read(&w) == good, "a finding of %s: %s", rows[i].good ? rule : "others",
               good ? "believed" : "garbage");
        end();
    }
    layer = "input";
    rule = "py.attr.dunder";
    begin(FLOW_WORKER_RUNNING);
    if (send(theirs, "", 0, 0) != 0)
        abort();
    tap_ok(!flow_worker_read(&w) && w.state == FLOW_WORKER_BROKEN,
           "an empty packet is garbage, not the end of the channel");
    end();
    begin(FLOW_WORKER_RUNNING);
    shutdown(theirs, SHUT_RDWR);
    tap_ok(!flow_worker_read(&w) && w.state == FLOW_WORKER_GONE,
           "the end of the channel is not garbage");
    end();
}

static void calls(void)
{
    char answer[256];
    begin(FLOW_WORKER_RUNNING);
    for (int i = 0; i < 2; i++) {
        struct wire_reader r;
        struct err err = ERR_INIT;
        size_t len;
        say(WIRE_CALL);
        tap_ok(flow_worker_read(&w), "call %d is handled", i);
        ssize_t n = recv(theirs, answer, sizeof answer, MSG_DONTWAIT);
        tap_ok(n > 0 && wire_open(&r, answer, (size_t)n, &err) == 0 && r.type == WIRE_ANSWER &&
                   wire_get_uint(&r) == 1,
               "call %d is answered", i);
        uint64_t ok = wire_get_uint(&r);
        const char *json = wire_get_bytes(&r, &len);
        tap_ok(ok == 1 && len == 3 && memcmp(json, "[1]", 3) == 0,
               "call %d: what was given comes back", i);
    }
    tap_ok(w.calls == 2 && w.calling == 0, "two calls were made, and none is open");
    end();
    begin(FLOW_WORKER_RUNNING);
    called = "later";
    say(WIRE_CALL);
    tap_ok(flow_worker_read(&w) && w.calling == 2 &&
               recv(theirs, answer, sizeof answer, MSG_DONTWAIT) < 0,
           "a call that takes long is open, and the channel is read on");
    flow_worker_answer(&w, 7, true, "1", 1);
    tap_ok(w.calling == 2 && recv(theirs, answer, sizeof answer, MSG_DONTWAIT) < 0,
           "an answer to another call is dropped");
    flow_worker_answer(&w, 1, true, "1", 1);
    tap_ok(w.calling == 0 && recv(theirs, answer, sizeof answer, MSG_DONTWAIT) > 0,
           "the answer to the open call goes to the guest");
    say(WIRE_CALL);
    say(WIRE_CALL);
    tap_ok(!flow_worker_read(&w) && w.state == FLOW_WORKER_BROKEN,
           "a guest that calls again before its answer has broken the channel");
    called = "echo";
    end();
}

/* The gate decides about a tool by its own table; policy and role by the same name. */
static void table_of_tools(void)
{
    struct gate_config config;
    gate_config_init(&config);
    for (size_t i = 0; i < tools_count; i++) {
        const struct gate_tool *of = gate_tool_find(&config, tools_table[i].name);
        tap_ok(of && of->kind == GATE_TOOL_CALL && of->unjudged, "the gate knows the tool %s",
               tools_table[i].name);
    }
}

static void flood(void)
{
    begin(FLOW_WORKER_RUNNING);
    for (int i = 0; i < 3; i++)
        say(WIRE_CALL); /* and never reads: three answers fit, so this goes on */
    int rounds = 0;
    while (flow_worker_read(&w) && rounds < 5)
        rounds++;
    tap_ok(w.state == FLOW_WORKER_RUNNING && rounds == 5,
           "a worker that does not read its answers holds nobody up");
    end();
}

/* The guest's words beside its streams. */
static void words(void)
{
    struct flow_result r;
    struct output_rules *rules = NULL;
    struct err err = ERR_INIT;
    const struct output_known known = {"s3cr3t-value", 12, "[REDACTED:environment]", true};
    const char text[] = "<b> /home/bob s3cr3t-value";
    if (output_rules_new(&known, 1, OUTPUT_SCRUB | OUTPUT_REDACT, &rules, &err) < 0)
        abort();
    flow_result_init(&r);
    r.ran = r.has_value = r.is_final = true;
    if (buf_str(&r.value, text) < 0 || buf_str(&r.final, "0123456789") < 0)
        abort();
    snprintf(r.message, sizeof r.message, "%s", text);
    snprintf(r.reason, sizeof r.reason, "%s", text);
    snprintf(r.type, sizeof r.type, "%s", text);
    snprintf(r.hint, sizeof r.hint, "%s", text);
    snprintf(r.snapshot.why, sizeof r.snapshot.why, "%s", text);
    buf_init(&r.snapshot.left, 1024);
    if (buf_add(&r.snapshot.left, text, sizeof text) < 0 ||
        buf_add(&r.snapshot.left, "a FIFO\0half", 12) < 0)
        abort();
    struct flow_violation v = {.layer = "network", .rule = "socket"};
    memset(v.detail, '<', sizeof v.detail - 1);
    snprintf(v.hint, sizeof v.hint, "%s", text);
    flow_result_violation(&r, &v);
    flow_result_clean(&r, rules, OUTPUT_ESCAPE_HTML, 40);
    const struct flow_violation *first = r.violations;
    if (!first)
        abort();
    const char *value = r.value.data ? r.value.data : "";
    tap_eq_str(value, "&lt;b&gt; /home/USER [REDACTED:environment]", "a value is cleaned");
    tap_eq_str(r.message, value, "an error's message is cleaned like a value");
    tap_eq_str(r.reason, value, "a result's reason is cleaned like a value");
    tap_eq_str(r.type, value, "the type of an error is cleaned like a value");
    tap_eq_str(r.hint, value, "the hint of an error is cleaned like a value");
    tap_eq_str(first->hint, value, "the hint of a violation is cleaned like a value");
    tap_eq_str(r.snapshot.why, value, "why nothing was committed is cleaned like a value");
    const char *left = r.snapshot.left.data ? r.snapshot.left.data : "";
    tap_eq_str(left, value, "the path of what was left out is cleaned like a value");
    tap_ok(r.snapshot.left.len == strlen(value) + 1 + sizeof "a FIFO" &&
               strcmp(left + strlen(left) + 1, "a FIFO") == 0,
           "the reason stays behind its path, and a path without one is dropped");
    tap_eq_str(r.final.data, "0123456789", "a final answer with nothing to clean stays as it is");
    tap_ok(!r.truncated && !strchr(first->detail, '<') && strlen(first->detail) < sizeof v.detail,
           "a violation's detail that cleaning makes longer stays within its buffer");
    flow_result_clean(&r, rules, OUTPUT_ESCAPE_NONE, 8);
    tap_ok(r.truncated && strstr(r.final.data, "[... output truncated ...]"),
           "a final answer is cut at the cap");
    flow_result_done(&r);
    flow_result_init(&r);
    snprintf(r.reason, sizeof r.reason, "%s", text);
    flow_result_clean(&r, rules, OUTPUT_ESCAPE_HTML, 40);
    tap_eq_str(r.reason, "<b> /home/USER [REDACTED:environment]", "what never ran is not escaped");
    flow_result_done(&r);
    output_rules_free(rules);
}

/* One request past ASKS requests that moved BYTES: the errno that the guest is told. */
static uint64_t asked_past(uint64_t asks, uint64_t bytes)
{
    char storage[256], said[256];
    struct buf b = {.data = storage, .cap = sizeof storage, .max = sizeof storage - 1};
    struct wire_writer m;
    struct wire_reader r;
    struct flow_result own;
    int ends[2];
    struct flow f = {.files_asks = asks, .files_bytes = bytes, .files_program = -1};
    base_assert(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
    flow_result_init(&own);
    flow_worker_init(&f.worker, ends[0], &own);
    f.worker.state = FLOW_WORKER_RUNNING;
    f.worker.calling = 1 + 7;
    wire_begin(&m, &b, WIRE_FILE_ASK);
    wire_put_uint(&m, 7);
    wire_put_uint(&m, 0);
    wire_put_bytes(&m, "/workspace/x", 12);
    wire_put_bytes(&m, "", 0);
    wire_put_uints(&m, NULL, 0);
    wire_put_bytes(&m, "", 0);
    base_assert(wire_end(&m) == 0);
    flow_file(&f, 7, b.data, b.len);
    const ssize_t n = recv(ends[1], said, sizeof said, MSG_DONTWAIT);
    base_assert(n > 0 && wire_open(&r, said, (size_t)n, NULL) == 0 && r.type == WIRE_FILE_DONE &&
                wire_get_uint(&r) == 7);
    const uint64_t why = wire_get_uint(&r);
    flow_worker_done(&f.worker);
    flow_result_done(&own);
    close(ends[0]);
    close(ends[1]);
    return why;
}

static void files(void)
{
    tap_eq_int(asked_past(LIMIT_FILE_ASKS, 0), EDQUOT, "a request past their number is refused");
    tap_eq_int(asked_past(0, LIMIT_FILE_BYTES), EDQUOT, "a request past their bytes is refused");
}

/* Whether a look that took MS is believed AFTER ms later. */
static bool holds(uint64_t ms, uint64_t after)
{
    struct flow_looks looks = {.next = 0};
    const struct tools_indexed state = {.documents = 5, .read = 2, .current = true};
    const uint64_t began = CLOCK_NS_PER_S, ended = began + ms * CLOCK_NS_PER_MS;
    flow_look_keep(&looks, "c", began, ended, &state);
    const struct flow_look *l = flow_look_holds(&looks, "c", ended + after * CLOCK_NS_PER_MS);
    base_assert(!l || (l->state.documents == 5 && l->state.current && !l->state.read));
    return l;
}

static void looks(void)
{
    tap_ok(holds(300, 2900) && !holds(300, 3000),
           "a look at a collection is believed for ten times as long as it took");
    tap_ok(!holds(1, 50), "a look that took a moment is taken again after ten");
    tap_ok(holds(4000, 9999) && !holds(4000, 10000), "no look is believed for more than 10 s");
    struct flow_looks all = {.next = 0};
    struct tools_indexed state = {.current = true};
    flow_look_keep(&all, "c", 0, CLOCK_NS_PER_S, &state);
    tap_ok(!flow_look_holds(&all, "d", CLOCK_NS_PER_S), "a look is believed of its own collection");
    state.current = false;
    flow_look_keep(&all, "c", 0, CLOCK_NS_PER_S, &state);
    tap_ok(!flow_look_holds(&all, "c", CLOCK_NS_PER_S),
           "a look that was not finished is taken again");
    state.current = true;
    char name[] = "a";
    for (int i = 0; i < 2 * FLOW_LOOKS; i++, name[0]++)
        flow_look_keep(&all, name, 0, CLOCK_NS_PER_S, &state);
    name[0]--;
    tap_ok(flow_look_holds(&all, name, CLOCK_NS_PER_S) &&
               !flow_look_holds(&all, "a", CLOCK_NS_PER_S),
           "of many collections the last looks are kept");
}

int main(void)
{
    table();
    early();
    garbage();
    names();
    notes();
    calls();
    table_of_tools();
    flood();
    words();
    files();
    looks();
    return tap_done();
}
