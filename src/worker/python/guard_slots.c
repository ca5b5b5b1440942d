/* SPDX-License-Identifier: Apache-2.0 */
/* Exchanging slots and methods of C types. A slot is copied into each class that inherits it, so those that are there already are
 * visited, too; the wrapper of a slot (list.__eq__) keeps a copy of its own. */
#include "guard_slots.h"

#define SLOT(name, expression)                                                                     \
    void **guard_slot_##name(PyTypeObject *type)                                                   \
    {                                                                                              \
        return (void **)(expression);                                                              \
    }
SLOT(compare, &type->tp_richcompare)
SLOT(next, &type->tp_iternext)
SLOT(repr, &type->tp_repr)
SLOT(str, &type->tp_str)
SLOT(hash, &type->tp_hash)
SLOT(init, &type->tp_init)
SLOT(new, &type->tp_new)
SLOT(dealloc, &type->tp_dealloc)
SLOT(contains, type->tp_as_sequence ? &type->tp_as_sequence->sq_contains : NULL)
SLOT(set_item, type->tp_as_mapping ? &type->tp_as_mapping->mp_ass_subscript : NULL)
SLOT(get_item, type->tp_as_mapping ? &type->tp_as_mapping->mp_subscript : NULL)

/* type.__subclasses__, taken before it is hidden. */
static PyObject *subclasses_of;

static int exchange_inherited(PyTypeObject *type, guard_slot_fn *slot, void *mine, void *before)
{
    PyObject *list = PyObject_CallOneArg(subclasses_of, (PyObject *)type);
    int r = list ? 0 : -1;
    for (Py_ssize_t i = 0; r == 0 && i < PyList_GET_SIZE(list); i++) {
        PyTypeObject *sub = (PyTypeObject *)PyList_GET_ITEM(list, i);
        void **at = slot(sub);
        if (at && *at == before)
            *at = mine;
        r = exchange_inherited(sub, slot, mine, before);
        PyType_Modified(sub);
    }
    Py_XDECREF(list);
    return r;
}

int guard_exchange_slot(PyTypeObject *type, guard_slot_fn *slot, void *mine, void **ret_before,
                        const char *const *names)
{
    void **at = slot(type);
    if (!at || !*at) {
        PyErr_Format(PyExc_SystemError, "%s has no such slot", type->tp_name);
        return -1;
    }
    void *before = *ret_before = *at;
    *at = mine;
    for (; names && *names; names++) {
        PyObject *descr = PyDict_GetItemString(type->tp_dict, *names); /* borrowed */
        if (descr && Py_IS_TYPE(descr, &PyWrapperDescr_Type))
            ((PyWrapperDescrObject *)descr)->d_wrapped = mine;
    }
    PyType_Modified(type);
    return exchange_inherited(type, slot, mine, before);
}

int guard_exchange_method(PyTypeObject *type, PyMethodDef *def, PyObject **ret_before)
{
    PyObject *before = PyDict_GetItemString(type->tp_dict, def->ml_name); /* borrowed */
    if (!before) {
        PyErr_Format(PyExc_SystemError, "%s has no method %s", type->tp_name, def->ml_name);
        return -1;
    }
    *ret_before = Py_NewRef(before);
    PyObject *descr = PyDescr_NewMethod(type, def);
    int r = descr ? PyDict_SetItemString(type->tp_dict, def->ml_name, descr) : -1;
    Py_XDECREF(descr);
    PyType_Modified(type);
    return r;
}

PyMethodDef *guard_method(PyTypeObject *type, const char *name)
{
    PyObject *descr = PyDict_GetItemString(type->tp_dict, name); /* borrowed */
    if (descr && Py_IS_TYPE(descr, &PyMethodDescr_Type))
        return ((PyMethodDescrObject *)descr)->d_method;
    PyErr_Format(PyExc_SystemError, "%s has no method %s of its own", type->tp_name, name);
    return NULL;
}

PyTypeObject *guard_type_of(const char *module, const char *name)
{
    PyObject *m = PyDict_GetItemString(PyImport_GetModuleDict(), module); /* borrowed */
    PyObject *type =
        m && PyModule_Check(m) ? PyDict_GetItemString(PyModule_GetDict(m), name) : NULL;
    return type && PyType_Check(type) ? (PyTypeObject *)type : NULL;
}

int guard_close_slots(void)
{
    if (!subclasses_of) {
        PyObject *descr =
            PyDict_GetItemString(PyType_Type.tp_dict, "__subclasses__"); /* borrowed */
        if (!descr) {
            PyErr_SetString(PyExc_SystemError, "type has no __subclasses__");
            return -1;
        }
        subclasses_of = Py_NewRef(descr);
    }
    static int (*const parts[])(void) = {guard_close_held,     guard_close_entered,
                                         guard_close_returned, guard_close_made,
                                         guard_close_texts,    guard_close_struct};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i]() < 0)
            return -1;
    return 0;
}
