/* SPDX-License-Identifier: Apache-2.0 */
/* Exceptions are the guest's objects: their `__str__` is guest code and may raise, loop or lie. It runs
 * here as the rest of the program did, under the same limits; what comes of it is text. */
#include "fault.h"

#include "worker/frame/channel.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The line in the guest's own file that is nearest to where it was raised. */
static unsigned own_line(PyObject *traceback, const char *file)
{
    unsigned line = 0;
    Py_XINCREF(traceback);
    while (traceback && traceback != Py_None) {
        PyObject *frame = PyObject_GetAttrString(traceback, "tb_frame");
        PyObject *code = frame ? PyObject_GetAttrString(frame, "f_code") : NULL;
        PyObject *name = code ? PyObject_GetAttrString(code, "co_filename") : NULL;
        PyObject *at = PyObject_GetAttrString(traceback, "tb_lineno");
        const char *text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
        long n = at && PyLong_Check(at) ? PyLong_AsLong(at) : 0;
        if (text && strcmp(text, file) == 0 && n > 0 && n < INT_MAX)
            line = (unsigned)n;
        PyObject *next = PyObject_GetAttrString(traceback, "tb_next");
        Py_XDECREF(frame);
        Py_XDECREF(code);
        Py_XDECREF(name);
        Py_XDECREF(at);
        Py_DECREF(traceback);
        traceback = next;
        PyErr_Clear();
    }
    Py_XDECREF(traceback);
    return line;
}

static void tell(PyObject *type, PyObject *value, unsigned line)
{
    PyObject *text = value ? PyObject_Str(value) : NULL;
    if (!text)
        PyErr_Clear();
    PyObject *bytes = text ? PyUnicode_AsEncodedString(text, "utf-8", "replace") : NULL;
    if (!bytes)
        PyErr_Clear();
    const char *name = PyType_Check(type) ? ((PyTypeObject *)type)->tp_name : "?";
    const char *dot = strrchr(name, '.');
    name = dot ? dot + 1 : name;
    worker_channel_fault(name, bytes ? PyBytes_AsString(bytes) : "",
                         bytes ? (size_t)PyBytes_Size(bytes) : 0, line);
    Py_XDECREF(text);
    Py_XDECREF(bytes);
}

/* The traceback as python3 prints it, with the program's own lines: there is no file to read them from, so
 * linecache is told. False: it could not be done, and nothing was printed. */
static bool print_with_lines(PyObject *value, const char *file, const char *source, size_t len)
{
    PyObject *linecache = PyImport_ImportModule("linecache");
    PyObject *module = linecache ? PyImport_ImportModule("traceback") : NULL;
    PyObject *cache = module ? PyObject_GetAttrString(linecache, "cache") : NULL;
    PyObject *text = cache ? PyUnicode_DecodeUTF8(source, (Py_ssize_t)len, "replace") : NULL;
    PyObject *lines = text ? PyUnicode_Splitlines(text, 1) : NULL;
    PyObject *row = lines ? Py_BuildValue("(nOOs)", (Py_ssize_t)len, Py_None, lines, file) : NULL;
    PyObject *done = NULL;
    if (row && PyMapping_SetItemString(cache, file, row) == 0)
        done = PyObject_CallMethod(module, "print_exception", "O", value);
    PyErr_Clear();
    Py_XDECREF(linecache);
    Py_XDECREF(module);
    Py_XDECREF(cache);
    Py_XDECREF(text);
    Py_XDECREF(lines);
    Py_XDECREF(row);
    Py_XDECREF(done);
    return done != NULL;
}

/* As python3 prints it without lines. Where that fails (a SyntaxError whose text or places were set), the interpreter dumps the
 * object with its addresses into the C library's stderr: that goes to memory of ours, and the type's name is said instead. */
static void print_plainly(PyObject *type, PyObject *value, PyObject *traceback)
{
    char dump[64] = "";
    FILE *plain = stderr, *sink = fmemopen(dump, sizeof dump, "w");
    const char *name = PyType_Check(type) ? ((PyTypeObject *)type)->tp_name : "?";
    if (sink) {
        stderr = sink;
        PyErr_Display(type, value, traceback);
        PyErr_Clear();
        stderr = plain;
        (void)fclose(sink);
    }
    if (!sink || dump[0])
        PySys_FormatStderr("%s: it cannot be printed\n", name);
}

/* Line NUMBER of the program without the blanks before it; false: there is none. */
static bool find_line(const char *source, size_t len, unsigned number, const char **ret,
                      int *ret_len)
{
    const char *at = source, *end = source + len;
    for (; number > 1 && at && at < end; number--) {
        at = memchr(at, '\n', (size_t)(end - at));
        at += at != NULL;
    }
    if (!at || at >= end || number != 1)
        return false;
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    stop = stop ? stop : end;
    while (at < stop && (*at == ' ' || *at == '\t'))
        at++;
    while (stop > at && (stop[-1] == '\r' || stop[-1] == ' '))
        stop--;
    *ret = at;
    *ret_len = (int)(stop - at < INT_MAX ? stop - at : INT_MAX);
    return at < stop;
}

/* TEXT is what the interpreter says of an exception: behind each entry of FILE comes its line. */
static void put_with_lines(const char *text, const char *file, const char *source, size_t len)
{
    char entry[300];
    PyObject *err = PySys_GetObject("stderr");
    const int head = snprintf(entry, sizeof entry, "  File \"%s\", line ", file);
    while (*text && err && err != Py_None) {
        const size_t n = strcspn(text, "\n") + 1;
        const bool last = text[n - 1] == 0;
        unsigned number = 0;
        const char *line;
        int line_len;
        if (head > 0 && strncmp(text, entry, (size_t)head) == 0)
            number = (unsigned)strtoul(text + head, NULL, 10);
        PyObject *piece = PyUnicode_DecodeUTF8(text, (Py_ssize_t)(last ? n - 1 : n), "replace");
        if (!piece || PyFile_WriteObject(piece, err, Py_PRINT_RAW) < 0)
            PyErr_Clear();
        Py_XDECREF(piece);
        if (number && find_line(source, len, number, &line, &line_len)) {
            PyObject *shown = PyUnicode_DecodeUTF8(line, line_len, "replace");
            if (!shown || PyFile_WriteString("    ", err) < 0 ||
                PyFile_WriteObject(shown, err, Py_PRINT_RAW) < 0 ||
                PyFile_WriteString("\n", err) < 0)
                PyErr_Clear();
            Py_XDECREF(shown);
        }
        text += last ? n - 1 : n;
    }
}

/* What the interpreter prints goes to memory first, where our lines are put in. False: there is no such memory. */
static bool print_guarded(PyObject *type, PyObject *value, PyObject *traceback, const char *file,
                          const char *source, size_t len)
{
    PyObject *io = PyImport_ImportModule("_io"), *err = Py_XNewRef(PySys_GetObject("stderr"));
    PyObject *memory = io && err ? PyObject_CallMethod(io, "StringIO", NULL) : NULL;
    PyObject *text = NULL;
    if (memory && PySys_SetObject("stderr", memory) == 0) {
        print_plainly(type, value, traceback);
        if (PySys_SetObject("stderr", err) == 0)
            text = PyObject_CallMethod(memory, "getvalue", NULL);
    }
    PyObject *bytes = text ? PyUnicode_AsEncodedString(text, "utf-8", "replace") : NULL;
    PyErr_Clear();
    if (bytes)
        put_with_lines(PyBytes_AsString(bytes), file, source, len);
    Py_XDECREF(io);
    Py_XDECREF(err);
    Py_XDECREF(memory);
    Py_XDECREF(text);
    Py_XDECREF(bytes);
    return bytes != NULL;
}

/* sys.exit(): None is 0, a number is itself, anything else is said on stderr and is 1. */
static int exit_code(PyObject *value)
{
    PyObject *code = value ? PyObject_GetAttrString(value, "code") : NULL;
    int status = 1;
    if (!code)
        PyErr_Clear();
    if (!code || code == Py_None) {
        status = 0;
    } else if (PyLong_Check(code)) {
        status = (int)(PyLong_AsLong(code) & 0xff);
        PyErr_Clear();
    } else {
        PyObject *err = PySys_GetObject("stderr");
        if (!err || err == Py_None || PyFile_WriteObject(code, err, Py_PRINT_RAW) < 0 ||
            PyFile_WriteString("\n", err) < 0)
            PyErr_Clear();
    }
    Py_XDECREF(code);
    return status;
}

/* Whether this entry is of a module of ours, of which a program knows nothing. */
static bool is_ours(PyTracebackObject *entry)
{
    static const char ours[] = "<frozen cordon.";
    PyCodeObject *code = PyFrame_GetCode(entry->tb_frame);
    const char *name = PyUnicode_AsUTF8(code->co_filename);
    const bool found = name && strncmp(name, ours, sizeof ours - 1) == 0;
    if (!name)
        PyErr_Clear();
    Py_DECREF(code);
    return found;
}

/* Takes the entries of our own modules out of a traceback: it ends at the program's line, as it does where C code raises.
 * The first entry is the program's own. By the structure, since guards close the attributes. */
static void leave_out_ours(PyObject *traceback)
{
    PyTracebackObject *entry = (PyTracebackObject *)traceback;
    while (entry) {
        PyTracebackObject *next = entry->tb_next;
        if (next && is_ours(next)) {
            entry->tb_next = (PyTracebackObject *)Py_XNewRef((PyObject *)next->tb_next);
            Py_DECREF(next);
        } else {
            entry = next;
        }
    }
}

int py_fault_report(const char *file, const char *source, size_t len, bool guarded)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    int status = 1;
    if (type && PyErr_GivenExceptionMatches(type, PyExc_SystemExit)) {
        status = exit_code(value);
    } else if (type) {
        if (traceback && PyTraceBack_Check(traceback))
            leave_out_ours(traceback);
        if (traceback)
            PyException_SetTraceback(value, traceback);
        tell(type, value, own_line(traceback, file));
        const bool shown =
            source && (guarded ? print_guarded(type, value, traceback, file, source, len)
                               : print_with_lines(value, file, source, len));
        if (!shown)
            print_plainly(type, value, traceback);
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return status;
}
