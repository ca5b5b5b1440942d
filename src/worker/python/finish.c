/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a program. Python's own takes everything apart; ours is killed right after it, so only what the program
 * itself can tell is done: its threads are waited for, its exit functions are called, its streams flushed.
 *
 * Three libraries that are loaded ahead register exit functions of their own. Two only give back memory; the third,
 * logging, writes what handlers hold back, and there is nothing to write unless the program made one. Calling
 * them all, and threading's end when there is one thread, copies some 60 pages of the template: half a run
 * with pandas. So a template asks first and calls what is left to do. */
#include "interp.h"

#include <string.h>

/* What every program's end looks up. Interned once, in the template: a lookup by text makes a new string each time, and
 * CPython's cache of attributes knows a name by its address. */
enum word { THREADING, ATEXIT, FLUSH, WORDS };

static PyObject *word(enum word w)
{
    static const char *const texts[WORDS] = {"threading", "atexit", "flush"};
    static PyObject *kept[WORDS];
    if (!kept[w])
        kept[w] = PyUnicode_InternFromString(texts[w]);
    return kept[w]; /* borrowed; NULL: no memory */
}

static PyObject *named(PyObject *dict, enum word w)
{
    PyObject *name = word(w), *found = name ? PyDict_GetItemWithError(dict, name) : NULL;
    if (!found)
        PyErr_Clear();
    return found; /* borrowed */
}

static PyObject *loaded(const char *module)
{
    return PyDict_GetItemString(PyImport_GetModuleDict(), module); /* borrowed */
}

/* MODULE's NAME, borrowed from its own dict: nothing of anybody's runs. */
static PyObject *part(PyObject *module, const char *name)
{
    return module && PyModule_Check(module) ? PyDict_GetItemString(PyModule_GetDict(module), name)
                                            : NULL;
}

/* What it raises is the guest's affair and goes to stderr. */
static void call(PyObject *m, const char *name)
{
    PyObject *r = PyObject_CallMethod(m, name, NULL);
    if (!r)
        PyErr_WriteUnraisable(m);
    Py_XDECREF(r);
}

/* ---- threads ---- */

static Py_ssize_t hooks_before; /* exit functions that threading had when the template was ready */

/* Only the main thread is there, so threading's end would wait for nobody. */
static bool is_alone(PyObject *threading)
{
    PyObject *active = part(threading, "_active"), *limbo = part(threading, "_limbo");
    PyObject *locks = part(threading, "_shutdown_locks");
    PyObject *hooks = part(threading, "_threading_atexits");
    return active && PyDict_CheckExact(active) && PyDict_GET_SIZE(active) <= 1 && limbo &&
           PyDict_CheckExact(limbo) && PyDict_GET_SIZE(limbo) == 0 && locks &&
           PyAnySet_CheckExact(locks) && PySet_GET_SIZE(locks) <= 1 && hooks &&
           PyList_CheckExact(hooks) && PyList_GET_SIZE(hooks) == hooks_before;
}

/* ---- logging ---- */

static struct {
    PyObject *shutdown, *module;
    PyObject *before; /* its handlers when the template was ready */
} logging;

static bool has_new_handler(void)
{
    PyObject *now = part(logging.module, "_handlerList");
    if (!now || !PyList_CheckExact(now))
        return true;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(now); i++) {
        bool old = false;
        for (Py_ssize_t k = 0; k < PyList_GET_SIZE(logging.before) && !old; k++)
            old = PyList_GET_ITEM(now, i) == PyList_GET_ITEM(logging.before, k);
        if (!old)
            return true;
    }
    return false;
}

static PyObject *end_logging(PyObject *self, PyObject *none)
{
    (void)self;
    (void)none;
    return has_new_handler() ? PyObject_CallNoArgs(logging.shutdown) : Py_NewRef(Py_None);
}

/* ---- in a template ---- */

static int exchange(PyObject *atexit, PyObject *function, PyObject *with)
{
    PyObject *gone = PyObject_CallMethod(atexit, "unregister", "O", function);
    PyObject *there = gone && with ? PyObject_CallMethod(atexit, "register", "O", with) : NULL;
    int r = gone && (!with || there) ? 0 : -1;
    Py_XDECREF(gone);
    Py_XDECREF(there);
    return r;
}

static int prepare_logging(PyObject *atexit)
{
    static PyMethodDef def = {"shutdown", end_logging, METH_NOARGS, NULL};
    PyObject *module = loaded("logging");
    PyObject *handlers = part(module, "_handlerList"), *shutdown = part(module, "shutdown");
    if (!handlers || !PyList_CheckExact(handlers) || !shutdown)
        return 0;
    logging.module = Py_NewRef(module);
    logging.shutdown = Py_NewRef(shutdown);
    logging.before = PyList_GetSlice(handlers, 0, PyList_GET_SIZE(handlers));
    PyObject *ours = PyCFunction_New(&def, NULL);
    int r = logging.before && ours ? exchange(atexit, shutdown, ours) : -1;
    Py_XDECREF(ours);
    return r;
}

/* What only tidies the memory of a process that is about to be killed. */
static int forget_tidying(PyObject *atexit)
{
    static const char *const idle[][3] = {{"PIL._imaging", "clear_cache", NULL},
                                          {"matplotlib._pylab_helpers", "Gcf", "destroy_all"}};
    int r = 0;
    for (size_t i = 0; i < sizeof idle / sizeof *idle && r == 0; i++) {
        PyObject *f = part(loaded(idle[i][0]), idle[i][1]);
        f = f && idle[i][2] ? PyObject_GetAttrString(f, idle[i][2]) : f ? Py_NewRef(f) : NULL;
        PyErr_Clear();
        r = f ? exchange(atexit, f, NULL) : 0;
        Py_XDECREF(f);
    }
    return r;
}

int py_finish_prepare(struct err *err)
{
    PyObject *modules = PyImport_GetModuleDict(); /* borrowed, and what is found there */
    PyObject *atexit = named(modules, ATEXIT);
    PyObject *hooks = part(named(modules, THREADING), "_threading_atexits");
    hooks_before = hooks && PyList_CheckExact(hooks) ? PyList_GET_SIZE(hooks) : 0;
    if (!atexit || (prepare_logging(atexit) == 0 && forget_tidying(atexit) == 0))
        return 0;
    PyErr_Print();
    return err_set(err, ERR_STATE, "the exit functions of what was loaded ahead cannot be sorted");
}

/* ---- at the end ---- */

static void flush(const char *name)
{
    PyObject *f = PySys_GetObject(name), *how = word(FLUSH); /* borrowed; may be anything by now */
    PyObject *r = f && f != Py_None && how ? PyObject_CallMethodNoArgs(f, how) : NULL;
    if (!r)
        PyErr_Clear(); /* a closed stream has nothing left to give */
    Py_XDECREF(r);
}

void py_interp_flush(void)
{
    flush("stdout");
    flush("stderr");
}

void py_interp_finish(void)
{
    PyObject *modules = PyImport_GetModuleDict(); /* borrowed, and what is found there */
    PyObject *threading = named(modules, THREADING), *atexit = named(modules, ATEXIT);
    if (threading && !is_alone(threading))
        call(threading, "_shutdown");
    if (atexit)
        call(atexit, "_run_exitfuncs");
    py_interp_flush();
}
