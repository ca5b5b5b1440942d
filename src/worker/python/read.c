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

#include "base/utf8.h"
#include "reconfigure.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
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

static const char *errors = "surrogateescape";

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
 * end in \r and \r\n as well; whether a \n follows the last byte is not known, unless WHOLE. *SEEN: so many of them
 * were looked at before, and need not be again. */
static size_t line_length(bool text, bool whole, size_t *seen)
{
    for (size_t i = held.at + *seen; i < held.end; i++) {
        char c = held.data[i];
        if (c == '\n')
            return i - held.at + 1;
        if (c != '\r' || !text)
            continue;
        if (i + 1 < held.end)
            return i - held.at + 1 + (held.data[i + 1] == '\n');
        *seen = i - held.at;
        return whole ? i - held.at + 1 : 0;
    }
    *seen = held.end - held.at;
    return whole ? held.end - held.at : 0;
}

/* The bytes of the character at P; 0: it is not known yet, unless WHOLE. A line's end is one character, and so is each byte
 * that is no UTF-8, as it is decoded. */
static size_t character(const char *p, size_t len, bool whole)
{
    uint32_t cp;
    if (*p == '\r' && len > 1)
        return p[1] == '\n' ? 2 : 1;
    int n = *p == '\r' ? -1 : utf8_decode((const unsigned char *)p, len, &cp);
    return n > 0 ? (size_t)n : n == 0 || whole;
}

/* Reads until MOST characters are held, or, of a line, its end; gives their bytes. No more is waited for than that needs. -1
 * with an exception. */
static Py_ssize_t characters(Py_ssize_t most, bool of_line)
{
    size_t len = 0;
    bool whole = false;
    while (most > 0) {
        const size_t left = held.end - held.at - len;
        const char *p = held.data ? held.data + held.at + len : "";
        const size_t n = left ? character(p, left, whole) : 0;
        if (n == 0 && whole)
            break;
        if (n == 0) {
            int r = more();
            if (r < 0)
                return -1;
            whole = r == 0;
            continue;
        }
        const bool ends = *p == '\n' || *p == '\r';
        len += n;
        most--;
        if (ends && of_line)
            break;
    }
    return (Py_ssize_t)len;
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
    if (!len || !held.data)
        return text ? PyUnicode_FromString("") : PyBytes_FromStringAndSize(NULL, 0);
    char *p = held.data + held.at;
    held.at += len;
    if (!text)
        return PyBytes_FromStringAndSize(p, (Py_ssize_t)len);
    return PyUnicode_DecodeUTF8(p, (Py_ssize_t)plain_ends(p, len), errors);
}

/* At most MOST bytes, up to the end of a line where OF_LINE; MOST < 0: all there are. Gives how many; -1 with an exception. */
static Py_ssize_t some_bytes(Py_ssize_t most, bool of_line)
{
    for (size_t seen = 0;;) {
        const size_t have = held.end - held.at, want = most < 0 ? SIZE_MAX : (size_t)most;
        const size_t look = have < want ? have : want;
        const char *end =
            of_line && look > seen ? memchr(held.data + held.at + seen, '\n', look - seen) : NULL;
        if (end)
            return end - (held.data + held.at) + 1;
        if (have >= want)
            return (Py_ssize_t)want;
        seen = look;
        int r = more();
        if (r <= 0)
            return r < 0 ? -1 : (Py_ssize_t)(held.end - held.at);
    }
}

static Py_ssize_t whole_line(void)
{
    size_t seen = 0, len;
    while ((len = line_length(true, false, &seen)) == 0) {
        int r = more();
        if (r < 0)
            return -1;
        if (r == 0)
            return (Py_ssize_t)line_length(true, true, &seen);
    }
    return (Py_ssize_t)len;
}

static PyObject *line(bool text, Py_ssize_t most)
{
    Py_ssize_t len = !text      ? some_bytes(most, true)
                     : most < 0 ? whole_line()
                                : characters(most, true);
    return len < 0 ? NULL : take(text, (size_t)len);
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
    if (count_of(args, n, &want) < 0)
        return NULL;
    Py_ssize_t len = text && want >= 0 ? characters(want, false) : some_bytes(want, false);
    return len < 0 ? NULL : take(text, (size_t)len);
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

static PyObject *reader_reconfigure(PyObject *self, PyObject *args, PyObject *kwargs)
{
    if (!is_text(self)) {
        PyErr_SetString(PyExc_AttributeError, "'stream' object has no attribute 'reconfigure'");
        return NULL;
    }
    if (py_reconfigure(args, kwargs, &errors) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *word_errors(PyObject *self, void *closure)
{
    (void)self;
    (void)closure;
    return PyUnicode_FromString(errors);
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
    {"reconfigure", FAST(reader_reconfigure), METH_VARARGS | METH_KEYWORDS, NULL},
    {"__enter__", reader_self, METH_NOARGS, NULL},
    {"__exit__", reader_nothing, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef reader_words[] = {
    {"buffer", word_buffer, NULL, NULL, NULL},
    {"encoding", word_text, NULL, NULL, (char *)"utf-8"},
    {"errors", word_errors, NULL, NULL, NULL},
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
