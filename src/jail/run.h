/* SPDX-License-Identifier: Apache-2.0 */
/* One run from outside: start it, watch it, know how it ended.
 *
 * Takes:   a specification, a descriptor for the guest's input, somewhere for its output to go.
 * Gives:   an outcome: how it ended, what it used, what it tried, which layers it proved.
 * Never:   leaves a process, mount, cgroup, file or descriptor behind.
 * Runs in: the supervisor (`cordon`).
 */
#ifndef JAIL_RUN_H
#define JAIL_RUN_H

#include "base/err.h"
#include "jail/attest.h"
#include "jail/spec.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum jail_stream { JAIL_STDOUT, JAIL_STDERR };

/* What a sink that passes bytes on still holds of a stream. */
enum jail_held {
    JAIL_HELD_NONE, /* all of it was taken */
    JAIL_HELD_SOME, /* a rest waits for whoever reads */
    JAIL_HELD_FULL, /* and nothing more is taken from the guest until that rest is smaller */
};

struct jail_sink {
    void *ctx;
    /* Takes bytes as they come. */
    void (*bytes)(void *ctx, enum jail_stream stream, const void *data, size_t len);
    /* Something came on the caller's end of the channel, or the guest closed its own. Called by
     * jail_run_step; may call jail_run_end_now and jail_run_stop. False: do not watch it any more (a
     * closed channel that is still watched is told for ever). */
    bool (*channel)(void *ctx);
    /* For a sink that passes the bytes on to somebody who may not read: passes on what can be passed on without
     * waiting, and tells what is left. Called after `bytes`, and whenever ONWARD of the stream can take more. NULL:
     * whatever `bytes` is given is taken. */
    enum jail_held (*pass_on)(void *ctx, enum jail_stream stream);
    int onward[2]; /* by stream; the caller's */
};

/* Why a worker of ours ended that never spoke: STATUS is its own exit status, its loader's, or the errno of its execution. */
enum { JAIL_WORKER_GAVE_UP = 70, JAIL_LOADER_FAILED = 127 };
void jail_tell_exit(int status, struct err *err);

#define JAIL_STOPS 2
struct jail_start {
    const char *nest; /* path of cordon-nest */
    enum jail_memory_by memory_by;
    int input;   /* pumped to the guest's stdin, stays the caller's; -1: there is none */
    int channel; /* the guest finds it as descriptor 3; stays the caller's to close; -1: none */
    int channel_ours; /* watched for the sink's `channel`; stays the caller's; -1: none */
    struct jail_sink sink;
    /* Watched while the jail is built, as jail_run_heed does later: if one is readable the run is over before it
     * began, and its outcome says JAIL_END_STOPPED. They stay the caller's. */
    int stops[JAIL_STOPS];
    size_t nstops;
    /* A process that runs this one jail and then ends may give up root for good as soon as the jail
     * is prepared: whatever reads the guest's bytes then is nobody. */
    bool step_down;
};

enum jail_end {
    JAIL_END_NONE,    /* not yet */
    JAIL_END_EXIT,    /* exit_code */
    JAIL_END_SIGNAL,  /* signal */
    JAIL_END_WALL,    /* time-out by the clock */
    JAIL_END_CPU,     /* time-out by CPU time */
    JAIL_END_MEMORY,  /* the memory limit ended it */
    JAIL_END_FLOOD,   /* far more output than the cap */
    JAIL_END_STOPPED, /* the caller asked */
    JAIL_END_LOST,    /* cordon-nest, or what the caller serves it by, was killed from outside */
};

struct jail_violation {
    char layer[16], rule[48], detail[320], hint[LIMIT_HINT];
    uint64_t line; /* of the guest's source; 0: not known */
    uint64_t times;
    bool told; /* the worker said so; otherwise the kernel or the supervisor saw it */
};

/* The mode of what was shared with --rw was changed, and put back; or could not be. */
#define JAIL_RULE_SHARED_MODE      "shared.mode"
#define JAIL_RULE_SHARED_MODE_KEPT "shared.mode_kept"
#define JAIL_RULE_MEMORY           "limit.memory" /* more than all of it at once was asked for */

struct jail_outcome {
    enum jail_end end;
    int exit_code, signal;
    int stopped_by; /* the signal that jail_run_heed_keys was told to stop it by; 0: none */
    bool killed_itself, killed_from_outside; /* by SIGKILL, where the table tells which */
    uint64_t wall_us, cpu_us, memory;
    /* The most address space that a process which failed had, or asked for at once; 0: not looked at. */
    uint64_t mapped;
    uint64_t bytes[2]; /* by stream, all that was written */
    const char *memory_enforced_by;
    struct jail_layers layers;
    struct jail_violation *violations; /* distinct ones, in order */
    size_t violation_count, violations_told;
    uint64_t violations_total; /* with repeats, and with those past LIMIT_VIOLATIONS */
};

struct jail_run;

/* Builds the jail and starts the program. A machine that cannot is ERR_MISSING or ERR_SYS with the
 * layer's name in ERR; a specification that makes no sense, or a program that cannot be executed, is
 * ERR_USAGE. Sleeps while the jail is built. */
ERR_MUST_USE int jail_run_new(const struct jail_spec *spec, const struct jail_start *start,
                              struct jail_run **ret_run, struct err *err);
void jail_run_free(struct jail_run *run); /* ends it first if it still runs */

/* The same as jail_start.step_down, later: for a run that waits for its first guest byte while root is still
 * needed for other things. */
ERR_MUST_USE int jail_run_step_down(struct jail_run *run, struct err *err);

int jail_run_fd(const struct jail_run *run); /* readable when a step has work: for an event loop */

/* Handles what is there, waiting at most TIMEOUT_MS (-1: no bound). True when the run is over. */
bool jail_run_step(struct jail_run *run, int timeout_ms);
void jail_run_stop(struct jail_run *run); /* SIGKILL to all of it; the outcome says so */
/* The same where a process of the caller's, without which the guest cannot go on, was killed: JAIL_END_LOST. */
void jail_run_lost(struct jail_run *run);
/* Whenever FD, which stays the caller's, becomes readable, the step that sees it stops the run. */
ERR_MUST_USE int jail_run_heed(struct jail_run *run, int fd, struct err *err);
/* The same for a session's call, of a signalfd: the first SIGINT goes on to the guest, whose call ends with
 * KeyboardInterrupt and which lives on. A second one within JAIL_AGAIN_MS, and every other signal, stops the run. */
#define JAIL_AGAIN_MS 2000
ERR_MUST_USE int jail_run_heed_keys(struct jail_run *run, int fd, struct err *err);

/* The worker said that it is done with this exit code: that is how the run ends. What was written is
 * taken, everything is killed; the next step returns true. jail_run_free returns when all of it is gone. */
void jail_run_end_now(struct jail_run *run, int exit_code);

#define JAIL_RUN_ALSO 3
/* Whenever FD, which stays the caller's, is readable, the step that sees it calls READY. False: do not watch it any
 * more. At most JAIL_RUN_ALSO a run; also from within READY of another. */
ERR_MUST_USE int jail_run_also(struct jail_run *run, int fd, bool (*ready)(void *ctx), void *ctx,
                               struct err *err);
/* The guest stands still until jail_run_resume, at most MOST_MS; no clock of the run goes on meanwhile. */
void jail_run_pause(struct jail_run *run, uint64_t most_ms);
void jail_run_resume(struct jail_run *run);

/* The guest wants one more line of an input that is given by lines; nothing where it is not. */
void jail_run_feed_line(struct jail_run *run);

/* Adds what the worker itself saw and refused. LINE 0: not known. */
void jail_run_violation(struct jail_run *run, const char *layer, const char *rule,
                        const char *detail, const char *hint, uint64_t line);
/* The guest's number as this process counts; 0: not known. */
pid_t jail_run_guest(const struct jail_run *run);

/* The file system with the guest's `workspace` and `tmp`, or -1: readable also after the end, as the
 * guest left it. Everything in it is hostile. Borrowed. */
int jail_run_files(const struct jail_run *run);
/* Between the two calls files are opened by the rights of whoever owns them: where a run of root's has given root up, it
 * is the owner of the guest's namespaces, and a child of a template has an id of its own. */
void jail_run_own_files(const struct jail_run *run, bool now);
const struct jail_outcome *jail_run_outcome(const struct jail_run *run);

#endif
