/* SPDX-License-Identifier: Apache-2.0 */
/* The parser makes its nodes of heap types whose instances keep their fields in an ordinary dictionary.
 * The walk reads that dictionary: no descriptor, no __getattr__, no Python code can stand between. What
 * compile() reads later are the attributes of the same nodes; they are the same as long as nobody put a
 * property on a type, and py_tree_changed sees to that. */
#include "judge_tree.h"

#include <string.h>

struct tree_names py_tree_names;
struct tree_type py_tree_types[TREE_SLOTS];
Py_ssize_t py_tree_dict_at;

/* What a type looked like at the start. */
struct original {
    PyTypeObject *type;
    getattrofunc get;
    setattrofunc set;
    PyObject *dict; /* a copy of its own */
};
static struct original originals[256];
static size_t original_count;
static PyObject *all_fields; /* a dictionary: every field name of every type */

static PyObject *type_dict(PyTypeObject *type)
{
#if PY_VERSION_HEX >= 0x030c0000
    return PyType_GetDict(type);
#else
    return Py_NewRef(type->tp_dict);
#endif
}

static enum tree_kind kind_of(const char *name, bool leaf)
{
    static const char *const words[] = {
#define WORD(name) #name,
        TREE_KINDS(WORD)
#undef WORD
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i], name) == 0)
            return (enum tree_kind)(TREE_PLAIN + 1 + i);
    return leaf ? TREE_LEAF : TREE_PLAIN;
}

static int take_fields(PyTypeObject *type, const char *which, Py_ssize_t *ret_count)
{
    PyObject *names = PyObject_GetAttrString((PyObject *)type, which);
    int r = names && PyTuple_Check(names) ? 0 : -1;
    *ret_count = r == 0 ? PyTuple_GET_SIZE(names) : 0;
    for (Py_ssize_t i = 0; r == 0 && i < *ret_count; i++)
        r = PyDict_SetItem(all_fields, PyTuple_GET_ITEM(names, i), Py_None);
    Py_XDECREF(names);
    return r;
}

static int take_type(PyTypeObject *type, PyTypeObject *stmt, struct err *err)
{
    Py_ssize_t fields, attributes;
    if (take_fields(type, "_fields", &fields) < 0 ||
        take_fields(type, "_attributes", &attributes) < 0)
        return err_set(err, ERR_MISSING, "the type %s has no fields", type->tp_name);
    if (original_count == sizeof originals / sizeof *originals)
        return err_set(err, ERR_MISSING, "this Python's tree has more types than the judge knows");
    PyObject *dict = type_dict(type), *copy = dict ? PyDict_Copy(dict) : NULL;
    Py_XDECREF(dict);
    if (!copy)
        return err_set(err, ERR_MEMORY, "no memory for the tree's types");
    originals[original_count++] = (struct original){(PyTypeObject *)Py_NewRef((PyObject *)type),
                                                    type->tp_getattro, type->tp_setattro, copy};
    const char *dot = strrchr(type->tp_name, '.'), *name = dot ? dot + 1 : type->tp_name;
    uintptr_t a = (uintptr_t)type, i = a >> 4 ^ a >> 13;
    while (py_tree_types[i % TREE_SLOTS].type)
        i++;
    py_tree_types[i % TREE_SLOTS] =
        (struct tree_type){type, (uint8_t)kind_of(name, fields == 0), PyType_IsSubtype(type, stmt)};
    return 0;
}

static int take_types(PyObject *module, struct err *err)
{
    PyObject *dict = PyModule_GetDict(module), *key, *value; /* all borrowed */
    PyObject *node = PyDict_GetItemString(dict, "AST"), *stmt = PyDict_GetItemString(dict, "stmt");
    Py_ssize_t at = 0;
    if (!node || !stmt || !PyType_Check(node) || !PyType_Check(stmt))
        return err_set(err, ERR_MISSING, "this Python has no tree");
    while (PyDict_Next(dict, &at, &key, &value)) {
        if (!PyType_Check(value) || !PyType_IsSubtype((PyTypeObject *)value, (PyTypeObject *)node))
            continue;
        int r = take_type((PyTypeObject *)value, (PyTypeObject *)stmt, err);
        if (r < 0)
            return r;
    }
    py_tree_dict_at = ((PyTypeObject *)node)->tp_dictoffset;
    for (size_t i = 0; i < original_count; i++)
        if (originals[i].type->tp_dictoffset != py_tree_dict_at)
            py_tree_dict_at = 0;
    if (py_tree_dict_at < 0)
        py_tree_dict_at = 0;
    static const char *const needed[] = {"Module", "Name", "Attribute", "Call", "Import"};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!PyDict_GetItemString(dict, needed[i]))
            return err_set(err, ERR_MISSING, "this Python's tree has no %s", needed[i]);
    return 0;
}

/* Built against one version and started with another, the macros of the headers would lie. */
static int same_version(struct err *err)
{
    const char *runs = Py_GetVersion();
    char built[16];
    snprintf(built, sizeof built, "%d.%d.", PY_MAJOR_VERSION, PY_MINOR_VERSION);
    if (strncmp(runs, built, strlen(built)) == 0)
        return 0;
    return err_set(err, ERR_MISSING, "built for Python %s and started with %.20s", PY_VERSION,
                   runs);
}

int py_tree_init(struct err *err)
{
    if (original_count)
        return 0;
    int r = same_version(err);
    if (r < 0)
        return r;
    PyObject *module = PyImport_ImportModule("_ast");
    if (!module) {
        PyErr_Clear();
        return err_set(err, ERR_MISSING, "this Python has no _ast");
    }
    all_fields = PyDict_New();
    r = all_fields ? take_types(module, err) : err_set(err, ERR_MEMORY, "no memory for the tree");
    Py_DECREF(module);
#define TAKE(field)                                                                                \
    if (r == 0 && !(py_tree_names.field = PyUnicode_InternFromString(#field)))                     \
        r = err_set(err, ERR_MEMORY, "no memory for the tree's names");
    TREE_FIELDS(TAKE)
#undef TAKE
    PyErr_Clear();
    return r;
}

/* Fields that lie in the dictionary of the type itself stand before those of the node. */
static bool is_changed(const struct original *o)
{
    if (o->type->tp_getattro != o->get || o->type->tp_setattro != o->set)
        return true;
    PyObject *dict = type_dict(o->type), *key, *value;
    Py_ssize_t at = 0;
    bool changed = dict == NULL;
    while (!changed && PyDict_Next(dict, &at, &key, &value))
        changed = PyDict_Contains(all_fields, key) != 0 && py_tree_get(o->dict, key) != value;
    Py_XDECREF(dict);
    PyErr_Clear();
    return changed;
}

const char *py_tree_changed(void)
{
    for (size_t i = 0; i < original_count; i++)
        if (is_changed(&originals[i]))
            return originals[i].type->tp_name;
    return NULL;
}
