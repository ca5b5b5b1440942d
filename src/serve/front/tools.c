/* SPDX-License-Identifier: Apache-2.0 */
/* The tools: few, and flat, because clients drop a tool whose schema has unions or references. Every argument is checked
 * here, by the same row that its schema is written from, and what a result has is a row, too. Clients send numbers, truth values and objects as texts, so these
 * are read from a text, too; `code` never is anything but what was sent. No argument names a profile, a role, a policy or a
 * folder: those are the operator's. */
#include "serve/front/inside.h"

#include "base/units.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a run comes to; docs/run.md has the rest of its members. */
#define RUN_MEMBERS                                                                                \
    {"status", "string", true,                                                                     \
     "ok, error, blocked, denied, timeout, memory, output, crashed, refused; running: see "        \
     "job_id"},                                                                                    \
        {"stdout", "string", false, "what it printed"},                                            \
        {"stderr", "string", false, "what it printed there"},                                      \
        {"truncated", "boolean", false, "whether output was cut"},                                 \
        {"violations", "array", false, "what was refused: layer, rule, detail, line, hint"},       \
        {"job_id", "string", false, "for wait_job, where it still runs"},                          \
    {                                                                                              \
        "elapsed_ms", "integer", false, "how long it has been running"                             \
    }

enum { CODE, LANGUAGE, SESSION_ID, TIMEOUT_MS, MEMORY_MB, MAX_OUTPUT };
enum { ACTION, OF_SESSION, WORKSPACE, OF_LANGUAGE };
enum { JOB_ID, CANCEL };

static void execute_code(struct serve_front *f, const struct serve_reply *to, const char *token,
                         const struct serve_value *v);
static void check_code(struct serve_front *f, const struct serve_reply *to, const char *token,
                       const struct serve_value *v);
static void session(struct serve_front *f, const struct serve_reply *to, const char *token,
                    const struct serve_value *v);
static void wait_job(struct serve_front *f, const struct serve_reply *to, const char *token,
                     const struct serve_value *v);

/* Those that this build has workers for, with blanks between them. */
static char languages[64];

static const struct serve_tool tools[] = {
    {.name = "execute_code",
     .title = "Run code",
     .description =
         "Runs a program in a jail and returns its output. It is Python, unless language or a "
         "fence "
         "says otherwise. There is no network, and a run without session_id starts from nothing "
         "and "
         "keeps nothing. The value of the last expression is returned as `value`. What is refused "
         "names its rule and what to write instead.",
     .args = {{"code", SERVE_ARG_TEXT, true, NULL, "the program"},
              {"language", SERVE_ARG_WORD, false, languages,
               "its language; left out, a fence tells, else it is python; a session has its own"},
              {"session_id", SERVE_ARG_TEXT, false, NULL,
               "a session of the session tool: its variables and files are there"},
              {"timeout_ms", SERVE_ARG_COUNT, false, NULL,
               "less time than the server gives; more is cut to that"},
              {"memory_mb", SERVE_ARG_COUNT, false, NULL,
               "less memory than the server gives; not with session_id"},
              {"max_output_chars", SERVE_ARG_COUNT, false, NULL,
               "less of each output stream than the server gives"}},
     .output = {RUN_MEMBERS},
     .call = execute_code},
    {.name = "check_code",
     .title = "Judge code",
     .description = "Judges a program by the rules that execute_code would run it under, without "
                    "running it. Each finding has its line, its rule and what to write instead.",
     .args = {{"code", SERVE_ARG_TEXT, true, NULL, "the program"},
              {"language", SERVE_ARG_WORD, false, languages,
               "its language; left out, a fence tells, else it is python"}},
     .output = {{"status", "string", true, "ok or blocked; denied, refused: there is no verdict"},
                {"is_safe", "boolean", false, "whether it would run"},
                {"message", "string", false, "the verdict in a sentence"},
                {"violations", "array", false, "findings: rule, detail, line, column, hint"}},
     .read_only = true,
     .idempotent = true,
     .call = check_code},
    {.name = "eval_expression",
     .title = "Evaluate a condition",
     .description =
         "Evaluates one expression of a small, safe condition language (Python's operators over "
         "numbers, strings, booleans and None; no calls) over a context: ctx['key'] reads a member "
         "of it.",
     .args =
         {{"expression", SERVE_ARG_TEXT, true, NULL,
           "such as ctx['load'] > 0.5 and ctx['mode'] == 'auto'"},
          {"context", SERVE_ARG_JSON, false, NULL,
           "an object whose members ctx['key'] reads; as a text, integers of any size are exact"}},
     .output = {{"value", NULL, true, "the value"},
                {"type", NULL, true, "int, float, str, bool or None"},
                {"error", NULL, true, "null, or type, message, line and column"}},
     .read_only = true,
     .idempotent = true,
     .call = serve_evaluate},
    {.name = "session",
     .title = "Sessions",
     .description =
         "Interpreters that stay between calls of execute_code. new makes one and returns its "
         "session_id, a secret that only this client has; fork makes a second one with the same "
         "variables and files; close ends one; interrupt raises KeyboardInterrupt in its call, "
         "Interrupt in other languages; "
         "list "
         "tells those of this client. A session ends after 30 minutes without a call, and with the "
         "connection.",
     .args = {{"action", SERVE_ARG_WORD, true, "new fork close list interrupt", "what to do"},
              {"session_id", SERVE_ARG_TEXT, false, NULL, "for fork, close and interrupt"},
              {"workspace", SERVE_ARG_TEXT, false, NULL,
               "for new: files that outlive the session, with snapshots; one that this server "
               "gives"},
              {"language", SERVE_ARG_WORD, false, languages,
               "for new: what it runs, python where it is left out"}},
     .output = {{"action", "string", false, "what was done"},
                {"session_id", "string", false, "the session"},
                {"expires_in_s", "integer", false, "it ends after so long without a call"},
                {"sessions", "array", false, "of list: session_id, calls, idle_s, expires_in_s"}},
     .destructive = true,
     .call = session},
    {.name = "wait_job",
     .title = "Wait for a run",
     .description =
         "Waits for a run that was answered with a job_id and returns its result, or, where that "
         "takes long, what it printed so far. The result is kept for 10 minutes after its end.",
     .args = {{"job_id", SERVE_ARG_TEXT, true, NULL, "of an earlier answer"},
              {"cancel", SERVE_ARG_FLAG, false, NULL,
               "end the run instead of waiting for its end"}},
     .output = {RUN_MEMBERS},
     .call = wait_job},
};

void serve_tools_prepare(void)
{
    const char *name;
    size_t at = 0;
    for (uint64_t i = 1; (name = serve_language(i)) && at < sizeof languages; i++)
        at +=
            (size_t)snprintf(languages + at, sizeof languages - at, "%s%s", i > 1 ? " " : "", name);
    base_assert(at < sizeof languages);
}

/* Those for files come before the last one, wait_job; the one for approvals is behind it. */
const struct serve_tool *serve_tools(const struct serve_front *f, size_t i)
{
    const size_t own = sizeof tools / sizeof *tools, first = own - 1,
                 all = own + serve_tools_files_count;
    return i < first                             ? &tools[i]
           : i < first + serve_tools_files_count ? &serve_tools_files[i - first]
           : i < all                             ? &tools[i - serve_tools_files_count]
           : i == all && f->config.approves      ? &serve_tools_approvals
                                                 : NULL;
}

/* ---- the list ---- */

static void write_argument(struct jsonw *j, const struct serve_arg *a)
{
    static const char *const types[] = {
        [SERVE_ARG_TEXT] = "string",    [SERVE_ARG_NAME] = "string",  [SERVE_ARG_COUNT] = "integer",
        [SERVE_ARG_OFFSET] = "integer", [SERVE_ARG_FLAG] = "boolean", [SERVE_ARG_WORD] = "string",
        [SERVE_ARG_JSON] = "object"};
    jsonw_open(j, a->name, '{');
    jsonw_string(j, "type", types[a->kind]);
    jsonw_string(j, "description", a->text);
    if (a->kind == SERVE_ARG_COUNT || a->kind == SERVE_ARG_OFFSET)
        jsonw_int(j, "minimum", a->kind == SERVE_ARG_COUNT);
    if (a->kind == SERVE_ARG_WORD) {
        jsonw_open(j, "enum", '[');
        for (const char *w = a->words; *w;) {
            const size_t n = strcspn(w, " ");
            jsonw_bytes(j, NULL, w, n);
            w += n + (w[n] == ' ');
        }
        jsonw_close(j, ']');
    }
    jsonw_close(j, '}');
}

static void write_input(struct jsonw *j, const struct serve_tool *t)
{
    jsonw_open(j, "inputSchema", '{');
    jsonw_string(j, "type", "object");
    jsonw_open(j, "properties", '{');
    for (size_t i = 0; i < SERVE_ARGS && t->args[i].name; i++)
        write_argument(j, &t->args[i]);
    jsonw_close(j, '}');
    jsonw_open(j, "required", '[');
    for (size_t i = 0; i < SERVE_ARGS && t->args[i].name; i++)
        if (t->args[i].required)
            jsonw_string(j, NULL, t->args[i].name);
    jsonw_close(j, ']');
    jsonw_bool(j, "additionalProperties", false);
    jsonw_close(j, '}');
}

static void write_output(struct jsonw *j, const struct serve_tool *t)
{
    jsonw_open(j, "outputSchema", '{');
    jsonw_string(j, "type", "object");
    jsonw_open(j, "properties", '{');
    for (size_t i = 0; i < SERVE_MEMBERS && t->output[i].name; i++) {
        jsonw_open(j, t->output[i].name, '{');
        if (t->output[i].type)
            jsonw_string(j, "type", t->output[i].type);
        jsonw_string(j, "description", t->output[i].text);
        jsonw_close(j, '}');
    }
    jsonw_close(j, '}');
    jsonw_open(j, "required", '[');
    for (size_t i = 0; i < SERVE_MEMBERS && t->output[i].name; i++)
        if (t->output[i].required)
            jsonw_string(j, NULL, t->output[i].name);
    jsonw_close(j, ']');
    jsonw_close(j, '}');
}

/* What this server gives, where a model decides what to ask for. */
static void write_description(const struct serve_front *f, struct jsonw *j,
                              const struct serve_tool *t)
{
    char text[1800], ms[UNITS_TEXT], bytes[UNITS_TEXT], answer[UNITS_TEXT];
    const struct serve_limits *l = &f->config.limits;
    units_millis_text(l->timeout_ms, ms);
    units_bytes_text(l->memory, bytes);
    units_millis_text(f->config.answer_ms, answer);
    if (t->call == execute_code)
        snprintf(text, sizeof text,
                 "%s Rules: profile %.40s. Limits: %s, %s of memory, %llu characters of each "
                 "stream. A run that takes longer than %s is answered with a job_id for wait_job.",
                 t->description, f->config.profile[0] ? f->config.profile : "of the policy", ms,
                 bytes, (unsigned long long)l->output, answer);
    if (t->call == session)
        snprintf(text, sizeof text, "%s Workspaces that this server gives: %.600s.", t->description,
                 f->config.workspaces && f->config.workspaces[0] ? f->config.workspaces : "none");
    jsonw_string(j, "description",
                 t->call == execute_code || t->call == session ? text : t->description);
}

void serve_tools_write(const struct serve_front *f, struct jsonw *j, enum serve_version v)
{
    jsonw_open(j, "tools", '[');
    const struct serve_tool *t;
    for (size_t i = 0; (t = serve_tools(f, i)); i++) {
        jsonw_open(j, NULL, '{');
        jsonw_string(j, "name", t->name);
        if (v >= SERVE_2025_06_18)
            jsonw_string(j, "title", t->title);
        write_description(f, j, t);
        write_input(j, t);
        if (v >= SERVE_2025_06_18)
            write_output(j, t);
        if (v >= SERVE_2025_03_26) {
            jsonw_open(j, "annotations", '{');
            jsonw_string(j, "title", t->title);
            jsonw_bool(j, "readOnlyHint", t->read_only);
            jsonw_bool(j, "destructiveHint", t->destructive);
            jsonw_bool(j, "idempotentHint", t->idempotent);
            jsonw_bool(j, "openWorldHint", false);
            jsonw_close(j, '}');
        }
        jsonw_close(j, '}');
    }
    jsonw_close(j, ']');
}

/* ---- the tools ---- */

/* What a client asked for, and a note where the server gives less. */
static uint64_t asked(const struct serve_value *v, uint64_t unit, uint64_t given, const char *name,
                      char note[200])
{
    const size_t have = strlen(note);
    if (!v->given)
        return 0;
    if (v->number <= given / unit)
        return v->number * unit;
    snprintf(note + have, 200 - have, "%s%s is more than this server gives: %llu holds",
             have ? "; " : "", name, (unsigned long long)(given / unit));
    return given;
}

bool serve_tools_handle(struct serve_front *f, const struct serve_reply *to,
                        const struct serve_value *v, enum serve_handle kind, const char *name,
                        char out[SERVE_HANDLE + 1])
{
    char why[200];
    if (v->given && v->len == SERVE_HANDLE) {
        memcpy(out, v->text, SERVE_HANDLE);
        out[SERVE_HANDLE] = 0;
        if (serve_handle_good(kind, out))
            return true;
    }
    snprintf(why, sizeof why, v->given ? "%s: there is no such %s%s" : "%s is missing", name,
             kind == SERVE_HANDLE_JOB ? "job" : "session",
             kind == SERVE_HANDLE_JOB ? "" : "; session(action=new) makes one");
    serve_reply_bad_argument(f, to, why);
    out[0] = 0;
    return false;
}

/* 0: none is named, and the code itself may tell: a fence or a #! line. */
static uint64_t language_of(const struct serve_value *v)
{
    const char *name;
    for (uint64_t n = 1; v->given && (name = serve_language(n)); n++)
        if (strcmp(name, v->text) == 0)
            return n;
    return 0;
}

static void execute_code(struct serve_front *f, const struct serve_reply *to, const char *token,
                         const struct serve_value *v)
{
    const struct serve_limits *l = &f->config.limits;
    char note[200] = "";
    struct serve_request q = {.verb = v[SESSION_ID].given ? SERVE_SESSION_RUN : SERVE_RUN};
    const char *why = v[MEMORY_MB].given && v[SESSION_ID].given
                          ? "memory_mb: a session has the memory that it was made with"
                      : v[MEMORY_MB].given && v[MEMORY_MB].number < LIMIT_SERVE_MEMORY_MB
                          ? "memory_mb must be 16 or more: the interpreter does not fit into less"
                          : NULL;
    if (why) {
        serve_reply_bad_argument(f, to, why);
        return;
    }
    if (v[SESSION_ID].given &&
        !serve_tools_handle(f, to, &v[SESSION_ID], SERVE_HANDLE_SESSION, "session_id", q.handle))
        return;
    q.limits.timeout_ms = asked(&v[TIMEOUT_MS], 1, l->timeout_ms, "timeout_ms", note);
    q.limits.memory = asked(&v[MEMORY_MB], MIB, l->memory, "memory_mb", note);
    q.limits.output = asked(&v[MAX_OUTPUT], 1, l->output, "max_output_chars", note);
    q.language = v[SESSION_ID].given ? 0 : language_of(&v[LANGUAGE]);
    /* a byte more than any profile takes says that it is too long */
    q.body = v[CODE].len > LIMIT_SOURCE ? LIMIT_SOURCE + 1 : v[CODE].len;
    if (!serve_approval_resume(f, to, token, &q, v[CODE].text))
        serve_calls_start(f, to, token, &q, v[CODE].text, note);
}

static void check_code(struct serve_front *f, const struct serve_reply *to, const char *token,
                       const struct serve_value *v)
{
    const struct serve_request q = {.verb = SERVE_CHECK,
                                    .language = language_of(&v[LANGUAGE]),
                                    .body = v[CODE].len > LIMIT_SOURCE ? LIMIT_SOURCE + 1
                                                                       : v[CODE].len};
    serve_calls_start(f, to, token, &q, v[CODE].text, "");
}

static void session(struct serve_front *f, const struct serve_reply *to, const char *token,
                    const struct serve_value *v)
{
    static const struct {
        const char *word;
        enum serve_verb verb;
    } actions[] = {{"new", SERVE_SESSION_NEW},
                   {"fork", SERVE_SESSION_FORK},
                   {"close", SERVE_SESSION_CLOSE},
                   {"list", SERVE_SESSION_LIST},
                   {"interrupt", SERVE_SESSION_INTERRUPT}};
    struct serve_request q = {.verb = SERVE_SESSION_LIST};
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
        if (strcmp(actions[i].word, v[ACTION].text) == 0)
            q.verb = actions[i].verb;
    q.body = v[WORKSPACE].len;
    q.language = q.verb == SERVE_SESSION_NEW ? language_of(&v[OF_LANGUAGE]) : 0;
    if (serve_verb_handle(q.verb) == SERVE_HANDLE_NONE && v[OF_SESSION].given)
        serve_reply_bad_argument(f, to, "session_id: new and list take none");
    else if (v[WORKSPACE].given && (q.verb != SERVE_SESSION_NEW || q.body > SERVE_WORKSPACE))
        serve_reply_bad_argument(f, to,
                                 q.verb == SERVE_SESSION_NEW
                                     ? "workspace: it is too long to be the name of one"
                                     : "workspace: only new takes one");
    else if (v[OF_LANGUAGE].given && q.verb != SERVE_SESSION_NEW)
        serve_reply_bad_argument(f, to, "language: only new takes one");
    else if (serve_verb_handle(q.verb) == SERVE_HANDLE_NONE ||
             serve_tools_handle(f, to, &v[OF_SESSION], SERVE_HANDLE_SESSION, "session_id",
                                q.handle))
        serve_calls_start(f, to, token, &q, q.body ? v[WORKSPACE].text : "", "");
}

static void wait_job(struct serve_front *f, const struct serve_reply *to, const char *token,
                     const struct serve_value *v)
{
    struct serve_request q = {.verb = v[CANCEL].number ? SERVE_JOB_CANCEL : SERVE_JOB_WAIT};
    struct serve_reply waits = *to;
    waits.tasks = false; /* who waits for a job wants no task for it */
    to = &waits;
    if (serve_tools_handle(f, to, &v[JOB_ID], SERVE_HANDLE_JOB, "job_id", q.handle))
        serve_calls_start(f, to, token, &q, "", "");
}
