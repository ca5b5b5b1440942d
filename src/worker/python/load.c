/* SPDX-License-Identifier: Apache-2.0 */
/* A module comes as its source, which was judged in a process that ran no guest code; the judge here makes the tree that is
 * compiled, as for a cell of a session. It runs in a namespace of its own, with the builtins of the program. */
#include "load.h"

#include "guard.h"
#include "judge.h"

#include <string.h>

/* The tree of the source, rewritten and compiled. NULL: an exception is set. */
static PyObject *code_of(const struct check_ruleset *rules, const char *name, const char *source,
                         size_t len)
{
    struct check_report report;
    struct err err = ERR_INIT;
    PyObject *tree = NULL, *code = NULL;
    check_report_init(&report);
    const int r = py_judge(rules, source, len, &report, &tree, &err);
    const bool safe = r == 0 && tree && check_report_safe(&report);
    check_report_done(&report);
    if (safe && py_guard_rewrite(tree, rules, &err) == 0)
        code = py_guard_compile(tree, name, "exec");
    else if (!PyErr_Occurred())
        PyErr_Format(PyExc_RuntimeError, "%s: %s", name,
                     err.code ? err.msg : "the judge refuses it");
    Py_XDECREF(tree);
    return code;
}

PyObject *py_load_module(const struct check_ruleset *rules, PyObject *globals, const char *name,
                         const char *source, size_t len)
{
    const char *dot = strrchr(name, '.');
    PyObject *builtins = PyDict_GetItemString(globals, "__builtins__"); /* borrowed */
    PyObject *code = code_of(rules, name, source, len);
    PyObject *module = code ? PyModule_New(name) : NULL;
    PyObject *space = module ? PyModule_GetDict(module) : NULL; /* borrowed */
    PyObject *done = NULL;
    if (space && (!builtins || PyDict_SetItemString(space, "__builtins__", builtins) == 0))
        done = PyEval_EvalCode(code, space, space);
    if (!done || PyDict_SetItemString(globals, dot ? dot + 1 : name, module) < 0)
        Py_CLEAR(module);
    Py_XDECREF(done);
    Py_XDECREF(code);
    return module;
}
