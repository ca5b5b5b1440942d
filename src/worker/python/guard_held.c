/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that look at an object, run code of the guest, and go on with what they looked at. Here the guest's code runs first
 * (arguments are converted to plain ones), or what was looked at is held until the end. */
#include "guard_slots.h"

#include <structmember.h>

static const char *const comparisons[] = {"__lt__", "__le__", "__eq__", "__ne__",
                                          "__gt__", "__ge__", NULL};

/* ---- list ---- */

static richcmpfunc plain_list_compare;
static objobjargproc plain_list_set;

/* As CPython compares, but both elements are held: an __eq__ may empty the lists (gh-120298). */
static PyObject *list_compare(PyObject *v, PyObject *w, int op)
{
    if (!PyList_Check(v) || !PyList_Check(w) ||
        (PyList_GET_SIZE(v) != PyList_GET_SIZE(w) && (op == Py_EQ || op == Py_NE)))
        return plain_list_compare(v, w, op);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(v) && i < PyList_GET_SIZE(w); i++) {
        PyObject *a = PyList_GET_ITEM(v, i), *b = PyList_GET_ITEM(w, i), *found = NULL;
        if (a == b)
            continue;
        Py_INCREF(a);
        Py_INCREF(b);
        int same = PyObject_RichCompareBool(a, b, Py_EQ);
        if (same == 0)
            found = op == Py_EQ   ? Py_NewRef(Py_False)
                    : op == Py_NE ? Py_NewRef(Py_True)
                                  : PyObject_RichCompare(a, b, op);
        Py_DECREF(a);
        Py_DECREF(b);
        if (same <= 0)
            return found;
    }
    Py_RETURN_RICHCOMPARE(PyList_GET_SIZE(v), PyList_GET_SIZE(w), op);
}

/* list[::2] = x: the places are counted before x is asked for its elements (gh-120384), so it is asked first. */
static int list_set(PyObject *self, PyObject *key, PyObject *value)
{
    if (!value || !PySlice_Check(key) || PyList_CheckExact(value) || PyTuple_CheckExact(value))
        return plain_list_set(self, key, value);
    PyObject *list = PySequence_Fast(value, "can only assign an iterable");
    if (!list && PyErr_ExceptionMatches(PyExc_TypeError) && !PyIter_Check(value) &&
        !Py_TYPE(value)->tp_iter && !PySequence_Check(value)) {
        PyErr_Clear(); /* CPython says it in its own words */
        return plain_list_set(self, key, value);
    }
    int r = list ? plain_list_set(self, key, list) : -1;
    Py_XDECREF(list);
    return r;
}

/* ---- bytearray ---- */

static objobjproc plain_bytes_contains;

/* A number, a text or bytes without code of the guest's; others as they are. */
static PyObject *plain_argument(PyObject *x)
{
    if (PyLong_CheckExact(x) || PyUnicode_CheckExact(x) || PyBytes_CheckExact(x))
        return Py_NewRef(x);
    if (PyUnicode_Check(x))
        return PyUnicode_FromObject(x);
    if (PyBytes_Check(x))
        return PyBytes_FromStringAndSize(PyBytes_AS_STRING(x), PyBytes_GET_SIZE(x));
    return PyIndex_Check(x) ? PyNumber_Index(x) : Py_NewRef(x);
}

/* (SELF, ARGS...), the arguments converted. */
static PyObject *plain_arguments(PyObject *self, PyObject *args)
{
    PyObject *made = PyTuple_New(PyTuple_GET_SIZE(args) + 1);
    if (made)
        PyTuple_SET_ITEM(made, 0, Py_NewRef(self));
    for (Py_ssize_t i = 0; made && i < PyTuple_GET_SIZE(args); i++) {
        PyObject *x = plain_argument(PyTuple_GET_ITEM(args, i));
        if (x)
            PyTuple_SET_ITEM(made, i + 1, x);
        else
            Py_CLEAR(made);
    }
    return made;
}

static int bytes_contains(PyObject *self, PyObject *x)
{
    PyObject *plain = plain_argument(x);
    int r = plain ? plain_bytes_contains(self, plain) : -1;
    Py_XDECREF(plain);
    return r;
}

/* Searches: the bytes are looked up before the arguments are converted (gh-142558, gh-142559, gh-142560). */
#define SEARCHES(X) X(find) X(index) X(rfind) X(rindex) X(count) X(startswith) X(endswith)
enum search {
#define NUMBER(name) SEARCH_##name,
    SEARCHES(NUMBER)
#undef NUMBER
        SEARCH_COUNT
};
static PyObject *searches[SEARCH_COUNT];

static PyObject *search(enum search which, PyObject *self, PyObject *args)
{
    PyObject *plain = plain_arguments(self, args);
    PyObject *found = plain ? PyObject_Call(searches[which], plain, NULL) : NULL;
    Py_XDECREF(plain);
    return found;
}
#define SEARCH(name)                                                                               \
    static PyObject *search_##name(PyObject *self, PyObject *args)                                 \
    {                                                                                              \
        return search(SEARCH_##name, self, args);                                                  \
    }
SEARCHES(SEARCH)
#undef SEARCH

static PyObject *plain_join, *plain_hex;

/* The separator is looked at, then the iterable is asked for its elements. */
static PyObject *bytes_join(PyObject *self, PyObject *values)
{
    PyObject *list = PySequence_Fast(values, "can only join an iterable");
    PyObject *made = list ? PyObject_CallFunctionObjArgs(plain_join, self, list, NULL) : NULL;
    Py_XDECREF(list);
    return made;
}

/* hex(sep) asks the separator for its length: __len__ of a subclass of str or bytes. */
static PyObject *bytes_hex(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    PyObject *plain[3] = {self};
    Py_ssize_t all = count + (names ? PyTuple_GET_SIZE(names) : 0), made = 0;
    if (all > 2) {
        PyErr_Format(PyExc_TypeError, "hex() takes at most 2 arguments (%zd given)", all);
        return NULL;
    }
    while (made < all && (plain[made + 1] = plain_argument(args[made])))
        made++;
    PyObject *text = made == all ? PyObject_Vectorcall(plain_hex, plain, count + 1, names) : NULL;
    for (; made > 0; made--)
        Py_DECREF(plain[made]);
    return text;
}

static int close_bytearray(void)
{
    static const char *const contains[] = {"__contains__", NULL};
    static PyMethodDef table[] = {
#define ROW(name) {#name, search_##name, METH_VARARGS, NULL},
        SEARCHES(ROW)
#undef ROW
    };
    static PyMethodDef join = {"join", bytes_join, METH_O, NULL};
    static PyMethodDef hex = {"hex", (PyCFunction)(void (*)(void))bytes_hex,
                              METH_FASTCALL | METH_KEYWORDS, NULL};
    PyTypeObject *type = &PyByteArray_Type;
    for (int i = 0; i < SEARCH_COUNT; i++)
        if (guard_exchange_method(type, &table[i], &searches[i]) < 0)
            return -1;
    if (guard_exchange_method(type, &join, &plain_join) < 0 ||
        guard_exchange_method(type, &hex, &plain_hex) < 0)
        return -1;
    return guard_exchange_slot(type, guard_slot_contains, (void *)bytes_contains,
                               (void **)&plain_bytes_contains, contains);
}

/* ---- deque, array ---- */

static PyObject *plain_tofile;

static PyTypeObject *deque;
static PyObject *plain_deque_index;

/* A place counted from the end, as CPython has it. */
static Py_ssize_t place(Py_ssize_t at, Py_ssize_t size)
{
    if (at < 0)
        at += size;
    return at < 0 ? 0 : at;
}

/* Where VALUE is among the places START to STOP of what ITERATOR gives; -1: nowhere, -2 with an exception. */
static Py_ssize_t find(PyObject *iterator, PyObject *value, Py_ssize_t start, Py_ssize_t stop)
{
    PyObject *x = NULL;
    iternextfunc next = Py_TYPE(iterator)->tp_iternext;
    for (Py_ssize_t i = 0; i < stop && (x = next(iterator)); i++) {
        int same = i < start ? 0 : PyObject_RichCompareBool(x, value, Py_EQ);
        Py_DECREF(x);
        if (same)
            return same < 0 ? -2 : i;
    }
    if (start < stop)
        Py_XDECREF(next(iterator)); /* says so if the last comparison changed the deque */
    return PyErr_Occurred() ? -2 : -1;
}

/* As CPython has it, which holds none of the elements that it compares (gh-115243): what the iterator gives is held. */
static PyObject *deque_index(PyObject *self, PyObject *args)
{
    Py_ssize_t size = Py_SIZE(self), start = 0, stop = size;
    PyObject *value, *iterator;
    if (!PyArg_ParseTuple(args, "O|O&O&:index", &value, _PyEval_SliceIndexNotNone, &start,
                          _PyEval_SliceIndexNotNone, &stop))
        return NULL;
    size = Py_SIZE(self); /* what it is after that code has run */
    start = place(start, size);
    stop = place(stop, size);
    iterator = deque->tp_iter(self);
    if (!iterator)
        return NULL;
    Py_ssize_t at = find(iterator, value, start, stop > size ? size : stop);
    Py_DECREF(iterator);
    if (at == -1)
        PyErr_Format(PyExc_ValueError, "%R is not in deque", value);
    return at < 0 ? NULL : PyLong_FromSsize_t(at);
}

/* The file is asked to write a block at a time, and may shrink the array meanwhile: a copy is written. */
static PyObject *tofile(PyObject *self, PyObject *file)
{
    PyObject *copy = PySequence_GetSlice(self, 0, PY_SSIZE_T_MAX);
    PyObject *done = copy ? PyObject_CallFunctionObjArgs(plain_tofile, copy, file, NULL) : NULL;
    Py_XDECREF(copy);
    return done;
}

/* ---- decimal ---- */

static richcmpfunc plain_decimal_compare;
static PyObject *getcontext;

/* A rational is asked for numerator and denominator while the context, which nothing holds, waits to take the flags; setcontext
 * lets go of it (gh-148382). */
static PyObject *decimal_compare(PyObject *v, PyObject *w, int op)
{
    if (PyLong_Check(w) || PyFloat_Check(w) || Py_IS_TYPE(w, Py_TYPE(v)))
        return plain_decimal_compare(v, w, op);
    PyObject *held = PyObject_CallNoArgs(getcontext);
    PyObject *found = held ? plain_decimal_compare(v, w, op) : NULL;
    Py_XDECREF(held);
    return found;
}

static int close_decimal(void)
{
    PyTypeObject *type = guard_type_of("_decimal", "Decimal");
    PyObject *module = PyDict_GetItemString(PyImport_GetModuleDict(), "_decimal"); /* borrowed */
    if (!type || plain_decimal_compare)
        return 0;
    getcontext = PyObject_GetAttrString(module, "getcontext");
    if (!getcontext)
        return -1;
    return guard_exchange_slot(type, guard_slot_compare, (void *)decimal_compare,
                               (void **)&plain_decimal_compare, comparisons);
}

/* ---- functions: cmp_to_key, Counter ---- */

/* What a key wraps is compared while nothing else holds it: it stays what it is. */
static int close_keys(void)
{
    static bool closed;
    PyObject *module = PyDict_GetItemString(PyImport_GetModuleDict(), "_functools"); /* borrowed */
    if (!module || closed)
        return 0;
    PyObject *key = PyObject_CallMethod(module, "cmp_to_key", "O", Py_None);
    PyObject *member = key ? PyDict_GetItemString(Py_TYPE(key)->tp_dict, "obj") : NULL;
    closed = member && Py_IS_TYPE(member, &PyMemberDescr_Type);
    if (closed)
        ((PyMemberDescrObject *)member)->d_member->flags |= READONLY;
    else if (key)
        PyErr_SetString(PyExc_SystemError, "a key of cmp_to_key has no member obj");
    Py_XDECREF(key);
    return closed ? 0 : -1;
}

static PyObject *plain_count;

/* MAPPING gets and sets as a dict does. */
static bool is_plain_mapping(PyObject *mapping)
{
    static PyObject *get, *set;
    if (!get && !(get = PyUnicode_InternFromString("get")))
        return false;
    if (!set && !(set = PyUnicode_InternFromString("__setitem__")))
        return false;
    return PyDict_Check(mapping) &&
           _PyType_Lookup(Py_TYPE(mapping), get) == _PyType_Lookup(&PyDict_Type, get) &&
           _PyType_Lookup(Py_TYPE(mapping), set) == _PyType_Lookup(&PyDict_Type, set);
}

static int count_one(PyObject *mapping, PyObject *key, PyObject *one)
{
    Py_hash_t hash = PyObject_Hash(key);
    PyObject *before = hash == -1 ? NULL : _PyDict_GetItem_KnownHash(mapping, key, hash);
    Py_XINCREF(before); /* its __add__ may take it out of the mapping */
    PyObject *after = before                           ? PyNumber_Add(before, one)
                      : hash == -1 || PyErr_Occurred() ? NULL
                                                       : Py_NewRef(one);
    int r = after ? _PyDict_SetItem_KnownHash(mapping, key, after, hash) : -1;
    Py_XDECREF(before);
    Py_XDECREF(after);
    return r;
}

/* collections._count_elements, as CPython has it for dicts, which does not hold the number that it adds to. */
static PyObject *count_elements(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    if (count != 2 || !is_plain_mapping(args[0]))
        return PyObject_Vectorcall(plain_count, args, (size_t)count, NULL);
    PyObject *iterator = PyObject_GetIter(args[1]), *key = NULL;
    PyObject *one = iterator ? PyLong_FromLong(1) : NULL;
    int r = one ? 0 : -1;
    while (r == 0 && (key = PyIter_Next(iterator))) {
        r = count_one(args[0], key, one);
        Py_DECREF(key);
    }
    Py_XDECREF(iterator);
    Py_XDECREF(one);
    if (r < 0 || PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

static int close_counter(void)
{
    static PyMethodDef def = {"_count_elements", (PyCFunction)(void (*)(void))count_elements,
                              METH_FASTCALL, NULL};
    PyObject *module = PyDict_GetItemString(PyImport_GetModuleDict(), "collections"); /* borrowed */
    return !module || !PyModule_Check(module) || plain_count
               ? 0
               : guard_exchange(module, &def, &plain_count);
}

static int close_builtins(void)
{
    static const char *const set[] = {"__setitem__", "__delitem__", NULL};
    if (guard_exchange_slot(&PyList_Type, guard_slot_compare, (void *)list_compare,
                            (void **)&plain_list_compare, comparisons) < 0 ||
        guard_exchange_slot(&PyList_Type, guard_slot_set_item, (void *)list_set,
                            (void **)&plain_list_set, set) < 0)
        return -1;
    return close_bytearray();
}

int guard_close_held(void)
{
    static PyMethodDef index = {"index", deque_index, METH_VARARGS, NULL};
    static PyMethodDef file = {"tofile", tofile, METH_O, NULL};
    deque = guard_type_of("_collections", "deque");
    const struct {
        PyTypeObject *type;
        PyMethodDef *def;
        PyObject **before;
    } methods[] = {
        {deque, &index, &plain_deque_index},
        {guard_type_of("array", "array"), &file, &plain_tofile},
    };
    if ((!plain_list_compare && close_builtins() < 0) || close_decimal() < 0 || close_keys() < 0 ||
        close_counter() < 0)
        return -1;
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (methods[i].type && !*methods[i].before &&
            guard_exchange_method(methods[i].type, methods[i].def, methods[i].before) < 0)
            return -1;
    return 0;
}
