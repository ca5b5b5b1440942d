/* SPDX-License-Identifier: Apache-2.0 */
/* The types and field names of CPython's tree, taken once, so that a walk compares pointers.
 *
 * Takes:   a started interpreter.
 * Gives:   the kind of a node by its type, its fields by interned names.
 * Never:   calls Python code: nodes are read through their dictionaries.
 * Runs in: cordon-python.
 */
#ifndef WORKER_PYTHON_JUDGE_TREE_H
#define WORKER_PYTHON_JUDGE_TREE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#if PY_VERSION_HEX < 0x03090000
#error "Python 3.9 or newer: before it a subscript's key is wrapped in a node of its own"
#endif
#if PY_VERSION_HEX < 0x030a0000
static inline PyObject *Py_NewRef(PyObject *o)
{
    Py_INCREF(o);
    return o;
}
#endif

/* The nodes that the walk treats in a way of their own. A version that lacks one simply has none. */
#define TREE_KINDS(X)                                                                              \
    X(Name)                                                                                        \
    X(Attribute)                                                                                   \
    X(Call)                                                                                        \
    X(Constant)                                                                                    \
    X(Subscript)                                                                                   \
    X(JoinedStr)                                                                                   \
    X(Tuple)                                                                                       \
    X(List)                                                                                        \
    X(Starred)                                                                                     \
    X(NamedExpr)                                                                                   \
    X(Lambda)                                                                                      \
    X(ListComp)                                                                                    \
    X(SetComp)                                                                                     \
    X(DictComp)                                                                                    \
    X(GeneratorExp)                                                                                \
    X(Import)                                                                                      \
    X(ImportFrom)                                                                                  \
    X(Assign)                                                                                      \
    X(AnnAssign)                                                                                   \
    X(For)                                                                                         \
    X(AsyncFor)                                                                                    \
    X(With)                                                                                        \
    X(AsyncWith)                                                                                   \
    X(FunctionDef)                                                                                 \
    X(AsyncFunctionDef)                                                                            \
    X(ClassDef)                                                                                    \
    X(Global)                                                                                      \
    X(Nonlocal)                                                                                    \
    X(TryStar)                                                                                     \
    X(ExceptHandler)                                                                               \
    X(withitem)                                                                                    \
    X(keyword)                                                                                     \
    X(MatchAs)                                                                                     \
    X(MatchStar)                                                                                   \
    X(MatchMapping)                                                                                \
    X(MatchClass)                                                                                  \
    X(TypeVar)                                                                                     \
    X(TypeVarTuple)                                                                                \
    X(ParamSpec)                                                                                   \
    X(Load)                                                                                        \
    X(Store)                                                                                       \
    X(Del)

enum tree_kind {
    TREE_NONE, /* no node at all: text, numbers, None */
    TREE_LEAF, /* a node that has nothing below it: operators */
    TREE_PLAIN,
#define TREE_KIND_ENUM(name) TREE_##name,
    TREE_KINDS(TREE_KIND_ENUM)
#undef TREE_KIND_ENUM
};

#define TREE_FIELDS(X)                                                                             \
    X(annotation)                                                                                  \
    X(arg)                                                                                         \
    X(args)                                                                                        \
    X(asname)                                                                                      \
    X(attr)                                                                                        \
    X(bases)                                                                                       \
    X(body)                                                                                        \
    X(col_offset)                                                                                  \
    X(context_expr)                                                                                \
    X(ctx)                                                                                         \
    X(decorator_list)                                                                              \
    X(defaults)                                                                                    \
    X(elt)                                                                                         \
    X(end_col_offset)                                                                              \
    X(end_lineno)                                                                                  \
    X(func)                                                                                        \
    X(generators)                                                                                  \
    X(id)                                                                                          \
    X(ifs)                                                                                         \
    X(iter)                                                                                        \
    X(key)                                                                                         \
    X(keys)                                                                                        \
    X(keywords)                                                                                    \
    X(kw_defaults)                                                                                 \
    X(kwarg)                                                                                       \
    X(kwd_attrs)                                                                                   \
    X(kwonlyargs)                                                                                  \
    X(level)                                                                                       \
    X(lineno)                                                                                      \
    X(module)                                                                                      \
    X(name)                                                                                        \
    X(names)                                                                                       \
    X(optional_vars)                                                                               \
    X(orelse)                                                                                      \
    X(posonlyargs)                                                                                 \
    X(rest)                                                                                        \
    X(returns)                                                                                     \
    X(slice)                                                                                       \
    X(target)                                                                                      \
    X(targets)                                                                                     \
    X(type_params)                                                                                 \
    X(value)                                                                                       \
    X(values)                                                                                      \
    X(vararg)

extern struct tree_names {
#define TREE_FIELD_MEMBER(name) PyObject *name;
    TREE_FIELDS(TREE_FIELD_MEMBER)
#undef TREE_FIELD_MEMBER
} py_tree_names;

ERR_MUST_USE int py_tree_init(struct err *err);

/* Whether the types still are as they were at the start: a session's earlier cell may have hung a
 * property into one, and the tree that the walk reads would not be the tree that is compiled.
 * NULL, or the name of the first type that was changed. */
const char *py_tree_changed(void);

/* The slot of a type: open addressing over the type's address. */
struct tree_type {
    PyTypeObject *type;
    uint8_t kind;
    bool is_stmt;
};
enum { TREE_SLOTS = 512 };
extern struct tree_type py_tree_types[TREE_SLOTS];

static inline const struct tree_type *py_tree_type(PyObject *o)
{
    static const struct tree_type none = {0};
    uintptr_t a = (uintptr_t)Py_TYPE(o);
    for (uintptr_t i = a >> 4 ^ a >> 13;; i++) {
        const struct tree_type *t = &py_tree_types[i % TREE_SLOTS];
        if (t->type == Py_TYPE(o))
            return t;
        if (!t->type)
            return &none;
    }
}

/* Where a node keeps its dictionary; 0: this version does it otherwise, ask. */
extern Py_ssize_t py_tree_dict_at;

/* The dictionary of a node, borrowed from it; NULL without memory. */
static inline PyObject *py_tree_dict(PyObject *node)
{
    PyObject *dict = py_tree_dict_at ? *(PyObject **)((char *)node + py_tree_dict_at) : NULL;
    if (dict)
        return dict;
    dict = PyObject_GenericGetDict(node, NULL);
    if (!dict)
        PyErr_Clear();
    Py_XDECREF(dict); /* the node holds it, and nothing changes the tree while it is walked */
    return dict;
}

/* A field of a node, borrowed from the node; NULL when this version or this node has none. */
static inline PyObject *py_tree_get(PyObject *dict, PyObject *name)
{
    PyObject *value = PyDict_GetItemWithError(dict, name);
    if (!value)
        PyErr_Clear(); /* interned text against interned text cannot fail, but must not linger */
    return value;
}

static inline PyObject *py_tree_field(PyObject *node, PyObject *name)
{
    PyObject *dict = py_tree_dict(node);
    return dict ? py_tree_get(dict, name) : NULL;
}

#endif
