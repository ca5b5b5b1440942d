/* SPDX-License-Identifier: Apache-2.0 */
/* What a judged Python program costs before anything is judged: libpython loaded and started as
 * cordon-python starts it, and one statement parsed to a tree of Python objects. No jail, no judge, no end:
 * the floor under `cordon run`. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <unistd.h>

int main(void)
{
    PyConfig config;
    PyCompilerFlags tree = {.cf_flags = PyCF_ONLY_AST, .cf_feature_version = PY_MINOR_VERSION};
    PyConfig_InitIsolatedConfig(&config);
    config.site_import = 0;
    config.write_bytecode = 0;
    PyStatus s = PyConfig_SetString(&config, &config.program_name, L"/usr/bin/python3");
    if (!PyStatus_Exception(s))
        s = Py_InitializeFromConfig(&config);
    PyConfig_Clear(&config);
    _exit(PyStatus_Exception(s) ||
          !Py_CompileStringFlags("pass\n", "bench.py", Py_file_input, &tree));
}
