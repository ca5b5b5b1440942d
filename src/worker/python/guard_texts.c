/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of exceptions. Their members are whatever a guest set, and code of the guest runs while a text is made of them: what was
 * looked at may be gone, and what is taken for a str, for bytes or for a place in them may be anything. */
#include "guard_slots.h"

/* ---- those of codecs: the text names a piece of .object at .start ---- */

static reprfunc plain_decode_str, plain_encode_str, plain_translate_str;

/* What a codec could not do, with which piece, or with which pieces. */
struct words {
    PyObject *encoding, *reason; /* str, held; encoding may be NULL */
};

static bool take_words(PyUnicodeErrorObject *e, bool encoding, struct words *w)
{
    w->encoding = NULL;
    w->reason = e->reason ? PyObject_Str(e->reason) : PyUnicode_FromString("");
    if (w->reason && encoding)
        w->encoding = e->encoding ? PyObject_Str(e->encoding) : PyUnicode_FromString("");
    if (w->reason && (w->encoding || !encoding))
        return true;
    Py_XDECREF(w->reason);
    return false;
}

static PyObject *told(struct words *w, PyObject *text)
{
    Py_XDECREF(w->encoding);
    Py_XDECREF(w->reason);
    return text;
}

/* The one piece that E names is at a place that OBJECT, of LENGTH pieces, has. */
static bool names_one(const PyUnicodeErrorObject *e, Py_ssize_t length)
{
    return e->start >= 0 && e->start < length && e->end == e->start + 1;
}

static PyObject *decode_str(PyObject *self)
{
    PyUnicodeErrorObject *e = (PyUnicodeErrorObject *)self;
    struct words w;
    if (!e->object)
        return plain_decode_str(self);
    if (!take_words(e, true, &w))
        return NULL;
    PyObject *object = e->object; /* read after the guest's code has run */
    if (object && PyBytes_Check(object) && names_one(e, PyBytes_GET_SIZE(object)))
        return told(&w, PyUnicode_FromFormat(
                            "'%U' codec can't decode byte 0x%02x in position %zd: %U", w.encoding,
                            PyBytes_AS_STRING(object)[e->start] & 0xff, e->start, w.reason));
    return told(&w, PyUnicode_FromFormat("'%U' codec can't decode bytes in position %zd-%zd: %U",
                                         w.encoding, e->start, e->end - 1, w.reason));
}

/* '\x41', '\u0141' or '\U0001f600', where E names one character; else NULL without an exception. */
static PyObject *character(PyUnicodeErrorObject *e)
{
    PyObject *object = e->object;
    if (!object || !PyUnicode_Check(object) || !names_one(e, PyUnicode_GET_LENGTH(object)))
        return NULL;
    Py_UCS4 c = PyUnicode_READ_CHAR(object, e->start);
    return PyUnicode_FromFormat(c <= 0xff     ? "'\\x%02x'"
                                : c <= 0xffff ? "'\\u%04x'"
                                              : "'\\U%08x'",
                                (int)c);
}

static PyObject *encode_str(PyObject *self)
{
    PyUnicodeErrorObject *e = (PyUnicodeErrorObject *)self;
    struct words w;
    if (!e->object)
        return plain_encode_str(self);
    if (!take_words(e, true, &w))
        return NULL;
    PyObject *one = character(e), *text = NULL;
    if (one)
        text = PyUnicode_FromFormat("'%U' codec can't encode character %U in position %zd: %U",
                                    w.encoding, one, e->start, w.reason);
    else if (!PyErr_Occurred())
        text = PyUnicode_FromFormat("'%U' codec can't encode characters in position %zd-%zd: %U",
                                    w.encoding, e->start, e->end - 1, w.reason);
    Py_XDECREF(one);
    return told(&w, text);
}

static PyObject *translate_str(PyObject *self)
{
    PyUnicodeErrorObject *e = (PyUnicodeErrorObject *)self;
    struct words w;
    if (!e->object)
        return plain_translate_str(self);
    if (!take_words(e, false, &w))
        return NULL;
    PyObject *one = character(e), *text = NULL;
    if (one)
        text = PyUnicode_FromFormat("can't translate character %U in position %zd: %U", one,
                                    e->start, w.reason);
    else if (!PyErr_Occurred())
        text = PyUnicode_FromFormat("can't translate characters in position %zd-%zd: %U", e->start,
                                    e->end - 1, w.reason);
    Py_XDECREF(one);
    return told(&w, text);
}

/* ---- OSError: up to four members are made texts of, one after the other ---- */

static reprfunc plain_os_str;

static PyObject *os_str(PyObject *self)
{
    PyOSErrorObject *e = (PyOSErrorObject *)self;
    enum { MEMBERS = 4 };
    PyObject *held[MEMBERS] = {e->myerrno, e->strerror, e->filename, e->filename2};
    for (size_t i = 0; i < MEMBERS; i++)
        Py_XINCREF(held[i]);
    PyObject *text = plain_os_str(self);
    for (size_t i = 0; i < MEMBERS; i++)
        Py_XDECREF(held[i]);
    return text;
}

int guard_close_texts(void)
{
    static const char *const names[] = {"__str__", NULL};
    const struct {
        PyObject *type;
        reprfunc mine, *before;
    } texts[] = {
        {PyExc_OSError, os_str, &plain_os_str},
        {PyExc_UnicodeDecodeError, decode_str, &plain_decode_str},
        {PyExc_UnicodeEncodeError, encode_str, &plain_encode_str},
        {PyExc_UnicodeTranslateError, translate_str, &plain_translate_str},
    };
    for (size_t i = 0; !plain_translate_str && i < sizeof texts / sizeof *texts; i++)
        if (guard_exchange_slot((PyTypeObject *)texts[i].type, guard_slot_str,
                                (void *)texts[i].mine, (void **)texts[i].before, names) < 0)
            return -1;
    return 0;
}
