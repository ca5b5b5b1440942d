/* SPDX-License-Identifier: Apache-2.0 */
/* An allow-list: a builtin that a later Python adds is not there until somebody has thought about it.
 * The rules may take more away (builtin-remove); they cannot give back what is not in the list. */
#include "builtins.h"

#include "guard_inside.h"
#include "guard_own.h"
#include "opaque.h"
#include "print.h"

#include <string.h>

/* Taken as they are: they compute, and read attributes only by Python's own protocols. */
static const char *const plain[] = {
    "None",       "True",     "False",        "Ellipsis",    "NotImplemented",
    "__debug__",  "abs",      "aiter",        "all",         "anext",
    "any",        "ascii",    "bin",          "bool",        "bytearray",
    "bytes",      "callable", "chr",          "classmethod", "complex",
    "dict",       "divmod",   "enumerate",    "exit",        "filter",
    "float",      "format",   "frozenset",    "hash",        "hex",
    "id",         "input",    "int",          "isinstance",  "issubclass",
    "iter",       "len",      "list",         "map",         "max",
    "memoryview", "min",      "next",         "object",      "oct",
    "open",       "ord",      "pow",          "property",    "quit",
    "range",      "repr",     "reversed",     "round",       "set",
    "slice",      "sorted",   "staticmethod", "str",         "sum",
    "super",      "tuple",    "zip",
};

/* ---- attributes by string ---- */

static PyObject *guarded_getattr(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    PyObject *name;
    (void)self;
    if (n < 2 || n > 3) {
        PyErr_Format(PyExc_TypeError, "getattr expected 2 or 3 arguments, got %zd", n);
        return NULL;
    }
    if (guard_name_for(args[0], args[1], &name) < 0)
        return NULL;
    PyObject *value = guard_get(args[0], name);
    Py_DECREF(name);
    if (!value && n == 3 && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        value = Py_NewRef(args[2]);
    }
    return value;
}

static PyObject *guarded_hasattr(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    if (n != 2) {
        PyErr_Format(PyExc_TypeError, "hasattr expected 2 arguments, got %zd", n);
        return NULL;
    }
    PyObject *value = guarded_getattr(self, args, 2);
    if (!value) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError))
            return NULL;
        PyErr_Clear();
        Py_RETURN_FALSE;
    }
    Py_DECREF(value);
    Py_RETURN_TRUE;
}

static PyObject *change(PyObject *x, PyObject *raw_name, PyObject *value)
{
    PyObject *name;
    if (guard_name_for(x, raw_name, &name) < 0)
        return NULL;
    int r = guard_may_set(x, name);
    if (r == 0)
        r = PyObject_SetAttr(x, name, value);
    Py_DECREF(name);
    if (r < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *guarded_setattr(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    (void)self;
    if (n != 3) {
        PyErr_Format(PyExc_TypeError, "setattr expected 3 arguments, got %zd", n);
        return NULL;
    }
    return change(args[0], args[1], args[2]);
}

static PyObject *guarded_delattr(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    (void)self;
    if (n != 2) {
        PyErr_Format(PyExc_TypeError, "delattr expected 2 arguments, got %zd", n);
        return NULL;
    }
    return change(args[0], args[1], NULL);
}

/* dir() of an object, without what guest code could not read anyway. */
static PyObject *guarded_dir(PyObject *self, PyObject *x)
{
    (void)self;
    if (!guard_closed(x))
        return NULL;
    PyObject *names = facade_check(x) ? PyObject_GetAttrString(x, "__all__") : PyObject_Dir(x);
    PyObject *shown = names ? PyList_New(0) : NULL;
    for (Py_ssize_t i = 0; shown && i < PyList_GET_SIZE(names); i++) {
        PyObject *name = PyList_GET_ITEM(names, i);
        const struct policy_rule *rule;
        Py_ssize_t len;
        const char *text = PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, &len) : NULL;
        if (text && guard_name(text, (size_t)len, &rule) == GUARD_NAME_FREE &&
            PyList_Append(shown, name) < 0)
            Py_CLEAR(shown);
        if (!text)
            PyErr_Clear();
    }
    if (shown && PyList_Sort(shown) < 0)
        Py_CLEAR(shown);
    Py_XDECREF(names);
    return shown;
}

/* ---- type: the class of an object, and something that isinstance understands ---- */

static PyTypeObject type_type;
static PyObject *the_type;

static PyObject *type_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    if (PyTuple_GET_SIZE(args) != 1 || (kwargs && PyDict_GET_SIZE(kwargs)))
        return guard_refuse_own("py.guard.type", "type() with three arguments",
                                "define the class with a class statement");
    PyObject *x = PyTuple_GET_ITEM(args, 0);
    if (!guard_closed(x))
        return NULL;
    PyObject *type = (PyObject *)Py_TYPE(x);
    return Py_NewRef(type == (PyObject *)&PyType_Type || type == (PyObject *)&type_type ? self
                                                                                        : type);
}

static PyObject *type_is_instance(PyObject *self, PyObject *x)
{
    (void)self;
    return PyBool_FromLong(PyType_Check(x) || x == the_type);
}

static PyObject *type_is_subclass(PyObject *self, PyObject *x)
{
    (void)self;
    return PyBool_FromLong(x == the_type ||
                           (PyType_Check(x) && PyType_IsSubtype((PyTypeObject *)x, &PyType_Type)));
}

/* class M(type): derives from the true one */
static PyObject *type_bases(PyObject *self, PyObject *bases)
{
    (void)self;
    (void)bases;
    return PyTuple_Pack(1, &PyType_Type);
}

static PyObject *type_item(PyObject *self, PyObject *key)
{
    (void)self;
    return Py_GenericAlias((PyObject *)&PyType_Type, key);
}

static PyObject *type_repr(PyObject *self)
{
    (void)self;
    return PyUnicode_FromString("<class 'type'>");
}

static PyObject *type_name(PyObject *self, void *closure)
{
    (void)self;
    (void)closure;
    return PyUnicode_FromString("type");
}

static PyMethodDef type_methods[] = {
    {"__instancecheck__", type_is_instance, METH_O, NULL},
    {"__subclasscheck__", type_is_subclass, METH_O, NULL},
    {"__mro_entries__", type_bases, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef type_words[] = {{"__name__", type_name, NULL, NULL, NULL},
                                   {NULL, NULL, NULL, NULL, NULL}};
static PyMappingMethods type_mapping = {.mp_subscript = type_item};
static PyTypeObject type_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "type",
    .tp_basicsize = sizeof(PyObject),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_call = type_call,
    .tp_repr = type_repr,
    .tp_methods = type_methods,
    .tp_getset = type_words,
    .tp_as_mapping = &type_mapping,
    .tp_getattro = PyObject_GenericGetAttr,
};

/* ---- the dict ---- */

static PyMethodDef guarded[] = {
    {"getattr", (PyCFunction)(void (*)(void))guarded_getattr, METH_FASTCALL, NULL},
    {"hasattr", (PyCFunction)(void (*)(void))guarded_hasattr, METH_FASTCALL, NULL},
    {"setattr", (PyCFunction)(void (*)(void))guarded_setattr, METH_FASTCALL, NULL},
    {"delattr", (PyCFunction)(void (*)(void))guarded_delattr, METH_FASTCALL, NULL},
    {"dir", guarded_dir, METH_O, NULL},
    {"id", opaque_id, METH_O, NULL},
    {"open", (PyCFunction)(void (*)(void))guard_own_open, METH_VARARGS | METH_KEYWORDS, NULL},
    {"print", (PyCFunction)(void (*)(void))print_guarded, METH_FASTCALL | METH_KEYWORDS, NULL},
    /* the import and class statements look for these two; the rules' builtin-remove means the raw ones */
    {"__import__", (PyCFunction)(void (*)(void))facade_import, METH_VARARGS | METH_KEYWORDS, NULL},
    {"__build_class__", (PyCFunction)(void (*)(void))guard_build_class,
     METH_FASTCALL | METH_KEYWORDS, NULL},
};

static bool is_removed(const char *name)
{
    return check_ruleset_match(guard.rules, POLICY_BUILTIN_REMOVE, name, strlen(name)) &&
           strcmp(name, "__import__") != 0 && strcmp(name, "__build_class__") != 0;
}

static int add_plain(PyObject *dict, PyObject *real)
{
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        PyObject *value = PyDict_GetItemString(real, plain[i]);
        if (value && !is_removed(plain[i]) && PyDict_SetItemString(dict, plain[i], value) < 0)
            return -1;
    }
    /* and every exception, by what it is */
    PyObject *name, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(real, &at, &name, &value))
        if (PyType_Check(value) &&
            PyType_IsSubtype((PyTypeObject *)value, (PyTypeObject *)PyExc_BaseException) &&
            PyUnicode_READ_CHAR(name, 0) != '_' && PyDict_SetItem(dict, name, value) < 0)
            return -1;
    return 0;
}

static int add_guarded(PyObject *dict)
{
    const bool served = check_ruleset_profile(guard.rules)->files;
    for (size_t i = 0; i < sizeof guarded / sizeof *guarded; i++) {
        if (is_removed(guarded[i].ml_name) ||
            (guarded[i].ml_meth == (PyCFunction)(void (*)(void))guard_own_open && !served))
            continue;
        PyObject *f = PyCFunction_New(&guarded[i], NULL);
        int r = f ? PyDict_SetItemString(dict, guarded[i].ml_name, f) : -1;
        Py_XDECREF(f);
        if (r < 0)
            return -1;
    }
    if (is_removed("type"))
        return 0;
    if (!the_type &&
        (PyType_Ready(&type_type) < 0 || !(the_type = PyObject_New(PyObject, &type_type))))
        return -1;
    return PyDict_SetItemString(dict, "type", the_type);
}

PyObject *builtins_type(void)
{
    return the_type;
}

PyObject *builtins_restricted(void)
{
    PyObject *module = PyImport_ImportModule("builtins");
    PyObject *dict = PyDict_New();
    if (!module || !dict || add_plain(dict, PyModule_GetDict(module)) < 0 || add_guarded(dict) < 0)
        Py_CLEAR(dict);
    Py_XDECREF(module);
    return dict;
}
