/* SPDX-License-Identifier: Apache-2.0 */
/* Programs call sys.stdout.reconfigure(encoding="utf-8"), which is what our streams are anyway, and line_buffering=True,
 * which is less than they do. Another encoding or other line ends would need a stream that we do not have. */
#include "reconfigure.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* Python's own treat these without a look at what was registered by name. */
static const char *const handlers[] = {"strict", "ignore", "replace", "surrogateescape",
                                       "backslashreplace"};

static bool is_utf8(const char *name)
{
    char plain[8] = "";
    size_t len = 0;
    for (; *name; name++) {
        if (*name == '-' || *name == '_' || *name == ' ')
            continue;
        if (len + 1 >= sizeof plain)
            return false;
        plain[len++] = (char)tolower((unsigned char)*name);
    }
    return strcmp(plain, "utf8") == 0;
}

static int check_encoding(PyObject *encoding)
{
    const char *name = encoding == Py_None ? "utf-8" : PyUnicode_AsUTF8(encoding);
    if (!name)
        return -1;
    if (is_utf8(name))
        return 0;
    PyErr_Format(PyExc_ValueError,
                 "the encoding of this stream stays utf-8, not %.40s; encode() and decode() other "
                 "encodings",
                 name);
    return -1;
}

static int check_errors(PyObject *errors, const char **ret)
{
    const char *name = errors == Py_None ? NULL : PyUnicode_AsUTF8(errors);
    if (!name)
        return errors == Py_None ? 0 : -1;
    for (size_t i = 0; i < sizeof handlers / sizeof *handlers; i++)
        if (strcmp(handlers[i], name) == 0) {
            *ret = handlers[i];
            return 0;
        }
    PyErr_Format(PyExc_LookupError,
                 "errors of this stream: strict, ignore, replace, surrogateescape or "
                 "backslashreplace, not %.40s",
                 name);
    return -1;
}

int py_reconfigure(PyObject *args, PyObject *kwargs, const char **errors)
{
    static const char *const words[] = {"encoding",       "errors",        "newline",
                                        "line_buffering", "write_through", NULL};
    PyObject *encoding = Py_None, *handler = Py_None, *newline = Py_None, *line = Py_None,
             *through = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOOO:reconfigure", (char **)words, &encoding,
                                     &handler, &newline, &line, &through))
        return -1;
    if (newline != Py_None) {
        PyErr_SetString(PyExc_ValueError, "the line ends of this stream stay as newline=None has "
                                          "them; read .buffer for others");
        return -1;
    }
    return check_encoding(encoding) < 0 ? -1 : check_errors(handler, errors);
}
