/* Who is running. Only questions: no frame leaves this file. */
#include "guard_inside.h"

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

static bool is_module_body(PyFrameObject *frame)
{
    PyCodeObject *code = PyFrame_GetCode(frame);
    bool is = PyUnicode_CompareWithASCIIString(code->co_name, "<module>") == 0;
    Py_DECREF(code);
    return is;
}

bool guard_asked_by_guest(void)
{
    PyFrameObject *frame = PyEval_GetFrame();
    bool guests = false, library = false;
    Py_XINCREF(frame);
    while (frame && !guests && !library) {
        guests = guard_frame_globals(frame) == guard.globals;
        library = !guests && is_module_body(frame);
        PyFrameObject *back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
    }
    Py_XDECREF(frame);
    return guests;
}

bool guard_runs_in(const char *module)
{
    PyObject *m = PyDict_GetItemString(PyImport_GetModuleDict(), module); /* borrowed */
    return m && PyModule_Check(m) && PyEval_GetGlobals() == PyModule_GetDict(m);
}
