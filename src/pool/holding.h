/* SPDX-License-Identifier: Apache-2.0 */
/* The holder's state, which its files share.
 *
 * Takes:   nothing by itself.
 * Gives:   the tables of clients, templates and sessions, and what one file does for another.
 * Never:   is included outside src/pool.
 * Runs in: cordon-holder.
 */
#ifndef POOL_HOLDING_H
#define POOL_HOLDING_H

#include "base/clock.h"
#include "jail/child.h"
#include "pool/holder.h"
#include "pool/proto.h"
#include "pool/registry.h"
#include "pool/shares.h"
#include "pool/stock.h"

#define POOL_CALM_NS (20 * CLOCK_NS_PER_MS) /* a run that just began is left alone for so long */

/* A connection, and what is lent over it. */
enum pool_conn_state {
    POOL_CONN_FREE,
    POOL_CONN_NEW,     /* has said nothing yet */
    POOL_CONN_IDLE,    /* has nothing of ours */
    POOL_CONN_WAITING, /* for a child that is being made */
    POOL_CONN_LEASE,   /* has a child for one run */
    POOL_CONN_CALL,    /* has a session for one call */
    POOL_CONN_BRANCH,  /* the same; its next packet is a branch */
};

struct pool_conn {
    enum pool_conn_state state;
    int sock;
    uint64_t since_ns; /* in this state */
    bool spoke;        /* new, and its first request is there, unread */
    struct pool_warm *from;
    /* waiting */
    struct pool_request want;
    uint64_t turn, until_ns; /* its place among those that wait; until when it waits */
    uint64_t tag;            /* of the child that is made for it alone; 0: any of the stock */
    /* lent */
    int init; /* pidfd: when the connection ends, so does the child */
    struct pool_session *session;
    uint64_t serial;            /* of the session, also when that is over */
    bool for_fork;              /* lent to be branched or looked at: no call */
    char branch[POOL_NAME + 1]; /* the name that was agreed on */
    char branch_note[POOL_NOTE + 1];
};

/* What a session has that needs a template of its own. */
struct pool_own {
    struct pool_shares *shares; /* what it sees of the host; NULL: nothing */
    void *rules;                /* the bytes of RULES; NULL: its profile is built in */
    size_t rules_len;
};

/* A template and the children that wait. */
struct pool_warm {
    uint64_t serial; /* 0: a free entry */
    const struct language *language;
    char profile[POOL_PROFILE + 1];
    bool packages;
    bool pinned;       /* asked for by name: kept though nobody leases */
    bool retired;      /* it lends no more: it ends with the last of its children */
    uint64_t replaces; /* serial of the one whose place it takes when it has children; 0: none */
    struct pool_rules_numbers rules; /* also of a built-in profile */
    struct pool_own own;             /* of the one session that it is for */
    struct jail_template *template;  /* NULL: not up */
    bool up;                         /* the template has made a child */
    struct pool_stock stock;
    struct jail_child ready[POOL_WARM];
    size_t first;                     /* the oldest of them */
    struct jail_limits limits, other; /* what they are locked with; what was asked for instead */
    unsigned others;                  /* how often in a row */
    size_t orders;                    /* children on their way, those for one client too */
    size_t lent, sessions;
    uint64_t order_ns; /* when the template last made, or was first asked for, a child */
    uint64_t started_ns, used_ns;
    uint64_t refill_ns; /* not before: a run that just began is not disturbed */
    uint64_t made, starts, crashes;
    uint64_t served; /* children of this start that were lent */
    struct pool_backoff backoff;
    char error[POOL_REASON + 1]; /* the last thing that went wrong */
    char said[POOL_REASON + 1];  /* the last line it printed */
    bool said_whole;             /* which is at its end */
};

/* A session's child. */
struct pool_held {
    struct jail_child child;
    struct pool_warm *from;
    uint64_t start;       /* which start of its template it came from */
    uint64_t pid;         /* on the host, for those who measure */
    uint64_t rest_cpu_us; /* its CPU time when it was last stopped */
    uint64_t held_bytes;  /* memory and files, looked up once while it rests; 0: not yet */
    int owner;            /* pidfd of the process that it ends with; -1: none */
    bool begun;           /* the program of its call runs */
    bool interrupt;       /* one was asked for before that */
};

struct pool_holder {
    const struct pool_holder_start *start;
    int epoll, sock, signals, meminfo;
    int spare; /* a low number that is free for a moment when a peer is looked at */
    int dying; /* a pidfd of the session that was killed last; -1: it is gone */
    uint64_t killed_ns;
    bool stopping;
    bool hidden;          /* the socket is no longer where clients look for it */
    uint64_t socket_file; /* its inode */
    bool deaf; /* it had no descriptor for a client, and accepts none before the next look */
    uint64_t looked_ns;                 /* when that was looked at */
    uint64_t now, started_ns, asked_ns; /* asked_ns: when a client last wanted something */
    uint64_t idle_exit_ns;
    uint64_t renew_ns, renew_runs; /* a template is replaced at this age, after so many children */
    size_t descriptors;            /* how many may be open at once */
    size_t warm_usual;             /* of a template that nobody asked for by name */
    uint64_t serial, tag, turn;
    uint64_t leases, declined, refused_peers, bad_frames;
    struct pool_memory memory;
    uint64_t memory_ns; /* when it was looked at */
    char narrow[POOL_REASON + 1];
    struct pool_conn conn[POOL_CLIENTS];
    size_t conns;
    struct pool_warm warm[POOL_TEMPLATES_HELD];
    struct pool_registry sessions;
};

/* What epoll tells: the kind in the upper half, the index in its table in the lower one. */
enum pool_event {
    POOL_EVENT_ACCEPT,
    POOL_EVENT_SIGNAL,
    POOL_EVENT_SEAT,
    POOL_EVENT_TEMPLATE,
    POOL_EVENT_SESSION,
    POOL_EVENT_OWNER, /* the serial number of a session: an entry may be another's by now */
};
void pool_holder_hears(struct pool_holder *h, bool hears); /* whether it sees clients that come */
ERR_MUST_USE int pool_holder_watch(struct pool_holder *h, int fd, enum pool_event kind, size_t at,
                                   struct err *err);

/* conns.c */
void pool_conn_accept(struct pool_holder *h);
void pool_conn_event(struct pool_holder *h, struct pool_conn *conn);
void pool_conn_close(struct pool_holder *h, struct pool_conn *conn);
void pool_conn_end_lease(struct pool_holder *h, struct pool_conn *conn);
/* False: the client is gone, and so is its conn. */
bool pool_conn_reply(struct pool_holder *h, struct pool_conn *conn, const struct pool_reply *p,
                     int fd);
bool pool_conn_decline(struct pool_holder *h, struct pool_conn *conn, const char *word,
                       const char *fmt, ...) __attribute__((format(printf, 4, 5)));
bool pool_conn_agree(struct pool_holder *h, struct pool_conn *conn, const char *name);
void pool_conn_state(struct pool_holder *h, struct pool_conn *conn, enum pool_conn_state state);
uint64_t pool_conn_due(const struct pool_conn *conn); /* when its patience, or ours, ends */
void pool_conn_timeout(struct pool_holder *h, struct pool_conn *conn);

/* requests.c: one request, one reply. */
void pool_request_handle(struct pool_holder *h, struct pool_conn *conn,
                         const struct pool_request *q, int *fds);
void pool_request_branch(struct pool_holder *h, struct pool_conn *conn);

/* interpreter.c: the specification of a template, and the words that it points to. */
struct pool_interpreter {
    const char *argv[6 + POOL_ENVIRONMENT_WORDS], *env[POOL_ENV + 1];
    struct jail_bind binds[2 + POOL_SETTINGS + POOL_SHARES];
    char modules[160];
};
/* ERR_MISSING: its language's worker is not installed. */
ERR_MUST_USE int pool_interpreter_spec(struct pool_interpreter *t, const struct pool_warm *w,
                                       const struct pool_holder_start *start,
                                       struct jail_spec *spec, struct err *err);

/* templates.c */
/* The one of ASKED's language, profile and packages. NULL with a reply in DECLINED: no such profile, no slot for a template. */
struct pool_warm *pool_warm_get(struct pool_holder *h, const struct pool_request *asked,
                                struct pool_reply *declined);
/* One for a session alone; takes what OWN has. It ends with that session and its branches. */
struct pool_warm *pool_warm_own(struct pool_holder *h, const struct pool_request *asked,
                                struct pool_own *own, struct pool_reply *declined);
void pool_own_free(struct pool_own *own);
/* Starts it unless it runs or has failed just now. False: it does not run; w->error tells. */
bool pool_warm_start(struct pool_holder *h, struct pool_warm *w);
void pool_warm_event(struct pool_holder *h, struct pool_warm *w);
/* Orders what is missing, ends what nobody uses, starts again what died. Returns when it must be
 * called next. */
uint64_t pool_warm_tick(struct pool_holder *h, struct pool_warm *w);
void pool_warm_stop(struct pool_holder *h, struct pool_warm *w);
void pool_warm_resize(struct pool_holder *h, struct pool_warm *w, size_t warm);
/* A child that serves WANT, taken out of the stock; false: there is none. */
bool pool_warm_take(struct pool_holder *h, struct pool_warm *w, const struct jail_limits *want,
                    struct jail_child *ret);
/* Asks for one child for this conn alone. */
ERR_MUST_USE int pool_warm_order(struct pool_holder *h, struct pool_warm *w, struct pool_conn *conn,
                                 struct err *err);
uint64_t pool_warm_cost(const struct pool_warm *w);
void pool_memory_look(struct pool_holder *h);

/* renew.c: a template's place goes to another, in time. */
uint64_t pool_renew_tick(struct pool_holder *h, struct pool_warm *w); /* when to come again */
/* W, which replaces another, takes its place once it can. False: there is nothing to replace any more. */
bool pool_renew_take_over(struct pool_holder *h, struct pool_warm *w);
bool pool_renew_over(const struct pool_warm *w); /* retired, and the last of its children is gone */

/* idle_memory.c: what sessions hold that rest. */
uint64_t pool_idle_memory(struct pool_holder *h, struct pool_session *s); /* 0: it does not rest */
/* A session was killed, and PIDFD, which is the holder's from here on, tells when it is gone: all others are looked at
 * anew. */
void pool_idle_memory_ended(struct pool_holder *h, int pidfd);
/* False, with a reply in DECLINED: idle sessions but ALL_BUT (may be NULL) hold so much that ASKED more bytes are more than
 * BUDGET (0: no bound). */
bool pool_idle_memory_fits(struct pool_holder *h, const struct pool_session *all_but,
                           uint64_t asked, uint64_t budget, struct pool_reply *declined);

/* descriptors.c: how many more fit. */
size_t pool_room_children(const struct pool_holder *h);
bool pool_room_template(const struct pool_holder *h);
bool pool_room_client(const struct pool_holder *h);
bool pool_room_decline(struct pool_holder *h, struct pool_conn *conn);

/* lending.c: a child to a client, a session's life. */
void pool_lend_child(struct pool_holder *h, struct pool_conn *conn, struct pool_warm *w,
                     struct jail_child *child);
void pool_lend_new(struct pool_holder *h, struct pool_conn *conn, struct pool_warm *w,
                   struct jail_child *child);
bool pool_lend_session(struct pool_holder *h, struct pool_conn *conn, struct pool_session *s);
struct pool_session *pool_session_make(struct pool_holder *h, const char *name, struct pool_warm *w,
                                       struct jail_child *child, struct pool_reply *declined);
void pool_session_end(struct pool_holder *h, struct pool_session *s, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The same by the holder itself: the next client records it. */
void pool_session_end_to_record(struct pool_holder *h, struct pool_session *s, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void pool_session_interrupt(
    struct pool_session *s); /* KeyboardInterrupt in its call, once that runs */
void pool_session_begun(struct pool_session *s);
void pool_session_rest(struct pool_session *s); /* nothing of it runs between two calls */
/* Ends an idle session whose CPU time moved although it was stopped. */
void pool_session_check_rest(struct pool_holder *h, struct pool_session *s);
void pool_session_event(struct pool_holder *h, struct pool_session *s); /* its process is gone */
/* It ends with this process. Takes PIDFD, which stays the caller's on an error. */
ERR_MUST_USE int pool_session_own(struct pool_holder *h, struct pool_session *s, int pidfd,
                                  struct err *err);
void pool_session_died(struct pool_holder *h, struct pool_session *s); /* ... and why */
void pool_session_record(struct pool_holder *h, struct pool_session *s, int fd);

#endif
