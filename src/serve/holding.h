/* SPDX-License-Identifier: Apache-2.0 */
/* What cordond holds for a client, and what its files do for each other.
 *
 * Takes:   frames, descriptors, the time.
 * Gives:   the states of requests and jobs, in one place.
 * Never:   is seen outside of the room.
 * Runs in: cordond.
 */
#ifndef SERVE_HOLDING_H
#define SERVE_HOLDING_H

#include "serve/daemon.h"
#include "serve/figures.h"
#include "serve/runner.h"

#include <poll.h>

/* A run, or another command of ours. It stays after its end where a client was given its handle. */
struct serve_job {
    bool used, kept;  /* kept: the client knows the handle */
    bool told;        /* the front knows the handle */
    bool cancelled;   /* by JOB_CANCEL or a late CANCEL of its request, while it ran */
    uint64_t request; /* that it was started for; 0: of a front that ended */
    size_t watched;   /* descriptors of its runner that poll looks at */
    bool stirred;     /* and saw something at: only then is the runner asked */
    size_t readers;   /* answers that are what it printed, and are not sent yet */
    enum serve_verb verb;
    char handle[SERVE_HANDLE + 1];
    char session[SERVE_HANDLE + 1]; /* the one that it makes or ends; else empty */
    struct serve_runner runner;
    uint64_t started_ns, deadline_ns, ended_ns; /* ended: 0 while it runs */
};

struct serve_session {
    bool used;
    bool unwanted; /* its maker, or who closed it, was ended: it is nobody's, and to be closed */
    bool closing;  /* a runner of ours is at it */
    bool
        over; /* its client may still name it, and is told why it ended, until its place is needed */
    unsigned tries;
    char handle[SERVE_HANDLE + 1];
    uint64_t called_ns, calls;
};

/* A request that is not answered yet:
 *   FREE -> BODY (its bytes come in) -> WAITING (for a job) -> ANSWERING -> FREE
 * Verbs without a body go from FREE to WAITING or ANSWERING at once; a cancelled one goes to FREE from anywhere. */
enum serve_asked { SERVE_FREE, SERVE_BODY, SERVE_WAITING, SERVE_ANSWERING };

struct serve_ask {
    enum serve_asked state;
    struct serve_request q;
    struct buf body;
    struct serve_job *job;
    uint64_t asked_ns, told_ns; /* told: when it was last said that it is not forgotten */
    uint64_t
        due_ms; /* the number of the next note to the client that its request is not forgotten; 0: none is due */
    size_t shown; /* of what the job printed: the front has it, before any answer */
    struct serve_answer answer;
    struct serve_job *source; /* whose text, from its beginning, the answer is; NULL: BYTES */
    struct buf bytes;
    size_t sent;
    bool opened; /* the head of the answer was sent */
};

/* What all clients of a server share. */
struct serve_shared {
    struct serve_config config; /* its limits change where the policy is read again */
    bool draining;              /* nothing new is begun */
    struct serve_figures figures;
    struct serve_runner ready[LIMIT_SERVE_READY]; /* runners that wait */
    bool wants_ready;                             /* there was a request */
    bool expects_run;                             /* and the last one was a run */
    unsigned quick_ends; /* runners that ended while they waited, one after the other */
    uint64_t pause_ns;   /* until then none is started to wait, since so many did */
    uint64_t rest_ns;    /* until then runners neither start nor end: an answer is on its way */
    struct serve_client *const *clients; /* all of them, those that are not there being NULL */
    size_t places;
};

struct serve_client {
    struct serve_shared *all;
    const struct serve_config *config; /* of all */
    int sock; /* packets to and from the front; it ends with the front, which cannot pass it on */
    pid_t front;
    uid_t user;          /* whose it is, by the kernel's word; of --stdio and HTTP: our own */
    bool metrics;        /* it asks for figures, and for nothing else */
    int listener, token; /* of HTTP: what a front is started with, again and again; else -1 */
    uint64_t renewed_ns;
    unsigned quick; /* fronts that ended soon after their start, one after the other */
    bool gone;      /* nothing more is read or sent; what it had is being ended */
    bool told;      /* the front knows the limits that are in force */
    bool stirred;   /* poll saw something at SOCK */
    struct serve_ask asks[SERVE_PLACES];
    struct serve_job jobs[LIMIT_SERVE_JOBS];
    struct serve_session sessions[LIMIT_SERVE_SESSIONS];
};

/* client.c */
ERR_MUST_USE int serve_client_start(struct serve_client *c, struct serve_shared *all, uid_t user,
                                    int in, int out, struct err *err);
/* For the clients of HTTP, all of them: its front can end, and what cordond has for it stays. */
ERR_MUST_USE int serve_client_start_http(struct serve_client *c, struct serve_shared *all,
                                         int listener, int token, bool metrics, struct err *err);
void serve_client_read(struct serve_client *c, uint64_t now_ns);
void serve_client_write(struct serve_client *c);
bool serve_client_wants_write(const struct serve_client *c);
/* Ends what it has; serve_client_idle says when nothing of it runs any more. WAITS: its front may still write to the client
 * what was answered, and counts until it has. */
void serve_client_leave(struct serve_client *c, bool waits, uint64_t now_ns);
bool serve_client_idle(const struct serve_client *c);
/* Whether everything that it asked for is answered and has ended; and what brings that about. */
bool serve_client_drained(const struct serve_client *c);
void serve_client_cancel(struct serve_client *c, uint64_t now_ns);
/* Closes what nobody wants, and all of one that is gone, as far as there is room for that. */
void serve_client_close_sessions(struct serve_client *c, uint64_t now_ns);
void serve_client_done(struct serve_client *c);

/* asks.c: the table */
ERR_MUST_USE int serve_asks_take(struct serve_client *c, const void *frame, size_t len,
                                 uint64_t now_ns, struct err *err);
void serve_asks_refuse(struct serve_ask *a, const char *why);
void serve_asks_free(struct serve_ask *a);
/* What is to be sent, answer.body bytes. */
const char *serve_asks_bytes(const struct serve_ask *a);
/* As if the front had cancelled all of them. */
void serve_asks_cancel_all(struct serve_client *c, uint64_t now_ns);
/* Answers where a job has ended and by time, notes by time; the earliest moment at which there is something to do. */
void serve_asks_tick(struct serve_client *c, uint64_t now_ns);
/* Whether more of what its job printed is to be shown now. */
bool serve_asks_shows(const struct serve_client *c, const struct serve_ask *a);
uint64_t serve_asks_next(const struct serve_client *c);

/* sessions.c: the workspace of the operator's list that NAME is; NULL: it is none of them. */
const char *serve_sessions_workspace(const struct serve_config *config, const struct buf *name);

/* words.c: the command line of a runner. */
#define SERVE_WORDS_MAX 24
struct serve_words {
    const char *argv[SERVE_WORDS_MAX + 1];
    size_t count;
    char numbers[4][32];
    size_t used;
};
/* What the words name beside the request: all of it is ours. */
struct serve_for {
    const char *session;   /* the one that is made */
    const char *workspace; /* of the operator's list; NULL: none */
    pid_t asker;           /* the runner whose question is answered */
};
void serve_words(struct serve_words *w, const struct serve_config *f, const struct serve_request *q,
                 const struct serve_for *named);
/* What holds for it: the operator's, where the client does not tighten. */
struct serve_limits serve_words_limits(const struct serve_config *f, const struct serve_request *q);

/* jobs.c: NULL, with ERR_LIMIT where there is no room now. */
struct serve_job *serve_jobs_start(struct serve_client *c, const struct serve_request *q,
                                   const char *session, const struct buf *body, uint64_t now_ns,
                                   struct err *err);
struct serve_job *serve_jobs_find(struct serve_client *c, const char *handle);
/* Takes what runners printed, ends and forgets by time. */
void serve_jobs_tick(struct serve_client *c, uint64_t now_ns);
/* Lets runners end whose answer was passed on. */
void serve_jobs_release(struct serve_client *c, uint64_t now_ns);
/* Whether what a job prints is taken as it comes: most are over before that, and are taken once. */
bool serve_jobs_heard(const struct serve_client *c, const struct serve_job *j, uint64_t now_ns);
uint64_t serve_jobs_next(const struct serve_client *c, uint64_t now_ns);
/* Nobody waits for it any more: its runner is asked to end, that of the end of a session only where that takes long. */
void serve_jobs_give_up(struct serve_job *job, uint64_t now_ns);
/* Its client wants it ended. One that has ended stays as it is. */
void serve_jobs_cancel(struct serve_job *job, uint64_t now_ns);
void serve_jobs_forget(struct serve_job *job);
/* Of results that wait for their clients there are so many bytes; the oldest of whoever has most go first. */
void serve_jobs_trim(struct serve_shared *all);

/* ready.c */
/* False: none waits. */
bool serve_ready_take(struct serve_shared *all, struct serve_runner *ret, uid_t user,
                      const char *const *argv, const void *input, size_t len);
/* LIMIT_SERVE_READY entries for poll; and what is due, P being what poll made of them. */
void serve_ready_watch(const struct serve_shared *all, struct pollfd *p);
void serve_ready_tick(struct serve_shared *all, const struct pollfd *p, uint64_t now_ns);
/* When a tick would start another: a run has the machine for itself, unless none waits. UINT64_MAX: never. */
uint64_t serve_ready_next(const struct serve_shared *all);
void serve_ready_done(struct serve_shared *all);

/* measure.c */
void serve_measure_end(struct serve_client *c, const struct serve_job *job, uint64_t now_ns);
/* TAIL: what a runner printed of gate and pool; the whole is put into OUT. */
ERR_MUST_USE int serve_measure_write(const struct serve_shared *all, const struct buf *tail,
                                     struct buf *out);

/* sessions.c */
struct serve_session *serve_sessions_find(struct serve_client *c, const char *handle,
                                          uint64_t now_ns);
struct serve_session *serve_sessions_add(struct serve_client *c, const char *handle,
                                         uint64_t now_ns);
/* Whether it may still be there for the holder: one that is over takes no place of its client. */
static inline bool serve_session_lives(const struct serve_session *s)
{
    return s->used && (!s->over || s->unwanted);
}
/* HOW whoever closed it ended: it may still be there where that one was ended, and we close it ourselves, three times at most; and where that one
 * failed, and then it is the client's as before. */
enum serve_close { SERVE_CLOSED, SERVE_CLOSE_ENDED, SERVE_CLOSE_FAILED };
void serve_sessions_closed(struct serve_client *c, const char *handle, enum serve_close how);
bool serve_sessions_room(struct serve_client *c, uint64_t now_ns);
ERR_MUST_USE int serve_sessions_list(struct serve_client *c, uint64_t now_ns, struct buf *out);

/* A new handle, KIND's four letters first. */
ERR_MUST_USE int serve_handle_new(enum serve_handle kind, char out[SERVE_HANDLE + 1],
                                  struct err *err);

#endif
