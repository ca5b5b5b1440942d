/* SPDX-License-Identifier: Apache-2.0 */
/* The handler only notes the signal; Python raises it at its next safe place, or is asked here. */
#include "interrupt.h"

/* Python.h wants to be first */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <signal.h>

void py_interrupt_drop(void)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (PyErr_CheckSignals() < 0)
        PyErr_Clear();
    PyErr_Restore(type, value, trace);
}

int py_interrupt_set(void)
{
    PyObject *module = PyImport_ImportModule("_signal");
    PyObject *handler = module ? PyObject_GetAttrString(module, "default_int_handler") : NULL;
    PyObject *before =
        handler ? PyObject_CallMethod(module, "signal", "iO", SIGINT, handler) : NULL;
    int r = before ? 0 : -1;
    PyErr_Clear();
    Py_XDECREF(before);
    Py_XDECREF(handler);
    Py_XDECREF(module);
    return r;
}
