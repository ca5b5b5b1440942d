/* SPDX-License-Identifier: Apache-2.0 */
/* What a language is to the frame: one table of functions, by which an interpreter is started, judges and runs.
 *
 * Takes:   the words of the command line, and jobs that came whole over the channel.
 * Gives:   a verdict on a program, and later its effects: nothing else of a worker differs between languages.
 * Never:   has one of them read or write the frame's own messages, or wait for one.
 * Runs in: a worker; the functions are called by the frame alone, on the main thread.
 */
#ifndef WORKER_FRAME_LANGUAGE_H
#define WORKER_FRAME_LANGUAGE_H

#include "base/err.h"
#include "check/report.h"
#include "check/ruleset.h"

#include <stdbool.h>
#include <stddef.h>

/* The command line of a worker, for the start of its interpreter. */
struct worker_start {
    bool alone;          /* the worker never forks */
    bool guarded;        /* its programs import what is listed, from no path of their own */
    bool packages;       /* the system's packages of this language, too */
    const char *env;     /* an environment's folder of packages, before them; NULL: none */
    bool workspace;      /* /workspace has files of a workspace: modules among them */
    const char *dialect; /* which of its languages the worker is to run; NULL: the first */
    const char *preload; /* libraries to load now, separated by commas; NULL: none */
};

enum worker_kind {
    WORKER_CHECK,
    WORKER_RUN,
    WORKER_CALL,  /* of a session */
    WORKER_LINE,  /* lines that somebody is typing: judged only if they are whole */
    WORKER_BLOCK, /* a call that somebody typed */
    WORKER_NAMES  /* the names that a word may become */
};

struct worker_job {
    enum worker_kind kind; /* WORKER_BLOCK: is WORKER_CALL here, and typed */
    bool typed;
    const struct check_ruleset *rules;
    char name[256]; /* what the source is called in a traceback */
    char *source;   /* as it came, and a NUL */
    size_t len;
};

struct worker_language {
    bool
        sessions; /* the worker serves calls, lines and branches, too; else their functions below are NULL */
    bool methods;             /* a program may be one method, which is called (given.h) */
    bool template;            /* the worker may be a template; else those functions are NULL */
    const char *program;      /* the worker's own name, for its complaints */
    const char *compute_rule; /* under which a call is told that its table of computation refused */

    /* ---- the interpreter ---- */
    void (*watch)(
        void); /* in a template, before the start: worker_remap_add from now on. NULL: nothing to do */
    int (*start)(const struct worker_start *start, struct err *err);
    int (*started)(
        struct err *err); /* once the profile is known: all of ours is made. NULL: nothing to do */
    /* Starts the interpreter where `start` did not, since it keeps descriptors and the jail closes them; called while nothing has come, and before a
     * program is judged: a second call does nothing. NULL: nothing to do. */
    int (*wake)(struct err *err);
    /* In a template, once: what its children share. Nothing of a guest is known yet. */
    int (*load)(const struct check_ruleset *rules, struct err *err);
    void (*before_fork)(void); /* in a template, the last of it that runs. NULL: nothing to do */
    void (*after_fork)(void);  /* in its children, and in a branch of a session */
    /* In a session, before it is asked for a branch; after_fork follows, in the session too. NULL: nothing to do, and in the
     * session nothing follows. */
    void (*before_branch)(void);
    /* Runs a small program that touches what every program touches, so that the copy-on-write faults of a
     * forked child are behind it when a job comes. 0, or -1: this interpreter is not fit to run anything. */
    int (*warm)(const struct check_ruleset *rules);
    /* Programs for rehearsals: one that uses what most programs use, and one that does no more than print; what stands before the name of a library
     * that is to be loaded by the first one, NULL: it has none. */
    const char *sample, *sample_print, *sample_import;

    /* ---- a program, in this order; -1 is the end of the process ---- */
    /* While nothing has come: what the first one needs. NULL: nothing to do. */
    int (*expect)(const struct check_ruleset *rules);
    /* Others from now on. NULL: each job names its own. */
    void (*rules)(const struct check_ruleset *rules);
    bool (*incomplete)(const char *source); /* a block that may go on */
    int (*names)(const char *word);         /* sends NAMES */
    /* Keeps what it judged, so that it is what runs. */
    int (*judge)(const struct worker_job *job, struct check_report *report, struct err *err);
    int (*prepare)(const struct worker_job *job); /* a run, between its clean report and GO */
    int (*close)(
        const struct check_ruleset *rules); /* no program has come yet: the table of computation */
    int (*begin)(
        const struct worker_job *job); /* after GO: the last before code of the guest runs */
    void (*execute)(const struct worker_job *job);
    int (*report)(const struct worker_job *job,
                  bool *ret_left); /* its exit status, FAULT sent; LEFT: it asked to end */
    void (*finish)(const struct worker_job *job); /* exit functions of a run, streams */
    void (*forget)(void);                         /* what was judged */

    /* ---- around it ---- */
    /* Beside the C library's. NULL: there are no others. */
    void (*set_variable)(const char *name, const char *value);
    /* Another standard input; the first time, no code of a guest has run. NULL: descriptor 0 is all that is read. */
    void (*input_comes)(void);
    void (*empty_input)(
        void); /* 0 is at its end: reads away what the language's readers hold; after GO */
    int (*set_interrupt)(
        void); /* the language's own handler of SIGINT; no code of a guest has run */
    void (*drop_interrupt)(
        void); /* forgets an interrupt that the handler has seen and not raised */
};

extern const struct worker_language *worker_language; /* set once, by worker_main */

int worker_main(const struct worker_language *language, int argc, char **argv);

#endif
