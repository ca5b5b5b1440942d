/* SPDX-License-Identifier: Apache-2.0 */
/* PyConfig is the one part of the start that is not in the stable ABI; it is confined to this file.
 * Paths are given, not searched: the search costs a third of the start and looks at the environment.
 * What every start imports from the standard library is in the program (freeze.py); the collector sleeps
 * until the start is over, since nothing of it becomes garbage.
 * `make gains GAINS=--alone` (2 CPUs, aarch64): a cold run takes 6 % longer without FROZEN, 3 % without GC_LATER, 3 to 4 %
 * without LARGE_PAGE, 2 % without NO_ZIPIMPORT.
 * Output is not buffered, as with `python -u`: what was printed before a kill has left the process. */
#include "interp.h"

#include "base/speed.h"
#include "opaque.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if PY_VERSION_HEX < 0x03090000
#error "Cordon needs CPython 3.9 or newer"
#endif

#define FROZEN (SPEED_FROZEN && PY_VERSION_HEX >= 0x030b0000)
/* The start in two steps, between which the interpreter is there: provisional, but in all of these. */
#define TWO_STEPS (PY_VERSION_HEX >= 0x030a0000 && PY_VERSION_HEX < 0x030e0000)

static PyStatus add_path(PyConfig *c, const char *path)
{
    wchar_t *wide = Py_DecodeLocale(path, NULL);
    if (!wide)
        return PyStatus_NoMemory();
    PyStatus s = PyWideStringList_Append(&c->module_search_paths, wide);
    PyMem_RawFree(wide);
    return s;
}

static PyStatus configure(PyConfig *c, const struct worker_start *start)
{
    static const char *const paths[] = {CORDON_PYTHON_STDLIB, CORDON_PYTHON_STDLIB "/lib-dynload"};
    PyStatus s = PyConfig_SetString(c, &c->program_name, L"/usr/bin/python3");
    if (!PyStatus_Exception(s))
        s = PyConfig_SetString(c, &c->executable, L"/usr/bin/python3");
    if (!PyStatus_Exception(s))
        s = PyConfig_SetString(c, &c->prefix, L"/usr");
    if (!PyStatus_Exception(s))
        s = PyConfig_SetString(c, &c->exec_prefix, L"/usr");
    if (!PyStatus_Exception(s))
        s = PyConfig_SetString(c, &c->base_prefix, L"/usr");
    if (!PyStatus_Exception(s))
        s = PyConfig_SetString(c, &c->base_exec_prefix, L"/usr");
#if FROZEN
    PyImport_FrozenModules = py_interp_frozen;
#endif
    for (size_t i = 0; i < sizeof paths / sizeof *paths && !PyStatus_Exception(s); i++)
        s = add_path(c, paths[i]);
    if (!PyStatus_Exception(s) && start->env)
        s = add_path(c, start->env);
    if (!PyStatus_Exception(s) && start->packages)
        s = add_path(c, "/usr/lib/python3/dist-packages");
    c->module_search_paths_set = 1;
    c->site_import = 0;
    c->write_bytecode = 0;
    c->buffered_stdio = 0;
    c->install_signal_handlers = 0;
    c->parse_argv = 0;
#if TWO_STEPS
    c->_init_main = 0;
#endif
    return s;
}

/* The objects of a start fill two of the interpreter's blocks, a page fault for every 4 KB of them. One large
 * page is one fault, and one page to give back at the end. Where there is none, nothing is lost. A template's
 * children would copy it whole for one byte. */
enum { BLOCK = 1 << 20, LARGE = 2 * BLOCK };
static char *large;
static size_t taken;

static void *take_block(void *ctx, size_t size)
{
    (void)ctx;
    if (large && size <= LARGE - taken) {
        taken += size;
        return large + taken - size;
    }
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static void give_block(void *ctx, void *block, size_t size)
{
    (void)ctx;
    munmap(block, size);
}

static void use_large_page(void)
{
    PyObjectArenaAllocator blocks = {.alloc = take_block, .free = give_block};
    char *cap =
        mmap(NULL, 2 * (size_t)LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (cap == MAP_FAILED)
        return;
    size_t before = -(uintptr_t)cap & (LARGE - 1); /* up to the first place for one */
    if (before)
        munmap(cap, before);
    munmap(cap + before + LARGE, LARGE - before);
    large = cap + before;
    (void)madvise(large, LARGE, MADV_HUGEPAGE);
    PyObject_SetArenaAllocator(&blocks);
}

#if TWO_STEPS
/* The second step imports zipimport, so that modules may come from archives on sys.path, and goes without if that fails. A guarded
 * program has none there: only folders of Debian's are on it, and it cannot change it. */
static void hide_zipimport(bool hide)
{
    PyObject *modules = PyImport_GetModuleDict(); /* borrowed */
    if (hide ? PyDict_SetItemString(modules, "zipimport", Py_None)
             : PyDict_DelItemString(modules, "zipimport"))
        PyErr_Clear();
}
#endif

static PyStatus initialize(const PyConfig *config, const struct worker_start *start)
{
    PyStatus s = Py_InitializeFromConfig(config);
#if TWO_STEPS
    const bool hide = SPEED_NO_ZIPIMPORT && start->alone && start->guarded && !start->env;
    if (!PyStatus_Exception(s)) {
        if (SPEED_GC_LATER)
            PyGC_Disable();
        if (hide)
            hide_zipimport(true);
        s = _Py_InitializeMain();
        if (hide)
            hide_zipimport(false);
    }
#endif
    (void)start;
    return s;
}

/* A frozen package has no folder. This one needs its own: all other encodings are there. */
static int tell_folder(void)
{
    static const char folder[] = CORDON_PYTHON_STDLIB "/encodings";
    int r = 0;
#if FROZEN
    PyObject *m = PyImport_ImportModule("encodings");
    PyObject *path = m ? PyObject_GetAttrString(m, "__path__") : NULL;
    PyObject *name = PyUnicode_FromString(folder);
    PyObject *file = PyUnicode_FromFormat("%s/__init__.py", folder);
    r = path && PyList_Check(path) && name && file && PyList_Append(path, name) == 0 &&
                PyObject_SetAttrString(m, "__file__", file) == 0
            ? 0
            : -1;
    Py_XDECREF(m);
    Py_XDECREF(path);
    Py_XDECREF(name);
    Py_XDECREF(file);
#endif
    (void)folder;
    return r;
}

int py_interp_started(struct err *err)
{
    PyObject *gc = PyImport_ImportModule("gc");
    PyObject *a = gc ? PyObject_CallMethod(gc, "freeze", NULL) : NULL;
    PyObject *b = a ? PyObject_CallMethod(gc, "enable", NULL) : NULL;
    int r = b ? 0 : err_set(err, ERR_MISSING, "the garbage collector cannot be started");
    Py_XDECREF(gc);
    Py_XDECREF(a);
    Py_XDECREF(b);
    return r;
}

/* `exit`, `quit` and `help` come from site, which is not loaded; programs and people use them. The first two would close
 * standard input, as a hint to shells that catch their exception: a session would never read again. They find it by
 * their module's `sys`, and do without. */
static int add_quitters(void)
{
    PyObject *site = PyImport_ImportModule("_sitebuiltins");
    PyObject *builtins = PyImport_ImportModule("builtins");
    int r = site && builtins ? 0 : -1;
    static const char *const names[] = {"exit", "quit"};
    for (size_t i = 0; i < 2 && r == 0; i++) {
        PyObject *q = PyObject_CallMethod(site, "Quitter", "ss", names[i], "Ctrl-D (end of input)");
        r = q ? PyObject_SetAttrString(builtins, names[i], q) : -1;
        Py_XDECREF(q);
    }
    PyObject *help = r == 0 ? PyObject_CallMethod(site, "_Helper", NULL) : NULL;
    if (r == 0)
        r = help && PyObject_SetAttrString(site, "sys", Py_None) == 0
                ? PyObject_SetAttrString(builtins, "help", help)
                : -1;
    Py_XDECREF(help);
    Py_XDECREF(site);
    Py_XDECREF(builtins);
    return r;
}

int py_interp_import(const char *module, struct err *err)
{
    PyObject *m = PyImport_ImportModule(module);
    if (!m) {
        PyErr_Print();
        return err_set(err, ERR_MISSING, "the module %.60s cannot be imported", module);
    }
    Py_DECREF(m);
    return 0;
}

int py_interp_freeze(struct err *err)
{
    PyObject *gc = PyImport_ImportModule("gc");
    PyObject *a = gc ? PyObject_CallMethod(gc, "collect", NULL) : NULL;
    PyObject *b = a ? PyObject_CallMethod(gc, "freeze", NULL) : NULL;
    int r = b ? 0 : err_set(err, ERR_MISSING, "the garbage collector cannot be frozen");
    PyErr_Clear();
    Py_XDECREF(gc);
    Py_XDECREF(a);
    Py_XDECREF(b);
    return r;
}

/* Libraries that start threads of their own when they are loaded do not, while these are set. Some look into C's
 * environment, some into Python's: os.environ is both. Programs do not see them. */
static int one_thread(bool on)
{
    static const char *const names[] = {"OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS",
                                        "OMP_NUM_THREADS", "MKL_NUM_THREADS"};
    PyObject *os = PyImport_ImportModule("os");
    PyObject *variables = os ? PyObject_GetAttrString(os, "environ") : NULL;
    PyObject *one = PyUnicode_FromString("1");
    int r = variables && one ? 0 : -1;
    for (size_t i = 0; i < sizeof names / sizeof *names && r == 0; i++) {
        PyObject *name = PyUnicode_FromString(names[i]);
        r = !name ? -1
            : on  ? PyObject_SetItem(variables, name, one)
                  : PyObject_DelItem(variables, name);
        Py_XDECREF(name);
    }
    PyErr_Clear();
    Py_XDECREF(os);
    Py_XDECREF(variables);
    Py_XDECREF(one);
    return r;
}

static int load_each(const char *names, struct err *err)
{
    char name[128];
    while (names && *names) {
        size_t n = strcspn(names, ",");
        if (n == 0 || n >= sizeof name)
            return err_set(err, ERR_USAGE, "--preload: not a list of modules");
        memcpy(name, names, n);
        name[n] = 0;
        int r = py_interp_import(name, err);
        if (r < 0)
            return r;
        names += n + (names[n] == ',');
    }
    return 0;
}

static int preload(const char *names, struct err *err)
{
    if (!names)
        return 0;
    if (one_thread(true) < 0)
        return err_set(err, ERR_MISSING, "os.environ cannot be set");
    int r = load_each(names, err);
    return one_thread(false) < 0 && r == 0
               ? err_set(err, ERR_MISSING, "os.environ cannot be set back")
               : r;
}

int py_interp_start(const struct worker_start *start, struct err *err)
{
    PyConfig config;
    PyPreConfig pre;
    if (FROZEN && (start->packages || start->env)) /* figures.py; a program may name another */
        setenv("MPLBACKEND", "module://cordon_figures", 0);
    PyPreConfig_InitIsolatedConfig(&pre);
    pre.utf8_mode = 1;
    if (strncmp(Py_GetVersion(), PY_VERSION, strcspn(PY_VERSION, ".") + 3) != 0)
        return err_set(err, ERR_MISSING, "built for Python %s, but libpython is %.20s; rebuild",
                       PY_VERSION, Py_GetVersion());
    int r = py_opaque_start(err);
    if (r < 0)
        return r;
    if (SPEED_LARGE_PAGE && start->alone)
        use_large_page();
    PyStatus s = Py_PreInitialize(&pre);
    PyConfig_InitIsolatedConfig(&config);
    if (!PyStatus_Exception(s))
        s = configure(&config, start);
    if (!PyStatus_Exception(s))
        s = initialize(&config, start);
    PyConfig_Clear(&config);
    if (PyStatus_Exception(s))
        return err_set(err, ERR_MISSING, "libpython does not start: %.160s",
                       s.err_msg ? s.err_msg : "unknown reason");
    signal(SIGPIPE, SIG_IGN); /* as python3 does: a closed stream is an exception, not a death */
    if (tell_folder() < 0)
        return err_set(err, ERR_MISSING, "the encodings cannot be found");
    if (add_quitters() < 0)
        return err_set(err, ERR_MISSING, "_sitebuiltins is missing from the standard library");
    return preload(start->preload, err);
}

/* The forked interpreters would all draw the same numbers: Python's own hooks see to `random`, numpy
 * has none. */
static void reseed_numpy(void)
{
    PyObject *modules = PyImport_GetModuleDict();
    PyObject *random = PyDict_GetItemString(modules, "numpy.random");
    PyObject *r = random ? PyObject_CallMethod(random, "seed", NULL) : NULL;
    if (random && !r)
        PyErr_Clear();
    Py_XDECREF(r);
}

/* Takes HOOK out of every list that has it: os.register_at_fork keeps its functions in one, and has no way back. */
static int take_out(PyObject *gc, PyObject *hook)
{
    PyObject *found = PyObject_CallMethod(gc, "get_referrers", "O", hook);
    int r = found ? 0 : -1;
    for (Py_ssize_t i = 0; r == 0 && i < PyList_GET_SIZE(found); i++) {
        PyObject *list = PyList_GET_ITEM(found, i);
        for (Py_ssize_t k = 0; r == 0 && PyList_CheckExact(list) && k < PyList_GET_SIZE(list);)
            if (PyList_GET_ITEM(list, k) == hook)
                r = PyList_SetSlice(list, k, k + 1, NULL);
            else
                k++;
    }
    Py_XDECREF(found);
    return r;
}

/* After a fork threading makes its locks anew and looks at every thread it knows. A strict program has a module of ours in
 * its place (guard_own.c), so nobody uses them, but each child wrote 60 pages more for it (`make bench BENCH=python`: idle
 * warm child). What other modules do after a fork, random's new state, stays. */
int py_interp_forget_threads(struct err *err)
{
    PyObject *threading =
        PyDict_GetItemString(PyImport_GetModuleDict(), "threading"); /* borrowed */
    PyObject *hook = threading ? PyObject_GetAttrString(threading, "_after_fork") : NULL;
    PyObject *gc = hook ? PyImport_ImportModule("gc") : NULL;
    int r = !threading ? 0 : gc ? take_out(gc, hook) : -1;
    Py_XDECREF(gc);
    Py_XDECREF(hook);
    if (r == 0)
        return 0;
    PyErr_Clear();
    return err_set(err, ERR_STATE, "threading's hook for forks is not where it is looked for");
}

void py_interp_after_fork(void)
{
    PyOS_AfterFork_Child();
    reseed_numpy();
}
