/* SPDX-License-Identifier: Apache-2.0 */
/* The audit: what happened, in records that nobody can change or drop unnoticed.
 *
 * Takes:   facts of a run as they become known: two records a run, one for everything else.
 * Gives:   lines in audit/YYYY-MM-DD.jsonl, each chained to the one before, signed, and durable when the
 *          call returns (as the configuration says); alerts on what is unusual.
 * Never:   lets a run begin whose record could not be written: the error is the caller's to obey.
 *          Shares a handle between threads, or uses one after fork: open one where it is needed.
 * Runs in: `cordon`: the supervisor, the broker, and commands that change or read the log. The holder and cordond never do.
 */
#ifndef AUDIT_AUDIT_H
#define AUDIT_AUDIT_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- configuration: audit_config_init gives the defaults, policy may change them ---- */

enum audit_sync {
    AUDIT_SYNC_OFF, /* survives kill -9, not a power cut */
    AUDIT_SYNC_BEGIN, /* the begin of a run is on disk before its first byte; the rest follows when it may */
    AUDIT_SYNC_ON, /* every record is on disk when its call returns (default) */
};

struct audit_config {
    enum audit_sync sync;
    unsigned retention_days; /* 90; 0 keeps everything */
    bool code;               /* what is run is kept, too, in a file named by its hash */

    /* Anomalies: per client, within the window. 0 turns a rule off. */
    uint64_t window_ms;        /* one hour */
    unsigned max_failures;     /* 10: more refused by validation alert */
    unsigned long_factor;      /* 10: longer than so many times the mean of the others alerts */
    unsigned long_min_records; /* 5: fewer never alert on time */
    uint64_t long_floor_ms;    /* 100: nothing shorter counts as long */
    unsigned duplicates;       /* 20: so many runs of one code hash alert */
    unsigned max_violations;   /* 3: more in one execution alert at once */

    /* Where alerts go besides the log: to whoever sits there, and the system's log (default: to neither, the policy
     * says both); a JSON line appended to the file; the same line as the input of the command (argv, no shell,
     * absolute path, 30 s to live). NULL, 0: nowhere else. */
    void (*announce)(const char *alert);
    bool alert_stderr, alert_syslog; /* alert_stderr: by announce, where there is one */
    const char *alert_file;
    const char *const *alert_command;
    size_t nalert_command; /* words */

    uint64_t lock_ms; /* how long to wait for another writer; LIMIT_LOCK_MS */

    const char *state; /* the state folder; NULL: sys/state.h says where */

    /* Takes secrets out of a text of `args`, reasons and violations; the room's own rules come on top. May be NULL.
     * Appends what may be written to OUT. */
    int (*redact)(void *ctx, const char *text, size_t len, struct buf *out);
    void *redact_ctx;

    uint64_t (*now_ms)(void *ctx); /* the wall clock, for tests; NULL: CLOCK_REALTIME */
    void *now_ctx;
};
void audit_config_init(struct audit_config *c);
/* What a policy says; its strings are borrowed. */
struct policy;
void audit_config_apply(struct audit_config *c, const struct policy *p);

/* ---- facts: a record has every field; what is not given is null ---- */

struct audit_arg {
    const char *name;
    enum { AUDIT_ARG_TEXT, AUDIT_ARG_NUMBER, AUDIT_ARG_LIST } kind;
    const char *text; /* of LEN bytes; 0 means up to its NUL */
    size_t len;
    int64_t number;
    const char *const *list;
    size_t count;
};

enum audit_validation { AUDIT_NOT_VALIDATED, AUDIT_PASSED, AUDIT_BLOCKED };

/* A step on the way, and what it took. */
struct audit_span {
    const char *name;
    uint64_t us;
};

/* How something ended. */
struct audit_outcome {
    const char *status;         /* ok, error, blocked, denied, ... (the result's `status`) */
    const char *layer, *reason; /* the result's; NULL: none */
    const char *error_type;     /* the class of the error; NULL: none */
    enum audit_validation validation;
    uint64_t wall_us;
    bool has_exit_code;
    int exit_code;
    int signal; /* 0: none */
    uint64_t memory_bytes, output_bytes;
    const char *const *violations; /* one line each */
    size_t nviolations;
    uint64_t violations_total;      /* where more were counted than kept; 0: nviolations */
    uint64_t violations_harmless;   /* of these: no reason for an alert */
    const struct audit_span *steps; /* in their order; the last of those that may end it, did */
    size_t nsteps;
};

struct audit_facts {
    const char *execution_id;
    const char *client_id; /* never what the client says of itself */
    const char *tool;      /* run, exec, session, or the tool that guest code called */
    const char *worker_id; /* the process that ran the code, as the host counts it: pid:N */
    const char *role;      /* of the worker: explore, analyze, execute, or one of the policy's */
    const char *session, *language, *profile;
    const char *code; /* hashed; written only where the configuration says so, and into no record */
    size_t code_len;
    const char *code_hash; /* 64 hex digits, if CODE was hashed already; code_len is its size */
    const struct audit_arg *args; /* redacted by name and by pattern as they are written */
    size_t nargs;
    const struct audit_outcome *outcome; /* NULL: all of it null */
    uint64_t most_ms; /* of a begin: its end comes within it, by one with fewer rights perhaps */
};

/* ---- records ---- */

enum audit_kind {
    AUDIT_BEGIN,    /* only by audit_begin_run */
    AUDIT_END,      /* only by audit_end_run */
    AUDIT_LOST,     /* ours: a begin whose writer is gone */
    AUDIT_REFUSAL,  /* never ran: blocked by the check, denied by the gate, refused by the jail */
    AUDIT_APPROVAL, /* asked, granted, denied, expired: args say who and why */
    AUDIT_BREAKER,  /* open, half-open, closed */
    AUDIT_STOP,     /* cordon stop, and each run that it ended */
    AUDIT_RESUME,
    AUDIT_POLICY,    /* taken up, or broken and not taken up */
    AUDIT_SESSION,   /* opened, forked, closed, killed */
    AUDIT_WORKSPACE, /* a command that changed one, or failed to */
    AUDIT_TOOL,      /* a call of guest code to a trusted tool */
    AUDIT_MODEL,     /* a call of a model through the gateway */
    AUDIT_ALERT,     /* ours: an anomaly */
    AUDIT_REPAIR,    /* ours: what a crash left half written was cut off */
    AUDIT_TAMPERED,  /* ours: somebody changed the log or the head; verify fails from here on */
    AUDIT_RETENTION, /* ours: days that were removed */
    AUDIT_KINDS,
};
const char *audit_kind_name(enum audit_kind kind);

/* The alert about one execution that took MS where others of its client took MEAN_MS. */
void audit_say_long(char *out, size_t size, const char *id, uint64_t ms, uint64_t mean_ms);

struct audit;

/* Opens the log, makes it at first use, repairs what a crash left, writes `lost` records for runs whose
 * writer is gone. Costs a few system calls; keep it open where more than one run follows. */
ERR_MUST_USE int audit_open(const struct audit_config *config, struct audit **ret, struct err *err);
/* For who opened it long before a run: whether audit_open would find the same files now. */
bool audit_is_current(const struct audit *a);
void audit_close(struct audit *a);

/* What a run's end must know of its begin. Plain values: hold it where you like. */
#define AUDIT_ID_MAX 64
struct audit_ticket {
    bool open; /* false: nothing to end */
    int slot;
    uint64_t seq, begun_ms, code_size;
    char execution_id[AUDIT_ID_MAX], client_id[128], tool[64], worker_id[64], session[64],
        language[32], profile[32], role[64], code_hash[65];
};

/* Written and durable when it returns 0; otherwise the run must not run. */
ERR_MUST_USE int audit_begin_run(struct audit *a, const struct audit_facts *f,
                                 struct audit_ticket *ret, struct err *err);

/* FACTS need only the outcome, and args if there are new ones: the rest is the ticket's. If the record cannot be
 * written now (disk full), the outcome is kept beside the log and written at the next start. */
ERR_MUST_USE int audit_end_run(struct audit *a, struct audit_ticket *t, const struct audit_facts *f,
                               struct err *err);

/* Before something is done that is recorded once it is done: whether there is room for that record, of about MORE bytes
 * beside its own words. Otherwise it must not be done. */
ERR_MUST_USE int audit_room(struct audit *a, size_t more, struct err *err);

/* One record that stands for itself. A refusal also feeds the anomaly rules. */
ERR_MUST_USE int audit_event(struct audit *a, enum audit_kind kind, const struct audit_facts *f,
                             struct err *err);

/* Many at once: one lock, one write, one fsync. All of them, or an error and none is acknowledged. */
struct audit_item {
    enum audit_kind kind;
    struct audit_facts facts;
};
ERR_MUST_USE int audit_events(struct audit *a, const struct audit_item *items, size_t count,
                              struct err *err);

/* The sequence number of the last record this handle wrote; 0: none. */
uint64_t audit_last_seq(const struct audit *a);

/* The alerts that the last call raised: texts, valid until the next call. */
const char *const *audit_alerts(const struct audit *a, size_t *ret_count);

#endif
