/* SPDX-License-Identifier: Apache-2.0 */
/* dir() and getattr() would ask the object, and an object of the guest answers with code. So dictionaries are walked, key by
 * key: that of a module, of an instance, of each class behind it. Where the way to an object leads through a
 * property there is nothing to offer, as in python3's own completer. A facade (facade.h) is ours, and is asked. */
#include "names.h"

#include "facade.h"
#include "worker/frame/names.h"

#include <stdbool.h>
#include <string.h>

static const char *plain_key(PyObject *key, Py_ssize_t *ret_len)
{
    if (!PyUnicode_CheckExact(key) || !PyUnicode_IS_COMPACT_ASCII(key))
        return NULL;
    return PyUnicode_AsUTF8AndSize(key, ret_len);
}

static void add_keys(struct worker_names *f, PyObject *dict)
{
    PyObject *key, *value;
    Py_ssize_t at = 0, len;
    while (dict && PyDict_Check(dict) && PyDict_Next(dict, &at, &key, &value)) {
        const char *name = plain_key(key, &len);
        if (name && len > 0)
            worker_names_add(f, name, (size_t)len);
    }
}

/* Borrowed; compared by its letters, so that no key of the guest's own kind is asked. */
static PyObject *lookup(PyObject *dict, const char *name, size_t name_len)
{
    PyObject *key, *value;
    Py_ssize_t at = 0, len;
    while (dict && PyDict_Check(dict) && PyDict_Next(dict, &at, &key, &value)) {
        const char *text = plain_key(key, &len);
        if (text && (size_t)len == name_len && memcmp(text, name, name_len) == 0)
            return value;
    }
    return NULL;
}

/* New reference to what X itself holds its attributes in, or NULL. */
static PyObject *own_dict(PyObject *x)
{
    if (PyModule_Check(x))
        return Py_NewRef(PyModule_GetDict(x));
    if (PyType_Check(x))
        return NULL; /* it is in its own list of classes */
    PyObject *dict = PyObject_GenericGetDict(x, NULL);
    PyErr_Clear();
    return dict;
}

static PyObject *class_dict(PyObject *classes, Py_ssize_t i)
{
    PyObject *class = PyTuple_GET_ITEM(classes, i);
    return PyType_Check(class) ? ((PyTypeObject *)class)->tp_dict : NULL;
}

static void add_classes(struct worker_names *f, PyObject *classes)
{
    for (Py_ssize_t i = 0; classes && i < PyTuple_GET_SIZE(classes); i++)
        add_keys(f, class_dict(classes, i));
}

static void add_attributes(struct worker_names *f, PyObject *x)
{
    if (facade_check(x)) {
        PyObject *all = PyObject_GetAttrString(x, "__all__");
        for (Py_ssize_t i = 0; all && PyList_Check(all) && i < PyList_GET_SIZE(all); i++) {
            Py_ssize_t len;
            const char *name = plain_key(PyList_GET_ITEM(all, i), &len);
            if (name)
                worker_names_add(f, name, (size_t)len);
        }
        PyErr_Clear();
        Py_XDECREF(all);
        return;
    }
    PyObject *dict = own_dict(x);
    add_keys(f, dict);
    if (PyType_Check(x))
        add_classes(f, ((PyTypeObject *)x)->tp_mro);
    if (!PyModule_Check(x))
        add_classes(f, Py_TYPE(x)->tp_mro);
    Py_XDECREF(dict);
}

static PyObject *in_classes(PyObject *classes, const char *name, size_t len)
{
    PyObject *value = NULL;
    for (Py_ssize_t i = 0; classes && !value && i < PyTuple_GET_SIZE(classes); i++)
        value = lookup(class_dict(classes, i), name, len);
    return value;
}

/* New reference to X.name, or NULL. */
static PyObject *step(PyObject *x, const char *name, size_t len)
{
    if (facade_check(x)) {
        PyObject *word = PyUnicode_FromStringAndSize(name, (Py_ssize_t)len);
        PyObject *value = word ? PyObject_GetAttr(x, word) : NULL;
        Py_XDECREF(word);
        PyErr_Clear();
        return value;
    }
    PyObject *dict = own_dict(x);
    PyObject *value = lookup(dict, name, len);
    if (!value && PyType_Check(x))
        value = in_classes(((PyTypeObject *)x)->tp_mro, name, len);
    if (!value && !PyModule_Check(x))
        value = in_classes(Py_TYPE(x)->tp_mro, name, len);
    value = value && !PyObject_TypeCheck(value, &PyProperty_Type) ? Py_NewRef(value) : NULL;
    Py_XDECREF(dict);
    return value;
}

static PyObject *builtins_of(PyObject *globals)
{
    PyObject *b = lookup(globals, "__builtins__", strlen("__builtins__"));
    return b && PyModule_Check(b) ? PyModule_GetDict(b) : b;
}

static void add_keywords(struct worker_names *f)
{
    static const char *const words[] = {
        "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
        "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
        "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
        "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        worker_names_add(f, words[i], strlen(words[i]));
}

int py_names_send(PyObject *globals, const char *word)
{
    static struct worker_names
        found; /* 32 KB are too much for a stack that a guest may have used up */
    const char *dot = strchr(word, '.');
    const char *last = strrchr(word, '.');
    worker_names_begin(&found, last ? last + 1 : word);
    if (!dot) {
        add_keywords(&found);
        add_keys(&found, globals);
        add_keys(&found, globals ? builtins_of(globals) : NULL);
        return worker_names_send(&found);
    }
    PyObject *x = globals ? lookup(globals, word, (size_t)(dot - word)) : NULL;
    if (!x && globals)
        x = lookup(builtins_of(globals), word, (size_t)(dot - word));
    Py_XINCREF(x);
    while (x && dot != last) {
        const char *name = dot + 1;
        dot = strchr(name, '.');
        PyObject *next = step(x, name, (size_t)(dot - name));
        Py_DECREF(x);
        x = next;
    }
    if (x)
        add_attributes(&found, x);
    Py_XDECREF(x);
    return worker_names_send(&found);
}
