/* SPDX-License-Identifier: Apache-2.0 */
/* The guarded operations themselves. Each is reached from rewritten code alone, with arguments that the
 * rewriter put there: names are constants that were classed when the tree was rewritten, so what is
 * asked here is about the object. Still, none of them would be harmful in a guest's hand: each does
 * less than the plain operation, never more. */
#include "guard_inside.h"

#include <string.h>

/* ---- objects ---- */

bool guard_is_own_type(PyTypeObject *type)
{
    if (type->tp_flags & GUARD_OWN)
        return true;
    /* __init_subclass__ and __set_name__ run before the class statement is done: until then a class
     * that is not a library's is the one being made */
    if (guard.building == 0 || !(type->tp_flags & Py_TPFLAGS_HEAPTYPE) ||
        (type->tp_flags & (GUARD_CLOSED | GUARD_LOCKED)))
        return false;
    guard_learn_if_loaded();
    return !guard_is_library_type(type);
}

bool guard_is_own_function(PyObject *x)
{
    return PyFunction_Check(x) && PyFunction_GET_GLOBALS(x) == guard.globals;
}

PyObject *guard_closed(PyObject *x)
{
    char detail[160];
    if (!guard_is_closed(x))
        return x;
    snprintf(detail, sizeof detail, "an object of the type %.100s", Py_TYPE(x)->tp_name);
    return guard_refuse_own("py.guard.closed", detail,
                            "modules, frames and code are not values here; use what they offer");
}

PyObject *guard_get(PyObject *x, PyObject *name)
{
    if (guard_is_closed(x))
        return guard_closed(x);
    PyObject *value = PyObject_GetAttr(x, name);
    if (value && guard_is_closed(value)) {
        guard_closed(value);
        Py_CLEAR(value);
    } else if (value && guard_is_init(name)) {
        value = guard_init_of(value);
    } else if (!value && facade_check(x) && PyUnicode_READ_CHAR(name, 0) == '_' &&
               PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        value = facade_word(x, name);
    }
    return value;
}

static const char *text_of(PyObject *name)
{
    const char *text = PyUnicode_AsUTF8(name);
    if (!text)
        PyErr_Clear();
    return text ? text : "?";
}

/* A name that the rewriter classed as private, on an object that is not the guest's own. */
static PyObject *refuse_private(PyObject *name)
{
    const struct policy_rule *rule;
    const char *text = text_of(name);
    if (guard_name(text, strlen(text), &rule) == GUARD_NAME_FREE)
        return guard_refuse_own("py.guard.private", text, "use what the object offers by name");
    return guard_refuse(rule, text);
}

int guard_may_set(PyObject *x, PyObject *name)
{
    const char *what = NULL;
    x = guard_set_target(x);
    if (!x)
        return -1;
    if (guard_is_closed(x)) {
        guard_closed(x);
        return -1;
    }
    if (facade_check(x) && !facade_may_set(x, name))
        what = "an attribute of a module";
    else if (PyType_Check(x) && !guard_is_own_type((PyTypeObject *)x))
        what = "an attribute of a class that is not the program's own";
    else if (PyType_Check(x) && PyUnicode_CompareWithASCIIString(name, "__new__") == 0)
        what = "an attribute that a class statement sets"; /* guard_returned.c looks at it once */
    else if (PyFunction_Check(x) && !guard_is_own_function(x))
        what = "an attribute of a function that is not the program's own";
    else if (Py_IS_TYPE(x, guard.field))
        what = "an attribute of a dataclass field";
    if (!what)
        return 0;
    char detail[200];
    snprintf(detail, sizeof detail, "%s: %.80s", what, text_of(name));
    guard_refuse_own("py.guard.write", detail,
                     "change objects of your own; derive a class to change its behaviour");
    return -1;
}

/* ---- operations: METH_FASTCALL, arity checked since it costs nothing ---- */

static bool two(Py_ssize_t n)
{
    if (n == 2)
        return true;
    PyErr_SetString(PyExc_TypeError, "a guard takes two arguments");
    return false;
}

static PyObject *op_get(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    (void)self;
    return two(n) ? guard_get(args[0], args[1]) : NULL;
}

static PyObject *op_own_get(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    (void)self;
    if (!two(n))
        return NULL;
    return guard_owns(args[0], args[1]) ? guard_get(args[0], args[1]) : refuse_private(args[1]);
}

static PyObject *op_set(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    (void)self;
    if (!two(n) || guard_may_set(args[0], args[1]) < 0)
        return NULL;
    Py_INCREF(args[0]);
    return args[0];
}

static PyObject *op_own_set(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    if (n == 2 && !guard_owns(args[0], args[1]))
        return refuse_private(args[1]);
    return op_set(self, args, n);
}

/* x.name += y reads the attribute in plain bytecode afterwards, and hands it to the operators of y: of an
 * object that is not the guest's own it is looked at before. */
static PyObject *op_aug(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    if (n == 2 && !(Py_TYPE(args[0])->tp_flags & GUARD_OWN)) {
        PyObject *value = guard_get(args[0], args[1]);
        if (!value)
            return NULL;
        Py_DECREF(value);
    }
    return op_set(self, args, n);
}

static PyObject *op_own_aug(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    return op_own_set(self, args, n);
}

/* The rule that refuses KEY, or NULL: as the judge decides on a key that is written down. */
static const struct policy_rule *bad_key(PyObject *key)
{
    Py_ssize_t len;
    if (!PyUnicode_Check(key) || PyUnicode_GET_LENGTH(key) == 0 ||
        PyUnicode_READ_CHAR(key, 0) != '_')
        return NULL;
    const char *text = PyUnicode_AsUTF8AndSize(key, &len);
    if (!text) {
        PyErr_Clear(); /* a lone surrogate: no name of anything */
        return NULL;
    }
    return check_ruleset_key(guard.rules, text, (size_t)len);
}

static PyObject *op_key(PyObject *self, PyObject *key)
{
    (void)self;
    const struct policy_rule *rule = bad_key(key);
    if (rule)
        return guard_refuse(rule, text_of(key));
    Py_INCREF(key);
    return key;
}

static PyObject *op_item(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    (void)self;
    if (!two(n))
        return NULL;
    PyObject *x = args[0], *key = args[1];
    if (PyList_CheckExact(x) && PyLong_CheckExact(key)) { /* the hot case */
        Py_ssize_t i = PyLong_AsSsize_t(key);
        if (i == -1 && PyErr_Occurred())
            PyErr_Clear();
        else if (i >= 0 && i < PyList_GET_SIZE(x)) {
            PyObject *value = PyList_GET_ITEM(x, i);
            Py_INCREF(value);
            return value;
        }
    } else {
        const struct policy_rule *rule = bad_key(key);
        if (rule)
            return guard_refuse(rule, text_of(key));
    }
    PyObject *value = PyObject_GetItem(x, key);
    if (value && guard_is_closed(value)) {
        guard_closed(value);
        Py_CLEAR(value);
    }
    return value;
}

static PyObject *op_iter(PyObject *self, PyObject *x)
{
    (void)self;
    return guard_iter(x, false);
}

static PyObject *op_iter_tuples(PyObject *self, PyObject *x)
{
    (void)self;
    return guard_iter(x, true);
}

static PyObject *op_unpack(PyObject *self, PyObject *x)
{
    (void)self;
    return guard_iter(x, false);
}

static PyObject *op_refuse(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    (void)self;
    const struct policy_rule *rule;
    if (!two(n) || !PyUnicode_Check(args[1]))
        return NULL;
    const char *text = text_of(args[1]);
    size_t len = strlen(text);
    rule = check_ruleset_key(guard.rules, text, len);
    const struct policy_rule *attribute;
    if (guard_name(text, len, &attribute) != GUARD_NAME_FREE)
        rule = attribute;
    return rule ? guard_refuse(rule, text)
                : guard_refuse_own("py.guard.refused", text, "write it another way");
}

static PyMethodDef methods[GUARD_OP_COUNT] = {
    [GUARD_GET] = {"attribute", (PyCFunction)(void (*)(void))op_get, METH_FASTCALL, NULL},
    [GUARD_OWN_GET] = {"attribute", (PyCFunction)(void (*)(void))op_own_get, METH_FASTCALL, NULL},
    [GUARD_SET] = {"attribute", (PyCFunction)(void (*)(void))op_set, METH_FASTCALL, NULL},
    [GUARD_OWN_SET] = {"attribute", (PyCFunction)(void (*)(void))op_own_set, METH_FASTCALL, NULL},
    [GUARD_AUG] = {"attribute", (PyCFunction)(void (*)(void))op_aug, METH_FASTCALL, NULL},
    [GUARD_OWN_AUG] = {"attribute", (PyCFunction)(void (*)(void))op_own_aug, METH_FASTCALL, NULL},
    [GUARD_ITEM] = {"item", (PyCFunction)(void (*)(void))op_item, METH_FASTCALL, NULL},
    [GUARD_KEY] = {"item", op_key, METH_O, NULL},
    [GUARD_ITER] = {"iteration", op_iter, METH_O, NULL},
    [GUARD_ITER_TUPLES] = {"iteration", op_iter_tuples, METH_O, NULL},
    [GUARD_UNPACK] = {"unpack", op_unpack, METH_O, NULL},
    [GUARD_REFUSE] = {"refusal", (PyCFunction)(void (*)(void))op_refuse, METH_FASTCALL, NULL},
};

int guard_ops_init(void)
{
    for (int i = 0; i < GUARD_OP_COUNT; i++)
        if (!(guard.ops[i] = PyCFunction_New(&methods[i], NULL)))
            return -1;
    return 0;
}
