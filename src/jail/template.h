/* SPDX-License-Identifier: Apache-2.0 */
/* A template from inside: a pristine process that forks locked children until its holder is gone.
 *
 * Takes:   what to import and hooks of the interpreter; descriptors that the launcher left (JAIL_FD_*).
 * Gives:   children behind every lock of a run, each with its own files, that then call `entry`.
 * Never:   reads a byte of a guest, or lets a descriptor of one child into another.
 * Runs in: the template (`cordon-python --template`), the children it forks, their branches.
 */
#ifndef JAIL_TEMPLATE_H
#define JAIL_TEMPLATE_H

#include "base/err.h"

/* What a template finds when it starts. Children find only the channel. */
enum {
    JAIL_FD_CHANNEL = 3, /* a template: its holder's orders; a child: the channel of its run */
    JAIL_FD_TEMPLATE_PROC = 4, /* a procfs of its own pid namespace: the processes below it alone */
    JAIL_FD_TEMPLATE_RULESET = 5, /* the Landlock rules of children, ready */
    JAIL_FD_TEMPLATE_LIMITS = 6, /* /proc/sys/user: how many namespaces the caller's own may make */
    JAIL_FD_TEMPLATE_LAST = JAIL_FD_TEMPLATE_LIMITS
};

struct jail_template_hooks {
    void *ctx;
    /* Around each fork, in the template, which must have one thread then. NULL: nothing to do. */
    void (*before_fork)(void *ctx);
    void (*after_fork)(void *ctx);
    /* In the child, locked, on the template's own stack; 0, 1, 2 and 3 are its descriptors and nothing
     * else is open. Handlers of pthread_atfork were not run; the pid is 2 and differs from the
     * template's. Random states that the template holds are the same in every child: seed them
     * anew here. What it returns is the exit status. */
    int (*entry)(void *ctx);
};

/* Calls LOAD(ctx) in a process that shares this memory and is a guest in everything else: namespaces of its own, no
 * capability, Landlock's rules of children, a guest's system calls, none of our descriptors but the three
 * streams (and a pipe on 3, whose place a child needs). What it put into memory is there when this returns, and the
 * process is gone: whatever it opened, mounted, wrote or started is gone with it. The caller sleeps meanwhile; it must have one thread.
 * ERR: it was not locked, did not return 0, or has left a thread. */
ERR_MUST_USE int jail_template_load(int (*load)(void *ctx), void *ctx, struct err *err);

/* In a fork of the template, which has put something of its own in place of descriptor 3: the same locks, as far as
 * a process can close them itself. */
ERR_MUST_USE int jail_template_confine(struct err *err);

/* Serves the holder's orders on descriptor 3. Returns 0 when the holder has closed them; an error only
 * if it cannot serve at all (what fails for one child is told to the holder). In children it does
 * not return. The process must have one thread; no signal handler of the caller runs meanwhile. */
ERR_MUST_USE int jail_template_serve(const struct jail_template_hooks *hooks, struct err *err);

/* Before jail_compute_only, where the process may be asked to branch later: what only an open table can ask. */
int jail_branch_prepare(void);

/* The locked guest's side of a session fork, after the supervisor asked for it (FORK on the channel).
 * Returns 1 in the branch, which has files and descriptors of its own by then, 0 in the session that
 * goes on, a negative errno where it was refused. Without having been asked: -EPERM, and a violation. */
int jail_branch_here(void);

#endif
