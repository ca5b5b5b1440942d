/* SPDX-License-Identifier: Apache-2.0 */
/* Who is running. Only questions: no frame leaves this file. */
#include "guard_inside.h"

#include <string.h>

PyObject *guard_frame_globals(PyFrameObject *frame)
{
#if PY_VERSION_HEX >= 0x030B0000
    PyObject *globals = PyFrame_GetGlobals(frame);
    Py_XDECREF(globals); /* the frame holds it */
    return globals;
#else
    return frame->f_globals;
#endif
}

/* The body of a module that is being loaded; those that a guest can write are its own code. */
static bool is_library_body(PyFrameObject *frame)
{
    static const char *const writable[] = {"/workspace/", "/tmp/", "/live/"};
    PyCodeObject *code = PyFrame_GetCode(frame);
    bool is = PyUnicode_CompareWithASCIIString(code->co_name, "<module>") == 0;
    const char *file = is ? PyUnicode_AsUTF8(code->co_filename) : NULL;
    is = file && (file[0] == '/' || strncmp(file, "<frozen ", 8) == 0);
    for (size_t i = 0; is && i < sizeof writable / sizeof *writable; i++)
        is = strncmp(file, writable[i], strlen(writable[i])) != 0;
    PyErr_Clear();
    Py_DECREF(code);
    return is;
}

enum guard_asker guard_asker(void)
{
    PyFrameObject *frame = PyEval_GetFrame();
    enum guard_asker asker = GUARD_NOBODY;
    Py_XINCREF(frame);
    while (frame && asker == GUARD_NOBODY) {
        if (guard_frame_globals(frame) == guard.globals)
            asker = GUARD_GUEST;
        else if (is_library_body(frame))
            asker = GUARD_LOADING;
        PyFrameObject *back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
    }
    Py_XDECREF(frame);
    return asker;
}

bool guard_runs_in(const char *module)
{
    PyObject *m = PyDict_GetItemString(PyImport_GetModuleDict(), module); /* borrowed */
    return m && PyModule_Check(m) && PyEval_GetGlobals() == PyModule_GetDict(m);
}
