/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the front share: the state of a client, replies, calls, the table of tools.
 *
 * Takes:   messages that were parsed.
 * Gives:   replies.
 * Never:   is seen outside of the folder.
 * Runs in: cordon-front, contained; fuzz targets.
 */
#ifndef SERVE_FRONT_INSIDE_H
#define SERVE_FRONT_INSIDE_H

#include "base/jsonw.h"
#include "serve/front/front.h"

#include <jansson.h>

/* The revisions of the protocol, oldest first. The newest has no handshake: each message says which it is. */
#define SERVE_VERSIONS(X)                                                                          \
    X(2024_11_05, "2024-11-05")                                                                    \
    X(2025_03_26, "2025-03-26")                                                                    \
    X(2025_06_18, "2025-06-18")                                                                    \
    X(2025_11_25, "2025-11-25")                                                                    \
    X(2026_07_28, "2026-07-28")

enum serve_version {
#define X(name, text) SERVE_##name,
    SERVE_VERSIONS(X)
#undef X
        SERVE_VERSION_COUNT
};
const char *serve_version_name(enum serve_version v);
/* -1: none of ours. */
int serve_version_find(const char *name);

/* JSON-RPC's codes, and the protocol's own. */
enum {
    SERVE_PARSE_ERROR = -32700,
    SERVE_INVALID_REQUEST = -32600,
    SERVE_NO_METHOD = -32601,
    SERVE_INVALID_PARAMS = -32602,
    SERVE_INTERNAL = -32603,
    SERVE_HEADER_MISMATCH = -32020,
    SERVE_NO_CAPABILITY = -32021,
    SERVE_BAD_VERSION = -32022,
};

struct http_head;

/* Where replies go: the line of one client, or one response of HTTP. */
enum serve_put {
    SERVE_PUT_REPLY,  /* the last that is put */
    SERVE_PUT_NOTE,   /* a notification on the way to it */
    SERVE_PUT_NOTHING /* there will be no reply: the request was cancelled */
};
struct serve_sink {
    /* TEXT is one line of JSON without its newline, the caller's. */
    int (*put)(struct serve_sink *s, enum serve_put kind, const char *text, size_t len);
    const struct http_head *head; /* what HTTP says of the message; NULL: it has no headers */
    int code;                     /* of the last error that was put; 0: it was none */
};

/* A conversation: what its handshake settled, where there was one. */
struct serve_talk {
    enum serve_version legacy;
    bool opened;
    bool elicits, samples; /* what the client said that it can be asked */
    int log;               /* the least level that it is told: logging/setLevel */
};

/* Replies to an array of messages go out as one array, when the last one is there. */
struct serve_batch {
    struct serve_sink *sink;
    size_t waiting; /* replies that are to come, and one while the array is still read */
    struct buf text;
};

/* What of a task a reply tells; or that it is a resource and no tool's result, or nobody's. */
enum serve_task_part {
    SERVE_TASK_NONE,
    SERVE_TASK_GET,
    SERVE_TASK_ACK,
    SERVE_RESOURCE,
    SERVE_SILENT
};

/* To whom a reply goes, and in which words. */
struct serve_reply {
    char id[LIMIT_SERVE_ID + 1]; /* as JSON */
    enum serve_version version;
    struct serve_talk *talk;
    struct serve_sink *sink;
    struct serve_batch *batch; /* NULL: by itself */
    bool tasks;                /* the client takes a task for an answer */
    bool elicits;              /* the person at it can be asked */
    bool logs;                 /* messages are told, from the level LOG on */
    int log;
    enum serve_task_part part;
    char task[SERVE_HANDLE + 1]; /* that it is about */
};

/* A call of a tool that cordond works on. */
struct serve_call {
    bool used;
    uint64_t number;
    struct serve_reply to;
    enum serve_verb verb;
    char token[LIMIT_SERVE_ID + 1]; /* for progress, as JSON; empty: the client wants none */
    uint64_t progress;              /* the last that was told: it must grow */
    char note[200];                 /* what we changed in the call, for the text of its result */
    bool headed;                    /* the answer's head is here, its body comes */
    struct serve_answer answer;
    struct buf body;
    struct serve_request q; /* as it was asked, and its code, where a person may be asked for it */
    struct buf code, early; /* early: what it printed before any answer */
    char job[SERVE_HANDLE + 1]; /* that works on it; empty: not told */
    bool held, questioned;      /* CODE is there; the person was asked */
    int tries;                  /* of an answer to an approval, after the first */
};

/* A request that was answered with a job. */
#define SERVE_BECAME_JOBS 64
struct serve_became_job {
    const struct serve_talk *talk; /* NULL: none */
    uint64_t number;
    char id[LIMIT_SERVE_ID + 1];
};

/* A client that is written to line by line. */
struct serve_lines {
    struct serve_sink sink;
    struct buf *out;
};

/* What a person is asked about: the job that waits for the answer, and the gate's name for the question. */
#define SERVE_QUESTION_ID 24
struct serve_about {
    char job[SERVE_HANDLE + 1], approval[SERVE_QUESTION_ID];
};

/* A question to a client that is not answered yet. */
#define SERVE_ASKED 32
struct serve_asked;
typedef void serve_asked_fn(struct serve_front *f, const struct serve_asked *a, json_t *result);
struct serve_asked {
    bool used;
    char id[32];
    struct serve_reply to; /* the call that needs the answer */
    serve_asked_fn *done;
    const void *what; /* of whoever asked; it lives as long as the front */
    struct serve_about
        about;         /* of a question to a person: a copy, so that no other can take its place */
    uint64_t until_ns; /* an answer counts until then */
};

/* A word that a client of the newest revision has to come back with. */
#define SERVE_STATE  26 /* letters: 130 random bits */
#define SERVE_STATES 64
struct serve_state {
    char word[SERVE_STATE + 1];
    const void *what;
    unsigned round;
};

/* A question of the newest revision to the person at the client: the call that has to come back, and until when the word for
 * it counts. */
#define SERVE_QUESTIONS 32
struct serve_question {
    char word[SERVE_STATE + 1]; /* empty: used, or none was given */
    struct serve_about about;
    struct serve_request q;
    struct buf code;
    uint64_t until_ns;
};

/* A text that is written a piece at a time; BAD: the first error, sticks. */
struct serve_text {
    struct buf out;
    int bad;
};

struct serve_conformance_tasks;
struct serve_front {
    struct serve_front_config config;
    struct buf out, frames;
    struct serve_lines lines; /* the one client of a line; HTTP has its own */
    struct serve_talk talk;
    uint64_t numbers; /* the last that a call was given */
    struct serve_call calls[SERVE_PLACES];
    struct serve_became_job
        became_jobs[SERVE_BECAME_JOBS]; /* the last ones; a client that gives one up ends its job */
    unsigned next_became_job;
    char told[LIMIT_SERVE_JOBS][SERVE_HANDLE + 1]; /* jobs whose messages of the log were told */
    unsigned next_told;
    struct serve_asked asked[SERVE_ASKED];
    struct serve_state states[SERVE_STATES];
    unsigned next_state;
    struct serve_question questions[SERVE_QUESTIONS];
    unsigned next_question;
    json_t *params;                       /* of the call that is being taken; else NULL */
    struct serve_conformance_tasks *made; /* of the suite's tools */
    int bad;                              /* the first error of writing; sticks */
};

/* One message of a client. */
struct serve_message {
    struct serve_reply to;
    bool has_id, modern;
    const char *method;
    json_t *params; /* an object, or NULL */
    char token[LIMIT_SERVE_ID + 1];
};

/* asking.c: PARAMS is JSON. NULL: as many questions as there may be are not answered. */
struct serve_asked *serve_asking_start(struct serve_front *f, const struct serve_reply *to,
                                       const char *method, const char *params, serve_asked_fn *done,
                                       const void *what);
void serve_asking_answer(struct serve_front *f, const struct serve_talk *talk, json_t *message);
size_t serve_asking_count(const struct serve_front *f, const struct serve_sink *sink);
void serve_asking_drop(struct serve_front *f, const struct serve_talk *talk,
                       const struct serve_sink *sink);
/* What was asked for the call ID: it has ended, and no answer counts any more. */
void serve_asking_end(struct serve_front *f, const struct serve_talk *talk, const char *id);
/* A new word for WHAT; NULL: there are no random bytes. And whether WORD is one, for the first and only time. */
const char *serve_state_new(struct serve_front *f, const void *what, unsigned round);
bool serve_state_take(struct serve_front *f, const char *word, const void *what,
                      unsigned *ret_round);

/* tasks.c: the tasks extension. */
bool serve_tasks_known(const struct serve_message *m);
void serve_tasks_capability(struct jsonw *j);
/* The client did not say that it knows tasks, and has to. */
void serve_tasks_unknown(struct serve_front *f, const struct serve_reply *to);
void serve_tasks_write(struct jsonw *j, const char *id, const char *status, uint64_t age_ms);
void serve_tasks_created(struct serve_front *f, const struct serve_reply *to, const char *id,
                         uint64_t age_ms);
/* Whether the message, or the answer of cordond, was about a task, and is done with. */
bool serve_tasks_take(struct serve_front *f, struct serve_message *m);
bool serve_tasks_render(struct serve_front *f, struct serve_call *c);

/* conformance_tasks.c: NAME is a tool of it, or the method is one of tasks. */
bool serve_conformance_task(struct serve_front *f, struct serve_message *m, const char *name);

/* conformance.c, with --conformance alone: true where the message was its own. */
bool serve_conformance(struct serve_front *f, struct serve_message *m);
void serve_conformance_capabilities(struct jsonw *j, enum serve_version v);

/* reply.c */
struct serve_writing {
    struct buf text;
    struct jsonw j;
};
/* Opens the result object; with the newest revision it has its type and the server's name in it. */
void serve_reply_begin(struct serve_front *f, const struct serve_reply *to,
                       struct serve_writing *w);
void serve_reply_begin_as(struct serve_front *f, const struct serve_reply *to,
                          struct serve_writing *w, const char *type);
/* With DATA, JSON. */
void serve_reply_error_data(struct serve_front *f, const struct serve_reply *to, int code,
                            const char *message, const char *data);
void serve_reply_note(struct serve_front *f, const struct serve_reply *to, const char *method,
                      const char *params);
void serve_reply_end(struct serve_front *f, const struct serve_reply *to, struct serve_writing *w);
void serve_reply_error(struct serve_front *f, const struct serve_reply *to, int code,
                       const char *message);
/* A version that we do not speak: with those that we do. */
void serve_reply_bad_version(struct serve_front *f, const struct serve_reply *to,
                             const char *asked);
void serve_reply_server(struct serve_front *f, struct jsonw *j, const char *key,
                        enum serve_version v);
/* The result of a tool: STRUCTURED is JSON on one line, or NULL. */
void serve_reply_tool(struct serve_front *f, const struct serve_reply *to, const char *text,
                      size_t len, const char *structured, size_t structured_len, bool is_error);
/* The same with more BLOCKS of content behind the text, each with a comma before it. */
void serve_reply_blocks(struct serve_front *f, const struct serve_reply *to, const struct buf *text,
                        const struct buf *blocks, const char *structured, size_t structured_len,
                        bool is_error);
/* An argument is wrong: a tool's error where the revision says so, else the protocol's. */
void serve_reply_bad_argument(struct serve_front *f, const struct serve_reply *to, const char *why);
void serve_reply_progress(struct serve_front *f, struct serve_call *c, uint64_t ms);
struct serve_batch *serve_batch_new(struct serve_sink *sink);
/* One reply fewer is to come; the last one sends the array and frees it. */
void serve_batch_less(struct serve_front *f, struct serve_batch *b);

/* tools.c */
enum serve_arg_kind {
    SERVE_ARG_TEXT,
    SERVE_ARG_NAME, /* a text of at most SERVE_NAME bytes */
    SERVE_ARG_COUNT,
    SERVE_ARG_OFFSET, /* a count that may be 0 */
    SERVE_ARG_FLAG,
    SERVE_ARG_WORD,
    SERVE_ARG_JSON
};
struct serve_arg {
    const char *name;
    enum serve_arg_kind kind;
    bool required;
    const char *words; /* of SERVE_ARG_WORD, with spaces between them */
    const char *text;
};
#define SERVE_ARGS 6
#define SERVE_NAME 4096 /* all names of a tool together are within SERVE_WORDS */
/* What a result has; the rest of a run's members is in docs/run.md. */
struct serve_member {
    const char *name, *type; /* type NULL: any */
    bool required;
    const char *text;
};
#define SERVE_MEMBERS 8
struct serve_value {
    bool given;
    const char *text; /* TEXT, WORD; JSON: as it was written, where it came as a text */
    size_t len;
    uint64_t number; /* COUNT, FLAG */
    json_t *json;    /* JSON, where it came as an object; borrowed */
};
struct serve_tool {
    const char *name, *title, *description;
    struct serve_arg args[SERVE_ARGS];
    struct serve_member output[SERVE_MEMBERS];
    bool read_only, destructive, idempotent; /* none has an open world: there is no network */
    void (*call)(struct serve_front *f, const struct serve_reply *to, const char *token,
                 const struct serve_value *v);
};
/* The tool at place I; NULL: this server has not so many. */
const struct serve_tool *serve_tools(const struct serve_front *f, size_t i);
/* A handle of the right shape, or nothing, and the client was told: cordond knows whether it exists. */
bool serve_tools_handle(struct serve_front *f, const struct serve_reply *to,
                        const struct serve_value *v, enum serve_handle kind, const char *name,
                        char out[SERVE_HANDLE + 1]);

/* tools_files.c: the tools for files and snapshots. */
extern const struct serve_tool serve_tools_files[];
extern const size_t serve_tools_files_count;
/* `"tools": [...]`, as the revision has them. */
/* Before anything else of them: which languages there are. */
void serve_tools_prepare(void);
void serve_tools_write(const struct serve_front *f, struct jsonw *j, enum serve_version v);
/* False: WHY (of 300 bytes) says which argument and why. What is borrowed lies in ARGUMENTS. */
bool serve_tools_arguments(const struct serve_tool *t, json_t *arguments,
                           struct serve_value v[SERVE_ARGS], char *why);

/* tools_approvals.c: the tool for questions that others asked, where the policy has it. */
extern const struct serve_tool serve_tools_approvals;
/* Whether O is what `cordon approve served` printed; then T tells it. */
bool serve_render_approvals(struct serve_text *t, const json_t *o);

/* calls.c */
void serve_calls_start(struct serve_front *f, const struct serve_reply *to, const char *token,
                       const struct serve_request *q, const void *body, const char *note);
bool serve_calls_pending(const struct serve_front *f, const struct serve_talk *talk,
                         const char *id);
/* Also the job that was the answer. */
void serve_calls_cancel(struct serve_front *f, const struct serve_talk *talk, const char *id);
/* All calls of a conversation, or of a sink, without a word to anybody: who asked is gone. */
void serve_calls_drop(struct serve_front *f, const struct serve_talk *talk,
                      const struct serve_sink *sink);
size_t serve_calls_count(const struct serve_front *f, const struct serve_sink *sink);
/* The call is over for us: cordond goes on with it where it is kept. */
void serve_calls_leave(struct serve_front *f, struct serve_call *c);
/* Whether another call can be started. */
bool serve_calls_room(const struct serve_front *f, enum serve_verb verb);
/* What is said where none can. */
void serve_calls_full(struct serve_front *f, const struct serve_reply *to);

/* http_check.c: whole groups of four, padding at the end alone. False: it is no base64, or longer than OUT. */
bool serve_base64(const char *s, size_t len, char *out, size_t size, size_t *ret_len);

/* The newest revision says in headers what the body says, too. False: WHY (of 300 bytes) says where they
 * differ. */
bool serve_http_agrees(const struct http_head *q, const char *method, json_t *params, char *why);

/* The same for one header, NAME in small letters. */
bool serve_http_says(const struct http_head *q, const char *name, const char *body, char *why);

/* rpc.c */
#define SERVE_META "io.modelcontextprotocol/"
/* NULL: WHY (of 240 bytes) says what is wrong with it. */
json_t *serve_rpc_parse(const char *text, size_t len, char *why);
/* NULL: it is no string, or has a NUL in it, behind which a comparison would not look. */
const char *serve_rpc_text(const json_t *object, const char *key);
/* A string or an integer, as JSON; false: neither, or too long. */
bool serve_rpc_id(const json_t *v, char out[LIMIT_SERVE_ID + 1]);
/* The id of the request that TEXT, which is no message, was meant to be; null where that is not certain. */
void serve_rpc_whose(const char *text, size_t len, char id[LIMIT_SERVE_ID + 1]);
void serve_rpc_take(struct serve_front *f, struct serve_talk *talk, struct serve_sink *sink,
                    json_t *message);

/* render.c: the answer of cordond as the result of a tool. */
void serve_render(struct serve_front *f, struct serve_call *c);
/* A line of its text, as printf does; nothing behind one that did not fit. */
#define serve_text_add(t, ...)                                                                     \
    ((void)((t)->bad = (t)->bad ? (t)->bad : buf_printf(&(t)->out, __VA_ARGS__)))

/* The object that the runner printed last, as it stands there. */
const char *serve_render_last(const struct buf *body, size_t *ret_len);

/* A member of what a runner printed: "" and 0 where it is not there, or of another kind. */
static inline const char *serve_member_text(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

static inline long long serve_member_number(const json_t *o, const char *key)
{
    return (long long)json_integer_value(json_object_get(o, key));
}

/* render_beside.c: what the result of a run has beside its output. */
void serve_render_beside(struct serve_text *t, const json_t *o);

/* render_files.c: whether O is what `cordon session files` printed; then T tells it. */
bool serve_render_files(struct serve_text *t, const json_t *o);
/* Pictures and links of an answer, as more blocks of content: each with a comma before it. */
void serve_render_blocks(struct serve_text *blocks, const struct serve_call *c, const json_t *o);

/* approval.c: TEXT with every character that a reader does not see, or that moves others, written out. */
ERR_MUST_USE int serve_approval_visible(struct buf *out, const char *text, size_t len);
/* What waits for a person is asked of the person at the client, where policy and client have that. */
void serve_approval_look(struct serve_front *f, struct serve_call *c);
/* Whether the call came back with its answer: true, it is taken care of. */
bool serve_approval_resume(struct serve_front *f, const struct serve_reply *to, const char *token,
                           const struct serve_request *q, const char *code);
void serve_approval_forget(struct serve_front *f);

/* logs.c: what happened to breakers, as messages of a log, in the eras and at the levels that the client has them. */
void serve_logs_capability(struct jsonw *j);
/* The level of a request; false: it was answered with an error. */
bool serve_logs_level(struct serve_front *f, struct serve_message *m);
/* Whether the message set a level, and is done with. */
bool serve_logs_take(struct serve_front *f, struct serve_message *m);
void serve_logs_tell(struct serve_front *f, const struct serve_call *c);

/* resources.c: a file of a session by its address. */
#define SERVE_RESOURCE_SCHEME "cordon://"
bool serve_resources_take(struct serve_front *f, struct serve_message *m);
void serve_resources_capability(struct jsonw *j);
void serve_resources_render(struct serve_front *f, struct serve_call *c);
/* The address of PATH, which is /workspace/... */
int serve_resources_uri(struct buf *out, const char *session, const char *path);

/* http_figures.c: whether the answer of cordond was figures, and is done with. */
bool serve_figures_render(struct serve_front *f, struct serve_call *c);

/* evaluate.c */
void serve_evaluate(struct serve_front *f, const struct serve_reply *to, const char *token,
                    const struct serve_value *v);

#endif
