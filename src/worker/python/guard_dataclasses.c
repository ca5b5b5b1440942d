/* SPDX-License-Identifier: Apache-2.0 */
/* dataclasses makes code out of field names and later reads attributes by them. What it makes is looked at
 * when it runs (guard_code.c); here its classes stay the guest's own, its fields plain names, and the
 * functions that it makes get a namespace of their own. */
#include "guard_inside.h"

#include <string.h>

static PyObject *plain_process_class;

/* asdict() and its kin read attributes by the names of fields, past the guards: names like __x__ are none.
 * They are looked at when all is done, since code of the guest ran meanwhile. */
static int check_fields(PyObject *type)
{
    PyObject *key, *value, *dict = ((PyTypeObject *)type)->tp_dict;
    PyObject *fields = PyDict_GetItemString(dict, "__dataclass_fields__");
    Py_ssize_t at = 0, len;
    bool good = !fields || PyDict_CheckExact(fields);
    while (good && fields && PyDict_Next(fields, &at, &key, &value)) {
        const char *text = PyUnicode_CheckExact(key) ? PyUnicode_AsUTF8AndSize(key, &len) : NULL;
        PyObject *name =
            Py_IS_TYPE(value, guard.field) ? PyObject_GetAttrString(value, "name") : NULL;
        good = text && !guard_is_dunder(text, (size_t)len) && PyUnicode_IsIdentifier(key) && name &&
               PyUnicode_CheckExact(name) && PyUnicode_Compare(name, key) == 0;
        Py_XDECREF(name);
        PyErr_Clear();
    }
    if (good)
        return 0;
    if (PyDict_DelItemString(dict, "__dataclass_fields__") < 0)
        PyErr_Clear();
    PyType_Modified((PyTypeObject *)type);
    guard_refuse_own("py.guard.class", "a field of a dataclass that is no plain name",
                     "choose another name for the field");
    return -1;
}

/* Private fields are the class's own business; a pattern would read them off anything. */
static void drop_private_match(PyObject *type)
{
    PyObject *dict = ((PyTypeObject *)type)->tp_dict;
    PyObject *names = PyDict_GetItemString(dict, "__match_args__");
    const struct policy_rule *rule;
    for (Py_ssize_t i = 0; names && PyTuple_Check(names) && i < PyTuple_GET_SIZE(names); i++) {
        const char *text = PyUnicode_AsUTF8(PyTuple_GET_ITEM(names, i));
        if (!text || guard_name(text, strlen(text), &rule) != GUARD_NAME_FREE) {
            if (PyDict_DelItemString(dict, "__match_args__") < 0)
                PyErr_Clear();
            PyType_Modified((PyTypeObject *)type);
            return;
        }
    }
}

static PyObject *process_class(PyObject *self, PyObject *args, PyObject *kwargs)
{
    (void)self;
    PyObject *type = PyObject_Call(plain_process_class, args, kwargs);
    PyObject *given = PyTuple_GET_SIZE(args) > 0 ? PyTuple_GET_ITEM(args, 0) : NULL;
    if (type && given && PyType_Check(given) && guard_is_own_type((PyTypeObject *)given))
        guard_mark_own(type);
    if (type && PyType_Check(type))
        drop_private_match(type);
    if (type && PyType_Check(type) && check_fields(type) < 0) {
        if (given && given != type && PyType_Check(given))
            PyErr_Clear(), check_fields(given);
        Py_CLEAR(type);
    }
    return type;
}

static PyObject *plain_create_fn;

/* The functions that it makes get a namespace of their own: the guest's has no `type`, say, and they would
 * find there whatever the program calls so. */
static PyObject *create_fn(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static const char *const used[] = {"NotImplemented", "type", "super", "hash", "object"};
    static PyObject *namespace;
    (void)self;
    if (!namespace) {
        PyObject *module = PyImport_ImportModule("builtins");
        PyObject *few = PyDict_New();
        for (size_t i = 0; module && few && i < sizeof used / sizeof *used; i++)
            if (PyDict_SetItemString(few, used[i],
                                     PyDict_GetItemString(PyModule_GetDict(module), used[i])) < 0)
                Py_CLEAR(few);
        Py_XDECREF(module);
        namespace =
            few ? Py_BuildValue("{sNss}", "__builtins__", few, "__name__", "__main__") : NULL;
    }
    PyObject *own = namespace ? PyDict_Copy(namespace) : NULL;
    PyObject *words = own ? (kwargs ? PyDict_Copy(kwargs) : PyDict_New()) : NULL;
    PyObject *function = NULL;
    if (words && PyDict_SetItemString(words, "globals", own) == 0)
        function = PyObject_Call(plain_create_fn, args, words);
    Py_XDECREF(own);
    Py_XDECREF(words);
    return function;
}

int guard_close_dataclasses(PyObject *module)
{
    static PyMethodDef create = {"_create_fn", (PyCFunction)(void (*)(void))create_fn,
                                 METH_VARARGS | METH_KEYWORDS, NULL};
    static PyMethodDef def = {"_process_class", (PyCFunction)(void (*)(void))process_class,
                              METH_VARARGS | METH_KEYWORDS, NULL};
    if (plain_process_class)
        return 0;
    guard.field = (PyTypeObject *)PyObject_GetAttrString(module, "Field");
    if (!guard.field || guard_exchange(module, &create, &plain_create_fn) < 0)
        return -1;
    return guard_exchange(module, &def, &plain_process_class);
}
