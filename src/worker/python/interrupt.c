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

static PyOS_sighandler_t prepared; /* Python's own, once it knows what to raise */

/* Python's part of it writes a dozen pages, and every child of a template would copy them. The kernel's part is each
 * process's own. */
int py_interrupt_prepare(void)
{
    if (py_interrupt_set() < 0)
        return -1;
    prepared = PyOS_getsig(SIGINT);
    return PyOS_setsig(SIGINT, SIG_DFL) == SIG_ERR ? -1 : 0;
}

int py_interrupt_set(void)
{
    if (prepared)
        return PyOS_setsig(SIGINT, prepared) == SIG_ERR ? -1 : 0;
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
