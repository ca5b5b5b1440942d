/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments travel as JSON, written by the interpreter's own json module: what a guest did to that module
 * changes only what the guest itself says. The answer is waited for with the interpreter's lock released,
 * one call at a time: the channel has no other reader while guest code runs. */
#include "host.h"

#include "base/limits.h"
#include "load.h"
#include "worker/frame/channel.h"
#include "worker/frame/host.h"

#include <string.h>

static PyObject * final(PyObject *self, PyObject *value)
{
    (void)self;
    PyObject *text = PyObject_Str(value);
    PyObject *bytes = text ? PyUnicode_AsEncodedString(text, "utf-8", "replace") : NULL;
    Py_XDECREF(text);
    if (!bytes)
        return NULL;
    worker_channel_pieces(WIRE_FINAL, PyBytes_AsString(bytes), (size_t)PyBytes_Size(bytes));
    Py_DECREF(bytes);
    PyErr_SetNone(PyExc_SystemExit); /* the answer is given: the program is at its end */
    return NULL;
}

/* {"message": ..., "category": ...} is raised, the category an attribute of the exception. */
static void raise_error(PyObject *error)
{
    PyObject *message = PyDict_Check(error) ? PyDict_GetItemString(error, "message") : error,
             *category = PyDict_Check(error) ? PyDict_GetItemString(error, "category") : NULL;
    PyObject *e =
        PyObject_CallFunctionObjArgs(PyExc_RuntimeError, message ? message : Py_None, NULL);
    if (e && (!category || PyObject_SetAttrString(e, "category", category) == 0))
        PyErr_SetObject(PyExc_RuntimeError, e);
    Py_XDECREF(e);
}

/* What the supervisor said, as a Python object. */
static PyObject *read_answer(uint64_t id)
{
    struct worker_answer answer;
    int got;
    Py_BEGIN_ALLOW_THREADS got = worker_host_wait(id, &answer);
    Py_END_ALLOW_THREADS if (got < 0)
    {
        PyErr_SetString(PyExc_ConnectionError, "the tool's side of the channel is gone");
        return NULL;
    }
    PyObject *module = PyImport_ImportModule("json");
    PyObject *value =
        module ? PyObject_CallMethod(module, "loads", "s#", answer.json, (Py_ssize_t)answer.len)
               : NULL;
    Py_XDECREF(module);
    if (value && !answer.good) {
        raise_error(value);
        Py_CLEAR(value);
    }
    return value;
}

static PyObject *ask(const char *name, const char *json, size_t len)
{
    uint64_t id = worker_host_ask(name, json, len);
    if (!id) {
        PyErr_SetString(PyExc_ConnectionError, "the call could not be sent");
        return NULL;
    }
    return read_answer(id);
}

static PyObject *names; /* where the functions of tools are: the program's globals; borrowed */

static int bind(const char *name);

/* A tool that the program made is one that it may call, from now on. */
static PyObject *bind_made(PyObject *answer)
{
    PyObject *name =
        PyDict_Check(answer) ? PyDict_GetItemString(answer, "name") : NULL; /* borrowed */
    const char *text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
    if (text && bind(text) == 0)
        return answer;
    Py_DECREF(answer);
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_RuntimeError, "the tool has no name");
    return NULL;
}

static const struct check_ruleset *rules; /* of the program; outlive it */

/* A module comes as its source. The dictionary is no answer for the program: its text is not marked as data. */
static PyObject *load_module(PyObject *answer)
{
    PyObject *name =
        PyDict_Check(answer) ? PyDict_GetItemString(answer, "name") : NULL; /* borrowed */
    PyObject *code = name ? PyDict_GetItemString(answer, "code") : NULL;    /* the same */
    Py_ssize_t len = 0;
    const char *text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
    const char *source =
        text && code && PyUnicode_Check(code) ? PyUnicode_AsUTF8AndSize(code, &len) : NULL;
    const bool guarded = check_ruleset_profile(rules)->guards; /* the trusted side has refused it */
    PyObject *module =
        source && !guarded ? py_load_module(rules, names, text, source, (size_t)len) : NULL;
    if (!module && !PyErr_Occurred())
        PyErr_SetString(PyExc_RuntimeError, "the module has no source");
    Py_DECREF(answer);
    return module;
}

static PyObject *call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    PyObject *module = PyImport_ImportModule("json");
    PyObject *both = Py_BuildValue("{sOsO}", "args", args, "kwargs", kwargs ? kwargs : Py_None);
    PyObject *json = module && both ? PyObject_CallMethod(module, "dumps", "O", both) : NULL;
    Py_XDECREF(module);
    Py_XDECREF(both);
    Py_ssize_t len = 0;
    const char *text = json && PyUnicode_Check(json) ? PyUnicode_AsUTF8AndSize(json, &len) : NULL;
    const char *name = PyUnicode_AsUTF8(self);
    PyObject *value = NULL;
    if (text && (size_t)len > LIMIT_CALL)
        PyErr_Format(PyExc_ValueError, "the arguments are longer than %llu bytes",
                     (unsigned long long)LIMIT_CALL);
    else if (text && name) {
        Py_BEGIN_ALLOW_THREADS worker_host_lock();
        Py_END_ALLOW_THREADS value = ask(name, text, (size_t)len);
        worker_host_unlock();
        if (value && strcmp(name, "CreateTool") == 0)
            value = bind_made(value);
        else if (value && strcmp(name, "LoadModule") == 0)
            value = load_module(value);
    } else if (!PyErr_Occurred()) {
        PyErr_SetString(PyExc_TypeError, "the arguments cannot be written as JSON");
    }
    Py_XDECREF(json);
    return value;
}

/* ---- code_api: tools as members of modules ---- */

static const struct {
    const char *module, *member, *tool;
} api[] = {
    {"code_api.search", "search", "Search"},      {"code_api.filtering", "filter", "Filter"},
    {"code_api.reranking", "fuse", "Fuse"},       {"code_api.reranking", "diversify", "Diversify"},
    {"code_api.reranking", "rescore", "Rescore"},
};

bool py_host_has_module(const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof api / sizeof *api; i++)
        for (size_t k = 0; k < worker_host_count(); k++)
            if (strcmp(worker_host_name(k), api[i].tool) == 0 &&
                strncmp(api[i].module, name, len) == 0 &&
                (api[i].module[len] == 0 || api[i].module[len] == '.'))
                return true;
    return false;
}

/* The module NAME, made if it is not there; borrowed. Its package has it as a member. */
static PyObject *api_module(const char *name)
{
    const char *dot = strrchr(name, '.');
    PyObject *package = dot ? api_module("code_api") : NULL;
    PyObject *m = dot && !package ? NULL : PyImport_AddModule(name);
    PyObject *none = m && !dot ? PyList_New(0) : NULL;
    if (none && PyObject_SetAttrString(m, "__path__", none) < 0)
        m = NULL;
    Py_XDECREF(none);
    return m && package && PyObject_SetAttrString(package, dot + 1, m) < 0 ? NULL : m;
}

static int bind_api(const char *tool, PyObject *function)
{
    for (size_t i = 0; i < sizeof api / sizeof *api; i++) {
        if (strcmp(api[i].tool, tool) != 0)
            continue;
        PyObject *m = api_module(api[i].module);
        if (!m || PyObject_SetAttrString(m, api[i].member, function) < 0)
            return -1;
    }
    return 0;
}

static int bind(const char *tool)
{
    static PyMethodDef call_def = {"tool_function", (PyCFunction)(void (*)(void))call,
                                   METH_VARARGS | METH_KEYWORDS, "A tool."};
    PyObject *name = PyUnicode_FromString(tool);
    PyObject *f = name ? PyCFunction_New(&call_def, name) : NULL;
    int r = f ? PyDict_SetItemString(names, tool, f) : -1;
    if (r == 0)
        r = bind_api(tool, f);
    Py_XDECREF(f);
    Py_XDECREF(name);
    return r;
}

int py_host_bind(PyObject *globals, const struct check_ruleset *of)
{
    static PyMethodDef final_def = {"FINAL", final, METH_O,
                                    "FINAL(x): x is the answer; ends here."};
    PyObject *f = PyCFunction_New(&final_def, NULL);
    names = globals;
    rules = of;
    int r = f ? PyDict_SetItemString(globals, "FINAL", f) : -1;
    Py_XDECREF(f);
    for (size_t i = 0; i < worker_host_count() && r == 0; i++)
        r = bind(worker_host_name(i));
    return r;
}
