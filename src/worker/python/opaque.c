/* SPDX-License-Identifier: Apache-2.0 */
/* An address tells a guest that has found a bug in CPython where to write: id(), `<object at 0x...>`, and the
 * hash of whatever is compared by identity, None among them. All of them are the address in cipher, under keys
 * of this process that no Python object holds.
 *
 * Hashes cannot be changed once dicts have stored them. But every type that says nothing of its hash gets the
 * one of `object` when it is made ready, so that one is exchanged before there is a type: in the structs, before
 * Python starts. The few types that hash addresses by themselves are exchanged with it. The ciphers are the
 * frame's. */
#include "opaque.h"

#include "worker/frame/opaque.h"

#include <math.h>
#include <string.h>

static bool closed; /* id() and reprs, too */

static Py_hash_t hash_address(const void *p)
{
    Py_hash_t h = (Py_hash_t)worker_opaque_hash(p);
    return h == -1 ? -2 : h; /* -1 is an error */
}

/* ---- hashes ---- */

static Py_hash_t object_hash(PyObject *x)
{
    return hash_address(x);
}

static Py_hash_t together(Py_hash_t x, Py_hash_t y)
{
    return x == -1 || y == -1 ? -1 : (x ^ y) == -1 ? -2 : x ^ y;
}

static Py_hash_t method_hash(PyObject *x)
{
    return together(hash_address(PyMethod_GET_SELF(x)), PyObject_Hash(PyMethod_GET_FUNCTION(x)));
}

static Py_hash_t function_hash(PyObject *x)
{
    PyCFunctionObject *f = (PyCFunctionObject *)x;
    const void *address;
    memcpy(&address, &f->m_ml->ml_meth, sizeof address);
    return together(hash_address(f->m_self), hash_address(address));
}

struct wrapper { /* as CPython has it, all versions */
    PyObject_HEAD;
    PyObject *descr, *self;
};

static Py_hash_t wrapper_hash(PyObject *x)
{
    const struct wrapper *w = (const struct wrapper *)x;
    return together(hash_address(w->self), hash_address(w->descr));
}

static hashfunc plain_float_hash, plain_complex_hash;

/* No two of these are equal, so they are hashed by their addresses. */
static Py_hash_t float_hash(PyObject *x)
{
    return isnan(((PyFloatObject *)x)->ob_fval) ? hash_address(x) : plain_float_hash(x);
}

static Py_hash_t complex_hash(PyObject *x)
{
    const Py_complex c = ((PyComplexObject *)x)->cval;
    return isnan(c.real) || isnan(c.imag) ? hash_address(x) : plain_complex_hash(x);
}

static void start_hashes(void)
{
    plain_float_hash = PyFloat_Type.tp_hash;
    plain_complex_hash = PyComplex_Type.tp_hash;
    PyBaseObject_Type.tp_hash = object_hash;
    PyMethod_Type.tp_hash = method_hash;
    PyCFunction_Type.tp_hash = function_hash;
    _PyMethodWrapper_Type.tp_hash = wrapper_hash;
    PyFloat_Type.tp_hash = float_hash;
    PyComplex_Type.tp_hash = complex_hash;
}

/* ---- reprs: as they are, with the numbers exchanged ---- */

static struct shown {
    PyTypeObject *type;
    reprfunc plain;
} shown[] = {
    {&PyFunction_Type, NULL},
    {&PyCFunction_Type, NULL},
    {&_PyMethodWrapper_Type, NULL},
    {&PyGen_Type, NULL},
    {&PyCoro_Type, NULL},
    {&PyAsyncGen_Type, NULL},
    {&PyCell_Type, NULL},
    {&PyFrame_Type, NULL},
    {&PyCode_Type, NULL},
    {&PyMemoryView_Type, NULL},
    {&PyCapsule_Type, NULL},
    {&PyContextVar_Type, NULL},
    {&PyContextToken_Type, NULL},
    {&PyInstanceMethod_Type, NULL},
    {&_PyWeakref_RefType, NULL},
    {&_PyWeakref_ProxyType, NULL},
    {&_PyWeakref_CallableProxyType, NULL},
    {NULL, NULL},
    {NULL, NULL}, /* of modules that are loaded later */
    {NULL, NULL},
    {NULL, NULL},
};
enum { SHOWN = sizeof shown / sizeof *shown };

/* TEXT, which it steals, with one ADDRESS in cipher: the first or the last that stands there. Names come
 * before addresses, and a guest that names its class after a million guesses must not see which is right. */
static PyObject *exchanged(PyObject *text, const void *address, bool first)
{
    char written[32];
    if (!text || !address)
        return text;
    snprintf(written, sizeof written, "0x%llx", (unsigned long long)worker_opaque_number(address));
    PyObject *from = PyUnicode_FromFormat("%p", address), *result = NULL;
    Py_ssize_t end = PyUnicode_GET_LENGTH(text);
    Py_ssize_t at = from ? PyUnicode_Find(text, from, 0, end, first ? 1 : -1) : -2;
    if (at == -1) { /* it shows none */
        Py_DECREF(from);
        return text;
    }
    if (at >= 0) {
        PyObject *head = PyUnicode_Substring(text, 0, at);
        PyObject *tail = PyUnicode_Substring(text, at + PyUnicode_GET_LENGTH(from), end);
        result = head && tail ? PyUnicode_FromFormat("%U%s%U", head, written, tail) : NULL;
        Py_XDECREF(head);
        Py_XDECREF(tail);
    }
    Py_XDECREF(from);
    Py_DECREF(text);
    return result;
}

/* The other object whose address the repr of X shows. */
static const void *behind(PyObject *x)
{
    if (PyCFunction_Check(x))
        return ((PyCFunctionObject *)x)->m_self;
    if (Py_IS_TYPE(x, &_PyMethodWrapper_Type))
        return ((const struct wrapper *)x)->self;
    return PyWeakref_Check(x) ? PyWeakref_GET_OBJECT(x) : NULL;
}

static reprfunc plain_object_repr;

static PyObject *repr(PyObject *x)
{
    const struct shown *s = NULL;
    for (PyTypeObject *type = Py_TYPE(x); type && !s; type = type->tp_base)
        for (size_t i = 0; i < SHOWN && !s; i++)
            if (shown[i].type == type)
                s = &shown[i];
    PyObject *text = s ? s->plain(x) : plain_object_repr(x);
    if (!closed)
        return text;
    const void *other = behind(x);
    return exchanged(exchanged(text, x, other != NULL), other, false);
}

static PyObject *object_repr(PyObject *x)
{
    PyObject *text = plain_object_repr(x);
    return closed ? exchanged(text, x, false) : text;
}

static void start_reprs(void)
{
    plain_object_repr = PyBaseObject_Type.tp_repr;
    PyBaseObject_Type.tp_repr = object_repr;
    for (size_t i = 0; i < SHOWN; i++)
        if (shown[i].type && shown[i].type->tp_repr) {
            shown[i].plain = shown[i].type->tp_repr;
            shown[i].type->tp_repr = repr;
        }
}

/* ---- id ---- */

PyObject *opaque_id(PyObject *self, PyObject *x)
{
    (void)self;
    return closed ? PyLong_FromUnsignedLongLong(worker_opaque_number(x)) : PyLong_FromVoidPtr(x);
}

/* ---- modules that are loaded later ---- */

static hashfunc plain_decimal_hash;

/* A NaN is hashed by its address, turned by four bits. */
static Py_hash_t decimal_hash(PyObject *x)
{
    Py_hash_t h = plain_decimal_hash(x);
    uint64_t address = (uint64_t)(uintptr_t)x;
    return (uint64_t)h == worker_opaque_left(address, 60) ? hash_address(x) : h;
}

static PyObject *decimal_hash_method(PyObject *x, PyObject *none)
{
    (void)none;
    Py_hash_t h = decimal_hash(x);
    return h == -1 ? NULL : PyLong_FromSsize_t(h);
}

static PyObject *plain_buffer_info;

/* (address, length): one address in cipher, as in C nobody could use it here anyway. */
static PyObject *buffer_info(PyObject *x, PyObject *none)
{
    (void)none;
    PyObject *pair = PyObject_CallOneArg(plain_buffer_info, x);
    PyObject *address = pair && PyTuple_Check(pair) ? PyTuple_GetItem(pair, 0) : NULL;
    void *p = address ? PyLong_AsVoidPtr(address) : NULL;
    PyObject *told = p || (pair && !PyErr_Occurred())
                         ? Py_BuildValue("(KO)", (unsigned long long)worker_opaque_number(p),
                                         PyTuple_GET_ITEM(pair, 1))
                         : NULL;
    Py_XDECREF(pair);
    return told;
}

static PyObject *repr_method(PyObject *x, PyObject *none)
{
    (void)none;
    return repr(x);
}

/* The type MODULE.NAME gets the method of DEF in the place of its own; *ret_before: that. */
static PyTypeObject *exchange(PyObject *module, const char *name, PyMethodDef *def,
                              PyObject **ret_before)
{
    PyObject *type = PyObject_GetAttrString(module, name);
    if (!type || !PyType_Check(type)) {
        Py_XDECREF(type);
        PyErr_Clear(); /* this version has it elsewhere */
        return NULL;
    }
    PyTypeObject *t = (PyTypeObject *)type;
    PyObject *descr = PyDescr_NewMethod(t, def);
    PyObject *before = PyDict_GetItemString(t->tp_dict, def->ml_name);
    if (ret_before && before && !*ret_before) {
        Py_INCREF(before);
        *ret_before = before;
    }
    int r = descr ? PyDict_SetItemString(t->tp_dict, def->ml_name, descr) : -1;
    Py_XDECREF(descr);
    PyType_Modified(t);
    Py_DECREF(type); /* its module holds it */
    return r < 0 ? NULL : t;
}

static int close_decimal(PyObject *module)
{
    static PyMethodDef def = {"__hash__", decimal_hash_method, METH_NOARGS, NULL};
    PyTypeObject *type = plain_decimal_hash ? NULL : exchange(module, "Decimal", &def, NULL);
    if (type) {
        plain_decimal_hash = type->tp_hash;
        type->tp_hash = decimal_hash;
    }
    return PyErr_Occurred() ? -1 : 0;
}

static int close_array(PyObject *module)
{
    static PyMethodDef def = {"buffer_info", buffer_info, METH_NOARGS, NULL};
    if (!plain_buffer_info)
        exchange(module, "array", &def, &plain_buffer_info);
    return PyErr_Occurred() ? -1 : 0;
}

/* A type of a C module that writes addresses by itself. */
static int close_repr(const char *module_name, const char *name)
{
    static PyMethodDef def = {"__repr__", repr_method, METH_NOARGS, NULL};
    PyObject *module = PyDict_GetItemString(PyImport_GetModuleDict(), module_name); /* borrowed */
    PyObject *type = module ? PyObject_GetAttrString(module, name) : NULL;
    PyErr_Clear();
    struct shown *s = shown;
    while (type && s < shown + SHOWN && s->type && (PyObject *)s->type != type)
        s++;
    Py_XDECREF(type);
    if (!type || s == shown + SHOWN || s->type)
        return 0;
    PyTypeObject *t = exchange(module, name, &def, NULL);
    if (t) {
        s->plain = t->tp_repr;
        s->type = t;
        t->tp_repr = repr;
    }
    return PyErr_Occurred() ? -1 : 0;
}

int opaque_library(PyObject *module, const char *name)
{
    if (close_repr("_hashlib", "HASH") < 0 || close_repr("_hashlib", "HASHXOF") < 0 ||
        close_repr("_thread", "LockType") < 0 || close_repr("_thread", "RLock") < 0)
        return -1;
    return strcmp(name, "decimal") == 0 ? close_decimal(module)
           : strcmp(name, "array") == 0 ? close_array(module)
                                        : 0;
}

/* ---- start ---- */

int py_opaque_start(struct err *err)
{
    int r = worker_opaque_start(err);
    if (r < 0)
        return r;
    start_hashes();
    start_reprs();
    return 0;
}

int opaque_close(void)
{
    static PyMethodDef def = {"id", opaque_id, METH_O, NULL};
    PyObject *builtins = PyImport_ImportModule("builtins");
    PyObject *f = PyCFunction_New(&def, builtins);
    int r = builtins && f ? PyObject_SetAttrString(builtins, "id", f) : -1;
    Py_XDECREF(builtins);
    Py_XDECREF(f);
    if (r == 0 && PyBaseObject_Type.tp_hash != object_hash) {
        PyErr_SetString(PyExc_SystemError, "Python was started with hashes that show addresses");
        return -1;
    }
    closed = true;
    return r;
}
