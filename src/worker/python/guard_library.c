/* SPDX-License-Identifier: Apache-2.0 */
/* Ways round the guards that allowed modules offer, each closed when a guest first sees its module:
 *
 *   operator.attrgetter, methodcaller   look up what a string says: the names are checked when one is made
 *   string.Formatter.get_field          the same, for each field of a format
 *   functools.update_wrapper, wraps     copies attributes by any name, onto any object
 *   typing.get_origin                   of Type[x] is type
 *   io.BytesIO.getbuffer                is memory without a type of its own
 *   linecache                           reads the file that a made-up traceback names
 *   contextlib.redirect_stdout          sets an attribute of sys that a private name chooses
 *   dataclasses, copy, queue, unittest, warnings, zoneinfo    in files of their own
 *
 * They are changed in the module itself where other paths lead to the same thing. */
#include "builtins.h"
#include "guard_inside.h"
#include "guard_own.h"
#include "guard_slots.h"

#include "opaque.h"
#include "print.h"

#include <string.h>

int guard_check_dotted(PyObject *text, PyObject **ret_exact)
{
    if (!PyUnicode_Check(text)) {
        PyErr_SetString(PyExc_TypeError, "attribute name must be a string");
        return -1;
    }
    PyObject *exact = PyUnicode_FromObject(text), *dot = PyUnicode_FromString(".");
    PyObject *parts = exact && dot ? PyUnicode_Split(exact, dot, -1) : NULL;
    int r = parts ? 0 : -1;
    for (Py_ssize_t i = 0; r == 0 && i < PyList_GET_SIZE(parts); i++) {
        PyObject *name = NULL;
        r = guard_name_for(NULL, PyList_GET_ITEM(parts, i), &name);
        Py_XDECREF(name);
    }
    Py_XDECREF(dot);
    Py_XDECREF(parts);
    if (r < 0)
        Py_CLEAR(exact);
    *ret_exact = exact;
    return r;
}

int guard_exchange(PyObject *module, PyMethodDef *def, PyObject **ret_before)
{
    PyObject *dict = PyModule_GetDict(module), *f = PyCFunction_New(def, NULL);
    PyObject *before = PyDict_GetItemString(dict, def->ml_name);
    if (!f || !before) { /* this version has no such function: nothing to close */
        Py_XDECREF(f);
        return f ? 0 : -1;
    }
    if (!*ret_before)
        *ret_before = Py_NewRef(before);
    int r = PyDict_SetItemString(dict, def->ml_name, f);
    Py_DECREF(f);
    return r;
}

/* ---- operator ---- */

static newfunc plain_getter_new, plain_caller_new;

static PyObject *getter_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    if (guard_asker() == GUARD_LOADING) /* pathlib has one for its own objects */
        return plain_getter_new(type, args, kwargs);
    PyObject *checked = PyTuple_New(PyTuple_GET_SIZE(args)), *made = NULL;
    bool good = checked != NULL;
    for (Py_ssize_t i = 0; good && i < PyTuple_GET_SIZE(args); i++) {
        PyObject *name;
        good = guard_check_dotted(PyTuple_GET_ITEM(args, i), &name) == 0;
        if (good)
            PyTuple_SET_ITEM(checked, i, name);
    }
    if (good)
        made = plain_getter_new(type, checked, kwargs);
    Py_XDECREF(checked);
    return made;
}

static PyObject *caller_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *name;
    if (PyTuple_GET_SIZE(args) < 1 || !PyUnicode_Check(PyTuple_GET_ITEM(args, 0)))
        return plain_caller_new(type, args, kwargs); /* it says what is wrong */
    if (guard_name_for(NULL, PyTuple_GET_ITEM(args, 0), &name) < 0)
        return NULL;
    PyObject *rest = PyTuple_GetSlice(args, 1, PyTuple_GET_SIZE(args));
    PyObject *first = PyTuple_Pack(1, name);
    PyObject *checked = first && rest ? PySequence_Concat(first, rest) : NULL;
    PyObject *caller = checked ? plain_caller_new(type, checked, kwargs) : NULL;
    Py_DECREF(name);
    Py_XDECREF(first);
    Py_XDECREF(rest);
    Py_XDECREF(checked);
    return caller;
}

static int close_new(PyObject *module, const char *name, newfunc closed, newfunc *ret_before)
{
    PyObject *type = PyObject_GetAttrString(module, name);
    if (!type || !PyType_Check(type)) {
        Py_XDECREF(type);
        return -1;
    }
    *ret_before = ((PyTypeObject *)type)->tp_new;
    ((PyTypeObject *)type)->tp_new = closed;
    Py_DECREF(type);
    return 0;
}

static int close_operator(PyObject *module)
{
    if (plain_getter_new)
        return 0;
    return close_new(module, "attrgetter", getter_new, &plain_getter_new) < 0
               ? -1
               : close_new(module, "methodcaller", caller_new, &plain_caller_new);
}

/* ---- string ---- */

static PyObject *plain_get_field;

static PyObject *get_field(PyObject *self, PyObject *args)
{
    PyObject *formatter, *name, *values, *words;
    (void)self;
    if (!PyArg_ParseTuple(args, "OUOO:get_field", &formatter, &name, &values, &words))
        return NULL;
    PyObject *exact = PyUnicode_FromObject(name);
    PyObject *field = exact ? PyUnicode_FromFormat("{%U}", exact) : NULL;
    PyObject *found = NULL;
    if (field && guard_check_format(field) == 0)
        found =
            PyObject_CallFunctionObjArgs(plain_get_field, formatter, exact, values, words, NULL);
    Py_XDECREF(exact);
    Py_XDECREF(field);
    return found;
}

static int close_string(PyObject *module)
{
    static PyMethodDef def = {"get_field", get_field, METH_VARARGS, NULL};
    PyObject *type = PyObject_GetAttrString(module, "Formatter");
    PyObject *f = plain_get_field ? NULL : PyCFunction_New(&def, NULL);
    PyObject *method = f ? PyInstanceMethod_New(f) : NULL;
    int r = type && (method || plain_get_field) ? 0 : -1;
    if (r == 0 && method) {
        plain_get_field = PyObject_GetAttrString(type, "get_field");
        /* past the guard on libraries' classes: this is us */
        r = plain_get_field
                ? PyDict_SetItemString(((PyTypeObject *)type)->tp_dict, "get_field", method)
                : -1;
        PyType_Modified((PyTypeObject *)type);
    }
    Py_XDECREF(type);
    Py_XDECREF(f);
    Py_XDECREF(method);
    return r;
}

/* ---- functools ---- */

static PyObject *plain_update_wrapper;

/* The names to copy: those of the default, or such as guest code may use. New tuple. */
static PyObject *check_names(PyObject *names)
{
    static const char *const usual[] = {"__module__", "__name__",        "__qualname__",
                                        "__doc__",    "__annotations__", "__type_params__",
                                        "__dict__"};
    PyObject *list = PySequence_List(names), *tuple = NULL;
    bool good = list != NULL;
    for (Py_ssize_t i = 0; good && i < PyList_GET_SIZE(list); i++) {
        PyObject *name = PyList_GET_ITEM(list, i), *exact = NULL;
        bool known = false;
        for (size_t k = 0; PyUnicode_CheckExact(name) && k < sizeof usual / sizeof *usual; k++)
            known = known || PyUnicode_CompareWithASCIIString(name, usual[k]) == 0;
        if (known)
            continue;
        good = guard_name_for(NULL, name, &exact) == 0 && PyList_SetItem(list, i, exact) == 0;
    }
    if (good)
        tuple = PyList_AsTuple(list);
    Py_XDECREF(list);
    return tuple;
}

/* An object of a library's class written in Python: its attributes steer that library's code. */
static bool is_library_object(PyObject *x)
{
    PyTypeObject *type = Py_TYPE(x);
    PyObject *key, *value;
    Py_ssize_t at = 0;
    if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE) || guard_is_own_type(type) || PyType_Check(x))
        return false;
    while (PyDict_Next(type->tp_dict, &at, &key, &value))
        if (PyFunction_Check(value))
            return true;
    return false;
}

static PyObject *update_wrapper(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *words[] = {(char *)"wrapper", (char *)"wrapped", (char *)"assigned",
                            (char *)"updated", NULL};
    PyObject *wrapper, *wrapped, *assigned = NULL, *updated = NULL;
    (void)self;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|OO:update_wrapper", words, &wrapper,
                                     &wrapped, &assigned, &updated))
        return NULL;
    if (is_library_object(wrapper) ||
        (guard_is_library_function(wrapper) && guard_asker() != GUARD_LOADING) ||
        (PyType_Check(wrapper) && !guard_is_own_type((PyTypeObject *)wrapper)))
        return guard_refuse_own("py.guard.write",
                                "update_wrapper of an object that is not the program's own",
                                "wrap a function or an object of your own");
    PyObject *left = assigned ? check_names(assigned) : NULL,
             *right = updated ? check_names(updated) : NULL;
    PyObject *more = PyDict_New(), *result = NULL;
    if (more && (!assigned || left) && (!updated || right) &&
        (!left || PyDict_SetItemString(more, (char *)"assigned", left) == 0) &&
        (!right || PyDict_SetItemString(more, (char *)"updated", right) == 0)) {
        PyObject *both = PyTuple_Pack(2, wrapper, wrapped);
        result = both ? PyObject_Call(plain_update_wrapper, both, more) : NULL;
        Py_XDECREF(both);
    }
    Py_XDECREF(left);
    Py_XDECREF(right);
    Py_XDECREF(more);
    return result;
}

static int close_functools(PyObject *module)
{
    static PyMethodDef def = {(char *)"update_wrapper", (PyCFunction)(void (*)(void))update_wrapper,
                              METH_VARARGS | METH_KEYWORDS, NULL};
    return plain_update_wrapper ? 0 : guard_exchange(module, &def, &plain_update_wrapper);
}

/* ---- contextlib ---- */

static int close_contextlib(PyObject *module)
{
    PyObject *dict = PyModule_GetDict(module);
    if (PyDict_SetItemString(dict, "redirect_stdout", print_redirect("stdout")) < 0)
        return -1;
    return PyDict_SetItemString(dict, "redirect_stderr", print_redirect("stderr"));
}

/* ---- typing ---- */

static PyObject *plain_get_origin;

/* The origin of Type[x] is `type`: the guarded one, or none where the profile took that away. */
static PyObject *get_origin(PyObject *self, PyObject *alias)
{
    (void)self;
    PyObject *origin = PyObject_CallOneArg(plain_get_origin, alias);
    if (origin != (PyObject *)&PyType_Type)
        return origin;
    Py_DECREF(origin);
    const struct policy_rule *rule =
        check_ruleset_match(guard.rules, POLICY_BUILTIN_REMOVE, "type", 4);
    return rule ? guard_refuse(rule, "typing.get_origin") : Py_NewRef(builtins_type());
}

static int close_typing(PyObject *module)
{
    static PyMethodDef def = {"get_origin", get_origin, METH_O, NULL};
    return plain_get_origin ? 0 : guard_exchange(module, &def, &plain_get_origin);
}

/* ---- io ---- */

/* BytesIO.getbuffer gives a memoryview: raw memory, which the profile does not have either. */
static int close_io(PyObject *module)
{
    PyObject *type = PyObject_GetAttrString(module, "BytesIO");
    PyObject *dict = type && PyType_Check(type) ? ((PyTypeObject *)type)->tp_dict : NULL;
    int r = !dict                                             ? -1
            : PyDict_GetItemString(dict, "getbuffer") == NULL ? 0
            : check_ruleset_match(guard.rules, POLICY_BUILTIN_REMOVE, "memoryview", 10)
                ? PyDict_DelItemString(dict, "getbuffer")
                : 0;
    if (dict)
        PyType_Modified((PyTypeObject *)type);
    Py_XDECREF(type);
    return r;
}

/* ---- linecache ---- */

/* A traceback shows the lines of whatever file it names, and a guest can make up a traceback
 * (TestResult.addError takes one). So no line is read; what is known of a source stays known. */
static PyObject *no_lines(PyObject *self, PyObject *args, PyObject *kwargs)
{
    (void)self;
    (void)args;
    (void)kwargs;
    return PyList_New(0);
}

/* Whoever loaded it: unittest and logging do by way of traceback, dataclasses by way of inspect. */
static int close_linecache(void)
{
    static PyMethodDef def = {"updatecache", (PyCFunction)(void (*)(void))no_lines,
                              METH_VARARGS | METH_KEYWORDS, NULL};
    static PyObject *plain;
    PyObject *module = PyDict_GetItemString(PyImport_GetModuleDict(), "linecache"); /* borrowed */
    return plain || !module || !PyModule_Check(module) ? 0 : guard_exchange(module, &def, &plain);
}

/* ---- the table ---- */

int guard_library(PyObject *module, const char *name)
{
    static const struct {
        const char *name;
        int (*close)(PyObject *module);
    } table[] = {
        {"array", guard_close_array},       {"contextlib", close_contextlib},
        {"copy", guard_close_copy},         {"dataclasses", guard_close_dataclasses},
        {"functools", close_functools},     {"io", close_io},
        {"operator", close_operator},       {"queue", guard_close_queue},
        {"string", close_string},           {"typing", close_typing},
        {"unittest", guard_close_unittest}, {"warnings", guard_close_warnings},
        {"zoneinfo", guard_close_zoneinfo},
    };
    if (close_linecache() < 0 || guard_close_slots() < 0 || opaque_library(module, name) < 0)
        return -1;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].name, name) == 0)
            return table[i].close(module);
    return 0;
}
