/* SPDX-License-Identifier: Apache-2.0 */
/* CPython looks at the buffer of a bytearray or an array, then asks the value for its number (__index__, __float__,
 * __bytes__), which is code of the guest and may shrink the object, and then writes to the place that it looked at
 * (gh-91153 and its kind, open in Debian 12's 3.11). So values are converted first: what CPython is given has no code
 * to run. The slots are exchanged, and in the methods' wrappers (__setitem__) the function that they wrap. */
#include "guard_inside.h"

#include <string.h>

/* An exact number for anything with __index__; a slice of such numbers for a slice. New reference or NULL. */
static PyObject *plain_key(PyObject *key)
{
    if (!PySlice_Check(key))
        return PyIndex_Check(key) ? PyNumber_Index(key) : Py_NewRef(key);
    PySliceObject *s = (PySliceObject *)key;
    PyObject *parts[] = {s->start, s->stop, s->step}, *plain[3] = {0}, *made = NULL;
    bool good = true;
    for (int i = 0; i < 3 && good; i++) {
        plain[i] = plain_key(parts[i]);
        good = plain[i] != NULL;
    }
    if (good)
        made = PySlice_New(plain[0], plain[1], plain[2]);
    for (int i = 0; i < 3; i++)
        Py_XDECREF(plain[i]);
    return made;
}

/* ---- bytearray ---- */

static objobjargproc plain_bytes_set;
static ssizeobjargproc plain_bytes_set_at;
static binaryfunc plain_bytes_format;

/* What may be put into a bytearray: a byte for one place, a buffer of our own for a slice. */
static PyObject *plain_bytes(PyObject *value, bool slice)
{
    if (!slice)
        return PyIndex_Check(value) ? PyNumber_Index(value) : Py_NewRef(value);
    if (PyBytes_CheckExact(value) || PyUnicode_Check(value) || PyIndex_Check(value))
        return Py_NewRef(value); /* no code, or an error that is raised before the buffer is used */
    return PyByteArray_FromObject(value);
}

static int bytes_set(PyObject *self, PyObject *key, PyObject *value)
{
    PyObject *at = plain_key(key);
    PyObject *put = at && value ? plain_bytes(value, PySlice_Check(at)) : NULL;
    int r = at && (put || !value) ? plain_bytes_set(self, at, put) : -1;
    Py_XDECREF(at);
    Py_XDECREF(put);
    return r;
}

static int bytes_set_at(PyObject *self, Py_ssize_t at, PyObject *value)
{
    PyObject *put = value ? plain_bytes(value, false) : NULL;
    int r = put || !value ? plain_bytes_set_at(self, at, put) : -1;
    Py_XDECREF(put);
    return r;
}

/* b'%s' % x asks x for its bytes while it reads the format: it reads a copy. */
static PyObject *bytes_format(PyObject *left, PyObject *right)
{
    if (!PyByteArray_Check(left))
        return plain_bytes_format(left, right);
    PyObject *copy = PyByteArray_FromObject(left);
    PyObject *made = copy ? plain_bytes_format(copy, right) : NULL;
    Py_XDECREF(copy);
    return made;
}

/* ---- array ---- */

static objobjargproc plain_array_set;
static ssizeobjargproc plain_array_set_at;

/* A number that the array's code can take without asking: whole ones by __index__, others by __float__. */
static PyObject *plain_number(PyObject *array, PyObject *value)
{
    PyObject *code = PyObject_GetAttrString(array, "typecode");
    const char *text = code && PyUnicode_Check(code) ? PyUnicode_AsUTF8(code) : NULL;
    PyObject *number = NULL;
    if (text && strchr("fd", text[0]) && !PyUnicode_Check(value))
        number = PyNumber_Float(value);
    else if (text && text[0] != 'u' && PyIndex_Check(value))
        number = PyNumber_Index(value);
    else if (text)
        number = Py_NewRef(value); /* a character, or an error */
    Py_XDECREF(code);
    return number;
}

static int array_set(PyObject *self, PyObject *key, PyObject *value)
{
    PyObject *at = plain_key(key);
    PyObject *put = !at || !value       ? NULL
                    : PySlice_Check(at) ? Py_NewRef(value) /* an array, or an error */
                                        : plain_number(self, value);
    int r = at && (put || !value) ? plain_array_set(self, at, put) : -1;
    Py_XDECREF(at);
    Py_XDECREF(put);
    return r;
}

static int array_set_at(PyObject *self, Py_ssize_t at, PyObject *value)
{
    PyObject *put = value ? plain_number(self, value) : NULL;
    int r = put || !value ? plain_array_set_at(self, at, put) : -1;
    Py_XDECREF(put);
    return r;
}

static PyObject *plain_append, *plain_insert, *plain_extend, *plain_fromlist;

static PyObject *pass_on(PyObject *plain, PyObject *self, PyObject *a, PyObject *b)
{
    PyObject *made = a ? PyObject_CallFunctionObjArgs(plain, self, a, b, NULL) : NULL;
    Py_XDECREF(a);
    Py_XDECREF(b);
    return made;
}

static PyObject *append(PyObject *self, PyObject *value)
{
    return pass_on(plain_append, self, plain_number(self, value), NULL);
}

static PyObject *insert(PyObject *self, PyObject *args)
{
    PyObject *at, *value;
    if (!PyArg_ParseTuple(args, "OO:insert", &at, &value))
        return NULL;
    PyObject *where = plain_key(at), *put = where ? plain_number(self, value) : NULL;
    if (!put) {
        Py_XDECREF(where);
        return NULL;
    }
    return pass_on(plain_insert, self, where, put);
}

/* A list of numbers, each converted before the array is touched. */
static PyObject *numbers(PyObject *self, PyObject *values)
{
    PyObject *list = PySequence_List(values);
    for (Py_ssize_t i = 0; list && i < PyList_GET_SIZE(list); i++) {
        PyObject *item = Py_NewRef(PyList_GET_ITEM(list, i)), *put = plain_number(self, item);
        Py_DECREF(item);
        if (!put || PyList_SetItem(list, i, put) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *extend(PyObject *self, PyObject *values)
{
    bool array = PyObject_TypeCheck(values, Py_TYPE(plain_extend) == &PyMethodDescr_Type
                                                ? PyDescr_TYPE(plain_extend)
                                                : Py_TYPE(self));
    return pass_on(plain_extend, self, array ? Py_NewRef(values) : numbers(self, values), NULL);
}

static PyObject *fromlist(PyObject *self, PyObject *values)
{
    return pass_on(plain_fromlist, self,
                   PyList_Check(values) ? numbers(self, values) : Py_NewRef(values), NULL);
}

/* ---- closing ---- */

/* The wrappers of a slot call the function that they were made with. */
static void rewrap(PyTypeObject *type, const char *name, void *function)
{
    PyObject *descr = PyDict_GetItemString(type->tp_dict, name); /* borrowed */
    if (descr && Py_IS_TYPE(descr, &PyWrapperDescr_Type))
        ((PyWrapperDescrObject *)descr)->d_wrapped = function;
}

static void exchange_set(PyTypeObject *type, objobjargproc set, ssizeobjargproc set_at,
                         objobjargproc *ret_set, ssizeobjargproc *ret_set_at)
{
    *ret_set = type->tp_as_mapping->mp_ass_subscript;
    *ret_set_at = type->tp_as_sequence->sq_ass_item;
    type->tp_as_mapping->mp_ass_subscript = set;
    if (*ret_set_at)
        type->tp_as_sequence->sq_ass_item = set_at;
    rewrap(type, "__setitem__", (void *)set);
    rewrap(type, "__delitem__", (void *)set);
    PyType_Modified(type);
}

void guard_close_bytearray(void)
{
    PyTypeObject *type = &PyByteArray_Type;
    exchange_set(type, bytes_set, bytes_set_at, &plain_bytes_set, &plain_bytes_set_at);
    plain_bytes_format = type->tp_as_number->nb_remainder;
    type->tp_as_number->nb_remainder = bytes_format;
    rewrap(type, "__mod__", (void *)bytes_format);
    rewrap(type, "__rmod__", (void *)bytes_format);
}

int guard_close_array(PyObject *module)
{
    static struct {
        PyMethodDef def;
        PyObject **before;
    } methods[] = {
        {{"append", append, METH_O, NULL}, &plain_append},
        {{"insert", insert, METH_VARARGS, NULL}, &plain_insert},
        {{"extend", extend, METH_O, NULL}, &plain_extend},
        {{"fromlist", fromlist, METH_O, NULL}, &plain_fromlist},
    };
    PyObject *type = PyObject_GetAttrString(module, "array");
    int r = type && PyType_Check(type) ? 0 : -1;
    if (r == 0 && !plain_array_set) {
        PyTypeObject *t = (PyTypeObject *)type;
        exchange_set(t, array_set, array_set_at, &plain_array_set, &plain_array_set_at);
        for (size_t i = 0; i < sizeof methods / sizeof *methods && r == 0; i++) {
            PyObject *descr = PyDescr_NewMethod(t, &methods[i].def);
            PyObject *before = PyDict_GetItemString(t->tp_dict, methods[i].def.ml_name);
            *methods[i].before = before ? Py_NewRef(before) : NULL;
            r = descr && before ? PyDict_SetItemString(t->tp_dict, methods[i].def.ml_name, descr)
                                : -1;
            Py_XDECREF(descr);
        }
        PyType_Modified(t);
    }
    Py_XDECREF(type);
    return r;
}
