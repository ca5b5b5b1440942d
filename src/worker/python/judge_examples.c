/* SPDX-License-Identifier: Apache-2.0 */
/* Examples in docstrings. A program that imports doctest runs them, so they are judged with it: by the same rules, before
 * anything runs. Python's own doctest would compile the text at run time, when nobody judges. The examples of a docstring
 * are one text, each on the lines that it has in the program, so that a finding has its place; then it is cut
 * into examples again, by those lines. What is no docstring, or is one that the program makes later, is not here, and
 * the module of ours that runs examples (library/doctest.py) refuses it. */
#include "judge.h"

#include "judge_inside.h"

#include <stdlib.h>
#include <string.h>

static PyObject *found;    /* list of Constant nodes: docstrings with a prompt in them */
static PyObject *examples; /* see py_judge_examples */

PyObject *py_judge_examples(void)
{
    return examples;
}

static void no_memory(struct judge *j)
{
    PyErr_Clear();
    if (!j->bad)
        j->bad = ERR_MEMORY;
}

void py_judge_examples_begin(struct judge *j)
{
    Py_XSETREF(found, PyList_New(0));
    Py_XSETREF(examples, PyDict_New());
    if (!found || !examples)
        no_memory(j);
}

/* The docstring of a module, class or function: the string that is its first statement. */
void py_judge_document(struct judge *j, PyObject *node)
{
    PyObject *body = found ? py_tree_field(node, py_tree_names.body) : NULL;
    PyObject *first =
        body && PyList_Check(body) && PyList_GET_SIZE(body) > 0 ? PyList_GET_ITEM(body, 0) : NULL;
    const struct tree_type *type = first ? py_tree_type(first) : NULL;
    PyObject *constant = type && type->is_stmt && type->kind == TREE_PLAIN
                             ? py_tree_field(first, py_tree_names.value)
                             : NULL;
    if (!constant || py_tree_type(constant)->kind != TREE_Constant)
        return;
    struct text_piece text = py_judge_text(py_tree_field(constant, py_tree_names.value));
    if (text.at && memmem(text.at, text.len, ">>>", 3) && PyList_Append(found, constant) < 0)
        no_memory(j);
}

/* ---- one docstring ---- */

struct example {
    uint32_t from, to; /* its lines in the text */
    size_t at, len;    /* its source in the text */
};

struct document {
    uint32_t line; /* on which the docstring begins */
    char *text;    /* the program of its examples */
    size_t len;
    struct example *examples;
    size_t count;
    uint32_t column; /* how far the first example is from the margin */
};

static bool is_prompt(const char *line, size_t len, const char *prompt)
{
    return len >= 3 && memcmp(line, prompt, 3) == 0 && (len == 3 || line[3] == ' ');
}

/* Nothing behind the prompts, or only comments. */
static bool says_nothing(const char *code, size_t len)
{
    bool comment = false;
    for (size_t i = 0; i < len; i++) {
        comment = code[i] != '\n' && (comment || code[i] == '#');
        if (!comment && code[i] != ' ' && code[i] != '\n')
            return false;
    }
    return true;
}

static void put_line(struct document *d, const char *code, size_t len)
{
    memcpy(d->text + d->len, code, len);
    d->len += len;
    d->text[d->len++] = '\n';
}

/* Each line of TEXT becomes one: the code behind a prompt, or nothing. */
static void cut(struct document *d, const char *text, size_t len)
{
    struct example *open = NULL;
    size_t indent = 0;
    uint32_t line = d->line;
    for (const char *at = text, *end = text + len; at <= end; line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t size = (size_t)((stop ? stop : end) - at), spaces = 0;
        while (spaces < size && at[spaces] == ' ')
            spaces++;
        const char *code = at + spaces + (size - spaces > 4 ? 4 : size - spaces);
        const size_t code_len = size - (size_t)(code - at);
        if (is_prompt(at + spaces, size - spaces, ">>>")) {
            open = &d->examples[d->count++];
            indent = spaces;
            *open = (struct example){.from = line, .at = d->len};
            if (d->count == 1)
                d->column = (uint32_t)spaces + 4;
        } else if (open && (!is_prompt(at + spaces, size - spaces, "...") || spaces != indent)) {
            open = NULL;
        }
        put_line(d, code, open ? code_len : 0);
        if (open) {
            open->to = line;
            open->len = d->len - open->at;
        }
        at = stop ? stop + 1 : end + 1;
    }
}

/* Examples that say nothing are none. */
static void drop_empty(struct document *d)
{
    size_t kept = 0;
    for (size_t i = 0; i < d->count; i++)
        if (!says_nothing(d->text + d->examples[i].at, d->examples[i].len))
            d->examples[kept++] = d->examples[i];
    d->count = kept;
}

static bool open_document(struct document *d, const char *text, size_t len, uint32_t line)
{
    size_t lines = 2;
    for (size_t i = 0; i < len; i++)
        lines += text[i] == '\n';
    *d = (struct document){.line = line,
                           .text = malloc(line + len + lines + 1),
                           .examples = calloc(lines, sizeof(struct example))};
    if (!d->text || !d->examples)
        return false;
    for (uint32_t i = 1; i < line; i++)
        d->text[d->len++] = '\n';
    cut(d, text, len);
    drop_empty(d);
    d->text[d->len] = 0;
    return true;
}

/* ---- judged, and cut into examples again ---- */

static long line_of(PyObject *stmt)
{
    PyObject *number = py_tree_field(stmt, py_tree_names.lineno);
    return number && PyLong_Check(number) ? PyLong_AsLong(number) : 0;
}

/* (source, [statements]) of one; new reference, or NULL. */
static PyObject *statements(const struct document *d, const struct example *e, PyObject *body)
{
    PyObject *list = PyList_New(0);
    for (Py_ssize_t i = 0; list && i < PyList_GET_SIZE(body); i++) {
        long line = line_of(PyList_GET_ITEM(body, i));
        if (line >= (long)e->from && line <= (long)e->to &&
            PyList_Append(list, PyList_GET_ITEM(body, i)) < 0)
            Py_CLEAR(list);
    }
    PyObject *both = list ? Py_BuildValue("s#O", d->text + e->at, (Py_ssize_t)e->len, list) : NULL;
    Py_XDECREF(list);
    return both;
}

static int keep(const struct document *d, PyObject *key, PyObject *tree)
{
    PyObject *body = py_tree_field(tree, py_tree_names.body), *list = PyList_New(0);
    for (size_t i = 0; list && body && i < d->count; i++) {
        PyObject *one = statements(d, &d->examples[i], body);
        if (!one || PyList_Append(list, one) < 0)
            Py_CLEAR(list);
        Py_XDECREF(one);
    }
    PyObject *value = list && body ? Py_BuildValue("kO", (unsigned long)d->line, list) : NULL;
    int r = value ? PyDict_SetItem(examples, key, value) : -1;
    Py_XDECREF(list);
    Py_XDECREF(value);
    return r;
}

static void judge_document(struct judge *outer, PyObject *constant, PyObject *names)
{
    struct document d = {0};
    PyObject *key = py_tree_field(constant, py_tree_names.value);
    PyObject *wide = PyObject_CallMethod(key, "expandtabs", NULL); /* as doctest does, of a str */
    Py_ssize_t len = 0;
    const char *text = wide ? PyUnicode_AsUTF8AndSize(wide, &len) : NULL;
    long line = line_of(constant);
    PyObject *tree = NULL;
    if (!text || !open_document(&d, text, (size_t)len, line > 0 ? (uint32_t)line : 1)) {
        no_memory(outer);
    } else if (d.count) {
        struct judge j = {.rules = outer->rules,
                          .report = outer->report,
                          .globals = names,
                          .column = d.column,
                          .cursor = {.text = d.text, .len = d.len}};
        arena_init(&j.arena, 1 << 20);
        tree = py_judge_piece(&j);
        if (j.bad && !outer->bad)
            outer->bad = j.bad;
        py_judge_done(&j);
    }
    if (tree && keep(&d, key, tree) < 0)
        no_memory(outer);
    Py_XDECREF(tree);
    Py_XDECREF(wide);
    free(d.text);
    free(d.examples);
}

/* What the program defines at its top is bound in its examples, beside what a session has. */
static PyObject *names_of(const struct judge *j, PyObject *tree)
{
    PyObject *names = j->globals ? PyDict_Copy(j->globals) : PyDict_New();
    PyObject *body = py_tree_field(tree, py_tree_names.body);
    for (Py_ssize_t i = 0; names && body && i < PyList_GET_SIZE(body); i++) {
        PyObject *stmt = PyList_GET_ITEM(body, i);
        const int kind = py_tree_type(stmt)->kind;
        PyObject *name =
            kind == TREE_FunctionDef || kind == TREE_AsyncFunctionDef || kind == TREE_ClassDef
                ? py_tree_field(stmt, py_tree_names.name)
                : NULL;
        if (name && PyDict_SetItem(names, name, Py_None) < 0)
            Py_CLEAR(names);
    }
    return names;
}

static bool imports_doctest(void)
{
    PyObject *modules = py_judge_modules();
    for (Py_ssize_t i = 0; modules && i < PyList_GET_SIZE(modules); i++) {
        struct text_piece name = py_judge_text(PyList_GET_ITEM(modules, i));
        if (name.at && name.len >= 7 && memcmp(name.at, "doctest", 7) == 0 &&
            (name.len == 7 || name.at[7] == ':'))
            return true;
    }
    return false;
}

void py_judge_documents(struct judge *j, PyObject *tree)
{
    if (!found || PyList_GET_SIZE(found) == 0 || !imports_doctest())
        return;
    PyObject *names = names_of(j, tree), *all = found;
    found = NULL; /* docstrings of what an example defines are nobody's examples */
    if (!names)
        no_memory(j);
    for (Py_ssize_t i = 0; names && i < PyList_GET_SIZE(all); i++)
        judge_document(j, PyList_GET_ITEM(all, i), names);
    Py_XDECREF(names);
    Py_DECREF(all);
}
