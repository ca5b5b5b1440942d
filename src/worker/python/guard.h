/* SPDX-License-Identifier: Apache-2.0 */
/* The guards: a judged tree rewritten so that access goes through C functions of ours, and an
 * interpreter in which the ways round them lead nowhere.
 *
 * Takes:   the tree that was judged, and the rule set that it was judged by.
 * Gives:   the same program with guarded access; a namespace with restricted builtins and facades.
 * Never:   leaves a guard where guest code can name, replace or shadow it; calls guest code while it
 *          rewrites; decides anything that the rule set does not say, but for the few names (guard.c)
 *          that lead from any value to the interpreter.
 * Runs in: cordon-python, in the jail.
 *
 * The guards are a layer before the kernel's, not instead of it.
 */
#ifndef WORKER_PYTHON_GUARD_H
#define WORKER_PYTHON_GUARD_H

/* Python.h wants to be first */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "base/err.h"
#include "check/ruleset.h"

/* Once, after Py_Initialize and after the modules to load ahead; in a template: before the fork.
 * Changes nothing that a program could see. ERR_MISSING: this Python lacks what the guards need. */
ERR_MUST_USE int py_guard_init(struct err *err);

/* In a template whose children serve this profile alone, after its modules were loaded: closes the
 * interpreter now, so that no child has to. Nothing to do where the profile has guards off. */
ERR_MUST_USE int py_guard_close(const struct check_ruleset *rules, struct err *err);

/* The rule set in force is about to be freed: guards and hook go over to RULES at once, since objects of
 * an earlier cell may run code at any time. */
void py_guard_rules(const struct check_ruleset *rules);

/* The pending Python exception is a refusal of ours. */
bool py_guard_refused(void);

/* Loads a module ahead of the program that will import it; one that cannot be loaded is left to that program. */
void py_guard_load(const char *module);

/* What modules of ours ask for files with, `_ask`; before any of them is made. */
void py_guard_files(PyMethodDef *ask);
/* At the end of a program: what it wrote into files that it did not close. */
void py_guard_save_files(void);

/* A fresh namespace named __main__, and sys.modules['__main__'] to go with it: new reference, or NULL
 * with a Python exception. With guards off in the profile it has Python's own builtins. With guards
 * on, the first call also closes the interpreter itself (guard_hide.c), for as long as it lives: an
 * interpreter that has been guarded serves no other profile. */
PyObject *py_guard_globals(const struct check_ruleset *rules);

/* Takes the last statement off TREE, a Module, if it is an expression. *ret_last: that, as a tree of its own, or
 * NULL. Returns how many statements are left, or -1 with a Python exception. */
Py_ssize_t py_guard_split(PyObject *tree, PyObject **ret_last);

/* Rewrites TREE (Module or Expression) in place; nothing to do where the profile has guards off.
 * Negative, with ERR filled and perhaps a Python exception set: it must not run. */
ERR_MUST_USE int py_guard_rewrite(PyObject *tree, const struct check_ruleset *rules,
                                  struct err *err);

/* A tree of a list of statements of which each expression is shown, as at a prompt: compiled as "single". New reference. */
PyObject *py_guard_interactive(PyObject *statements);

/* What the docstrings of the program that is about to run have for examples: (line, ((source, code), ...)) by the
 * docstring's text, and the program's namespace. Both are held; NULL: none. For our module `doctest`. */
void py_guard_examples(PyObject *documents, PyObject *globals);

/* compile(TREE, FILE, MODE) in every profile; a rewritten tree gets its guards here, so only code that
 * comes from here runs guarded (code from elsewhere fails on its first access). New reference, or NULL
 * with a Python exception. */
PyObject *py_guard_compile(PyObject *tree, const char *file, const char *mode);

#endif
