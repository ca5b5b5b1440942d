/* SPDX-License-Identifier: Apache-2.0 */
/* copy rebuilds an object from parts that the object's class chooses: a class whose __new__ returns somebody
 * else's object would have its own attributes written into that, by any name. And deepcopy keeps the true
 * namespaces of what it has copied in the memo, which every __deepcopy__ is handed. */
#include "guard_inside.h"

#include "opaque.h"

/* ---- rebuilding: what comes of a guest's object is a guest's object ---- */

static PyObject *plain_reconstruct;

/* SELF is (x, function): calls it, and looks at what it gave. */
static PyObject *make(PyObject *self, PyObject *args)
{
    PyObject *x = PyTuple_GET_ITEM(self, 0);
    PyObject *y = PyObject_CallObject(PyTuple_GET_ITEM(self, 1), args);
    if (y && guard_is_own_type(Py_TYPE(x)) && !guard_is_own_type(Py_TYPE(y))) {
        guard_refuse_own("py.guard.copy", "a copy that is not an object of the program's own",
                         "return an object of your own class from __new__");
        Py_CLEAR(y);
    }
    return y;
}

static PyObject *reconstruct(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static PyMethodDef def = {"make", make, METH_VARARGS, NULL};
    (void)self;
    if (PyTuple_GET_SIZE(args) < 4)
        return PyObject_Call(plain_reconstruct, args,
                             kwargs); /* Python's own function reports the missing argument */
    PyObject *both = PyTuple_Pack(2, PyTuple_GET_ITEM(args, 0), PyTuple_GET_ITEM(args, 2));
    PyObject *maker = both ? PyCFunction_New(&def, both) : NULL;
    PyObject *checked = maker ? PyList_New(0) : NULL, *tuple = NULL, *copy = NULL;
    for (Py_ssize_t i = 0; checked && i < PyTuple_GET_SIZE(args); i++)
        if (PyList_Append(checked, i == 2 ? maker : PyTuple_GET_ITEM(args, i)) < 0)
            Py_CLEAR(checked);
    if (checked && (tuple = PyList_AsTuple(checked)))
        copy = PyObject_Call(plain_reconstruct, tuple, kwargs);
    Py_XDECREF(both);
    Py_XDECREF(maker);
    Py_XDECREF(checked);
    Py_XDECREF(tuple);
    return copy;
}

/* ---- keeping: a list that nobody can read ---- */

struct kept {
    PyObject_HEAD;
    PyObject *list;
};

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((struct kept *)self)->list);
    return 0;
}

static int clear(PyObject *self)
{
    Py_CLEAR(((struct kept *)self)->list);
    return 0;
}

static void dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    clear(self);
    PyObject_GC_Del(self);
}

static PyTypeObject kept_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "kept",
    .tp_basicsize = sizeof(struct kept),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_dealloc = dealloc,
    .tp_traverse = traverse,
    .tp_clear = clear,
};

static PyObject *plain_keep_alive;

static PyObject *keep_alive(PyObject *self, PyObject *args)
{
    PyObject *x, *memo;
    (void)self;
    if (!PyArg_ParseTuple(args, "OO:_keep_alive", &x, &memo))
        return NULL;
    PyObject *key = opaque_id(NULL, memo);
    PyObject *kept = key ? PyObject_GetItem(memo, key) : NULL;
    if (key && !kept) {
        if (!PyErr_ExceptionMatches(PyExc_KeyError)) {
            Py_DECREF(key);
            return NULL;
        }
        PyErr_Clear();
    }
    if (key && (!kept || !Py_IS_TYPE(kept, &kept_type))) {
        Py_XDECREF(kept);
        struct kept *k = PyObject_GC_New(struct kept, &kept_type);
        kept = (PyObject *)k;
        if (k) {
            k->list = PyList_New(0);
            PyObject_GC_Track(k);
            if (!k->list || PyObject_SetItem(memo, key, kept) < 0)
                Py_CLEAR(kept);
        }
    }
    int r =
        kept && ((struct kept *)kept)->list ? PyList_Append(((struct kept *)kept)->list, x) : -1;
    Py_XDECREF(key);
    Py_XDECREF(kept);
    if (r < 0)
        return NULL;
    Py_RETURN_NONE;
}

int guard_close_copy(PyObject *module)
{
    static PyMethodDef defs[] = {
        {"_reconstruct", (PyCFunction)(void (*)(void))reconstruct, METH_VARARGS | METH_KEYWORDS,
         NULL},
        {"_keep_alive", keep_alive, METH_VARARGS, NULL},
    };
    if (plain_reconstruct)
        return 0;
    if (PyType_Ready(&kept_type) < 0 || guard_exchange(module, &defs[0], &plain_reconstruct) < 0)
        return -1;
    return guard_exchange(module, &defs[1], &plain_keep_alive);
}
