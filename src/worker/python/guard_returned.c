/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that call code of the guest and take what it returns for an object of the type that they hope for, without looking:
 * any object is then read and written as if it were one. They are refused where that code is the guest's own. */
#include "guard_slots.h"

/* ---- list[T][int] ---- */

static binaryfunc plain_alias_get, plain_union_get;

/* False, with an exception, if one of the arguments of ALIAS is an object of the guest's own class: it would be asked
 * for what stands in its place (__typing_subst__), which is taken for a tuple if the object says so. */
static bool has_plain_arguments(PyObject *alias)
{
    PyObject *args = PyObject_GetAttrString(alias, "__args__");
    bool plain = args && PyTuple_Check(args);
    for (Py_ssize_t i = 0; plain && i < PyTuple_GET_SIZE(args); i++) {
        PyObject *x = PyTuple_GET_ITEM(args, i);
        plain = PyType_Check(x) || !guard_is_own_type(Py_TYPE(x));
    }
    Py_XDECREF(args);
    if (!plain && !PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError,
                        "an alias of an object of the program's own class takes no arguments");
    return plain;
}

static PyObject *alias_get(PyObject *self, PyObject *item)
{
    return has_plain_arguments(self) ? plain_alias_get(self, item) : NULL;
}

static PyObject *union_get(PyObject *self, PyObject *item)
{
    return has_plain_arguments(self) ? plain_union_get(self, item) : NULL;
}

static int close_aliases(void)
{
    static const char *const get[] = {"__getitem__", NULL};
    PyObject *both = PyNumber_Or((PyObject *)&PyLong_Type, (PyObject *)&PyUnicode_Type);
    int r = both ? guard_exchange_slot(Py_TYPE(both), guard_slot_get_item, (void *)union_get,
                                       (void **)&plain_union_get, get)
                 : -1;
    Py_XDECREF(both);
    return r < 0 ? -1
                 : guard_exchange_slot(&Py_GenericAliasType, guard_slot_get_item, (void *)alias_get,
                                       (void **)&plain_alias_get, get);
}

/* ---- datetime ---- */

static PyObject *plain_fromutc, *plain_astimezone;
static PyTypeObject *datetime;

/* A sum of a datetime is made by its class, and is then taken for a datetime: a __new__ may have made it anything
 * (gh-145166). A class whose statement is done keeps the __new__ that it has: guard_may_set. */
static bool makes_datetimes(PyObject *when, const char *asked)
{
    if (!PyObject_TypeCheck(when, datetime) || Py_TYPE(when)->tp_new == datetime->tp_new)
        return true;
    PyErr_Format(PyExc_TypeError, "%s: a subclass of datetime with a __new__ of its own", asked);
    return false;
}

static PyObject *fromutc(PyObject *self, PyObject *when)
{
    if (!makes_datetimes(when, "fromutc"))
        return NULL;
    return PyObject_CallFunctionObjArgs(plain_fromutc, self, when, NULL);
}

static PyObject *astimezone(PyObject *self, PyObject *const *args, Py_ssize_t count,
                            PyObject *names)
{
    PyObject *all[3] = {self};
    Py_ssize_t given = count + (names ? PyTuple_GET_SIZE(names) : 0);
    if (!makes_datetimes(self, "astimezone"))
        return NULL;
    if (given > 2) {
        PyErr_Format(PyExc_TypeError, "astimezone() takes at most 1 argument (%zd given)", given);
        return NULL;
    }
    for (Py_ssize_t i = 0; i < given; i++)
        all[i + 1] = args[i];
    return PyObject_Vectorcall(plain_astimezone, all, count + 1, names);
}

static int close_datetime(void)
{
    static PyMethodDef utc = {"fromutc", fromutc, METH_O, NULL};
    static PyMethodDef zone = {"astimezone", (PyCFunction)(void (*)(void))astimezone,
                               METH_FASTCALL | METH_KEYWORDS, NULL};
    PyTypeObject *tzinfo = guard_type_of("_datetime", "tzinfo");
    datetime = guard_type_of("_datetime", "datetime");
    if (!tzinfo || !datetime || plain_fromutc)
        return 0;
    return guard_exchange_method(tzinfo, &utc, &plain_fromutc) < 0
               ? -1
               : guard_exchange_method(datetime, &zone, &plain_astimezone);
}

int guard_close_returned(void)
{
    if (!plain_alias_get && close_aliases() < 0)
        return -1;
    return close_datetime();
}
