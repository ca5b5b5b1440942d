/* SPDX-License-Identifier: Apache-2.0 */
/* Locked children from outside: a template makes them, a supervisor adopts them for a run, a session
 * is branched.
 *
 * Takes:   the specification of a template; orders for children.
 * Gives:   children as sets of descriptors that travel between our processes; runs over them.
 * Never:   reads what a guest wrote, except in an adopted run (run.h), which only carries it.
 * Runs in: the holder (`cordon-holder`); the supervisor that leases a child from it.
 */
#ifndef JAIL_CHILD_H
#define JAIL_CHILD_H

#include "base/err.h"
#include "jail/attest.h"
#include "jail/run.h"
#include "jail/spec.h"
#include "sys/fd.h"

#include <stdbool.h>
#include <stdint.h>

/* One child. Every descriptor is the holder's of this struct; -1: not there. */
#define JAIL_CHILD_FDS(X)                                                                          \
    X(channel) /* to the worker, SOCK_SEQPACKET */                                                 \
    X(in)      /* write end of its stdin */                                                        \
    X(out)     /* read ends, non-blocking */                                                       \
    X(err)                                                                                         \
    X(control)  /* to the init above it, which kills it when no copy of this is open any more */   \
    X(listener) /* its denied calls */                                                             \
    X(init)     /* pidfd of the pid 1 above it */                                                  \
    X(guest)    /* pidfd of itself */                                                              \
    X(files)    /* the root of its own file system: `workspace` and `tmp` */                       \
    X(calls)    /* of a session: memory in which its supervisors pass on calls of relatives */     \
    X(wake)     /* of a session: eventfd that tells all of them of such a call (family.c) */       \
    X(laid)     /* of a session upon layers: the folder that they are in, below its cover */       \
    X(lower)    /* of a session upon layers: the checkout below, as its maker opened it */

struct jail_child {
#define X(name) int name;
    JAIL_CHILD_FDS(X)
#undef X
    uint64_t tag;
    char filter[24];
    bool session;              /* may be branched, and lives for many runs */
    uint64_t generation;       /* 0: from the template; a branch is one more */
    struct jail_limits limits; /* what it is locked with */
    struct jail_layers layers; /* what it proved */
};
#define JAIL_CHILD_NONE                                                                            \
    {                                                                                              \
        .channel = -1, .in = -1, .out = -1, .err = -1, .control = -1, .listener = -1, .init = -1,  \
        .guest = -1, .files = -1, .calls = -1, .wake = -1, .laid = -1, .lower = -1                 \
    }
void jail_child_close(
    struct jail_child *c); /* the child dies where no other process has its descriptors */
void jail_child_kill(const struct jail_child *c);
bool jail_child_alive(const struct jail_child *c);
pid_t jail_child_pid(const struct jail_child *c); /* of the guest, in our pid namespace; 0: gone */
/* CPU time of process GUEST with all its threads so far; 0: it is gone. */
uint64_t jail_child_cpu_us(pid_t guest);

/* The second clock: the init above the child kills it at DEADLINE_NS (CLOCK_MONOTONIC), whatever its supervisor does; 0:
 * never. CONTROL is the child's. 0, or -1: the init is gone, or does not listen. */
ERR_MUST_USE int jail_child_deadline(int control, uint64_t deadline_ns);
#define JAIL_BEHIND_MS 1000ULL /* the init's clock is so much behind the supervisor's */
#define JAIL_GIVE_BACK_MS                                                                          \
    10000ULL /* a session that is done is given back, or branched, in that time */

/* One packet on a SOCK_SEQPACKET socket; both ends keep, or get, descriptors of their own. The receiver
 * trusts the sender: check who it is (SO_PEERCRED) first. */
ERR_MUST_USE int jail_child_send(int sock, const struct jail_child *c, struct err *err);
ERR_MUST_USE int jail_child_receive(int sock, struct jail_child *ret_child, struct err *err);

/* The same for a packet P that the caller has received already, with space for JAIL_CHILD_RIDE descriptors. The child
 * owns them afterwards; on an error they are closed. */
#define JAIL_CHILD_RIDE 13
ERR_MUST_USE int jail_child_read(struct fd_packet *p, struct jail_child *ret_child,
                                 struct err *err);

/* ---- templates, in the holder ---- */

struct jail_template;

/* SPEC: kind JAIL_KIND_TEMPLATE, filter "template", program and argv of the worker, binds as for a run.
 * Its limits are not used, except memory (0: none). SINK takes what it prints. Sleeps while its root is built,
 * not while the program starts: orders may be given at once. */
ERR_MUST_USE int jail_template_new(const struct jail_spec *spec, const char *nest,
                                   const struct jail_sink *sink, struct jail_template **ret,
                                   struct err *err);
void jail_template_free(struct jail_template *t);    /* it, its children and their branches die */
int jail_template_fd(const struct jail_template *t); /* readable when a step has work */
pid_t jail_template_pid(const struct jail_template *t); /* in our pid namespace; 0: not known */

struct jail_child_spec {
    uint64_t tag;              /* comes back with the child */
    const char *filter;        /* "python", or "python-threads" where limits.threads is not 0 */
    struct jail_limits limits; /* wall_ms and output are kept by the supervisor */
    bool session;
};
/* The bytes of RULES, for a template that was started with --rules and waits for them. */
ERR_MUST_USE int jail_template_rules(struct jail_template *t, const void *rules, size_t len,
                                     struct err *err);
/* Asks for one child. Answers come in the order of the orders. */
ERR_MUST_USE int jail_template_order(struct jail_template *t, const struct jail_child_spec *spec,
                                     struct err *err);

enum jail_template_event {
    JAIL_TEMPLATE_NOTHING, /* yet */
    JAIL_TEMPLATE_CHILD,   /* RET_CHILD is yours; it is locked, its worker warms itself up */
    JAIL_TEMPLATE_REFUSED, /* this one could not be made; ERR tells why, RET_CHILD.tag which */
    JAIL_TEMPLATE_GONE,    /* the template is dead, with all its children; ERR tells how */
};
/* Handles what is there without waiting (TIMEOUT_MS 0) or waits for the next event at most so long. */
enum jail_template_event jail_template_step(struct jail_template *t, int timeout_ms,
                                            struct jail_child *ret_child, struct err *err);

/* ---- runs over a child ---- */

struct jail_adopt {
    struct jail_limits limits; /* 0 in a field: as the child is locked. Never more than that */
    int input;                 /* pumped to stdin, stays the caller's; -1: stdin is at its end */
    bool by_line;              /* ... a line for each jail_run_feed_line */
    struct jail_sink sink;     /* `channel` tells of child->channel, which stays the caller's */
};
/* Takes over CHILD and watches it. When it returns 0, the child's descriptors but the channel are the run's; on an error
 * all of them are still the caller's. The run is served by the same
 * jail_run_step, jail_run_stop, jail_run_end_now and jail_run_free as a run of jail_run_new. For a
 * session the end is jail_run_release; everything else ends the session. The supervisor reaps
 * nothing: the template does. */
ERR_MUST_USE int jail_run_adopt(struct jail_child *child, const struct jail_adopt *a,
                                struct jail_run **ret_run, struct err *err);

/* What bounds it: the tighter of what it is locked with and what was asked for. */
const struct jail_limits *jail_run_limits(const struct jail_run *run);

/* The clocks of the run (wall, CPU) start anew: the worker is about to be told GO. */
void jail_run_clock(struct jail_run *run);

/* The worker said that this call is done; the session lives on. The outcome is as with
 * jail_run_end_now, the next step returns true, and nothing is killed. */
void jail_run_release(struct jail_run *run, int exit_code);

/* Puts the files of the folder FROM into /workspace of the session whose `files` these are, in place of what is there.
 * FROM has nothing that a guest made but names and contents. ERR_STATE: they do not fit; ERR_SYS: nothing is known about
 * what is there now. At most LIMIT_WORKSPACE_RUN_MS. */
ERR_MUST_USE int jail_child_fill(int files, int from, struct err *err);

/* The same without a copy: /workspace is an overlay from now on, with the folder LOWER below, which nobody may change as long as
 * CHILD->lower, a copy of that descriptor, is open anywhere. CHILD has it and `laid` then; whoever keeps the session must
 * keep both. What the session had in /workspace before is gone. The first time nothing of a guest has run in it. JAIL_LAYER_NONE: there are no overlays here (or not of this
 * checkout), and the session is as it was. An error: the session must not go on. */
enum { JAIL_LAYER_NONE = 1 };
ERR_MUST_USE int jail_child_layer(struct jail_child *child, int lower, struct err *err);

/* ---- session fork, in the holder ---- */

#define JAIL_GENERATIONS 24

/* Branches an idle session (no run has it, its worker waits on the channel): variables and files as they are.
 * Sends FORK on its channel, lets the one clone pass, gives the branch files, streams and channel of its own, and
 * sees that it has dropped what it must before it goes on. ERR_STATE: refused by name (threads, open or mapped
 * files of the workspace, too many generations; we have no descriptor or memory left); the session goes on. ERR_MISSING: the session did
 * something else than it was asked for, and session and branch are dead. Relatives may be in a call or be forked meanwhile, and go on in
 * either case. Sleeps, at most 3 seconds for each of three calls. Both are killed JAIL_GIVE_BACK_MS later, unless whoever
 * stops them lifts that (jail_child_deadline). */
ERR_MUST_USE int jail_branch(const struct jail_child *session, struct jail_child *ret_branch,
                             struct err *err);

#endif
