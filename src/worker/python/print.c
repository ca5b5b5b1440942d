/* SPDX-License-Identifier: Apache-2.0 */
/* sys.stdout as Python makes it leads to its buffer, the raw file and the type that opens files. Ours has
 * the methods that programs and libraries call, and the descriptor's number in a struct. Each write is one
 * system call, as with `python -u`: the run's output is whole whenever it ends. */
#include "print.h"

#include "guard_inside.h"
#include "read.h"
#include "reconfigure.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

struct stream {
    PyObject_HEAD;
    int fd;
    const char *name;
    const char *errors; /* stderr never fails on a character */
    bool bytes;         /* sys.stdout.buffer */
};

static PyTypeObject stream_type;
static PyObject *streams[4]; /* stdout, stderr, and the same for bytes */

/* ---- bytes ---- */

static int put(int fd, const char *p, size_t len)
{
    while (len > 0) {
        ssize_t n;
        Py_BEGIN_ALLOW_THREADS n = write(fd, p, len);
        Py_END_ALLOW_THREADS if (n < 0 && errno == EINTR && PyErr_CheckSignals() == 0) continue;
        if (n < 0) {
            if (!PyErr_Occurred())
                PyErr_SetFromErrno(PyExc_OSError);
            return -1;
        }
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

static int put_text(const struct stream *s, PyObject *text)
{
    Py_ssize_t len;
    const char *utf8 = PyUnicode_AsUTF8AndSize(text, &len);
    if (utf8)
        return put(s->fd, utf8, (size_t)len);
    if (strcmp(s->errors, "strict") == 0)
        return -1;
    PyErr_Clear();
    PyObject *bytes = PyUnicode_AsEncodedString(text, "utf-8", s->errors);
    int r = bytes ? put(s->fd, PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes)) : -1;
    Py_XDECREF(bytes);
    return r;
}

/* ---- the stream ---- */

static PyObject *write_bytes(const struct stream *s, PyObject *data)
{
    Py_buffer view;
    if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    int r = put(s->fd, view.buf, (size_t)view.len);
    PyObject *n = r < 0 ? NULL : PyLong_FromSsize_t(view.len);
    PyBuffer_Release(&view);
    return n;
}

static PyObject *stream_write(PyObject *self, PyObject *text)
{
    if (((struct stream *)self)->bytes)
        return write_bytes((struct stream *)self, text);
    if (!PyUnicode_Check(text)) {
        PyErr_Format(PyExc_TypeError, "write() argument must be str, not %.100s",
                     Py_TYPE(text)->tp_name);
        return NULL;
    }
    if (put_text((struct stream *)self, text) < 0)
        return NULL;
    return PyLong_FromSsize_t(PyUnicode_GET_LENGTH(text));
}

static PyObject *stream_writelines(PyObject *self, PyObject *lines)
{
    PyObject *iterator = PyObject_GetIter(lines), *line;
    if (!iterator)
        return NULL;
    while ((line = PyIter_Next(iterator))) {
        PyObject *n = stream_write(self, line);
        Py_DECREF(line);
        if (!n)
            break;
        Py_DECREF(n);
    }
    Py_DECREF(iterator);
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *stream_nothing(PyObject *self, PyObject *none)
{
    (void)self;
    (void)none;
    Py_RETURN_NONE;
}

static PyObject *stream_yes(PyObject *self, PyObject *none)
{
    (void)self;
    (void)none;
    Py_RETURN_TRUE;
}

static PyObject *stream_no(PyObject *self, PyObject *none)
{
    (void)self;
    (void)none;
    Py_RETURN_FALSE;
}

static PyObject *stream_fileno(PyObject *self, PyObject *none)
{
    (void)self;
    (void)none;
    PyErr_SetString(PyExc_OSError, "this stream has no descriptor");
    return NULL;
}

static PyObject *stream_reconfigure(PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct stream *s = (struct stream *)self;
    if (s->bytes) {
        PyErr_SetString(PyExc_AttributeError, "'stream' object has no attribute 'reconfigure'");
        return NULL;
    }
    if (py_reconfigure(args, kwargs, &s->errors) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *stream_encoding(PyObject *self, void *closure)
{
    (void)self;
    (void)closure;
    return PyUnicode_FromString("utf-8");
}

static PyObject *stream_errors(PyObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(((struct stream *)self)->errors);
}

static PyObject *stream_name(PyObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(((struct stream *)self)->name);
}

static PyObject *stream_buffer(PyObject *self, void *closure)
{
    const struct stream *s = (struct stream *)self;
    (void)closure;
    if (s->bytes) {
        PyErr_SetString(PyExc_AttributeError, "'stream' object has no attribute 'buffer'");
        return NULL;
    }
    return Py_NewRef(streams[s->fd == STDOUT_FILENO ? 2 : 3]);
}

static PyObject *stream_closed(PyObject *self, void *closure)
{
    (void)self;
    (void)closure;
    Py_RETURN_FALSE;
}

static PyMethodDef stream_methods[] = {
    {"write", stream_write, METH_O, NULL},
    {"writelines", stream_writelines, METH_O, NULL},
    {"flush", stream_nothing, METH_NOARGS, NULL},
    {"close", stream_nothing, METH_NOARGS, NULL},
    {"isatty", stream_no, METH_NOARGS, NULL},
    {"readable", stream_no, METH_NOARGS, NULL},
    {"seekable", stream_no, METH_NOARGS, NULL},
    {"writable", stream_yes, METH_NOARGS, NULL},
    {"fileno", stream_fileno, METH_NOARGS, NULL},
    {"reconfigure", (PyCFunction)(void (*)(void))stream_reconfigure, METH_VARARGS | METH_KEYWORDS,
     NULL},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef stream_words[] = {
    {"encoding", stream_encoding, NULL, NULL, NULL}, {"errors", stream_errors, NULL, NULL, NULL},
    {"name", stream_name, NULL, NULL, NULL},         {"closed", stream_closed, NULL, NULL, NULL},
    {"buffer", stream_buffer, NULL, NULL, NULL},     {NULL, NULL, NULL, NULL, NULL},
};
static PyTypeObject stream_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "stream",
    .tp_basicsize = sizeof(struct stream),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_methods = stream_methods,
    .tp_getset = stream_words,
    .tp_getattro = PyObject_GenericGetAttr,
};

static PyObject *new_stream(int fd, const char *name, const char *errors, bool bytes)
{
    struct stream *s = PyObject_New(struct stream, &stream_type);
    if (s) {
        s->fd = fd;
        s->name = name;
        s->errors = errors;
        s->bytes = bytes;
    }
    return (PyObject *)s;
}

/* ---- print ---- */

struct options {
    PyObject *sep, *end, *file;
    bool flush;
};

static int text_option(PyObject *value, const char *name, PyObject **ret)
{
    if (value == Py_None)
        return 0;
    if (!PyUnicode_Check(value)) {
        PyErr_Format(PyExc_TypeError, "%s must be None or a string, not %.200s", name,
                     Py_TYPE(value)->tp_name);
        return -1;
    }
    *ret = value;
    return 0;
}

static int read_options(struct options *o, PyObject *const *values, PyObject *names)
{
    for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i), *value = values[i];
        int r = 0;
        if (PyUnicode_CompareWithASCIIString(name, "sep") == 0)
            r = text_option(value, "sep", &o->sep);
        else if (PyUnicode_CompareWithASCIIString(name, "end") == 0)
            r = text_option(value, "end", &o->end);
        else if (PyUnicode_CompareWithASCIIString(name, "file") == 0)
            o->file = value;
        else if (PyUnicode_CompareWithASCIIString(name, "flush") == 0)
            r = PyObject_IsTrue(value), o->flush = r > 0;
        else {
            PyErr_Format(PyExc_TypeError, "'%U' is an invalid keyword argument for print()", name);
            r = -1;
        }
        if (r < 0)
            return -1;
    }
    return 0;
}

/* Calls FILE.NAME(ARG) as guest code would: through the guard. */
static int call_method(PyObject *file, const char *name, PyObject *arg)
{
    PyObject *word = PyUnicode_InternFromString(name);
    PyObject *method = word ? guard_get(file, word) : NULL;
    PyObject *result = NULL;
    if (method)
        result = arg ? PyObject_CallOneArg(method, arg) : PyObject_CallNoArgs(method);
    Py_XDECREF(word);
    Py_XDECREF(method);
    Py_XDECREF(result);
    return result ? 0 : -1;
}

/* Where a print goes. A stream of ours gets a whole line in one write; only what may print on its own
 * while it is turned into text finds the line written as far as it is, as in plain Python. */
struct line {
    PyObject *file;
    PyObject *pieces; /* NULL: not our stream, each piece is a call of its write */
};

static int write_pieces(struct line *l)
{
    if (!l->pieces || PyList_GET_SIZE(l->pieces) == 0)
        return 0;
    PyObject *empty = PyUnicode_FromString("");
    PyObject *text = empty ? PyUnicode_Join(empty, l->pieces) : NULL;
    int r = text ? put_text((struct stream *)l->file, text) : -1;
    Py_XDECREF(empty);
    Py_XDECREF(text);
    return r < 0 ? -1 : PyList_SetSlice(l->pieces, 0, PyList_GET_SIZE(l->pieces), NULL);
}

static int add_piece(struct line *l, PyObject *text)
{
    return l->pieces ? PyList_Append(l->pieces, text) : call_method(l->file, "write", text);
}

static bool is_quiet(PyObject *x)
{
    return PyUnicode_CheckExact(x) || PyLong_CheckExact(x) || PyFloat_CheckExact(x) ||
           PyBool_Check(x) || x == Py_None;
}

static int add_argument(struct line *l, PyObject *x)
{
    if (!is_quiet(x) && write_pieces(l) < 0)
        return -1;
    PyObject *text = PyObject_Str(x);
    int r = text ? add_piece(l, text) : -1;
    Py_XDECREF(text);
    return r;
}

static int add_word(struct line *l, PyObject *given, const char *usual)
{
    PyObject *text = given ? Py_NewRef(given) : PyUnicode_FromString(usual);
    int r = text ? add_piece(l, text) : -1;
    Py_XDECREF(text);
    return r;
}

static int print_line(struct line *l, PyObject *const *args, Py_ssize_t n, const struct options *o)
{
    for (Py_ssize_t i = 0; i < n; i++)
        if ((i > 0 && add_word(l, o->sep, " ") < 0) || add_argument(l, args[i]) < 0)
            return -1;
    if (add_word(l, o->end, "\n") < 0 || write_pieces(l) < 0)
        return -1;
    return o->flush && !l->pieces ? call_method(l->file, "flush", NULL) : 0;
}

PyObject *print_guarded(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    struct options o = {0};
    struct line l = {0};
    (void)self;
    if (read_options(&o, args + nargs, kwnames) < 0)
        return NULL;
    l.file = o.file && o.file != Py_None ? o.file : PySys_GetObject("stdout");
    if (!l.file || l.file == Py_None)
        Py_RETURN_NONE;
    Py_INCREF(l.file);
    bool ours = Py_IS_TYPE(l.file, &stream_type) && !((struct stream *)l.file)->bytes;
    l.pieces = ours ? PyList_New(0) : NULL;
    int r = ours && !l.pieces ? -1 : print_line(&l, args, nargs, &o);
    Py_XDECREF(l.pieces);
    Py_DECREF(l.file);
    if (r < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* ---- redirect_stdout, redirect_stderr ---- */

struct redirect {
    PyObject_HEAD;
    const char *stream;
    PyObject *target;
    PyObject *before; /* list: what it stood in for, innermost last */
};

static PyTypeObject redirect_types[2];

static PyObject *redirect_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *words[] = {(char *)"new_target", NULL};
    PyObject *target;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O", words, &target))
        return NULL;
    struct redirect *r = (struct redirect *)type->tp_alloc(type, 0);
    if (!r)
        return NULL;
    r->stream = type == &redirect_types[0] ? (char *)"stdout" : (char *)"stderr";
    r->target = Py_NewRef(target);
    r->before = PyList_New(0);
    if (!r->before)
        Py_CLEAR(r);
    return (PyObject *)r;
}

static PyObject *redirect_enter(PyObject *self, PyObject *none)
{
    struct redirect *r = (struct redirect *)self;
    (void)none;
    PyObject *now = PySys_GetObject(r->stream);
    if (!r->before || PyList_Append(r->before, now ? now : Py_None) < 0 ||
        PySys_SetObject(r->stream, r->target) < 0)
        return NULL;
    return Py_NewRef(r->target);
}

static PyObject *redirect_exit(PyObject *self, PyObject *args)
{
    struct redirect *r = (struct redirect *)self;
    (void)args;
    Py_ssize_t n = r->before ? PyList_GET_SIZE(r->before) : 0;
    if (n == 0) {
        PyErr_SetString(PyExc_RuntimeError, "not entered");
        return NULL;
    }
    PyObject *before = Py_NewRef(PyList_GET_ITEM(r->before, n - 1));
    int bad = PySys_SetObject(r->stream, before);
    Py_DECREF(before);
    if (bad < 0 || PyList_SetSlice(r->before, n - 1, n, NULL) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static int redirect_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((struct redirect *)self)->target);
    Py_VISIT(((struct redirect *)self)->before);
    return 0;
}

static int redirect_clear(PyObject *self)
{
    Py_CLEAR(((struct redirect *)self)->target);
    Py_CLEAR(((struct redirect *)self)->before);
    return 0;
}

static void redirect_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    redirect_clear(self);
    Py_TYPE(self)->tp_free(self);
}

static PyMethodDef redirect_methods[] = {
    {(char *)"__enter__", redirect_enter, METH_NOARGS, NULL},
    {(char *)"__exit__", redirect_exit, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

#define REDIRECT(name)                                                                             \
    {                                                                                              \
        PyVarObject_HEAD_INIT(NULL, 0).tp_name = name, .tp_basicsize = sizeof(struct redirect),    \
                                    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,           \
                                    .tp_dealloc = redirect_dealloc,                                \
                                    .tp_traverse = redirect_traverse, .tp_clear = redirect_clear,  \
                                    .tp_methods = redirect_methods, .tp_new = redirect_new,        \
                                    .tp_getattro = PyObject_GenericGetAttr,                        \
    }
static PyTypeObject redirect_types[2] = {REDIRECT("redirect_stdout"), REDIRECT("redirect_stderr")};

PyObject *print_redirect(const char *stream)
{
    return (PyObject *)&redirect_types[strcmp(stream, "stdout") != 0];
}

/* ---- start ---- */

int print_init(void)
{
    if (PyType_Ready(&stream_type) < 0 || PyType_Ready(&redirect_types[0]) < 0 ||
        PyType_Ready(&redirect_types[1]) < 0 || read_init() < 0)
        return -1;
    for (int i = 0; i < 4; i++) {
        bool out = i % 2 == 0;
        streams[i] = new_stream(out ? STDOUT_FILENO : STDERR_FILENO, out ? "<stdout>" : "<stderr>",
                                out ? "strict" : "backslashreplace", i >= 2);
        if (!streams[i])
            return -1;
    }
    return 0;
}

/* What the interpreter's own streams still hold goes first; they stay alive, or closing them would close
 * the descriptors. */
int print_streams(void)
{
    static const char *const names[3][2] = {
        {"stdout", "__stdout__"}, {"stderr", "__stderr__"}, {"stdin", "__stdin__"}};
    static PyObject *kept[3];
    for (int i = 0; i < 3; i++) {
        PyObject *before = PySys_GetObject(names[i][0]);
        PyObject *done =
            before && before != Py_None ? PyObject_CallMethod(before, "flush", NULL) : NULL;
        if (!done)
            PyErr_Clear();
        Py_XDECREF(done);
        if (before && !kept[i])
            kept[i] = Py_NewRef(before);
        for (int k = 0; k < 2; k++)
            if (PySys_SetObject(names[i][k], i == 2 ? read_text() : streams[i]) < 0)
                return -1;
    }
    return 0;
}
