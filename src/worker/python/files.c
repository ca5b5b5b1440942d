/* SPDX-License-Identifier: Apache-2.0 */
/* The paths and bytes of a request are copied into the one buffer for sending before anything else runs, and those of the
 * answer are copied out of it: no object of a guest's is held meanwhile. */
#include "files.h"

#include "base/limits.h"
#include "worker/frame/host.h"

#include <errno.h>
#include <string.h>

static PyObject *failed(uint64_t error, PyObject *path, PyObject *second)
{
    PyObject *why;
    errno = error < 4096 ? (int)error : EIO;
    why = PyUnicode_FromString(strerror(errno));
    PyObject *type = PyExc_OSError;
    PyObject *e =
        !why ? NULL
        : PyBytes_GET_SIZE(second) > 0
            ? PyObject_CallFunction(type, "iONOO", errno, why,
                                    PyUnicode_DecodeFSDefault(PyBytes_AS_STRING(path)), Py_None,
                                    PyUnicode_DecodeFSDefault(PyBytes_AS_STRING(second)))
            : PyObject_CallFunction(type, "iON", errno, why,
                                    PyUnicode_DecodeFSDefault(PyBytes_AS_STRING(path)));
    Py_XDECREF(why);
    if (e)
        PyErr_SetObject((PyObject *)Py_TYPE(e), e);
    Py_XDECREF(e);
    return NULL;
}

static PyObject *numbers_of(const struct worker_file_done *done)
{
    PyObject *numbers = PyTuple_New((Py_ssize_t)done->count);
    for (size_t i = 0; numbers && i < done->count; i++) {
        PyObject *n = PyLong_FromUnsignedLongLong(done->numbers[i]);
        if (!n)
            Py_CLEAR(numbers);
        else
            PyTuple_SET_ITEM(numbers, (Py_ssize_t)i, n);
    }
    return numbers;
}

static PyObject *ask(PyObject *self, PyObject *args)
{
    struct worker_file f;
    struct worker_file_done done;
    unsigned long long what, first, then;
    PyObject *path, *second, *bytes;
    (void)self;
    if (!PyArg_ParseTuple(args, "KSSKKS", &what, &path, &second, &first, &then, &bytes))
        return NULL;
    f = (struct worker_file){.what = what,
                             .path = PyBytes_AS_STRING(path),
                             .path_len = (size_t)PyBytes_GET_SIZE(path),
                             .second = PyBytes_AS_STRING(second),
                             .second_len = (size_t)PyBytes_GET_SIZE(second),
                             .bytes = PyBytes_AS_STRING(bytes),
                             .len = (size_t)PyBytes_GET_SIZE(bytes),
                             .numbers = {first, then}};
    if (f.path_len + f.second_len > LIMIT_FILE_PIECE / 2 || f.len > LIMIT_FILE_PIECE)
        return failed(ENAMETOOLONG, path, second);
    worker_host_lock();
    const int r = worker_host_file(&f, &done);
    PyObject *numbers = r == 0 && !done.error ? numbers_of(&done) : NULL;
    PyObject *answer =
        numbers ? Py_BuildValue("(Ny#)", numbers, done.bytes, (Py_ssize_t)done.len) : NULL;
    worker_host_unlock();
    if (r < 0) {
        PyErr_SetString(PyExc_ConnectionError, "the files' side of the channel is gone");
        return NULL;
    }
    return done.error ? failed(done.error, path, second) : answer;
}

PyMethodDef py_files_ask = {"_ask", ask, METH_VARARGS, NULL};
