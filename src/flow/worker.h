/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor's side of a language worker's channel.
 *
 * Takes:   a program, the rules it is judged by, the tools it may call.
 * Gives:   the judge's report; after the word to go: value, answer, fault, exit status.
 * Never:   believes a worker more than the state allows: before GO it is pristine, after it everything is
 *          the guest's word, bounded by the wire's table, and decides only the guest's own fate.
 * Runs in: the supervisor.
 */
#ifndef FLOW_WORKER_H
#define FLOW_WORKER_H

#include "check/report.h"
#include "flow/result.h"
#include "jail/run.h"

enum flow_worker_state {
    FLOW_WORKER_STARTING, /* READY has not come */
    FLOW_WORKER_READY,
    FLOW_WORKER_JUDGING,
    FLOW_WORKER_JUDGED,
    FLOW_WORKER_RUNNING,
    FLOW_WORKER_DONE,   /* the program is at its end, and said so */
    FLOW_WORKER_GONE,   /* it closed its end without a word */
    FLOW_WORKER_BROKEN, /* it said what is no message, or not now */
};

struct flow_job {
    enum {
        FLOW_JOB_CHECK,
        FLOW_JOB_RUN,
        FLOW_JOB_CALL,
        FLOW_JOB_LINE,
        FLOW_JOB_BLOCK, /* a call that somebody typed: `_` is the value of the last one */
        FLOW_JOB_NAMES, /* no program: a word, and what it may become */
    } kind;
    bool served; /* hints name the tools of a server, and no option */
    const struct policy_profile *profile;
    const char *name; /* of the source, in tracebacks */
    const void *source;
    size_t len;
    const char *const *args; /* words after its name, for sys.argv */
    size_t nargs;
    const char *method, *method_args; /* that the source defines, and its arguments; NULL: none */
    const struct jail_limits *limits; /* NULL: as it was locked */
    const char *const *tools;         /* names that it may call; ended by NULL; NULL: none */
    /* Begins a call; flow_worker_answer ends it, at once or later. ARGS is the guest's: `{"args": [...], "kwargs":
     * {...}}`, unchecked, and gone when this returns. */
    void (*call)(void *ctx, uint64_t id, const char *tool, const char *args, size_t len);
    void *call_ctx;
    /* Begins a request for a file, as the guest sent it; flow_worker_file_done ends it. NULL: the profile has none. */
    void (*file)(void *ctx, uint64_t id, const void *frame, size_t len);
    void *file_ctx;
    void (*offer)(void *ctx, const char *name, size_t len); /* of FLOW_JOB_NAMES, each */
    void *offer_ctx;
};

struct flow_worker {
    int fd; /* our end; stays the caller's */
    enum flow_worker_state state;
    bool has_rules; /* it was forked with this profile's */
    const struct flow_job *job;
    struct check_report report;
    bool safe;
    struct flow_result *result;       /* value and final */
    char fault_type[80], fault[1100]; /* the exception that ended the program, as it told */
    unsigned fault_line;
    struct jail_run *run;
    uint64_t calls;    /* begun */
    uint64_t calling;  /* the number of the one that is not answered; it is 1 more: 0 is none */
    const void *frame; /* that is being handled */
    size_t frame_len;
    int exit_code;
    bool left; /* set: the program ended with SystemExit */
};

void flow_worker_init(struct flow_worker *w, int fd, struct flow_result *result);
void flow_worker_done(struct flow_worker *w);

/* Before a job, where the process began long before it: variables to set, K=V each; another standard
 * input. FD stays the caller's. */
ERR_MUST_USE int flow_worker_environ(struct flow_worker *w, const char *const *env, size_t count,
                                     struct err *err);
/* ASKS: a person types it, a line at a time, when the worker asks. */
ERR_MUST_USE int flow_worker_input(struct flow_worker *w, int fd, bool asks, struct err *err);

/* Gives it the job; it must be READY, or may have it early. Sleeps at most a few seconds if it does not read. */
ERR_MUST_USE int flow_worker_give(struct flow_worker *w, const struct flow_job *job,
                                  struct err *err);
/* A job that fits what the kernel holds for it is best there when the worker starts: it says READY, and need not wait
 * for what comes back. */
bool flow_worker_early(const struct flow_worker *w, const struct flow_job *job);
ERR_MUST_USE int flow_worker_go(struct flow_worker *w, struct err *err);

/* The answer to the call that is waited for, as JSON; any other is dropped. False: the guest did not take it, and the
 * run is stopped. */
bool flow_worker_answer(struct flow_worker *w, uint64_t id, bool ok, const void *json, size_t len);

/* The answer to the request that is waited for, a whole frame; as flow_worker_answer. */
bool flow_worker_file_done(struct flow_worker *w, uint64_t id, const void *frame, size_t len);

/* Handles what is there; for jail_sink.channel. False: nothing more will come. */
bool flow_worker_read(struct flow_worker *w);

/* What its end says about the result, on top of the jail's word. */
void flow_worker_explain(const struct flow_worker *w, const struct jail_limits *limits);

#endif
