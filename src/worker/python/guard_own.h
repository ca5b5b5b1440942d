/* SPDX-License-Identifier: Apache-2.0 */
/* Modules of our own that guests get in the place of Python's: `threading` and `concurrent.futures` do their work in order, since
 * there is one thread; `os`, `pathlib` and their kin ask the supervisor for files; `doctest` runs examples that were judged.
 *
 * Takes:   the name of a module.
 * Gives:   ours of that name, written in Python (library/) and compiled into the worker.
 * Never:   stands in sys.modules: libraries keep Python's own.
 * Runs in: cordon-python, in the jail, where guards are on.
 */
#ifndef WORKER_PYTHON_GUARD_OWN_H
#define WORKER_PYTHON_GUARD_OWN_H

/* Python.h wants to be first */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>

struct guard_own_code {
    const char *name;
    const unsigned char *code;
    size_t size;
};
extern const struct guard_own_code
    guard_own_code[]; /* made by library/embed.py; ends with a NULL name */

bool guard_own_has(const char *name);
/* Borrowed; made at the first call. NULL: there is none of that name, or with a Python exception. */
PyObject *guard_own_module(const char *name);

/* The module of that name is one of those. */
bool guard_own_is_of_files(const char *name, size_t len);
#define GUARD_OWN_FILES "cordon.files" /* what they and the builtin `open` are built on */
void guard_own_load_files(void);       /* now, if they are ours: it needs modules of Python's */
/* Whether the modules of files are ours: the profile that is loaded or in force has them served. */
void guard_own_serve_files(bool serve);
PyObject *guard_own_open(PyObject *self, PyObject *args, PyObject *kwargs); /* the builtin */

/* The module `zoneinfo`: reads every zone, and opens no file from then on. */
int guard_close_zoneinfo(PyObject *module);
/* The module `warnings`: its catch_warnings holds no module. */
int guard_close_warnings(PyObject *module);
/* The module `queue`: its waits are those of our `threading`. */
int guard_close_queue(PyObject *module);

#endif
