/* SPDX-License-Identifier: Apache-2.0 */
/* Iteration and unpacking. What a built-in container or the guest's own class gives was the guest's
 * before, so those pass as they are and loops over them cost one call. Only what a library's class
 * gives is looked at element by element. What cannot be iterated passes too: the operator itself says so,
 * in its own words. */
#include "guard_inside.h"

struct guarded_iterator {
    PyObject_HEAD;
    PyObject *inner;
    bool tuples; /* its elements will be taken apart: look at theirs as well */
};

static PyTypeObject iterator_type;

static bool passes(PyObject *x)
{
    PyTypeObject *type = Py_TYPE(x);
    return !(type->tp_flags & Py_TPFLAGS_HEAPTYPE) || (type->tp_flags & GUARD_OWN);
}

static PyObject *wrap(PyObject *x, bool tuples)
{
    PyObject *inner = PyObject_GetIter(x);
    struct guarded_iterator *it =
        inner ? PyObject_GC_New(struct guarded_iterator, &iterator_type) : NULL;
    if (!it) {
        Py_XDECREF(inner);
        return NULL;
    }
    it->inner = inner;
    it->tuples = tuples;
    PyObject_GC_Track(it);
    return (PyObject *)it;
}

PyObject *guard_iter(PyObject *x, bool tuples)
{
    if (guard_is_closed(x))
        return guard_closed(x);
    bool iterable = Py_TYPE(x)->tp_iter || PySequence_Check(x);
    if (!iterable || (passes(x) && !tuples)) {
        Py_INCREF(x);
        return x;
    }
    return wrap(x, tuples);
}

static PyObject *next(PyObject *self)
{
    struct guarded_iterator *it = (struct guarded_iterator *)self;
    PyObject *value = it->inner ? Py_TYPE(it->inner)->tp_iternext(it->inner) : NULL;
    if (!value)
        return NULL;
    if (guard_is_closed(value)) {
        guard_closed(value);
        Py_CLEAR(value);
    } else if (it->tuples && !passes(value)) {
        PyObject *looked_at = guard_iter(value, false);
        Py_DECREF(value);
        return looked_at;
    }
    return value;
}

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((struct guarded_iterator *)self)->inner);
    return 0;
}

static int clear(PyObject *self)
{
    Py_CLEAR(((struct guarded_iterator *)self)->inner);
    return 0;
}

static void dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    clear(self);
    PyObject_GC_Del(self);
}

static PyTypeObject iterator_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "iterator",
    .tp_basicsize = sizeof(struct guarded_iterator),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_dealloc = dealloc,
    .tp_traverse = traverse,
    .tp_clear = clear,
    .tp_getattro = PyObject_GenericGetAttr,
    .tp_iter = PyObject_SelfIter,
    .tp_iternext = next,
};

int guard_iter_init(void)
{
    return PyType_Ready(&iterator_type);
}
