/* SPDX-License-Identifier: Apache-2.0 */
/* The sessions of a holder: which there are, who has which, when each is due to end.
 *
 * Takes:   events (made, lent, given back, died) and the time, which the caller tells.
 * Gives:   the session of a name, and the next moment at which one is due.
 * Never:   touches a process, a descriptor or the clock: what a session's child is, the holder knows.
 * Runs in: cordon-holder, tests.
 */
#ifndef POOL_REGISTRY_H
#define POOL_REGISTRY_H

#include "pool/log.h"
#include "pool/pool.h"
#include "pool/proto.h"

enum pool_session_state {
    POOL_SESSION_NONE, /* a free entry */
    POOL_SESSION_IDLE,
    POOL_SESSION_BUSY, /* with a client */
    POOL_SESSION_OVER, /* remembered: its reason, its records */
};

struct pool_session {
    enum pool_session_state state;
    uint64_t serial; /* never used again, so that a list can go on where it stopped */
    char name[POOL_NAME + 1], profile[POOL_PROFILE + 1], role[POOL_ROLE + 1];
    char reason[POOL_REASON + 1]; /* why it is over */
    char note[POOL_NOTE + 1];     /* its clients': the holder does not read it */
    bool ran_at_rest;             /* ... which is that it used CPU time between two calls */
    char language[POOL_LANGUAGE + 1];
    bool packages;
    struct jail_limits limits;
    uint64_t made_ns, used_ns, over_ns, idle_ns; /* idle_ns: after so long without a call it ends */
    uint64_t calls, ran, host_calls, generation, wall_us, cpu_us;
    uint64_t changed_ns; /* the last change in its files, in the time of files; 0: none */
    uint64_t rules;      /* the mark of those that it was made by; 0: its profile is built in */
    void *child;         /* the holder's; NULL once it is over */
    void *client;        /* who has it; NULL: nobody */
    uint64_t died_ns;    /* its process is gone since then; 0: no */
    struct pool_log log;
};

struct pool_registry {
    struct pool_session session[POOL_SESSIONS + POOL_REMEMBERED];
    struct pool_log_account logs;
    uint64_t serial;
    size_t alive, over;
};

void pool_registry_init(struct pool_registry *reg);
void pool_registry_done(struct pool_registry *reg);

/* A session with a child that lives, idle. NAME empty: one is made up. NULL with a word and a sentence
 * in DECLINED when the name is taken or there is no entry. */
struct pool_session *pool_registry_add(struct pool_registry *reg, const char *name, void *child,
                                       uint64_t now, struct pool_reply *declined);
/* Whether that would be declined, before a child is made for it. */
bool pool_registry_room(struct pool_registry *reg, const char *name, struct pool_reply *declined);

struct pool_session *pool_registry_serial(struct pool_registry *reg, uint64_t serial);
/* The one that lives, else the one of that name that ended last. NULL: there was none. */
struct pool_session *pool_registry_find(struct pool_registry *reg, const char *name);
/* The first with a higher serial number; NULL: no more. */
struct pool_session *pool_registry_after(struct pool_registry *reg, uint64_t serial);

/* Lends an idle session to a client, or says why not. */
struct pool_session *pool_registry_lend(struct pool_registry *reg, const char *name, void *client,
                                        uint64_t now, struct pool_reply *declined);
void pool_registry_back(struct pool_session *s, const struct pool_use_numbers *use, uint64_t now);

/* It is over, for this reason. The child is the caller's again to end. */
void *pool_registry_end(struct pool_registry *reg, struct pool_session *s, uint64_t now,
                        const char *reason);

/* How long the end of a process waits for whoever knows why: its client, its template. */
#define POOL_DEATH_MS 50ULL

/* An idle session whose time is up or whose process is gone, or NULL. What was remembered long enough is forgotten. */
struct pool_session *pool_registry_due(struct pool_registry *reg, uint64_t now);
/* When that can next be so; UINT64_MAX: never. */
uint64_t pool_registry_next_ns(const struct pool_registry *reg);

#endif
