/* SPDX-License-Identifier: Apache-2.0 */
/* A program loads modules when its import statements run, and some modules load others when a function is called
 * (datetime.strptime loads _strptime) or a name is looked up (an encoding). The import statements are known from the
 * judged tree; what comes later is known by the words of the compiled code that lead there: an attribute or an encoding
 * that is used mostly stands in the code as a name or a constant. One that a program puts together (getattr(x, a + b)) is
 * not seen: _strptime is therefore loaded with the modules that lead to it; other late ones are not found then, and the
 * program is told so by a ModuleNotFoundError or a LookupError. A template loads all of it for its children, so that a session, whose later
 * programs nobody has seen, can close the table too.
 *
 * What would look for files afterwards is told that there are none: the finder of modules on the disk is taken out,
 * so are those of source lines and of translations, and the time zone is fixed by name, or the C library would look at its file
 * again for every date. */
#include "compute.h"

#include "guard.h"
#include "guard_own.h"
#include "worker/frame/compute.h"
#include "worker/frame/host.h"

#include <string.h>

static const struct policy_profile *all_loaded; /* of which everything is loaded */

/* ---- the finder of modules on the disk ---- */

static PyObject *disk_finder; /* while it is taken out of sys.meta_path */

/* Built-in and frozen modules are still found; those on the disk, only if they are loaded. */
static int take_finder_out(void)
{
    PyObject *finders = PySys_GetObject("meta_path"); /* borrowed */
    if (disk_finder)
        return 0;
    for (Py_ssize_t i = finders && PyList_Check(finders) ? PyList_GET_SIZE(finders) : 0; i > 0;
         i--) {
        PyObject *finder = Py_NewRef(PyList_GET_ITEM(finders, i - 1));
        PyObject *name = PyObject_GetAttrString(finder, "__name__");
        bool on_disk = name && PyUnicode_Check(name) &&
                       PyUnicode_CompareWithASCIIString(name, "PathFinder") == 0;
        Py_XDECREF(name);
        PyErr_Clear();
        if (on_disk && PyList_SetSlice(finders, i - 1, i, NULL) == 0)
            disk_finder = finder;
        else
            Py_DECREF(finder);
    }
    return disk_finder ? 0 : -1;
}

static void put_finder_back(void)
{
    PyObject *finders = PySys_GetObject("meta_path"); /* borrowed */
    if (disk_finder && finders && PyList_Append(finders, disk_finder) == 0)
        Py_CLEAR(disk_finder);
}

/* ---- loading ---- */

/* What is loaded when a function is called, by the word that calls it. */
static const struct {
    const char *word, *module;
} late[] = {
    {"most_common", "heapq"},           {"statistics", "heapq"},
    {"idna", "encodings.punycode"},     {"UserDict", "copy"},
    {"singledispatch", "typing"},       {"singledispatch", "weakref"},
    {"singledispatchmethod", "typing"}, {"singledispatchmethod", "weakref"},
    {"namereplace", "unicodedata"},     {"unicode_escape", "unicodedata"},
    {"unicode-escape", "unicodedata"},  {"open", GUARD_OWN_FILES}, /* the builtin */
};

/* What is loaded with a module, whatever the program does with it. */
static const struct {
    const char *module, *with;
} together[] = {
    {"calendar", "_strptime"},  {"datetime", "_strptime"},
    {"time", "_strptime"},      {"queue", "traceback"}, /* its waits are those of our threading */
    {"threading", "traceback"},
};

static PyObject *loaded(const char *module)
{
    return PyDict_GetItemString(PyImport_GetModuleDict(), module); /* borrowed */
}

static void load(const char *module)
{
    if (strcmp(module, GUARD_OWN_FILES) == 0) {
        put_finder_back();
        guard_own_load_files();
        return;
    }
    if (loaded(module) && !guard_own_has(module))
        return;
    put_finder_back();
    py_guard_load(module);
}

/* One that an import statement names. */
static void load_named(const char *module)
{
    load(module);
    for (size_t i = 0; i < sizeof together / sizeof *together; i++)
        if (strcmp(together[i].module, module) == 0)
            load(together[i].with);
}

/* The names of all encodings, as a program may write them: a set of str, borrowed; NULL with an exception. */
static PyObject *encodings(void)
{
    static const char *const other[] = {
        "cp1006",         "cp720",        "cp737",  "cp856",    "cp874",
        "cp875",          "idna",         "koi8_t", "koi8_u",   "mac_croatian",
        "mac_farsi",      "mac_romanian", "palmos", "punycode", "raw_unicode_escape",
        "unicode_escape", "utf_8_sig"}; /* no alias */
    static PyObject *names;
    if (names)
        return names;
    PyObject *module = PyImport_ImportModule("encodings.aliases");
    PyObject *aliases = module ? PyObject_GetAttrString(module, "aliases") : NULL;
    PyObject *keys = aliases && PyDict_Check(aliases) ? PyDict_Keys(aliases) : NULL;
    PyObject *values = keys ? PyDict_Values(aliases) : NULL;
    PyObject *set = values ? PySet_New(keys) : NULL;
    for (Py_ssize_t i = 0; set && i < PyList_GET_SIZE(values); i++)
        if (PySet_Add(set, PyList_GET_ITEM(values, i)) < 0)
            Py_CLEAR(set);
    for (size_t i = 0; set && i < sizeof other / sizeof *other; i++) {
        PyObject *name = PyUnicode_FromString(other[i]);
        if (!name || PySet_Add(set, name) < 0)
            Py_CLEAR(set);
        Py_XDECREF(name);
    }
    Py_XDECREF(module);
    Py_XDECREF(aliases);
    Py_XDECREF(keys);
    Py_XDECREF(values);
    return names = set;
}

/* As encodings.normalize_encoding has it, for names of letters and digits. */
static bool normal(const char *word, char *to, size_t room)
{
    size_t len = strlen(word);
    if (len < 2 || len >= room)
        return false;
    for (size_t i = 0; i <= len; i++) {
        char c = word[i];
        to[i] = c >= 'A' && c <= 'Z' ? (char)(c + 32) : c == '-' || c == ' ' || c == '.' ? '_' : c;
    }
    return true;
}

static void load_encoding(const char *word)
{
    char name[32];
    if (!normal(word, name, sizeof name) || strncmp(name, "bz2", 3) == 0)
        return; /* bz2 is no encoding of text, and loads a library of its own */
    PyObject *text = PyUnicode_FromString(name), *known = text ? encodings() : NULL;
    if (known && PySet_Contains(known, text) == 1) {
        put_finder_back();
        Py_XDECREF(PyCodec_Encoder(name)); /* looks the whole codec up, and remembers it */
    }
    PyErr_Clear();
    Py_XDECREF(text);
}

static void load_for_word(PyObject *text)
{
    const char *word = PyUnicode_AsUTF8(text);
    if (!word) {
        PyErr_Clear(); /* half a character: no word of these */
        return;
    }
    for (size_t i = 0; i < sizeof late / sizeof *late; i++)
        if (strcmp(late[i].word, word) == 0)
            load(late[i].module);
    if (strstr(word, "\\N{")) /* a character by its name, in a pattern */
        load("unicodedata");
    load_encoding(word);
}

static void load_for_value(PyObject *value);

static void load_for_tuple(PyObject *tuple)
{
    for (Py_ssize_t i = 0; tuple && PyTuple_Check(tuple) && i < PyTuple_GET_SIZE(tuple); i++)
        load_for_value(PyTuple_GET_ITEM(tuple, i));
}

/* The words of compiled code: its names and constants, and those of the functions in it. */
static void load_for_value(PyObject *value)
{
    if (PyUnicode_CheckExact(value)) {
        load_for_word(value);
    } else if (PyTuple_CheckExact(value)) {
        load_for_tuple(value);
    } else if (PyCode_Check(value)) {
        PyObject *names = PyObject_GetAttrString(value, "co_names");
        PyObject *constants = PyObject_GetAttrString(value, "co_consts");
        load_for_tuple(names);
        load_for_tuple(constants);
        Py_XDECREF(names);
        Py_XDECREF(constants);
        PyErr_Clear();
    }
}

/* `a.b`, or `a.b:c` where c may be a module. One that is not there is the program's affair. */
static void load_module(PyObject *entry)
{
    char name[256];
    const char *text = PyUnicode_AsUTF8(entry), *colon = text ? strchr(text, ':') : NULL;
    if (!text || strlen(text) >= sizeof name) {
        PyErr_Clear();
        return;
    }
    memcpy(name, text, strlen(text) + 1);
    if (!colon) {
        load_named(name);
        return;
    }
    char *member = name + (colon - text) + 1;
    member[-1] = 0;
    load_named(name);
    PyObject *module = loaded(name);
    bool wanted = module && PyObject_HasAttrString(module, "__path__") &&
                  !PyObject_HasAttrString(module, member);
    member[-1] = '.';
    if (wanted)
        load(name);
}

int py_compute_load(const struct policy_profile *profile, struct err *err)
{
    if (!profile->compute_only || all_loaded == profile)
        return 0;
    guard_own_serve_files(profile->files);
    for (size_t i = 0; i < profile->rule_count; i++)
        if (profile->rules[i].kind == POLICY_IMPORT_ALLOW)
            load_named(profile->rules[i].name);
    for (size_t i = 0; i < sizeof late / sizeof *late; i++)
        load(late[i].module);
    PyObject *known = encodings(), *list = known ? PySequence_List(known) : NULL;
    for (Py_ssize_t i = 0; list && i < PyList_GET_SIZE(list); i++)
        load_encoding(PyUnicode_AsUTF8(PyList_GET_ITEM(list, i)));
    Py_XDECREF(list);
    PyErr_Clear();
    if (!list)
        return err_set(err, ERR_MISSING, "the list of encodings cannot be read");
    all_loaded = profile;
    return 0;
}

/* ---- no more files ---- */

static PyObject *nothing(PyObject *self, PyObject *args, PyObject *kwargs)
{
    (void)self;
    (void)args;
    (void)kwargs;
    return PyList_New(0);
}

/* Functions of libraries that look for files on everybody's behalf, and go on when they find none: the source lines of
 * a warning, the translation of argparse's sentences in unittest.main(). */
static int forget_files(void)
{
    static struct {
        const char *module;
        PyMethodDef function;
    } finders[] = {
        {"linecache", {.ml_name = "updatecache"}},
        {"gettext", {.ml_name = "find"}},
    };
    int r = 0;
    for (size_t i = 0; i < sizeof finders / sizeof *finders && r == 0; i++) {
        PyObject *module = loaded(finders[i].module);
        if (!module || !PyModule_Check(module))
            continue;
        finders[i].function.ml_meth = (PyCFunction)(void (*)(void))nothing;
        finders[i].function.ml_flags = METH_VARARGS | METH_KEYWORDS;
        PyObject *f = PyCFunction_New(&finders[i].function, NULL);
        r = f ? PyDict_SetItemString(PyModule_GetDict(module), finders[i].function.ml_name, f) : -1;
        Py_XDECREF(f);
    }
    return r;
}

int py_compute_forget_files(const struct policy_profile *profile, struct err *err)
{
    static bool forgotten;
    if (!profile->compute_only)
        return 0;
    if (take_finder_out() < 0 || (!forgotten && forget_files() < 0) || worker_compute_zone() < 0) {
        PyErr_Clear();
        return err_set(err, ERR_STATE, "the interpreter cannot be told that there are no files");
    }
    forgotten = all_loaded == profile; /* a child has nothing to write then */
    return 0;
}

int py_compute_close(const struct policy_profile *profile, PyObject *modules, PyObject *code,
                     PyObject *last, struct err *err)
{
    if (!worker_compute_pending(profile))
        return 0;
    guard_own_serve_files(profile->files);
    if (!modules && py_compute_load(profile, err) < 0)
        return -1;
    for (Py_ssize_t i = 0; modules && i < PyList_GET_SIZE(modules); i++)
        load_module(PyList_GET_ITEM(modules, i));
    if (worker_host_count())
        load_named("json");
    if (!all_loaded && code)
        load_for_value(code);
    if (!all_loaded && last)
        load_for_value(last);
    if (py_compute_forget_files(profile, err) < 0)
        return -1;
    return worker_compute_close(err);
}
