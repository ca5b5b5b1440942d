/* SPDX-License-Identifier: Apache-2.0 */
/* One run from request to result: the only place that knows the order of the steps.
 *
 * Takes:   a request: what to run, under which profile and limits, where its output goes.
 * Gives:   a result, always: what could not run is refused, blocked or denied in it, by name.
 * Never:   starts guest code that was not judged, gated and recorded.
 * Runs in: the supervisor (`cordon`).
 */
#ifndef FLOW_FLOW_H
#define FLOW_FLOW_H

#include "flow/context.h"
#include "flow/result.h"
#include "flow/worker.h"
#include "jail/child.h"
#include "output/clean.h"

enum flow_kind {
    FLOW_EXEC,  /* any program: nothing to judge */
    FLOW_CHECK, /* judged, not run */
    FLOW_RUN,   /* judged, then run */
    FLOW_CALL,  /* judged, then run in a session, which goes on afterwards */
    FLOW_LINE,  /* the same, not run: whether the lines so far are whole, and what the judge says */
};

/* Whoever follows a run while it goes on. A violation comes once, when it is first seen; how often is in the result. */
struct flow_watch {
    void *ctx;
    void (*started)(void *ctx, const char *id); /* the program, and not its jail; NULL: not told */
    void (*violation)(void *ctx, const struct flow_violation *v);
    void (*note)(void *ctx, const char *sentence); /* how it stands with its room; NULL: not told */
};

/* What a run uses up together with the runs that its calls start; in memory that their processes share. */
struct flow_budget {
    uint64_t calls;   /* of tools */
    uint64_t cpu_us;  /* of the runs that were started, those that are over */
    uint64_t workers; /* started */
};

struct flow_mades;

/* What a nested run, which a call of a tool started, has of the run that called: never more than that had. */
struct flow_outer {
    unsigned depth;        /* how many runs stand around it: 1 at least */
    const char *tool;      /* run or session: what the outermost one is to the gate */
    const char *id;        /* of the run that called, for the records */
    const char *worker_id; /* for the records; NULL: its process */
    /* roles and types of workers around it, and of who made it: each bounds its calls */
    const char *bounds[3 * (LIMIT_NESTED + 1)];
    size_t nbounds;
    int files;                               /* what its tools work on: the caller's; -1: none */
    const char *tools[LIMIT_HOST_TOOLS + 1]; /* that it may call, ended by NULL */
    struct flow_mades *made;                 /* tools that the caller made, and may call */
    struct flow_budget *budget;              /* of the outermost run */
    const struct gate_plan *plan;            /* of the call */
    void (*waits)(bool waits); /* somebody is asked: the clocks around it stand still, too */
};

struct flow_request {
    enum flow_kind kind;
    bool raw;             /* the source is text of a model: the program in it is looked for */
    bool source_too_long; /* more than LIMIT_SOURCE: it is refused, and nothing of it is here */
    bool served; /* for a client of a server, who has tools and no options: hints name those */
    struct flow_context *context;
    const struct flow_outer *outer;       /* NULL: no run stands around it */
    const struct policy_profile *profile; /* not for FLOW_EXEC */
    const struct policy_profile *
        judged_by; /* FLOW_EXEC: the source is judged first, as a program of `language`; NULL: not */
    const char *name;     /* of the source: a file's name, or <stdin> */
    const char *language; /* of the program in a raw source; NULL: whatever the text says */
    const void *source;
    size_t source_len;
    const char *const *args; /* FLOW_RUN: words after its name, for sys.argv */
    size_t nargs;
    /* FLOW_RUN: the source defines METHOD, which is called with METHOD_ARGS, a JSON array (in order) or object (by name). Once it
     * has ended well its source becomes the file SAVE of /workspace; NULL: no file. METHOD NULL: the source is a program. */
    const char *method, *method_args, *save;
    const char *const *tools; /* that the program may call, ended by NULL; NULL: none */
    /* Where a program of ours is, for the one that serves files; NULL: none is. */
    int (*find_program)(const char *name, char *ret, size_t size, struct err *err);
    const char *tool_program;           /* path of cordon-tool; NULL where there are no tools */
    const char *index_folder;           /* that keeps the index of a workspace; NULL: none does */
    const char *role;                   /* NULL: the policy's */
    const char *worker;                 /* the type that bounds its calls, too; NULL: none */
    const char *task;                   /* what iterations are counted by; NULL: not counted */
    uint64_t wait_ms, approval_wait_ms; /* for a slot; for a person */

    struct jail_spec
        spec; /* exec: complete. Otherwise limits, binds, env; the worker is filled in */
    enum jail_memory_by memory_by;
    int input; /* the guest's stdin, stays the caller's; -1: none */
    bool asks; /* of a session: a person types the input, a line at a time, when the program asks */
    bool typed;         /* of a session: a block of a prompt */
    bool same_input;    /* of a session: it goes on with what the call before left of its own */
    const char *nest;   /* path of cordon-nest */
    const char *python; /* path of cordon-python */
    /* The path of another language's worker; NULL: only Python runs. */
    int (*find)(const char *program, char *path, size_t size, struct err *err);
    int stop;  /* readable: stop the run (a signalfd); -1: none. FLOW_CALL: jail_run_heed_keys */
    bool pool; /* FLOW_RUN: take a warm child where the holder has one */
    bool once; /* the process does nothing after it: as root it becomes nobody before the
                           first guest byte */

    /* FLOW_CALL, FLOW_LINE: the session's process. Its descriptors but the channel are taken; `alive` in
     * the result tells whether it still is one. Of SPEC its limits bound the call, and its variables are
     * set on top of what the session has. */
    struct jail_child *child;
    bool child_fresh; /* nothing was heard from it yet: it says READY first */
    bool layered;     /* its /workspace is upon layers: LAYERS is the folder that they are in */
    int layers;
    const char *checkout; /* that they are upon, where its index is kept; NULL: it is not */
    const char *session;
    uint64_t session_call; /* how many calls ran before in the session */
    uint64_t calls_used;   /* of tools, by this session so far */
    const char *unfit;     /* a sentence: its profile is not the policy's any more; NULL: it is */
    uint64_t changed_ns;   /* the last change in its files before this call; 0: none */

    /* Called when the program has ended, nothing of it is alive (a session lives on), and the status is known: FILES is the
     * file system that it wrote in. What came of it goes into RESULT. NULL: nothing is kept. */
    void (*keep)(void *ctx, int files, struct flow_result *result);
    void *keep_ctx;
    /* Called then, too, once RESULT lists what it left, while that can be read. NULL: nobody looks. */
    void (*look)(int files, const struct flow_result *result);

    /* A folder of the host that what the program leaves in /workspace is copied to, opened, and its name; -1: none. */
    int out;
    const char *out_name;
    bool replace; /* files of the same name there */

    /* Called once with the judge's report, refused or not; NULL: nobody asks. */
    void (*report)(void *ctx, const struct check_report *report);
    void *report_ctx;
    void (*begun)(void *ctx); /* the program runs, and heeds signals; NULL: not told */
    void *begun_ctx;

    /* FLOW_LINE: the source is a word, and these are the names that it may become; NULL: lines of a program. */
    void (*offer)(void *ctx, const char *name, size_t len);
    void *offer_ctx;

    /* A reader that takes the bytes as they come, raw; then streams in the result stay empty.
     * bytes() NULL: they are cleaned into the result. */
    struct jail_sink live;
    struct flow_watch watch;
    const bool *live_gone; /* nobody reads them any more: stop */
    enum output_escape escape;
    const struct output_rules *rules; /* what is scrubbed and redacted; NULL: nothing */
};

/* Connects to the holder and asks for the child that a run like this would ask for: the context has both until that run
 * comes, with no byte of a program in the child. Where another one comes, the child is given back. Without a holder nothing
 * happens. */
void flow_ahead(const struct flow_request *request);

/* Whoever stands in the way names itself in the result. ERR_USAGE alone comes back as an error: the
 * request made no sense. */
ERR_MUST_USE int flow_run(const struct flow_request *request, struct flow_result *result,
                          struct err *err);

#endif
