/* SPDX-License-Identifier: Apache-2.0 */
/* The finders of sys.meta_path are asked, in their order, for what `import` would ask them for. Parts behind a dot are looked for in packages of
 * the workspace alone: a package of the library may make its parts when it is imported (os.path). Whatever goes wrong on the way,
 * the module is taken to be there: the import itself tells then. */
#include "lookup.h"

#include "host.h"

#include <string.h>

#define WORKSPACE "/workspace"

/* A new reference: what the first finder that knows NAME says; None: none does; NULL with an exception. PATH: a package's folders, or None. */
static PyObject *find(PyObject *name, PyObject *path)
{
    PyObject *finders = PySys_GetObject("meta_path"); /* borrowed */
    for (Py_ssize_t i = 0; finders && PyList_Check(finders) && i < PyList_GET_SIZE(finders); i++) {
        PyObject *spec =
            PyObject_CallMethod(PyList_GET_ITEM(finders, i), "find_spec", "OO", name, path);
        if (!spec || spec != Py_None)
            return spec;
        Py_DECREF(spec);
    }
    return Py_NewRef(Py_None);
}

/* The folders of the package SPEC, if they are the workspace's; NULL: it is none of them. */
static PyObject *own_folders(PyObject *spec)
{
    PyObject *folders = PyObject_GetAttrString(spec, "submodule_search_locations");
    PyObject *list = folders && folders != Py_None ? PySequence_List(folders) : NULL;
    Py_XDECREF(folders);
    bool own = list && PyList_GET_SIZE(list) > 0;
    for (Py_ssize_t i = 0; own && i < PyList_GET_SIZE(list); i++) {
        const char *at = PyUnicode_Check(PyList_GET_ITEM(list, i))
                             ? PyUnicode_AsUTF8(PyList_GET_ITEM(list, i))
                             : NULL;
        own = at && strncmp(at, WORKSPACE "/", sizeof WORKSPACE) == 0;
    }
    if (!own)
        Py_CLEAR(list);
    return list;
}

/* NAME, part after part. False: certainly not there. */
static bool find_parts(const char *name, size_t len)
{
    PyObject *folders = Py_NewRef(Py_None);
    bool there = true;
    for (size_t end = 0; folders && there && end < len; end++) {
        const char *dot = memchr(name + end, '.', len - end);
        end = dot ? (size_t)(dot - name) : len;
        PyObject *part = PyUnicode_FromStringAndSize(name, (Py_ssize_t)end);
        PyObject *spec = part ? find(part, folders) : NULL;
        there = spec != Py_None;
        Py_XDECREF(part);
        Py_XDECREF(folders);
        folders = spec && there ? own_folders(spec) : NULL;
        Py_XDECREF(spec);
    }
    Py_XDECREF(folders);
    PyErr_Clear();
    return there;
}

/* What a finder remembers of a folder it believes for as long as the folder's time stands still: a program that writes a module at
 * once would not find it. */
static void forget_workspace(void)
{
    PyObject *seen = PySys_GetObject("path_importer_cache"); /* borrowed */
    PyObject *key, *value;
    PyObject *keys = seen && PyDict_Check(seen) ? PyList_New(0) : NULL;
    Py_ssize_t at = 0;
    while (keys && PyDict_Next(seen, &at, &key, &value))
        if (PyUnicode_Check(key))
            (void)PyList_Append(keys, key);
    for (Py_ssize_t i = 0; keys && i < PyList_GET_SIZE(keys); i++) {
        const char *text = PyUnicode_AsUTF8(PyList_GET_ITEM(keys, i));
        if (text && strncmp(text, WORKSPACE, sizeof WORKSPACE - 1) == 0)
            (void)PyDict_DelItem(seen, PyList_GET_ITEM(keys, i));
    }
    Py_XDECREF(keys);
    PyErr_Clear();
}

bool py_lookup_exists(const char *module, size_t len, bool files)
{
    PyObject *path = PySys_GetObject("path"); /* borrowed */
    PyObject *whole = PyUnicode_FromStringAndSize(module, (Py_ssize_t)len);
    PyObject *loaded = whole ? PyImport_GetModule(whole) : NULL;
    bool there =
        !whole || loaded || py_host_has_module(module, len) || !path || !PyList_Check(path);
    Py_XDECREF(loaded);
    Py_XDECREF(whole);
    if (there) {
        PyErr_Clear();
        return true;
    }
    PyObject *here = files ? PyUnicode_FromString(WORKSPACE) : NULL;
    there = (files && (!here || PyList_Insert(path, 0, here) < 0)) || find_parts(module, len);
    if (here && PyList_GET_SIZE(path) && PyList_GET_ITEM(path, 0) == here)
        (void)PyList_SetSlice(path, 0, 1, NULL);
    Py_XDECREF(here);
    PyErr_Clear();
    forget_workspace();
    return there;
}
