/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes of CPython's tree as the rewriter handles them: kinds, fields, new ones.
 *
 * Takes:   nodes that the parser made.
 * Gives:   kind and fields of a node, read from its own dict; new nodes with a place in the source.
 * Never:   looks an attribute up through a node's type: a guest of an earlier cell may have changed it.
 * Runs in: cordon-python, in the jail.
 */
#ifndef WORKER_PYTHON_GUARD_NODES_H
#define WORKER_PYTHON_GUARD_NODES_H

#include "guard_inside.h"

/* Those that the rewriter tells apart; all other nodes are gone through as they come. */
/* clang-format off */
#define NODE_KINDS(X) \
    X(AnnAssign) X(Assign) X(AsyncFor) X(AsyncFunctionDef) X(AsyncWith) X(Attribute) \
    X(AugAssign) X(BoolOp) X(Call) X(ClassDef) X(Constant) X(Del) X(Delete) X(Dict) X(Expr) X(Expression) \
    X(For) X(FunctionDef) X(ImportFrom) X(Interactive) X(JoinedStr) X(Lambda) X(List) X(ListComp) X(Load) \
    X(Match) X(MatchClass) X(Name) X(Or) X(Slice) X(Starred) X(Store) X(Subscript) X(Tuple) \
    X(UnaryOp) X(With) X(arg) X(comprehension) X(withitem)
/* clang-format on */

enum node_kind {
    NODE_OTHER = 0, /* a node of the tree that is none of those below */
#define NODE_ENUM(name) NODE_##name,
    NODE_KINDS(NODE_ENUM)
#undef NODE_ENUM
        NODE_NONE, /* no node */
    NODE_KIND_COUNT
};

/* clang-format off */
#define NODE_FIELDS(X) \
    X(annotation) X(arg) X(args) X(asname) X(attr) X(bases) X(body) X(cases) X(cls) X(col_offset) \
    X(ctx) X(decorator_list) X(elts) X(end_col_offset) X(end_lineno) X(func) X(guard) X(id) \
    X(is_async) X(items) X(iter) X(keywords) X(kind) X(kwd_attrs) X(lineno) X(module) X(name) \
    X(names) X(op) X(operand) X(optional_vars) X(pattern) X(returns) X(slice) X(subject) \
    X(target) X(targets) X(type_comment) X(value) X(values)
/* clang-format on */

struct node_words { /* interned field names */
#define NODE_WORD(name) PyObject *name;
    NODE_FIELDS(NODE_WORD)
#undef NODE_WORD
};
extern struct node_words word;

ERR_MUST_USE int node_init(struct err *err);

enum node_kind node_kind(PyObject *x);
/* Borrowed; NULL without an exception where the node has no such field. */
PyObject *node_get(PyObject *node, PyObject *field);
int node_set(PyObject *node, PyObject *field, PyObject *value);
PyObject *node_dict(PyObject *node); /* borrowed */
bool node_is_list(PyObject *x);      /* a non-empty list */

/* New nodes, at the place of AT. NULL with a Python exception. Nothing is stolen. */
PyObject *node_constant(PyObject *value, PyObject *at);
PyObject *node_name(PyObject *id, enum node_kind ctx, PyObject *at);
/* A call of the guarded operation with one or two arguments; SECOND may be NULL. *ret_args: its list of
 * arguments, borrowed. */
PyObject *node_guard(enum guard_op op, PyObject *first, PyObject *second, PyObject *at,
                     PyObject **ret_args);
PyObject *node_assign(PyObject *target, PyObject *value, PyObject *at);
PyObject *node_delete(PyObject *target, PyObject *at);
PyObject *node_expr(PyObject *value, PyObject *at);
PyObject *node_expression(PyObject *value); /* a tree of its own */
PyObject *node_interactive(PyObject *body); /* a list of statements */
void node_forget(void);                     /* what is kept between the nodes of one tree */

#endif
