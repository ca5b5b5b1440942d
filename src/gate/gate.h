/* SPDX-License-Identifier: Apache-2.0 */
/* The gate: every run must be admitted. Report and state become a plan, or a refusal that says what to do.
 *
 * Takes:   a request (client, role, tool, code, arguments), then the judge's report on it.
 * Gives:   a plan, which only this room can make and without which nothing runs; or a refusal.
 * Never:   believes a client's word on who it is; sleeps longer than it is told; fails open.
 * Runs in: `cordon`: the supervisor, the broker, and the commands stop, resume, approve and doctor. One thread to a gate.
 *
 *     gate_open                                          once a process
 *     gate_admit   stop flag, role, breaker, rate, slot       cheap: before the check
 *     gate_decide  report, iteration cap, human, arena        after the check; gives the plan
 *     gate_release how it ended: breakers, the slot          after the run
 *
 * A killed process gives its slot back by itself.
 */
#ifndef GATE_GATE_H
#define GATE_GATE_H

#include "base/err.h"
#include "check/report.h"
#include "gate/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define GATE_LAYER     "gate"
#define GATE_HASH_SIZE 32 /* SHA-256 */

/* Why the gate says no: the `rule` of a refusal, and what each means. docs/gate.md explains them. */
#define GATE_RULES(X)                                                                              \
    X(STOPPED, "gate.stopped", "cordon stop is in force")                                          \
    X(ROLE, "gate.role", "the role does not exist, or does not have the tool")                     \
    X(TOOL, "gate.tool", "there is no such tool")                                                  \
    X(SYSTEM, "gate.system", "tools of risk critical are open to nobody")                          \
    X(RATE, "gate.rate", "too many executions of this client in the window")                       \
    X(BUSY, "gate.busy", "every slot is taken, and the wait is over")                              \
    X(BREAKER, "gate.breaker", "it failed too often in a row; wait")                               \
    X(CHECK, "gate.check", "the judge's report is missing, or not clean")                          \
    X(ITERATIONS, "gate.iterations", "the task has used up its executions")                        \
    X(APPROVAL, "gate.approval", "a person has to say yes, and has not")                           \
    X(DENIED, "gate.denied", "a person said no")                                                   \
    X(ARENA, "gate.arena", "the arena's judges did not agree")                                     \
    X(DAEMON, "gate.daemon", "the policy wants runs to go through the machine's server")           \
    X(PROFILE, "gate.profile", "the policy has withdrawn or changed the session's profile")        \
    X(STATE, "gate.state", "the gate's own state cannot be used")

enum gate_rule {
#define X(name, word, text) GATE_RULE_##name,
    GATE_RULES(X)
#undef X
        GATE_RULE_COUNT
};

struct gate_refusal {
    enum gate_rule rule;
    const char *word;        /* gate.rate */
    char reason[320];        /* one sentence, for the result */
    char hint[240];          /* what to do, for a model or a person */
    uint64_t retry_after_ms; /* 0: waiting does not help, or nobody knows */
    char approval[24];       /* id of the approval that is waited for, or empty */
};

/* Who asks. Made of what the kernel says, never of what the client says. */
struct gate_client {
    char id[64];
};
void gate_client_uid(struct gate_client *c, uid_t uid);

struct gate_request {
    struct gate_client client;
    const char *run;  /* the run's id, for stop and the audit */
    const char *role; /* NULL: the configured one */
    const char *tool; /* run, exec, session, ... */
    const char
        *task; /* what iterations are counted by: a session, a task that the caller names; NULL:
                         not counted */
    const void *code; /* what people and judges are shown and an approval is bound to */
    size_t code_len;
    const char *language;     /* that it is a program of, as people are told it; NULL: of none */
    const uint8_t *code_hash; /* SHA-256 of it where it is known already; else NULL */
    const char
        *arguments; /* all else that decides what happens, one canonical JSON text; or NULL */
    const char *const *writes; /* paths that it may write, as the guest names them */
    size_t nwrites;
    pid_t asker;               /* who stands behind it; 0: this process */
    uint64_t wait_ms;          /* for a slot; 0: refuse at once */
    uint64_t approval_wait_ms; /* for a person; 0: refuse at once, the question stays */
    const int *stop; /* a descriptor that becomes readable when nobody waits any more; NULL: none */
    /* The plan of the call that starts it: people and arena have decided about that call, code and all, and are not asked
     * again. It has no slot, no turn of the rates, no breaker and no step for EVERY_N of its own. NULL: it is no part of one. */
    const struct gate_plan *part_of;
};

/* What happened, for the audit and for a person who waits. Strings live for the call. */
#define GATE_EVENTS(X)                                                                             \
    X(WAITING, "gate.waiting")           /* every slot is taken; detail: position in the queue */  \
    X(REFUSED, "gate.refused")           /* detail: rule and reason */                             \
    X(REFUSALS, "gate.refusals")         /* detail: how many were not told one by one */           \
    X(BREAKER_OPEN, "gate.breaker.open") /* seconds: until the next probe */                       \
    X(BREAKER_HALF_OPEN, "gate.breaker.half-open")                                                 \
    X(BREAKER_CLOSE, "gate.breaker.close")                                                         \
    X(APPROVAL_ASKED, "gate.approval.asked")       /* subject: approval id */                      \
    X(APPROVAL_ANSWERED, "gate.approval.answered") /* detail: yes or no, who and why */            \
    X(APPROVAL_USED, "gate.approval.used")         /* detail: who said yes and why */              \
    X(APPROVAL_DENIED, "gate.approval.denied")     /* by a person, or expired */                   \
    X(ARENA_VERDICT, "gate.arena.verdict")         /* one a judge; subject: the judge */           \
    X(ARENA, "gate.arena")                         /* the arena's decision */                      \
    X(STOP, "gate.stop")                                                                           \
    X(STOPPED_RUN, "gate.stop.run") /* one an execution; subject: its id */                        \
    X(RESUME, "gate.resume")

enum gate_event_kind {
#define X(name, word) GATE_EVENT_##name,
    GATE_EVENTS(X)
#undef X
        GATE_EVENT_COUNT
};

struct gate_event {
    enum gate_event_kind kind;
    const char *name;                /* gate.breaker.open */
    const char *client, *tool, *run; /* NULL where it is about none */
    const char *subject, *detail;    /* never NULL */
    uint64_t seconds;
    /* of a question to a person, while the event is told; else NULL */
    const char *code, *language;
    size_t code_len;
};

struct gate;
struct gate_ticket; /* admitted: holds a slot */
struct gate_plan;   /* decided: may run. There is no other way to have one */

/* STATE is a descriptor of the state folder (sys/state.h), the caller's; -1: the gate finds it.
 * CONFIG is borrowed. ERR_STATE, ERR_SYS: the state cannot be used, nothing may run. */
ERR_MUST_USE int gate_open(const struct gate_config *config, int state, struct gate **ret_gate,
                           struct err *err);
void gate_close(struct gate *g); /* tickets and plans first */
/* For who opened it long before a run, and let it find the folder: whether gate_open would find the same now, and nobody
 * said stop since. False: close it and open another. */
bool gate_is_current(const struct gate *g);

/* 1: admitted, *ret_ticket is set. 0: refused, REFUSAL says why. Negative: an error, which is to be
 * treated as a refusal. Waits at most request->wait_ms. The request's strings outlive the plan. */
ERR_MUST_USE int gate_admit(struct gate *g, const struct gate_request *request,
                            struct gate_ticket **ret_ticket, struct gate_refusal *ret_refusal,
                            struct err *err);

/* The same for an event loop: 2 means queued; ask gate_admit_poll again until it says 1 or 0. */
ERR_MUST_USE int gate_admit_start(struct gate *g, const struct gate_request *request,
                                  struct gate_ticket **ret_ticket, struct gate_refusal *ret_refusal,
                                  struct err *err);
/* Sleeps at most WAIT_MS. 1: the slot is yours; 2: still queued; 0: refused after all, and the
 * ticket is gone; negative: an error, and it is gone too. */
ERR_MUST_USE int gate_admit_poll(struct gate_ticket *t, uint64_t wait_ms,
                                 struct gate_refusal *ret_refusal, struct err *err);

/* Takes the ticket, whatever comes. REPORT may be NULL only for a tool that is not judged. The
 * slot is given up while a person is waited for. 1, 0, negative: as above. */
ERR_MUST_USE int gate_decide(struct gate_ticket *ticket, const struct check_report *report,
                             struct gate_plan **ret_plan, struct gate_refusal *ret_refusal,
                             struct err *err);
/* Takes the ticket: the check refused the request, or it cannot go on. The slot is free, nothing is counted but the turn. */
void gate_abandon(struct gate_ticket *ticket);

/* The report that led to the plan came from another child than the one that is to run it: the two
 * must agree. 1, or 0 with a refusal; then the plan is to be released. */
ERR_MUST_USE int gate_plan_confirm(const struct gate_plan *plan, const struct check_report *again,
                                   struct gate_refusal *ret_refusal);
/* Asserts that PLAN is one, has not been used before, and is for TOOL: whoever starts a jail calls
 * it. A plan starts one run. */
void gate_plan_start(struct gate_plan *plan, const char *tool);
const char *gate_plan_approval(const struct gate_plan *plan); /* id of the approval used, or "" */

struct gate_outcome {
    const char *status;  /* of the result: ok, error, timeout, ... */
    const char *type;    /* error.type, or NULL */
    const char *message; /* error.message, or NULL */
    bool at_prompt;      /* a person typed it at a terminal, and reads what it raised */
};
/* Takes the plan: the end of its run is counted, and its slot is free. */
void gate_release(struct gate_plan *plan, const struct gate_outcome *outcome);
/* Takes the ticket of one that failed before there was a plan: its judge ran into a limit. The breaker hears of it, and a
 * probe has its answer; else as gate_abandon. */
void gate_fail(struct gate_ticket *ticket, const struct gate_outcome *outcome);

/* A request of CLIENT was refused before it began. True: that is a record of its own. False: there were too many
 * within the window of the rate; it was counted, and the count is told as an event (GATE_EVENT_REFUSALS). */
bool gate_refusal_alone(struct gate *g, const struct gate_client *client);

/* ---- stop ---- */

/* Readable from the moment `cordon stop` was called: put it in the poll set of a run. */
int gate_stop_fd(const struct gate *g);

struct gate_stop_info {
    bool stopped;
    uint64_t since; /* seconds since 1970 */
    char who[96], why[240];
};
void gate_stop_read(const struct gate *g, struct gate_stop_info *ret_info);

struct gate_running {
    char run[40], client[64], tool[32];
    pid_t supervisor;
    uint64_t ms;     /* it has been running */
    const char *end; /* after a stop: "ended", "killed" or "still running" */
};
/* Those that run now. Returns the true count; at most CAP are written. */
size_t gate_running(struct gate *g, struct gate_running *out, size_t cap);

/* Sets the flag, ends what runs, waits for it: a supervisor that does not answer within PATIENCE_MS
 * is killed, a stopped one at once. *ret_count is how many ran. An error says what could not be done (the flag could
 * not be set, or not be kept for after a reboot); all else is done, and gate_stop_read tells whether the flag stands. */
ERR_MUST_USE int gate_stop(struct gate *g, const char *who, const char *why, uint64_t patience_ms,
                           struct gate_running *out, size_t cap, size_t *ret_count,
                           struct err *err);
ERR_MUST_USE int gate_resume(struct gate *g, const char *who, const char *why, struct err *err);

/* ---- what else the state knows ---- */

/* Token bucket NAME (a model API's): 0 taken, else nanoseconds until COST tokens are there;
 * UINT64_MAX: never, COST is more than the bucket holds. */
ERR_MUST_USE int gate_bucket_take(struct gate *g, const char *name, uint64_t cost,
                                  uint64_t *ret_wait_ns, struct err *err);

#define GATE_COUNTERS(X)                                                                           \
    X(admitted, "executions that were given a slot")                                               \
    X(planned, "executions that were given a plan")                                                \
    X(released, "executions that came to their end")                                               \
    X(refused, "requests that were refused, by any rule")                                          \
    X(waited, "requests that queued")                                                              \
    X(lost, "slots whose owner was killed")                                                        \
    X(breaker_opened, "breakers that opened")                                                      \
    X(breaker_probed, "probes of half-open breakers")                                              \
    X(breaker_closed, "breakers that closed")                                                      \
    X(asked, "questions to people")                                                                \
    X(approved, "answers that were yes, and used")                                                 \
    X(denied, "answers that were no, or never came")                                               \
    X(arena_passed, "decisions of the arena for it")                                               \
    X(arena_blocked, "decisions of the arena against it")                                          \
    X(stops, "calls of cordon stop")                                                               \
    X(stopped_runs, "executions that cordon stop ended")
struct gate_counters {
#define X(name, text) uint64_t name;
    GATE_COUNTERS(X)
#undef X
};
void gate_counters_read(const struct gate *g, struct gate_counters *ret);

/* What is so at this moment: executions by where they are, breakers that refuse and those that let a probe through. */
struct gate_standing {
    uint64_t running, waiting, parked, breakers_open, breakers_half_open;
    bool stopped;
};
void gate_standing(const struct gate *g, struct gate_standing *ret);

/* The sum by which approvals name what they are bound to, in hexadecimal. */
void gate_sha256_hex(const void *data, size_t len, char out[65]);

#endif
