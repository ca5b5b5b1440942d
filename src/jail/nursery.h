/* How a template makes one child, and what stays above it.
 *
 * Takes:   a plan for a child, the template's hooks.
 * Gives:   a locked child as a set of descriptors.
 * Never:   is included outside src/jail; builds two at the same time.
 * Runs in: the template; the builder of a child, in the template's memory; the child.
 */
#ifndef JAIL_NURSERY_H
#define JAIL_NURSERY_H

#include "jail/attest.h"
#include "jail/child.h"
#include "jail/template.h"

#include <stddef.h>
#include <sys/types.h>

#define JAIL_CHILDREN 4096 /* of one template, alive at the same time */

struct jail_nursery {
    const struct jail_template_hooks *hooks;
    int proc, ruleset;
    struct jail_proof own; /* who and where the template is */
    int *tid;              /* where the C library keeps the number of its one thread */
    char *stacks;          /* one small stack for the builder of each child */
    pid_t builders[JAIL_CHILDREN];
    size_t used; /* no slot from here on was ever taken */
};

ERR_MUST_USE int jail_nursery_init(struct jail_nursery *n, const struct jail_template_hooks *hooks,
                                   struct err *err);

/* A child that is being locked. */
struct jail_expected {
    struct jail_child child;
    int ready; /* readable when it is, or is dead: then finish */
};
ERR_MUST_USE int jail_nursery_begin(struct jail_nursery *n, const struct jail_child_plan *plan,
                                    struct jail_expected *ret, struct err *err);
ERR_MUST_USE int jail_nursery_finish(struct jail_expected *e, struct jail_child *ret_child,
                                     struct err *err); /* E is used up */
void jail_nursery_reap(struct jail_nursery *n);        /* those that have died, without waiting */

/* birth.c: the part of the child's side. The builder's body, on a stack of its own in the template's memory.
 * What it needs is read before the launcher speaks; what it fails with is in ERR. */
struct jail_birth {
    const struct jail_nursery *nursery;
    const struct jail_spec *spec;
    int fds[8];       /* onto JAIL_BIRTH_* */
    char options[96]; /* of its file system */
    char *stack;      /* of the launcher: the template's own, further down */
    struct err err;
};
enum { /* descriptors of a builder, and of a launcher until it is locked: 0, 1, 2, the channel, then */
       JAIL_BIRTH_READY = JAIL_FD_CHANNEL + 1,
       JAIL_BIRTH_CONTROL,
       JAIL_BIRTH_PROC,
       JAIL_BIRTH_RULESET,
       JAIL_BIRTH_FILES,
       JAIL_BIRTH_LISTENER = JAIL_BIRTH_CONTROL, /* a launcher's, at its end */
};
#define JAIL_BIRTH_CLONED 'C' /* the builder's word; a message of the table begins otherwise */
int jail_birth_build(void *birth);

/* warden.c: the builder's life after the launcher was cloned: init of the child and of its branches. */
_Noreturn void jail_warden(int control, int guest);

#endif
