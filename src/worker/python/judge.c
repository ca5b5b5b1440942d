/* SPDX-License-Identifier: Apache-2.0 */
/* From bytes to a verdict. CPython's own parser makes the tree, from text that was decoded here: given
 * bytes it would honour a coding line, and a coding line can hide a program in a comment. Whatever the
 * parser says when it cannot (a syntax error, nesting that is too deep, no memory) is a finding, never a
 * crash: the source is refused and the reason says why. */
#include "judge.h"

#include "base/limits.h"
#include "base/utf8.h"
#include "judge_inside.h"

#include <stdlib.h>
#include <string.h>

static bool judged_before;

int py_judge_init(struct err *err)
{
    judged_before = false;
    return py_tree_init(err);
}

/* The collector could run a finalizer of an earlier cell in the middle of a judgement; and it finds no
 * garbage among nodes that are being made. Returns whether it was on. */
static int collector_off(void)
{
#if PY_VERSION_HEX >= 0x030a0000
    return PyGC_Disable();
#else
    return 0;
#endif
}

static void collector_on(int was)
{
#if PY_VERSION_HEX >= 0x030a0000
    if (was)
        PyGC_Enable();
#else
    (void)was;
#endif
}

static struct text_piece piece(const char *s)
{
    return (struct text_piece){s, strlen(s)};
}

/* ---- before the tree ---- */

/* Whether the bytes can be given to the parser at all. */
static bool is_text(struct judge *j, const char *source, size_t len)
{
    char text[64];
    uint64_t most = check_ruleset_profile(j->rules)->source_max;
    struct text_place nowhere = {0, 0};
    size_t good = len <= LIMIT_CHARACTER * most ? utf8_valid_prefix(source, len) : 0;
    if (len > LIMIT_CHARACTER * most ||
        (len > most && good == len && utf8_count(source, len) > most)) {
        snprintf(text, sizeof text, "%lluKB", (unsigned long long)(most / 1000));
        if (most % 1000)
            snprintf(text, sizeof text, "%llu characters", (unsigned long long)most);
        py_judge_find_at(j, CHECK_RULE_SIZE,
                         "characters are counted: split the program, or pass the data in as a file",
                         CHECK_SAY_SIZE, piece(text), nowhere);
        return false;
    }
    if (good < len) {
        snprintf(text, sizeof text, "byte 0x%02x at %zu is no UTF-8", (unsigned char)source[good],
                 good);
        py_judge_find_at(j, CHECK_RULE_ENCODING, "write the source as UTF-8", CHECK_SAY_SYNTAX,
                         piece(text), py_text_place(source, good, good));
        return false;
    }
    const char *nul = memchr(source, 0, len);
    if (nul) {
        py_judge_find_at(j, CHECK_RULE_NUL, "remove the zero byte", CHECK_SAY_SYNTAX,
                         piece("source code string cannot contain null bytes"),
                         py_text_place(source, len, (size_t)(nul - source)));
        return false;
    }
    return true;
}

static void text_rules(struct judge *j)
{
    const char *text = j->cursor.text;
    size_t len = j->cursor.len, cr;
    const struct policy_rule *rule = check_ruleset_construct(j->rules, POLICY_CONSTRUCT_BARE_CR);
    if (rule && (cr = py_text_bare_cr(text, len)) < len) /* once: a file of them has one mistake */
        py_judge_find_at(j, rule->id, rule->hint, CHECK_SAY_BARE_CR, piece("\\r"),
                         py_text_place(text, len, cr));
    struct text_piece cookie;
    rule = check_ruleset_construct(j->rules, POLICY_CONSTRUCT_ENCODING_COOKIE);
    if (rule && py_text_cookie(text, len, &cookie))
        py_judge_find_at(j, rule->id, rule->hint, CHECK_SAY_COOKIE, cookie,
                         py_text_place(text, len, (size_t)(cookie.at - text)));
}

/* ---- the parser ---- */

static uint32_t number(PyObject *exception, const char *name)
{
    PyObject *value = PyObject_GetAttrString(exception, name);
    long n = value && PyLong_Check(value) ? PyLong_AsLong(value) : 0;
    Py_XDECREF(value);
    PyErr_Clear();
    return n > 0 && n <= INT32_MAX ? (uint32_t)n : 0;
}

/* What the parser raised, as a finding. Its exceptions are builtin types: their text is made in C. */
static void parser_failed(struct judge *j)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    struct text_place place = {0, 0};
    char text[400];
    if (type && PyErr_GivenExceptionMatches(type, PyExc_SyntaxError) && value) {
        PyObject *said = PyObject_Str(value);
        PyErr_Clear();
        struct text_piece words = py_judge_text(said);
        check_operand(words.at ? words.at : "invalid syntax", words.at ? words.len : 14, text,
                      sizeof text);
        Py_XDECREF(said);
        place = (struct text_place){number(value, "lineno"), number(value, "offset")};
    } else {
        const char *name = type && PyType_Check(type) ? ((PyTypeObject *)type)->tp_name : "unknown";
        /* the parser says MemoryError for both */
        const bool memory = type && PyErr_GivenExceptionMatches(type, PyExc_MemoryError);
        const bool deep =
            memory || (type && PyErr_GivenExceptionMatches(type, PyExc_RecursionError));
        snprintf(text, sizeof text, "%s%s (%.60s)",
                 deep ? "the program is nested too deeply for the parser"
                      : "the parser cannot read the program",
                 memory ? ", or is too large for its memory" : "", name);
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    PyErr_Clear();
    py_judge_find_at(j, CHECK_RULE_SYNTAX, "write a whole program that Python can parse",
                     CHECK_SAY_SYNTAX, piece(text), place);
}

/* A new reference, or NULL with an exception. */
static PyObject *parse(const char *text)
{
    PyCompilerFlags flags = {
        .cf_flags = PyCF_ONLY_AST | PyCF_IGNORE_COOKIE | PyCF_SOURCE_IS_UTF8,
        .cf_feature_version = PY_MINOR_VERSION,
    };
    PyObject *name = PyUnicode_FromString("<unknown>"); /* as ast.parse names it */
    PyObject *tree = name ? Py_CompileStringObject(text, name, Py_file_input, &flags, -1) : NULL;
    Py_XDECREF(name);
    return tree;
}

/* ---- the whole ---- */

void py_judge_done(struct judge *j)
{
    free(j->stack);
    free(j->scopes);
    free(j->bindings);
    free(j->uses);
    for (size_t i = 0; i < j->import_count; i++)
        Py_DECREF(j->imports[i].name);
    free(j->imports);
    arena_done(&j->arena);
}

PyObject *py_judge_piece(struct judge *j)
{
    PyObject *tree = parse(j->cursor.text);
    if (!tree) {
        parser_failed(j);
        return NULL;
    }
    if (!j->column) /* that an example runs is not certain */
        j->body = py_tree_field(tree, py_tree_names.body);
    py_judge_walk(j, tree);
    py_judge_resolve(j);
    return tree;
}

/* Judges TEXT, which is good UTF-8 with a NUL behind it. */
static PyObject *judge_text(struct judge *j)
{
    const char *changed = judged_before ? py_tree_changed() : NULL;
    judged_before = true;
    if (changed) {
        py_judge_find_at(j, CHECK_RULE_TAMPERED, "start a new session; do not assign to _ast types",
                         CHECK_SAY_TAMPERED, piece(changed), (struct text_place){0, 0});
        return NULL;
    }
    text_rules(j);
    PyObject *tree = py_judge_piece(j);
    if (tree)
        py_judge_documents(j, tree);
    return tree;
}

int py_judge(const struct check_ruleset *rules, const void *source, size_t len,
             struct check_report *report, PyObject **ret_tree, struct err *err)
{
    return py_judge_call(rules, NULL, source, len, report, ret_tree, err);
}

int py_judge_call(const struct check_ruleset *rules, PyObject *globals, const void *source,
                  size_t len, struct check_report *report, PyObject **ret_tree, struct err *err)
{
    struct judge j = {.rules = rules, .report = report, .globals = globals};
    PyObject *tree = NULL;
    char *copy = NULL;
    arena_init(&j.arena, 1 << 20);
    py_judge_modules_begin(&j);
    py_judge_examples_begin(&j);
    int collects = collector_off();
    if (is_text(&j, source ? source : "", len)) {
        const char *text = source ? source : "";
        size_t bom = len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0; /* one, not two */
        copy = malloc(len - bom + 1);
        if (copy) {
            memcpy(copy, text + bom, len - bom);
            copy[len - bom] = 0;
            j.cursor = (struct text_cursor){.text = copy, .len = len - bom};
            tree = judge_text(&j);
        } else {
            j.bad = ERR_MEMORY;
        }
    }
    py_judge_done(&j);
    collector_on(collects);
    free(copy);
    check_report_end(report);
    if (j.bad) {
        Py_XDECREF(tree);
        return err_set(err, j.bad, "no memory to judge %zu bytes", len);
    }
    if (ret_tree)
        *ret_tree = tree;
    else
        Py_XDECREF(tree);
    return 0;
}
