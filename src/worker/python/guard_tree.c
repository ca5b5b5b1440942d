/* SPDX-License-Identifier: Apache-2.0 */
/* The rewriter. It goes through a judged tree with a stack of its own and puts guarded operations where
 * the program reads, writes, indexes, iterates or unpacks:
 *
 *   x.name             get(x, 'name')           names are classed here, once; see enum guard_name
 *   x.name = v         set(x, 'name').name = v  the same object, if it may be set; for every target:
 *                                               assignment, for, with, comprehension, del
 *   x.name += v        aug(x, 'name').name += v
 *   x[k]               item(x, k)               unless k can be no string: slices, tuples, numbers
 *   x[k] = v           x[key(k)] = v
 *   for t in x         for t in iter(x)         also in comprehensions, and f(*x)
 *   a, b = x           a, b = unpack(x)         also for and with targets
 *
 * A target keeps its form, so the order of evaluation is Python's own. Patterns of `match` can hold no
 * calls: a pattern with a name that is refused makes the whole statement a refusal, and the names
 * that pass are looked up in types whose insides are closed (guard_hide.c).
 *
 * What needs no guard is left alone: attributes of literals, and calls of the few methods (append, items)
 * that are in every inner loop and lead nowhere on any object. */
#include "guard_walk.h"

#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX (1U << 22) /* nodes that wait at once; far above any source that fits */

void walk_push(struct walk *w, struct waiting item)
{
    if (w->error)
        return;
    if (w->count == w->cap) {
        size_t cap = w->cap ? w->cap * 2 : 256;
        struct waiting *p = cap > DEPTH_MAX ? NULL : realloc(w->stack, cap * sizeof *p);
        if (!p) {
            PyErr_NoMemory();
            w->error = -1;
            return;
        }
        w->stack = p;
        w->cap = cap;
    }
    w->stack[w->count++] = item;
}

/* A namespace without its own __builtins__ gets Python's, from whoever runs code in it next
 * (dataclasses does). So the name is nobody's to bind or delete, in any of the fields that can. */
static bool is_builtins(PyObject *name)
{
    return PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, "__builtins__") == 0;
}

static void refuse_builtins(struct walk *w)
{
    if (!w->error)
        guard_refuse_own("py.guard.builtins", "__builtins__", "call the builtin by its name");
    w->error = -1;
}

void walk_push_value(struct walk *w, PyObject *value, PyObject *holder, PyObject *field,
                     PyObject *class_name)
{
    if (!value)
        return;
    if (PyUnicode_Check(value) && field != word.attr && field != word.value && is_builtins(value))
        refuse_builtins(w);
    if (PyList_Check(value)) {
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(value); i++)
            if (is_builtins(PyList_GET_ITEM(value, i)))
                refuse_builtins(w);
            else if (node_kind(PyList_GET_ITEM(value, i)) != NODE_NONE)
                walk_push(w, (struct waiting){PyList_GET_ITEM(value, i), value, NULL, i, class_name,
                                              false});
    } else if (field != word.ctx && field != word.op && node_kind(value) != NODE_NONE) {
        walk_push(w, (struct waiting){value, holder, field, 0, class_name, false, NULL});
    }
}

void walk_push_field(struct walk *w, PyObject *node, PyObject *field, PyObject *class_name)
{
    walk_push_value(w, node_get(node, field), node_dict(node), field, class_name);
}

void walk_push_all(struct walk *w, PyObject *node, PyObject *class_name)
{
    PyObject *dict = node_dict(node), *field, *value;
    Py_ssize_t at = 0;
    while (dict && PyDict_Next(dict, &at, &field, &value))
        walk_push_value(w, value, dict, field, class_name);
}

/* Puts NEW where ITEM hangs; steals NEW. */
int walk_replace(struct walk *w, const struct waiting *item, PyObject *new)
{
    if (!new) {
        w->error = -1;
        return -1;
    }
    int r;
    if (item->field) {
        r = PyDict_SetItem(item->holder, item->field, new);
        Py_DECREF(new);
    } else {
        r = PyList_SetItem(item->holder, item->index, new);
    }
    if (r < 0)
        w->error = -1;
    return r;
}

/* VALUE, in the field of NODE, becomes OP(VALUE); it waits in its new place. */
void walk_guard_field(struct walk *w, PyObject *node, PyObject *field, enum guard_op op,
                      PyObject *at, PyObject *class_name)
{
    PyObject *value = node_get(node, field), *args = NULL;
    PyObject *call = value ? node_guard(op, value, NULL, at, &args) : NULL;
    if (!call || node_set(node, field, call) < 0)
        w->error = -1;
    else
        walk_push(w, (struct waiting){value, args, NULL, 0, class_name, false, NULL});
    Py_XDECREF(call);
}

/* ---- iteration and unpacking ---- */

static bool takes_apart(PyObject *target)
{
    enum node_kind k = target ? node_kind(target) : NODE_NONE;
    return k == NODE_Tuple || k == NODE_List;
}

/* range(), enumerate() and zip() give numbers and tuples of their own making. */
static bool makes_tuples(PyObject *iterable)
{
    PyObject *func = node_kind(iterable) == NODE_Call ? node_get(iterable, word.func) : NULL;
    PyObject *id = func && node_kind(func) == NODE_Name ? node_get(func, word.id) : NULL;
    return id && (PyUnicode_CompareWithASCIIString(id, "range") == 0 ||
                  PyUnicode_CompareWithASCIIString(id, "enumerate") == 0 ||
                  PyUnicode_CompareWithASCIIString(id, "zip") == 0);
}

static void guard_iterable(struct walk *w, PyObject *node, PyObject *at, PyObject *class_name)
{
    PyObject *iterable = node_get(node, word.iter);
    if (walk_is_literal(iterable) || makes_tuples(iterable))
        walk_push_field(w, node, word.iter, class_name);
    else
        walk_guard_field(w, node, word.iter,
                         takes_apart(node_get(node, word.target)) ? GUARD_ITER_TUPLES : GUARD_ITER,
                         at, class_name);
}

static void visit_comprehension(struct walk *w, const struct waiting *item)
{
    PyObject *node = item->node, *dict = node_dict(node), *field, *value;
    PyObject *async = node_get(node, word.is_async);
    bool plain = !async || (PyLong_Check(async) && PyLong_AsLong(async) == 0);
    Py_ssize_t at = 0;
    if (plain)
        guard_iterable(w, node, node_get(node, word.target), item->class_name);
    while (dict && PyDict_Next(dict, &at, &field, &value))
        if (!plain || field != word.iter)
            walk_push_value(w, value, dict, field, item->class_name);
}

/* TARGET, in the field of HOLDER, becomes a name that no program can write; BODY begins with
 * `TARGET = unpack(name); del name`. */
static void unpack_in_body(struct walk *w, PyObject *holder, PyObject *field, PyObject *body,
                           PyObject *at, PyObject *class_name)
{
    PyObject *target = Py_NewRef(node_get(holder, field)), *args = NULL;
    PyObject *id = PyUnicode_FromFormat("@%u", w->temporaries++);
    PyObject *store = id ? node_name(id, NODE_Store, at) : NULL;
    PyObject *load = id ? node_name(id, NODE_Load, at) : NULL;
    PyObject *del = id ? node_name(id, NODE_Del, at) : NULL;
    PyObject *call = load ? node_guard(GUARD_UNPACK, load, NULL, at, &args) : NULL;
    PyObject *assign = call ? node_assign(target, call, at) : NULL;
    PyObject *gone = del ? node_delete(del, at) : NULL;
    if (!store || !assign || !gone || !node_is_list(body) || node_set(holder, field, store) < 0 ||
        PyList_Insert(body, 0, gone) < 0 || PyList_Insert(body, 0, assign) < 0)
        w->error = -1;
    else /* the statement's own target waits where it hangs now */
        walk_push_field(w, assign, word.targets, class_name);
    Py_DECREF(target);
    Py_XDECREF(id);
    Py_XDECREF(store);
    Py_XDECREF(load);
    Py_XDECREF(del);
    Py_XDECREF(call);
    Py_XDECREF(assign);
    Py_XDECREF(gone);
}

/* After an unpack_in_body the first statements of a body are ours and are done. */
static void push_body(struct walk *w, PyObject *body, Py_ssize_t from, PyObject *class_name)
{
    for (Py_ssize_t i = from; body && i < PyList_GET_SIZE(body); i++)
        walk_push(
            w, (struct waiting){PyList_GET_ITEM(body, i), body, NULL, i, class_name, false, NULL});
}

static void visit_for(struct walk *w, const struct waiting *item, bool async)
{
    PyObject *node = item->node, *body = node_get(node, word.body);
    PyObject *dict = node_dict(node), *field, *value;
    Py_ssize_t ours = 0, at = 0;
    if (async && takes_apart(node_get(node, word.target))) {
        unpack_in_body(w, node, word.target, body, node, item->class_name);
        ours = 2;
    } else {
        walk_push_field(w, node, word.target, item->class_name);
    }
    if (async)
        walk_push_field(w, node, word.iter, item->class_name);
    else
        guard_iterable(w, node, node, item->class_name);
    push_body(w, body, ours, item->class_name);
    while (dict && PyDict_Next(dict, &at, &field, &value))
        if (field != word.target && field != word.iter && field != word.body)
            walk_push_value(w, value, dict, field, item->class_name);
}

static void visit_with(struct walk *w, const struct waiting *item)
{
    PyObject *node = item->node, *items = node_get(node, word.items);
    PyObject *body = node_get(node, word.body);
    Py_ssize_t ours = 0;
    /* from the last to the first, since each goes before the others; a later item may use what an
     * earlier one unpacked, so only the last may wait for the body */
    for (Py_ssize_t i = items ? PyList_GET_SIZE(items) - 1 : -1; i >= 0; i--) {
        PyObject *one = PyList_GET_ITEM(items, i);
        PyObject *dict = node_dict(one), *field, *value;
        Py_ssize_t at = 0;
        bool last = i == PyList_GET_SIZE(items) - 1;
        bool apart = last && takes_apart(node_get(one, word.optional_vars));
        if (apart) {
            unpack_in_body(w, one, word.optional_vars, body, node, item->class_name);
            ours = 2;
        }
        while (dict && PyDict_Next(dict, &at, &field, &value))
            if (!apart || field != word.optional_vars)
                walk_push_value(w, value, dict, field, item->class_name);
    }
    push_body(w, body, ours, item->class_name);
}

static void visit_assign(struct walk *w, const struct waiting *item)
{
    PyObject *node = item->node, *targets = node_get(node, word.targets);
    bool apart = false;
    for (Py_ssize_t i = 0; targets && i < PyList_GET_SIZE(targets); i++)
        apart = apart || takes_apart(PyList_GET_ITEM(targets, i));
    walk_push_field(w, node, word.targets, item->class_name);
    if (apart && !walk_is_literal(node_get(node, word.value)))
        walk_guard_field(w, node, word.value, GUARD_UNPACK, node, item->class_name);
    else
        walk_push_field(w, node, word.value, item->class_name);
}

static void visit_aug_assign(struct walk *w, const struct waiting *item)
{
    PyObject *node = item->node;
    walk_push_field(w, node, word.value, item->class_name);
    walk_push(w, (struct waiting){node_get(node, word.target), node_dict(node), word.target, 0,
                                  item->class_name, true, NULL});
}

/* ---- scopes ---- */

static void visit_class(struct walk *w, const struct waiting *item)
{
    PyObject *node = item->node, *dict = node_dict(node), *field, *value;
    Py_ssize_t at = 0;
    PyObject *name = node_get(node, word.name);
    while (dict && PyDict_Next(dict, &at, &field, &value))
        walk_push_value(w, value, dict, field, field == word.body ? name : item->class_name);
}

/* Everything but the annotations, where those are text. */
static void visit_annotated(struct walk *w, const struct waiting *item)
{
    PyObject *node = item->node, *dict = node_dict(node), *field, *value;
    Py_ssize_t at = 0;
    while (dict && PyDict_Next(dict, &at, &field, &value))
        if (!w->strings || (field != word.annotation && field != word.returns))
            walk_push_value(w, value, dict, field, item->class_name);
}

/* ---- match ---- */

/* A pattern reads in plain bytecode. Who reads __init__ so could make a library's object again. */
static bool may_stand_in_pattern(PyObject *name)
{
    return walk_class_of(name) == GUARD_NAME_FREE && !guard_is_init(name);
}

/* The first name in a pattern that may not be used, borrowed; NULL when there is none. */
static PyObject *refused_in_pattern(struct walk *w, PyObject *pattern)
{
    size_t floor = w->count;
    PyObject *bad = NULL;
    walk_push(w, (struct waiting){pattern, NULL, NULL, 0, NULL, false, NULL});
    while (!w->error && w->count > floor) {
        PyObject *node = w->stack[--w->count].node;
        PyObject *names =
            node_kind(node) == NODE_MatchClass ? node_get(node, word.kwd_attrs) : NULL;
        for (Py_ssize_t i = 0; names && i < PyList_GET_SIZE(names) && !bad; i++)
            if (!may_stand_in_pattern(PyList_GET_ITEM(names, i)))
                bad = PyList_GET_ITEM(names, i);
        PyObject *attribute = node_kind(node) == NODE_Attribute ? node_get(node, word.attr) : NULL;
        if (attribute && !bad && !may_stand_in_pattern(attribute))
            bad = attribute;
        walk_push_all(w, node, NULL);
    }
    return bad;
}

static void visit_match(struct walk *w, const struct waiting *item)
{
    PyObject *node = item->node, *cases = node_get(node, word.cases), *bad = NULL;
    for (Py_ssize_t i = 0; cases && i < PyList_GET_SIZE(cases) && !bad; i++)
        bad = refused_in_pattern(w, node_get(PyList_GET_ITEM(cases, i), word.pattern));
    if (bad) {
        PyObject *text = node_constant(bad, node), *args;
        PyObject *call = text ? node_guard(GUARD_REFUSE, text, text, node, &args) : NULL;
        walk_replace(w, item, call ? node_expr(call, node) : NULL);
        Py_XDECREF(text);
        Py_XDECREF(call);
        return;
    }
    walk_push_field(w, node, word.subject, item->class_name);
    for (Py_ssize_t i = 0; cases && i < PyList_GET_SIZE(cases); i++) {
        walk_push_field(w, PyList_GET_ITEM(cases, i), word.guard, item->class_name);
        walk_push_field(w, PyList_GET_ITEM(cases, i), word.body, item->class_name);
    }
}

/* ---- the walk ---- */

static void visit(struct walk *w, const struct waiting *item)
{
    switch (node_kind(item->node)) {
    case NODE_Attribute:
        walk_attribute(w, item);
        break;
    case NODE_Call:
        walk_call(w, item);
        break;
    case NODE_Subscript:
        walk_subscript(w, item);
        break;
    case NODE_Starred:
        walk_starred(w, item);
        break;
    case NODE_comprehension:
        visit_comprehension(w, item);
        break;
    case NODE_For:
    case NODE_AsyncFor:
        visit_for(w, item, node_kind(item->node) == NODE_AsyncFor);
        break;
    case NODE_With:
    case NODE_AsyncWith:
        visit_with(w, item);
        break;
    case NODE_Assign:
        visit_assign(w, item);
        break;
    case NODE_AugAssign:
        visit_aug_assign(w, item);
        break;
    case NODE_ClassDef:
        visit_class(w, item);
        break;
    case NODE_FunctionDef:
    case NODE_AsyncFunctionDef:
    case NODE_arg:
    case NODE_AnnAssign:
        visit_annotated(w, item);
        break;
    case NODE_Match:
        visit_match(w, item);
        break;
    case NODE_Name:
        if (is_builtins(node_get(item->node, word.id)))
            refuse_builtins(w);
        break;
    case NODE_Constant:
    case NODE_NONE:
        break;
    default:
        walk_push_all(w, item->node, item->class_name);
    }
}

static bool has_string_annotations(PyObject *tree)
{
    PyObject *body = node_get(tree, word.body);
    for (Py_ssize_t i = 0; body && PyList_Check(body) && i < PyList_GET_SIZE(body); i++) {
        PyObject *node = PyList_GET_ITEM(body, i);
        PyObject *module = node_kind(node) == NODE_ImportFrom ? node_get(node, word.module) : NULL;
        if (!module || !PyUnicode_Check(module) ||
            PyUnicode_CompareWithASCIIString(module, "__future__") != 0)
            continue;
        PyObject *names = node_get(node, word.names);
        for (Py_ssize_t k = 0; names && k < PyList_GET_SIZE(names); k++) {
            PyObject *name = node_get(PyList_GET_ITEM(names, k), word.name);
            if (name && PyUnicode_CompareWithASCIIString(name, "annotations") == 0)
                return true;
        }
    }
    return false;
}

int py_guard_rewrite(PyObject *tree, const struct check_ruleset *rules, struct err *err)
{
    struct walk w = {0};
    if (!check_ruleset_profile(rules)->guards)
        return 0;
    if (!guard.hidden)
        return err_set(err, ERR_STATE, "no guarded namespace was made before");
    guard_use_rules(rules);
    w.strings = has_string_annotations(tree);
    walk_push_all(&w, tree, NULL);
    while (!w.error && w.count) {
        struct waiting item = w.stack[--w.count];
        visit(&w, &item);
    }
    free(w.stack);
    node_forget();
    if (w.error)
        return err_set(err, ERR_MEMORY, "the tree could not be rewritten");
    return 0;
}

int guard_tree_init(struct err *err)
{
    return node_init(err);
}
