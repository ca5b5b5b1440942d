/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes and subscripts: what becomes of each is decided by the words in the source, so the names are
 * classed here, once, and the guard that is called at run time only looks at the object. */
#include "guard_walk.h"

#include <string.h>

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

enum guard_name walk_class_of(PyObject *name)
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

bool walk_is_literal(PyObject *node)
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

/* Methods of containers and text that programs call in their innermost loops. No module of the standard
 * library has a member of these names that would do harm, so even on an object that no guest should
 * hold there is nothing to find; anything else that has them is a value like any other. Sorted. */
static bool is_everyday_method(PyObject *name)
{
    static const char *const methods[] = {
        "add",        "append",  "appendleft", "capitalize", "count",   "decode",  "difference",
        "discard",    "encode",  "endswith",   "extend",     "find",    "get",     "index",
        "insert",     "isalnum", "isalpha",    "isdigit",    "islower", "isspace", "isupper",
        "items",      "join",    "keys",       "lower",      "lstrip",  "pop",     "popitem",
        "popleft",    "rfind",   "rstrip",     "setdefault", "sort",    "split",   "splitlines",
        "startswith", "strip",   "union",      "update",     "upper",   "values",  "zfill"};
    size_t low = 0, high = sizeof methods / sizeof *methods;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = PyUnicode_CompareWithASCIIString(name, methods[middle]);
        if (order == 0)
            return true;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return false;
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

/* An attribute that stands on a later line than its object counts, in tracebacks, as on that line; so does
 * the call of a method. The compiler does this for attributes, and what it sees here are calls. */
static int place_at_name(PyObject *call, PyObject *attribute)
{
    PyObject *line = node_get(attribute, word.end_lineno);
    PyObject *end = node_get(attribute, word.end_col_offset);
    PyObject *first = node_get(attribute, word.lineno), *name = node_get(attribute, word.attr);
    if (!line || !end || !first || PyObject_RichCompareBool(line, first, Py_EQ) != 0)
        return PyErr_Occurred() ? -1 : 0;
    long column = PyLong_AsLong(end) - (long)PyUnicode_GET_LENGTH(name);
    PyObject *start = PyLong_FromLong(column > 0 ? column : 0);
    int r = start && node_set(call, word.lineno, line) == 0 &&
                    node_set(call, word.col_offset, start) == 0
                ? 0
                : -1;
    Py_XDECREF(start);
    return r;
}

/* A call whose arguments are all written out, as the compiler wants it of a method's. */
static bool is_plain_call(PyObject *args, PyObject *keywords)
{
    for (Py_ssize_t i = 0; args && i < PyList_GET_SIZE(args); i++)
        if (node_kind(PyList_GET_ITEM(args, i)) == NODE_Starred)
            return false;
    for (Py_ssize_t i = 0; keywords && i < PyList_GET_SIZE(keywords); i++)
        if (node_get(PyList_GET_ITEM(keywords, i), word.arg) == Py_None)
            return false;
    return true;
}

void walk_attribute(struct walk *w, const struct waiting *item)
{
    PyObject *node = item->node, *value = node_get(node, word.value), *args = NULL;
    enum node_kind ctx = node_kind(node_get(node, word.ctx));
    PyObject *name = mangled(node_get(node, word.attr), item->class_name);
    enum guard_name kind = name ? walk_class_of(name) : GUARD_NAME_REFUSED;
    if (ctx == NODE_Load && kind == GUARD_NAME_FREE &&
        ((walk_is_literal(value) && !is_format(name)) ||
         (item->field == word.func && is_everyday_method(name)))) {
        walk_push_field(w, node, word.value, item->class_name);
        Py_DECREF(name);
        return;
    }
    PyObject *text = name ? node_constant(name, node) : NULL;
    PyObject *call =
        text ? node_guard(attribute_op(ctx, item->augmented, kind), value, text, node, &args)
             : NULL;
    Py_XDECREF(name);
    Py_XDECREF(text);
    if (!call || (ctx == NODE_Load && place_at_name(call, node) < 0) ||
        (item->caller && place_at_name(item->caller, node) < 0)) {
        Py_XDECREF(call);
        w->error = -1;
        return;
    }
    walk_push(w, (struct waiting){value, args, NULL, 0, item->class_name, false, NULL});
    if (ctx == NODE_Load) {
        walk_replace(w, item, call);
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
    *ret_refused = check_ruleset_key(guard.rules, text, (size_t)len) != NULL;
    return true;
}

void walk_call(struct walk *w, const struct waiting *item)
{
    PyObject *node = item->node, *func = node_get(node, word.func);
    PyObject *args = node_get(node, word.args), *keywords = node_get(node, word.keywords);
    bool method = func && node_kind(func) == NODE_Attribute && is_plain_call(args, keywords);
    walk_push(w, (struct waiting){func, node_dict(node), word.func, 0, item->class_name, false,
                                  method ? node : NULL});
    walk_push_field(w, node, word.args, item->class_name);
    walk_push_field(w, node, word.keywords, item->class_name);
}

void walk_subscript(struct walk *w, const struct waiting *item)
{
    PyObject *node = item->node, *value = node_get(node, word.value), *args = NULL;
    PyObject *key = node_get(node, word.slice);
    bool refused = false, plain = plain_text(key, &refused);
    bool reads = node_kind(node_get(node, word.ctx)) == NODE_Load;
    if (never_text(key) || (plain && !refused) || (reads && walk_is_literal(value) && !plain)) {
        walk_push_all(w, node, item->class_name);
        return;
    }
    if (!reads) {
        walk_push_field(w, node, word.value, item->class_name);
        walk_guard_field(w, node, word.slice, GUARD_KEY, node, item->class_name);
        return;
    }
    PyObject *call = node_guard(GUARD_ITEM, value, key, node, &args);
    if (walk_replace(w, item, call) == 0) {
        walk_push(w, (struct waiting){value, args, NULL, 0, item->class_name, false, NULL});
        walk_push(w, (struct waiting){key, args, NULL, 1, item->class_name, false, NULL});
    }
}

void walk_starred(struct walk *w, const struct waiting *item)
{
    PyObject *node = item->node;
    if (node_kind(node_get(node, word.ctx)) == NODE_Load &&
        !walk_is_literal(node_get(node, word.value)))
        walk_guard_field(w, node, word.value, GUARD_ITER, node, item->class_name);
    else
        walk_push_all(w, node, item->class_name);
}
