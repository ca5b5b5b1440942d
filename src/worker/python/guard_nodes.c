/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes are read and made through their dicts. That is the cheapest way, and it runs no code: a session's
 * guest can reach the classes of the tree in some profiles, and could put properties on them. */
#include "guard_nodes.h"

#include <string.h>

struct node_words word;

static PyTypeObject *types[NODE_KIND_COUNT];
static PyObject *load, *store, *del, * or, *none_list;
static PyTypeObject *base; /* ast.AST */

#define SLOTS 256 /* a power of two, several times the number of kinds */
static struct {
    PyTypeObject *type;
    enum node_kind kind;
} slots[SLOTS];

static size_t slot_of(const PyTypeObject *type)
{
    return ((uintptr_t)type >> 4) * 0x9E3779B1U % SLOTS;
}

static void add_slot(PyTypeObject *type, enum node_kind kind)
{
    size_t i = slot_of(type);
    while (slots[i].type && slots[i].type != type)
        i = (i + 1) % SLOTS;
    slots[i].type = type;
    slots[i].kind = kind;
}

enum node_kind node_kind(PyObject *x)
{
    for (size_t i = slot_of(Py_TYPE(x)); slots[i].type; i = (i + 1) % SLOTS)
        if (slots[i].type == Py_TYPE(x))
            return slots[i].kind;
    return NODE_NONE;
}

/* Every class of the tree that has fields or is told apart; the rest (operators, contexts) is NODE_NONE. */
static int add_types(PyObject *module)
{
    static const char *const names[NODE_KIND_COUNT] = {
#define NODE_TEXT(name) [NODE_##name] = #name,
        NODE_KINDS(NODE_TEXT)
#undef NODE_TEXT
    };
    PyObject *key, *value, *dict = PyModule_GetDict(module);
    Py_ssize_t at = 0;
    size_t count = 0;
    while (PyDict_Next(dict, &at, &key, &value)) {
        if (!PyType_Check(value) || !PyType_IsSubtype((PyTypeObject *)value, base) ||
            !PyUnicode_Check(key))
            continue;
        enum node_kind kind = NODE_OTHER;
        for (int k = 1; k < NODE_NONE; k++)
            if (PyUnicode_CompareWithASCIIString(key, names[k]) == 0)
                kind = (enum node_kind)k;
        if (kind)
            types[kind] = (PyTypeObject *)Py_NewRef(value);
        add_slot((PyTypeObject *)value, kind);
        if (++count > SLOTS / 2)
            return -1;
    }
    for (int k = 1; k < NODE_NONE; k++)
        if (!types[k] && k != NODE_Match && k != NODE_MatchClass) /* from 3.10 on */
            return -1;
    return 0;
}

static PyObject *bare(enum node_kind kind)
{
    PyObject *none = PyTuple_New(0);
    PyObject *node = none ? types[kind]->tp_new(types[kind], none, NULL) : NULL;
    Py_XDECREF(none);
    return node;
}

int node_init(struct err *err)
{
    PyObject *module = PyImport_ImportModule("_ast");
    base = module ? (PyTypeObject *)PyObject_GetAttrString(module, "AST") : NULL;
    int r = base && PyType_Check(base) ? add_types(module) : -1;
    Py_XDECREF(module);
#define NODE_INTERN(name)                                                                          \
    if (r == 0 && !(word.name = PyUnicode_InternFromString(#name)))                                \
        r = -1;
    NODE_FIELDS(NODE_INTERN)
#undef NODE_INTERN
    if (r == 0 &&
        (!(load = bare(NODE_Load)) || !(store = bare(NODE_Store)) || !(del = bare(NODE_Del)) ||
         !(or = bare(NODE_Or)) || !(none_list = PyList_New(0))))
        r = -1;
    if (r < 0) {
        PyErr_Clear();
        return err_set(err, ERR_MISSING, "the tree of Python %s is not one the guards know",
                       PY_VERSION);
    }
    return 0;
}

PyObject *node_dict(PyObject *node)
{
    PyObject *dict = PyObject_GenericGetDict(node, NULL);
    Py_XDECREF(dict); /* the node holds it */
    return dict;
}

PyObject *node_get(PyObject *node, PyObject *field)
{
    PyObject *dict = node_dict(node);
    PyObject *value = dict ? PyDict_GetItemWithError(dict, field) : NULL;
    if (!value)
        PyErr_Clear();
    return value;
}

int node_set(PyObject *node, PyObject *field, PyObject *value)
{
    PyObject *dict = node_dict(node);
    return dict ? PyDict_SetItem(dict, field, value) : -1;
}

bool node_is_list(PyObject *x)
{
    return x && PyList_Check(x) && PyList_GET_SIZE(x) > 0;
}

/* ---- new nodes ---- */

static PyObject *new_node(enum node_kind kind, PyObject *at)
{
    PyObject *const places[4] = {word.lineno, word.col_offset, word.end_lineno,
                                 word.end_col_offset};
    PyObject *node = bare(kind);
    for (size_t i = 0; node && i < 4; i++) {
        PyObject *value = node_get(at, places[i]);
        if (value && node_set(node, places[i], value) < 0)
            Py_CLEAR(node);
    }
    return node;
}

/* Sets fields, given as pairs; steals NODE, which it returns or frees. */
static PyObject *with(PyObject *node, PyObject *field, PyObject *value, PyObject *field2,
                      PyObject *value2)
{
    if (node && value && (!field2 || value2) && node_set(node, field, value) == 0 &&
        (!field2 || node_set(node, field2, value2) == 0))
        return node;
    Py_XDECREF(node);
    return NULL;
}

PyObject *node_constant(PyObject *value, PyObject *at)
{
    return with(new_node(NODE_Constant, at), word.value, value, word.kind, Py_None);
}

PyObject *node_name(PyObject *id, enum node_kind ctx, PyObject *at)
{
    PyObject *context = ctx == NODE_Load ? load : ctx == NODE_Store ? store : del;
    return with(new_node(NODE_Name, at), word.id, id, word.ctx, context);
}

static PyObject *list_of(PyObject *first, PyObject *second)
{
    PyObject *list = first ? PyList_New(second ? 2 : 1) : NULL;
    if (list) {
        PyList_SET_ITEM(list, 0, Py_NewRef(first));
        if (second)
            PyList_SET_ITEM(list, 1, Py_NewRef(second));
    }
    return list;
}

/* The function's place in a call: `mark or mark`. The compiler makes one constant of it, and unlike a
 * plain constant it does not warn that bytes cannot be called. One is made for each line and shared. */
static struct {
    PyObject *node;
    long line;
} last[GUARD_OP_COUNT];

void node_forget(void)
{
    for (int i = 0; i < GUARD_OP_COUNT; i++)
        Py_CLEAR(last[i].node);
}

static PyObject *function(enum guard_op op, PyObject *at)
{
    PyObject *number = node_get(at, word.lineno);
    long line = number && PyLong_Check(number) ? PyLong_AsLong(number) : -1;
    if (last[op].node && last[op].line == line)
        return Py_NewRef(last[op].node);
    PyObject *mark = node_constant(guard.marks[op], at);
    PyObject *both = list_of(mark, mark);
    PyObject *node = both ? with(new_node(NODE_BoolOp, at), word.op, or, word.values, both) : NULL;
    Py_XDECREF(mark);
    Py_XDECREF(both);
    if (node) {
        Py_XSETREF(last[op].node, Py_NewRef(node));
        last[op].line = line;
    }
    return node;
}

PyObject *node_guard(enum guard_op op, PyObject *first, PyObject *second, PyObject *at,
                     PyObject **ret_args)
{
    PyObject *func = function(op, at), *args = list_of(first, second);
    PyObject *none = PyList_New(0);
    PyObject *call = none ? with(new_node(NODE_Call, at), word.func, func, word.args, args) : NULL;
    call = call ? with(call, word.keywords, none, NULL, NULL) : NULL;
    Py_XDECREF(func);
    Py_XDECREF(args); /* the call holds it */
    Py_XDECREF(none);
    if (call && ret_args)
        *ret_args = args;
    return call;
}

PyObject *node_assign(PyObject *target, PyObject *value, PyObject *at)
{
    PyObject *targets = list_of(target, NULL);
    PyObject *node =
        targets ? with(new_node(NODE_Assign, at), word.targets, targets, word.value, value) : NULL;
    Py_XDECREF(targets);
    return node ? with(node, word.type_comment, Py_None, NULL, NULL) : NULL;
}

PyObject *node_delete(PyObject *target, PyObject *at)
{
    PyObject *targets = list_of(target, NULL);
    PyObject *node =
        targets ? with(new_node(NODE_Delete, at), word.targets, targets, NULL, NULL) : NULL;
    Py_XDECREF(targets);
    return node;
}

PyObject *node_expr(PyObject *value, PyObject *at)
{
    return with(new_node(NODE_Expr, at), word.value, value, NULL, NULL);
}

PyObject *node_expression(PyObject *value)
{
    return with(bare(NODE_Expression), word.body, value, NULL, NULL);
}

PyObject *node_interactive(PyObject *body)
{
    return with(bare(NODE_Interactive), word.body, body, NULL, NULL);
}
