/* SPDX-License-Identifier: Apache-2.0 */
/* The rule for "more lines, please" is the parser's: it is asked with the two flags that Python's own codeop
 * asks it with, and says `incomplete input`. Nothing here guesses at brackets or colons. */
#include "call.h"

#include "base/limits.h"
#include "channel.h"
#include "hook.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* Three places: what C libraries read, what `os` will be made of, and what it was made of. */
static int set_one(const char *word, size_t len)
{
    char *pair = malloc(len + 1);
    if (!pair)
        return -1;
    memcpy(pair, word, len);
    pair[len] = 0;
    char *equals = strchr(pair, '=');
    int r = !equals || equals == pair || strlen(pair) != len ? -1 : 0;
    if (r == 0) {
        *equals = 0;
        r = setenv(pair, equals + 1, 1);
        set_in("posix", NULL, pair, equals + 1);
        set_in("os", "_data", pair, equals + 1);
    }
    free(pair);
    return r;
}

int py_call_environ(struct wire_reader *r)
{
    size_t count = wire_get_list(r), len;
    if (count > LIMIT_ENV)
        return -1;
    for (; count; count--) {
        const char *word = wire_next(r, &len);
        if (set_one(word, len) < 0)
            return -1;
    }
    return 0;
}

/* ---- the program's own name and words ---- */

static PyObject *words; /* what came with ARGV; NULL: none */

int py_call_argv(struct wire_reader *r)
{
    size_t count = wire_get_list(r), len;
    PyObject *list = count <= LIMIT_ARGS ? PyList_New(0) : NULL;
    for (size_t i = 0; list && i < count; i++) {
        const char *word = wire_next(r, &len);
        PyObject *text = PyUnicode_DecodeFSDefaultAndSize(word, (Py_ssize_t)len);
        if (!text || PyList_Append(list, text) < 0)
            Py_CLEAR(list);
        Py_XDECREF(text);
    }
    Py_XSETREF(words, list);
    return list ? 0 : -1;
}

/* As python3 has them: -c and - where there is no file. A file is shown where a program expects its data, in
 * the folder in which it starts. */
int py_call_program(PyObject *globals, const char *name)
{
    const bool typed = strcmp(name, "<string>") == 0, read = strcmp(name, "<stdin>") == 0;
    PyObject *own = PyUnicode_DecodeFSDefault(typed ? "-c" : read ? "-" : name);
    PyObject *argv = own ? PyList_New(1) : NULL, *file = NULL;
    int r = argv ? PyList_SetItem(argv, 0, Py_NewRef(own)) : -1;
    if (r == 0 && words)
        r = PyList_SetSlice(argv, 1, 1, words);
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

static struct {
    PyObject *text, *bytes; /* Python's own readers of descriptor 0 */
    bool used;              /* a program has run since: they may hold what it left unread */
    bool changed;           /* descriptor 0 is another one since */
    int person;             /* the read end of what a person types; -1: nobody does */
} input = {.person = -1};

/* Before a program has run they are what the interpreter made. */
static void find_readers(void)
{
    PyObject *text = PySys_GetObject("__stdin__"); /* borrowed */
    if (input.text || !text)
        return;
    input.text = Py_NewRef(text);
    input.bytes = PyObject_GetAttrString(text, "buffer");
    PyErr_Clear();
}

/* input() is about to print its question and to read: whoever sits there is asked. */
static void ask_person(void)
{
    if (input.person >= 0 && dup2(input.person, STDIN_FILENO) >= 0)
        py_channel_say(WIRE_ASK);
}

static int become_input(int fd)
{
    int r = dup2(fd, STDIN_FILENO) < 0 ? -1 : 0;
    if (fd != STDIN_FILENO) /* which a guest may have closed: then it came to be that */
        close(fd);
    return r;
}

static int wait_for_question(int fd)
{
    if (fd == STDIN_FILENO)
        return -1;
    input.person = fd; /* 0 is at its end: an INPUT before this one saw to it */
    py_hook_input(ask_person);
    return 0;
}

int py_call_input(struct wire_reader *r, int fd)
{
    const bool asks = wire_get_uint(r) == 1;
    if (fd < 0)
        return -1;
    find_readers();
    if (input.person >= 0)
        close(input.person);
    input.person = -1;
    input.changed = true;
    return asks ? wait_for_question(fd) : become_input(fd);
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

/* Emptied by reading, not made anew: programs keep references to them, and a thread may be in one. What they read
 * meanwhile is a descriptor at its end, so they give what they hold and no more. A guest that changed them fools itself,
 * and does it on its own time: this comes after GO. */
void py_call_forget_input(void)
{
    int at_end[2];
    if (input.used && input.changed && pipe2(at_end, O_CLOEXEC) == 0) {
        int fresh = dup(STDIN_FILENO);
        close(at_end[1]);
        if (fresh >= 0 && dup2(at_end[0], STDIN_FILENO) >= 0) {
            read_to_end(input.text);
            read_to_end(input.bytes);
            dup2(fresh, STDIN_FILENO);
        }
        close(at_end[0]);
        if (fresh >= 0)
            close(fresh);
    }
    input.used = true;
    input.changed = false;
}
