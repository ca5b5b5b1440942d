/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments travel as JSON, written by the interpreter's own json module: what a guest did to that module
 * changes only what the guest itself says. The answer is waited for with the interpreter's lock released,
 * one call at a time: the channel has no other reader while guest code runs. */
#include "host.h"

#include "base/limits.h"
#include "channel.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
static char tools[LIMIT_HOST_TOOLS][64];
static size_t tool_count;
static uint64_t next_call = 1;

int py_host_tools(const char *const *names, size_t count, struct err *err)
{
    if (count > LIMIT_HOST_TOOLS)
        return err_set(err, ERR_LIMIT, "more than %d host functions", LIMIT_HOST_TOOLS);
    for (size_t i = 0; i < count; i++)
        snprintf(tools[i], sizeof tools[i], "%s", names[i]);
    tool_count = count;
    return 0;
}

static PyObject * final(PyObject *self, PyObject *value)
{
    (void)self;
    PyObject *text = PyObject_Str(value);
    PyObject *bytes = text ? PyUnicode_AsEncodedString(text, "utf-8", "replace") : NULL;
    Py_XDECREF(text);
    if (!bytes)
        return NULL;
    py_channel_pieces(WIRE_FINAL, PyBytes_AsString(bytes), (size_t)PyBytes_Size(bytes));
    Py_DECREF(bytes);
    PyErr_SetNone(PyExc_SystemExit); /* the answer is given: the program is at its end */
    return NULL;
}

/* What the supervisor said, as a Python object. */
static PyObject *read_answer(uint64_t id)
{
    struct wire_reader r;
    int got;
    Py_BEGIN_ALLOW_THREADS got = py_channel_next(&r);
    Py_END_ALLOW_THREADS if (got != 1 || r.type != WIRE_ANSWER || wire_get_uint(&r) != id)
    {
        PyErr_SetString(PyExc_ConnectionError, "the host function's side of the channel is gone");
        return NULL;
    }
    uint64_t ok = wire_get_uint(&r);
    size_t len;
    const char *json = wire_get_bytes(&r, &len);
    PyObject *module = PyImport_ImportModule("json");
    PyObject *value =
        module ? PyObject_CallMethod(module, "loads", "s#", json, (Py_ssize_t)len) : NULL;
    Py_XDECREF(module);
    if (value && !ok) {
        PyErr_SetObject(PyExc_RuntimeError, value);
        Py_CLEAR(value);
    }
    return value;
}

static PyObject *ask(const char *name, const char *json, size_t len)
{
    struct wire_writer w;
    uint64_t id = next_call++;
    py_channel_begin(&w, WIRE_CALL);
    wire_put_uint(&w, id);
    wire_put_text(&w, name);
    wire_put_bytes(&w, json, len);
    if (py_channel_send(&w) < 0) {
        PyErr_SetString(PyExc_ConnectionError, "the call could not be sent");
        return NULL;
    }
    return read_answer(id);
}

static PyObject *call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    PyObject *module = PyImport_ImportModule("json");
    PyObject *both = Py_BuildValue("{sOsO}", "args", args, "kwargs", kwargs ? kwargs : Py_None);
    PyObject *json = module && both ? PyObject_CallMethod(module, "dumps", "O", both) : NULL;
    Py_XDECREF(module);
    Py_XDECREF(both);
    Py_ssize_t len = 0;
    const char *text = json && PyUnicode_Check(json) ? PyUnicode_AsUTF8AndSize(json, &len) : NULL;
    const char *name = PyUnicode_AsUTF8(self);
    PyObject *value = NULL;
    if (text && (size_t)len > LIMIT_CALL)
        PyErr_Format(PyExc_ValueError, "the arguments are longer than %llu bytes",
                     (unsigned long long)LIMIT_CALL);
    else if (text && name) {
        Py_BEGIN_ALLOW_THREADS pthread_mutex_lock(&one_at_a_time);
        Py_END_ALLOW_THREADS value = ask(name, text, (size_t)len);
        pthread_mutex_unlock(&one_at_a_time);
    } else if (!PyErr_Occurred()) {
        PyErr_SetString(PyExc_TypeError, "the arguments cannot be written as JSON");
    }
    Py_XDECREF(json);
    return value;
}

int py_host_bind(PyObject *globals)
{
    static PyMethodDef final_def = {"FINAL", final, METH_O,
                                    "FINAL(x): x is the answer; ends here."};
    static PyMethodDef call_def = {"host_function", (PyCFunction)(void (*)(void))call,
                                   METH_VARARGS | METH_KEYWORDS, "A function of the host."};
    PyObject *f = PyCFunction_New(&final_def, NULL);
    int r = f ? PyDict_SetItemString(globals, "FINAL", f) : -1;
    Py_XDECREF(f);
    for (size_t i = 0; i < tool_count && r == 0; i++) {
        PyObject *name = PyUnicode_FromString(tools[i]);
        f = name ? PyCFunction_New(&call_def, name) : NULL;
        r = f ? PyDict_SetItemString(globals, tools[i], f) : -1;
        Py_XDECREF(f);
        Py_XDECREF(name);
    }
    return r;
}
