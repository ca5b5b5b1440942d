/* SPDX-License-Identifier: Apache-2.0 */
/* The signal is blocked, not ignored, while no code of the guest runs: an interrupt that arrives while a call is judged is
 * raised as soon as the call begins, instead of being lost. Python's own handler is used, so that a program which sets
 * another one behaves as under python3. A program that ignores the signal is ended by the supervisor: a second
 * interrupt within two seconds is no signal (jail/supervisor/keys.c). */
#include "interrupt.h"

#include <signal.h>
#include <time.h>

static bool ready; /* the handler is set, and the signal waits */

static void mask(int how)
{
    sigset_t interrupt;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    (void)sigprocmask(how, &interrupt, NULL);
}

/* What a handler has seen and Python has not raised yet. */
static void drop_raised(void)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (PyErr_CheckSignals() < 0)
        PyErr_Clear();
    PyErr_Restore(type, value, trace);
}

static int set_handler(void)
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

int py_interrupt_expect(void)
{
    mask(SIG_BLOCK);
    if (!ready && set_handler() < 0)
        return -1;
    ready = true;
    return 0;
}

void py_interrupt_drop(void)
{
    const struct timespec at_once = {0};
    sigset_t interrupt;
    if (!ready)
        return;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    while (sigtimedwait(&interrupt, NULL, &at_once) == SIGINT)
        ;
    drop_raised();
}

void py_interrupt_let(bool through)
{
    mask(through ? SIG_UNBLOCK : SIG_BLOCK);
    if (!through)
        drop_raised();
}
