/* SPDX-License-Identifier: Apache-2.0 */
/* sys.stdin as Python makes it leads to its buffer, the raw file and the type that opens files. Ours has the
 * methods that programs and libraries call, and no more. The text reader and the one of bytes share what was
 * read and is not yet taken, so a program may use both.
 *
 * The end is not remembered: a session puts another descriptor in the place of 0, and the next read sees it.
 * The interpreter's lock stays held while the kernel is asked: guarded programs have one thread, and where an
 * operator allows more, two of them must not move the same bytes.
 *
 * Waits: read(0) for whoever feeds the program; the run's time limit ends it. */
#include "read.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

enum { ONE_READ = 64 * 1024 };

struct reader {
    PyObject_HEAD;
    bool bytes; /* sys.stdin.buffer */
};

static struct {
    char *data;
    size_t at, end, cap; /* data[at..end) is not yet taken */
} held;

static PyTypeObject reader_type;
static PyObject *readers[2]; /* text, bytes */

/* ---- bytes ---- */

static bool is_text(PyObject *self)
{
    return !((struct reader *)self)->bytes;
}

/* One read more behind what is held. 1, 0 at the end, -1 with an exception. */
static int more(void)
{
    if (held.at > 0) {
        memmove(held.data, held.data + held.at, held.end - held.at);
        held.end -= held.at;
        held.at = 0;
    }
    if (held.cap - held.end < ONE_READ) {
        size_t cap = held.cap ? 2 * held.cap : (size_t)2 * ONE_READ;
        char *data = PyMem_RawRealloc(held.data, cap);
        if (!data) {
            PyErr_NoMemory();
            return -1;
        }
        held.data = data;
        held.cap = cap;
    }
    for (;;) {
        ssize_t n = read(STDIN_FILENO, held.data + held.end, ONE_READ);
        if (n >= 0) {
            held.end += (size_t)n;
            return n > 0;
        }
        if (errno != EINTR) {
            PyErr_SetFromErrno(PyExc_OSError);
            return -1;
        }
        if (PyErr_CheckSignals() < 0)
            return -1;
    }
}

/* How many of the held bytes are one line, its end included; 0: it does not end within them. A text's line may
 * end in \r and \r\n as well; whether a \n follows the last byte is not known, unless WHOLE. */
static size_t line_length(bool text, bool whole)
{
    for (size_t i = held.at; i < held.end; i++) {
        char c = held.data[i];
        if (c == '\n')
            return i - held.at + 1;
        if (c != '\r' || !text)
            continue;
        if (i + 1 < held.end)
            return i - held.at + 1 + (held.data[i + 1] == '\n');
        return whole ? i - held.at + 1 : 0;
    }
    return whole ? held.end - held.at : 0;
}

/* How many of the first LEN held bytes are WANT characters, or as many as there are. */
static size_t characters(size_t len, Py_ssize_t want)
{
    size_t i = 0;
    for (; i < len; i++)
        if (((unsigned char)held.data[held.at + i] & 0xC0) != 0x80 && want-- == 0)
            break;
    return i;
}

/* In place: \r\n and \r become \n. Gives the new length. */
static size_t plain_ends(char *p, size_t len)
{
    size_t to = 0;
    for (size_t i = 0; i < len; i++) {
        if (p[i] == '\r' && i + 1 < len && p[i + 1] == '\n')
            continue;
        p[to++] = p[i];
        if (p[to - 1] == '\r')
            p[to - 1] = '\n';
    }
    return to;
}

static PyObject *take(bool text, size_t len)
{
    char *p = held.data + held.at;
    if (!len)
        return text ? PyUnicode_FromString("") : PyBytes_FromStringAndSize(NULL, 0);
    held.at += len;
    if (!text)
        return PyBytes_FromStringAndSize(p, (Py_ssize_t)len);
    return PyUnicode_DecodeUTF8(p, (Py_ssize_t)plain_ends(p, len), "surrogateescape");
}

static PyObject *line(bool text, Py_ssize_t most)
{
    size_t len;
    while ((len = line_length(text, false)) == 0) {
        int r = more();
        if (r < 0)
            return NULL;
        if (r == 0) {
            len = line_length(text, true);
            break;
        }
    }
    if (most >= 0)
        len = text ? characters(len, most) : len < (size_t)most ? len : (size_t)most;
    return take(text, len);
}

/* ---- methods ---- */

/* The one argument that the three readers may have: a count, or None for all. */
static int count_of(PyObject *const *args, Py_ssize_t n, Py_ssize_t *ret)
{
    *ret = -1;
    if (n > 1) {
        PyErr_Format(PyExc_TypeError, "expected at most 1 argument, got %zd", n);
        return -1;
    }
    if (n == 0 || args[0] == Py_None)
        return 0;
    *ret = PyNumber_AsSsize_t(args[0], PyExc_OverflowError);
    return *ret == -1 && PyErr_Occurred() ? -1 : 0;
}

static PyObject *reader_read(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    Py_ssize_t want;
    bool text = is_text(self);
    int r = 1;
    if (count_of(args, n, &want) < 0)
        return NULL;
    while (r > 0 && (want < 0 || (text ? characters(held.end - held.at, want) == held.end - held.at
                                       : held.end - held.at < (size_t)want)))
        r = more();
    if (r < 0)
        return NULL;
    size_t len = held.end - held.at;
    if (want >= 0)
        len = text ? characters(len, want) : len < (size_t)want ? len : (size_t)want;
    return take(text, len);
}

static PyObject *reader_readline(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    Py_ssize_t most;
    return count_of(args, n, &most) < 0 ? NULL : line(is_text(self), most);
}

static PyObject *reader_next(PyObject *self)
{
    PyObject *text = line(is_text(self), -1);
    if (text && PyObject_Length(text) == 0)
        Py_CLEAR(text); /* no exception: the end */
    return text;
}

static PyObject *reader_readlines(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    Py_ssize_t most, have = 0;
    PyObject *list = count_of(args, n, &most) < 0 ? NULL : PyList_New(0), *next;
    while (list && (most <= 0 || have < most) && (next = reader_next(self))) {
        have += PyObject_Length(next);
        if (PyList_Append(list, next) < 0)
            Py_CLEAR(list);
        Py_DECREF(next);
    }
    if (PyErr_Occurred())
        Py_CLEAR(list);
    return list;
}

static PyObject *reader_self(PyObject *self, PyObject *none)
{
    (void)none;
    Py_INCREF(self);
    return self;
}

static PyObject *reader_nothing(PyObject *self, PyObject *args)
{
    (void)self;
    (void)args;
    Py_RETURN_NONE;
}

static PyObject *reader_yes(PyObject *self, PyObject *none)
{
    (void)self;
    (void)none;
    Py_RETURN_TRUE;
}

static PyObject *reader_no(PyObject *self, PyObject *none)
{
    (void)self;
    (void)none;
    Py_RETURN_FALSE;
}

static PyObject *reader_fileno(PyObject *self, PyObject *none)
{
    (void)self;
    (void)none;
    PyErr_SetString(PyExc_OSError, "this stream has no descriptor");
    return NULL;
}

static PyObject *word_buffer(PyObject *self, void *closure)
{
    (void)closure;
    if (!is_text(self)) {
        PyErr_SetString(PyExc_AttributeError, "'stream' object has no attribute 'buffer'");
        return NULL;
    }
    Py_INCREF(readers[1]);
    return readers[1];
}

static PyObject *word_text(PyObject *self, void *closure)
{
    (void)self;
    return PyUnicode_FromString(closure);
}

static PyObject *word_closed(PyObject *self, void *closure)
{
    (void)self;
    (void)closure;
    Py_RETURN_FALSE;
}

#define FAST(f) ((PyCFunction)(void (*)(void))(f))
static PyMethodDef reader_methods[] = {
    {"read", FAST(reader_read), METH_FASTCALL, NULL},
    {"readline", FAST(reader_readline), METH_FASTCALL, NULL},
    {"readlines", FAST(reader_readlines), METH_FASTCALL, NULL},
    {"flush", reader_nothing, METH_NOARGS, NULL},
    {"close", reader_nothing, METH_NOARGS, NULL},
    {"isatty", reader_no, METH_NOARGS, NULL},
    {"readable", reader_yes, METH_NOARGS, NULL},
    {"writable", reader_no, METH_NOARGS, NULL},
    {"seekable", reader_no, METH_NOARGS, NULL},
    {"fileno", reader_fileno, METH_NOARGS, NULL},
    {"__enter__", reader_self, METH_NOARGS, NULL},
    {"__exit__", reader_nothing, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef reader_words[] = {
    {"buffer", word_buffer, NULL, NULL, NULL},
    {"encoding", word_text, NULL, NULL, (char *)"utf-8"},
    {"errors", word_text, NULL, NULL, (char *)"surrogateescape"},
    {"name", word_text, NULL, NULL, (char *)"<stdin>"},
    {"mode", word_text, NULL, NULL, (char *)"r"},
    {"closed", word_closed, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyTypeObject reader_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "stream",
    .tp_basicsize = sizeof(struct reader),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_methods = reader_methods,
    .tp_getset = reader_words,
    .tp_iter = PyObject_SelfIter,
    .tp_iternext = reader_next,
    .tp_getattro = PyObject_GenericGetAttr,
};

/* ---- start ---- */

int read_init(void)
{
    if (PyType_Ready(&reader_type) < 0)
        return -1;
    for (int i = 0; i < 2; i++) {
        struct reader *r = PyObject_New(struct reader, &reader_type);
        if (!r)
            return -1;
        r->bytes = i == 1;
        readers[i] = (PyObject *)r;
    }
    return 0;
}

PyObject *read_text(void)
{
    return readers[0];
}
