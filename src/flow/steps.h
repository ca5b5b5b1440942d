/* SPDX-License-Identifier: Apache-2.0 */
/* The state of one run between its steps.
 *
 * Takes:   what flow.c hands from step to step.
 * Gives:   the steps' functions, one file for each group.
 * Never:   is included outside src/flow.
 * Runs in: the supervisor.
 */
#ifndef FLOW_STEPS_H
#define FLOW_STEPS_H

#include "base/languages.h"
#include "flow/flow.h"
#include "gate/escalate.h"
#include "pool/pool_client.h"
#include "tools/process.h"
#include "tools/tools.h"

#include <sys/stat.h>

enum flow_next { FLOW_GO_ON, FLOW_STOP }; /* or a negative error: the request made no sense */

struct flow_contents {
    char *path; /* the real one */
    char sum[65];
};

#define FLOW_FILES_ENDED 80
struct flow {
    const struct flow_request *req;
    struct flow_result *result;
    const void *source; /* what is judged and run: the request's, or what was found in its text */
    size_t source_len;
    const struct language *language; /* of the program */
    const char *no_program_rule;     /* of the verdict that there is none; NULL: there is one */
    char no_program[300];
    struct jail_spec spec; /* what the jail is built by */
    struct buf arguments; /* all that decides what happens, as JSON: what an approval is bound to */
    const char *writes[2 * LIMIT_BINDS + 2]; /* as the guest names them, and as the host does */
    size_t nwrites;
    char *owned[LIMIT_BINDS]; /* of the latter */
    size_t nowned;
    struct flow_contents *contents; /* by bind: what the approval is bound to; NULL: not to that */
    int seen_input;          /* the copy of standard input that somebody is asked about; -1: none */
    int inputs[LIMIT_BINDS]; /* sources of --in, and what was said of each */
    const struct jail_bind *input_binds[LIMIT_BINDS];
    size_t ninputs;
    struct tools_share shown[LIMIT_BINDS]; /* what is served of the host */
    size_t shown_binds[LIMIT_BINDS];       /* which of the request's binds each is */
    size_t nshown;
    size_t told; /* violations that whoever follows the run knows */
    struct audit_arg args[7];
    size_t nargs;
    char worker_id[24]; /* pid:N, once its program runs */
    pid_t broker;       /* 0: none */
    int broker_sock;
    char calling[64]; /* the tool that is waited for */
    struct buf calling_args;
    uint64_t calling_id;
    uint64_t handed;     /* calls that the broker was given: a guest's numbers may come twice */
    uint64_t *recording; /* shared with the broker: the last that one of us puts on record */
    struct flow_budget *budget;         /* shared; NULL: it has no tools */
    uint64_t calls_made;                /* of tools, by it and what it started, once it is over */
    struct tools_process files_process; /* serves the guest's files; pid 0: none */
    int files_program;                  /* cordon-tool, open; -1: not yet */
    bool files_asked, files_lost;       /* a request is under way; the process died of itself */
    char files_ended[FLOW_FILES_ENDED]; /* during a request, and so the run ended, too */
    bool files_stopped;                 /* a request was under way at the end, and it was stopped */
    unsigned files_starts;              /* of the process */
    bool generation_cut;                /* a model was cut that llm() asked, and no tier was left */
    uint64_t files_asks, files_bytes, files_id, files_what;
    char files_path[200]; /* of the request, for a report */
    struct gate_request ask;
    struct gate_ticket *ticket;
    struct gate_plan *plan;
    struct audit_ticket begun;
    const char *worker_argv[9 + POOL_ENVIRONMENT_WORDS];
    const char *worker_env[POOL_ENV + 1];
    struct jail_bind binds[LIMIT_BINDS + 1];
    struct jail_run *run;
    int channel[2]; /* ours, the worker's */
    struct pool_environment environment;
    struct pool_client pool; /* the leash of a warm child */
    struct pool_lease lease; /* what was asked of the holder */
    bool ordered;            /* and not answered yet */
    struct flow_worker worker;
    struct flow_job job;
    struct statx_timestamp released; /* when its program was told to go, in the time of files */
    struct output_clean clean[2];
    bool cleaning, executing;    /* executing: the program was started */
    bool little_space;           /* it has less memory than was asked for: our own `ulimit -v` */
    int failed;                  /* the error that ended a step, or 0 */
    bool late;                   /* our own clock ended the child */
    bool is_calling, calls_over; /* a tool is waited for; a call past the budget is on record */
    bool again;                  /* a child was lost, and replaced */
    char filter[48];             /* of a cold worker */
    char worker_path[4096];      /* of another language than Python */
    int space_timer;             /* -1: none */
    int disks[LIMIT_BINDS];      /* folders of --rw, and what they are called */
    const char *disk_names[LIMIT_BINDS];
    size_t ndisks;
    char no_space[360]; /* why the run was ended; empty: there was room */
    char lost[160]; /* how the host ended the child before it was told to go; empty: it did not */
};

/* intake.c: raw text to source. */
int flow_intake(struct flow *f, struct err *err);

/* ask.c: the gate and the audit. */
const char *flow_tool_name(const struct flow *f); /* run, exec, session */
bool flow_only_judges(const struct flow *f);
int flow_prepare(struct flow *f, struct err *err);
/* bound.c: fills `arguments` and `writes`. */
int flow_bind(struct flow *f, struct err *err);
void flow_unbind(struct flow *f);
int flow_input(const struct flow *f); /* what the guest reads */
/* contents.c: a sum over the folder or file SOURCE and all that lies in it. ERR_USAGE: more than can be looked at. */
ERR_MUST_USE int flow_contents_sum(const char *source, char sum[65], struct err *err);
int flow_confirm(struct flow *f, struct err *err); /* that the sums are still the same */
int flow_admit(struct flow *f, struct err *err);
int flow_decide(struct flow *f, struct err *err);
int flow_record(struct flow *f, struct err *err);
int flow_finish(struct flow *f, struct err *err);
int flow_contents_changed(struct flow *f, const char *source); /* the refusal */
void flow_note_refusal(struct flow *f, const struct gate_refusal *no);
struct flow_called {
    const char *tool, *args, *status, *reason;
    size_t len;
    uint64_t wall_us;
    bool named; /* the arguments have their names, by which the audit knows a secret */
};
/* Whether the call that was handed over as number N is the caller's to put on record: true for the first who asks, the supervisor or its
 * broker. */
bool flow_calls_claim(const struct flow *f, uint64_t n);
ERR_MUST_USE int flow_record_call(const struct flow *f, struct audit *audit,
                                  const struct flow_called *call, struct err *err);

/* calls.c: calls of guest code to tools, in the loop that keeps the guest's clock: they are handed to the broker, and
 * nothing here waits for one. */
ERR_MUST_USE int flow_calls_start(struct flow *f, struct err *err); /* for tools and files */
ERR_MUST_USE int flow_calls_watch(struct flow *f, struct err *err);
void flow_calls_stop(struct flow *f);
uint64_t flow_pause_ms(const struct flow *f); /* the most that one question may take */
/* What guest code gets where there is no answer: {"message": ..., "category": ...}. JSON is the message, written as JSON. */
void flow_call_error(enum gate_error_category category, const char *json, size_t len,
                     struct buf *out);
void flow_call(void *ctx, uint64_t id, const char *tool, const char *args, size_t len);

/* broker.c: the process that carries calls out, one after the other, until its end of the socket is closed. */
_Noreturn void flow_broker(struct flow *f, int sock);

/* nested.c: programs that a call starts, each a run of its own. */
struct flow_caller {
    const struct flow *f;         /* the run that calls */
    struct flow_context *context; /* the broker's */
    const struct gate_plan *plan; /* of the call */
    int files, stop;
    uint64_t guest; /* the process that calls, 0: not known */
    void (*waits)(bool waits);
    struct flow_workers *workers;
    struct flow_mades *mades;
};
/* What a nested run gave, cut to what an answer takes. */
struct flow_ran {
    char which[24], status[16], why[420];
    uint64_t flags; /* enum tools_ran */
    struct buf final, value, streams[2];
};
struct flow_workers {
    struct flow_ran kept[LIMIT_WORKERS]; /* a ring: the last ones that completed */
    uint64_t completed;
};
bool flow_nested_is(const char *tool);
bool flow_nested_fits(const struct flow *f,
                      const char *tool); /* starts none, or one more may stand within the others */
enum tools_end flow_nested(const struct flow_caller *c, const char *tool,
                           struct tools_process *process, struct buf *text, struct err *err);

/* Judges a program that a call would start, in a process that has run none of it. TOOLS_REFUSED: WHY has a sentence. */
enum tools_end flow_nested_judge(const struct flow_caller *c, const char *name,
                                 const struct buf *source, char why[320], struct err *err);
/* Runs PROGRAM as the call of a tool that was made; BOUNDS, as those of flow_outer, on top of the caller's. */
enum tools_end flow_nested_tool(const struct flow_caller *c, const char *name,
                                const char *const *bounds, size_t nbounds,
                                const struct buf *program, struct tools_process *process,
                                struct buf *text, struct err *err);

/* made.c: tools that guest code made. */
struct flow_made {
    char name[TOOLS_MADE_NAME + 1], sum[65];
    char role[64], worker[64]; /* of who made it; worker empty: of no type */
};
struct flow_mades {
    struct flow_made items[LIMIT_MADE];
    size_t count;
    struct flow_mades *outer; /* those of the run that called; NULL: none did */
};
/* NULL: the caller may call none of that name. */
const struct flow_made *flow_made_find(const struct flow *f, struct flow_mades *list,
                                       const char *name);
/* CreateTool, once its arguments are checked: TOOLS_OK: RET is what it will be. TOOLS_REFUSED: WHY has a sentence. */
enum tools_end flow_made_check(const struct flow_caller *c, const struct tools_process *process,
                               struct flow_made *ret, char why[320], struct err *err);
/* LoadModule, the same. */
enum tools_end flow_module_check(const struct flow_caller *c, const struct tools_process *process,
                                 char why[320], struct err *err);
/* What the record of the call has as its arguments. */
ERR_MUST_USE int flow_made_record(const struct flow_made *made, const void *args, size_t len,
                                  struct buf *out);
void flow_made_add(struct flow_mades *list, const struct flow_made *made);
/* TEXT: the checked arguments, then the answer. */
enum tools_end flow_made_call(const struct flow_caller *c, const struct flow_made *made,
                              struct tools_process *process, struct buf *text, struct err *err);

/* host.c: the call of a host tool, once it is checked and allowed. */
enum tools_end flow_host_tool(const struct policy_tool *tool, struct tools_process *process,
                              int stop, struct buf *text, struct err *err);

/* llm.c: guest code's question to a model. */
#define FLOW_LLM_CUT "llm(): early_abort" /* how the message begins of a generation that was cut */
/* Whether a gateway of this state folder lives; else WHY says so, and what to do. */
bool flow_llm_ready(const struct flow_context *context, char *why, size_t size);
/* TEXT: the checked arguments, then the answer, or why there is none. *RET_CATEGORY is set where there is none. */
enum tools_end flow_llm(const struct flow_context *context, struct tools_process *process, int stop,
                        struct buf *text, enum gate_error_category *ret_category, struct err *err);

/* search.c */
/* When collections were last looked at, in one run. A look at a large folder takes longer than the query: it is not taken again
 * until ten times as long has passed as it took, at most LIMIT_LOOK_MS. */
#define FLOW_LOOKS 8
struct flow_looks {
    struct flow_look {
        char collection[POLICY_COLLECTION_MAX + 1]; /* empty: none */
        uint64_t began_ns, ended_ns;
        struct tools_indexed state;
    } look[FLOW_LOOKS];
    size_t next;
};
/* The index that a search begins with, brought up to date. COLLECTION empty: of the run's own files, where one outlives the run. The
 * descriptor in RET is the caller's. TOOLS_REFUSED: there is no such collection, or it cannot be read, and TEXT says so, as JSON. */
enum tools_end flow_search_base(const struct flow *f, const char *collection, int stop,
                                struct flow_looks *looks, struct tools_base *ret, struct buf *text);
/* The last look at COLLECTION, if it still holds at NOW_NS; else NULL. */
const struct flow_look *flow_look_holds(const struct flow_looks *looks, const char *collection,
                                        uint64_t now_ns);
/* The state of one that has just ended. What was not finished is not kept. */
void flow_look_keep(struct flow_looks *looks, const char *collection, uint64_t began_ns,
                    uint64_t now_ns, const struct tools_indexed *state);

/* space.c: what the program takes of its quota and of the host's disks, looked at while it runs. */
void flow_space_open(struct flow *f); /* while we may */
ERR_MUST_USE int flow_space_watch(struct flow *f, struct err *err);
void flow_space_end(struct flow *f); /* the last look, and the result of a run that was ended */
void flow_space_close(struct flow *f);

/* served.c: files of a guest whose process can open none, served by cordon-tool from the first request on. */
void flow_files_expect(struct flow *f);
void flow_file(void *ctx, uint64_t id, const void *frame, size_t len);
void flow_files_stop(struct flow *f);
void flow_files_explain(struct flow *f); /* where it was lost by no fault of the program's */

/* goal.c: the goal of a session is what the audit says: the calls of ModifyGoal that were made in it. */
bool flow_goal_is(const char *tool);
/* Of the calls of TOOL that were made in the session, or the run, and went well: how many, and the records of the last
 * MOST of them (at most LIMIT_MADE), a line each with a line end before it. */
ERR_MUST_USE int flow_history(const struct flow *f, const char *tool, uint64_t most,
                              uint64_t *ret_count, struct buf *out, struct err *err);
/* TEXT: the checked arguments. Whether the audit takes them whole; else TEXT says why not, as JSON. */
bool flow_goal_fits(struct buf *text);
enum tools_end flow_goal(const struct flow *f, struct tools_process *process, struct buf *text,
                         struct err *err);

/* precheck.c: for a session whose process has run code. */
int flow_precheck(struct flow *f, struct err *err);

/* verdict.c: the worker has judged; FLOW_STOP where it refused, or was asked for no more. */
int flow_verdict(struct flow *f);
int flow_verdict_unread(struct flow *f); /* over a source that no worker is given */

/* lease.c: a warm child of the holder. */
int flow_connect(struct flow *f, struct err *err);
bool flow_names_zone(const struct flow_request *req); /* that its child cannot read any more */
int flow_environment_open(struct flow *f, struct err *err);
void flow_lease_connect_last(struct flow *f); /* where flow_connect does not */
bool flow_lease_order(struct flow *f);        /* false: there is no holder, or none that fits */
bool flow_lease_take(struct flow *f, struct jail_child *ret_child); /* false: it has none */

/* unbegun.c: a program that did not begin, or was stopped. Those that give an int are the end of the run. */
bool flow_was_stopped(const struct flow *f);
bool flow_say_who_stopped(struct flow *f); /* false: it was not `cordon stop` */
int flow_unbegun_died(struct flow *f);
bool flow_unbegun_too_short(const struct flow *f);
int flow_unbegun_over(struct flow *f);
bool flow_unbegun_lacks_memory(const struct flow *f);
int flow_unbegun_refuse_memory(struct flow *f, struct err *err);

/* child.c: a locked child that waits, and everything about its life. */
int flow_start(struct flow *f, struct err *err);
int flow_check(struct flow *f, struct err *err);
int flow_execute(struct flow *f, struct err *err);
static inline bool flow_in_session(const struct flow *f)
{
    return f->req->kind == FLOW_CALL || f->req->kind == FLOW_LINE;
}
int flow_child_build(struct flow *f, struct err *err); /* a cold one */
/* Gives the child its job and takes its verdict. FLOW_GO_ON with f->lost set: the host ended it first. */
int flow_child_judge(struct flow *f, struct err *err);
void flow_child_close(struct flow *f);
/* The same after a result is known: of a child of the pool, which is dead and whose end others clean up, only
 * descriptors are left, and they are left to flow_result_done. */
void flow_child_leave(struct flow *f);
void flow_left_close(struct flow_left *left);

/* retry.c: a child that was ended by a fault of the host before it was told to go. */
/* Whether the end of f->run is such a one; then f->lost says how. WHATEVER: every end but the caller's stop is. */
bool flow_lost(struct flow *f, bool whatever);
/* Replaces a lost child by a cold one, once, and has that one judge; refuses when it is lost too. */
int flow_retry(struct flow *f, struct err *err);

/* inputs.c: what is copied into /workspace before the program starts. */
ERR_MUST_USE int flow_inputs_open(struct flow *f, struct err *err);
ERR_MUST_USE int flow_inputs_put(struct flow *f, struct err *err); /* into a child of the pool */
enum flow_input_state { FLOW_INPUT_NONE, FLOW_INPUT_UNTOUCHED, FLOW_INPUT_CHANGED };
enum flow_input_state flow_input_now(const struct flow *f, const char *path,
                                     const struct statx *now);
void flow_inputs_close(struct flow *f);

/* shown.c: --ro and --rw of a guest that can open no file. */
ERR_MUST_USE int flow_shown_open(struct flow *f, struct err *err);
/* BINDS: a copy of the request's, which then name what was opened and nothing else. */
ERR_MUST_USE int flow_shown_hold(const struct flow *f, struct jail_bind *binds, struct err *err);
ERR_MUST_USE int flow_shown_map(struct flow *f, struct err *err); /* while we may */
void flow_shown_close(struct flow *f);

/* files.c: what is left in /workspace, and when a program is told to go, later than any stamp on what is there. */
struct statx_timestamp flow_files_released(const struct flow *f);
int flow_collect(struct flow *f, struct err *err);
/* save.c: the accepted method as a file of what lies in ROOT, the file system that the guest wrote in. */
void flow_save(struct flow *f, int root);

#endif
