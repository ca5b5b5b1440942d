/* SPDX-License-Identifier: Apache-2.0 */
/* struct.Struct: its codes are read while values are asked for their numbers, and __init__ replaces them; an object that __new__
 * alone made has no format, and is read as if it had. So each is made whole, and made once. */
#include "guard_slots.h"

static newfunc plain_new;
static initproc plain_init;

/* Made whole by its own arguments, as far as they are a format; a subclass may say another one in its __init__. */
static PyObject *whole(PyTypeObject *type, PyObject *args, PyObject *names)
{
    PyObject *self = plain_new(type, args, names);
    PyObject *none = self ? Py_BuildValue("(s)", "") : NULL;
    if (!none || plain_init(self, none, NULL) < 0)
        Py_CLEAR(self);
    Py_XDECREF(none);
    return self;
}

static PyObject *format_of; /* Struct.format itself: a subclass may have another */

/* 1: it has codes; 0: still empty; -1 with an exception. */
static int has_codes(PyObject *self)
{
    PyObject *format = Py_TYPE(format_of)->tp_descr_get(format_of, self, (PyObject *)Py_TYPE(self));
    int r = format ? PyObject_IsTrue(format) : -1;
    Py_XDECREF(format);
    return r;
}

static int init(PyObject *self, PyObject *args, PyObject *names)
{
    int made = has_codes(self);
    if (made > 0)
        PyErr_SetString(PyExc_TypeError, "Struct: a format is set once");
    return made ? -1 : plain_init(self, args, names);
}

int guard_close_struct(void)
{
    static const char *const inits[] = {"__init__", NULL};
    PyTypeObject *type = guard_type_of("_struct", "Struct");
    if (!type || plain_init)
        return 0;
    format_of = PyDict_GetItemString(type->tp_dict, "format"); /* borrowed */
    if (!format_of || !Py_TYPE(format_of)->tp_descr_get) {
        PyErr_SetString(PyExc_SystemError, "Struct has no format");
        return -1;
    }
    Py_INCREF(format_of);
    plain_new = type->tp_new;
    type->tp_new = whole;
    return guard_exchange_slot(type, guard_slot_init, (void *)init, (void **)&plain_init, inits);
}
