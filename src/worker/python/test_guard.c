/* SPDX-License-Identifier: Apache-2.0 */
/* The guards' parts one by one, from C. What programs can do under them is in tests/python/guards.py. */
#include "base/tap.h"
#include "hook_inside.h"
#include "opaque.h"
#include "test_start.h"

#include <string.h>

static struct check_ruleset *strict, *again;
static char last[256];
static int reports;

static void report(void *ctx, const char *layer, const char *rule, const char *detail,
                   const char *hint, unsigned line)
{
    (void)ctx;
    (void)hint;
    (void)line;
    reports++;
    snprintf(last, sizeof last, "%s %s %s", layer, rule, detail);
}

static enum guard_name class_of(const char *name)
{
    const struct policy_rule *rule;
    return guard_name(name, strlen(name), &rule);
}

static void names(void)
{
    static const char *const free_names[] = {"append",  "x",        "__init__",
                                             "__len__", "_replace", "gi"};
    static const char *const own[] = {"_x", "_A__x", "__x", "_"};
    static const char *const refused[] = {"__class__", "__globals__",    "gi_frame",     "f_back",
                                          "tb_frame",  "__match_args__", "cell_contents"};
    for (size_t i = 0; i < sizeof free_names / sizeof *free_names; i++)
        tap_eq_int(class_of(free_names[i]), GUARD_NAME_FREE, "%s is free", free_names[i]);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        tap_eq_int(class_of(own[i]), GUARD_NAME_PRIVATE, "%s is private", own[i]);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        tap_eq_int(class_of(refused[i]), GUARD_NAME_REFUSED, "%s is refused", refused[i]);
}

/* 1: passes; 0: refused */
static int format_passes(const char *text)
{
    PyObject *format = PyUnicode_FromString(text);
    int r = guard_check_format(format);
    PyErr_Clear();
    Py_DECREF(format);
    return r == 0;
}

static void formats(void)
{
    static const char *const good[] = {"",         "{}",          "{0:>{1}}", "{{0.__class__}}",
                                       "{a.b.c}",  "{0[x_]}",     "{:._}",    "{0!r:._f}",
                                       "{a[}]}",   "{",           "}",        "{a[b.__class__]}",
                                       "{:{a.b}}", "{0.real:.2f}"};
    static const char *const bad[] = {
        "{0.__class__}", "{:{0.__class__}}",     "{a.b.__globals__}", "{0[a].__class__}",
        "{0._x}",        "{{{0.__class__}}}",    "{0[__builtins__]}", "{0[_x]}",
        "{0.gi_frame}",  "{a:{b:{c.__dict__}}}", "x{a[0].f_back.b}"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        tap_ok(format_passes(good[i]), "format %s passes", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        tap_ok(!format_passes(bad[i]), "format %s is refused", bad[i]);
}

static bool code_passes(const char *text)
{
    PyObject *code = Py_CompileString(text, "<text>", Py_file_input);
    bool plain = code && guard_code_is_plain(code);
    PyErr_Clear();
    Py_XDECREF(code);
    return plain;
}

static void code(void)
{
    tap_ok(code_passes(
               "def __create_fn__(MISSING, _type_x):\n def __init__(self, x:_type_x):\n  self.x=x\n"
               " return __init__\n"),
           "an __init__ that dataclasses makes is plain");
    tap_ok(code_passes("def __create_fn__():\n def __eq__(self, other):\n"
                       "  if other.__class__ is self.__class__: return (self.id,)==(other.id,)\n"
                       "  return NotImplemented\n return __eq__\n"),
           "a comparison that dataclasses makes is plain");
    tap_ok(!code_passes("def f(): import os"), "code with an import is not plain");
    tap_ok(!code_passes("def f():\n def g(): return open('x')"), "code with a global is not plain");
    tap_ok(!code_passes("def f(x): return x.__subclasses__()"),
           "code with a special name is not plain");
    tap_ok(!code_passes("def f(x):\n global y\n y = x"),
           "code that writes to the namespace is not plain");
    tap_ok(!code_passes("class A: pass"), "code with a class is not plain");
    PyObject *number = PyLong_FromLong(1);
    tap_ok(!guard_code_is_plain(number), "a number is not plain code");
    Py_DECREF(number);
}

static void events(void)
{
    PyObject *args = Py_BuildValue("(s(ssi)y)", "a\nb", "x", "y", 3, "bytes");
    char detail[HOOK_DETAIL];
    hook_detail("os.system", args, detail, sizeof detail);
    tap_eq_str(detail, "os.system a?b, (x, y, 3)",
               "a detail of two arguments shows control characters");
    hook_detail("os.system", args, detail, 20);
    tap_ok(strlen(detail) < 20, "a detail keeps to its room: %s", detail);
    Py_DECREF(args);
    tap_eq_str(hook_layer("socket.connect"), "network",
               "a socket event belongs to the layer network");
    tap_eq_str(hook_layer("os.system"), "process", "a command event belongs to the layer process");
    tap_eq_str(hook_layer("os.remove"), "filesystem",
               "a removal event belongs to the layer filesystem");
    tap_eq_str(hook_layer("gc.get_objects"), "input", "any other event belongs to the layer input");
    char out[HOOK_DETAIL];
    args = Py_BuildValue("(sOi)", "/nowhere/../nowhere/./x", Py_None, 0);
    tap_ok(hook_open_is_wrong(args, out, sizeof out),
           "opening a file that is not there is reported");
    tap_eq_str(out, "open /nowhere/x", "a file that is opened is reported by its plain path");
    Py_DECREF(args);
    args = Py_BuildValue("(sOi)", "/workspace/../tmp/x", Py_None, 0);
    tap_ok(!hook_open_is_wrong(args, out, sizeof out),
           "a file of the program's own is not reported");
    Py_DECREF(args);
    args = Py_BuildValue("(iOi)", 5, Py_None, 0);
    tap_ok(!hook_open_is_wrong(args, out, sizeof out),
           "a file that is named by its descriptor is not reported");
    Py_DECREF(args);
}

static void reporting(void)
{
    char detail[32];
    py_hook_arm(strict, "<t>", report, NULL);
    reports = 0;
    py_hook_report("input", "r", "x", "");
    py_hook_report("input", "r", "x", "");
    tap_eq_int(reports, 1, "the same violation is reported once");
    tap_eq_str(last, "input r x", "a report has its layer, rule and detail");
    for (int i = 0; i < 1000; i++) {
        snprintf(detail, sizeof detail, "%d", i);
        py_hook_report("input", "r", detail, "");
    }
    tap_eq_int(reports, PY_HOOK_REPORTS_MAX / 4, "one rule has at most a quarter of all reports");
    for (int i = 0; i < 1000; i++) {
        snprintf(detail, sizeof detail, "r%d", i);
        py_hook_report("input", detail, detail, "");
    }
    tap_eq_int(reports, PY_HOOK_REPORTS_MAX,
               "all rules together have at most PY_HOOK_REPORTS_MAX reports");
    PyErr_SetString(PyExc_ValueError, "kept");
    py_hook_report("input", "new", "new", "");
    tap_ok(PyErr_ExceptionMatches(PyExc_ValueError),
           "a report leaves an exception that is under way alone");
    PyErr_Clear();
    py_hook_arm(NULL, NULL, NULL, NULL);
    py_hook_report("input", "r", "asleep", "");
    tap_eq_int(reports, PY_HOOK_REPORTS_MAX, "a hook that is asleep reports nothing");
}

static void order_of_calls(void)
{
    struct err err = ERR_INIT;
    PyObject *tree = PyImport_ImportModule("sys"); /* never looked at */
    tap_ok(py_guard_rewrite(tree, strict, &err) < 0,
           "a program is not rewritten before there is a namespace");
    Py_XDECREF(tree);
    PyObject *globals = py_guard_globals(strict);
    if (!tap_ok(globals != NULL, "a namespace is made"))
        PyErr_Print();
    struct check_ruleset *open = NULL;
    tap_ok(check_ruleset_new(policy_profile_find("open"), &open, &err) == 0 &&
               !py_guard_globals(open),
           "a guarded interpreter serves no other profile");
    PyErr_Clear();
    check_ruleset_free(open);
    tap_ok(check_ruleset_new(policy_profile_find("strict"), &again, &err) == 0,
           "a second ruleset of the strict profile is made");
    py_guard_rules(again);
    tap_ok(guard.rules == again, "a new ruleset is taken over at once");
    py_guard_rules(strict);
}

static long blocks(void)
{
    PyObject *sys = PyImport_ImportModule("sys");
    PyObject *n = sys ? PyObject_CallMethod(sys, "getallocatedblocks", NULL) : NULL;
    long count = n ? PyLong_AsLong(n) : -1;
    Py_XDECREF(sys);
    Py_XDECREF(n);
    return count;
}

/* A session rewrites and runs cell after cell. */
/* PyGC_Collect does nothing while the collector is off, and the guards turn it off. */
static void collect(void)
{
    PyObject *gc = PyImport_ImportModule("gc");
    Py_XDECREF(gc ? PyObject_CallMethod(gc, "collect", NULL) : NULL);
    Py_XDECREF(gc);
}

static void nothing_is_left_behind(void)
{
    static const char program[] = "import math, json\n"
                                  "class A:\n"
                                  "    def __init__(self): self._x = [1]; self.__y = {'k': 2}\n"
                                  "    def f(self):\n"
                                  "        self._x[0] += 1; a, b = self.__y.items(), math.pi\n"
                                  "        return [i.real for i, _ in [(1, 2)]], f'{a!r}{b}'\n"
                                  "A().f()\n"
                                  "try: A().__class__\n"
                                  "except Exception: pass\n"
                                  "match 5:\n"
                                  "    case int(__class__=x): pass\n";
    PyCompilerFlags flags = {.cf_flags = PyCF_ONLY_AST, .cf_feature_version = PY_MINOR_VERSION};
    struct err err = ERR_INIT;
    long before = 0;
    for (int i = 0; i < 1000; i++) {
        PyObject *globals = py_guard_globals(strict);
        PyObject *tree = Py_CompileStringFlags(program, "<t>", Py_file_input, &flags);
        PyObject *made = tree && py_guard_rewrite(tree, strict, &err) == 0
                             ? py_guard_compile(tree, "<t>", "exec")
                             : NULL;
        PyObject *done = made ? PyEval_EvalCode(made, globals, globals) : NULL;
        if (i == 0)
            tap_ok(!done && PyErr_ExceptionMatches(guard.security_error),
                   "the program ends in a refusal");
        PyErr_Clear();
        Py_XDECREF(done);
        Py_XDECREF(made);
        Py_XDECREF(tree);
        Py_XDECREF(globals);
        if (i == 499)
            collect(), before = blocks();
    }
    collect();
    long more = blocks() - before;
    tap_ok(more < 200, "500 programs leave nothing behind: %ld objects more", more);
}

int main(void)
{
    struct err err = ERR_INIT;
    if (py_opaque_start(&err) < 0 || test_python(&err) < 0 || py_guard_init(&err) < 0 ||
        py_hook_install(&err) < 0 ||
        check_ruleset_new(policy_profile_find("strict"), &strict, &err) < 0) {
        printf("Bail out! %s\n", err.msg[0] ? err.msg : "Python does not start");
        return 1;
    }
    order_of_calls();
    names();
    formats();
    code();
    events();
    reporting();
    nothing_is_left_behind();
    return tap_done();
}
