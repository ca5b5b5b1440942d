/* SPDX-License-Identifier: Apache-2.0 */
/* The judge of Python: CPython's own tree of a source, walked in C against a rule set.
 *
 * Takes:   the bytes of a source, whatever they are.
 * Gives:   every finding, sorted by line; and the tree, so that what was judged is what runs.
 * Never:   executes anything of the source, imports for it, or calls Python code.
 * Runs in: cordon-python, in the jail.
 */
#ifndef WORKER_PYTHON_JUDGE_H
#define WORKER_PYTHON_JUDGE_H

/* Python.h wants to be first */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "base/err.h"
#include "check/report.h"
#include "check/ruleset.h"

#include <stdbool.h>

/* Once, after Py_Initialize and before the first guest byte (in a template: before the fork): takes
 * the tree's types. Again, by a child that has run a program of ours: no guest has run yet.
 * ERR_MISSING: this Python's tree lacks what the judge needs. */
ERR_MUST_USE int py_judge_init(struct err *err);

/* REPORT must be initialised; it is ended here. *ret_tree is a new reference to the `ast.Module` if
 * the source parsed (also when it is refused), else NULL; ret_tree may be NULL. Success also when
 * everything is wrong with the source: the report says so. ERR_MEMORY is our own failure; the caller
 * refuses then. What only the compiler finds (`return` outside a function) is not found here: ast.parse
 * does not find it either. The stack must have 8 MB: the parser nests as deep as its own limit lets it. */
ERR_MUST_USE int py_judge(const struct check_ruleset *rules, const void *source, size_t len,
                          struct check_report *report, PyObject **ret_tree, struct err *err);

/* The same for a later cell of a session: what the namespace GLOBALS holds is bound, so that a variable
 * called `input` of an earlier cell is not taken for the builtin. */
ERR_MUST_USE int py_judge_call(const struct check_ruleset *rules, PyObject *globals,
                               const void *source, size_t len, struct check_report *report,
                               PyObject **ret_tree, struct err *err);

/* The modules that the source judged last imports, wherever it does so: a list of str, borrowed. For `from a.b
 * import c` that is `a.b:c`, since c may be a module or not, and `a.b`. */
PyObject *py_judge_modules(void);

/* Where the run's files are a workspace's: whether an import of MODULE finds something. Unset, as at first, nobody is asked. An import
 * that certainly runs and finds nothing is a finding. FILES: the profile has files, so the workspace's modules count. It may look for files; it imports nothing. */
void py_judge_look_up(bool (*exists)(const char *module, size_t len, bool files));

/* The examples in its docstrings, judged with it, if it imports doctest: a dict, borrowed, of (line, [(source, [statement, ...]),
 * ...]) by the docstring's text. Empty, or NULL, if not. */
PyObject *py_judge_examples(void);

#endif
