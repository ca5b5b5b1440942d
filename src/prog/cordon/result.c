/* SPDX-License-Identifier: Apache-2.0 */
/* The one way from a request to what is printed, for every command that runs something. What is printed waits
 * for its reader when everything else is closed (writer.c). */
#include "result.h"

#include "base/jsonw.h"
#include "base/languages.h"
#include "base/limits.h"
#include "commands.h"
#include "events.h"
#include "jail_options.h"
#include "output/config.h"
#include "output/visible.h"
#include "programs.h"
#include "reader.h"
#include "ready.h"
#include "sys/fd.h"
#include "sys/here.h"
#include "sys/state.h"
#include "writer.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SLOT_WAIT_MS 10000 /* for one of the places on the machine */

static bool as_event; /* --events: the result is the last of them, also where nothing ran */

void result_as_events(bool yes)
{
    as_event = yes;
}

int result_print_json(const struct flow_result *r)
{
    struct buf out;
    buf_init(&out, 16 * LIMIT_OUTPUT_MAX);
    int e = as_event ? buf_str(&out, "{\"event\": \"result\", \"result\": ") : 0;
    if (e == 0)
        e = flow_result_json(r, &out);
    if (e == 0 && as_event) {
        out.len--; /* its line feed */
        e = buf_str(&out, "}\n");
    }
    if (e == 0)
        writer_take(JAIL_STDOUT, &out);
    buf_done(&out);
    return e;
}

bool result_colour(int fd)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(fd) && !(no && *no) && term && *term && strcmp(term, "dumb") != 0;
}

static void put_line(const char *who, const char *text, bool colour)
{
    struct output_visible v = {.one_line = true};
    struct buf line;
    buf_init(&line, 8192);
    if (buf_printf(&line, colour ? "\033[1;31m%s:\033[0m " : "%s: ", who) == 0 &&
        output_visible_add(&v, text, strlen(text), &line) == 0 &&
        output_visible_end(&v, &line) == 0 && buf_str(&line, "\n") == 0)
        writer_take(JAIL_STDERR, &line);
    buf_done(&line);
}

void result_complain(const char *who, const char *text)
{
    put_line(who, text, result_colour(STDERR_FILENO));
}

void result_note(const char *who, const char *text)
{
    put_line(who, text, false);
}

int result_usage(const char *who, const struct err *err)
{
    result_complain(who, err->msg);
    return EXIT_NEVER_RAN;
}

/* What a process of ours failed at or died of is no mistake of the caller's, though its errno stayed there. */
static bool is_refusal(const struct err *err)
{
    return err_is_host(err) || err->code == ERR_STATE;
}

int result_refused(const char *who, bool json, const struct err *err)
{
    struct flow_result result;
    flow_result_init(&result);
    flow_result_refuse(&result, err);
    if (json && result_print_json(&result) < 0)
        result_complain(who, "the result could not be written to stdout");
    flow_result_done(&result);
    result_complain(who, err->msg);
    return EXIT_NEVER_RAN;
}

int result_failed(const char *who, bool json, const struct err *err)
{
    return is_refusal(err) ? result_refused(who, json, err) : result_usage(who, err);
}

static int put_note(const struct intake_note *n, struct buf *line)
{
    static const char *const words[] = {
        [INTAKE_MARK] = "a byte order mark",
        [INTAKE_REASONING] = "reasoning",
        [INTAKE_PROSE] = "prose",
        [INTAKE_BLOCK] = "a block of",
        [INTAKE_UNCLOSED] = "a fence that is never closed, the answer may be cut",
        [INTAKE_INVISIBLE] = "the invisible character",
    };
    return buf_printf(line, " %s%s%s (line %zu)", words[n->kind], n->detail[0] ? " " : "",
                      n->detail, n->line);
}

/* What the program was taken from, where that was more than the program. */
static void print_intake(const struct intake_source *s)
{
    struct buf line;
    buf_init(&line, 1000);
    int r = s->blocks == 1  ? buf_printf(&line, "ran the block of code at line %zu", s->line)
            : s->blocks > 1 ? buf_printf(&line, "ran %zu blocks of code, joined, from line %zu",
                                         s->blocks, s->line)
                            : buf_str(&line, "the text holds");
    for (size_t i = 0; r == 0 && i < s->note_count && i < INTAKE_NOTES; i++) {
        r = buf_str(&line, i ? "," : s->blocks ? "; beside it:" : "");
        if (r == 0)
            r = put_note(&s->notes[i], &line);
    }
    if (line.data && (s->blocks || s->note_count))
        result_note("cordon", line.data);
    buf_done(&line);
}

/* As an interpreter shows it; on a terminal nothing in it acts. */
void result_print_value(const struct flow_result *r)
{
    const struct buf *text = r->is_final ? &r->final : r->has_value ? &r->value : NULL;
    struct output_visible v = {0};
    struct buf line;
    if (!text || !text->len)
        return;
    buf_init(&line, 8 * text->len + 64);
    int e = isatty(STDOUT_FILENO) ? output_visible_add(&v, text->data, text->len, &line)
                                  : buf_add(&line, text->data, text->len);
    if (e == 0 && isatty(STDOUT_FILENO))
        e = output_visible_end(&v, &line);
    if (e == 0 && line.len && buf_str(&line, "\n") == 0)
        writer_take(JAIL_STDOUT, &line);
    buf_done(&line);
}

/* Whether this violation is why the run ended, or did not begin. */
static bool is_the_reason(const struct flow_result *r, const struct flow_violation *v)
{
    switch (r->status) {
    case FLOW_BLOCKED:
    case FLOW_DENIED:
    case FLOW_REFUSED:
        return r->layer && strcmp(r->layer, v->layer) == 0;
    case FLOW_MEMORY:
        return strcmp(v->rule, JAIL_RULE_MEMORY) == 0;
    default:
        return false;
    }
}

/* `line 3: `, `lines 3, 4: `, or nothing. */
static void say_place(const struct flow_violation *v, char *out, size_t size)
{
    size_t at = 0;
    unsigned last = 0;
    bool several = v->place_count > 1 && v->places[v->place_count - 1].line != v->line;
    out[0] = 0;
    if (v->line)
        snprintf(out, size, "line %u: ", v->line);
    for (size_t i = 0; several && i < v->place_count && at + 16 < size; i++) {
        if (v->places[i].line == last)
            continue;
        last = v->places[i].line;
        at += (size_t)snprintf(out + at, size - at, at ? ", %u" : "lines %u", last);
    }
    if (several)
        snprintf(out + at, size - at, ": ");
}

/* The first few: what was taken by its name on the host, else what the program calls it. */
static int put_names(const struct flow_result *r, bool taken, struct buf *line)
{
    enum { NAMED = 3 };
    size_t named = 0;
    int e = 0;
    for (size_t i = 0; i < r->file_count && named <= NAMED && e == 0; i++) {
        const struct flow_file *f = &r->files[i];
        if (taken && !f->saved)
            continue;
        e = named == NAMED
                ? buf_str(line, ", ...")
                : buf_printf(line, "%s%.100s%s%s%s", named ? ", " : "", taken ? f->saved : f->path,
                             f->type ? " (" : "", f->type ? f->type : "", f->type ? ")" : "");
        named++;
    }
    return e;
}

/* What became of the files in /workspace. */
static void print_files(const struct flow_result *r)
{
    struct buf line;
    size_t saved = 0;
    for (size_t i = 0; i < r->file_count; i++) {
        char text[512];
        saved += r->files[i].saved != NULL;
        if (!r->files[i].unsaved)
            continue;
        snprintf(text, sizeof text, "not taken: %.160s: %.240s", r->files[i].path,
                 r->files[i].unsaved);
        result_complain("cordon", text);
    }
    if (r->unsaved && r->files_cut)
        result_complain("cordon", "not taken: there are more files, or deeper folders, than --out "
                                  "takes; --rw DIR:/workspace keeps all");
    buf_init(&line, 1000);
    const char *many = r->file_count > 1 || r->files_cut ? "files were" : "file was";
    if (r->files_gone && r->file_count &&
        buf_printf(&line, "%zu%s %s dropped (", r->file_count, r->files_cut ? " and more" : "",
                   many) == 0 &&
        put_names(r, false, &line) == 0 && buf_str(&line, "); --out DIR keeps what it leaves") == 0)
        result_note("cordon", line.data);
    else if (saved &&
             buf_printf(&line, "took %zu %s: ", saved, saved > 1 ? "files" : "file") == 0 &&
             put_names(r, true, &line) == 0)
        result_note("cordon", line.data);
    buf_done(&line);
}

/* What came of its workspace, where there is something to say. */
static void print_snapshot(const struct flow_snapshot *s)
{
    char line[LIMIT_HINT + 800];
    if (s->workspace[0] && !s->id[0]) {
        snprintf(line, sizeof line, "workspace %s: %s", s->workspace, s->why);
        result_complain("cordon", line);
    }
    if (s->percent >= 80) {
        snprintf(line, sizeof line, "workspace %s uses %u %% of the room for its store%s",
                 s->workspace, s->percent, s->percent >= 95 ? ": it is nearly full" : "");
        result_note("cordon", line);
    }
    for (const char *at = s->left.data; at && at < s->left.data + s->left.len;) {
        const char *why = at + strlen(at) + 1;
        snprintf(line, sizeof line, "workspace %s: left out: %.800s: %s", s->workspace, at, why);
        result_complain("cordon", line);
        at = why + strlen(why) + 1;
    }
}

void result_print_text(const struct flow_result *r)
{
    char line[LIMIT_HINT + 800], place[200];
    bool said = false;
    if (r->ran)
        print_intake(&r->intake);
    for (size_t i = 0; i < r->note_count; i++)
        result_note("cordon", r->notes[i]);
    for (size_t i = 0; i < r->violation_count; i++) {
        const struct flow_violation *v = &r->violations[i];
        if (v->end == FLOW_WAS_HARMLESS)
            continue;
        const bool reason = is_the_reason(r, v);
        say_place(v, place, sizeof place);
        char times[40] = "";
        if (v->times > v->place_count && v->times > 1)
            snprintf(times, sizeof times, " (%llu times)", (unsigned long long)v->times);
        snprintf(line, sizeof line, "%s (%s): %s%s%s%s%s",
                 reason ? flow_status_name(r->status) : flow_violation_end_name(v->end), v->layer,
                 place, v->detail, times, v->hint[0] ? "; " : "", v->hint);
        result_complain("cordon", line);
        said = said || reason;
    }
    if (r->hint[0])
        result_note("cordon", r->hint);
    print_files(r);
    print_snapshot(&r->snapshot);
    bool by_stop = r->layer && strcmp(r->layer, GATE_LAYER) == 0; /* `cordon stop` ended it */
    if (!said && r->status != FLOW_OK && (r->status != FLOW_ERROR || by_stop)) {
        snprintf(line, sizeof line, "%s: %s", flow_status_name(r->status), r->message);
        result_complain("cordon", line);
    }
}

static int find_programs(struct flow_request *req, char *nest, char *python, size_t size,
                         struct err *err)
{
    int r = here_proc(err); /* gate, audit and jail identify processes by /proc */
    if (r == 0)
        r = programs_find("cordon-nest", nest, size, err);
    if (r == 0 && (req->kind != FLOW_EXEC || req->judged_by))
        r = programs_find(language_default()->worker, python, size, err);
    req->nest = nest;
    req->python = python;
    req->find = programs_find;
    req->stop = jail_options_stop_fd();
    return r;
}

/* A missing program of ours is a refusal like any other. */
static int run_request(struct flow_request *req, int found, struct flow_result *result,
                       struct err *err)
{
    if (found == 0)
        return flow_run(req, result, err);
    flow_result_init(result);
    flow_result_refuse(result, err);
    return 0;
}

/* The keys of a report (check/report.h) where there is none: nothing is known to be safe. */
static int unjudged_json(const struct flow_result *result, struct buf *out)
{
    struct jsonw j = {.out = out};
    jsonw_open(&j, NULL, '{');
    jsonw_string(&j, "status", flow_status_name(result->status));
    jsonw_string(&j, "layer", result->layer);
    jsonw_bool(&j, "is_safe", false);
    jsonw_string(&j, "risk_level", "high");
    jsonw_open(&j, "blocked_operations", '[');
    jsonw_close(&j, ']');
    jsonw_string(&j, "message", result->message);
    jsonw_open(&j, "violations", '[');
    for (size_t i = 0; i < result->violation_count; i++) {
        const struct flow_violation *v = &result->violations[i];
        jsonw_open(&j, NULL, '{');
        jsonw_string(&j, "layer", v->layer);
        jsonw_string(&j, "rule", v->rule);
        jsonw_string(&j, "detail", v->detail);
        jsonw_null(&j, "operand");
        jsonw_null(&j, "line");
        jsonw_null(&j, "column");
        jsonw_string(&j, "hint", v->hint[0] ? v->hint : NULL);
        jsonw_close(&j, '}');
    }
    jsonw_close(&j, ']');
    jsonw_close(&j, '}');
    return j.bad < 0 ? j.bad : buf_str(out, "\n");
}

static void tell_unjudged(const char *who, bool json, const struct flow_result *result)
{
    struct buf out;
    buf_init(&out, MIB);
    if (json && unjudged_json(result, &out) == 0)
        (void)!fwrite(out.data, 1, out.len, stdout);
    result_complain(who, result->message);
    buf_done(&out);
}

int result_check(const char *who, struct flow_request *req, bool json, struct err *err)
{
    char nest[4096], python[4096];
    struct flow_result result;
    req->input = -1;
    int r = find_programs(req, nest, python, sizeof nest, err);
    r = run_request(req, r, &result, err);
    if (r == 0) {
        const int signal = result.judged ? 0 : exits_signal(req->stop);
        r = exits_say_signal(&result, signal) ? exits_status(&result, signal)
                                              : exits_verdict(result.status);
        if (!result.judged)
            tell_unjudged(who, json, &result);
    }
    flow_result_done(&result);
    fd_close(req->stop);
    return r;
}

int result_unjudged(const char *who, bool json, const struct err *err)
{
    struct flow_result result;
    if (!is_refusal(err)) {
        result_complain(who, err->msg);
        return EXIT_USAGE;
    }
    flow_result_init(&result);
    flow_result_refuse(&result, err);
    tell_unjudged(who, json, &result);
    flow_result_done(&result);
    return EXIT_USAGE;
}

/* For a person who wonders why nothing happens. */
static void tell_waiting(const struct gate_event *e)
{
    char line[400];
    if (e->kind == GATE_EVENT_WAITING)
        snprintf(line, sizeof line, "waiting for a slot: %s",
                 e->detail ? e->detail : "all are taken");
    else if (e->kind == GATE_EVENT_APPROVAL_ASKED)
        snprintf(line, sizeof line, "waiting for approval %s: cordon approve show %s", e->subject,
                 e->subject);
    else
        return;
    result_note("cordon", line);
}

static void tell_alert(const char *alert)
{
    char line[400];
    snprintf(line, sizeof line, "alert: %.300s; cordon audit anomalies tells more", alert);
    result_complain("cordon", line);
}

int result_open_gate(struct flow_context *context, bool json, struct err *err)
{
    char approvals[4096], ask[4096];
    struct err none = ERR_INIT;
    bool found = programs_find("cordon-approvals", approvals, sizeof approvals, &none) == 0;
    bool asks = programs_find("cordon-ask", ask, sizeof ask, &none) == 0;
    if (as_event && !context->brief) /* who does not wait is told by the refusal */
        context->notice = events_progress;
    else if (!json && !context->brief)
        context->notice = tell_waiting;
    context->announce = tell_alert;
    return flow_context_open_gate(context, found ? approvals : NULL, asks ? ask : NULL, err);
}

void result_ask(struct flow_request *req, const struct jail_options *o)
{
    req->role = o->role;
    req->served = o->served;
    req->context->brief = o->no_wait;
    req->wait_ms = o->no_wait ? 0 : SLOT_WAIT_MS;
    req->approval_wait_ms = o->no_wait ? 0 : req->context->policy->approval.expiry_ms;
}

int result_rules(struct flow_request *req, struct output_rules **ret, struct err *err)
{
    struct output_internal internal[LIMIT_BINDS + 3];
    char state[STATE_PATH_MAX];
    struct err none = ERR_INIT;
    size_t n = 0;
    if (state_path(state, sizeof state, &none) == 0)
        internal[n++] = (struct output_internal){state, "/STATE"};
    internal[n++] = (struct output_internal){JAIL_OWN "/workspace", "/workspace"};
    internal[n++] = (struct output_internal){JAIL_OWN "/tmp", "/tmp"};
    for (size_t i = 0; i < req->spec.nbinds; i++)
        if (req->spec.binds[i].moved) /* the program knows it by its slot in the jail */
            internal[n++] =
                (struct output_internal){req->spec.binds[i].source, req->spec.binds[i].dest};
    return output_rules_for(req->context->policy, (const char *const *)environ, req->spec.env,
                            req->spec.envc, internal, n, ret, err);
}

enum output_escape result_escape(const struct flow_request *req, const struct jail_options *o)
{
    if (o->escape)
        return strcmp(o->escape, "html") == 0 ? OUTPUT_ESCAPE_HTML : OUTPUT_ESCAPE_NONE;
    return output_escape_for(req->context->policy, req->profile);
}

/* What was not shown as it came; into a pipe it goes as the program wrote it, like its output. */
static void clean_words(const struct flow_request *req, enum output_escape escape,
                        struct flow_result *r)
{
    const struct policy *p = req->context->policy;
    if (req->rules)
        flow_result_clean(r, req->rules, escape,
                          req->profile && req->profile->guards ? p->output.guarded_cap
                                                               : p->sessions.output);
}

static void print_plain(const struct flow_request *req, struct reader *reader, bool ended,
                        struct flow_result *r)
{
    reader_rest(reader);
    clean_words(req, OUTPUT_ESCAPE_NONE, r);
    if (!reader->gone)
        result_print_value(r);
    result_print_text(r);
    if (ended && r->status == FLOW_ERROR) /* which is otherwise the program's affair */
        result_complain("cordon", r->message);
}

static int print_object(const char *who, const struct flow_request *req, struct events *events,
                        struct flow_result *r)
{
    if (as_event) {
        events_rest(events, r);
        clean_words(req, req->escape, r);
        if (req->escape == OUTPUT_ESCAPE_NONE)
            flow_result_markup(r);
    }
    if (result_print_json(r) == 0)
        return 0;
    result_complain(who, "no memory for the result");
    return ERR_MEMORY;
}

#define TOLD_PACKAGES "told-packages" /* in the state folder: the note below was given */

/* Whether it is to be told now that large packages can be kept loaded: once a state folder. Asked before the run, since
 * root may be given up in it. */
static bool packages_note_due(const struct flow_request *req)
{
    static const char *const large[] = {"pandas", "matplotlib"};
    char state[STATE_PATH_MAX], path[STATE_PATH_MAX + sizeof TOLD_PACKAGES + 1];
    struct err none = ERR_INIT;
    bool named = false;
    for (size_t i = 0; i < sizeof large / sizeof *large && req->source; i++)
        named = named || memmem(req->source, req->source_len, large[i], strlen(large[i]));
    if (!named || req->kind != FLOW_RUN || req->profile->guards ||
        state_path(state, sizeof state, &none) < 0)
        return false;
    snprintf(path, sizeof path, "%s/" TOLD_PACKAGES, state);
    FD_AUTO fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    return fd >= 0;
}

/* What the program is given, and where its files go. *RET_IN and *RET_OUT stay open while it runs. */
static int open_files(struct flow_request *req, const struct jail_options *o, int *ret_in,
                      int *ret_out, struct err *err)
{
    int r = jail_options_open_input(o->input, ret_in, err);
    if (r == 0)
        r = jail_options_open_out(o, &req->spec, req->context->policy, ret_out, err);
    req->input = *ret_in;
    req->out = *ret_out;
    req->out_name = o->out;
    req->replace = o->replace;
    req->once = !req->keep && !o->out; /* who keeps files for root stays root */
    return r;
}

/* Everything about it; gives the exit status. NOTE: packages_note_due. */
static int tell_result(const char *who, const struct flow_request *req, bool json, bool note,
                       struct reader *reader, struct events *events, struct flow_result *result)
{
    const int signal = exits_signal(req->stop);
    const bool ended = exits_say_signal(result, signal);
    int r = exits_status(result, reader->gone || events->gone ? SIGPIPE : signal);
    if (!json)
        print_plain(req, reader, ended, result);
    else if (print_object(who, req, events, result) < 0)
        r = EXIT_FAILED;
    if (note && result->ran && !result->warm)
        result_note("cordon", "loading pandas or matplotlib takes seconds a run; `cordon pool "
                              "start --profile standard --packages` keeps them loaded");
    return r == EXIT_DONE && result->unsaved ? EXIT_FAILED : r;
}

int result_run(const char *who, struct flow_request *req, const struct jail_options *o, bool json,
               struct err *err)
{
    char nest[4096], python[4096];
    struct reader reader;
    struct events events = {0};
    struct flow_result result;
    struct output_rules *rules = NULL;
    FD_AUTO in = -1, out = -1;
    int r = open_files(req, o, &in, &out, err);
    if (r < 0)
        return r;
    req->task = o->task;
    reader_init(&reader, req->spec.limits.output, OUTPUT_BYTES);
    r = find_programs(req, nest, python, sizeof nest, err);
    result_ask(req, o);
    if (r == 0)
        r = result_open_gate(req->context, json, err);
    if (r == 0 && (json || reader_cleans(&reader))) {
        rules = ready_rules(req->context);
        r = rules ? 0 : result_rules(req, &rules, err);
    }
    reader_rules(&reader, rules);
    req->rules = rules;
    req->escape = result_escape(req, o);
    if (as_event)
        events_init(&events, req, OUTPUT_BYTES);
    if (!json) {
        req->live = reader_sink(&reader);
        req->live_gone = &reader.gone;
    }
    const bool note = r == 0 && !json && packages_note_due(req);
    r = run_request(req, r, &result, err);
    if (r == 0)
        r = tell_result(who, req, json, note, &reader, &events, &result);
    if (r >= 0 && !req->keep)
        ready_done(r); /* what is left is to close what was open */
    flow_result_done(&result);
    fd_close(req->stop);
    events_done(&events);
    reader_done(&reader);
    output_rules_free(rules);
    return r;
}
