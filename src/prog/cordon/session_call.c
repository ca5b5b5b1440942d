/* SPDX-License-Identifier: Apache-2.0 */
/* The one way into a session, for `session run` and for each block of `repl`. The holder's record is made of
 * what the client of the session saw, so the streams are kept here as well as shown. A session is given
 * back before its reader is waited for.
 *
 * Waits: poll in borrow; the call that the session is in; LIMIT_LOCK_MS, where busy_ms is set; declined as busy */
#include "session.h"

#include "base/clock.h"
#include "base/jsonw.h"
#include "base/languages.h"
#include "base/limits.h"
#include "check/ruleset.h"
#include "commands.h"
#include "events.h"
#include "gate/escalate.h"
#include "images.h"
#include "programs.h"
#include "reader.h"
#include "ready.h"
#include "result.h"
#include "session_shares.h"
#include "session_workspace.h"
#include "sys/fd.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- saying no ---- */

static const char *category_of(enum flow_status status, const char *type)
{
    return gate_error_category_name(gate_error_category_of(flow_status_name(status), type));
}

/* RULE, HINT: of the limit that was broken; NULL: none was. */
static int refused_by(const struct session_context *h, const char *session, const char *type,
                      const char *sentence, const char *rule, const char *hint)
{
    struct flow_result r;
    struct flow_violation v = {.layer = "resources"};
    flow_result_init(&r);
    snprintf(r.session, sizeof r.session, "%s", session ? session : "");
    flow_result_say(&r, FLOW_REFUSED, rule ? v.layer : NULL, category_of(FLOW_REFUSED, type), type,
                    sentence);
    if (rule) {
        snprintf(v.rule, sizeof v.rule, "%s", rule);
        snprintf(v.detail, sizeof v.detail, "%s", sentence);
        snprintf(v.hint, sizeof v.hint, "%s", hint);
        flow_result_violation(&r, &v);
    }
    if (!h->json || result_print_json(&r) < 0)
        result_complain(h->who, sentence);
    flow_result_done(&r);
    return EXIT_NEVER_RAN;
}

int session_refused(const struct session_context *h, const char *session, const char *type,
                    const char *sentence)
{
    return refused_by(h, session, type, sentence, NULL, NULL);
}

int session_declined(struct session_context *h, const char *session, const struct pool_answer *a)
{
    const char *why = a->reply.state;
    session_note_ends(h); /* what is told to a caller is on record */
    if (strcmp(why, POOL_WHY_REST) == 0)
        return refused_by(h, session, "SessionError", a->reply.reason, SESSION_RULE_REST,
                          "work during a call; nothing of a session runs between two calls");
    if (strcmp(why, POOL_WHY_BUDGET) == 0)
        return refused_by(h, session, "SessionError", a->reply.reason, SESSION_RULE_MEMORY,
                          "close sessions that are done with: cordon session close NAME");
    const bool busy = strcmp(why, POOL_WHY_BUSY) == 0;
    int r = session_refused(h, session, busy ? "SessionBusy" : "SessionError", a->reply.reason);
    return busy ? EXIT_BUSY : r;
}

int session_failed(const struct session_context *h, const char *session, int code,
                   const struct err *err)
{
    if (code == ERR_USAGE)
        return result_usage(h->who, err);
    return session_refused(h, session, "JailError", err->msg);
}

/* ---- streams: shown as they come, kept for the record ---- */

struct streams {
    struct reader reader;
    struct output_clean clean[2];
    bool show;
};

static void take_bytes(void *ctx, enum jail_stream stream, const void *data, size_t len)
{
    struct streams *s = ctx;
    output_clean_add(&s->clean[stream], data, len);
    if (s->show)
        reader_bytes(&s->reader, stream, data, len);
}

static enum jail_held pass_on(void *ctx, enum jail_stream stream)
{
    struct streams *s = ctx;
    return reader_pass_on(&s->reader, stream);
}

static struct jail_sink streams_sink(struct streams *s)
{
    return (struct jail_sink){.ctx = s,
                              .bytes = take_bytes,
                              .pass_on = s->show ? pass_on : NULL,
                              .onward = {STDOUT_FILENO, STDERR_FILENO}};
}

static void streams_init(struct streams *s, const struct session_context *h, bool show)
{
    const uint64_t cap = h->spec.limits.output;
    s->show = show;
    reader_init(&s->reader, cap, OUTPUT_CHARACTERS);
    reader_rules(&s->reader, h->rules);
    for (int i = 0; i < 2; i++)
        output_clean_init(&s->clean[i], h->rules, cap, OUTPUT_CHARACTERS);
}

static void streams_into(struct streams *s, enum output_escape escape, struct flow_result *r)
{
    if (s->show)
        reader_rest(&s->reader);
    for (int i = 0; i < 2; i++) {
        output_clean_end(&s->clean[i]);
        if (output_clean_text(&s->clean[i], escape, &r->streams[i]) < 0 ||
            output_clean_truncated(&s->clean[i]))
            r->truncated = true;
    }
}

static void streams_done(struct streams *s)
{
    reader_done(&s->reader);
    for (int i = 0; i < 2; i++)
        output_clean_done(&s->clean[i]);
}

/* ---- the record ---- */

static void put_time(struct jsonw *j, const char *key, const struct timespec *t)
{
    char day[32], text[48];
    struct tm utc;
    gmtime_r(&t->tv_sec, &utc);
    strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(text, sizeof text, "%s.%03ldZ", day, t->tv_nsec / 1000000);
    jsonw_string(j, key, text);
}

/* {"call", "began", "ended", "name", "source", "result"}, one line. */
static int write_record(const struct session_call *c, uint64_t number, const struct timespec *began,
                        const struct flow_result *r, struct buf *out)
{
    struct timespec now;
    struct buf object;
    struct jsonw j = {.out = out};
    clock_gettime(CLOCK_REALTIME, &now);
    buf_init(&object, 2 * POOL_RECORD);
    int e = flow_result_json(r, &object);
    jsonw_open(&j, NULL, '{');
    jsonw_int(&j, "call", (int64_t)number);
    put_time(&j, "began", began);
    put_time(&j, "ended", &now);
    jsonw_string(&j, "name", c->name);
    jsonw_bytes(&j, "source", c->source, c->len);
    if (e == 0 && j.bad == 0)
        e = buf_str(out, ",\"result\":");
    if (e == 0 && j.bad == 0)
        e = buf_add(out, object.data, object.len - 1); /* without its line end */
    if (e == 0 && j.bad == 0)
        e = buf_str(out, "}\n");
    buf_done(&object);
    return j.bad ? j.bad : e;
}

/* ---- one call ---- */

static void look_for_more(void *ctx, const struct check_report *report)
{
    struct session_call *c = ctx;
    for (size_t i = 0; i < report->count; i++)
        if (strcmp(report->findings[i].rule, CHECK_RULE_SYNTAX) == 0 &&
            strcmp(report->findings[i].operand, "incomplete") == 0)
            c->incomplete = true;
}

static void tell_begun(void *ctx)
{
    pool_client_begun(ctx);
}

static int print_result(const struct session_context *h, const struct session_call *c,
                        const struct flow_result *r, int signal)
{
    char line[512];
    if (h->json) {
        if (result_print_json(r) < 0) {
            result_complain(h->who, "no memory for the result");
            return EXIT_FAILED;
        }
    } else {
        result_print_value(r);
        result_print_text(r);
        if (c->over) {
            snprintf(line, sizeof line, "session '%s' is over: %.300s", c->session,
                     r->reason[0] ? r->reason : flow_status_name(r->status));
            result_complain(h->who, line);
        }
    }
    return exits_status(r, signal);
}

/* Gives the session back. If it was ended by somebody else meanwhile, that is what happened. */
static void give_back(struct session_context *h, const struct session_call *c, uint64_t number,
                      const struct timespec *began, const char *note, struct flow_result *r)
{
    struct pool_use_numbers use = {.host_calls = r->host_calls,
                                   .wall_us = r->wall_us,
                                   .cpu_us = r->cpu_us,
                                   .memory = r->memory,
                                   .ran = r->ran,
                                   .changed_ns = c->files ? clock_files_ns() : r->changed_ns};
    struct pool_answer a;
    struct err err = ERR_INIT;
    struct buf record;
    const char *reason = r->alive ? "" : r->reason[0] ? r->reason : flow_status_name(r->status);
    buf_init(&record, 2 * POOL_RECORD);
    bool keep = !c->line && write_record(c, number, began, r, &record) == 0;
    if (pool_client_back(&h->holder, r->alive, reason, note, &use, keep ? record.data : NULL,
                         record.len, &a, &err) < 0)
        result_complain(h->who, err.msg);
    else if (a.declined && strcmp(a.reply.state, POOL_WHY_ENDED) == 0) {
        flow_result_say(r, FLOW_CRASHED, "process", category_of(FLOW_CRASHED, "SessionError"),
                        "SessionError", a.reply.reason);
        ready_session_over();
    }
    buf_done(&record);
}

/* Gate, audit and rules: for the first call, and all that follow. */
static int staff(struct session_context *h, struct flow_request *req, struct err *err)
{
    if (h->gate_is_open)
        return 0;
    int r = h->flow.audit ? 0 : result_open_gate(&h->flow, h->json, err);
    if (r == 0)
        r = programs_find("cordon-nest", h->nest, sizeof h->nest, err);
    if (r == 0)
        r = programs_find(language_default()->worker, h->python, sizeof h->python, err);
    if (r == 0)
        r = result_rules(req, &h->rules, err);
    h->gate_is_open = r == 0;
    return r;
}

/* The profile of a session, which the policy may have withdrawn or changed since it was made. UNFIT: empty, or that it has. */
static const struct policy_profile *
profile_of(const struct policy *p, const struct pool_reply *lent, char *unfit, size_t size)
{
    const struct policy_profile *found = policy_find_profile(p, lent->profile);
    const char *why = !found ? "the policy has no such profile any more"
                      : !policy_words_have(&p->run.profiles, lent->profile)
                          ? "run.profiles of the policy does not let it be chosen any more"
                      : check_ruleset_mark(found) != lent->lent.rules
                          ? "the policy has changed its rules since"
                          : "";
    snprintf(unfit, size, "%s%s%s%s", *why ? "it was made in the profile '" : "",
             *why ? lent->profile : "", *why ? "', and " : "", why);
    return found ? found : policy_find_profile(p, p->run.profile);
}

int session_call_lent(struct session_context *h, struct session_call *c, struct jail_child *child,
                      const struct pool_reply *lent)
{
    struct err err = ERR_INIT;
    struct timespec began;
    struct flow_result result;
    struct streams streams;
    struct events events = {0};
    const bool told = h->events && !c->line;
    /* the flow takes the child's own; this one is for who looks at its files later */
    FD_AUTO files = c->left_files || c->files ? fcntl(child->files, F_DUPFD_CLOEXEC, 0) : -1;
    struct session_workspace workspace;
    char note[POOL_NOTE + 1];
    char task[POOL_NAME + 24]; /* the session, not another of the same name later */
    snprintf(h->profile, sizeof h->profile, "%s", lent->profile);
    h->language = pool_language(lent->language);
    snprintf(task, sizeof task, "%s %d", lent->name, (int)jail_child_pid(child));
    char unfit[240];
    const struct policy_profile *profile = profile_of(h->flow.policy, lent, unfit, sizeof unfit);
    struct flow_request req = {
        .kind = c->line ? FLOW_LINE : FLOW_CALL,
        .context = &h->flow,
        .profile = profile,
        .unfit = unfit[0] ? unfit : NULL,
        .name = c->name,
        .source = c->source,
        .source_len = c->len,
        .raw = c->raw,
        .spec = h->spec,
        .memory_by = h->by,
        .input = c->input,
        .same_input = c->same_input,
        .asks = c->asks,
        .typed = c->typed,
        .offer = c->offer,
        .offer_ctx = c->offer_ctx,
        .once = c->last,
        .child = child,
        .child_fresh = c->first,
        .session = lent->name,
        .session_call = lent->lent.ran,
        .nest = h->nest,
        .python = h->python,
        .find = programs_find,
        .language = strcmp(lent->language, language_default()->name) != 0 && lent->language[0]
                        ? lent->language
                        : NULL,
        .task = c->line ? NULL : task,
        .calls_used = lent->lent.host_calls,
        .changed_ns = lent->lent.changed_ns,
        .report = look_for_more,
        .report_ctx = c,
        .begun = tell_begun,
        .begun_ctx = &h->holder,
    };
    /* whoever is stopped from here on ends the call in order, and tells what became of the session */
    if (!c->line && h->stop < 0)
        h->stop = jail_options_stop_fd();
    clock_gettime(CLOCK_REALTIME, &began);
    result_ask(&req, &h->jail);
    tools_give(&h->tools, h->tool_options, &req);
    int r = session_shares_request(h, &req, &err);
    if (r == 0 && !c->line) /* who only asks is asked by nobody */
        r = staff(h, &req, &err);
    if (r == 0)
        r = session_workspace_begin(&workspace, c->line && !c->files ? "" : lent->note, &h->holder,
                                    child, &err);
    else
        workspace = (struct session_workspace){.open = false};
    session_workspace_request(&workspace, &req);
    if (r == 0 && c->files)
        c->files(c->files_ctx, child->files, child->limits.disk);
    req.look = told && h->images ? images_events : NULL;
    req.role = c->role ? c->role : lent->role[0] ? lent->role : NULL;
    req.stop = h->stop;
    req.escape = result_escape(&req, &h->jail);
    streams_init(&streams, h, !h->json && !c->quiet);
    req.live = streams_sink(&streams);
    req.live_gone = &streams.reader.gone;
    req.rules = h->rules;
    if (told)
        events_init(&events, &req, OUTPUT_CHARACTERS);
    if (r == 0)
        r = flow_run(&req, &result, &err);
    else
        flow_result_init(&result);
    if (r < 0) {
        flow_result_refuse(&result, &err);
        result.alive = true; /* it was not even asked */
    }
    if (told)
        events_rest(&events, &result);
    else
        streams_into(&streams, req.escape, &result);
    flow_result_clean(&result, h->rules, h->json ? req.escape : OUTPUT_ESCAPE_NONE,
                      req.profile && req.profile->guards ? h->flow.policy->output.guarded_cap
                                                         : h->flow.policy->sessions.output);
    if (h->json && req.escape == OUTPUT_ESCAPE_NONE)
        flow_result_markup(&result);
    const bool gone = streams.reader.gone || events.gone;
    streams_done(&streams);
    events_done(&events);
    c->over = !result.alive;
    if (c->over)
        ready_session_over();
    c->is_final = result.is_final;
    c->left = result.left_itself;
    if (c->wrote && r == 0 && result.alive)
        session_workspace_wrote(&workspace, files, &result);
    session_workspace_note(&workspace, note);
    session_workspace_done(&workspace);
    memcpy(c->commit, result.snapshot.id, sizeof c->commit);
    snprintf(c->uncommitted, sizeof c->uncommitted, "%s", result.snapshot.why);
    give_back(h, c, lent->lent.call + 1, &began, c->first ? lent->note : note, &result);
    struct err unsaid = ERR_INIT;
    if (c->over && session_note(h, "ended", lent->name,
                                result.reason[0] ? result.reason : flow_status_name(result.status),
                                req.role, &unsaid) < 0)
        result_complain(h->who, unsaid.msg);
    const int signal = gone                ? SIGPIPE
                       : result.stopped_by ? result.stopped_by
                       : c->over           ? exits_signal(h->stop)
                                           : 0;
    if (!gone)
        (void)exits_say_signal(&result, signal);
    /* that a session is no more, was refused before it began, or did not give its files, is told, whatever was asked of it */
    int status = exits_status(&result, signal);
    const bool refused_new = c->first && status != EXIT_DONE,
               unreached = c->files && status != EXIT_DONE && !c->uncommitted[0],
               silent = c->line ? !c->over && (c->quiet || c->incomplete) : c->quiet;
    if (!silent || refused_new || unreached)
        status = print_result(h, c, &result, signal);
    if (c->left_files && !c->line && files >= 0)
        c->left_files(c->left_ctx, files, &result);
    flow_result_done(&result);
    return r == ERR_USAGE ? result_usage(h->who, &err) : status;
}

/* Of what else is declined (it is in another call, memory is short) the next call may be lent. */
#define BUSY_LOOK_MS 10

/* The session of C from the holder; one that is in another call is asked for again until C's busy_ms are over. Agents ask for several files at once, and each of those calls takes a few milliseconds. */
static int borrow(struct session_context *h, const struct session_call *c, struct jail_child *child,
                  struct pool_answer *ret, struct err *err)
{
    const uint64_t until = clock_now_ns() + c->busy_ms * CLOCK_NS_PER_MS;
    for (;;) {
        const int r = pool_client_call(&h->holder, c->session, c->line, child, ret, err);
        if (r < 0 || !ret->declined || strcmp(ret->reply.state, POOL_WHY_BUSY) != 0 ||
            clock_now_ns() >= until)
            return r;
        poll(NULL, 0, BUSY_LOOK_MS);
    }
}

static bool is_gone(const struct pool_answer *a)
{
    static const char *const words[] = {POOL_WHY_UNKNOWN, POOL_WHY_ENDED, POOL_WHY_REST,
                                        POOL_WHY_STOPPING, POOL_WHY_COLD};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(a->reply.state, words[i]) == 0)
            return true;
    return false;
}

int session_call(struct session_context *h, struct session_call *c)
{
    struct jail_child child = JAIL_CHILD_NONE;
    struct pool_answer *a = &c->answer;
    struct err err = ERR_INIT;
    c->incomplete = c->over = c->declined = c->is_final = c->left = false;
    int r = borrow(h, c, &child, a, &err);
    if (r < 0)
        return session_failed(h, c->session, r, &err);
    if (a->declined) {
        c->declined = true;
        c->over = is_gone(a);
        if (c->over)
            ready_session_over();
        return c->line && c->typed ? EXIT_NEVER_RAN : session_declined(h, c->session, a);
    }
    r = session_call_lent(h, c, &child, &a->reply);
    jail_child_close(&child);
    return r;
}
