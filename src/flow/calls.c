/* SPDX-License-Identifier: Apache-2.0 */
/* A tool may be slow, wait for a person, or die; the loop that reads the guest's output and keeps its clocks does not notice. It
 * hands the call on and goes on; whatever the broker says comes by a descriptor of that same loop. The guest
 * waits for its answer by itself.
 *
 * Waits: fd_send in hand_over; nobody: the broker has one call at a time and a packet fits the socket; at once; the call failed
 *        sys_child_wait in flow_calls_stop; the broker; LIMIT_BROKER_MS; it is killed */
#include "flow/steps.h"

#include "base/jsonw.h"
#include "base/limits.h"
#include "sys/child.h"
#include "sys/fd.h"
#include "wire/msg.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAUSE_SLACK_MS 60000 /* for the processes that ask and answer */

uint64_t flow_pause_ms(const struct flow *f)
{
    const struct policy *p = f->req->context->policy;
    return f->req->approval_wait_ms + (p->arena.enabled ? p->arena.timeout_ms : 0) + PAUSE_SLACK_MS;
}

/* ---- the broker's life ---- */

/* It keeps its end of the socket and nothing else of ours: not even the ends of pipes that somebody waits to see closed. */
_Noreturn static void become_broker(struct flow *f, int sock, pid_t parent)
{
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || null < 0)
        _exit(1);
    for (int i = 0; i < 3; i++)
        if (dup2(null, i) < 0)
            _exit(1);
    const int high = fcntl(sock, F_DUPFD_CLOEXEC, 16);
    if (high < 0 || dup3(high, 3, O_CLOEXEC) < 0)
        _exit(1);
    syscall(SYS_close_range, 4U, ~0U, 0U);
    flow_broker(f, 3);
}

static void *shared(size_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

bool flow_calls_claim(const struct flow *f, uint64_t n)
{
    return __atomic_exchange_n(f->recording, n, __ATOMIC_RELAXED) != n;
}

/* One for a run and all that its calls start: who is deep within counts as well, at once, and whatever ends it. */
static int share_budget(struct flow *f)
{
    if (f->req->outer) {
        f->budget = f->req->outer->budget;
        return 0;
    }
    f->budget = shared(sizeof *f->budget);
    return f->budget ? 0 : -1;
}

static void leave_budget(struct flow *f)
{
    if (f->recording)
        munmap(f->recording, sizeof *f->recording);
    f->recording = NULL;
    if (!f->budget) {
        f->calls_made = f->calls_made ? f->calls_made : f->worker.calls;
        return;
    }
    f->calls_made = __atomic_load_n(&f->budget->calls, __ATOMIC_RELAXED);
    if (!f->req->outer)
        munmap(f->budget, sizeof *f->budget);
    f->budget = NULL;
}

int flow_calls_start(struct flow *f, struct err *err)
{
    const pid_t self = getpid();
    int ends[2];
    flow_files_expect(f);
    const int r = flow_shown_map(f, err);
    if (r < 0)
        return r;
    if (!f->req->tools || !f->req->tools[0])
        return 0;
    f->recording = shared(sizeof *f->recording);
    if (!f->recording || share_budget(f) < 0)
        return err_sys(err, "mmap");
    f->handed = 0;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return err_sys(err, "socketpair");
    buf_init(&f->calling_args, LIMIT_CALL + 1);
    const pid_t pid = fork();
    if (pid == 0)
        become_broker(f, ends[1], self);
    fd_close(ends[1]);
    if (pid < 0) {
        fd_close(ends[0]);
        return err_sys(err, "fork");
    }
    f->broker = pid;
    f->broker_sock = ends[0];
    return 0;
}

/* It was closed in the middle of a call: what came of that it has put on record, unless it says or shows that it has not. */
static void record_unended(struct flow *f)
{
    struct err err = ERR_INIT;
    const struct flow_called call = {.tool = f->calling,
                                     .args = f->calling_args.data,
                                     .len = f->calling_args.len,
                                     .status = "error",
                                     .reason = "the run ended before the call did"};
    if (flow_record_call(f, f->req->context->audit, &call, &err) < 0) {
        f->req->context->audit_failed = err.code;
        snprintf(f->req->context->audit_why, sizeof f->req->context->audit_why, "%s", err.msg);
    }
}

/* Closing the socket ends it, whatever it waits for: it alone can find what the command of a host tool left, and it records the call
 * that it is at. One that does not end is killed, and its tool with it. One of root, which we are no more, lives on until we end: what it
 * has not put on record by now is ours to record. */
void flow_calls_stop(struct flow *f)
{
    int status = 0;
    fd_close(fd_take(&f->broker_sock));
    if (f->broker <= 0) {
        leave_budget(f);
        return;
    }
    const int ended = sys_child_wait(f->broker, LIMIT_BROKER_MS, &status);
    const bool gone = ended == 0 || errno == ETIMEDOUT;
    if (f->is_calling && (gone ? ended < 0 || status != 0 : flow_calls_claim(f, f->handed)))
        record_unended(f);
    f->is_calling = false;
    buf_done(&f->calling_args);
    f->broker = 0;
    leave_budget(f);
}

/* ---- calls ---- */

void flow_call_error(enum gate_error_category category, const char *json, size_t len,
                     struct buf *out)
{
    char word[32];
    struct jsonw j = {.out = out};
    snprintf(word, sizeof word, "%s", gate_error_category_name(category));
    for (char *at = word; *at; at++)
        *at = (char)tolower((unsigned char)*at);
    jsonw_open(&j, NULL, '{');
    jsonw_raw(&j, "message", len ? json : "null", len ? len : 4);
    jsonw_string(&j, "category", word);
    jsonw_close(&j, '}');
}

static void answer_text(struct flow *f, uint64_t id, enum gate_error_category category,
                        const char *text)
{
    struct buf message, json;
    struct jsonw j = {.out = &message};
    buf_init(&message, 4096);
    buf_init(&json, 8192);
    jsonw_string(&j, NULL, text);
    flow_call_error(category, message.data, message.len, &json);
    (void)flow_worker_answer(&f->worker, id, false, json.data, json.len);
    buf_done(&message);
    buf_done(&json);
}

/* A call that the broker does not carry out, and cannot record. */
static void refuse(struct flow *f, uint64_t id, const struct flow_called *call)
{
    struct err err = ERR_INIT;
    char text[400];
    if (flow_record_call(f, f->req->context->audit, call, &err) == 0)
        snprintf(text, sizeof text, "%s", call->reason);
    else
        snprintf(text, sizeof text, "the call could not be recorded: %.240s", err.msg);
    answer_text(f, id, strcmp(call->status, "denied") == 0 ? GATE_ERROR_REFUSAL : GATE_ERROR_HOST,
                text);
}

/* A program that goes on calling is told each time, and recorded once. */
static void refuse_budget(struct flow *f, uint64_t id, const struct flow_called *asked)
{
    struct flow_called call = *asked;
    char text[120];
    snprintf(text, sizeof text, "limit of %llu calls of tools",
             (unsigned long long)f->req->context->policy->sessions.tool_calls);
    jail_run_violation(f->run, "resources", "limit.calls", text,
                       "do more with each call, or ask the operator for sessions.tool_calls", 0);
    call.status = "denied";
    call.reason = text;
    if (f->calls_over)
        answer_text(f, id, GATE_ERROR_REFUSAL, text);
    else
        refuse(f, id, &call);
    f->calls_over = true;
}

/* The guest's files ride along: the broker was there before they were. */
static int hand_over(struct flow *f, uint64_t id, const struct flow_called *call)
{
    int files = f->req->outer ? f->req->outer->files : jail_run_files(f->run);
    struct wire_writer m;
    struct buf b;
    buf_init(&b, LIMIT_CALL + 256);
    wire_begin(&m, &b, WIRE_TOOL_CALL);
    wire_put_uint(&m, id);
    wire_put_uint(&m, (uint64_t)jail_run_guest(f->run));
    wire_put_text(&m, f->worker_id);
    wire_put_text(&m, call->tool);
    wire_put_bytes(&m, call->args, call->len);
    int r = wire_end(&m);
    struct fd_packet p = {.data = b.data, .len = b.len, .fds = &files, .nfds = files >= 0};
    r = r < 0 || f->broker_sock < 0 || fd_send(f->broker_sock, &p) < 0 ? -1 : 0;
    buf_done(&b);
    return r;
}

void flow_call(void *ctx, uint64_t id, const char *tool, const char *args, size_t len)
{
    struct flow *f = ctx;
    struct flow_called call = {.tool = tool, .args = args, .len = len, .status = "error"};
    const uint64_t made =
        f->budget ? __atomic_add_fetch(&f->budget->calls, 1, __ATOMIC_RELAXED) : f->worker.calls;
    if (f->req->calls_used + made > f->req->context->policy->sessions.tool_calls) {
        refuse_budget(f, id, &call);
        return;
    }
    snprintf(f->calling, sizeof f->calling, "%s", tool);
    buf_reset(&f->calling_args);
    f->calling_id = id;
    f->is_calling =
        f->broker > 0 && buf_add(&f->calling_args, args, len) == 0 && hand_over(f, id, &call) == 0;
    f->handed += f->is_calling;
    if (f->is_calling)
        return;
    call.reason =
        f->broker > 0 ? "the process that carries calls out is gone" : "this run has no tools";
    refuse(f, id, &call);
}

/* ---- what the broker says ---- */

static void take_refused(struct flow *f, struct wire_reader *r)
{
    char word[48];
    struct gate_refusal no = {.word = word};
    wire_get_text(r, word, sizeof word);
    wire_get_text(r, no.reason, sizeof no.reason);
    wire_get_text(r, no.hint, sizeof no.hint);
    flow_note_refusal(f, &no);
}

static void take_notice(const struct flow *f, struct wire_reader *r)
{
    char tool[64], subject[64], detail[400];
    struct gate_event e = {.kind = (enum gate_event_kind)wire_get_uint(r)};
    wire_get_text(r, tool, sizeof tool);
    wire_get_text(r, subject, sizeof subject);
    wire_get_text(r, detail, sizeof detail);
    e.name = "gate.tool";
    e.tool = tool;
    e.run = f->result->id;
    e.client = f->ask.client.id;
    e.subject = subject;
    e.detail = detail;
    e.seconds = wire_get_uint(r);
    if (f->req->context->notice)
        f->req->context->notice(&e);
}

static void take_answer(struct flow *f, struct wire_reader *r)
{
    size_t len;
    const uint64_t id = wire_get_uint(r), ok = wire_get_uint(r), cut = wire_get_uint(r);
    const void *json = wire_get_bytes(r, &len);
    f->is_calling = false;
    f->generation_cut = f->generation_cut || cut == 1;
    (void)flow_worker_answer(&f->worker, id, ok == 1, json, len);
}

static void wait_for_people(struct flow *f, bool waits)
{
    if (waits)
        jail_run_pause(f->run, flow_pause_ms(f));
    else
        jail_run_resume(f->run);
    if (f->req->outer)
        f->req->outer->waits(waits);
}

static bool take_word(struct flow *f, struct wire_reader *r)
{
    switch (r->type) {
    case WIRE_TOOL_REFUSED:
        take_refused(f, r);
        return true;
    case WIRE_TOOL_NOTICE:
        take_notice(f, r);
        return true;
    case WIRE_TOOL_WAITS:
        wait_for_people(f, wire_get_uint(r) != 0);
        return true;
    case WIRE_TOOL_ANSWER:
        take_answer(f, r);
        return true;
    default:
        return false;
    }
}

/* Dead, or not itself any more: the call that it had has failed, and so will the next ones. */
static bool lost(struct flow *f)
{
    struct flow_called call = {.tool = f->calling,
                               .args = f->calling_args.data,
                               .len = f->calling_args.len,
                               .status = "error",
                               .reason = "the process that carries calls out died"};
    wait_for_people(f, false);
    fd_close(fd_take(&f->broker_sock));
    if (f->is_calling)
        refuse(f, f->calling_id, &call);
    f->is_calling = false;
    return false;
}

static bool on_broker(void *ctx)
{
    static char storage[LIMIT_FRAME]; /* one supervisor handles one packet at a time */
    struct flow *f = ctx;
    struct wire_reader r;
    size_t len;
    const int got = wire_take(f->broker_sock, storage, &r, &len);
    return got == 0 || (got > 0 && take_word(f, &r)) ? true : lost(f);
}

int flow_calls_watch(struct flow *f, struct err *err)
{
    return f->broker > 0 ? jail_run_also(f->run, f->broker_sock, on_broker, f, err) : 0;
}
