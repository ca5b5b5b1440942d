/* SPDX-License-Identifier: Apache-2.0 */
/* The holder as its clients see it: lease a warm child, call a session, look at both.
 *
 * Takes:   a connection to the user's own holder.
 * Gives:   children as descriptors of the caller's own, or why there is none: one word, one sentence.
 * Never:   waits for a holder that does not answer longer than it is told; starts one, unless asked to.
 * Runs in: `cordon`: the supervisor, and the commands session, repl and pool.
 */
#ifndef POOL_POOL_CLIENT_H
#define POOL_POOL_CLIENT_H

#include "jail/child.h"
#include "pool/environment.h"
#include "pool/proto.h"
#include "pool/shares.h"
#include "pool/socket.h"

/* One connection: one lease at a time, one after the other. When it ends, the holder kills what is leased over it. */
struct pool_client {
    int sock;           /* -1: there is no holder */
    uint64_t answer_ms; /* how long an answer may take, beyond the time that the holder was given */
    uint64_t budget;    /* bytes that idle sessions may hold, with what is asked; 0: no bound */
    bool ahead;         /* the next child was asked for, and its answer waits in the socket */
    struct pool_request asked; /* as this */
    struct pool_shares
        *shares; /* what the session that was last lent sees of the host; NULL: nothing */
};

/* What a holder said to a request. `declined` is no error: it tells what to do instead. */
struct pool_answer {
    bool declined;
    struct pool_reply reply; /* DECLINED: state is the word, reason the sentence */
};

/* Finds the holder of this environment (NULL: Debian's packages). No holder is no error: then sock is -1, and every
 * request is declined as `cold`. ANSWER_MS: how long it, and every request after it, waits for a holder that is stopped
 * or stuck. A client that has other work to do opens first: the holder accepts meanwhile. */
ERR_MUST_USE int pool_client_open(struct pool_client *ret, const struct pool_environment *e,
                                  uint64_t answer_ms, struct err *err);
/* The same, and starts the holder if there is none. HOLDER: path of cordon-holder. *ret_fresh: it was us who
 * started it, and it has none but built-in numbers; may be NULL. */
ERR_MUST_USE int pool_client_start(struct pool_client *ret, const struct pool_environment *e,
                                   const char *holder, bool *ret_fresh, struct err *err);
void pool_client_close(struct pool_client *c);

/* ---- one run ---- */

/* A child for one run, locked at least as tightly as LIMITS. It is the caller's: adopt it (jail_run_adopt) or let it
 * go (jail_child_close). One round trip where one is ready. PATIENCE_MS: how long to wait for one that is being made;
 * 0: not at all. When the connection ends, it dies. */
ERR_MUST_USE int pool_client_lease(struct pool_client *c, const char *profile, bool packages,
                                   const struct jail_limits *limits, uint64_t patience_ms,
                                   struct jail_child *ret_child, struct pool_answer *ret,
                                   struct err *err);

/* The same in two halves: the holder looks for a child while the caller has other work to do. Between the
 * two the connection serves nothing else. */
struct pool_lease {
    const char *language; /* NULL: the default one */
    const char *profile;
    bool packages;
    struct jail_limits limits;
    uint64_t patience_ms;
};
ERR_MUST_USE int pool_client_order(struct pool_client *c, const struct pool_lease *lease,
                                   struct err *err);
ERR_MUST_USE int pool_client_take(struct pool_client *c, const struct pool_lease *lease,
                                  struct jail_child *ret_child, struct pool_answer *ret,
                                  struct err *err);

/* For a client that stays: asks for the next child when there is time, after the last one went back. The next lease
 * of the same kind finds it in the socket and makes no round trip; any other request gives it back first. It is lent to
 * this connection from now on: it counts as such, and dies with it. */
ERR_MUST_USE int pool_client_ahead(struct pool_client *c, const struct pool_lease *lease,
                                   struct err *err);

/* ---- sessions ---- */

struct pool_session_spec {
    const char *name;     /* empty: the holder makes one up */
    const char *language; /* NULL: the default one */
    const char *profile, *role;
    bool packages;
    struct jail_limits
        limits; /* cpu_ms bounds a call, not the session: that is the caller's to do */
    uint64_t idle_ms;
    const struct pool_shares *shares; /* what it sees of the host; NULL: nothing */
    struct pool_rules_numbers rules;  /* mark 0: the profile is built in */
    const void *rules_data;           /* else the bytes of RULES, at most POOL_RULES */
    size_t rules_len;
};

/* Makes a session and lends it to the caller at once, as a call does. */
ERR_MUST_USE int pool_client_new(struct pool_client *c, const struct pool_session_spec *spec,
                                 struct jail_child *ret_child, struct pool_answer *ret,
                                 struct err *err);
/* Lends a session for one call: reply.lent tells what came before. */
ERR_MUST_USE int pool_client_call(struct pool_client *c, const char *name, bool for_fork,
                                  struct jail_child *ret_child, struct pool_answer *ret,
                                  struct err *err);
/* The branch of the session that is lent, under a name of its own (empty: made up). BRANCH stays the caller's
 * to close. NOTE: for its clients, as with pool_client_back. */
ERR_MUST_USE int pool_client_branch(struct pool_client *c, const char *name, const char *note,
                                    const struct jail_child *branch, struct pool_answer *ret,
                                    struct err *err);
/* The holder keeps `laid` and `lower` of the session that is lent. Declined, or an error: it must not go on. */
ERR_MUST_USE int pool_client_layers(struct pool_client *c, const struct jail_child *session,
                                    struct pool_answer *ret, struct err *err);
/* The session that is lent, and every branch of it, ends with that process. Declined, or an error: it would stay behind. */
ERR_MUST_USE int pool_client_owner(struct pool_client *c, int pidfd, struct pool_answer *ret,
                                   struct err *err);
/* The program runs in the session that is lent: an interrupt, also one that was asked for before, is for it. */
void pool_client_begun(struct pool_client *c);
/* Gives back what is lent, over or not. RECORD (one line of JSON, may be NULL) is kept with the session. The next client
 * finds NOTE in its loan; empty: as it was. The holder does not look at it. */
ERR_MUST_USE int pool_client_back(struct pool_client *c, bool alive, const char *reason,
                                  const char *note, const struct pool_use_numbers *use,
                                  const void *record, size_t len, struct pool_answer *ret,
                                  struct err *err);

ERR_MUST_USE int pool_client_end(struct pool_client *c, const char *name, struct pool_answer *ret,
                                 struct err *err);
/* KeyboardInterrupt in the call that is in it, as soon as its program runs; declined where none is. */
ERR_MUST_USE int pool_client_interrupt(struct pool_client *c, const char *name,
                                       struct pool_answer *ret, struct err *err);
/* *ret_fd: a file with the records, oldest first, at its beginning. */
ERR_MUST_USE int pool_client_export(struct pool_client *c, const char *name, int *ret_fd,
                                    struct pool_answer *ret, struct err *err);
/* The first session after SERIAL; reply.type is POOL_END when there is none. */
ERR_MUST_USE int pool_client_next(struct pool_client *c, uint64_t serial, struct pool_answer *ret,
                                  struct err *err);

/* ---- the pool ---- */

/* A template by what it is. */
struct pool_kind {
    const char *language; /* NULL: the default one */
    const char *profile;
    bool packages;
};
/* KIND NULL: the holder's own numbers, and how many are to wait where nobody says it. */
ERR_MUST_USE int pool_client_set(struct pool_client *c, const struct pool_kind *kind,
                                 const struct pool_set_numbers *set, struct pool_answer *ret,
                                 struct err *err);
/* The holder (SERIAL 0), then its templates; reply.type is POOL_END when there are no more. */
ERR_MUST_USE int pool_client_look(struct pool_client *c, uint64_t serial, struct pool_answer *ret,
                                  struct err *err);
/* FORCE: though sessions live. */
ERR_MUST_USE int pool_client_stop(struct pool_client *c, bool force, struct pool_answer *ret,
                                  struct err *err);

#endif
