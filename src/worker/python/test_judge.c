/* SPDX-License-Identifier: Apache-2.0 */
/* The judge against what a hostile source and a hostile session can do to it. What it finds in ordinary
 * programs is in tests/cases/python/judge. */
#include "test_start.h"

#include "base/clock.h"
#include "base/tap.h"

static struct check_ruleset *strict, *wide; /* the same, with room for 1 MB of source */
static PyObject *session;

struct verdict {
    struct check_report report;
    PyObject *tree;
    int status;
};

static struct verdict judge(const struct check_ruleset *rules, const char *source, size_t len)
{
    struct verdict v = {0};
    struct err err = ERR_INIT;
    check_report_init(&v.report);
    v.status = py_judge_call(rules, session, source, len, &v.report, &v.tree, &err);
    return v;
}

static void done(struct verdict *v)
{
    Py_XDECREF(v->tree);
    check_report_done(&v->report);
}

static const char *first_rule(const struct verdict *v)
{
    return v->report.count ? v->report.findings[0].rule : "none";
}

/* BEFORE, N times PART, BEHIND. */
static char *repeat(const char *before, const char *part, size_t n, const char *behind)
{
    size_t b = strlen(before), p = strlen(part), len = b + n * p + strlen(behind) + 1;
    char *s = calloc(1, len);
    base_assert(s != NULL);
    memcpy(s, before, b);
    for (size_t i = 0; i < n; i++)
        memcpy(s + b + i * p, part, p);
    memcpy(s + b + n * p, behind, strlen(behind));
    return s;
}

/* ---- sources made to hurt the parser or the walk ---- */

static void hostile(void)
{
    static const struct {
        const char *what, *before, *part, *behind;
        size_t n;
        const char *want; /* the first rule; `none`: passes */
    } t[] = {
        {"open parentheses", "", "(", "", 100000, "syntax"},
        {"open brackets", "", "[", "", 50000, "syntax"},
        {"minus signs", "", "-", "1\n", 50000, "syntax"},
        {"not", "", "not ", "1\n", 10000, "syntax"},
        {"lambdas", "", "lambda:", "1\n", 5000, "syntax"},
        {"powers", "1", "**1", "\n", 10000, "syntax"},
        {"attributes", "a", ".a", "\n", 25000, "syntax"},
        {"calls", "a", "()", "\n", 25000, "syntax"},
        {"sums", "1", "+1", "\n", 25000, "syntax"},
        {"elif", "if a: pass\n", "elif a: pass\n", "", 5000, "syntax"},
        {"conditions", "", "1 if a else ", "1\n", 5000, "syntax"},
        {"attributes that are just deep enough", "a", ".a", "\n", 500, "none"},
        {"refused attributes, deep", "a", ".__class__", "\n", 500, "py.attr.__class__"},
        {"statements", "", "x=1\n", "", 20000, "none"},
        {"a long string", "x='", "0123456789", "'\n", 20000, "none"},
        {"format fields in one string", "x='", "{0.__class__}", "'\n", 5000,
         "py.form.format-field"},
        {"open format fields", "x='", "{0[", "'\n", 30000, "none"},
        {"fields of an f-string", "x=f'", "{a}", "'\n", 3000, "none"},
        {"keyword arguments", "f(", "a=1,", ")\n", 1000, "none"},
        {"decorators", "", "@f\n", "def g(): pass\n", 5000, "none"},
        {"a number of five thousand digits", "x=", "9", "\n", 5000, "syntax"},
        {"line ends alone", "", "\n", "", 50000, "none"},
        {"carriage returns alone", "", "\r", "", 50000, "py.form.bare-cr"},
        {"a string that does not end", "x='", "a", "", 10, "syntax"},
        {"a docstring that does not end", "'''", "a\n", "", 10000, "syntax"},
        {"backslashes at the end", "x=1", "\\\n", "", 1000, "syntax"},
        {"indents", "", "if 1:\n", "", 1, "syntax"},
        {"findings on one line", "", "eval;", "\n", 5000, "py.call.eval"},
        {"findings on many lines", "", "import subprocess\n", "", 20000, "py.module.subprocess"},
        {"bindings and uses", "", "eval=1;del eval;eval\n", "", 2000, "py.call.eval"},
        {"scopes", "", "lambda eval:eval\n", "", 10000, "none"},
        {"global declarations", "def f():\n", " global eval\n", " eval\n", 4000, "py.call.eval"},
        {"imports", "", "import json as a\na.b\n", "", 10000, "none"},
        {"nothing", "", "", "", 0, "none"},
        {"a comment", "#", "x", "", 10000, "none"},
    };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        char *s = repeat(t[i].before, t[i].part, t[i].n, t[i].behind);
        struct verdict v = judge(wide, s, strlen(s));
        tap_ok(v.status == 0 && !PyErr_Occurred(), "%s: a verdict, no exception left", t[i].what);
        tap_eq_str(first_rule(&v), t[i].want, "%s: %s", t[i].what,
                   v.report.count ? v.report.findings[0].message : "passes");
        bool syntax = strcmp(first_rule(&v), "syntax") == 0;
        tap_ok((v.tree == NULL) == syntax, "%s: a tree, or a syntax error", t[i].what);
        done(&v);
        free(s);
    }
    char deep[101 * 110], *at = deep;
    for (int i = 0; i < 101; i++)
        at += sprintf(at, "%*sif 1:\n", i, "");
    struct verdict v = judge(wide, deep, (size_t)(at - deep));
    tap_eq_str(first_rule(&v), "syntax", "a hundred and one indents are a syntax error");
    done(&v);
}

/* The work must not grow with the square of the source: one text of eight times the size, against eight texts. Both
 * are as long at work, so what else the machine does disturbs both alike; the time is the processor's, the best of some. */
static uint64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * CLOCK_NS_PER_S + (uint64_t)t.tv_nsec;
}

static uint64_t judging(const char *part, size_t n, int times)
{
    char *s = repeat("", part, n, "\n");
    uint64_t t0 = cpu_ns();
    for (int i = 0; i < times; i++) {
        struct verdict v = judge(wide, s, strlen(s));
        done(&v);
    }
    uint64_t took = cpu_ns() - t0;
    free(s);
    return took;
}

static void growth(void)
{
    enum { ROUNDS = 20 }; /* at least five; more only where a neighbour woke up */
    static const struct {
        const char *what, *part;
    } t[] = {{"findings on one line", "eval;"},
             {"findings on many lines", "eval\n"},
             {"strings", "'{0.__a}';"}};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        uint64_t eight = UINT64_MAX, one = UINT64_MAX;
        for (int round = 0; round < 5 || (round < ROUNDS && one >= eight * 4); round++) {
            uint64_t took = judging(t[i].part, 2000, 8);
            eight = took < eight ? took : eight;
            took = judging(t[i].part, 16000, 1);
            one = took < one ? took : one;
        }
        tap_ok(one < eight * 4, "%s: 8x the text takes %.1fx the time of eight texts", t[i].what,
               (double)one / (double)eight);
    }
}

static void many(void)
{
    char *s = repeat("", "eval\n", 500, "");
    struct verdict v = judge(strict, s, strlen(s));
    tap_eq_int(v.report.count, CHECK_FINDINGS_MAX, "a hundred findings are kept");
    tap_eq_int(v.report.dropped, 400, "four hundred findings beyond that are counted");
    tap_ok(v.report.findings[0].line == 1 && v.report.findings[99].line == 100,
           "the findings that are kept are the first hundred");
    done(&v);
    free(s);
}

static void sizes(void)
{
    char *s = repeat("x = 1\n#", "x", 49993, "");
    tap_eq_int(strlen(s), 50000, "a source of fifty thousand bytes");
    struct verdict v = judge(strict, s, 50000);
    tap_eq_str(first_rule(&v), "none", "a source of fifty thousand bytes passes");
    done(&v);
    free(s);
    s = repeat("x = 1\n#", "x", 49994, "");
    v = judge(strict, s, 50001);
    tap_eq_str(first_rule(&v), "size", "a source of fifty thousand and one bytes is refused");
    tap_eq_str(v.report.findings[0].message, "Code exceeds size limit (50KB)",
               "the refusal of a large source names the limit");
    tap_ok(!v.tree, "a source that is too large is not parsed");
    done(&v);
    free(s);
    s = repeat("x = 1\n#", "\xe4\xba\x8c", 49993, "");
    v = judge(strict, s, strlen(s));
    tap_eq_str(first_rule(&v), "none", "fifty thousand characters of three bytes each pass");
    done(&v);
    free(s);
    s = repeat("x = 1\n#", "\xe4\xba\x8c", 49994, "");
    v = judge(strict, s, strlen(s));
    tap_eq_str(first_rule(&v), "size", "one character of three bytes more is refused");
    done(&v);
    free(s);
    s = repeat("", "\x80", 200001, "");
    v = judge(strict, s, 200001);
    tap_eq_str(first_rule(&v), "size",
               "more bytes than 50,000 characters can have are refused unread");
    done(&v);
    free(s);
    v = judge(strict, NULL, 0);
    tap_ok(v.status == 0 && check_report_safe(&v.report) && v.tree,
           "a source of no bytes is a program");
    done(&v);
}

/* ---- nothing runs, nothing leaks ---- */

static int events, foreign;

static int hook(const char *event, PyObject *args, void *data)
{
    (void)args, (void)data;
    events++;
    foreign += strcmp(event, "compile") != 0; /* the parser's own */
    return 0;
}

static long blocks(void)
{
    PyObject *f = PySys_GetObject("getallocatedblocks"); /* borrowed */
    PyObject *n = f ? PyObject_CallObject(f, NULL) : NULL;
    long count = n ? PyLong_AsLong(n) : -1;
    Py_XDECREF(n);
    return count;
}

static const char busy[] =
    "import os, json as j\nfrom operator import attrgetter as a\nimport string\n"
    "def f(x: 'eval(1)' = eval, *, y=print('ran')):\n  global q\n  return [x for x in y if (z := "
    "x)]\n"
    "class A(metaclass=f): __get__ = string.Formatter\n@f\nasync def g(): await "
    "f().__class__['__x__']\n"
    "print('{0.__class__}', f'{x!r:{y}}', '\\ud800{0[__a]}')\nraise SystemExit(os.system('echo "
    "RAN'))\n";

static void quiet(void)
{
    events = foreign = 0;
    struct verdict v = judge(strict, busy, sizeof busy - 1);
    tap_ok(v.report.count > 8, "a busy source has %zu findings", v.report.count);
    tap_ok(events >= 1 && foreign == 0, "judging it parses, and does nothing else that is audited");
    done(&v);
    long before = 0;
    for (int i = 0; i < 600; i++) {
        if (i == 100)
            before = blocks();
        v = judge(strict, busy, sizeof busy - 1);
        done(&v);
        v = judge(strict, "def f(:", 7);
        done(&v);
    }
    tap_ok(blocks() - before < 500, "a thousand judgements leave %ld blocks", blocks() - before);
}

/* The tree is the one that compile() takes, and gives the very code of the source. */
static void same_code(void)
{
    const char source[] =
        "import json\ndef f(x, *y, **z):\n  return [a.b for a in y if x]\nprint(f(1))\n";
    struct verdict v = judge(strict, source, sizeof source - 1);
    PyObject *builtins = PyImport_ImportModule("builtins"),
             *marshal = PyImport_ImportModule("marshal");
    PyObject *a = PyObject_CallMethod(builtins, "compile", "Oss", v.tree, "x", "exec");
    PyObject *b = PyObject_CallMethod(builtins, "compile", "sss", source, "x", "exec");
    PyObject *ma = PyObject_CallMethod(marshal, "dumps", "O", a);
    PyObject *mb = PyObject_CallMethod(marshal, "dumps", "O", b);
    tap_ok(ma && mb && PyObject_RichCompareBool(ma, mb, Py_EQ) == 1,
           "the tree compiles to the same code");
    Py_XDECREF(a), Py_XDECREF(b), Py_XDECREF(ma), Py_XDECREF(mb);
    Py_DECREF(builtins), Py_DECREF(marshal);
    done(&v);
}

/* ---- sessions ---- */

static void cells(void)
{
    session = PyDict_New();
    PyObject *one = PyLong_FromLong(1);
    base_assert(session && one && PyDict_SetItemString(session, "vars", one) == 0);
    struct verdict v = judge(strict, "print(vars)\n", 12);
    tap_eq_str(first_rule(&v), "none", "a variable of an earlier cell is no builtin");
    done(&v);
    v = judge(strict, "print(eval)\n", 12);
    tap_eq_str(first_rule(&v), "py.call.eval", "a builtin that no cell has replaced is refused");
    done(&v);
    v = judge(strict, "del vars\nprint(vars)\n", 21);
    tap_eq_str(first_rule(&v), "py.call.vars",
               "a variable that this cell deletes is the builtin again");
    done(&v);
    Py_DECREF(one);
    Py_CLEAR(session);
}

static void tamper(void)
{
    static const struct {
        const char *what, *doing, *undoing;
    } t[] = {
        {"a property on a type", "_ast.Name.id = property(lambda s: 'print')", "del _ast.Name.id"},
        {"a property on a base type", "_ast.expr.func = property(lambda s: 1)",
         "del _ast.expr.func"},
        {"a property on the root type", "_ast.AST.names = property(lambda s: [])",
         "del _ast.AST.names"},
        {"a setter", "_ast.Call.__setattr__ = lambda s, n, v: None", "del _ast.Call.__setattr__"},
        {"a getter", "_ast.AST.__getattribute__ = lambda s, n: None",
         "del _ast.AST.__getattribute__"},
        {"a place", "_ast.stmt.lineno = property(lambda s: 1)", "del _ast.stmt.lineno"},
    };
    tap_ok(PyRun_SimpleString("import _ast") == 0, "a session imports _ast");
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        tap_ok(PyRun_SimpleString(t[i].doing) == 0, "%s: the tampering succeeds", t[i].what);
        struct verdict v = judge(strict, "print(eval('1'))\n", 17);
        tap_eq_str(first_rule(&v), "tampered", "%s: the judge sees the tampering", t[i].what);
        tap_ok(!v.tree, "%s: the judge hands out nothing to run", t[i].what);
        done(&v);
        tap_ok(PyRun_SimpleString(t[i].undoing) == 0, "%s: the tampering is undone", t[i].what);
        v = judge(strict, "print(eval('1'))\n", 17);
        tap_eq_str(first_rule(&v), "py.call.eval", "%s: the judge works again afterwards",
                   t[i].what);
        done(&v);
    }
    tap_ok(PyRun_SimpleString(
               "import ast\nclass Own(ast.NodeVisitor): pass\nast.dump(ast.parse('1'))") == 0,
           "the module ast is used");
    struct verdict v = judge(strict, "x = 1\n", 6);
    tap_eq_str(first_rule(&v), "none", "the use of the module ast is no tampering");
    done(&v);
}

/* What a program imports, wherever it does: a worker that computes only loads it ahead. */
static void modules(void)
{
    static const char source[] =
        "import json, os.path as p\ndef f():\n    from re import sub\n    class A:\n"
        "        import math\nfrom . import x\nif 0:\n    from collections import abc\n";
    struct check_report report;
    struct err err = ERR_INIT;
    check_report_init(&report);
    int r = py_judge(strict, source, sizeof source - 1, &report, NULL, &err);
    PyObject *all = py_judge_modules(), *comma = PyUnicode_FromString(" ");
    PyObject *text = all && comma && PyList_Sort(all) == 0 ? PyUnicode_Join(comma, all) : NULL;
    tap_eq_int(r, 0, "a program with imports is judged");
    tap_eq_str(text ? PyUnicode_AsUTF8(text) : "",
               ":x collections collections:abc json math os.path re re:sub",
               "every import is noted, in functions and classes too");
    Py_XDECREF(comma);
    Py_XDECREF(text);
    check_report_done(&report);
}

int main(void)
{
    struct err err = ERR_INIT;
    base_assert(PySys_AddAuditHook(hook, NULL) == 0);
    if (!tap_ok(test_start(&err) == 0, "the interpreter starts %s", err.msg))
        return tap_done();
    tap_eq_int(py_judge_init(&err), 0, "a second start of the judge succeeds");
    struct policy_profile p = *policy_profile_find("strict");
    tap_eq_int(check_ruleset_new(&p, &strict, &err), 0, "the strict profile has a ruleset");
    p.source_max = 1 << 20;
    tap_eq_int(check_ruleset_new(&p, &wide, &err), 0, "a profile for large sources has a ruleset");
    hostile();
    growth();
    many();
    sizes();
    quiet();
    same_code();
    cells();
    tamper();
    modules();
    check_ruleset_free(strict);
    check_ruleset_free(wide);
    tap_eq_int(Py_FinalizeEx(), 0, "the interpreter ends");
    return tap_done();
}
