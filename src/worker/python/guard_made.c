/* SPDX-License-Identifier: Apache-2.0 */
/* C objects that an operation takes for made: those that __new__ alone made, or a call of a type that is only ever made by a
 * function, have nothing inside that could be used; and a part of an object that outlives it looks into memory that was given back. */
#include "guard_slots.h"

/* ---- csv: reader() and writer() make them; type(x)() would make empty ones ---- */

static void close_type(PyTypeObject *type)
{
    if (!type || !type->tp_new)
        return;
    type->tp_new = NULL;
    type->tp_flags |= Py_TPFLAGS_DISALLOW_INSTANTIATION;
    type->tp_flags &= ~Py_TPFLAGS_BASETYPE; /* a subclass would be made by object.__new__ */
    PyType_Modified(type);
}

/* ---- bz2, lzma: made whole by __init__; a call of the type has both, T.__new__(T) has not. One that fails the second
 * time leaves a stream without its lock ---- */

static int hide_makers(PyTypeObject *type)
{
    if (!type || !PyDict_GetItemString(type->tp_dict, "__new__"))
        return 0;
    if (type->tp_flags & Py_TPFLAGS_BASETYPE) {
        PyErr_Format(PyExc_SystemError, "%s has subclasses, which may leave __init__ out",
                     type->tp_name);
        return -1;
    }
    PyType_Modified(type); /* object's stand there now: __new__ refuses it, __init__ does nothing */
    return PyDict_DelItemString(type->tp_dict, "__new__") < 0
               ? -1
               : PyDict_DelItemString(type->tp_dict, "__init__");
}

/* ---- array: an iterator that has come to its end has no array any more, and __setstate__ does not look ---- */

struct array_iterator { /* as arraymodule.c has it */
    PyObject_HEAD;
    Py_ssize_t index;
    PyObject *array;
    void *getitem;
};
static PyCFunction plain_set_state;

static PyObject *set_state(PyObject *self, PyObject *state)
{
    return ((struct array_iterator *)self)->array ? plain_set_state(self, state)
                                                  : Py_NewRef(Py_None);
}

static int close_array_iterator(void)
{
    PyTypeObject *array = guard_type_of("array", "array");
    if (!array || plain_set_state)
        return 0;
    PyObject *one = PyObject_CallFunction((PyObject *)array, "s", "b");
    PyObject *it = one ? PyObject_GetIter(one) : NULL;
    PyMethodDef *def = it ? guard_method(Py_TYPE(it), "__setstate__") : NULL;
    int r =
        def && def->ml_flags == METH_O && Py_TYPE(it)->tp_basicsize == sizeof(struct array_iterator)
            ? 0
            : -1;
    if (r == 0) {
        plain_set_state = def->ml_meth;
        def->ml_meth = set_state;
    } else if (!PyErr_Occurred()) {
        PyErr_SetString(PyExc_SystemError, "an iterator of an array is not as it was");
    }
    Py_XDECREF(it);
    Py_XDECREF(one);
    return r;
}

/* ---- decimal: flags and traps of a context are numbers inside it ---- */

/* SignalDict as _decimal.c has it. */
struct signals {
    PyObject_HEAD;
    uint32_t *flags;
};
static newfunc plain_signals_new;
static initproc plain_signals_init;
static destructor plain_context_dealloc;
static getattrofunc context_get;
static uint32_t nobodys; /* what one without a context shows */

static PyObject *signals_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
    PyObject *self = plain_signals_new(type, args, names);
    if (self)
        ((struct signals *)self)->flags = &nobodys;
    return self;
}

/* The context says where its numbers are, once; CPython's own would forget that. */
static int signals_init(PyObject *self, PyObject *args, PyObject *names)
{
    (void)self;
    (void)args;
    (void)names;
    return 0;
}

/* CONTEXT is about to go: its part NAME keeps its number, in memory of its own, if somebody else has it. */
static void detach(PyObject *context, const char *name)
{
    PyObject *word = PyUnicode_FromString(name), *part = word ? context_get(context, word) : NULL;
    if (part && Py_REFCNT(part) > 2) {
        uint32_t *own =
            PyMem_RawMalloc(sizeof *own); /* given back by nobody: it has no end to hang it on */
        if (own)
            *own = *((struct signals *)part)->flags;
        ((struct signals *)part)->flags = own ? own : &nobodys;
    }
    Py_XDECREF(part);
    Py_XDECREF(word);
}

static void context_dealloc(PyObject *self)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    detach(self, "flags");
    detach(self, "traps");
    PyErr_Restore(type, value, traceback);
    plain_context_dealloc(self);
}

static int close_contexts(void)
{
    PyTypeObject *context = guard_type_of("_decimal", "Context");
    if (!context || plain_context_dealloc)
        return 0;
    PyObject *made = PyObject_CallNoArgs((PyObject *)context);
    PyObject *flags = made ? PyObject_GetAttrString(made, "flags") : NULL;
    PyTypeObject *signals = flags ? Py_TYPE(flags)->tp_base : NULL;
    int r = -1;
    context_get = context->tp_getattro;
    if (signals && signals->tp_basicsize != sizeof(struct signals))
        PyErr_SetString(PyExc_SystemError, "SignalDict is not as it was");
    else if (signals &&
             guard_exchange_slot(signals, guard_slot_new, (void *)signals_new,
                                 (void **)&plain_signals_new, NULL) == 0 &&
             guard_exchange_slot(signals, guard_slot_init, (void *)signals_init,
                                 (void **)&plain_signals_init,
                                 (const char *const[]){"__init__", NULL}) == 0)
        r = guard_exchange_slot(context, guard_slot_dealloc, (void *)context_dealloc,
                                (void **)&plain_context_dealloc, NULL);
    Py_XDECREF(flags);
    Py_XDECREF(made);
    return r;
}

/* ---- staticmethod, classmethod: __new__ leaves out what __init__ sets, and a call or a repr does not look ---- */

struct wrapper { /* as funcobject.c has both */
    PyObject_HEAD;
    PyObject *callable, *dict;
};
static newfunc plain_static_new, plain_class_new;

static PyObject *with_none(PyObject *self)
{
    if (self && !((struct wrapper *)self)->callable)
        ((struct wrapper *)self)->callable = Py_NewRef(Py_None);
    return self;
}

static PyObject *static_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
    return with_none(plain_static_new(type, args, names));
}

static PyObject *class_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
    return with_none(plain_class_new(type, args, names));
}

static int close_wrappers(void)
{
    static const struct {
        PyTypeObject *type;
        newfunc ours, *plain;
    } rows[] = {{&PyStaticMethod_Type, static_new, &plain_static_new},
                {&PyClassMethod_Type, class_new, &plain_class_new}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].type->tp_basicsize != sizeof(struct wrapper)) {
            PyErr_SetString(PyExc_SystemError, "staticmethod is not as it was");
            return -1;
        }
        if (!*rows[i].plain &&
            guard_exchange_slot(rows[i].type, guard_slot_new, (void *)rows[i].ours,
                                (void **)rows[i].plain, NULL) < 0)
            return -1;
    }
    return 0;
}

int guard_close_made(void)
{
    static const char *const compressors[][2] = {{"_bz2", "BZ2Compressor"},
                                                 {"_bz2", "BZ2Decompressor"},
                                                 {"_lzma", "LZMACompressor"},
                                                 {"_lzma", "LZMADecompressor"}};
    close_type(guard_type_of("_csv", "Reader"));
    close_type(guard_type_of("_csv", "Writer"));
    for (size_t i = 0; i < sizeof compressors / sizeof *compressors; i++)
        if (hide_makers(guard_type_of(compressors[i][0], compressors[i][1])) < 0)
            return -1;
    return close_wrappers() < 0 || close_array_iterator() < 0 ? -1 : close_contexts();
}
