/* From a rewritten tree to code, and the one question about code that libraries make at run time.
 *
 * A tree can hold no C function, so the rewriter leaves secret byte strings in their place, and here they
 * are exchanged in the constants of the compiled code. Nothing else holds the code yet.
 *
 * dataclasses and namedtuple compile text that they put together of field names. That such a name is
 * only a name is their own check, and there are ways to slip something else in (a forged
 * __dataclass_fields__). So the audit hook asks about what comes out of it: code that can reach no
 * global but these few, import nothing and use no special name but these, can do nothing that guest code
 * could not do itself. */
#include "guard_inside.h"

#include <string.h>

/* ---- compiling ---- */

static int fill_constants(PyObject *code, PyObject *found)
{
    PyObject *consts = ((PyCodeObject *)code)->co_consts;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(consts); i++) {
        PyObject *c = PyTuple_GET_ITEM(consts, i);
        if (PyCode_Check(c) && PyList_Append(found, c) < 0)
            return -1;
        for (int op = 0; PyBytes_CheckExact(c) && op < GUARD_OP_COUNT; op++)
            if (PyBytes_GET_SIZE(c) == PyBytes_GET_SIZE(guard.marks[op]) &&
                memcmp(PyBytes_AS_STRING(c), PyBytes_AS_STRING(guard.marks[op]),
                       (size_t)PyBytes_GET_SIZE(c)) == 0) {
                PyTuple_SET_ITEM(consts, i, Py_NewRef(guard.ops[op]));
                Py_DECREF(c);
                break;
            }
    }
    return 0;
}

static int fill_marks(PyObject *code)
{
    PyObject *found = PyList_New(0);
    int r = found ? PyList_Append(found, code) : -1;
    for (Py_ssize_t i = 0; r == 0 && i < PyList_GET_SIZE(found); i++)
        r = fill_constants(PyList_GET_ITEM(found, i), found);
    Py_XDECREF(found);
    return r;
}

PyObject *py_guard_compile(PyObject *tree, const char *file, const char *mode)
{
    PyObject *builtins = PyImport_ImportModule("builtins");
    PyObject *code = builtins ? PyObject_CallMethod(builtins, "compile", "Ossii", tree, file, mode,
                                                    0, 1 /* inherit no flags of ours */)
                              : NULL;
    Py_XDECREF(builtins);
    if (code && guard.rules && (!PyCode_Check(code) || fill_marks(code) < 0))
        Py_CLEAR(code);
    return code;
}

/* ---- code of libraries ---- */

static bool among(PyObject *name, const char *const *list)
{
    for (; *list; list++)
        if (PyUnicode_CompareWithASCIIString(name, *list) == 0)
            return true;
    return false;
}

static bool name_is_plain(PyObject *name)
{
    static const char *const special[] = {"__create_fn__",
                                          "__class__",
                                          "__qualname__",
                                          "__setattr__",
                                          "__delattr__",
                                          "__init__",
                                          "__repr__",
                                          "__post_init__",
                                          "__eq__",
                                          "__lt__",
                                          "__le__",
                                          "__gt__",
                                          "__ge__",
                                          "__hash__",
                                          "__dataclass_builtins_object__",
                                          NULL};
    Py_ssize_t len;
    const char *text = PyUnicode_AsUTF8AndSize(name, &len);
    if (!text)
        PyErr_Clear();
    return text && (!guard_is_dunder(text, (size_t)len) || among(name, special));
}

/* Opcode numbers differ between versions; their names have been stable. */
static int number_of(const char *name)
{
    PyObject *module = PyImport_ImportModule("opcode");
    PyObject *map = module ? PyObject_GetAttrString(module, "opmap") : NULL;
    PyObject *number = map && PyDict_Check(map) ? PyDict_GetItemString(map, name) : NULL;
    int n = number && PyLong_Check(number) ? (int)PyLong_AsLong(number) : -1;
    PyErr_Clear();
    Py_XDECREF(module);
    Py_XDECREF(map);
    return n;
}

static int load_global, load_name, extended;
static int refused[8];
static size_t refused_count;

int guard_code_init(void)
{
    static const char *const never[] = {"IMPORT_NAME",     "IMPORT_FROM",   "IMPORT_STAR",
                                        "STORE_GLOBAL",    "DELETE_GLOBAL", "LOAD_BUILD_CLASS",
                                        "LOAD_CLASSDEREF", "DELETE_NAME"};
    load_global = number_of("LOAD_GLOBAL");
    load_name = number_of("LOAD_NAME");
    extended = number_of("EXTENDED_ARG");
    for (size_t i = 0; i < sizeof never / sizeof *never; i++) {
        int n = number_of(never[i]);
        if (n >= 0)
            refused[refused_count++] = n;
    }
    return load_global < 0 || load_name < 0 || extended < 0 || refused_count < 5 ? -1 : 0;
}

static bool global_is_plain(PyObject *names, unsigned index)
{
    static const char *const known[] = {"NotImplemented", "type",       "super", "hash",
                                        "object",         "_tuple_new", NULL};
    return index < (size_t)PyTuple_GET_SIZE(names) && among(PyTuple_GET_ITEM(names, index), known);
}

static bool bytes_are_plain(const unsigned char *code, size_t len, PyObject *names)
{
    unsigned arg = 0;
    for (size_t i = 0; i + 1 < len; i += 2) {
        int op = code[i];
        arg = arg << 8 | code[i + 1];
        for (size_t k = 0; k < refused_count; k++)
            if (op == refused[k])
                return false;
#if PY_VERSION_HEX >= 0x030B0000
        if (op == load_global && !global_is_plain(names, arg >> 1))
            return false;
#else
        if (op == load_global && !global_is_plain(names, arg))
            return false;
#endif
        if (op == load_name && !global_is_plain(names, arg))
            return false;
        if (op != extended)
            arg = 0;
    }
    return true;
}

static bool one_is_plain(PyObject *code)
{
    PyObject *names = ((PyCodeObject *)code)->co_names;
    PyObject *bytes = PyObject_GetAttrString(code, "co_code");
    bool good = bytes && PyBytes_Check(bytes) &&
                bytes_are_plain((const unsigned char *)PyBytes_AS_STRING(bytes),
                                (size_t)PyBytes_GET_SIZE(bytes), names);
    Py_XDECREF(bytes);
    PyErr_Clear();
    for (Py_ssize_t i = 0; good && i < PyTuple_GET_SIZE(names); i++)
        good = name_is_plain(PyTuple_GET_ITEM(names, i));
    return good;
}

bool guard_code_is_plain(PyObject *code)
{
    PyObject *found = PyList_New(0);
    bool good = found && PyCode_Check(code) && PyList_Append(found, code) == 0;
    for (Py_ssize_t i = 0; good && i < PyList_GET_SIZE(found); i++) {
        PyObject *consts = ((PyCodeObject *)PyList_GET_ITEM(found, i))->co_consts;
        good = one_is_plain(PyList_GET_ITEM(found, i));
        for (Py_ssize_t k = 0; good && k < PyTuple_GET_SIZE(consts); k++)
            if (PyCode_Check(PyTuple_GET_ITEM(consts, k)))
                good = PyList_Append(found, PyTuple_GET_ITEM(consts, k)) == 0;
    }
    PyErr_Clear();
    Py_XDECREF(found);
    return good;
}
