/* SPDX-License-Identifier: Apache-2.0 */
/* The rule for "more lines, please" is the parser's: it is asked with the two flags that Python's own codeop
 * asks it with, and says `incomplete input`. Nothing here guesses at brackets or colons. */
#include "call.h"

#include "worker/frame/given.h"

#include <stdlib.h>
#include <string.h>

#ifndef PyCF_ALLOW_INCOMPLETE_INPUT /* before 3.11 there is no such word: every error is one */
#define PyCF_ALLOW_INCOMPLETE_INPUT 0
#endif

enum verdict { WHOLE, PART, WRONG };

static enum verdict parse(const char *source)
{
    PyCompilerFlags flags = {
        .cf_flags = PyCF_ONLY_AST | PyCF_IGNORE_COOKIE | PyCF_SOURCE_IS_UTF8 |
                    PyCF_DONT_IMPLY_DEDENT | PyCF_ALLOW_INCOMPLETE_INPUT,
        .cf_feature_version = PY_MINOR_VERSION,
    };
    PyObject *name = PyUnicode_FromString("<cell>"), *type, *value, *trace;
    PyObject *tree =
        name ? Py_CompileStringObject(source, name, Py_single_input, &flags, -1) : NULL;
    Py_XDECREF(name);
    Py_XDECREF(tree);
    if (tree)
        return WHOLE;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyObject *text = value ? PyObject_GetAttrString(value, "msg") : NULL;
    const char *said = text && PyUnicode_Check(text) ? PyUnicode_AsUTF8(text) : NULL;
    bool part = said && strcmp(said, "incomplete input") == 0;
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    PyErr_Clear();
    return part ? PART : WRONG;
}

/* Comments and blanks alone are a whole program, though not one statement. */
static bool says_nothing(const char *s)
{
    for (bool comment = false; *s; s++) {
        if (*s == '\n')
            comment = false;
        else if (*s == '#')
            comment = true;
        else if (!comment && *s != ' ' && *s != '\t' && *s != '\f' && *s != '\r')
            return false;
    }
    return true;
}

/* The lines so far are whole, or they are not and would be with one more line end (a block that may go
 * on), or the parser says that they are a part. */
bool py_call_incomplete(const char *source)
{
    size_t len = strlen(source);
    char *longer = says_nothing(source) || parse(source) == WHOLE ? NULL : malloc(len + 2);
    if (!longer)
        return false;
    memcpy(longer, source, len);
    memcpy(longer + len, "\n", 2);
    bool incomplete = parse(longer) != WRONG;
    free(longer);
    return incomplete;
}

/* MODULE.variables, or the dictionary behind it; a module that was not imported has none. Set past the
 * mapping's own method, which would ask the audit hook about us. A guest that put something else in its
 * place fools itself. */
static void set_in(const char *module, const char *behind, const char *name, const char *text)
{
    PyObject *modules = PyImport_GetModuleDict(); /* borrowed, and what is found there */
    PyObject *m = modules ? PyDict_GetItemString(modules, module) : NULL;
    PyObject *variables = m ? PyObject_GetAttrString(m, "environ") : NULL;
    PyObject *data = variables && behind ? PyObject_GetAttrString(variables, behind) : variables;
    PyObject *key = PyBytes_FromString(name), *value = PyBytes_FromString(text);
    if (data && key && value)
        (void)PyObject_SetItem(data, key, value);
    PyErr_Clear();
    if (behind)
        Py_XDECREF(variables);
    Py_XDECREF(data);
    Py_XDECREF(key);
    Py_XDECREF(value);
}

/* What `os` will be made of, and what it was made of. */
void py_call_variable(const char *name, const char *value)
{
    set_in("posix", NULL, name, value);
    set_in("os", "_data", name, value);
}

/* ---- the program's own name and words ---- */

static int add_words(PyObject *argv)
{
    int r = 0;
    for (size_t i = 0; i < worker_given_count() && r == 0; i++) {
        PyObject *text = PyUnicode_DecodeFSDefault(worker_given_word(i));
        r = text ? PyList_Append(argv, text) : -1;
        Py_XDECREF(text);
    }
    return r;
}

/* As python3 has them: -c and - where there is no file. A file is shown where a program expects its data, in
 * the folder in which it starts. */
int py_call_program(PyObject *globals, const char *name)
{
    const bool typed = strcmp(name, "<string>") == 0, read = strcmp(name, "<stdin>") == 0;
    PyObject *own = PyUnicode_DecodeFSDefault(typed ? "-c" : read ? "-" : name);
    PyObject *argv = own ? PyList_New(1) : NULL, *file = NULL;
    int r = argv ? PyList_SetItem(argv, 0, Py_NewRef(own)) : -1;
    if (r == 0)
        r = add_words(argv);
    if (r == 0)
        r = PySys_SetObject("argv", argv);
    if (r == 0 && !typed && !read) {
        file = PyUnicode_FromFormat("/workspace/%U", own);
        r = file ? PyDict_SetItemString(globals, "__file__", file) : -1;
    }
    Py_XDECREF(own);
    Py_XDECREF(argv);
    Py_XDECREF(file);
    return r;
}

/* ---- standard input ---- */

static PyObject *text_reader, *byte_reader; /* Python's own of descriptor 0 */

/* Before a program has run they are what the interpreter made. */
void py_call_input(void)
{
    PyObject *text = PySys_GetObject("__stdin__"); /* borrowed */
    if (text_reader || !text)
        return;
    text_reader = Py_NewRef(text);
    byte_reader = PyObject_GetAttrString(text, "buffer");
    PyErr_Clear();
}

/* Twice: a decoder that stumbles keeps the text before that for the next read. */
static void read_to_end(PyObject *reader)
{
    for (int i = 0; i < 2 && reader; i++) {
        PyObject *rest = PyObject_CallMethod(reader, "read", NULL);
        Py_XDECREF(rest);
        PyErr_Clear();
    }
}

/* Emptied by reading, not made anew: programs keep references to them, and a thread may be in one. A guest that changed
 * them fools itself, and does it on its own time: this comes after GO. */
void py_call_empty_input(void)
{
    read_to_end(text_reader);
    read_to_end(byte_reader);
}
