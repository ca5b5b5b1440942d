/* SPDX-License-Identifier: Apache-2.0 */
/* /workspace and /tmp are links to two folders of one file system (jail/root.c), and the kernel's getcwd names what a
 * link leads to. Programs print that path, and join it with names; both work as well with the one that documents and
 * options use. */
#include "folder.h"

#include "jail/spec.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define WORKSPACE "/workspace"

/* The same folder by the name that the program knows. */
static const char *known_name(const char *path)
{
    static const char own[] = JAIL_OWN "/";
    return strncmp(path, own, sizeof own - 1) == 0 ? path + sizeof own - 2 : path;
}

static PyObject *current_folder(bool bytes)
{
    char path[4096];
    if (!getcwd(path, sizeof path))
        return PyErr_SetFromErrno(PyExc_OSError);
    const char *name = known_name(path);
    return bytes ? PyBytes_FromString(name) : PyUnicode_DecodeFSDefault(name);
}

static PyObject *on_getcwd(PyObject *self, PyObject *none)
{
    (void)self;
    (void)none;
    return current_folder(false);
}

static PyObject *on_getcwdb(PyObject *self, PyObject *none)
{
    (void)self;
    (void)none;
    return current_folder(true);
}

static PyMethodDef functions[] = {
    {"getcwd", on_getcwd, METH_NOARGS, "A string with the path of the current folder."},
    {"getcwdb", on_getcwdb, METH_NOARGS, "The path of the current folder as bytes."},
};

/* In a module that was imported already; a program that does not need `os` does not wait for it. */
static int replace(const char *module)
{
    PyObject *name = PyUnicode_FromString(module);
    PyObject *m = name ? PyImport_GetModule(name) : NULL;
    int r = name && !PyErr_Occurred() ? 0 : -1;
    for (size_t i = 0; m && i < sizeof functions / sizeof *functions && r == 0; i++) {
        PyObject *f = PyCFunction_NewEx(&functions[i], NULL, name);
        r = f ? PyObject_SetAttrString(m, functions[i].ml_name, f) : -1;
        Py_XDECREF(f);
    }
    Py_XDECREF(m);
    Py_XDECREF(name);
    return r;
}

int py_folder_show(void)
{
    static bool done;
    if (done)
        return 0;
    done = true;
    PyObject *path = PySys_GetObject("path"); /* borrowed */
    PyObject *here = PyUnicode_FromString(WORKSPACE);
    int r = path && here && PyList_Check(path) ? PyList_Insert(path, 0, here) : -1;
    Py_XDECREF(here);
    if (r == 0)
        r = replace(
            "posix"); /* is built in and always there; `os` takes its functions when it is imported */
    return r == 0 ? replace("os") : r;
}
