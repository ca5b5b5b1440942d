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
 * that pass are looked up in types whose insides are closed (guard_veil.c).
 *
 * What only the program's own literals can give is left alone: it is the greater part of "".join(x). */
#include "guard_nodes.h"

#include <stdlib.h>
#include <string.h>

/* A node that waits, and where it hangs: in a dict under a field, or in a list. Borrowed: the tree
 * holds them all, and nothing that waits is ever taken off it. */
struct waiting {
    PyObject *node;
    PyObject *holder;
    PyObject *field; /* NULL: holder is a list */
    Py_ssize_t index;
    PyObject *class_name; /* for private names; NULL outside of classes */
    bool augmented;       /* the target of an augmented assignment */
};

struct walk {
    struct waiting *stack;
    size_t count, room;
    bool strings; /* from __future__ import annotations: annotations are never evaluated */
    unsigned temporaries;
    int error; /* -1: a Python exception is set */
};

#define DEPTH_MAX (1U << 22) /* nodes that wait at once; far above any source that fits */

static void push(struct walk *w, struct waiting item)
{
    if (w->error)
        return;
    if (w->count == w->room) {
        size_t room = w->room ? w->room * 2 : 256;
        struct waiting *p = room > DEPTH_MAX ? NULL : realloc(w->stack, room * sizeof *p);
        if (!p) {
            PyErr_NoMemory();
            w->error = -1;
            return;
        }
        w->stack = p;
        w->room = room;
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

static void push_value(struct walk *w, PyObject *value, PyObject *holder, PyObject *field,
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
                push(w, (struct waiting){PyList_GET_ITEM(value, i), value, NULL, i, class_name,
                                         false});
    } else if (field != word.ctx && field != word.op && node_kind(value) != NODE_NONE) {
        push(w, (struct waiting){value, holder, field, 0, class_name, false});
    }
}

static void push_field(struct walk *w, PyObject *node, PyObject *field, PyObject *class_name)
{
    push_value(w, node_get(node, field), node_dict(node), field, class_name);
}

static void push_all(struct walk *w, PyObject *node, PyObject *class_name)
{
    PyObject *dict = node_dict(node), *field, *value;
    Py_ssize_t at = 0;
    while (dict && PyDict_Next(dict, &at, &field, &value))
        push_value(w, value, dict, field, class_name);
}

/* Puts NEW where ITEM hangs; steals NEW. */
static int replace(struct walk *w, const struct waiting *item, PyObject *new)
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
static void guard_field(struct walk *w, PyObject *node, PyObject *field, enum guard_op op,
                        PyObject *at, PyObject *class_name)
{
    PyObject *value = node_get(node, field), *args = NULL;
    PyObject *call = value ? node_guard(op, value, NULL, at, &args) : NULL;
    if (!call || node_set(node, field, call) < 0)
        w->error = -1;
    else
        push(w, (struct waiting){value, args, NULL, 0, class_name, false});
    Py_XDECREF(call);
}

/* ---- names ---- */

/* __x in a class is _Class__x: the compiler's rule, done here since a guard sees the name as text. */
static PyObject *mangled(PyObject *name, PyObject *class_name)
{
    Py_ssize_t len = PyUnicode_GET_LENGTH(name);
    if (!class_name || len < 3 || PyUnicode_READ_CHAR(name, 0) != '_' ||
        PyUnicode_READ_CHAR(name, 1) != '_' ||
        (PyUnicode_READ_CHAR(name, len - 1) == '_' && PyUnicode_READ_CHAR(name, len - 2) == '_'))
        return Py_NewRef(name);
    Py_ssize_t under = 0, end = PyUnicode_GET_LENGTH(class_name);
    while (under < end && PyUnicode_READ_CHAR(class_name, under) == '_')
        under++;
    if (under == end)
        return Py_NewRef(name);
    PyObject *bare = PyUnicode_Substring(class_name, under, end);
    PyObject *text = bare ? PyUnicode_FromFormat("_%U%U", bare, name) : NULL;
    Py_XDECREF(bare);
    if (text)
        PyUnicode_InternInPlace(&text);
    return text;
}

static enum guard_name class_of(PyObject *name)
{
    const struct policy_rule *rule;
    Py_ssize_t len;
    const char *text = PyUnicode_AsUTF8AndSize(name, &len);
    if (!text) {
        PyErr_Clear();
        return GUARD_NAME_REFUSED;
    }
    return guard_name(text, (size_t)len, &rule);
}

static bool is_literal(PyObject *node)
{
    enum node_kind k = node_kind(node);
    return k == NODE_Constant || k == NODE_JoinedStr || k == NODE_List || k == NODE_Tuple ||
           k == NODE_Dict || k == NODE_ListComp;
}

static bool is_format(PyObject *name)
{
    return PyUnicode_CompareWithASCIIString(name, "format") == 0 ||
           PyUnicode_CompareWithASCIIString(name, "format_map") == 0;
}

/* ---- expressions ---- */

static enum guard_op attribute_op(enum node_kind ctx, bool augmented, enum guard_name kind)
{
    static const enum guard_op ops[3][2] = {
        {GUARD_GET, GUARD_OWN_GET}, {GUARD_SET, GUARD_OWN_SET}, {GUARD_AUG, GUARD_OWN_AUG}};
    if (kind == GUARD_NAME_REFUSED)
        return GUARD_REFUSE;
    return ops[ctx == NODE_Load ? 0 : augmented ? 2 : 1][kind == GUARD_NAME_PRIVATE];
}

static void visit_attribute(struct walk *w, const struct waiting *item)
{
    PyObject *node = item->node, *value = node_get(node, word.value), *args = NULL;
    enum node_kind ctx = node_kind(node_get(node, word.ctx));
    PyObject *name = mangled(node_get(node, word.attr), item->class_name);
    enum guard_name kind = name ? class_of(name) : GUARD_NAME_REFUSED;
    if (ctx == NODE_Load && kind == GUARD_NAME_FREE && is_literal(value) && !is_format(name)) {
        push_field(w, node, word.value, item->class_name);
        Py_DECREF(name);
        return;
    }
    PyObject *text = name ? node_constant(name, node) : NULL;
    PyObject *call =
        text ? node_guard(attribute_op(ctx, item->augmented, kind), value, text, node, &args)
             : NULL;
    Py_XDECREF(name);
    Py_XDECREF(text);
    if (!call) {
        w->error = -1;
        return;
    }
    push(w, (struct waiting){value, args, NULL, 0, item->class_name, false});
    if (ctx == NODE_Load) {
        replace(w, item, call);
    } else {
        if (node_set(node, word.value, call) < 0)
            w->error = -1;
        Py_DECREF(call);
    }
}

/* A subscript whose key can be no string needs no guard. */
static bool never_text(PyObject *key)
{
    enum node_kind k = node_kind(key);
    if (k == NODE_Slice || k == NODE_Tuple)
        return true;
    if (k == NODE_UnaryOp)
        key = node_get(key, word.operand);
    PyObject *value = node_kind(key) == NODE_Constant ? node_get(key, word.value) : NULL;
    return value && !PyUnicode_Check(value);
}

/* A string that is written down is decided now. */
static bool plain_text(PyObject *key, bool *ret_refused)
{
    PyObject *value = node_kind(key) == NODE_Constant ? node_get(key, word.value) : NULL;
    Py_ssize_t len;
    const char *text =
        value && PyUnicode_Check(value) ? PyUnicode_AsUTF8AndSize(value, &len) : NULL;
    if (!text) {
        PyErr_Clear();
        return false;
    }
    *ret_refused = guard_is_dunder(text, (size_t)len) &&
                   check_ruleset_match(guard.rules, POLICY_SUBSCRIPT_DENY, text, (size_t)len);
    return true;
}

static void visit_subscript(struct walk *w, const struct waiting *item)
{
    PyObject *node = item->node, *value = node_get(node, word.value), *args = NULL;
    PyObject *key = node_get(node, word.slice);
    bool refused = false, plain = plain_text(key, &refused);
    bool reads = node_kind(node_get(node, word.ctx)) == NODE_Load;
    if (never_text(key) || (plain && !refused) || (reads && is_literal(value) && !plain)) {
        push_all(w, node, item->class_name);
        return;
    }
    if (!reads) {
        push_field(w, node, word.value, item->class_name);
        if (!refused) {
            guard_field(w, node, word.slice, GUARD_KEY, node, item->class_name);
            return;
        }
        PyObject *call = node_guard(GUARD_REFUSE, key, key, node, NULL);
        if (!call || node_set(node, word.slice, call) < 0)
            w->error = -1;
        Py_XDECREF(call);
        return;
    }
    PyObject *call = node_guard(refused ? GUARD_REFUSE : GUARD_ITEM, value, key, node, &args);
    if (replace(w, item, call) == 0) {
        push(w, (struct waiting){value, args, NULL, 0, item->class_name, false});
        push(w, (struct waiting){key, args, NULL, 1, item->class_name, false});
    }
}

static void visit_starred(struct walk *w, const struct waiting *item)
{
    PyObject *node = item->node;
    if (node_kind(node_get(node, word.ctx)) == NODE_Load && !is_literal(node_get(node, word.value)))
        guard_field(w, node, word.value, GUARD_ITER, node, item->class_name);
    else
        push_all(w, node, item->class_name);
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
    if (is_literal(iterable) || makes_tuples(iterable))
        push_field(w, node, word.iter, class_name);
    else
        guard_field(w, node, word.iter,
                    takes_apart(node_get(node, word.target)) ? GUARD_ITER_TUPLES : GUARD_ITER, at,
                    class_name);
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
            push_value(w, value, dict, field, item->class_name);
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
        push_field(w, assign, word.targets, class_name);
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
        push(w, (struct waiting){PyList_GET_ITEM(body, i), body, NULL, i, class_name, false});
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
        push_field(w, node, word.target, item->class_name);
    }
    if (async)
        push_field(w, node, word.iter, item->class_name);
    else
        guard_iterable(w, node, node, item->class_name);
    push_body(w, body, ours, item->class_name);
    while (dict && PyDict_Next(dict, &at, &field, &value))
        if (field != word.target && field != word.iter && field != word.body)
            push_value(w, value, dict, field, item->class_name);
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
                push_value(w, value, dict, field, item->class_name);
    }
    push_body(w, body, ours, item->class_name);
}

static void visit_assign(struct walk *w, const struct waiting *item)
{
    PyObject *node = item->node, *targets = node_get(node, word.targets);
    bool apart = false;
    for (Py_ssize_t i = 0; targets && i < PyList_GET_SIZE(targets); i++)
        apart = apart || takes_apart(PyList_GET_ITEM(targets, i));
    push_field(w, node, word.targets, item->class_name);
    if (apart && !is_literal(node_get(node, word.value)))
        guard_field(w, node, word.value, GUARD_UNPACK, node, item->class_name);
    else
        push_field(w, node, word.value, item->class_name);
}

static void visit_aug_assign(struct walk *w, const struct waiting *item)
{
    PyObject *node = item->node;
    push_field(w, node, word.value, item->class_name);
    push(w, (struct waiting){node_get(node, word.target), node_dict(node), word.target, 0,
                             item->class_name, true});
}

/* ---- scopes ---- */

static void visit_class(struct walk *w, const struct waiting *item)
{
    PyObject *node = item->node, *dict = node_dict(node), *field, *value;
    Py_ssize_t at = 0;
    PyObject *name = node_get(node, word.name);
    while (dict && PyDict_Next(dict, &at, &field, &value))
        push_value(w, value, dict, field, field == word.body ? name : item->class_name);
}

/* Everything but the annotations, where those are text. */
static void visit_annotated(struct walk *w, const struct waiting *item)
{
    PyObject *node = item->node, *dict = node_dict(node), *field, *value;
    Py_ssize_t at = 0;
    while (dict && PyDict_Next(dict, &at, &field, &value))
        if (!w->strings || (field != word.annotation && field != word.returns))
            push_value(w, value, dict, field, item->class_name);
}

/* ---- match ---- */

/* The first name in a pattern that may not be used, borrowed; NULL when there is none. */
static PyObject *refused_in_pattern(struct walk *w, PyObject *pattern)
{
    size_t floor = w->count;
    PyObject *bad = NULL;
    push(w, (struct waiting){pattern, NULL, NULL, 0, NULL, false});
    while (!w->error && w->count > floor) {
        PyObject *node = w->stack[--w->count].node;
        PyObject *names =
            node_kind(node) == NODE_MatchClass ? node_get(node, word.kwd_attrs) : NULL;
        for (Py_ssize_t i = 0; names && i < PyList_GET_SIZE(names) && !bad; i++)
            if (class_of(PyList_GET_ITEM(names, i)) != GUARD_NAME_FREE)
                bad = PyList_GET_ITEM(names, i);
        PyObject *attribute = node_kind(node) == NODE_Attribute ? node_get(node, word.attr) : NULL;
        if (attribute && !bad && class_of(attribute) != GUARD_NAME_FREE)
            bad = attribute;
        push_all(w, node, NULL);
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
        replace(w, item, call ? node_expr(call, node) : NULL);
        Py_XDECREF(text);
        Py_XDECREF(call);
        return;
    }
    push_field(w, node, word.subject, item->class_name);
    for (Py_ssize_t i = 0; cases && i < PyList_GET_SIZE(cases); i++) {
        push_field(w, PyList_GET_ITEM(cases, i), word.guard, item->class_name);
        push_field(w, PyList_GET_ITEM(cases, i), word.body, item->class_name);
    }
}

/* ---- the walk ---- */

static void visit(struct walk *w, const struct waiting *item)
{
    switch (node_kind(item->node)) {
    case NODE_Attribute:
        visit_attribute(w, item);
        break;
    case NODE_Subscript:
        visit_subscript(w, item);
        break;
    case NODE_Starred:
        visit_starred(w, item);
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
        push_all(w, item->node, item->class_name);
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
    if (!guard.veiled)
        return err_set(err, ERR_STATE, "no guarded namespace was made before");
    guard_use_rules(rules);
    w.strings = has_string_annotations(tree);
    push_all(&w, tree, NULL);
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
