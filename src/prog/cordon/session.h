/* SPDX-License-Identifier: Apache-2.0 */
/* One call of a session: borrowed from the holder, run through the flow, given back with its record.
 *
 * Takes:   the name of a session, a source, limits of the call, where its output goes.
 * Gives:   a result; the holder's record of it; an exit status.
 * Never:   keeps a session that did not say that it is done.
 * Runs in: `cordon`.
 */
#ifndef PROG_CORDON_SESSION_H
#define PROG_CORDON_SESSION_H

#include "flow/flow.h"
#include "jail_options.h"
#include "pool/pool_client.h"
#include "tools.h"

/* What people try who know `cordon run`. */
#define SESSION_OPTIONS_NOT_HERE                                                                   \
    {                                                                                              \
        "out", OPTION_NOT_HERE, NULL, NULL,                                                        \
            "a session keeps its files; cordon session get NAME PATH copies one out"               \
    }

/* Folders of the host: P is a struct jail_options. */
#define SESSION_OPTIONS_ROWS_SHARES(p)                                                             \
    {"ro", OPTION_LIST, &(p)->ro, "PATH[:DEST]",                                                   \
     "show a folder or file, read-only, outside /workspace and /tmp"},                             \
    {                                                                                              \
        "rw", OPTION_LIST, &(p)->rw, "PATH[:DEST]",                                                \
            "show it writable; --disk bounds each file there, not the sum"                         \
    }

/* What `session` and `repl` share, opened once a process. */
struct session_context {
    const char *who; /* cordon session, cordon repl */
    struct jail_options jail;
    struct flow_context flow;
    struct pool_client holder;
    struct output_rules *rules;
    struct arena mem;
    struct jail_spec spec; /* limits of a call; its variables are those of --env alone */
    enum jail_memory_by by;
    struct tool_choice tools;
    const struct tool_options *tool_options;
    int stop;                        /* readable: somebody wants us to stop */
    bool json, events, gate_is_open; /* events: a call is told while it runs */
    bool images;                     /* and the pictures that it leaves are */
    char profile[POOL_PROFILE + 1];  /* of the session that was last lent */
    const struct language *language; /* of the same; NULL: none was lent */
    char nest[4096], python[4096];   /* our programs, for a judge that no holder has ready */
};

void session_context_init(struct session_context *h, const char *who);
/* Policy, jail specification and tools by what the options said. START: start a holder if there is none. */
ERR_MUST_USE int session_context_open(struct session_context *h, const struct tool_options *tools,
                                      bool start, struct err *err);
void session_context_close(struct session_context *h);
/* Between two calls: a changed policy is taken up, a broken one is complained about and left alone. An error: it
 * is in force, and does not allow another call. */
ERR_MUST_USE int session_context_refresh(struct session_context *h, struct err *err);

/* What was not said (UINT64_MAX) is the policy's. */
void pool_numbers(const struct policy *policy, struct pool_set_numbers *set);

struct session_new {
    const char *name, *profile, *role;
    const char *lang;      /* NULL: the default one */
    const char *workspace; /* NULL: none */
    bool packages;
    uint64_t idle_ms; /* UINT64_MAX: the policy's */
};
/* Makes a session that waits for its first call. NAME (POOL_NAME + 1 bytes) is what it is called. EXIT_DONE, or
 * the exit status of what was complained about. */
int session_make(struct session_context *h, const struct session_new *n, char *name);

struct session_call {
    const char *session;
    const char *name; /* of the source */
    const void *source;
    size_t len;
    bool raw; /* the program is looked for in it */
    const char *role;
    bool first;      /* nobody has spoken to it yet */
    bool line;       /* only ask whether these lines are whole */
    bool incomplete; /* set: they are not */
    bool last;       /* nothing comes after it: root may be given up */
    bool quiet;      /* print nothing but complaints */
    bool over;       /* set: the session is no more */
    bool declined;   /* set: the holder did not lend it, and ANSWER says why */
    bool is_final;   /* set: FINAL was called */
    int input;       /* -1: none */
    bool asks;       /* INPUT is a terminal: a line is read when the program asks for one */
    bool typed;      /* at a prompt */
    bool left;       /* set: the program ended with SystemExit */
    void (*offer)(void *ctx, const char *name, size_t len); /* with LINE: names for a word */
    void *offer_ctx;
    /* Called while the session is lent, with its file system and how much that may hold; NULL: nobody asks. A session in
     * a workspace has the files of its head before, and where WROTE is set they are committed after. */
    void (*files)(void *ctx, int files, uint64_t disk);
    void *files_ctx;
    bool wrote;
    uint64_t busy_ms;                  /* how long one that is in another call is waited for */
    char commit[41], uncommitted[240]; /* set: the commit that it came to, or why it came to none */
    /* What the call left, after its result was printed and while its files can still be read; NULL: nobody looks. */
    void (*left_files)(void *ctx, int files, const struct flow_result *result);
    void *left_ctx;
    bool same_input; /* what the call before left unread is this one's */
    struct pool_answer answer;
};
/* Returns the exit status; everything has been printed, except that a LINE that is TYPED was declined: the editor,
 * which draws the line, prints that later. */
int session_call(struct session_context *h, struct session_call *c);
/* The same in a session that the holder has lent: CHILD, as LENT tells of it. */
int session_call_lent(struct session_context *h, struct session_call *c, struct jail_child *child,
                      const struct pool_reply *lent);

/* Makes a second session of FROM, under NAME (empty: made up). Returns the exit status; everything has been printed. The
 * connection to the holder is used up. */
int session_fork(struct session_context *h, const char *from, const char *name);

/* One record of a session: EVENT is opened, forked, closed or ended. FROM: what it was forked of, or why it ended; NULL:
 * nothing to say. ROLE NULL: the policy's. */
ERR_MUST_USE int session_note(struct session_context *h, const char *event, const char *session,
                              const char *from, const char *role, struct err *err);

/* The same of what was asked for and not done; WHY is the reason of the record. */
ERR_MUST_USE int session_note_failed(struct session_context *h, const char *event,
                                     const char *session, const char *from, const char *role,
                                     const char *why, struct err *err);

/* Whether there is room for such a record, which names WHAT (may be NULL). Otherwise what it would tell must not be done. */
ERR_MUST_USE int session_note_room(struct session_context *h, const char *what, struct err *err);

/* Records the ends of sessions that the holder ended by itself, and that nobody has recorded yet. */
void session_note_ends(struct session_context *h);

#define SESSION_RULE_REST   "limit.rest"        /* a session used CPU time between two calls */
#define SESSION_RULE_MEMORY "limit.idle_memory" /* idle sessions hold too much */

/* What the holder declined, in one line or one object: EXIT_NEVER_RAN, or EXIT_BUSY where it is busy. Records what ended meanwhile. */
int session_declined(struct session_context *h, const char *session, const struct pool_answer *a);
/* The same of what we say no to ourselves. TYPE: of the error. */
int session_refused(const struct session_context *h, const char *session, const char *type,
                    const char *sentence);
/* The same of what went wrong: CODE and ERR tell what. */
int session_failed(const struct session_context *h, const char *session, int code,
                   const struct err *err);

#endif
