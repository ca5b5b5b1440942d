/* Ways round the guards that allowed modules offer, each closed when a guest first sees its module:
 *
 *   operator.attrgetter, methodcaller   look up what a string says: the names are checked when one is made
 *   string.Formatter.get_field          the same, for each field of a format
 *   functools.update_wrapper, wraps     copies attributes by any name, onto any object
 *   dataclasses                         a class that it makes anew (slots=True) stays the guest's own
 *   unittest.main                       finds tests by import path; what it returns leads to its loader,
 *                                       and so does load_tests, which the loader calls with itself
 *   contextlib.redirect_stdout          sets an attribute of sys that a private name chooses
 *
 * They are changed in the module itself where other paths lead to the same thing. */
#include "guard_inside.h"

#include "print.h"

#include <string.h>

/* Checks a dotted name, part by part. TEXT may be a subclass of str; *ret_exact: a plain copy. */
static int check_dotted(PyObject *text, PyObject **ret_exact)
{
    if (!PyUnicode_Check(text)) {
        PyErr_SetString(PyExc_TypeError, "attribute name must be a string");
        return -1;
    }
    PyObject *exact = PyUnicode_FromObject(text), *dot = PyUnicode_FromString(".");
    PyObject *parts = exact && dot ? PyUnicode_Split(exact, dot, -1) : NULL;
    int r = parts ? 0 : -1;
    for (Py_ssize_t i = 0; r == 0 && i < PyList_GET_SIZE(parts); i++) {
        PyObject *name = NULL;
        r = guard_name_for(NULL, PyList_GET_ITEM(parts, i), &name);
        Py_XDECREF(name);
    }
    Py_XDECREF(dot);
    Py_XDECREF(parts);
    if (r < 0)
        Py_CLEAR(exact);
    *ret_exact = exact;
    return r;
}

/* Puts FUNCTION, made of DEF, into MODULE under its name; *ret_before: what was there. */
static int exchange(PyObject *module, PyMethodDef *def, PyObject **ret_before)
{
    PyObject *dict = PyModule_GetDict(module), *f = PyCFunction_New(def, NULL);
    PyObject *before = PyDict_GetItemString(dict, def->ml_name);
    if (!f || !before) { /* this version has no such function: nothing to close */
        Py_XDECREF(f);
        return f ? 0 : -1;
    }
    if (!*ret_before)
        *ret_before = Py_NewRef(before);
    int r = PyDict_SetItemString(dict, def->ml_name, f);
    Py_DECREF(f);
    return r;
}

/* ---- operator ---- */

static newfunc plain_getter_new, plain_caller_new;

static PyObject *getter_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *checked = PyTuple_New(PyTuple_GET_SIZE(args)), *made = NULL;
    bool good = checked != NULL;
    for (Py_ssize_t i = 0; good && i < PyTuple_GET_SIZE(args); i++) {
        PyObject *name;
        good = check_dotted(PyTuple_GET_ITEM(args, i), &name) == 0;
        if (good)
            PyTuple_SET_ITEM(checked, i, name);
    }
    if (good)
        made = plain_getter_new(type, checked, kwargs);
    Py_XDECREF(checked);
    return made;
}

static PyObject *caller_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *name;
    if (PyTuple_GET_SIZE(args) < 1 || !PyUnicode_Check(PyTuple_GET_ITEM(args, 0)))
        return plain_caller_new(type, args, kwargs); /* it says what is wrong */
    if (guard_name_for(NULL, PyTuple_GET_ITEM(args, 0), &name) < 0)
        return NULL;
    PyObject *rest = PyTuple_GetSlice(args, 1, PyTuple_GET_SIZE(args));
    PyObject *first = PyTuple_Pack(1, name);
    PyObject *checked = first && rest ? PySequence_Concat(first, rest) : NULL;
    PyObject *caller = checked ? plain_caller_new(type, checked, kwargs) : NULL;
    Py_DECREF(name);
    Py_XDECREF(first);
    Py_XDECREF(rest);
    Py_XDECREF(checked);
    return caller;
}

static int close_new(PyObject *module, const char *name, newfunc closed, newfunc *ret_before)
{
    PyObject *type = PyObject_GetAttrString(module, name);
    if (!type || !PyType_Check(type)) {
        Py_XDECREF(type);
        return -1;
    }
    *ret_before = ((PyTypeObject *)type)->tp_new;
    ((PyTypeObject *)type)->tp_new = closed;
    Py_DECREF(type);
    return 0;
}

static int close_operator(PyObject *module)
{
    if (plain_getter_new)
        return 0;
    return close_new(module, "attrgetter", getter_new, &plain_getter_new) < 0
               ? -1
               : close_new(module, "methodcaller", caller_new, &plain_caller_new);
}

/* ---- string ---- */

static PyObject *plain_get_field;

static PyObject *get_field(PyObject *self, PyObject *args)
{
    PyObject *formatter, *name, *values, *words;
    (void)self;
    if (!PyArg_ParseTuple(args, "OUOO:get_field", &formatter, &name, &values, &words))
        return NULL;
    PyObject *exact = PyUnicode_FromObject(name);
    PyObject *field = exact ? PyUnicode_FromFormat("{%U}", exact) : NULL;
    PyObject *found = NULL;
    if (field && guard_check_format(field) == 0)
        found =
            PyObject_CallFunctionObjArgs(plain_get_field, formatter, exact, values, words, NULL);
    Py_XDECREF(exact);
    Py_XDECREF(field);
    return found;
}

static int close_string(PyObject *module)
{
    static PyMethodDef def = {"get_field", get_field, METH_VARARGS, NULL};
    PyObject *type = PyObject_GetAttrString(module, "Formatter");
    PyObject *f = plain_get_field ? NULL : PyCFunction_New(&def, NULL);
    PyObject *method = f ? PyInstanceMethod_New(f) : NULL;
    int r = type && (method || plain_get_field) ? 0 : -1;
    if (r == 0 && method) {
        plain_get_field = PyObject_GetAttrString(type, "get_field");
        /* past the guard on libraries' classes: this is us */
        r = plain_get_field
                ? PyDict_SetItemString(((PyTypeObject *)type)->tp_dict, "get_field", method)
                : -1;
        PyType_Modified((PyTypeObject *)type);
    }
    Py_XDECREF(type);
    Py_XDECREF(f);
    Py_XDECREF(method);
    return r;
}

/* ---- functools ---- */

static PyObject *plain_update_wrapper;

/* The names to copy: those of the default, or such as guest code may use. New tuple. */
static PyObject *check_names(PyObject *names)
{
    static const char *const usual[] = {"__module__", "__name__",        "__qualname__",
                                        "__doc__",    "__annotations__", "__type_params__",
                                        "__dict__"};
    PyObject *list = PySequence_List(names), *tuple = NULL;
    bool good = list != NULL;
    for (Py_ssize_t i = 0; good && i < PyList_GET_SIZE(list); i++) {
        PyObject *name = PyList_GET_ITEM(list, i), *exact = NULL;
        bool known = false;
        for (size_t k = 0; PyUnicode_CheckExact(name) && k < sizeof usual / sizeof *usual; k++)
            known = known || PyUnicode_CompareWithASCIIString(name, usual[k]) == 0;
        if (known)
            continue;
        good = guard_name_for(NULL, name, &exact) == 0 && PyList_SetItem(list, i, exact) == 0;
    }
    if (good)
        tuple = PyList_AsTuple(list);
    Py_XDECREF(list);
    return tuple;
}

/* An object of a library's class written in Python: its attributes steer that library's code. */
static bool is_library_object(PyObject *x)
{
    PyTypeObject *type = Py_TYPE(x);
    PyObject *key, *value;
    Py_ssize_t at = 0;
    if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE) || guard_is_own_type(type) || PyType_Check(x))
        return false;
    while (PyDict_Next(type->tp_dict, &at, &key, &value))
        if (PyFunction_Check(value))
            return true;
    return false;
}

static PyObject *update_wrapper(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *words[] = {(char *)"wrapper", (char *)"wrapped", (char *)"assigned",
                            (char *)"updated", NULL};
    PyObject *wrapper, *wrapped, *assigned = NULL, *updated = NULL;
    (void)self;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|OO:update_wrapper", words, &wrapper,
                                     &wrapped, &assigned, &updated))
        return NULL;
    if (is_library_object(wrapper) ||
        (PyType_Check(wrapper) && !guard_is_own_type((PyTypeObject *)wrapper)))
        return guard_refuse_own("py.guard.write",
                                "update_wrapper of an object that is not the program's own",
                                "wrap a function or an object of your own");
    PyObject *left = assigned ? check_names(assigned) : NULL,
             *right = updated ? check_names(updated) : NULL;
    PyObject *more = PyDict_New(), *result = NULL;
    if (more && (!assigned || left) && (!updated || right) &&
        (!left || PyDict_SetItemString(more, (char *)"assigned", left) == 0) &&
        (!right || PyDict_SetItemString(more, (char *)"updated", right) == 0)) {
        PyObject *both = PyTuple_Pack(2, wrapper, wrapped);
        result = both ? PyObject_Call(plain_update_wrapper, both, more) : NULL;
        Py_XDECREF(both);
    }
    Py_XDECREF(left);
    Py_XDECREF(right);
    Py_XDECREF(more);
    return result;
}

static int close_functools(PyObject *module)
{
    static PyMethodDef def = {(char *)"update_wrapper", (PyCFunction)(void (*)(void))update_wrapper,
                              METH_VARARGS | METH_KEYWORDS, NULL};
    return plain_update_wrapper ? 0 : exchange(module, &def, &plain_update_wrapper);
}

/* ---- dataclasses ---- */

static PyObject *plain_process_class;

/* asdict() and its kin read attributes by the names of fields, past the guards: names like __x__ are none.
 * They are looked at when all is done, since code of the guest ran meanwhile. */
static int check_fields(PyObject *type)
{
    PyObject *key, *value, *dict = ((PyTypeObject *)type)->tp_dict;
    PyObject *fields = PyDict_GetItemString(dict, "__dataclass_fields__");
    Py_ssize_t at = 0, len;
    bool good = !fields || PyDict_CheckExact(fields);
    while (good && fields && PyDict_Next(fields, &at, &key, &value)) {
        const char *text = PyUnicode_CheckExact(key) ? PyUnicode_AsUTF8AndSize(key, &len) : NULL;
        PyObject *name =
            Py_IS_TYPE(value, guard.field) ? PyObject_GetAttrString(value, "name") : NULL;
        good = text && !guard_is_dunder(text, (size_t)len) && PyUnicode_IsIdentifier(key) && name &&
               PyUnicode_CheckExact(name) && PyUnicode_Compare(name, key) == 0;
        Py_XDECREF(name);
        PyErr_Clear();
    }
    if (good)
        return 0;
    if (PyDict_DelItemString(dict, "__dataclass_fields__") < 0)
        PyErr_Clear();
    PyType_Modified((PyTypeObject *)type);
    guard_refuse_own("py.guard.class", "a field of a dataclass that is no plain name",
                     "choose another name for the field");
    return -1;
}

/* Private fields are the class's own business; a pattern would read them off anything. */
static void drop_private_match(PyObject *type)
{
    PyObject *dict = ((PyTypeObject *)type)->tp_dict;
    PyObject *names = PyDict_GetItemString(dict, "__match_args__");
    const struct policy_rule *rule;
    for (Py_ssize_t i = 0; names && PyTuple_Check(names) && i < PyTuple_GET_SIZE(names); i++) {
        const char *text = PyUnicode_AsUTF8(PyTuple_GET_ITEM(names, i));
        if (!text || guard_name(text, strlen(text), &rule) != GUARD_NAME_FREE) {
            if (PyDict_DelItemString(dict, "__match_args__") < 0)
                PyErr_Clear();
            PyType_Modified((PyTypeObject *)type);
            return;
        }
    }
}

static PyObject *process_class(PyObject *self, PyObject *args, PyObject *kwargs)
{
    (void)self;
    PyObject *type = PyObject_Call(plain_process_class, args, kwargs);
    PyObject *given = PyTuple_GET_SIZE(args) > 0 ? PyTuple_GET_ITEM(args, 0) : NULL;
    if (type && given && PyType_Check(given) && guard_is_own_type((PyTypeObject *)given))
        guard_mark_own(type);
    if (type && PyType_Check(type))
        drop_private_match(type);
    if (type && PyType_Check(type) && check_fields(type) < 0) {
        if (given && given != type && PyType_Check(given))
            PyErr_Clear(), check_fields(given);
        Py_CLEAR(type);
    }
    return type;
}

static PyObject *plain_create_fn;

/* The functions that it makes get a namespace of their own: the guest's has no `type`, say, and they would
 * find there whatever the program calls so. */
static PyObject *create_fn(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static const char *const used[] = {"NotImplemented", "type", "super", "hash", "object"};
    static PyObject *namespace;
    (void)self;
    if (!namespace) {
        PyObject *module = PyImport_ImportModule("builtins");
        PyObject *few = PyDict_New();
        for (size_t i = 0; module && few && i < sizeof used / sizeof *used; i++)
            if (PyDict_SetItemString(few, used[i],
                                     PyDict_GetItemString(PyModule_GetDict(module), used[i])) < 0)
                Py_CLEAR(few);
        Py_XDECREF(module);
        namespace =
            few ? Py_BuildValue("{sNss}", "__builtins__", few, "__name__", "__main__") : NULL;
    }
    PyObject *own = namespace ? PyDict_Copy(namespace) : NULL;
    PyObject *words = own ? (kwargs ? PyDict_Copy(kwargs) : PyDict_New()) : NULL;
    PyObject *function = NULL;
    if (words && PyDict_SetItemString(words, "globals", own) == 0)
        function = PyObject_Call(plain_create_fn, args, words);
    Py_XDECREF(own);
    Py_XDECREF(words);
    return function;
}

static int close_dataclasses(PyObject *module)
{
    static PyMethodDef create = {"_create_fn", (PyCFunction)(void (*)(void))create_fn,
                                 METH_VARARGS | METH_KEYWORDS, NULL};
    static PyMethodDef def = {"_process_class", (PyCFunction)(void (*)(void))process_class,
                              METH_VARARGS | METH_KEYWORDS, NULL};
    if (plain_process_class)
        return 0;
    guard.field = (PyTypeObject *)PyObject_GetAttrString(module, "Field");
    if (!guard.field || exchange(module, &create, &plain_create_fn) < 0)
        return -1;
    return exchange(module, &def, &plain_process_class);
}

/* ---- unittest ---- */

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
        r = check_dotted(wanted, &exact) < 0 ? -1
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

static int close_loader(PyObject *module)
{
    static PyMethodDef def = {"loadTestsFromModule", (PyCFunction)(void (*)(void))tests_of_module,
                              METH_VARARGS | METH_KEYWORDS, NULL};
    PyObject *type = PyObject_GetAttrString(module, "TestLoader");
    PyObject *f = PyCFunction_New(&def, NULL), *method = f ? PyInstanceMethod_New(f) : NULL;
    test_case = PyObject_GetAttrString(module, "TestCase");
    int r = type && PyType_Check(type) && method && test_case && PyType_Check(test_case) ? 0 : -1;
    if (r == 0) { /* past the guard on libraries' classes: this is us */
        r = PyDict_SetItemString(((PyTypeObject *)type)->tp_dict, def.ml_name, method);
        PyType_Modified((PyTypeObject *)type);
    }
    Py_XDECREF(type);
    Py_XDECREF(f);
    Py_XDECREF(method);
    return r;
}

static int close_unittest(PyObject *module)
{
    static PyMethodDef def = {"main", (PyCFunction)(void (*)(void))unittest_main,
                              METH_VARARGS | METH_KEYWORDS, NULL};
    if (plain_main)
        return 0;
    return close_loader(module) < 0 ? -1 : exchange(module, &def, &plain_main);
}

/* ---- contextlib ---- */

static int close_contextlib(PyObject *module)
{
    PyObject *dict = PyModule_GetDict(module);
    if (PyDict_SetItemString(dict, "redirect_stdout", print_redirect("stdout")) < 0)
        return -1;
    return PyDict_SetItemString(dict, "redirect_stderr", print_redirect("stderr"));
}

/* ---- the table ---- */

int guard_library(PyObject *module, const char *name)
{
    static const struct {
        const char *name;
        int (*close)(PyObject *module);
    } table[] = {
        {"contextlib", close_contextlib}, {"dataclasses", close_dataclasses},
        {"functools", close_functools},   {"operator", close_operator},
        {"string", close_string},         {"unittest", close_unittest},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].name, name) == 0)
            return table[i].close(module);
    return 0;
}
