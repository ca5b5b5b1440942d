/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions that a model wrote, evaluated exactly as CPython would and as nothing else; a monitor that sees
 * when what a model writes has gone bad; and a client of `cordon serve`, which runs and judges programs that a model wrote. The
 * monitor and the client are the last parts, and have other rules than the rest.
 *
 * Takes:   a schema of keys, the text of a condition, contexts (values by key, JSON, or columns).
 *          The monitor: tokens of a generation.
 * Gives:   values, errors with CPython's class and wording, certificates, explanations; verdicts.
 * Never:   allocates, locks, reads files, calls back or keeps global state: all memory is the
 *          caller's, and every function may run in any thread on its own objects. The monitor and
 *          the client allocate; the client alone has descriptors and a process, and calls the callbacks that
 *          it is given; it starts no thread, installs no signal handler and keeps no global state.
 * Runs in: any process that links libcordon.
 */
#ifndef CORDON_H
#define CORDON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CORDON_API __attribute__((visibility("default")))

/* ---- limits: input beyond one of these is refused by its name ---- */
#define CORDON_SOURCE_MAX  65536u    /* bytes of one condition */
#define CORDON_NODES_MAX   32768u    /* instructions of one program */
#define CORDON_NESTING_MAX 200u      /* brackets inside each other, as in CPython */
#define CORDON_PENDING_MAX 1000u     /* operators that wait for their right operand */
#define CORDON_DIGITS_MAX  4300u     /* digits of a decimal literal, as in CPython */
#define CORDON_BITS_MAX    262144u   /* bits of one integer, read or computed */
#define CORDON_STRING_MAX  1048576u  /* bytes of one string, read or computed */
#define CORDON_WORK_MAX    67108864u /* word operations of one evaluation */
#define CORDON_SCRATCH_MAX 67108864u /* bytes of results of one evaluation */
#define CORDON_KEYS_MAX    1024u     /* keys of a schema */
#define CORDON_ENUM_MAX    4096u     /* enum values of a schema */
#define CORDON_CONTEXT_MAX 16777216u /* bytes of one JSON context or schema */
#define CORDON_JSON_DEPTH  256u      /* nesting of a JSON text */

enum cordon_type { CORDON_NONE, CORDON_BOOL, CORDON_INT, CORDON_FLOAT, CORDON_STR };

/* What came of a call. The first is success; UNSAFE is a refusal at compile time; the next five are
 * what an evaluation can raise; the rest are the caller's. */
enum cordon_status {
    CORDON_OK = 0,
    CORDON_UNSAFE,        /* UnsafeExpressionError */
    CORDON_TYPE_ERROR,    /* TypeError */
    CORDON_ZERO_DIVISION, /* ZeroDivisionError */
    CORDON_OVERFLOW,      /* OverflowError */
    CORDON_KEY_ERROR,     /* KeyError */
    CORDON_LIMIT,         /* LimitError: one of the limits above */
    CORDON_CONTEXT,  /* ContextError: a context that is not JSON or does not follow its schema */
    CORDON_SCHEMA,   /* SchemaError: a schema that makes no sense */
    CORDON_BYTECODE, /* BytecodeError: a saved program that does not verify */
    CORDON_MEMORY,   /* MemoryError: the memory given is smaller than the _size() function says */
    CORDON_UNREAD,   /* UnreadError: a slot set by cordon_ctx_unread was reached */
};

#define CORDON_MESSAGE_MAX 2048
struct cordon_error {
    enum cordon_status status;
    unsigned line, column, end_column; /* from 1, in characters; 0 where there is no place */
    size_t offset, end;                /* the same in bytes of the source */
    char message[CORDON_MESSAGE_MAX];  /* CPython's words, or a refusal's */
    char hint[320];                    /* what to write instead, or empty */
};

CORDON_API const char *cordon_class(enum cordon_status status); /* "TypeError" */
/* The source line with a caret under the place; like snprintf. Control characters are masked. */
CORDON_API size_t cordon_caret(const struct cordon_error *err, const char *source, size_t len,
                               char *out, size_t size);

/* ---- schema: the declared keys ---- */
struct cordon_schema;
CORDON_API extern const char cordon_schema_example[]; /* JSON: schemas/household.json */
CORDON_API size_t cordon_schema_size(size_t json_len);
CORDON_API int cordon_schema_read(const char *json, size_t len, void *mem, size_t mem_len,
                                  struct cordon_schema **ret_schema, struct cordon_error *err);
/* The same, and the members of one JSON context as further keys of any type: for an operator's own
 * contexts, never for one that a model wrote. MEM as for both lengths together. */
CORDON_API int cordon_schema_read_with(const char *json, size_t len, const char *context,
                                       size_t context_len, void *mem, size_t mem_len,
                                       struct cordon_schema **ret_schema, struct cordon_error *err);
CORDON_API size_t cordon_schema_count(const struct cordon_schema *s);
CORDON_API const char *cordon_schema_key(const struct cordon_schema *s, size_t slot,
                                         size_t *ret_len);
CORDON_API int cordon_schema_slot(const struct cordon_schema *s, const char *key,
                                  size_t len); /* -1 */
/* The paragraph for a model's prompt: keys, types, operators; like snprintf. */
CORDON_API size_t cordon_prompt(const struct cordon_schema *s, char *out, size_t size);

/* ---- programs ---- */
struct cordon_program;

/* What no run over a context that follows the schema exceeds. KeyError is not counted: it comes
 * only from CORDON_REQUIRE_KEYS and from required keys, where the context is at fault. */
struct cordon_certificate {
    uint8_t types;    /* 1 << enum cordon_type: what the value can be */
    uint16_t raises;  /* 1 << enum cordon_status: what it can raise */
    uint32_t steps;   /* instructions run; each at most once */
    uint32_t stack;   /* values held at once */
    uint32_t bits;    /* of the longest integer computed */
    uint32_t text;    /* bytes of the longest string computed */
    uint64_t work;    /* word operations */
    uint64_t scratch; /* bytes of the caller's scratch */
    bool conforming;  /* false only in a record of a run: the context broke the schema */
};

CORDON_API size_t cordon_compile_size(size_t source_len);
CORDON_API int cordon_compile(const struct cordon_schema *s, const char *source, size_t len,
                              void *mem, size_t mem_len, struct cordon_program **ret_program,
                              struct cordon_error *err);
/* The same verdict without a program to keep; MEM as for cordon_compile. */
CORDON_API int cordon_validate(const struct cordon_schema *s, const char *source, size_t len,
                               void *mem, size_t mem_len, struct cordon_error *err);
CORDON_API const struct cordon_certificate *cordon_certify(const struct cordon_program *p);
CORDON_API bool cordon_uses(const struct cordon_program *p, size_t slot);

/* Saved form: keys by name, so a program moves between schemas that declare them alike. Loading
 * verifies everything; a program that verifies is as safe as one compiled here. Like snprintf. */
CORDON_API size_t cordon_save(const struct cordon_program *p, void *out, size_t size);
CORDON_API size_t cordon_load_size(size_t saved_len);
CORDON_API int cordon_load(const struct cordon_schema *s, const void *saved, size_t len, void *mem,
                           size_t mem_len, struct cordon_program **ret_program,
                           struct cordon_error *err);

/* ---- contexts: one value a declared key; what is not set is None ---- */
struct cordon_ctx;
enum {
    CORDON_REQUIRE_KEYS = 1,
    CORDON_STRICT = 2
}; /* absence is KeyError; off-schema is an error */
CORDON_API size_t cordon_ctx_size(const struct cordon_schema *s);
CORDON_API struct cordon_ctx *cordon_ctx_init(void *mem, size_t mem_len,
                                              const struct cordon_schema *s,
                                              unsigned flags); /* NULL: mem too small */
CORDON_API void cordon_ctx_clear(struct cordon_ctx *c);
CORDON_API void cordon_ctx_none(struct cordon_ctx *c, size_t slot);
CORDON_API void cordon_ctx_bool(struct cordon_ctx *c, size_t slot, bool v);
CORDON_API void cordon_ctx_int(struct cordon_ctx *c, size_t slot, int64_t v);
CORDON_API void cordon_ctx_float(struct cordon_ctx *c, size_t slot, double v);
/* Borrowed, UTF-8; false if it is not, or is too long. */
CORDON_API bool cordon_ctx_str(struct cordon_ctx *c, size_t slot, const char *s, size_t len);
/* An integer of any size: 64-bit words, least significant first, borrowed; false if too long. */
CORDON_API bool cordon_ctx_big(struct cordon_ctx *c, size_t slot, const uint64_t *words,
                               size_t count, bool negative);
/* The context lacks the key: None, or KeyError where it is required. */
CORDON_API void cordon_ctx_absent(struct cordon_ctx *c, size_t slot);
/* The value is known only to the caller, who will be asked: for cordon_eval_lazy. */
CORDON_API void cordon_ctx_unread(struct cordon_ctx *c, size_t slot);
/* A value that conditions cannot read (a list, an object); TypeError only if it is read. */
CORDON_API void cordon_ctx_foreign(struct cordon_ctx *c, size_t slot, bool is_list);
/* Reads an object. TEXT is borrowed; what needs decoding goes to MEM (2 * len + 64 bytes will do).
 */
CORDON_API int cordon_ctx_json(struct cordon_ctx *c, const char *text, size_t len, void *mem,
                               size_t mem_len, struct cordon_error *err);
CORDON_API bool cordon_ctx_conforms(const struct cordon_ctx *c);

/* ---- evaluation ---- */
struct cordon_value {
    enum cordon_type type;
    bool negative;         /* of a big integer */
    int64_t i;             /* CORDON_BOOL, CORDON_INT when words is NULL */
    double f;              /* CORDON_FLOAT */
    const char *s;         /* CORDON_STR, in the program, the context or the scratch */
    const uint64_t *words; /* CORDON_INT past 64 bits */
    size_t len;            /* bytes of s, count of words */
};

/* Enough for any run, also over a context that does not follow its schema; at most CORDON_SCRATCH_MAX
 * and a little. The pages of it that a run does not need are not touched. */
CORDON_API size_t cordon_scratch_size(const struct cordon_program *p);
CORDON_API int cordon_eval(const struct cordon_program *p, const struct cordon_ctx *c,
                           void *scratch, size_t scratch_len, struct cordon_value *ret_value,
                           struct cordon_error *err);
/* The same where values are fetched only when the condition reaches them: at a slot that is unread it
 * returns CORDON_UNREAD and says which. Set that one and call again, RESUME true and the scratch
 * untouched: it goes on where it stopped. Every slot is asked for at most once. */
CORDON_API int cordon_eval_lazy(const struct cordon_program *p, const struct cordon_ctx *c,
                                void *scratch, size_t scratch_len, bool resume, size_t *ret_slot,
                                struct cordon_value *ret_value, struct cordon_error *err);
/* The truth of the value: 1, 0, or -1 where it raises. The fast way. */
CORDON_API int cordon_test(const struct cordon_program *p, const struct cordon_ctx *c,
                           void *scratch, size_t scratch_len);
/* What an evaluation costs, counted while it runs: every field, steps and stack too. */
CORDON_API int cordon_measure(const struct cordon_program *p, const struct cordon_ctx *c,
                              void *scratch, size_t scratch_len,
                              struct cordon_certificate *ret_cost);

/* repr() of the value, or its JSON form (inf and nan as strings); like snprintf. WORK: at least
 * cordon_print_size() bytes for integers past 64 bits, else NULL. */
CORDON_API size_t cordon_print_size(const struct cordon_value *v);
CORDON_API size_t cordon_repr(const struct cordon_value *v, void *work, char *out, size_t size);
CORDON_API size_t cordon_json(const struct cordon_value *v, void *work, char *out, size_t size);

/* ---- batch: one condition over columns ---- */
enum cordon_column_kind {
    CORDON_COL_ABSENT, /* None in every row */
    CORDON_COL_FLOAT,  /* double */
    CORDON_COL_INT,    /* int64_t */
    CORDON_COL_BOOL,   /* uint8_t, 0 or 1 */
    CORDON_COL_DICT8,  /* codes into a dictionary of strings */
    CORDON_COL_DICT16,
    CORDON_COL_DICT32,
};
struct cordon_column {
    enum cordon_column_kind kind;
    const void *data;
    const uint64_t *valid;   /* bit per row, set where there is a value; NULL: everywhere */
    const char *const *dict; /* UTF-8 */
    const uint32_t *dict_len;
    uint32_t dict_count; /* a code past it is None */
};
CORDON_API size_t cordon_batch_size(const struct cordon_program *p);
/* COLUMNS has one entry a slot of the schema. Bit r of TRUTH: row r is true; of ERRORS: it raises
 * (then its truth bit is 0). Both have (rows + 63) / 64 words. */
CORDON_API int cordon_batch(const struct cordon_program *p, const struct cordon_column *columns,
                            size_t rows, void *mem, size_t mem_len, uint64_t *truth,
                            uint64_t *errors, struct cordon_error *err);
CORDON_API const char *cordon_batch_backend(void); /* "neon", "avx512", "avx2", "sse2", "scalar" */

/* ---- explain: the smallest set of leaves that forced the answer ----
 * A leaf that stands twice counts once. Then finding the smallest set is as hard as set cover: it is
 * searched for up to a fixed budget, past which the set is still enough but may not be the smallest. */
struct cordon_reason {
    size_t offset, end;        /* the leaf's text in the source */
    int truth;                 /* 1, 0, or -1: it raised */
    struct cordon_value value; /* of the leaf, unless it raised */
    enum cordon_status raised;
};
/* The keys that a reason reads, with their values, each once; returns how many there are. */
struct cordon_reading {
    size_t slot;
    struct cordon_value value;
    bool readable; /* false: a list, an object, or a missing key that is required */
};
CORDON_API size_t cordon_readings(const struct cordon_program *p, const struct cordon_ctx *c,
                                  const struct cordon_reason *reason, struct cordon_reading *out,
                                  size_t max);
CORDON_API size_t cordon_explain_size(const struct cordon_program *p);
/* Answers like cordon_test (-1 also when memory is short: then *ret_count is 0). */
CORDON_API int cordon_explain(const struct cordon_program *p, const struct cordon_ctx *c, void *mem,
                              size_t mem_len, const struct cordon_reason **ret_reasons,
                              size_t *ret_count);

/* ---- analysis: what holds for every context that follows the schema ---- */
enum cordon_finding_kind {
    CORDON_ALWAYS_TRUE = 1,
    CORDON_ALWAYS_FALSE,
    CORDON_ALWAYS_RAISES,
    CORDON_CONTRADICTION, /* this `and` cannot hold although its parts can */
    CORDON_TAUTOLOGY,     /* this `or` always holds although no part does */
    CORDON_UNREACHABLE,   /* this operand is never evaluated */
    CORDON_NOT_IN_DOMAIN, /* compared with a value its key never has */
};
struct cordon_finding {
    enum cordon_finding_kind kind;
    size_t offset, end;
    char message[256];
};
CORDON_API const char *cordon_finding_name(enum cordon_finding_kind kind); /* "always-true" */
CORDON_API size_t cordon_analyse_size(const struct cordon_program *p);
/* Returns how many findings there are; at most MAX are written, the most telling first. */
CORDON_API size_t cordon_analyse(const struct cordon_program *p, void *mem, size_t mem_len,
                                 struct cordon_finding *findings, size_t max);

#define CORDON_WHY_MAX 1200 /* bytes of a sentence that says why something was refused */

/* ---- monitor: a generation watched while it is written; docs/monitor.md ----
 * One monitor a generation, one call a token. It allocates when it is made and a few times while it grows to its bound (some
 * 5 MB); it reads no clock and no file, and keeps no text. One thread at a time uses a monitor. */
struct cordon_monitor;

enum cordon_abort_reason {
    CORDON_ABORT_NONE,
    CORDON_ABORT_HIGH_ENTROPY,
    CORDON_ABORT_ENTROPY_SPIKE,
    CORDON_ABORT_HIGH_REPETITION,
    CORDON_ABORT_RISING_PERPLEXITY,
    CORDON_ABORT_RUNAWAY_LENGTH,
    CORDON_ABORT_COMBINED_SIGNALS,
};

/* Which detector a verdict rests on. */
enum cordon_detector {
    CORDON_DETECTOR_NONE,
    CORDON_DETECTOR_LOOP,      /* the same tokens again and again */
    CORDON_DETECTOR_COUNTER,   /* the same but for numbers that grow by a constant step */
    CORDON_DETECTOR_DRIFT,     /* nearly the same; onset and period are estimates */
    CORDON_DETECTOR_LENGTH,    /* more tokens than were expected */
    CORDON_DETECTOR_THRESHOLD, /* one of the literal mode's */
};

struct cordon_monitor_options {
    const char *tier, *task, *mode; /* NULL: none; mode: default */
    const char *const *settings;    /* "entropy_threshold=5"; ends with NULL; may be NULL */
    uint64_t expected;              /* tokens; 0: not known */
    uint64_t vocabulary;            /* tokens of the model; 0: 131072 */
    uint64_t key;                   /* of the hash tables; 0: a random one */
    void *reserved[6];              /* NULL */
};

/* One token, or a piece of text of any length: pieces may end anywhere, in a character too. A stream is either text or numbers
 * of tokens. Beside it what is known of the distribution it was drawn from: all logits, or the natural logarithms of the
 * highest probabilities, or neither. */
struct cordon_token {
    const char *text; /* NULL: the token is given by its number */
    size_t len;
    uint64_t id;
    const float *logits;
    size_t logit_count;
    const double *top_logprobs;
    size_t top_count;
    void *reserved[4]; /* NULL */
};

struct cordon_verdict {
    bool abort;
    enum cordon_abort_reason reason;
    enum cordon_detector detector;
    uint64_t tokens;                  /* seen when the verdict was reached, or so far */
    uint64_t onset, onset_byte;       /* where the loop's first copy begins, both from 0 */
    uint64_t period;                  /* of the loop in tokens; 0: there is no loop, and no onset */
    double entropy;                   /* nats, of the last token that had one: the middle of ... */
    double entropy_low, entropy_high; /* ... this interval; both are the same from all logits */
    double spike, repetition, perplexity, trend, failure_prob;
    /* What the end repeats token for token, from 32 tokens and four copies on, whether it is cut for it or not. */
    uint64_t repeat_onset, repeat_onset_byte, repeat_copies;
    uint64_t repeat_period; /* 0: nothing */
    uint64_t reserved[2];
};

enum cordon_monitor_status {
    CORDON_MONITOR_GO_ON = 0,
    CORDON_MONITOR_ABORT,    /* the verdict says why; what is fed afterwards is ignored */
    CORDON_MONITOR_ARGUMENT, /* an option or a distribution that makes no sense: nothing was taken */
    CORDON_MONITOR_MEMORY,
};

/* O may be NULL. GO_ON, ARGUMENT or MEMORY; WHY has CORDON_WHY_MAX bytes, or is NULL. */
CORDON_API int cordon_monitor_new(const struct cordon_monitor_options *o,
                                  struct cordon_monitor **ret_monitor, char *why);
CORDON_API void cordon_monitor_free(struct cordon_monitor *m);
/* GO_ON, ABORT or ARGUMENT. */
CORDON_API int cordon_monitor_token(struct cordon_monitor *m, const struct cordon_token *t);
/* Text alone. */
CORDON_API int cordon_monitor_text(struct cordon_monitor *m, const char *text, size_t len);
/* The generation is over: a token of a text is complete when the next one begins, and this was the last. */
CORDON_API int cordon_monitor_end(struct cordon_monitor *m);
CORDON_API void cordon_monitor_verdict(const struct cordon_monitor *m,
                                       struct cordon_verdict *ret_verdict);
/* The verdict as `cordon monitor` prints it, with the settings and where each comes from; like snprintf. */
CORDON_API size_t cordon_monitor_json(const struct cordon_monitor *m, char *out, size_t size);
CORDON_API const char *cordon_abort_reason_name(enum cordon_abort_reason reason);
CORDON_API const char *cordon_detector_name(enum cordon_detector detector);

/* ---- client: programs run and judged by `cordon serve`; docs/agents.md ----
 * One thread at a time uses a client, its sessions and its results; only cordon_client_cancel may come from another thread or
 * from a signal handler. Arguments that are NULL or 0 are not sent. Texts end with NUL and are UTF-8; where a length is asked
 * for, NULs may be in them. A forked copy of a client is CORDON_CLIENT_GONE, and may be closed. */
struct cordon_client;
struct cordon_session;
struct cordon_answer; /* a result, a report or an evaluation: fields by their names below */

/* What came of a call. A refusal is an answer: CORDON_CLIENT_OK, and its status says refused. */
enum cordon_client_status {
    CORDON_CLIENT_OK = 0,
    CORDON_CLIENT_FAILED,    /* asked for by `check`: there is an answer, and it is not ok */
    CORDON_CLIENT_CANCELLED, /* by cordon_client_cancel or by a callback */
    CORDON_CLIENT_GONE,      /* the server cannot be reached, has ended, or does not answer */
    CORDON_CLIENT_PROTOCOL, /* the server does not know what it was asked, or its reply has no result */
    CORDON_CLIENT_ARGUMENT, /* an argument that cannot be sent: not UTF-8, or too long */
    CORDON_CLIENT_MEMORY,
};

struct cordon_run_options {
    const char *language;
    const char *session_id; /* of cordon_client_run alone */
    uint64_t timeout_ms, memory_mb, max_output_chars;
    bool no_wait; /* a run that takes long gives an answer with a job_id instead */
    bool check;   /* what is not ok is CORDON_CLIENT_FAILED */
    /* What was printed since the last call, and for how long it has been running. Other than 0 cancels. A callback may
     * call the client again, as cordon_session_interrupt does. */
    int (*on_output)(void *data, const char *stream, const char *text, size_t len);
    int (*on_progress)(void *data, uint64_t ms, const char *message);
    void *data;
    void *reserved[6]; /* NULL */
};

/* To the socket of a server that runs; or to a `PROGRAM serve --stdio OPTIONS...` that is started, and ends with the client.
 * PROGRAM: NULL is `cordon` of PATH; OPTIONS end with NULL. WHY has CORDON_WHY_MAX bytes, or is NULL. */
CORDON_API int cordon_client_connect(const char *path, struct cordon_client **ret_client,
                                     char *why);
CORDON_API int cordon_client_start(const char *program, const char *const *options,
                                   struct cordon_client **ret_client, char *why);
CORDON_API void cordon_client_close(struct cordon_client *c); /* its runs and sessions end */
CORDON_API void cordon_client_patience(struct cordon_client *c, unsigned ms); /* 120000 */
/* The call that runs gives up, and its run ends; without one, the next does. Where the server does not take that within 2 s,
 * the client is CORDON_CLIENT_GONE afterwards. Safe in a signal handler. */
CORDON_API void cordon_client_cancel(struct cordon_client *c);
CORDON_API const char *cordon_client_why(const struct cordon_client *c); /* of the last status */

/* Each sets *ret_answer where there is one, else NULL. O may be NULL. */
CORDON_API int cordon_client_run(struct cordon_client *c, const char *code,
                                 const struct cordon_run_options *o,
                                 struct cordon_answer **ret_answer);
CORDON_API int cordon_client_wait(struct cordon_client *c, const char *job_id, bool cancel,
                                  const struct cordon_run_options *o,
                                  struct cordon_answer **ret_answer);
CORDON_API int cordon_client_check(struct cordon_client *c, const char *code, const char *language,
                                   struct cordon_answer **ret_answer);
/* CONTEXT: JSON of an object, or NULL. */
CORDON_API int cordon_client_eval(struct cordon_client *c, const char *expression,
                                  const char *context, struct cordon_answer **ret_answer);
CORDON_API int cordon_client_sessions(struct cordon_client *c, struct cordon_answer **ret_answer);

/* A session that could not be made is CORDON_CLIENT_FAILED, and cordon_client_why says why. */
CORDON_API int cordon_client_session(struct cordon_client *c, struct cordon_session **ret_session);
/* In a workspace that the server gives: its files outlive the session. */
CORDON_API int cordon_client_session_in(struct cordon_client *c, const char *workspace,
                                        struct cordon_session **ret_session);
/* Of another language than Python, such as "ruby". NULL: Python; without a workspace. */
CORDON_API int cordon_client_session_of(struct cordon_client *c, const char *language,
                                        const char *workspace, struct cordon_session **ret_session);
CORDON_API const char *cordon_session_id(const struct cordon_session *s);
CORDON_API int cordon_session_run(struct cordon_session *s, const char *code,
                                  const struct cordon_run_options *o,
                                  struct cordon_answer **ret_answer);
/* Files below /workspace, whole. What is refused is CORDON_CLIENT_FAILED. *RET_DATA is freed with free(). */
CORDON_API int cordon_session_put(struct cordon_session *s, const char *path, const void *data,
                                  size_t len);
CORDON_API int cordon_session_get(struct cordon_session *s, const char *path, void **ret_data,
                                  size_t *ret_len);
/* Names in a folder; lines that match a regular expression, or with WHAT "names" files that match a pattern of the shell;
 * states of the session's workspace. A refusal is an answer. */
CORDON_API int cordon_session_list(struct cordon_session *s, const char *path,
                                   struct cordon_answer **ret_answer);
CORDON_API int cordon_session_search(struct cordon_session *s, const char *pattern,
                                     const char *path, const char *what, bool ignore_case,
                                     struct cordon_answer **ret_answer);
CORDON_API int cordon_session_snapshot(struct cordon_session *s, const char *name,
                                       const char *message, struct cordon_answer **ret_answer);
CORDON_API int cordon_session_snapshots(struct cordon_session *s,
                                        struct cordon_answer **ret_answer);
CORDON_API int cordon_session_diff(struct cordon_session *s, const char *snapshot, const char *to,
                                   struct cordon_answer **ret_answer);
CORDON_API int cordon_session_restore(struct cordon_session *s, const char *snapshot,
                                      struct cordon_answer **ret_answer);
CORDON_API int cordon_session_fork(struct cordon_session *s, struct cordon_session **ret_session);
CORDON_API int cordon_session_interrupt(struct cordon_session *s);
CORDON_API int cordon_session_close(struct cordon_session *s);
CORDON_API void cordon_session_free(struct cordon_session *s); /* the handle; the session stays */

/* Borrowed from the answer. What is null, absent or of another type is NULL or false. RET_LEN may be NULL. */
CORDON_API const char *cordon_answer_text(const struct cordon_answer *a); /* for a model to read */
CORDON_API bool cordon_answer_is_error(const struct cordon_answer *a);
CORDON_API const char *cordon_answer_raw(const struct cordon_answer *a, size_t *ret_len); /* JSON */
CORDON_API const char *cordon_answer_string(struct cordon_answer *a, const char *field,
                                            size_t *ret_len);
CORDON_API bool cordon_answer_integer(const struct cordon_answer *a, const char *field,
                                      int64_t *ret_number);
CORDON_API bool cordon_answer_boolean(const struct cordon_answer *a, const char *field);
CORDON_API const char *cordon_answer_json(const struct cordon_answer *a, const char *field,
                                          size_t *ret_len);
CORDON_API void cordon_answer_free(struct cordon_answer *a);

/* The fields: of a run, of a judgement, of a condition, of a file, of files and states, of sessions. */
#define CORDON_RESULT_ID               "id"
#define CORDON_RESULT_STATUS           "status"
#define CORDON_RESULT_LAYER            "layer"
#define CORDON_RESULT_REASON           "reason"
#define CORDON_RESULT_INTAKE           "intake"
#define CORDON_RESULT_NOTES            "notes"
#define CORDON_RESULT_VIOLATIONS       "violations"
#define CORDON_RESULT_VIOLATIONS_TOTAL "violations_total"
#define CORDON_RESULT_STDOUT           "stdout"
#define CORDON_RESULT_STDERR           "stderr"
#define CORDON_RESULT_STDOUT_BYTES     "stdout_bytes"
#define CORDON_RESULT_STDERR_BYTES     "stderr_bytes"
#define CORDON_RESULT_TRUNCATED        "truncated"
#define CORDON_RESULT_VALUE            "value"
#define CORDON_RESULT_IS_FINAL         "is_final"
#define CORDON_RESULT_FINAL            "final"
#define CORDON_RESULT_ERROR            "error"
#define CORDON_RESULT_EXIT_CODE        "exit_code"
#define CORDON_RESULT_SIGNAL           "signal"
#define CORDON_RESULT_USAGE            "usage"
#define CORDON_RESULT_LAYERS           "layers"
#define CORDON_RESULT_FILES            "files"
#define CORDON_RESULT_FILES_TRUNCATED  "files_truncated"
#define CORDON_RESULT_SNAPSHOT         "snapshot"
#define CORDON_RESULT_SESSION          "session"
#define CORDON_RESULT_JOB_ID           "job_id"
#define CORDON_RESULT_ELAPSED_MS       "elapsed_ms"

#define CORDON_REPORT_STATUS             "status"
#define CORDON_REPORT_LAYER              "layer"
#define CORDON_REPORT_IS_SAFE            "is_safe"
#define CORDON_REPORT_RISK_LEVEL         "risk_level"
#define CORDON_REPORT_BLOCKED_OPERATIONS "blocked_operations"
#define CORDON_REPORT_MESSAGE            "message"
#define CORDON_REPORT_VIOLATIONS         "violations"

#define CORDON_EVALUATION_VALUE "value"
#define CORDON_EVALUATION_TYPE  "type"
#define CORDON_EVALUATION_ERROR "error"

#define CORDON_FILE_INFO_STATUS      "status"
#define CORDON_FILE_INFO_REASON      "reason"
#define CORDON_FILE_INFO_SOURCE      "source"
#define CORDON_FILE_INFO_BYTES       "bytes"
#define CORDON_FILE_INFO_TEXT        "text"
#define CORDON_FILE_INFO_DATA        "data"
#define CORDON_FILE_INFO_NEXT_OFFSET "next_offset"

#define CORDON_FILE_LIST_STATUS "status"
#define CORDON_FILE_LIST_REASON "reason"
#define CORDON_FILE_LIST_SOURCE "source"
#define CORDON_FILE_LIST_NAMES  "names"
#define CORDON_FILE_LIST_CUT    "cut"

#define CORDON_FILE_MATCHES_STATUS  "status"
#define CORDON_FILE_MATCHES_REASON  "reason"
#define CORDON_FILE_MATCHES_SOURCE  "source"
#define CORDON_FILE_MATCHES_MATCHES "matches"
#define CORDON_FILE_MATCHES_FOUND   "found"
#define CORDON_FILE_MATCHES_CUT     "cut"

#define CORDON_SNAPSHOT_INFO_STATUS    "status"
#define CORDON_SNAPSHOT_INFO_REASON    "reason"
#define CORDON_SNAPSHOT_INFO_WORKSPACE "workspace"
#define CORDON_SNAPSHOT_INFO_ID        "id"
#define CORDON_SNAPSHOT_INFO_SNAPSHOTS "snapshots"
#define CORDON_SNAPSHOT_INFO_CHANGES   "changes"
#define CORDON_SNAPSHOT_INFO_PATCH     "patch"
#define CORDON_SNAPSHOT_INFO_CUT       "cut"

#define CORDON_SESSION_INFO_ACTION       "action"
#define CORDON_SESSION_INFO_SESSION_ID   "session_id"
#define CORDON_SESSION_INFO_EXPIRES_IN_S "expires_in_s"
#define CORDON_SESSION_INFO_SESSIONS     "sessions"

#ifdef __cplusplus
}
#endif
#endif
