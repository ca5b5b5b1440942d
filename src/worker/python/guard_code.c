/* SPDX-License-Identifier: Apache-2.0 */
/* From a rewritten tree to code, and the one question about code that libraries make at run time.
 *
 * A tree can hold no C function, so the rewriter leaves secret byte strings in their place, and here they
 * are exchanged in the constants of the compiled code. Nothing else holds the code yet.
 *
 * dataclasses and namedtuple compile text that they put together of field names. That such a name is
 * only a name is their own check, and there are ways to slip something else in (a forged
 * __dataclass_fields__). So the audit hook asks about what comes out of it: code that can reach no
 * global but these few, import nothing and use no special name but these, can do nothing that guest code
 * could not do itself. */
#include "guard_nodes.h"

#include <opcode.h>

#include <string.h>

/* ---- compiling ---- */

static int fill_constants(PyObject *code, PyObject *found)
{
    PyObject *consts = ((PyCodeObject *)code)->co_consts;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(consts); i++) {
        PyObject *c = PyTuple_GET_ITEM(consts, i);
        if (PyCode_Check(c) && PyList_Append(found, c) < 0)
            return -1;
        for (int op = 0; PyBytes_CheckExact(c) && op < GUARD_OP_COUNT; op++)
            if (PyBytes_GET_SIZE(c) == PyBytes_GET_SIZE(guard.marks[op]) &&
                memcmp(PyBytes_AS_STRING(c), PyBytes_AS_STRING(guard.marks[op]),
                       (size_t)PyBytes_GET_SIZE(c)) == 0) {
                PyTuple_SET_ITEM(consts, i, Py_NewRef(guard.ops[op]));
                Py_DECREF(c);
                break;
            }
    }
    return 0;
}

static int fill_marks(PyObject *code)
{
    PyObject *found = PyList_New(0);
    int r = found ? PyList_Append(found, code) : -1;
    for (Py_ssize_t i = 0; r == 0 && i < PyList_GET_SIZE(found); i++)
        r = fill_constants(PyList_GET_ITEM(found, i), found);
    Py_XDECREF(found);
    return r;
}

Py_ssize_t py_guard_split(PyObject *tree, PyObject **ret_last)
{
    PyObject *body = node_get(tree, word.body);
    if (!body || !PyList_Check(body)) {
        PyErr_SetString(PyExc_TypeError, "a module without a body");
        return -1;
    }
    Py_ssize_t n = PyList_GET_SIZE(body);
    PyObject *last = n ? PyList_GET_ITEM(body, n - 1) : NULL; /* borrowed */
    *ret_last = NULL;
    if (!last || node_kind(last) != NODE_Expr)
        return n;
    PyObject *value = node_get(last, word.value);
    PyObject *tree_of_it = value ? node_expression(value) : NULL;
    if (!tree_of_it || PyList_SetSlice(body, n - 1, n, NULL) < 0) {
        Py_XDECREF(tree_of_it);
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "an expression without a value");
        return -1;
    }
    *ret_last = tree_of_it;
    return n - 1;
}

PyObject *py_guard_interactive(PyObject *statements)
{
    return node_interactive(statements);
}

PyObject *py_guard_compile(PyObject *tree, const char *file, const char *mode)
{
    PyObject *code = PyObject_CallFunction(guard.compile, "Ossii", tree, file, mode, 0,
                                           1 /* inherit no flags of ours */);
    if (code && guard.rules && (!PyCode_Check(code) || fill_marks(code) < 0))
        Py_CLEAR(code);
    return code;
}

/* ---- code of libraries ---- */

static bool among(PyObject *name, const char *const *list)
{
    for (; *list; list++)
        if (PyUnicode_CompareWithASCIIString(name, *list) == 0)
            return true;
    return false;
}

static bool name_is_plain(PyObject *name)
{
    static const char *const special[] = {"__create_fn__",
                                          "__class__",
                                          "__qualname__",
                                          "__setattr__",
                                          "__delattr__",
                                          "__init__",
                                          "__repr__",
                                          "__post_init__",
                                          "__eq__",
                                          "__lt__",
                                          "__le__",
                                          "__gt__",
                                          "__ge__",
                                          "__hash__",
                                          "__dataclass_builtins_object__",
                                          NULL};
    Py_ssize_t len;
    const char *text = PyUnicode_AsUTF8AndSize(name, &len);
    if (!text)
        PyErr_Clear();
    return text && (!guard_is_dunder(text, (size_t)len) || among(name, special));
}

/* Numbers of the version that this was built for; interp.c refuses to start with another. What a version
 * lacks cannot be in its code. */
static const int refused[] = {
#ifdef IMPORT_NAME
    IMPORT_NAME,
#endif
#ifdef IMPORT_FROM
    IMPORT_FROM,
#endif
#ifdef IMPORT_STAR
    IMPORT_STAR,
#endif
#ifdef STORE_GLOBAL
    STORE_GLOBAL,
#endif
#ifdef DELETE_GLOBAL
    DELETE_GLOBAL,
#endif
#ifdef LOAD_BUILD_CLASS
    LOAD_BUILD_CLASS,
#endif
#ifdef LOAD_CLASSDEREF
    LOAD_CLASSDEREF,
#endif
#ifdef DELETE_NAME
    DELETE_NAME,
#endif
};
enum {
    refused_count = sizeof refused / sizeof *refused,
    load_global = LOAD_GLOBAL,
    load_name = LOAD_NAME,
    extended = EXTENDED_ARG
};
_Static_assert(refused_count >= 5, "this Python's opcodes are not known");

static bool global_is_plain(PyObject *names, unsigned index)
{
    static const char *const known[] = {"NotImplemented", "type",       "super", "hash",
                                        "object",         "_tuple_new", NULL};
    return index < (size_t)PyTuple_GET_SIZE(names) && among(PyTuple_GET_ITEM(names, index), known);
}

static bool bytes_are_plain(const unsigned char *code, size_t len, PyObject *names)
{
    unsigned arg = 0;
    for (size_t i = 0; i + 1 < len; i += 2) {
        int op = code[i];
        arg = arg << 8 | code[i + 1];
        for (size_t k = 0; k < refused_count; k++)
            if (op == refused[k])
                return false;
#if PY_VERSION_HEX >= 0x030B0000
        if (op == load_global && !global_is_plain(names, arg >> 1))
            return false;
#else
        if (op == load_global && !global_is_plain(names, arg))
            return false;
#endif
        if (op == load_name && !global_is_plain(names, arg))
            return false;
        if (op != extended)
            arg = 0;
    }
    return true;
}

static bool one_is_plain(PyObject *code)
{
    PyObject *names = ((PyCodeObject *)code)->co_names;
    PyObject *bytes = PyObject_GetAttrString(code, "co_code");
    bool good = bytes && PyBytes_Check(bytes) &&
                bytes_are_plain((const unsigned char *)PyBytes_AS_STRING(bytes),
                                (size_t)PyBytes_GET_SIZE(bytes), names);
    Py_XDECREF(bytes);
    PyErr_Clear();
    for (Py_ssize_t i = 0; good && i < PyTuple_GET_SIZE(names); i++)
        good = name_is_plain(PyTuple_GET_ITEM(names, i));
    return good;
}

bool guard_code_is_plain(PyObject *code)
{
    PyObject *found = PyList_New(0);
    bool good = found && PyCode_Check(code) && PyList_Append(found, code) == 0;
    for (Py_ssize_t i = 0; good && i < PyList_GET_SIZE(found); i++) {
        PyObject *consts = ((PyCodeObject *)PyList_GET_ITEM(found, i))->co_consts;
        good = one_is_plain(PyList_GET_ITEM(found, i));
        for (Py_ssize_t k = 0; good && k < PyTuple_GET_SIZE(consts); k++)
            if (PyCode_Check(PyTuple_GET_ITEM(consts, k)))
                good = PyList_Append(found, PyTuple_GET_ITEM(consts, k)) == 0;
    }
    PyErr_Clear();
    Py_XDECREF(found);
    return good;
}
