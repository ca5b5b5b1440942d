/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of cordon-workspace share: the order that it carries out, and where it prints.
 *
 * Takes:   an order that main.c has read.
 * Gives:   the verbs; an output that makes what it prints harmless to a terminal.
 * Never:   is included by another program.
 * Runs in: cordon-workspace.
 */
#ifndef PROG_WORKSPACE_ORDER_H
#define PROG_WORKSPACE_ORDER_H

#include "base/buf.h"
#include "output/visible.h"
#include "workspace/workspace.h"

enum { ORDER_HOME_FD = 3, ORDER_OTHER_FD = 4, ORDER_LOCK_FD = 5 };

struct order {
    const char *name;
    const char *words[3]; /* what else the verb takes; empty where it was not given */
    enum workspace_form form;
    bool json;
    bool tty;                                     /* what is printed is for a terminal */
    unsigned long long store, free, free_percent; /* bytes of the store; of the disk; 0: any */
    bool copy;  /* keep: what was left is all of the files, and no layer */
    bool upper; /* keep: descriptor 4 is the folder of a session's layers */
};

struct output {
    int fd;
    bool visible;
    struct output_visible state;
    struct buf held;
    int failed; /* errno of the write that failed; 0: none */
};
void output_init(struct output *o, int fd, bool visible);
ERR_MUST_USE int output_put(void *output, const void *data, size_t len);
/* R: what came before. */
ERR_MUST_USE int output_end(struct output *o, int r, struct err *err);

/* What a change came to: the head, whether it moved, what is not in it. */
ERR_MUST_USE int order_tell(const struct order *o, const char *id, bool new,
                            const struct workspace_left *left, struct err *err);

/* bounds.c: there is room for a commit; W, which may be NULL, is bounded from now on. ERR_LIMIT: there is none. */
ERR_MUST_USE int order_bound(const struct order *o, struct workspace *w, struct err *err);
/* Percent of its store that W uses; 0: it has no bound. */
unsigned order_percent(const struct order *o, const struct workspace *w);
/* Where WHY says that a disk is full: which one, how full, and what to do. */
ERR_MUST_USE int order_explain(const char *why, struct buf *line);

/* clones.c, list.c */
ERR_MUST_USE int order_clone(const struct order *o, struct err *err);
ERR_MUST_USE int order_changed(const struct order *o, struct err *err);
ERR_MUST_USE int order_changes(const struct order *o, struct err *err);
ERR_MUST_USE int order_verified(const struct order *o, struct err *err);
ERR_MUST_USE int order_merge(const struct order *o, struct err *err);
ERR_MUST_USE int order_discard(const struct order *o, struct err *err);
ERR_MUST_USE int order_list(const struct order *o, struct err *err);

#endif
