/* SPDX-License-Identifier: Apache-2.0 */
/* unittest.main finds tests by import path and calls what it finds; what it returns leads to its loader, and a
 * function load_tests of the program would be handed that loader. Here it runs the tests of the program
 * itself and tells how they went; should a loader get into the guest's hands all the same, it finds
 * nothing by import path. */
#include "guard_inside.h"

#include <string.h>

static PyObject *plain_main, *test_case;

/* What a program may ask about its tests afterwards. */
static PyObject *told_result(PyObject *program)
{
    static const char *const words[] = {
        "testsRun",      "failures",        "errors", "skipped", "unexpectedSuccesses",
        "wasSuccessful", "expectedFailures"};
    PyObject *types = PyImport_ImportModule("types");
    PyObject *told = types ? PyObject_CallMethod(types, "SimpleNamespace", NULL) : NULL;
    PyObject *outer = types ? PyObject_CallMethod(types, "SimpleNamespace", NULL) : NULL;
    PyObject *result = PyObject_GetAttrString(program, "result");
    int r = told && outer && result ? 0 : -1;
    for (size_t i = 0; r == 0 && i < sizeof words / sizeof *words; i++) {
        PyObject *value = PyObject_GetAttrString(result, words[i]);
        r = value ? PyObject_SetAttrString(told, words[i], value) : -1;
        Py_XDECREF(value);
    }
    if (r == 0)
        r = PyObject_SetAttrString(outer, "result", told);
    if (r < 0)
        Py_CLEAR(outer);
    Py_XDECREF(types);
    Py_XDECREF(told);
    Py_XDECREF(result);
    return outer;
}

/* Arguments of the command line that are options; names of tests would be looked up by path. */
static PyObject *options_alone(PyObject *argv)
{
    PyObject *list = PyList_New(0), *given = argv && argv != Py_None ? PySequence_List(argv) : NULL;
    PyObject *name = PyUnicode_FromString("main");
    int r = list && name ? PyList_Append(list, name) : -1;
    for (Py_ssize_t i = 1; r == 0 && given && i < PyList_GET_SIZE(given); i++) {
        PyObject *word = PyList_GET_ITEM(given, i);
        if (PyUnicode_CheckExact(word) && (PyUnicode_CompareWithASCIIString(word, "-v") == 0 ||
                                           PyUnicode_CompareWithASCIIString(word, "-q") == 0 ||
                                           PyUnicode_CompareWithASCIIString(word, "-f") == 0))
            r = PyList_Append(list, word);
    }
    Py_XDECREF(given);
    Py_XDECREF(name);
    if (r < 0 || PyErr_Occurred())
        Py_CLEAR(list);
    return list;
}

static PyObject *unittest_main(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static const char *const passed[] = {"verbosity", "exit", "failfast", "buffer", "testRunner"};
    (void)self;
    PyObject *call = PyDict_New(), *none = PyTuple_New(0), *program = NULL, *told = NULL;
    PyObject *argv = options_alone(kwargs ? PyDict_GetItemString(kwargs, "argv") : NULL);
    PyObject *wanted = kwargs ? PyDict_GetItemString(kwargs, "defaultTest") : NULL, *exact = NULL;
    int r = call && none && argv ? PyDict_SetItemString(call, "argv", argv) : -1;
    if (r == 0 && PyTuple_GET_SIZE(args) > 0) {
        PyErr_SetString(PyExc_TypeError, "here main() takes its arguments by name");
        r = -1;
    }
    for (size_t i = 0; r == 0 && kwargs && i < sizeof passed / sizeof *passed; i++) {
        PyObject *value = PyDict_GetItemString(kwargs, passed[i]);
        r = value ? PyDict_SetItemString(call, passed[i], value) : 0;
    }
    if (r == 0 && wanted && wanted != Py_None)
        r = guard_check_dotted(wanted, &exact) < 0
                ? -1
                : PyDict_SetItemString(call, "defaultTest", exact);
    if (r == 0)
        program = PyObject_Call(plain_main, none, call);
    if (program)
        told = told_result(program);
    Py_XDECREF(call);
    Py_XDECREF(none);
    Py_XDECREF(argv);
    Py_XDECREF(exact);
    Py_XDECREF(program);
    return told;
}

/* ---- the loader ---- */

static PyObject *plain_from_name;

/* loadTestsFromName(self, name, module=None) */
static PyObject *from_name(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *words[] = {(char *)"self", (char *)"name", (char *)"module", NULL};
    PyObject *loader, *name, *module = Py_None, *exact;
    (void)self;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|O:loadTestsFromName", words, &loader, &name,
                                     &module))
        return NULL;
    if (module == Py_None)
        return guard_refuse_own("py.guard.member", "unittest: tests by import path",
                                "name tests of this program, or call unittest.main()");
    if (guard_check_dotted(name, &exact) < 0)
        return NULL;
    PyObject *tests = PyObject_CallFunctionObjArgs(plain_from_name, loader, exact, module, NULL);
    Py_DECREF(exact);
    return tests;
}

static PyObject *discover(PyObject *self, PyObject *args)
{
    (void)self;
    (void)args;
    return guard_refuse_own("py.guard.member", "unittest: tests in files",
                            "write the tests into this program");
}

/* A loader calls what it finds at any import path, so a guest must never hold one; `load_tests` of a
 * module is called with it. This is loadTestsFromModule without that protocol. The module's name for it
 * is looked up last, as there, since code of the guest runs in between. */
static PyObject *tests_of_module(PyObject *self, PyObject *args, PyObject *kwargs)
{
    PyObject *loader, *module, *found = PyList_New(0);
    (void)self;
    (void)kwargs; /* pattern: for load_tests alone */
    if (!found || !PyArg_ParseTuple(args, "OO:loadTestsFromModule", &loader, &module)) {
        Py_XDECREF(found);
        return NULL;
    }
    PyObject *names = PyObject_Dir(module);
    int r = names ? 0 : -1;
    for (Py_ssize_t i = 0; r == 0 && i < PyList_GET_SIZE(names); i++) {
        PyObject *x = PyObject_GetAttr(module, PyList_GET_ITEM(names, i)), *suite = NULL;
        r = x ? 0 : -1;
        if (x && PyType_Check(x) &&
            PyType_IsSubtype((PyTypeObject *)x, (PyTypeObject *)test_case)) {
            suite = PyObject_CallMethod(loader, "loadTestsFromTestCase", "O", x);
            r = suite ? PyList_Append(found, suite) : -1;
        }
        Py_XDECREF(suite);
        Py_XDECREF(x);
    }
    Py_XDECREF(names);
    if (r == 0 && PyObject_HasAttrString(module, "load_tests")) {
        guard_refuse_own("py.guard.member", "load_tests", "write tests as methods of a TestCase");
        r = -1;
    }
    PyObject *all = r == 0 ? PyObject_CallMethod(loader, "suiteClass", "O", found) : NULL;
    Py_DECREF(found);
    return all;
}

/* Past the lock on libraries' classes: this is us. */
static int put_method(PyTypeObject *type, PyMethodDef *def)
{
    PyObject *f = PyCFunction_New(def, NULL), *method = f ? PyInstanceMethod_New(f) : NULL;
    int r = method ? PyDict_SetItemString(type->tp_dict, def->ml_name, method) : -1;
    PyType_Modified(type);
    Py_XDECREF(f);
    Py_XDECREF(method);
    return r;
}

/* ---- a test ---- */

/* run() and debug() look a method up by a name that the object says, and hand it to the object: for an object
 * that is no test at all this would be a getattr without guards. */
static PyObject *plain_run, *plain_debug;

static PyObject *of_a_test(PyObject *plain, PyObject *args, PyObject *kwargs)
{
    PyObject *test = PyTuple_GET_SIZE(args) > 0 ? PyTuple_GET_ITEM(args, 0) : NULL;
    if (!test || !PyType_IsSubtype(Py_TYPE(test), (PyTypeObject *)test_case)) {
        PyErr_SetString(PyExc_TypeError, "this is not a test");
        return NULL;
    }
    return PyObject_Call(plain, args, kwargs);
}

static PyObject *run(PyObject *self, PyObject *args, PyObject *kwargs)
{
    (void)self;
    return of_a_test(plain_run, args, kwargs);
}

static PyObject *debug(PyObject *self, PyObject *args, PyObject *kwargs)
{
    (void)self;
    return of_a_test(plain_debug, args, kwargs);
}

static int close_test(void)
{
    static PyMethodDef defs[] = {
        {"run", (PyCFunction)(void (*)(void))run, METH_VARARGS | METH_KEYWORDS, NULL},
        {"debug", (PyCFunction)(void (*)(void))debug, METH_VARARGS | METH_KEYWORDS, NULL},
    };
    plain_run = PyObject_GetAttrString(test_case, "run");
    plain_debug = PyObject_GetAttrString(test_case, "debug");
    if (!plain_run || !plain_debug || put_method((PyTypeObject *)test_case, &defs[0]) < 0)
        return -1;
    return put_method((PyTypeObject *)test_case, &defs[1]);
}

static int close_loader(PyObject *module)
{
    static PyMethodDef defs[] = {
        {"loadTestsFromName", (PyCFunction)(void (*)(void))from_name, METH_VARARGS | METH_KEYWORDS,
         NULL},
        {"discover", discover, METH_VARARGS, NULL},
        {"loadTestsFromModule", (PyCFunction)(void (*)(void))tests_of_module,
         METH_VARARGS | METH_KEYWORDS, NULL},
    };
    PyObject *type = PyObject_GetAttrString(module, "TestLoader");
    plain_from_name = type ? PyObject_GetAttrString(type, "loadTestsFromName") : NULL;
    test_case = PyObject_GetAttrString(module, "TestCase");
    int r = type && plain_from_name && PyType_Check(type) && test_case && PyType_Check(test_case)
                ? 0
                : -1;
    for (size_t i = 0; r == 0 && i < sizeof defs / sizeof *defs; i++)
        r = put_method((PyTypeObject *)type, &defs[i]);
    Py_XDECREF(type);
    return r < 0 ? r : close_test();
}

int guard_close_unittest(PyObject *module)
{
    static PyMethodDef def = {"main", (PyCFunction)(void (*)(void))unittest_main,
                              METH_VARARGS | METH_KEYWORDS, NULL};
    if (plain_main)
        return 0;
    return close_loader(module) < 0 ? -1 : guard_exchange(module, &def, &plain_main);
}
