/* SPDX-License-Identifier: Apache-2.0 */
/* What may be asked of cordond: one row a verb, and nothing else. Every interface (stdio, later sockets, consoles, other
 * machines) asks by this table.
 *
 * Takes:   a request as a struct, or a frame of somebody who may be hostile.
 * Gives:   a frame, or a request that follows its row: verb, kind of handle, limits, size of its body.
 * Never:   reads a body: it is bytes for a runner.
 * Runs in: cordon-front, cordond.
 */
#ifndef SERVE_TABLE_H
#define SERVE_TABLE_H

#include "base/limits.h"
#include "wire/msg.h"

#include <signal.h>

#define SERVE_HANDLE 30 /* letters: four that say what it is, and 26 that hold 130 random bits */

#define SERVE_WORKSPACE 129        /* letters of a workspace's name, its clone's too */
#define SERVE_APPROVAL  64         /* the id of a question, and yes or no */
#define SERVE_WORDS     (16 * KIB) /* of a request about files: words with a NUL behind each */

#define SERVE_PLACES (LIMIT_SERVE_REQUESTS + LIMIT_SERVE_SETTLE) /* of a client's requests */

/* verb, kind of handle that it takes, most bytes of its body, what may be given beside it, whether it is work or settles
 * what is under way (ends it, answers for it, looks at it), meaning */
#define SERVE_VERBS(X)                                                                             \
    X(RUN, NONE, LIMIT_SOURCE + 1, LIMITS | LANGUAGE, WORK, "run a program in a jail of its own")  \
    X(SESSION_RUN, SESSION, LIMIT_SOURCE + 1, LIMITS, WORK, "run code in a session")               \
    X(CHECK, NONE, LIMIT_SOURCE + 1, LANGUAGE, WORK, "judge a program")                            \
    X(SESSION_NEW, NONE, SERVE_WORKSPACE, LANGUAGE, WORK,                                          \
      "make a session, in the workspace that the body names")                                      \
    X(SESSION_FORK, SESSION, 0, NOTHING, WORK, "make a branch of a session")                       \
    X(SESSION_CLOSE, SESSION, 0, NOTHING, SETTLES, "end a session")                                \
    X(SESSION_INTERRUPT, SESSION, 0, NOTHING, SETTLES, "interrupt the call of a session")          \
    X(SESSION_LIST, NONE, 0, NOTHING, WORK, "the sessions of this client")                         \
    X(FILE_READ, SESSION, SERVE_WORDS, NOTHING, WORK, "read a file of a session")                  \
    X(FILE_WRITE, SESSION, SERVE_WORDS + LIMIT_SERVE_FILE, NOTHING, WORK, "write one")             \
    X(FILE_LIST, SESSION, SERVE_WORDS, NOTHING, WORK, "the names in a folder of it")               \
    X(FILE_SEARCH, SESSION, SERVE_WORDS, NOTHING, WORK, "lines or names that match a pattern")     \
    X(SNAPSHOT_CREATE, SESSION, SERVE_WORDS, NOTHING, WORK,                                        \
      "name the state of a session's workspace")                                                   \
    X(SNAPSHOT_LIST, SESSION, SERVE_WORDS, NOTHING, WORK, "its states")                            \
    X(SNAPSHOT_DIFF, SESSION, SERVE_WORDS, NOTHING, WORK, "what differs between two of them")      \
    X(SNAPSHOT_RESTORE, SESSION, SERVE_WORDS, NOTHING, WORK, "go back to one")                     \
    X(JOB_WAIT, JOB, 0, NOTHING, WORK, "wait for a run that was answered with a job")              \
    X(JOB_LOOK, JOB, 0, NOTHING, SETTLES, "how such a run stands, at once")                        \
    X(JOB_CANCEL, JOB, 0, NOTHING, SETTLES, "end such a run")                                      \
    X(APPROVAL_ANSWER, JOB, SERVE_APPROVAL, NOTHING, SETTLES,                                      \
      "what the person at the client says to what it asks")                                        \
    X(APPROVALS, NONE, SERVE_WORDS, NOTHING, WORK, "what others ask a person, and answers to it")  \
    X(METRICS, NONE, 0, NOTHING, SETTLES,                                                          \
      "what was counted, as text; only for the front of --metrics")                                \
    X(HEALTH, NONE, 0, NOTHING, SETTLES, "whether new work is taken; only for that front, too")

enum serve_verb {
#define X(verb, handle, body, takes, kind, text) SERVE_##verb,
    SERVE_VERBS(X)
#undef X
        SERVE_VERB_COUNT
};

enum serve_handle { SERVE_HANDLE_NONE, SERVE_HANDLE_SESSION, SERVE_HANDLE_JOB };

/* What a client may tighten; 0: as the server was started with. */
struct serve_limits {
    uint64_t timeout_ms, memory, output;
};

struct serve_request {
    uint64_t number; /* the front's own, never 0 */
    enum serve_verb verb;
    char handle[SERVE_HANDLE + 1];
    struct serve_limits limits;
    uint64_t language; /* 0: none is named; else of serve_language */
    uint64_t body;     /* bytes that follow */
};

/* Exit statuses that `cordon` promises, and that tell how a job ended. */
enum {
    SERVE_STATUS_LIMIT = 124,
    SERVE_STATUS_NEVER_RAN = 125,
    SERVE_STATUS_STOPPED = 128 + SIGTERM
};

/* How a request stands. */
enum serve_stand {
    SERVE_DONE, /* body: what the runner printed; number: its exit status */
    SERVE_RUNNING, /* answered before it ended; handle: the job; body: what was printed so far; number: ms */
    SERVE_GOING,     /* not answered yet; number: ms since it was asked */
    SERVE_REFUSED,   /* body: one sentence; handle: the job, where one ended without a result */
    SERVE_CANCELLED, /* as SERVE_DONE, of a job that was ended by JOB_CANCEL; may have no body */
    SERVE_STANDS,
};

struct serve_answer {
    uint64_t request;
    enum serve_stand stand;
    char handle[SERVE_HANDLE + 1];
    uint64_t number, body;
};

/* Whether it is a word of the files of a session; then what `cordon session files` calls it. */
const char *serve_verb_files(enum serve_verb verb);
/* What a verb takes. */
enum serve_handle serve_verb_handle(enum serve_verb verb);
uint64_t serve_verb_body(enum serve_verb verb);
/* The names of the languages that a worker runs, from 1 on; NULL: there is no such number. */
const char *serve_language(uint64_t number);
/* Whether it settles what is under way, and begins nothing: it gets through where all places and runners of work are taken,
 * and while the server ends. */
bool serve_verb_settles(enum serve_verb verb);
/* Which of SERVE_PLACES are for it: what settles has its own; and each side counts the two kinds alike, whichever of its
 * requests it has already forgotten. */
struct serve_places {
    size_t first, end;
};
struct serve_places serve_verb_places(enum serve_verb verb);

/* The four letters of its kind and 26 of base 32; "" is good where the verb takes none. */
bool serve_handle_good(enum serve_handle kind, const char *handle);

/* A body begins in the packet of its head: most of them end there, too, and the other side is woken once. The reader is left
 * at that first piece, which wire_get_bytes gives. BODY may be NULL where its length is 0. */
ERR_MUST_USE int serve_request_write(const struct serve_request *q, const void *body,
                                     struct buf *out, struct err *err);
ERR_MUST_USE int serve_request_read(struct wire_reader *r, struct serve_request *ret,
                                    struct err *err);
ERR_MUST_USE int serve_answer_write(const struct serve_answer *a, const void *body, struct buf *out,
                                    struct err *err);
ERR_MUST_USE int serve_answer_read(struct wire_reader *r, struct serve_answer *ret,
                                   struct err *err);
/* Of the next piece, where so many bytes of a body are left. */
static inline size_t serve_piece_length(uint64_t left)
{
    return left < LIMIT_SERVE_PIECE ? (size_t)left : LIMIT_SERVE_PIECE;
}

/* What clients can tighten from now on. */
ERR_MUST_USE int serve_limits_write(const struct serve_limits *l, struct buf *out, struct err *err);
ERR_MUST_USE int serve_limits_read(struct wire_reader *r, struct serve_limits *ret,
                                   struct err *err);

/* The piece of a body, of at most LIMIT_SERVE_PIECE bytes, as a frame. */
ERR_MUST_USE int serve_piece_write(uint64_t request, const void *data, size_t len, struct buf *out,
                                   struct err *err);

#endif
