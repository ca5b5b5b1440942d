/* SPDX-License-Identifier: Apache-2.0 */
/* Classes: which are the guest's own, and what a private name means on them.
 *
 * `self._x` of a class that the program defined is the program's business; `_x` of anything else is a
 * library's inside. The line between them is who made the class, so the class statement marks what it
 * makes. A class that inherits from a library's class shares its instances with that library's code:
 * there a private name is the program's only if that code does not use it. A subclass of
 * contextlib.redirect_stdout that says `_stream = 'modules'` would otherwise exchange sys.modules.
 *
 * What a class says is looked at in type.__new__, where every way of making one ends: class statements,
 * metaclasses, make_dataclass, type(X)(...). */
#include "guard_inside.h"

#include <stdlib.h>
#include <string.h>

/* ---- the classes of libraries: a set of addresses, filled before the guest's first class ---- */

static struct {
    PyTypeObject **slots;
    size_t cap, count;
} libraries;

static size_t place(PyTypeObject *const *slots, size_t cap, const PyTypeObject *type)
{
    size_t i = ((uintptr_t)type >> 4) * 0x9E3779B97F4A7C15ULL % cap;
    while (slots[i] && slots[i] != type)
        i = (i + 1) % cap;
    return i;
}

bool guard_is_library_type(PyTypeObject *type)
{
    return !(type->tp_flags & Py_TPFLAGS_HEAPTYPE) ||
           (libraries.cap && libraries.slots[place(libraries.slots, libraries.cap, type)]);
}

/* 1: added; 0: was there; -1: no memory */
static int add_library(PyTypeObject *type)
{
    if (2 * libraries.count + 2 > libraries.cap) {
        size_t cap = libraries.cap ? 2 * libraries.cap : 4096;
        PyTypeObject **slots = calloc(cap, sizeof(void *));
        if (!slots)
            return -1;
        for (size_t i = 0; i < libraries.cap; i++)
            if (libraries.slots[i])
                slots[place(slots, cap, libraries.slots[i])] = libraries.slots[i];
        free(libraries.slots);
        libraries.slots = slots;
        libraries.cap = cap;
    }
    size_t i = place(libraries.slots, libraries.cap, type);
    if (libraries.slots[i])
        return 0;
    libraries.slots[i] =
        (PyTypeObject *)Py_NewRef((PyObject *)type); /* never freed: never reused */
    libraries.count++;
    return 1;
}

/* From 3.10 on a class can be made immutable, also for libraries' own code: a guest could get that to set
 * what it is told (functools.update_wrapper). Modules change each other's classes only while they are
 * loaded. Those that are immutable by birth are left alone, and so is the parser's tree: `ast` is loaded
 * late, by traceback, and adds to it. */
void guard_lock_classes(bool lock)
{
#if PY_VERSION_HEX >= 0x030A0000
    for (size_t i = 0; i < libraries.cap; i++) {
        PyTypeObject *type = libraries.slots[i];
        if (!type || !(type->tp_flags & Py_TPFLAGS_HEAPTYPE) ||
            strncmp(type->tp_name, "ast.", 4) == 0)
            continue;
        bool locked = (type->tp_flags & Py_TPFLAGS_IMMUTABLETYPE) != 0;
        if (lock && !locked)
            type->tp_flags |= Py_TPFLAGS_IMMUTABLETYPE | GUARD_LOCKED;
        else if (!lock && (type->tp_flags & GUARD_LOCKED))
            type->tp_flags &= ~(Py_TPFLAGS_IMMUTABLETYPE | GUARD_LOCKED);
    }
#endif
}

static PyObject *subclasses;    /* type.__subclasses__ as it was before the hide */
static Py_ssize_t modules_then; /* how many modules there were when classes were last learned */

/* A class whose statement is still running carries no mark yet, but says which module it is of. */
static bool is_guests(PyTypeObject *type)
{
    PyObject *module = type->tp_flags & Py_TPFLAGS_HEAPTYPE
                           ? PyDict_GetItemString(type->tp_dict, "__module__")
                           : NULL;
    return (type->tp_flags & GUARD_OWN) ||
           (module && PyUnicode_CheckExact(module) &&
            PyUnicode_CompareWithASCIIString(module, "__main__") == 0);
}

/* Every class there is that the guest did not make: again after each import that loads something. */
int guard_learn_classes(void)
{
    PyObject *found = PyList_New(0);
    int r = found ? PyList_Append(found, (PyObject *)&PyBaseObject_Type) : -1;
    PyObject *seen = PySet_New(NULL);
    modules_then = PyDict_Size(PyImport_GetModuleDict());
    for (Py_ssize_t i = 0; r == 0 && seen && i < PyList_GET_SIZE(found); i++) {
        PyObject *type = PyList_GET_ITEM(found, i), *id = PyLong_FromVoidPtr(type);
        int known = id ? PySet_Contains(seen, id) : -1;
        if (known == 0 && PySet_Add(seen, id) == 0 && !is_guests((PyTypeObject *)type)) {
            PyObject *below = PyObject_CallOneArg(subclasses, type);
            if (!below || add_library((PyTypeObject *)type) < 0 ||
                PyList_SetSlice(found, PyList_GET_SIZE(found), PyList_GET_SIZE(found), below) < 0)
                r = -1;
            if (PyType_IsSubtype((PyTypeObject *)type, &PyModule_Type))
                ((PyTypeObject *)type)->tp_flags |= PyModule_Type.tp_flags & GUARD_CLOSED;
            Py_XDECREF(below);
        } else if (known < 0) {
            r = -1;
        }
        Py_XDECREF(id);
    }
    Py_XDECREF(found);
    Py_XDECREF(seen);
    return r;
}

/* ---- private names that a library's class uses ---- */

static PyObject *used_names; /* library class -> set of names */

static int add_code_names(PyObject *set, PyObject *code)
{
    PyObject *names = ((PyCodeObject *)code)->co_names, *consts = ((PyCodeObject *)code)->co_consts;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i);
        if (PyUnicode_GET_LENGTH(name) > 0 && PyUnicode_READ_CHAR(name, 0) == '_' &&
            PySet_Add(set, name) < 0)
            return -1;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(consts); i++)
        if (PyCode_Check(PyTuple_GET_ITEM(consts, i)) &&
            add_code_names(set, PyTuple_GET_ITEM(consts, i)) < 0)
            return -1;
    return 0;
}

/* Functions lie in a class as they are, or inside a method wrapper, a property, a cached property. */
static int add_value_names(PyObject *set, PyObject *value)
{
    static const char *const inside[] = {"__func__", "fget", "fset", "fdel", "func"};
    if (PyFunction_Check(value))
        return add_code_names(set, PyFunction_GET_CODE(value));
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
        PyObject *f = PyObject_GetAttrString(value, inside[i]);
        if (!f)
            PyErr_Clear();
        int r = f && PyFunction_Check(f) ? add_code_names(set, PyFunction_GET_CODE(f)) : 0;
        Py_XDECREF(f);
        if (r < 0)
            return r;
    }
    return 0;
}

static PyObject *names_of(PyTypeObject *type)
{
    PyObject *set = PyDict_GetItemWithError(used_names, (PyObject *)type);
    if (set || PyErr_Occurred())
        return set;
    PyObject *key, *value, *dict = PyDict_Copy(type->tp_dict);
    Py_ssize_t at = 0;
    set = PySet_New(NULL);
    int r = set && dict ? 0 : -1;
    while (r == 0 && PyDict_Next(dict, &at, &key, &value)) {
        r = PyUnicode_Check(key) ? PySet_Add(set, key) : 0;
        if (r == 0)
            r = add_value_names(set, value);
    }
    if (r == 0)
        r = PyDict_SetItem(used_names, (PyObject *)type, set);
    Py_XDECREF(dict);
    Py_XDECREF(set); /* the dict holds it */
    return r < 0 ? NULL : set;
}

static bool is_of_enum(PyTypeObject *type)
{
    PyObject *module = PyDict_GetItemString(type->tp_dict, "__module__");
    return module && PyUnicode_Check(module) &&
           PyUnicode_CompareWithASCIIString(module, "enum") == 0;
}

/* Of enum's own names these are offered to its subclasses; others (_convert_) make members of whatever
 * module they are told. */
static bool enum_offers(PyTypeObject *type, PyObject *name)
{
    static const char *const offered[] = {
        "_value_", "_name_",       "_missing_",      "_generate_next_value_", "_ignore_",
        "_order_", "_member_map_", "_member_names_", "_value2member_map_",    "_member_type_"};
    for (size_t i = 0; i < sizeof offered / sizeof *offered; i++)
        if (PyUnicode_CompareWithASCIIString(name, offered[i]) == 0)
            return is_of_enum(type);
    return false;
}

/* In a class body enum itself keeps watch over names like _x_, and adds some of its own. */
static bool enum_keeps_watch(PyTypeObject *type, PyObject *name)
{
    Py_ssize_t len = PyUnicode_GET_LENGTH(name);
    return len > 2 && PyUnicode_READ_CHAR(name, 1) != '_' &&
           PyUnicode_READ_CHAR(name, len - 1) == '_' && is_of_enum(type);
}

/* Does a library class among TYPE's bases use NAME itself? Not knowing counts as yes. */
static bool library_uses(PyObject *mro, PyObject *name,
                         bool (*is_free)(PyTypeObject *type, PyObject *name))
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(mro); i++) {
        PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(mro, i);
        if (!(base->tp_flags & Py_TPFLAGS_HEAPTYPE) || guard_is_own_type(base))
            continue;
        PyObject *names = names_of(base);
        int uses = names ? PySet_Contains(names, name) : -1;
        if (uses < 0)
            PyErr_Clear();
        if (uses != 0 && !is_free(base, name))
            return true;
    }
    return false;
}

static bool owns_on(PyTypeObject *type, PyObject *name)
{
    return guard_is_own_type(type) && type->tp_mro &&
           !library_uses(type->tp_mro, name, enum_offers);
}

bool guard_owns(PyObject *x, PyObject *name)
{
    if (Py_TYPE(x)->tp_flags & GUARD_OWN && !PyType_Check(x))
        return owns_on(Py_TYPE(x), name);
    if (PyType_Check(x)) { /* its metaclass has a say in what the name means */
        PyTypeObject *meta = Py_TYPE(x);
        return owns_on((PyTypeObject *)x, name) && meta->tp_mro &&
               !library_uses(meta->tp_mro, name, enum_offers);
    }
    if (PyMethod_Check(x))
        x = PyMethod_GET_FUNCTION(x);
    if (PyFunction_Check(x))
        return guard_is_own_function(x);
    if (Py_IS_TYPE(x, &PySuper_Type)) {
        PyObject *type = PyObject_GetAttrString(x, "__self_class__");
        bool owns = type && PyType_Check(type) && owns_on((PyTypeObject *)type, name);
        PyErr_Clear();
        Py_XDECREF(type);
        return owns;
    }
    return owns_on(Py_TYPE(x), name); /* while its class is being made */
}

/* ---- making classes ---- */

static newfunc plain_type_new;

static int refuse_member(const char *why, PyObject *key)
{
    char detail[200];
    const char *text = PyUnicode_AsUTF8(key);
    PyErr_Clear();
    snprintf(detail, sizeof detail, "%s: %.80s", why, text ? text : "?");
    guard_refuse_own("py.guard.class", detail, "choose another name for the member");
    return -1;
}

/* __match_args__ are attributes that a pattern reads by these names, past the guards. */
static int check_match_args(PyObject *key, PyObject *value)
{
    if (!PyTuple_CheckExact(value))
        return refuse_member("it must be a tuple of names", key);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); i++) {
        PyObject *name;
        if (guard_name_for(NULL, PyTuple_GET_ITEM(value, i), &name) < 0)
            return -1;
        Py_DECREF(name);
    }
    return 0;
}

/* A metaclass that answers for its classes' attributes could answer for __match_args__. */
static bool makes_classes(PyObject *bases)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(bases); i++) {
        PyObject *base = PyTuple_GET_ITEM(bases, i);
        if (PyType_Check(base) && PyType_IsSubtype((PyTypeObject *)base, &PyType_Type))
            return true;
    }
    return false;
}

static bool is_mine(PyObject *value)
{
    if (PyFunction_Check(value))
        return guard_is_own_function(value);
    return value != Py_None;
}

static int check_special(const char *text, PyObject *key, PyObject *value, PyObject *bases)
{
    const struct policy_rule *rule =
        check_ruleset_match(guard.rules, POLICY_METHOD_DENY, text, strlen(text));
    if (rule && is_mine(value)) {
        guard_refuse(rule, text);
        return -1;
    }
    bool match = strcmp(text, "__match_args__") == 0;
    if ((match || strcmp(text, "__getattribute__") == 0 || strcmp(text, "__getattr__") == 0) &&
        makes_classes(bases))
        return refuse_member("a metaclass that answers for attributes", key);
    return match ? check_match_args(key, value) : 0;
}

static int check_member(PyObject *key, PyObject *value, PyObject *bases)
{
    Py_ssize_t len;
    const char *text = PyUnicode_AsUTF8AndSize(key, &len);
    if (!text)
        return -1;
    if (guard_is_dunder(text, (size_t)len))
        return check_special(text, key, value, bases);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(bases); i++) {
        PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(bases, i);
        if (PyType_Check(base) && base->tp_mro && library_uses(base->tp_mro, key, enum_keeps_watch))
            return refuse_member("a private name of a library's class", key);
    }
    return 0;
}

static PyObject *guarded_type_new(PyTypeObject *meta, PyObject *args, PyObject *kwargs)
{
    PyObject *bases = PyTuple_GET_SIZE(args) == 3 ? PyTuple_GET_ITEM(args, 1) : NULL;
    PyObject *namespace = bases ? PyTuple_GET_ITEM(args, 2) : NULL;
    PyObject *key, *value, *copy = NULL;
    Py_ssize_t at = 0;
    int r = 0;
    if (namespace && PyDict_Check(namespace) && PyTuple_Check(bases) &&
        guard_asker() == GUARD_GUEST) {
        const struct policy_rule *rule =
            makes_classes(bases) ? check_ruleset_construct(guard.rules, POLICY_CONSTRUCT_METACLASS)
                                 : NULL;
        if (rule)
            return guard_refuse(rule, "a class that makes classes");
        copy = PyDict_Copy(namespace);
        r = copy ? 0 : -1;
        while (r == 0 && PyDict_Next(copy, &at, &key, &value))
            if (PyUnicode_Check(key) && PyUnicode_GET_LENGTH(key) > 1 &&
                PyUnicode_READ_CHAR(key, 0) == '_')
                r = check_member(key, value, bases);
        Py_XDECREF(copy);
    }
    return r < 0 ? NULL : plain_type_new(meta, args, kwargs);
}

static PyObject *build_class; /* builtins.__build_class__ */

PyObject *guard_build_class(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                            PyObject *kwnames)
{
    (void)self;
    guard.building++;
    PyObject *type = PyObject_Vectorcall(build_class, args, (size_t)nargs, kwnames);
    guard.building--;
    if (type)
        guard_mark_own(type);
    return type;
}

void guard_learn_if_loaded(void)
{
    if (PyDict_Size(PyImport_GetModuleDict()) != modules_then && guard_learn_classes() < 0)
        PyErr_Clear();
}

void guard_mark_own(PyObject *type)
{
    guard_learn_if_loaded();
    /* a metaclass may return what it likes, also a library's class */
    if (PyType_Check(type) && !guard_is_library_type((PyTypeObject *)type))
        ((PyTypeObject *)type)->tp_flags |= GUARD_OWN;
}

int guard_class_init(void)
{
    PyObject *builtins = PyImport_ImportModule("builtins");
    build_class = builtins ? PyObject_GetAttrString(builtins, "__build_class__") : NULL;
    Py_XDECREF(builtins);
    subclasses = PyObject_GetAttrString((PyObject *)&PyType_Type, "__subclasses__");
    used_names = PyDict_New();
    return build_class && subclasses && used_names ? 0 : -1;
}

/* From now on libraries' classes stay as they are, whoever asks; those that are loaded later too. */
int guard_class_close(void)
{
    plain_type_new = PyType_Type.tp_new;
    if (guard_learn_classes() < 0)
        return -1;
    guard_lock_classes(true);
    for (size_t i = 0; i < libraries.cap; i++) {
        PyTypeObject *type = libraries.slots[i];
        /* metaclasses have copies of type's slots */
        if (type && PyType_IsSubtype(type, &PyType_Type) && type->tp_new == plain_type_new)
            type->tp_new = guarded_type_new;
    }
    return 0;
}
