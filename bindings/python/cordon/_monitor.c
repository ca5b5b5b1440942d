/* SPDX-License-Identifier: Apache-2.0 */
/* The monitor of libcordon for Python: monitor.py gives it its shape. Floats are taken by the buffer protocol where they are 32 bits
 * wide and lie side by side (numpy, array.array, memoryview), without a copy; else one by one. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "cordon.h"

#include <stdlib.h>
#include <string.h>

#define SETTINGS_MAX 32

typedef struct {
    PyObject_HEAD struct cordon_monitor *monitor;
} Monitor;

static PyTypeObject MonitorType;

/* Floats, however they were given: VALUES is theirs (a view is held) or ours (OWN). */
struct floats {
    Py_buffer view;
    bool viewed;
    float *own;
    const float *values;
    size_t count;
};

static void floats_done(struct floats *f)
{
    if (f->viewed)
        PyBuffer_Release(&f->view);
    PyMem_Free(f->own);
}

static int floats_one_by_one(PyObject *given, struct floats *f)
{
    PyObject *list = PySequence_Fast(given, "logits are a buffer of 32-bit floats or a sequence");
    if (!list)
        return -1;
    f->count = (size_t)PySequence_Fast_GET_SIZE(list);
    f->own = PyMem_Calloc(f->count ? f->count : 1, sizeof *f->own);
    for (size_t i = 0; f->own && i < f->count && !PyErr_Occurred(); i++)
        f->own[i] = (float)PyFloat_AsDouble(PySequence_Fast_GET_ITEM(list, (Py_ssize_t)i));
    Py_DECREF(list);
    f->values = f->own;
    if (!f->own)
        PyErr_NoMemory();
    return PyErr_Occurred() ? -1 : 0;
}

static int floats_of(PyObject *given, struct floats *f)
{
    if (!PyObject_CheckBuffer(given))
        return floats_one_by_one(given, f);
    if (PyObject_GetBuffer(given, &f->view, PyBUF_FORMAT | PyBUF_ND | PyBUF_C_CONTIGUOUS)) {
        PyErr_Clear(); /* not side by side: as a sequence */
        return floats_one_by_one(given, f);
    }
    f->viewed = true;
    if (f->view.itemsize != sizeof(float) || !f->view.format || strcmp(f->view.format, "f") != 0)
        return floats_one_by_one(given, f);
    f->values = f->view.buf;
    f->count = (size_t)f->view.len / sizeof(float);
    return 0;
}

static double *doubles_of(PyObject *given, size_t *ret_count)
{
    PyObject *list = PySequence_Fast(given, "top_logprobs is a sequence of numbers");
    if (!list)
        return NULL;
    size_t count = (size_t)PySequence_Fast_GET_SIZE(list);
    double *out = PyMem_Calloc(count ? count : 1, sizeof *out);
    for (size_t i = 0; out && i < count && !PyErr_Occurred(); i++)
        out[i] = PyFloat_AsDouble(PySequence_Fast_GET_ITEM(list, (Py_ssize_t)i));
    Py_DECREF(list);
    if (!out)
        PyErr_NoMemory();
    if (PyErr_Occurred()) {
        PyMem_Free(out);
        return NULL;
    }
    *ret_count = count;
    return out;
}

static PyObject *monitor_make(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"tier", "task", "mode", "settings", "expected", "vocabulary", NULL};
    struct cordon_monitor_options o = {0};
    const char *settings[SETTINGS_MAX + 1] = {0};
    PyObject *given = NULL;
    unsigned long long expected = 0, vocabulary = 0;
    char why[CORDON_WHY_MAX] = "";
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|zzzO!KK", names, &o.tier, &o.task, &o.mode,
                                     &PyTuple_Type, &given, &expected, &vocabulary))
        return NULL;
    Py_ssize_t count = given ? PyTuple_GET_SIZE(given) : 0;
    if (count > SETTINGS_MAX)
        return PyErr_Format(PyExc_ValueError, "%zd settings: there are not so many", count);
    for (Py_ssize_t i = 0; i < count; i++)
        if (!(settings[i] = PyUnicode_AsUTF8(PyTuple_GET_ITEM(given, i))))
            return NULL;
    o.settings = settings;
    o.expected = expected;
    o.vocabulary = vocabulary;
    Monitor *self = (Monitor *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    int r = cordon_monitor_new(&o, &self->monitor, why);
    if (r == CORDON_MONITOR_GO_ON)
        return (PyObject *)self;
    Py_DECREF(self);
    PyErr_SetString(r == CORDON_MONITOR_MEMORY ? PyExc_MemoryError : PyExc_ValueError, why);
    return NULL;
}

static void monitor_dealloc(Monitor *self)
{
    cordon_monitor_free(self->monitor);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *answer(int status)
{
    if (status == CORDON_MONITOR_ARGUMENT) {
        PyErr_SetString(PyExc_ValueError,
                        "no distribution: logits have a NaN, an infinity or are none; or "
                        "log-probabilities are above 0 or sum to more than 1");
        return NULL;
    }
    return PyBool_FromLong(status == CORDON_MONITOR_ABORT);
}

static PyObject *monitor_token(Monitor *self, PyObject *args)
{
    PyObject *id = NULL, *logits = NULL, *top = NULL, *result = NULL;
    struct cordon_token t = {0};
    struct floats f = {0};
    double *logprobs = NULL;
    Py_ssize_t len = 0;
    if (!PyArg_ParseTuple(args, "Oz#OO", &id, &t.text, &len, &logits, &top))
        return NULL;
    t.len = (size_t)len;
    if (id != Py_None) {
        t.id = PyLong_AsUnsignedLongLong(id);
        if (PyErr_Occurred())
            return NULL;
    }
    if (top != Py_None && !(logprobs = doubles_of(top, &t.top_count)))
        return NULL;
    t.top_logprobs = logprobs;
    if (logits == Py_None || floats_of(logits, &f) == 0) {
        t.logits = f.values;
        t.logit_count = f.count;
        result = answer(cordon_monitor_token(self->monitor, &t));
    }
    floats_done(&f);
    PyMem_Free(logprobs);
    return result;
}

static PyObject *monitor_end(Monitor *self, PyObject *none)
{
    (void)none;
    return answer(cordon_monitor_end(self->monitor));
}

static PyObject *monitor_verdict(Monitor *self, PyObject *none)
{
    (void)none;
    struct cordon_verdict v;
    cordon_monitor_verdict(self->monitor, &v);
    PyObject *detector =
        v.abort ? PyUnicode_FromString(cordon_detector_name(v.detector)) : Py_NewRef(Py_None);
    PyObject *place = v.period ? Py_BuildValue("KKK", v.onset, v.onset_byte, v.period)
                               : Py_BuildValue("OOO", Py_None, Py_None, Py_None);
    PyObject *repeat = v.repeat_period ? Py_BuildValue("KKKK", v.repeat_onset, v.repeat_onset_byte,
                                                       v.repeat_period, v.repeat_copies)
                                       : Py_NewRef(Py_None);
    return Py_BuildValue("NsNNK(dddddddd)N", PyBool_FromLong(v.abort),
                         cordon_abort_reason_name(v.reason), detector, place,
                         (unsigned long long)v.tokens, v.entropy, v.entropy_low, v.entropy_high,
                         v.spike, v.repetition, v.perplexity, v.trend, v.failure_prob, repeat);
}

static PyObject *monitor_json(Monitor *self, PyObject *none)
{
    (void)none;
    char text[16384];
    size_t len = cordon_monitor_json(self->monitor, text, sizeof text);
    return PyUnicode_FromStringAndSize(text, (Py_ssize_t)len);
}

static PyMethodDef methods[] = {
    {"token", (PyCFunction)monitor_token, METH_VARARGS, "token(id, text, logits, top_logprobs)"},
    {"end", (PyCFunction)monitor_end, METH_NOARGS, "The generation is over."},
    {"verdict", (PyCFunction)monitor_verdict, METH_NOARGS, "What was seen so far, as a tuple."},
    {"json", (PyCFunction)monitor_json, METH_NOARGS, "The same as `cordon monitor` prints it."},
    {0}};

static PyTypeObject MonitorType = {PyVarObject_HEAD_INIT(NULL, 0).tp_name =
                                       "cordon._monitor.Monitor",
                                   .tp_basicsize = sizeof(Monitor),
                                   .tp_dealloc = (destructor)monitor_dealloc,
                                   .tp_flags = Py_TPFLAGS_DEFAULT,
                                   .tp_doc = "A generation watched while it is written.",
                                   .tp_methods = methods,
                                   .tp_new = monitor_make};

static struct PyModuleDef module_def = {PyModuleDef_HEAD_INIT, .m_name = "cordon._monitor",
                                        .m_size = -1,
                                        .m_doc = "The monitor of libcordon: cordon.Monitor."};

PyMODINIT_FUNC PyInit__monitor(void);
PyMODINIT_FUNC PyInit__monitor(void)
{
    PyObject *m = PyModule_Create(&module_def);
    if (!m || PyType_Ready(&MonitorType) ||
        PyModule_AddObjectRef(m, "Monitor", (PyObject *)&MonitorType))
        return NULL;
    return m;
}
