/* SPDX-License-Identifier: Apache-2.0 */
/* Closes the interpreter itself. A tree shows where a program writes `.gi_frame`; it does not show a format
 * field, a pattern's positional arguments, or a library function that looks up what it is told. So the
 * attributes that lead from a value to a namespace are taken off the types: whoever asks, in whatever
 * way, there is nothing there.
 *
 * It is done to the types' dicts, once, in a process that serves one guest; C code reads the structs and is
 * not concerned. Nothing here asks who is asking: C functions run in the name of whatever Python function
 * called them, and a guest can get a library to call one (functools.partial as a property's getter). What
 * libraries need stays, in a form that gives nothing away:
 *   frame.f_globals   a new dict with __name__ alone: namedtuple, typing and enum ask for it
 *   frame.f_back      None
 *   type.__subclasses__   the true list for abstract base classes, which need it; else empty
 *   function.__code__, __defaults__   to be read (inspect.signature), not to be set */
#include "guard_inside.h"
#include "guard_slots.h"

#include "opaque.h"

#include <string.h>

/* What becomes of an attribute. */
enum fate {
    GONE,      /* AttributeError, to read and to set */
    READ_ONLY, /* as before, but not to be set */
    NAMES,     /* a namespace of which only the names are told */
    NOTHING,   /* None */
    NO_CLOSED, /* as before, unless the value is of a closed type */
    DEFAULTS   /* to be set on the guest's own functions and by namedtuple alone */
};

struct hidden {
    PyTypeObject *type;
    const char *name;
    enum fate fate;
    PyObject *before; /* the descriptor that was there */
    PyGetSetDef def;
};

static struct hidden hide[] = {
    {&PyFunction_Type, "__globals__", GONE},
    {&PyFunction_Type, "__closure__", GONE},
    {&PyFunction_Type, "__builtins__", GONE},
    {&PyFunction_Type, "__code__", READ_ONLY},
    {&PyFunction_Type, "__defaults__", DEFAULTS},
    {&PyFunction_Type, "__kwdefaults__", DEFAULTS},
    {&PyFrame_Type, "f_globals", NAMES},
    {&PyFrame_Type, "f_back", NOTHING},
    {&PyFrame_Type, "f_locals", GONE},
    {&PyFrame_Type, "f_builtins", GONE},
    {&PyFrame_Type, "f_trace", GONE},
    {&PyFrame_Type, "f_lineno", READ_ONLY},
    {&PyGen_Type, "gi_frame", GONE},
    {&PyGen_Type, "gi_code", GONE},
    {&PyGen_Type, "gi_yieldfrom", GONE},
    {&PyCoro_Type, "cr_frame", GONE},
    {&PyCoro_Type, "cr_code", GONE},
    {&PyCoro_Type, "cr_await", GONE},
    {&PyCoro_Type, "cr_origin", NOTHING},
    {&PyAsyncGen_Type, "ag_frame", GONE},
    {&PyAsyncGen_Type, "ag_code", GONE},
    {&PyAsyncGen_Type, "ag_await", GONE},
    {&PyCell_Type, "cell_contents", GONE},
    {&PyCFunction_Type, "__self__", NO_CLOSED},
    {NULL, "obj", NO_CLOSED}, /* of AttributeError, from 3.10 on */
};

static PyObject *dict_of(PyTypeObject *type) /* borrowed */
{
#if PY_VERSION_HEX >= 0x030C0000
    PyObject *dict = PyType_GetDict(type);
    Py_XDECREF(dict);
    return dict;
#else
    return type->tp_dict;
#endif
}

static PyObject *absent(PyObject *x, const struct hidden *v)
{
    PyErr_Format(PyExc_AttributeError, "'%.100s' object has no attribute '%s'", Py_TYPE(x)->tp_name,
                 v->name);
    return NULL;
}

static PyObject *as_before(PyObject *x, const struct hidden *v)
{
    return Py_TYPE(v->before)->tp_descr_get(v->before, x, (PyObject *)Py_TYPE(x));
}

static PyObject *names_alone(PyObject *x)
{
    static const char *const told[] = {"__name__", "__unittest"};
    PyObject *globals = PyFrame_Check(x) ? guard_frame_globals((PyFrameObject *)x) : NULL;
    PyObject *copy = PyDict_New();
    for (size_t i = 0; copy && globals && i < sizeof told / sizeof *told; i++) {
        PyObject *value = PyDict_GetItemString(globals, told[i]);
        if (value && !guard_is_closed(value) && PyDict_SetItemString(copy, told[i], value) < 0)
            Py_CLEAR(copy);
    }
    return copy;
}

/* A library module that is being loaded sees everything: types looks at a cell once, numpy gives functions
 * new code. No code of the guest's runs meanwhile but in frames of its own, which are found first. */
static bool is_loading(void)
{
    return guard_asker() == GUARD_LOADING;
}

static PyObject *get(PyObject *x, void *closure)
{
    const struct hidden *v = closure;
    if (v->fate != READ_ONLY && v->fate != DEFAULTS && is_loading())
        return as_before(x, v);
    switch (v->fate) {
    case GONE:
        return absent(x, v);
    case NAMES:
        return names_alone(x);
    case NOTHING:
        Py_RETURN_NONE;
    case READ_ONLY:
    case DEFAULTS:
        return as_before(x, v);
    case NO_CLOSED:
        break;
    }
    PyObject *value = as_before(x, v);
    if (value && guard_is_closed(value)) {
        Py_DECREF(value);
        return absent(x, v);
    }
    return value;
}

/* namedtuple gives its function a namespace of this name. */
bool guard_is_namedtuple(PyObject *function)
{
    PyObject *name = PyDict_GetItemString(PyFunction_GET_GLOBALS(function), "__name__");
    const char *text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
    if (!text)
        PyErr_Clear();
    return text && strncmp(text, "namedtuple_", 11) == 0;
}

static int set(PyObject *x, PyObject *value, void *closure)
{
    const struct hidden *v = closure;
    /* the interpreter itself writes AttributeError.obj in this way */
    if (v->fate == NO_CLOSED ||
        (v->fate == DEFAULTS && (guard_is_own_function(x) || guard_is_namedtuple(x))) ||
        is_loading())
        return Py_TYPE(v->before)->tp_descr_set(v->before, x, value);
    PyErr_Format(PyExc_AttributeError, "attribute '%s' of '%.100s' objects is not writable",
                 v->name, Py_TYPE(x)->tp_name);
    return -1;
}

static int hide_one(struct hidden *v)
{
    if (!v->type)
        v->type = (PyTypeObject *)PyExc_AttributeError;
    PyObject *dict = dict_of(v->type);
    v->before = dict ? PyDict_GetItemString(dict, v->name) : NULL;
    if (!v->before)
        return 0; /* this version has no such attribute */
    Py_INCREF(v->before);
    v->def = (PyGetSetDef){v->name, get, set, NULL, v};
    PyObject *descr = PyDescr_NewGetSet(v->type, &v->def);
    int r = descr ? PyDict_SetItemString(dict, v->name, descr) : -1;
    Py_XDECREF(descr);
    PyType_Modified(v->type);
    return r;
}

/* ---- methods ---- */

static PyObject *plain_subclasses, *plain_format, *plain_format_map, *abstract;

static PyObject *subclasses(PyObject *type, PyObject *none)
{
    (void)none;
    if (PyType_Check(abstract) && PyObject_TypeCheck(type, (PyTypeObject *)abstract))
        return PyObject_CallOneArg(plain_subclasses, type);
    return PyList_New(0);
}

/* One part of a field name: an attribute after a dot, a key in brackets. 0, or -1 after refusing. */
static int check_part(PyObject *format, Py_ssize_t from, Py_ssize_t to, bool key)
{
    PyObject *name = NULL, *part = PyUnicode_Substring(format, from, to);
    Py_ssize_t len;
    const char *text = part ? PyUnicode_AsUTF8AndSize(part, &len) : NULL;
    int r = text ? 0 : -1;
    if (text && key) {
        const struct policy_rule *rule = check_ruleset_key(guard.rules, text, (size_t)len);
        r = rule ? (guard_refuse(rule, text), -1) : 0;
    } else if (text) {
        r = guard_name_for(NULL, part, &name);
    }
    Py_XDECREF(name);
    Py_XDECREF(part);
    return r;
}

/* A field name begins at FROM; *ret_end: where conversion, format or the closing brace begin. */
static int check_field(PyObject *format, Py_ssize_t from, Py_ssize_t end, Py_ssize_t *ret_end)
{
    Py_ssize_t i = from, start = -1;
    bool key = false;
    for (; i < end; i++) {
        Py_UCS4 c = PyUnicode_READ_CHAR(format, i);
        if (key) { /* anything goes up to the bracket */
            if (c != ']')
                continue;
            if (check_part(format, start, i, true) < 0)
                return -1;
            key = false;
            start = -1;
        } else if (c == '.' || c == '[' || c == '!' || c == ':' || c == '}' || c == '{') {
            if (start >= 0 && check_part(format, start, i, false) < 0)
                return -1;
            if (c != '.' && c != '[')
                break;
            key = c == '[';
            start = i + 1;
        }
    }
    *ret_end = i;
    return 0;
}

/* Looks at every field of a format text, also of those in format specifications. */
int guard_check_format(PyObject *format)
{
    Py_ssize_t end = PyUnicode_GET_LENGTH(format), depth = 0;
    for (Py_ssize_t i = 0; i < end; i++) {
        Py_UCS4 c = PyUnicode_READ_CHAR(format, i);
        if (c == '}' && depth > 0) {
            depth--;
        } else if (c == '{') {
            if (depth == 0 && i + 1 < end && PyUnicode_READ_CHAR(format, i + 1) == '{') {
                i++;
                continue;
            }
            Py_ssize_t at;
            if (check_field(format, i + 1, end, &at) < 0)
                return -1;
            depth++;
            i = at - 1;
        }
    }
    return 0;
}

static PyObject *with_self(PyObject *function, PyObject *self, PyObject *args, PyObject *kwargs)
{
    PyObject *bound = Py_TYPE(function)->tp_descr_get(function, self, (PyObject *)Py_TYPE(self));
    PyObject *result = bound ? PyObject_Call(bound, args, kwargs) : NULL;
    Py_XDECREF(bound);
    return result;
}

/* A field reads attributes in C: of what no guest code should hold it reads none. */
static int check_arguments(PyObject *args, PyObject *kwargs)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++)
        if (!guard_closed(PyTuple_GET_ITEM(args, i)))
            return -1;
    while (kwargs && PyDict_Next(kwargs, &at, &key, &value))
        if (!guard_closed(value))
            return -1;
    return 0;
}

static PyObject *format(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return guard_check_format(self) < 0 || check_arguments(args, kwargs) < 0
               ? NULL
               : with_self(plain_format, self, args, kwargs);
}

static PyObject *format_map(PyObject *self, PyObject *mapping)
{
    if (guard_check_format(self) < 0)
        return NULL;
    PyObject *args = PyTuple_Pack(1, mapping);
    PyObject *result = args ? with_self(plain_format_map, self, args, NULL) : NULL;
    Py_XDECREF(args);
    return result;
}

static int hide_method(PyTypeObject *type, PyMethodDef *def, PyObject **ret_before)
{
    PyObject *dict = dict_of(type), *descr = PyDescr_NewMethod(type, def);
    *ret_before = dict ? PyDict_GetItemString(dict, def->ml_name) : NULL;
    Py_XINCREF(*ret_before);
    int r = *ret_before && descr ? PyDict_SetItemString(dict, def->ml_name, descr) : -1;
    Py_XDECREF(descr);
    PyType_Modified(type);
    return r;
}

static int hide_methods(void)
{
    static PyMethodDef defs[] = {
        {"__subclasses__", subclasses, METH_NOARGS, NULL},
        {"format", (PyCFunction)(void (*)(void))format, METH_VARARGS | METH_KEYWORDS, NULL},
        {"format_map", format_map, METH_O, NULL},
    };
    PyObject *abc = PyImport_ImportModule("abc");
    abstract = abc ? PyObject_GetAttrString(abc, "ABCMeta") : NULL;
    Py_XDECREF(abc);
    if (!abstract)
        return -1;
    if (hide_method(&PyType_Type, &defs[0], &plain_subclasses) < 0 ||
        hide_method(&PyUnicode_Type, &defs[1], &plain_format) < 0)
        return -1;
    return hide_method(&PyUnicode_Type, &defs[2], &plain_format_map);
}

/* ---- a class's dict ---- */

/* A class shows its dict through a read-only proxy, but a comparison or `|` hands the true dict to the other
 * operand, which may be a guest's object: writing there would change a built-in class under every library.
 * They get a copy. */
struct proxy { /* as CPython has it, all versions */
    PyObject_HEAD;
    PyObject *mapping;
};

static PyObject *copy_behind(PyObject *x)
{
    PyObject *mapping = Py_IS_TYPE(x, &PyDictProxy_Type) ? ((struct proxy *)x)->mapping : x;
    return mapping != x && PyDict_Check(mapping) ? PyDict_Copy(mapping) : Py_NewRef(mapping);
}

static PyObject *proxy_compare(PyObject *x, PyObject *y, int op)
{
    PyObject *copy = copy_behind(x);
    PyObject *result = copy ? PyObject_RichCompare(copy, y, op) : NULL;
    Py_XDECREF(copy);
    return result;
}

static PyObject *proxy_or(PyObject *x, PyObject *y)
{
    PyObject *left = copy_behind(x), *right = left ? copy_behind(y) : NULL;
    PyObject *result = right ? PyNumber_Or(left, right) : NULL;
    Py_XDECREF(left);
    Py_XDECREF(right);
    return result;
}

#define COMPARE(name, op)                                                                          \
    static PyObject *proxy_##name(PyObject *x, PyObject *y)                                        \
    {                                                                                              \
        return proxy_compare(x, y, op);                                                            \
    }
COMPARE(eq, Py_EQ)
COMPARE(ne, Py_NE)
COMPARE(lt, Py_LT)
COMPARE(le, Py_LE)
COMPARE(gt, Py_GT)
COMPARE(ge, Py_GE)

static PyObject *proxy_ror(PyObject *x, PyObject *y)
{
    return proxy_or(y, x);
}

/* The slots, and the methods that wrap them: those remember the function that was there. */
static int close_proxies(void)
{
    static PyMethodDef defs[] = {
        {"__eq__", proxy_eq, METH_O, NULL}, {"__ne__", proxy_ne, METH_O, NULL},
        {"__lt__", proxy_lt, METH_O, NULL}, {"__le__", proxy_le, METH_O, NULL},
        {"__gt__", proxy_gt, METH_O, NULL}, {"__ge__", proxy_ge, METH_O, NULL},
        {"__or__", proxy_or, METH_O, NULL}, {"__ror__", proxy_ror, METH_O, NULL},
    };
    PyDictProxy_Type.tp_richcompare = proxy_compare;
    if (PyDictProxy_Type.tp_as_number)
        PyDictProxy_Type.tp_as_number->nb_or = proxy_or;
    for (size_t i = 0; i < sizeof defs / sizeof *defs; i++) {
        PyObject *before, *dict = dict_of(&PyDictProxy_Type);
        if (PyDict_GetItemString(dict, defs[i].ml_name) &&
            hide_method(&PyDictProxy_Type, &defs[i], &before) < 0)
            return -1;
    }
    return 0;
}

/* ---- constructors: no code without a judge ---- */

static newfunc plain_function_new, plain_code_new;

static PyObject *closed_new(PyTypeObject *type, PyObject *args, PyObject *kwargs, newfunc plain)
{
    return is_loading()
               ? plain(type, args, kwargs)
               : guard_refuse_own("py.guard.code", type->tp_name, "write the function itself");
}

static PyObject *function_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    return closed_new(type, args, kwargs, plain_function_new);
}

static PyObject *code_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    return closed_new(type, args, kwargs, plain_code_new);
}

static void close_types(void)
{
    static PyTypeObject *const closed[] = {
        &PyModule_Type, &PyFrame_Type,   &PyCode_Type, &PyTraceBack_Type,
        &PyCell_Type,   &PyCapsule_Type, NULL};
    for (size_t i = 0; closed[i]; i++) {
        closed[i]->tp_flags |= GUARD_CLOSED;
        PyType_Modified(closed[i]);
    }
    plain_function_new = PyFunction_Type.tp_new;
    plain_code_new = PyCode_Type.tp_new;
    PyFunction_Type.tp_new = function_new;
    PyCode_Type.tp_new = code_new;
}

int guard_hide(void)
{
    close_types();
    guard_close_bytearray();
    guard_close_functions();
    if (guard_close_slots() < 0)
        return -1;
    if (close_proxies() < 0 || guard_close_hooks() < 0 || opaque_close() < 0)
        return -1;
    for (size_t i = 0; i < sizeof hide / sizeof *hide; i++)
        if (hide_one(&hide[i]) < 0)
            return -1;
    return hide_methods() < 0 ? -1 : guard_class_close();
}
