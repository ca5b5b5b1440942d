/* SPDX-License-Identifier: Apache-2.0 */
/* One table says which message may come in which state; everything else is a broken channel, and the run
 * is stopped. Answers to the guest never wait: a guest that calls and does not read has broken it, too.
 *
 * Waits: send in send_frame; the worker to read; SO_SNDTIMEO; the worker is lost
 *        fd_send in flow_worker_input; the worker to read; SO_SNDTIMEO; the worker is lost */
#include "flow/worker.h"

#include "base/limits.h"
#include "base/utf8.h"
#include "check/ruleset.h"
#include "check/worker_rules.h"
#include "jail/child.h"
#include "sys/fd.h"
#include "wire/msg.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#define FRAMES_AT_ONCE 64 /* then the clock and the pipes get their turn */
#define PIECE          (64 * KIB)

static char storage[LIMIT_FRAME]; /* one supervisor handles one frame at a time */

void flow_worker_init(struct flow_worker *w, int fd, struct flow_result *result)
{
    *w = (struct flow_worker){.fd = fd, .result = result};
    check_report_init(&w->report);
}

void flow_worker_done(struct flow_worker *w)
{
    check_report_done(&w->report);
}

/* RUN is NULL in the tests of this file alone. */
static void violation(const struct flow_worker *w, const char *layer, const char *rule,
                      const char *detail, const char *hint, uint64_t line)
{
    if (w->run)
        jail_run_violation(w->run, layer, rule, detail, hint, line);
}

/* ---- to the worker ---- */

static int send_frame(const struct flow_worker *w, struct wire_writer *m, int flags,
                      struct err *err)
{
    if (wire_end(m) < 0)
        return err_set(err, ERR_LIMIT, "a message to the worker is too long");
    ssize_t n;
    do
        n = send(w->fd, m->out->data, m->out->len, MSG_NOSIGNAL | flags);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)m->out->len ? 0 : err_sys(err, "send to the worker");
}

static int give_rules(const struct flow_worker *w, struct buf *b, struct err *err)
{
    struct wire_writer m;
    struct buf rules;
    buf_init(&rules, CHECK_RULESET_MAX);
    int r = check_ruleset_encode(w->job->profile, &rules, err);
    if (r == 0) {
        buf_reset(b);
        wire_begin(&m, b, WIRE_RULES);
        wire_put_bytes(&m, rules.data, rules.len);
        r = send_frame(w, &m, 0, err);
    }
    buf_done(&rules);
    return r;
}

static int give_tools(const struct flow_worker *w, struct buf *b, struct err *err)
{
    const char *names[LIMIT_HOST_TOOLS];
    struct wire_writer m;
    size_t count = 0;
    for (; w->job->tools && w->job->tools[count]; count++) {
        if (count == LIMIT_HOST_TOOLS)
            return err_set(err, ERR_LIMIT, "more than %d tools", LIMIT_HOST_TOOLS);
        names[count] = w->job->tools[count];
    }
    if (count == 0)
        return 0;
    buf_reset(b);
    wire_begin(&m, b, WIRE_TOOLS);
    wire_put_strings(&m, names, count);
    return send_frame(w, &m, 0, err);
}

/* What did not fit JOB. */
static int give_source(const struct flow_worker *w, struct buf *b, size_t from, struct err *err)
{
    const char *at = (const char *)w->job->source + from;
    size_t left = w->job->len - from;
    int r = 0;
    while (left && r == 0) {
        struct wire_writer m;
        size_t n = left < PIECE ? left : PIECE;
        buf_reset(b);
        wire_begin(&m, b, WIRE_SOURCE);
        wire_put_bytes(&m, at, n);
        r = send_frame(w, &m, 0, err);
        at += n;
        left -= n;
    }
    return r;
}

int flow_worker_environ(struct flow_worker *w, const char *const *env, size_t count,
                        struct err *err)
{
    struct buf b = {.data = storage, .cap = sizeof storage, .max = sizeof storage - 1};
    struct wire_writer m;
    wire_begin(&m, &b, WIRE_ENVIRON);
    wire_put_strings(&m, env, count);
    return send_frame(w, &m, 0, err);
}

int flow_worker_input(struct flow_worker *w, int fd, bool asks, struct err *err)
{
    char frame[16];
    struct buf b = {.data = frame, .cap = sizeof frame, .max = sizeof frame - 1};
    struct wire_writer m;
    wire_begin(&m, &b, WIRE_INPUT);
    wire_put_uint(&m, asks);
    int r = wire_end(&m);
    struct fd_packet p = {.data = frame, .len = b.len, .fds = &fd, .nfds = 1};
    return r < 0 || fd_send(w->fd, &p) < 0 ? err_sys(err, "send to the worker") : 0;
}

static int give_args(const struct flow_worker *w, struct buf *b, struct err *err)
{
    struct wire_writer m;
    buf_reset(b);
    wire_begin(&m, b, WIRE_ARGV);
    wire_put_strings(&m, w->job->args, w->job->nargs);
    return send_frame(w, &m, 0, err);
}

static int give_method(const struct flow_worker *w, struct buf *b, struct err *err)
{
    struct wire_writer m;
    buf_reset(b);
    wire_begin(&m, b, WIRE_METHOD);
    wire_put_text(&m, w->job->method);
    wire_put_bytes(&m, w->job->method_args, strlen(w->job->method_args));
    return send_frame(w, &m, 0, err);
}

bool flow_worker_early(const struct flow_worker *w, const struct flow_job *job)
{
    return w->state == FLOW_WORKER_STARTING && w->has_rules && !w->job && !job->nargs &&
           !job->method && job->len <= PIECE;
}

int flow_worker_give(struct flow_worker *w, const struct flow_job *job, struct err *err)
{
    struct timeval patience = {.tv_sec = 5};
    struct buf b = {.data = storage, .cap = sizeof storage, .max = sizeof storage - 1};
    struct wire_writer m;
    if ((w->state != FLOW_WORKER_READY && !flow_worker_early(w, job)) || job->len > LIMIT_SOURCE)
        return err_set(err, ERR_STATE, "the worker is not ready for this job");
    setsockopt(w->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    w->job = job;
    if (w->state == FLOW_WORKER_READY)
        w->state = FLOW_WORKER_JUDGING;
    int r = w->has_rules ? 0 : give_rules(w, &b, err);
    if (r == 0)
        r = give_tools(w, &b, err);
    if (r == 0 && job->nargs)
        r = give_args(w, &b, err);
    if (r == 0 && job->method)
        r = give_method(w, &b, err);
    if (r < 0)
        return r;
    w->has_rules = true;
    buf_reset(&b);
    wire_begin(&m, &b, WIRE_JOB);
    wire_put_uint(&m, (uint64_t)job->kind);
    wire_put_uint(&m, job->limits ? job->limits->cpu_ms : 0);
    wire_put_uint(&m, job->limits ? job->limits->memory + job->limits->space : 0);
    wire_put_text(&m, job->name);
    wire_put_uint(&m, job->len);
    size_t first = job->len < PIECE ? job->len : PIECE;
    wire_put_bytes(&m, job->source, first);
    r = send_frame(w, &m, 0, err);
    if (r < 0 && w->state == FLOW_WORKER_STARTING)
        w->job = NULL; /* the worker has not got the job */
    return r < 0 ? r : give_source(w, &b, first, err);
}

int flow_worker_go(struct flow_worker *w, struct err *err)
{
    struct buf b = {.data = storage, .cap = sizeof storage, .max = sizeof storage - 1};
    struct wire_writer m;
    if (w->state != FLOW_WORKER_JUDGED || !w->safe)
        return err_set(err, ERR_STATE, "nothing was judged clean");
    w->state = FLOW_WORKER_RUNNING;
    wire_begin(&m, &b, WIRE_GO);
    return send_frame(w, &m, 0, err);
}

/* ---- from the worker ---- */

static bool take_ready(struct flow_worker *w, struct wire_reader *r)
{
    (void)r;
    w->state = w->job ? FLOW_WORKER_JUDGING : FLOW_WORKER_READY;
    return true;
}

/* A guest can say what it likes on the channel, but not in the name of somebody else: a rule is the
 * profile's or one that the worker applies by itself, and no other exists for it. */
static bool rule_is_workers(const struct flow_worker *w, const char *rule)
{
    static const char *const own[] = {
#define X(name) name,
        CHECK_WORKER_RULES(X)
#undef X
    };
    const struct policy_profile *p = w->job ? w->job->profile : NULL;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcmp(own[i], rule) == 0)
            return true;
    for (size_t i = 0; p && i < p->rule_count; i++)
        if (strcmp(p->rules[i].id, rule) == 0)
            return true;
    return false;
}

static bool layer_is_workers(const char *layer)
{
    static const char *const layers[] = {"input",     "process", "syscalls",
                                         "resources", "network", "filesystem"};
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        if (strcmp(layers[i], layer) == 0)
            return true;
    return false;
}

/* The judge has rules of its own about texts that are no program. */
static bool finding_is_judges(const struct flow_worker *w, const char *layer, const char *rule)
{
    static const char *const texts[] = {CHECK_RULE_SYNTAX,    CHECK_RULE_SIZE,
                                        CHECK_RULE_ENCODING,  CHECK_RULE_NUL,
                                        CHECK_RULE_STRUCTURE, CHECK_RULE_TAMPERED};
    bool known = rule_is_workers(w, rule);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        known = known || strcmp(texts[i], rule) == 0;
    return known && strcmp(layer, "input") == 0;
}

static bool take_finding(struct flow_worker *w, struct wire_reader *r)
{
    char text[5][1024];
    for (int i = 0; i < 5; i++)
        wire_get_text(r, text[i], sizeof text[i]);
    struct check_finding f = {
        .rule = text[0], .layer = text[1], .operand = text[2], .message = text[3], .hint = text[4]};
    f.line = (uint32_t)wire_get_uint(r);
    f.column = (uint32_t)wire_get_uint(r);
    return finding_is_judges(w, f.layer, f.rule) && check_report_add(&w->report, &f) == 0;
}

static bool take_report(struct flow_worker *w, struct wire_reader *r)
{
    bool safe = wire_get_uint(r) == 1;
    w->report.dropped += wire_get_uint(r);
    check_report_end(&w->report);
    w->safe = safe && check_report_safe(&w->report); /* both must say so */
    w->state = FLOW_WORKER_JUDGED;
    return safe == w->safe;
}

static bool take_event(struct flow_worker *w, struct wire_reader *r)
{
    char layer[16], rule[48], detail[320], hint[LIMIT_HINT];
    wire_get_text(r, layer, sizeof layer);
    wire_get_text(r, rule, sizeof rule);
    wire_get_text(r, detail, sizeof detail);
    wire_get_text(r, hint, sizeof hint);
    if (!layer_is_workers(layer) || !rule_is_workers(w, rule))
        return false;
    violation(w, layer, rule, detail, hint, wire_get_uint(r));
    return true;
}

/* What a worker may say about how it ran a program, and what that means. The words are ours: a guest that has taken
 * its worker over can choose among them and say nothing else. */
static const struct {
    const char *id, *sentence;
} notes[] = {
    {"threads.in_order", "threads and executors ran in order, in one thread: start() and submit() "
                         "return when the work is done"},
};
_Static_assert(sizeof notes / sizeof *notes <= FLOW_NOTES_MAX, "a result has room for each note");

static bool take_note(struct flow_worker *w, struct wire_reader *r)
{
    char id[48];
    wire_get_text(r, id, sizeof id);
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++)
        if (strcmp(notes[i].id, id) == 0) {
            (void)flow_result_note(w->result, notes[i].sentence);
            return true;
        }
    return false;
}

/* A value that is longer than one message comes in pieces. Whatever the bytes are, no more are kept than so many
 * characters can have. */
static bool keep(struct flow_worker *w, struct wire_reader *r, struct buf *into)
{
    size_t len;
    const uint64_t first = wire_get_uint(r);
    const void *bytes = wire_get_bytes(r, &len);
    if (first)
        buf_reset(into);
    if (len > LIMIT_CHARACTER * (LIMIT_VALUE + 1) - into->len || buf_add(into, bytes, len) < 0)
        return false;
    if (utf8_count(into->data, into->len) > LIMIT_VALUE) /* the worker sends one more, to say so */
        w->result->truncated = true;
    return true;
}

static bool take_value(struct flow_worker *w, struct wire_reader *r)
{
    w->result->has_value = true;
    return keep(w, r, &w->result->value);
}

static bool take_final(struct flow_worker *w, struct wire_reader *r)
{
    w->result->is_final = true;
    return keep(w, r, &w->result->final);
}

static bool take_fault(struct flow_worker *w, struct wire_reader *r)
{
    wire_get_text(r, w->fault_type, sizeof w->fault_type);
    wire_get_text(r, w->fault, sizeof w->fault);
    w->fault_line = (unsigned)wire_get_uint(r);
    return true;
}

static bool take_done(struct flow_worker *w, struct wire_reader *r)
{
    const int64_t status = wire_get_int(r);
    w->exit_code = (int)(status & 0xff);
    w->left = status & WIRE_DONE_LEFT;
    w->state = FLOW_WORKER_DONE;
    return true;
}

/* A guest may say so at any time; then whoever sits there may type a line, or not. */
static bool take_ask(struct flow_worker *w, struct wire_reader *r)
{
    (void)r;
    if (w->run)
        jail_run_feed_line(w->run);
    return true;
}

static bool take_names(struct flow_worker *w, struct wire_reader *r)
{
    if (!w->job || w->job->kind != FLOW_JOB_NAMES)
        return false;
    for (size_t left = wire_get_list(r); left; left--) {
        size_t len;
        const char *name = wire_next(r, &len);
        if (w->job->offer)
            w->job->offer(w->job->offer_ctx, name, len);
    }
    return true;
}

/* ---- tools ---- */

static bool broken(struct flow_worker *w);

static bool send_answer(const struct flow_worker *w, uint64_t id, bool ok, const void *json,
                        size_t len)
{
    struct wire_writer m;
    struct err err = ERR_INIT;
    struct buf b;
    buf_init(&b, LIMIT_ANSWER + 64);
    wire_begin(&m, &b, WIRE_ANSWER);
    wire_put_uint(&m, id);
    wire_put_uint(&m, ok);
    wire_put_bytes(&m, json, len);
    const bool sent = send_frame(w, &m, MSG_DONTWAIT, &err) == 0;
    buf_done(&b);
    return sent;
}

bool flow_worker_answer(struct flow_worker *w, uint64_t id, bool ok, const void *json, size_t len)
{
    if (w->state != FLOW_WORKER_RUNNING || w->calling != id + 1)
        return true;
    w->calling = 0;
    return send_answer(w, id, ok, json, len) || broken(w);
}

/* The worker has one call at a time; a guest that speaks for itself must keep to that, too. */
static bool take_call(struct flow_worker *w, struct wire_reader *r)
{
    char name[64];
    size_t len;
    uint64_t id = wire_get_uint(r);
    wire_get_text(r, name, sizeof name);
    const char *args = wire_get_bytes(r, &len);
    if (len > LIMIT_CALL || w->calling || id == UINT64_MAX || !w->job->call)
        return false;
    w->calling = id + 1;
    w->calls++;
    w->job->call(w->job->call_ctx, id, name, args, len);
    return w->state != FLOW_WORKER_BROKEN;
}

/* One at a time, and not beside a call: the worker waits for one answer. */
static bool take_file(struct flow_worker *w, struct wire_reader *r)
{
    const uint64_t id = wire_get_uint(r);
    if (w->calling || id == UINT64_MAX || !w->job->file)
        return false;
    w->calling = id + 1;
    w->job->file(w->job->file_ctx, id, w->frame, w->frame_len);
    return w->state != FLOW_WORKER_BROKEN;
}

bool flow_worker_file_done(struct flow_worker *w, uint64_t id, const void *frame, size_t len)
{
    ssize_t n;
    if (w->state != FLOW_WORKER_RUNNING || w->calling != id + 1)
        return true;
    w->calling = 0;
    do
        n = send(w->fd, frame, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)len || broken(w);
}

static const struct {
    enum wire_type type;
    enum flow_worker_state when;
    bool (*take)(struct flow_worker *w, struct wire_reader *r);
} table[] = {
    {WIRE_READY, FLOW_WORKER_STARTING, take_ready},
    {WIRE_FINDING, FLOW_WORKER_JUDGING, take_finding},
    {WIRE_REPORT, FLOW_WORKER_JUDGING, take_report},
    {WIRE_EVENT, FLOW_WORKER_RUNNING, take_event},
    {WIRE_NOTE, FLOW_WORKER_RUNNING, take_note},
    {WIRE_ASK, FLOW_WORKER_RUNNING, take_ask},
    {WIRE_NAMES, FLOW_WORKER_JUDGING, take_names},
    {WIRE_CALL, FLOW_WORKER_RUNNING, take_call},
    {WIRE_FILE_ASK, FLOW_WORKER_RUNNING, take_file},
    {WIRE_VALUE, FLOW_WORKER_RUNNING, take_value},
    {WIRE_FINAL, FLOW_WORKER_RUNNING, take_final},
    {WIRE_FAULT, FLOW_WORKER_RUNNING, take_fault},
    {WIRE_DONE, FLOW_WORKER_RUNNING, take_done},
};

static bool take(struct flow_worker *w, struct wire_reader *r)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].type == r->type)
            return table[i].when == w->state && table[i].take(w, r);
    return false;
}

static bool broken(struct flow_worker *w)
{
    w->state = FLOW_WORKER_BROKEN;
    violation(w, "process", "channel.garbage",
              "what came on descriptor 3 is no message of a worker",
              "leave descriptor 3 alone; call the functions that are given", 0);
    if (w->run)
        jail_run_stop(w->run);
    return false;
}

/* Of a socket of packets recv gives 0 for an empty packet as well as for its end. */
static bool peer_is_gone(int fd)
{
    struct pollfd p = {.fd = fd};
    return poll(&p, 1, 0) == 1 && p.revents & (POLLHUP | POLLERR);
}

bool flow_worker_read(struct flow_worker *w)
{
    for (int i = 0; i < FRAMES_AT_ONCE; i++) {
        struct wire_reader r;
        struct err err = ERR_INIT;
        ssize_t n = recv(w->fd, storage, sizeof storage, MSG_DONTWAIT | MSG_TRUNC);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return true;
        if (n == 0 && !peer_is_gone(w->fd)) /* an empty packet: no message of ours is one */
            return broken(w);
        if (n <= 0) {
            if (w->state != FLOW_WORKER_DONE)
                w->state = FLOW_WORKER_GONE; /* its exit tells why */
            return false;
        }
        w->frame = storage;
        w->frame_len = (size_t)n;
        if ((size_t)n > sizeof storage || wire_open(&r, storage, (size_t)n, &err) < 0 ||
            !take(w, &r))
            return broken(w);
        if (w->state == FLOW_WORKER_DONE && w->run) {
            if (w->job->kind == FLOW_JOB_CALL || w->job->kind == FLOW_JOB_BLOCK)
                jail_run_release(w->run, w->exit_code);
            else
                jail_run_end_now(w->run, w->exit_code);
            return false;
        }
    }
    return true;
}
