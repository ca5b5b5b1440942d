/* SPDX-License-Identifier: Apache-2.0 */
/* dir() and getattr() would ask the object, and an object of the guest answers with code. So dictionaries are walked, key by
 * key: that of a module, of an instance, of each class behind it. Where the way to an object leads through a
 * property there is nothing to offer, as in python3's own completer. A facade (facade.h) is ours, and is asked. */
#include "names.h"

#include "channel.h"
#include "facade.h"

#include <stdbool.h>
#include <string.h>

struct found {
    const char *part; /* what they begin with */
    size_t len, count;
    char text[PY_NAMES_MAX][64];
};

static const char *plain_key(PyObject *key, Py_ssize_t *ret_len)
{
    if (!PyUnicode_CheckExact(key) || !PyUnicode_IS_COMPACT_ASCII(key))
        return NULL;
    return PyUnicode_AsUTF8AndSize(key, ret_len);
}

/* Private names are offered to whoever began to type one. */
static void add(struct found *f, const char *name, size_t len)
{
    bool private = name[0] == '_' && f->part[0] != '_';
    if (f->count == PY_NAMES_MAX || len >= sizeof f->text[0] || len < f->len || private ||
        strncmp(name, f->part, f->len) != 0)
        return;
    for (size_t i = 0; i < f->count; i++)
        if (strcmp(f->text[i], name) == 0)
            return;
    memcpy(f->text[f->count], name, len);
    f->text[f->count++][len] = 0;
}

static void add_keys(struct found *f, PyObject *dict)
{
    PyObject *key, *value;
    Py_ssize_t at = 0, len;
    while (dict && PyDict_Check(dict) && PyDict_Next(dict, &at, &key, &value)) {
        const char *name = plain_key(key, &len);
        if (name && len > 0)
            add(f, name, (size_t)len);
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

static void add_classes(struct found *f, PyObject *classes)
{
    for (Py_ssize_t i = 0; classes && i < PyTuple_GET_SIZE(classes); i++)
        add_keys(f, class_dict(classes, i));
}

static void add_attributes(struct found *f, PyObject *x)
{
    if (facade_check(x)) {
        PyObject *all = PyObject_GetAttrString(x, "__all__");
        for (Py_ssize_t i = 0; all && PyList_Check(all) && i < PyList_GET_SIZE(all); i++) {
            Py_ssize_t len;
            const char *name = plain_key(PyList_GET_ITEM(all, i), &len);
            if (name)
                add(f, name, (size_t)len);
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

static void add_keywords(struct found *f)
{
    static const char *const words[] = {
        "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
        "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
        "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
        "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        add(f, words[i], strlen(words[i]));
}

static int send_names(const struct found *f)
{
    const char *list[PY_NAMES_MAX];
    struct wire_writer w;
    for (size_t i = 0; i < f->count; i++)
        list[i] = f->text[i];
    py_channel_begin(&w, WIRE_NAMES);
    wire_put_strings(&w, list, f->count);
    return py_channel_send(&w);
}

int py_names_send(PyObject *globals, const char *word)
{
    static struct found found; /* 32 KB are too much for a stack that a guest may have used up */
    const char *dot = strchr(word, '.');
    const char *last = strrchr(word, '.');
    found = (struct found){.part = last ? last + 1 : word};
    found.len = strlen(found.part);
    if (!dot) {
        add_keywords(&found);
        add_keys(&found, globals);
        add_keys(&found, globals ? builtins_of(globals) : NULL);
        return send_names(&found);
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
    return send_names(&found);
}
