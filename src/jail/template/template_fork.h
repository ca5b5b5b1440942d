/* SPDX-License-Identifier: Apache-2.0 */
/* How a template makes one child, and what stays above it.
 *
 * Takes:   a specification for a child, the template's hooks.
 * Gives:   a locked child as a set of descriptors.
 * Never:   is included outside src/jail; builds two at the same time.
 * Runs in: the template; the builder of a child, in the template's memory; the child.
 */
#ifndef JAIL_TEMPLATE_FORK_H
#define JAIL_TEMPLATE_FORK_H

#include "jail/attest.h"
#include "jail/child.h"
#include "jail/template.h"

#include <stddef.h>
#include <sys/types.h>

#define JAIL_CHILDREN (JAIL_TEMPLATE_IDS - 1) /* of one template, alive at the same time */

/* child_build.c: the part of the child's side. The builder's body, on a stack of its own in the template's memory.
 * It makes the namespaces and a file system like the last one's, and waits for an order; what it needs of that is
 * read before the launcher speaks; what it fails with is in ERR. */
struct jail_fork;
#define JAIL_BUILD_OPTIONS 96
struct jail_stage;

struct jail_building {
    const struct jail_fork *fork;
    int fds[9];                       /* onto JAIL_BUILD_* */
    unsigned id;                      /* the child's, in the template's user namespace */
    char mounted[JAIL_BUILD_OPTIONS]; /* options of its file system as it is */
    const struct jail_spec *spec;     /* of the order, as the rest below */
    char options[JAIL_BUILD_OPTIONS]; /* of its file system */
    char *stack;                      /* of the launcher: the template's own, further down */
    struct err err;
    /* Of what imports (load.c): the launcher shares the template's memory, and calls this instead. */
    int (*load)(void *ctx);
    void *ctx;
    int loaded;      /* what it returned */
    char number[16]; /* its folder in the template's procfs */
};

/* Both ends of what connects a child; [0] is ours. */
struct jail_ends {
    int channel[2], control[2], ready[2], in[2], out[2], err[2];
};

struct jail_fork {
    const struct jail_template_hooks *hooks;
    int proc, ruleset, limits;
    struct jail_proof own; /* who and where the template is */
    int *tid;              /* where the C library keeps the number of its one thread */
    char *stacks;          /* one small stack for the builder of each child */
    pid_t builders[JAIL_CHILDREN];
    bool ids;    /* each child has one of its own; else all have the template's */
    size_t used; /* no slot from here on was ever taken */
    char usual[JAIL_BUILD_OPTIONS]; /* what the last child's file system was made with */
    /* The next child's builder, which waits for its order with everything that most orders do not change. */
    struct {
        pid_t pid; /* 0: there is none */
        size_t slot;
        int init; /* pidfd */
        struct jail_ends ends;
    } next;
    struct jail_building building; /* of one at a time */
};

#define JAIL_BUILDER_STACK (16 * 1024) /* of a builder, which later is the init above its child */
char *jail_fork_launcher_stack(void);  /* on the caller's stack: below anything that it may use */

/* The template's one; made at the first call. */
ERR_MUST_USE int jail_fork_open(struct jail_fork **ret, struct err *err);

/* A child that is being locked. */
struct jail_expected {
    struct jail_child child;
    unsigned id; /* as in jail_building */
    int ready;   /* readable when it is, or is dead: then finish */
};
ERR_MUST_USE int jail_fork_begin(struct jail_fork *n, const struct jail_child_spec *order,
                                 struct jail_expected *ret, struct err *err);
ERR_MUST_USE int jail_fork_finish(const struct jail_fork *n, struct jail_expected *e,
                                  struct jail_child *ret_child, struct err *err); /* E is used up */
void jail_fork_kill(const struct jail_fork *n, const struct jail_expected *e);
/* Makes ready what can be made before there is an order. A failure is reported by the next order. */
void jail_fork_prepare(struct jail_fork *n);
void jail_fork_reap(struct jail_fork *n); /* those that have died, without waiting */

enum { /* descriptors of a builder, and of a launcher until it is locked: 0, 1, 2, the channel, then */
       JAIL_BUILD_READY = JAIL_FD_CHANNEL + 1,
       JAIL_BUILD_CONTROL,
       JAIL_BUILD_PROC,
       JAIL_BUILD_RULESET,
       JAIL_BUILD_LIMITS,
       JAIL_BUILD_FILES,
       JAIL_BUILD_LISTENER = JAIL_BUILD_CONTROL, /* a launcher's, at its end */
};
#define JAIL_BUILD_CLONED 'C' /* the builder's words; a message of the table begins otherwise */
#define JAIL_BUILD_MADE   'M' /* its namespaces */
#define JAIL_BUILD_ORDER  'O' /* the template's: go on */
int jail_child_build(void *building); /* a struct jail_building */
/* Closes every lock of a launcher, and all descriptors but streams, channel and, where it has one, its listener; proves each.
 * Not 0: ST says which one failed. */
int jail_child_lock(struct jail_stage *st, bool has_listener);

/* load.c: the launcher's body where `load` is set. */
int jail_load_launch(void *building);

/* child_init.c: the builder's life after the launcher was cloned: init of the child and of its branches. */
_Noreturn void jail_child_init(int control, int guest);

#endif
