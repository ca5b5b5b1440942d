/* SPDX-License-Identifier: Apache-2.0 */
/* The walk of the rewriter through a tree, for the files that know one kind of node each.
 *
 * Takes:   nodes that wait on a stack of its own.
 * Gives:   the tree with guards in it.
 * Never:   recurses: a tree is as deep as its author likes.
 * Runs in: cordon-python, in the jail.
 */
#ifndef WORKER_PYTHON_GUARD_WALK_H
#define WORKER_PYTHON_GUARD_WALK_H

#include "guard_nodes.h"

/* A node that waits, and where it hangs: in a dict under a field, or in a list. Borrowed: the tree
 * holds them all, and nothing that waits is ever taken off it. */
struct waiting {
    PyObject *node;
    PyObject *holder;
    PyObject *field; /* NULL: holder is a list */
    Py_ssize_t index;
    PyObject *class_name; /* for private names; NULL outside of classes */
    bool augmented;       /* the target of an augmented assignment */
    PyObject *caller;     /* the call whose method this attribute is, or NULL */
};

struct walk {
    struct waiting *stack;
    size_t count, cap;
    bool strings; /* from __future__ import annotations: annotations are never evaluated */
    unsigned temporaries;
    int error; /* -1: a Python exception is set */
};

void walk_push(struct walk *w, struct waiting item);
void walk_push_value(struct walk *w, PyObject *value, PyObject *holder, PyObject *field,
                     PyObject *class_name);
void walk_push_field(struct walk *w, PyObject *node, PyObject *field, PyObject *class_name);
void walk_push_all(struct walk *w, PyObject *node, PyObject *class_name);
/* Puts NEW where ITEM hangs; steals NEW. */
int walk_replace(struct walk *w, const struct waiting *item, PyObject *new);
/* The value in the field of NODE becomes OP(value); it waits in its new place. */
void walk_guard_field(struct walk *w, PyObject *node, PyObject *field, enum guard_op op,
                      PyObject *at, PyObject *class_name);

/* guard_access.c */
enum guard_name walk_class_of(PyObject *name);
bool walk_is_literal(PyObject *node);
void walk_attribute(struct walk *w, const struct waiting *item);
void walk_call(struct walk *w, const struct waiting *item);
void walk_subscript(struct walk *w, const struct waiting *item);
void walk_starred(struct walk *w, const struct waiting *item);

#endif
