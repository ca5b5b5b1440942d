/* SPDX-License-Identifier: Apache-2.0 */
/* Changing what a library made, without naming a class or a function of it: making an object again
 * (property.__init__ on a property of fractions.Fraction), and setting an attribute through an object that
 * hands it on (typing.Annotated[json.dumps, 1].x = 2). A library has its objects for itself and for every
 * caller; the guest's own are those of its own classes, and plain containers, whose methods do as much. */
#include "guard_inside.h"

#include <string.h>

static PyObject *refuse(const char *what, PyObject *x)
{
    char detail[200];
    snprintf(detail, sizeof detail, "%s: %.100s", what, Py_TYPE(x)->tp_name);
    return guard_refuse_own("py.guard.write", detail, "make a new object, or derive a class");
}

/* ---- making again ---- */

bool guard_is_init(PyObject *name)
{
    return PyUnicode_READ_CHAR(name, 0) == '_' &&
           PyUnicode_CompareWithASCIIString(name, "__init__") == 0;
}

/* Type calls go from C to the slot and do not come here: only somebody who says `__init__` does. */
static bool may_make_again(PyObject *x)
{
    return guard_is_own_type(Py_TYPE(x)) || PyList_CheckExact(x) || PyDict_CheckExact(x) ||
           PySet_CheckExact(x);
}

static PyObject *init_checked(PyObject *init, PyObject *args, PyObject *kwargs)
{
    PyObject *x = PyTuple_GET_SIZE(args) ? PyTuple_GET_ITEM(args, 0) : NULL;
    if (x && !may_make_again(x))
        return refuse("__init__ of an object that is not the program's own", x);
    return PyObject_Call(init, args, kwargs);
}

/* Whose __init__ it is; new reference, or NULL where it is bound to nobody. */
static PyObject *bound_to(PyObject *init)
{
    if (PyMethod_Check(init))
        return Py_NewRef(PyMethod_GET_SELF(init));
    if (!PyCFunction_Check(init) && !Py_IS_TYPE(init, &_PyMethodWrapper_Type))
        return NULL;
    PyObject *x = PyObject_GetAttrString(init, "__self__");
    PyErr_Clear();
    return x;
}

PyObject *guard_init_of(PyObject *init)
{
    static PyMethodDef def = {"__init__", (PyCFunction)(void (*)(void))init_checked,
                              METH_VARARGS | METH_KEYWORDS, NULL};
    PyObject *x = bound_to(init), *checked = NULL;
    if (guard_is_own_function(init) || (x && may_make_again(x))) {
        checked = Py_NewRef(init);
    } else if (x) {
        refuse("__init__ of an object that is not the program's own", x);
    } else { /* as a member of a class it is a method, as what it stands for is */
        PyObject *f = PyCFunction_New(&def, init);
        checked = f ? PyInstanceMethod_New(f) : NULL;
        Py_XDECREF(f);
    }
    Py_XDECREF(x);
    Py_DECREF(init);
    return checked;
}

/* ---- setting through ---- */

/* Attributes of X are set by Python code of a library's class. */
static bool library_sets(PyObject *x)
{
    static PyObject *name;
    PyObject *mro = Py_TYPE(x)->tp_mro;
    if (Py_TYPE(x)->tp_setattro == PyObject_GenericSetAttr || PyType_Check(x))
        return false;
    if (!name)
        name = PyUnicode_InternFromString("__setattr__");
    for (Py_ssize_t i = 0; name && mro && i < PyTuple_GET_SIZE(mro); i++) {
        PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(mro, i);
        PyObject *f = base->tp_dict ? PyDict_GetItemWithError(base->tp_dict, name) : NULL;
        PyErr_Clear();
        if (f)
            return PyFunction_Check(f) && !guard_is_own_type(base);
    }
    return false;
}

/* What an attribute that is set on X would be set on: X itself, unless X hands it on. Borrowed; NULL after
 * refusing. */
PyObject *guard_set_target(PyObject *x)
{
    for (int steps = 0; steps < 16; steps++) {
        if (PyWeakref_CheckProxy(x)) {
            x = PyWeakref_GET_OBJECT(x);
            continue;
        }
        if (!library_sets(x))
            return x;
        PyObject *name = PyUnicode_InternFromString("__origin__"); /* an alias of typing has one */
        PyObject *origin = name ? PyObject_GenericGetAttr(x, name) : NULL;
        Py_XDECREF(name);
        if (!origin) {
            PyErr_Clear();
            break;
        }
        Py_DECREF(origin); /* X holds it */
        x = origin;
    }
    return refuse("an attribute of an object that hands it on", x);
}

/* ---- functions: closed in the type, since libraries set attributes of what they are handed ---- */

static int function_set(PyObject *f, PyObject *name, PyObject *value)
{
    /* functools.total_ordering names its functions each time anew */
    bool named = value && PyUnicode_CheckExact(value) &&
                 PyUnicode_CompareWithASCIIString(name, "__name__") == 0;
    if (named || !guard_is_library_function(f) || guard_is_namedtuple(f) ||
        guard_asker() == GUARD_LOADING)
        return PyObject_GenericSetAttr(f, name, value);
    refuse("an attribute of a library's function", f);
    return -1;
}

void guard_close_functions(void)
{
    PyFunction_Type.tp_setattro = function_set;
    PyType_Modified(&PyFunction_Type);
}

bool guard_is_library_function(PyObject *x)
{
    /* one that was made inside a function is a decorator's, and may be new */
    return PyFunction_Check(x) && !guard_is_own_function(x) &&
           !(((PyCodeObject *)PyFunction_GET_CODE(x))->co_flags & CO_NESTED);
}
