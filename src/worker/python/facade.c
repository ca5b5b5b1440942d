/* SPDX-License-Identifier: Apache-2.0 */
/* An allowed module is a door to all that it imported: typing.sys.modules['os']. A facade answers a read
 * with the module's own member if it is public, and the answer is kept, so a module is asked once a
 * name. The type has no dict, no garbage collector's view of it and no raw words: `from m import x`
 * falls back to sys.modules by the module's __name__, so a plain read of that finds nothing. */
#include "facade.h"

#include "check/closed_members.h"

#include "guard_inside.h"
#include "guard_own.h"

#include <string.h>

struct facade {
    PyObject_HEAD;
    PyObject *module;  /* the true one */
    PyObject *name;    /* str */
    PyObject *members; /* dict: what was shown before */
    PyObject *all;     /* its __all__ as a frozenset, or NULL */
    bool bare;         /* only its sub-modules are allowed, not the module itself */
};

static PyTypeObject facade_type;
static PyObject *facades; /* name -> facade */

bool facade_check(PyObject *x)
{
    return Py_IS_TYPE(x, &facade_type);
}

void facade_forget(void)
{
    if (facades)
        PyDict_Clear(facades);
}

/* ---- what is shown ---- */

/* Do rules name the members of MODULE that may be seen? Then the others may not. */
static bool has_listed_members(const char *module, size_t len)
{
    const struct policy_profile *p = check_ruleset_profile(guard.rules);
    for (size_t i = 0; i < p->rule_count; i++)
        if (p->rules[i].kind == POLICY_MEMBER_ALLOW &&
            strncmp(p->rules[i].name, module, len) == 0 && p->rules[i].name[len] == '.' &&
            !strchr(p->rules[i].name + len + 1, '.'))
            return true;
    return false;
}

/* What there is of a module whose members are listed: the first LEN letters of MEMBER are its name. */
static const char *hint_of(const char *member, size_t len)
{
    const struct policy_rule *rule =
        check_ruleset_match(guard.rules, POLICY_IMPORT_ALLOW, member, len);
    return rule && rule->hint[0] ? rule->hint : "leave it out";
}

/* MEMBER is `module.name`, LEN of it the module. 0, or -1: refused, and said so unless QUIET. */
static int check_member(const char *member, size_t len, bool quiet)
{
    const struct policy_rule *rule =
        check_ruleset_match(guard.rules, POLICY_MEMBER_DENY, member, strlen(member));
    const char *hint = NULL;
    if (has_listed_members(member, len) &&
        !check_ruleset_match(guard.rules, POLICY_MEMBER_ALLOW, member, strlen(member)))
        hint = hint_of(member, len);
    const char *closed =
        check_closed_member(member, len, member + len + 1, strlen(member + len + 1));
    if (closed)
        hint = closed;
    if (rule && !quiet)
        guard_refuse(rule, member);
    else if (hint && !quiet)
        guard_refuse_own("py.guard.member", member, hint);
    return rule || hint ? -1 : 0;
}

static PyObject *facade_of(PyObject *module, PyObject *name, bool bare);

/* The module of that name that is loaded, as guests get it; borrowed. */
static PyObject *loaded(PyObject *name)
{
    const char *text = PyUnicode_AsUTF8(name);
    if (text && guard_own_has(text))
        return guard_own_module(text);
    return text ? PyDict_GetItemWithError(PyImport_GetModuleDict(), name) : NULL;
}

static bool may_import(PyObject *name, bool quiet);

/* A module that hangs in another is shown only if it is its own sub-module and may be imported. */
static PyObject *show_module(struct facade *f, PyObject *value, PyObject *attribute,
                             const char *member)
{
    PyObject *full = PyUnicode_FromFormat("%U.%U", f->name, attribute);
    PyObject *shown = NULL;
    if (full && loaded(full) == value) {
        if (may_import(full, false))
            shown = facade_of(value, full, false);
    } else if (!PyErr_Occurred()) {
        guard_refuse_own("py.guard.module", member,
                         "import the module itself, if the profile lists it");
    }
    Py_XDECREF(full);
    return shown;
}

/* A program may put a stream of its own in the place of sys's, as redirect_stdout does: what is read there is what
 * was put there last. */
bool facade_may_set(PyObject *facade, PyObject *name)
{
    static const char *const streams[] = {"stdin", "stdout", "stderr"};
    struct facade *f = (struct facade *)facade;
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++)
        if (PyUnicode_CompareWithASCIIString(name, streams[i]) == 0)
            return PyUnicode_CompareWithASCIIString(f->name, "sys") == 0;
    return false;
}

static PyObject *unknown(struct facade *f, PyObject *name)
{
    PyErr_Format(PyExc_AttributeError, "module '%U' has no attribute '%U'", f->name, name);
    return NULL;
}

static PyObject *resolve(struct facade *f, PyObject *name)
{
    char member[256];
    const char *module = PyUnicode_AsUTF8(f->name), *text = PyUnicode_AsUTF8(name);
    if (!module || !text)
        return NULL;
    PyObject *value = PyObject_GetAttr(f->module, name);
    if (!value) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError))
            return NULL;
        PyErr_Clear();
        return unknown(f, name);
    }
    snprintf(member, sizeof member, "%s.%s", module, text);
    PyObject *shown = NULL;
    if (PyModule_Check(value)) {
        shown = show_module(f, value, name, member);
    } else if (f->bare) {
        unknown(f, name);
    } else {
        bool listed = has_listed_members(module, strlen(module));
        if (check_member(member, strlen(module), false) == 0) {
            if (!f->all || listed || PySet_Contains(f->all, name) == 1)
                shown = guard_closed(value) ? Py_NewRef(value) : NULL;
            else
                unknown(f, name);
        }
    }
    Py_DECREF(value);
    return shown;
}

/* ---- the type ---- */

/* The public names, for `from m import *`. */
static PyObject *public_names(struct facade *f)
{
    PyObject *names = f->all ? PySequence_List(f->all) : PyDict_Keys(PyModule_GetDict(f->module));
    PyObject *shown = PyList_New(0);
    for (Py_ssize_t i = 0; names && shown && i < PyList_GET_SIZE(names); i++) {
        PyObject *name = PyList_GET_ITEM(names, i);
        PyObject *value = NULL;
        if (PyUnicode_Check(name) && PyUnicode_GET_LENGTH(name) &&
            PyUnicode_READ_CHAR(name, 0) != '_')
            value = PyObject_GetAttr((PyObject *)f, name);
        if (value && PyList_Append(shown, name) < 0)
            Py_CLEAR(shown);
        PyErr_Clear(); /* what is not shown is left out */
        Py_XDECREF(value);
    }
    Py_XDECREF(names);
    return shown;
}

static PyObject *getattro(PyObject *self, PyObject *name)
{
    struct facade *f = (struct facade *)self;
    PyObject *value = PyDict_GetItemWithError(f->members, name);
    if (value)
        return Py_NewRef(value);
    if (PyErr_Occurred())
        return NULL;
    if (PyUnicode_GET_LENGTH(name) == 0 || PyUnicode_READ_CHAR(name, 0) == '_') {
        if (PyUnicode_CompareWithASCIIString(name, "__all__") == 0)
            return public_names(f);
        return unknown(f, name);
    }
    value = resolve(f, name);
    if (value && !facade_may_set(self, name) && PyDict_SetItem(f->members, name, value) < 0)
        Py_CLEAR(value);
    return value;
}

static int setattro(PyObject *self, PyObject *name, PyObject *value)
{
    int r = guard_may_set(self, name);
    return r < 0 ? r : PySys_SetObject(PyUnicode_AsUTF8(name), value); /* one of its streams */
}

PyObject *facade_word(PyObject *facade, PyObject *name)
{
    struct facade *f = (struct facade *)facade;
    if (PyUnicode_CompareWithASCIIString(name, "__name__") == 0)
        return Py_NewRef(f->name);
    PyObject *doc = PyUnicode_CompareWithASCIIString(name, "__doc__") == 0
                        ? PyObject_GetAttr(f->module, name)
                        : NULL;
    if (doc && !PyUnicode_CheckExact(doc))
        Py_SETREF(doc, Py_NewRef(Py_None));
    return doc || PyErr_Occurred() ? doc : unknown(f, name);
}

static PyObject *repr(PyObject *self)
{
    return PyUnicode_FromFormat("<module '%U'>", ((struct facade *)self)->name);
}

static void dealloc(PyObject *self)
{
    struct facade *f = (struct facade *)self;
    Py_XDECREF(f->module);
    Py_XDECREF(f->name);
    Py_XDECREF(f->members);
    Py_XDECREF(f->all);
    PyObject_Free(self);
}

static PyTypeObject facade_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "module",
    .tp_basicsize = sizeof(struct facade),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_dealloc = dealloc,
    .tp_repr = repr,
    .tp_getattro = getattro,
    .tp_setattro = setattro,
};

int facade_init(void)
{
    facades = PyDict_New();
    return facades ? PyType_Ready(&facade_type) : -1;
}

/* ---- making one ---- */

static PyObject *facade_of(PyObject *module, PyObject *name, bool bare)
{
    PyObject *known = PyDict_GetItemWithError(facades, name);
    if (known || PyErr_Occurred())
        return known ? Py_NewRef(known) : NULL;
    const char *text = PyUnicode_AsUTF8(name);
    if (!text || guard_library(module, text) < 0)
        return NULL;
    struct facade *f = PyObject_New(struct facade, &facade_type);
    if (!f)
        return NULL;
    f->module = Py_NewRef(module);
    f->name = Py_NewRef(name);
    f->members = PyDict_New();
    f->bare = bare;
    PyObject *all = PyDict_GetItemString(PyModule_GetDict(module), "__all__");
    f->all = all ? PyFrozenSet_New(all) : NULL;
    if (!f->members || (all && !f->all) || PyDict_SetItem(facades, name, (PyObject *)f) < 0) {
        Py_DECREF(f);
        return NULL;
    }
    return (PyObject *)f;
}

PyObject *facade_has_shown(PyObject *module, PyObject *name)
{
    struct facade *f = (struct facade *)PyDict_GetItemWithError(facades, module);
    return f ? PyDict_GetItemWithError(f->members, name) : NULL;
}

/* ---- importing ---- */

/* Every step of a.b.c is a member of the one before. */
static bool may_import(PyObject *name, bool quiet)
{
    char step[256];
    Py_ssize_t len;
    const char *text = PyUnicode_AsUTF8AndSize(name, &len);
    const struct policy_rule *rule =
        text ? check_ruleset_import(guard.rules, text, (size_t)len, NULL) : NULL;
    if (rule && !quiet)
        guard_refuse(rule, text);
    if (!text || rule)
        return false;
    if ((size_t)len >= sizeof step) {
        PyErr_SetString(PyExc_ImportError, "the module's name is too long");
        return false;
    }
    for (const char *dot = strchr(text, '.'); dot; dot = strchr(dot + 1, '.')) {
        size_t next = strcspn(dot + 1, ".");
        size_t end = (size_t)(dot - text) + 1 + next;
        memcpy(step, text, end);
        step[end] = 0;
        if (check_member(step, (size_t)(dot - text), quiet) < 0)
            return false;
    }
    return true;
}

/* The names after `from m import`: exact strings; a name that is a sub-module is imported if it may be. */
static int import_parts(PyObject *name, PyObject *parts)
{
    PyObject *list = PySequence_List(parts);
    int r = list ? 0 : -1;
    for (Py_ssize_t i = 0; r == 0 && i < PyList_GET_SIZE(list); i++) {
        PyObject *part = PyList_GET_ITEM(list, i);
        if (!PyUnicode_CheckExact(part)) {
            PyErr_SetString(PyExc_TypeError, "Item in ``from list'' must be str");
            r = -1;
            break;
        }
        PyObject *module = loaded(name);
        PyObject *full = module ? PyUnicode_FromFormat("%U.%U", name, part) : NULL;
        if (full && PyUnicode_READ_CHAR(part, 0) != '_' && PyUnicode_READ_CHAR(part, 0) != '*' &&
            PyObject_HasAttrString(module, "__path__") && !PyObject_HasAttr(module, part) &&
            may_import(full, true)) {
            PyObject *below = PyImport_Import(full);
            if (!below && PyErr_ExceptionMatches(PyExc_ModuleNotFoundError))
                PyErr_Clear(); /* then it is no member at all, and the statement says so */
            r = below || !PyErr_Occurred() ? 0 : -1;
            Py_XDECREF(below);
        }
        r = full && r == 0 && !PyErr_Occurred() ? 0 : -1;
        Py_XDECREF(full);
    }
    Py_XDECREF(list);
    return r;
}

/* Ours of that name, as CPython gives it: the first of a.b.c. NULL: there is none, or with an exception. */
static PyObject *import_own(PyObject *name)
{
    char first[64];
    const char *text = PyUnicode_AsUTF8(name);
    size_t len = text ? strcspn(text, ".") : 0;
    if (!text || !guard_own_has(text) || len >= sizeof first)
        return NULL;
    memcpy(first, text, len);
    first[len] = 0;
    PyObject *module = guard_own_module(first);
    return module ? Py_NewRef(module) : NULL;
}

static PyObject *import_true(PyObject *name)
{
    Py_ssize_t before = PyDict_Size(PyImport_GetModuleDict());
    int building = guard.building;
    if (!PyDict_Contains(PyImport_GetModuleDict(), name))
        guard_lock_classes(false);
    guard.building = 0; /* classes that it makes meanwhile are not the guest's */
    PyObject *module = PyImport_ImportModuleLevelObject(name, NULL, NULL, NULL, 0);
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (PyDict_Size(PyImport_GetModuleDict()) != before && guard_learn_classes() < 0)
        Py_CLEAR(module);
    if (type)
        PyErr_Restore(type, value, traceback);
    guard_lock_classes(true);
    guard.building = building;
    return module;
}

static PyObject *import_real(PyObject *name)
{
    PyObject *own = import_own(name);
    return own || PyErr_Occurred() ? own : import_true(name);
}

void py_guard_load(const char *module)
{
    PyObject *name = PyUnicode_FromString(module);
    bool ours = guard_own_has(module); /* needs no file, but may as well be there */
    PyObject *m = !name ? NULL : guard.hidden || ours ? import_real(name) : PyImport_Import(name);
    if (m && strcmp(module, "zoneinfo") == 0 && guard_close_zoneinfo(m) < 0)
        Py_CLEAR(m); /* then a program that asks for it is told why */
    PyErr_Clear();
    Py_XDECREF(name);
    Py_XDECREF(m);
}

/* unittest.main is a function for whoever reads it and a module for whoever imports it: only what can be
 * read as a member is that member. */
static bool is_where_it_says(PyObject *module, PyObject *name)
{
    Py_ssize_t end = PyUnicode_GET_LENGTH(name);
    Py_ssize_t dot = PyUnicode_FindChar(name, '.', 0, end, -1);
    if (dot < 0)
        return true;
    PyObject *above = PyUnicode_Substring(name, 0, dot),
             *last = PyUnicode_Substring(name, dot + 1, end);
    PyObject *parent = above ? loaded(above) : NULL;
    PyObject *member = parent && last ? PyObject_GetAttr(parent, last) : NULL;
    bool is = member == module;
    if (!member)
        PyErr_Clear();
    Py_XDECREF(above);
    Py_XDECREF(last);
    Py_XDECREF(member);
    return is;
}

static PyObject *import_guarded(PyObject *name, PyObject *parts)
{
    bool some = parts && parts != Py_None && PyObject_IsTrue(parts) == 1;
    PyErr_Clear();
    PyObject *top = import_real(name), *shown = NULL; /* as CPython gives it: the first of a.b.c */
    if (!top)
        return NULL;
    if (some) {
        PyObject *module = loaded(name);
        if (module && is_where_it_says(module, name) && import_parts(name, parts) == 0)
            shown = facade_of(module, name, false);
    } else {
        Py_ssize_t dot = PyUnicode_FindChar(name, '.', 0, PyUnicode_GET_LENGTH(name), 1);
        PyObject *first = PyUnicode_Substring(name, 0, dot < 0 ? PyUnicode_GET_LENGTH(name) : dot);
        if (first)
            shown = facade_of(top, first, !may_import(first, true));
        Py_XDECREF(first);
    }
    Py_DECREF(top);
    if (!shown && !PyErr_Occurred())
        PyErr_Format(PyExc_ImportError, "cannot import '%U'", name);
    return shown;
}

/* C code of the interpreter imports through the __import__ of whoever called it (datetime.strptime loads
 * _strptime), always with these arguments; the answer is thrown away and taken from sys.modules instead.
 * A guest cannot make that call, since it never holds its own namespace; and would get nothing. */
static bool asked_by_interpreter(PyObject *args)
{
    return PyTuple_GET_SIZE(args) == 5 && PyTuple_GET_ITEM(args, 1) == guard.globals &&
           PyTuple_GET_ITEM(args, 2) == guard.globals &&
           PyList_CheckExact(PyTuple_GET_ITEM(args, 3)) &&
           PyList_GET_SIZE(PyTuple_GET_ITEM(args, 3)) == 0;
}

PyObject *facade_import(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *words[] = {(char *)"name",     (char *)"globals", (char *)"locals",
                            (char *)"fromlist", (char *)"level",   NULL};
    PyObject *name, *globals = NULL, *locals = NULL, *parts = NULL;
    int level = 0;
    (void)self;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "U|OOOi:__import__", words, &name, &globals,
                                     &locals, &parts, &level))
        return NULL;
    if (level != 0) {
        const struct policy_rule *rule =
            check_ruleset_construct(guard.rules, POLICY_CONSTRUCT_RELATIVE_IMPORT);
        return rule ? guard_refuse(rule, "relative import")
                    : guard_refuse_own("py.guard.relative", "relative import",
                                       "a program of one file is in no package");
    }
    if (asked_by_interpreter(args)) {
        PyObject *real = import_true(name); /* Python's own also where guests have ours */
        Py_XDECREF(real);
        return real ? Py_NewRef(Py_None) : NULL;
    }
    PyObject *exact = PyUnicode_FromObject(name);
    PyObject *module = exact && may_import(exact, false) ? import_guarded(exact, parts) : NULL;
    Py_XDECREF(exact);
    return module;
}
