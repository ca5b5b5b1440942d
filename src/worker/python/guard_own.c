/* SPDX-License-Identifier: Apache-2.0 */
/* Modules of ours. A program of a profile without threads that says `import threading` wants its work done, not a second thread: our
 * module does it in order, and says so once in the result. Python's own would ask the kernel for a thread and be
 * refused. It is loaded from memory, so it may be loaded when no file can be opened any more. */
#include "guard_own.h"

#include "guard.h"
#include "guard_inside.h"
#include "hook.h"

#include <marshal.h>
#include <string.h>

#define MODULES 20

static struct {
    const char *name;
    PyObject *module;
} made[MODULES];

/* `concurrent` is there for the sake of its one part. */
static const char package[] = "concurrent", part[] = "concurrent.futures";

static const struct guard_own_code *find(const char *name)
{
    const struct guard_own_code *c = guard_own_code;
    while (c->name && strcmp(c->name, name) != 0)
        c++;
    return c->name ? c : NULL;
}

/* Beside what stands in for a module there is code of ours that changes one. */
static const char zones[] = "cordon.zones", queues[] = "cordon.queues", caught[] = "cordon.caught";

static const char files[] = GUARD_OWN_FILES;

/* Those that ask for files over the channel: ours only where the profile has them served. */
bool guard_own_is_of_files(const char *name, size_t len)
{
    static const char *const names[] = {"os",       "os.path", "pathlib", "shutil",
                                        "tempfile", "glob",    "zipfile"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(name, names[i], len) == 0 && !names[i][len])
            return true;
    return false;
}

static bool serves_files;
static PyMethodDef *ask_for_files;
static PyObject *unsaved; /* of files.py: what was written and not closed; NULL: not loaded */

void py_guard_files(PyMethodDef *ask)
{
    ask_for_files = ask;
}

void guard_own_serve_files(bool serve)
{
    serves_files = serve;
}

bool guard_own_has(const char *name)
{
    if (strcmp(name, package) == 0)
        return true;
    return strncmp(name, "cordon.", 7) != 0 && find(name) &&
           (serves_files || !guard_own_is_of_files(name, strlen(name)));
}

static PyObject *say_in_order(PyObject *self, PyObject *args)
{
    (void)self;
    (void)args;
    py_hook_note("threads.in_order");
    Py_RETURN_NONE;
}

static PyObject *remembered(const char *name);

/* One of our modules, for another. */
static PyObject *give_own(PyObject *self, PyObject *name)
{
    (void)self;
    const char *text = PyUnicode_AsUTF8(name);
    PyObject *module = text ? remembered(text) : NULL;
    if (!module && !PyErr_Occurred())
        PyErr_Format(PyExc_ImportError, "no module of ours is called %U", name);
    return module ? Py_NewRef(module) : NULL;
}

static int add_function(PyObject *dict, PyMethodDef *def)
{
    PyObject *f = def ? PyCFunction_New(def, NULL) : NULL;
    int r = !def ? 0 : f ? PyDict_SetItemString(dict, def->ml_name, f) : -1;
    Py_XDECREF(f);
    return r;
}

/* ---- what `doctest` asks for ---- */

static struct {
    PyObject *documents, *globals; /* see py_guard_examples */
} tested;

void py_guard_examples(PyObject *documents, PyObject *globals)
{
    Py_XINCREF(documents);
    Py_XINCREF(globals);
    Py_XSETREF(tested.documents, documents);
    Py_XSETREF(tested.globals, globals);
}

/* (line, ((source, code), ...)) of a docstring, borrowed; NULL without an exception: it was not judged. */
static PyObject *document(PyObject *text)
{
    return tested.documents && PyUnicode_CheckExact(text)
               ? PyDict_GetItemWithError(tested.documents, text)
               : NULL;
}

/* _known(text) -> (line, sources, text), or None */
static PyObject *doc_known(PyObject *self, PyObject *text)
{
    PyObject *found = document(text), *codes = found ? PyTuple_GET_ITEM(found, 1) : NULL;
    (void)self;
    if (!found)
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    PyObject *sources = PyTuple_New(PyTuple_GET_SIZE(codes));
    for (Py_ssize_t i = 0; sources && i < PyTuple_GET_SIZE(codes); i++)
        PyTuple_SET_ITEM(sources, i, Py_NewRef(PyTuple_GET_ITEM(PyTuple_GET_ITEM(codes, i), 0)));
    PyObject *all = sources ? PyTuple_Pack(3, PyTuple_GET_ITEM(found, 0), sources, text) : NULL;
    Py_XDECREF(sources);
    return all;
}

/* _names(more): a new namespace like the program's. MORE are names of the program's choice; its builtins stay. */
static PyObject *doc_names(PyObject *self, PyObject *more)
{
    PyObject *names = tested.globals ? PyDict_Copy(tested.globals) : PyDict_New(), *key, *value;
    Py_ssize_t at = 0;
    (void)self;
    while (names && PyDict_Check(more) && PyDict_Next(more, &at, &key, &value)) {
        Py_ssize_t len;
        const char *text = PyUnicode_CheckExact(key) ? PyUnicode_AsUTF8AndSize(key, &len) : NULL;
        if (PyErr_Occurred() ||
            (text && strncmp(text, "__", 2) != 0 && PyDict_SetItem(names, key, value) < 0))
            Py_CLEAR(names);
    }
    return names;
}

/* _run(text, number, names): an example of a docstring that was judged, in a namespace that _names made. */
static PyObject *doc_run(PyObject *self, PyObject *args)
{
    PyObject *text, *names;
    Py_ssize_t number;
    (void)self;
    if (!PyArg_ParseTuple(args, "UnO!:_run", &text, &number, &PyDict_Type, &names))
        return NULL;
    PyObject *found = document(text), *codes = found ? PyTuple_GET_ITEM(found, 1) : NULL;
    PyObject *own = tested.globals ? PyDict_GetItemString(tested.globals, "__builtins__") : NULL;
    if (!codes || number < 0 || number >= PyTuple_GET_SIZE(codes) || !own ||
        PyDict_GetItemString(names, "__builtins__") != own) {
        PyErr_SetString(PyExc_RuntimeError, "doctest: no such example");
        return NULL;
    }
    return PyEval_EvalCode(PyTuple_GET_ITEM(PyTuple_GET_ITEM(codes, number), 1), names, names);
}

static PyObject *doc_refuse(PyObject *self, PyObject *name)
{
    (void)self;
    (void)name;
    return guard_refuse_own("py.guard.doctest",
                            "an example that is in no docstring of the program as it was judged",
                            "write the example into the docstring itself, as a literal string");
}

static int fill_doctest(PyObject *dict)
{
    static PyMethodDef rows[] = {{"_known", doc_known, METH_O, NULL},
                                 {"_names", doc_names, METH_O, NULL},
                                 {"_run", doc_run, METH_VARARGS, NULL},
                                 {"_refuse", doc_refuse, METH_O, NULL}};
    int r = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows && r == 0; i++)
        r = add_function(dict, &rows[i]);
    return r;
}

static int fill(PyObject *module, const struct guard_own_code *c)
{
    static PyMethodDef note = {"_note", say_in_order, METH_NOARGS, NULL};
    static PyMethodDef own = {"_own", give_own, METH_O, NULL};
    PyObject *dict = PyModule_GetDict(module), *done = NULL;
    /* not by PyImport_Import: that asks the guest's __import__, if a guest runs */
    PyObject *builtins = PyDict_GetItemString(PyImport_GetModuleDict(), "builtins"); /* borrowed */
    guard.unpacking = true;
    PyObject *code = PyMarshal_ReadObjectFromString((const char *)c->code, (Py_ssize_t)c->size);
    guard.unpacking = false;
    if (builtins && code && add_function(dict, &note) == 0 && add_function(dict, &own) == 0 &&
        add_function(dict, ask_for_files) == 0 &&
        (strcmp(c->name, "doctest") != 0 || fill_doctest(dict) == 0) &&
        PyDict_SetItemString(dict, "__builtins__", builtins) == 0)
        done = PyEval_EvalCode(code, dict, dict);
    Py_XDECREF(code);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* Once the interpreter is closed, classes that are made are a guest's unless somebody says otherwise. */
static int fill_as_library(PyObject *module, const struct guard_own_code *c)
{
    int building = guard.building;
    if (!guard.hidden)
        return fill(module, c);
    guard_lock_classes(false);
    guard.building = 0;
    int r = fill(module, c);
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (guard_learn_classes() < 0)
        r = -1;
    if (type)
        PyErr_Restore(type, value, traceback);
    guard_lock_classes(true);
    guard.building = building;
    return r;
}

/* The dict is looked up once, in the template: every program's end asks whether it is empty. */
static int note_unsaved(PyObject *module)
{
    PyObject *dict = PyObject_GetAttrString(module, "_unsaved");
    if (!dict || !PyDict_CheckExact(dict)) {
        Py_XDECREF(dict);
        return -1;
    }
    unsaved = dict;
    return 0;
}

static PyObject *make(const char *name)
{
    const struct guard_own_code *c = find(name);
    PyObject *module = PyModule_New(name);
    int r = !module ? -1 : c ? fill_as_library(module, c) : 0;
    if (r == 0 && !c) {
        PyObject *futures = guard_own_module(part);
        r = futures ? PyDict_SetItemString(PyModule_GetDict(module), "futures", futures) : -1;
    }
    if (r == 0 && strcmp(name, files) == 0)
        r = note_unsaved(module);
    if (r < 0)
        Py_CLEAR(module);
    return module;
}

/* One of MODULES; made at the first call. */
static PyObject *remembered(const char *name)
{
    size_t i = 0;
    while (i < MODULES && made[i].name && strcmp(made[i].name, name) != 0)
        i++;
    if (i < MODULES && made[i].name)
        return made[i].module;
    PyObject *module = make(name);
    for (i = 0; i < MODULES && made[i].name; i++)
        ; /* the one above may have made another */
    if (!module || i == MODULES) {
        Py_XDECREF(module);
        return NULL;
    }
    made[i].name = find(name) ? find(name)->name : package;
    return made[i].module = module;
}

PyObject *guard_own_module(const char *name)
{
    return guard_own_has(name) ? remembered(name) : NULL;
}

void guard_own_load_files(void)
{
    if (serves_files && !remembered(files))
        PyErr_Clear(); /* then a program that opens one is told why */
}

PyObject *guard_own_open(PyObject *self, PyObject *args, PyObject *kwargs)
{
    (void)self;
    PyObject *module = remembered(files);
    PyObject *open = module ? PyObject_GetAttrString(module, "open") : NULL;
    PyObject *file = open ? PyObject_Call(open, args, kwargs) : NULL;
    Py_XDECREF(open);
    return file;
}

void py_guard_save_files(void)
{
    if (!unsaved || PyDict_GET_SIZE(unsaved) == 0)
        return;
    PyObject *module = remembered(files);
    PyObject *r = module ? PyObject_CallMethod(module, "save", NULL) : NULL;
    if (!r)
        PyErr_WriteUnraisable(module);
    Py_XDECREF(r);
}

int guard_close_zoneinfo(PyObject *module)
{
    (void)module;
    return remembered(zones) ? 0 : -1;
}

int guard_close_warnings(PyObject *module)
{
    (void)module;
    return remembered(caught) ? 0 : -1;
}

int guard_close_queue(PyObject *module)
{
    PyObject *own = guard_own_module("threading");
    if (!own || PyDict_SetItemString(PyModule_GetDict(module), "threading", own) < 0)
        return -1;
    return remembered(queues) ? 0 : -1;
}
