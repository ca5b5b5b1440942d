/* SPDX-License-Identifier: Apache-2.0 */
/* isinstance asks a class's __subclasshook__ about the class of any object at hand, also on behalf of library
 * code and of classes above: the guest would be handed `type`, the classes of frames and generators, a
 * library's insides. A hook of the guest's is asked only about classes that the guest could name; about
 * others the answer is no, as it is without a hook, since no class of the guest's is among their bases.
 *
 * The question goes from _abc to ABCMeta.__subclasscheck__ to abc's global _abc_subclasscheck: there it is
 * looked at. What _abc has cached was answered before. */
#include "guard_inside.h"

static PyObject *plain_check;

/* The one that typing puts into every Protocol: it looks at names and keeps nothing. */
static bool is_of_protocol(PyObject *hook)
{
    PyObject *typing = PyDict_GetItemString(PyImport_GetModuleDict(), "typing"); /* borrowed */
    return PyFunction_Check(hook) && typing && PyModule_Check(typing) &&
           PyFunction_GET_GLOBALS(hook) == PyModule_GetDict(typing) &&
           PyUnicode_CompareWithASCIIString(((PyCodeObject *)PyFunction_GET_CODE(hook))->co_name,
                                            "_proto_hook") == 0;
}

static bool has_own_hook(PyObject *type)
{
    static PyObject *name;
    if (!name)
        name = PyUnicode_InternFromString("__subclasshook__");
    PyObject *mro = PyType_Check(type) ? ((PyTypeObject *)type)->tp_mro : NULL;
    for (Py_ssize_t i = 0; name && mro && i < PyTuple_GET_SIZE(mro); i++) {
        PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(mro, i);
        PyObject *hook = base->tp_dict ? PyDict_GetItemWithError(base->tp_dict, name) : NULL;
        if (hook)
            return guard_is_own_type(base) && !is_of_protocol(hook);
        PyErr_Clear();
    }
    return false;
}

/* The guest's own, a builtin, or a member that a module has shown it. Where the guest has type(), that tells
 * it every class but these. */
static bool can_name(PyTypeObject *type)
{
    if (guard_is_own_type(type))
        return true;
    if (type == &PyType_Type || (type->tp_flags & GUARD_CLOSED))
        return false;
    if (PyDict_GetItemString(guard.builtins, "type"))
        return true;
    PyObject *name = PyObject_GetAttrString((PyObject *)type, "__name__");
    PyObject *module = PyObject_GetAttrString((PyObject *)type, "__module__");
    bool can = false;
    if (name && PyUnicode_CheckExact(name) && module && PyUnicode_CheckExact(module))
        can = PyDict_GetItemWithError(guard.builtins, name) == (PyObject *)type ||
              facade_has_shown(module, name) == (PyObject *)type;
    PyErr_Clear();
    Py_XDECREF(name);
    Py_XDECREF(module);
    return can;
}

static PyObject *check(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    (void)self;
    if (n == 2 && guard.rules && has_own_hook(args[0]) && PyType_Check(args[1]) &&
        !can_name((PyTypeObject *)args[1]))
        Py_RETURN_FALSE;
    return PyObject_Vectorcall(plain_check, args, (size_t)n, NULL);
}

int guard_close_hooks(void)
{
    static PyMethodDef def = {"_abc_subclasscheck", (PyCFunction)(void (*)(void))check,
                              METH_FASTCALL, NULL};
    PyObject *module = PyImport_ImportModule("abc");
    int r = module ? guard_exchange(module, &def, &plain_check) : -1;
    Py_XDECREF(module);
    if (r == 0 && !plain_check) {
        PyErr_SetString(PyExc_ImportError, "abc has no _abc_subclasscheck");
        return -1;
    }
    return r;
}
