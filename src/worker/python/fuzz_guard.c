/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a source: what Python compiles, it also compiles with guards in it, unless it is refused by
 * name or is too deep; nothing is run. The first byte chooses whether annotations are text. */
#include "guard_inside.h"
#include "opaque.h"
#include "test_start.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct check_ruleset *rules;

static void start(void)
{
    struct err err = ERR_INIT;
    base_assert(py_opaque_start(&err) == 0 && test_python(&err) == 0 && py_guard_init(&err) == 0);
    base_assert(check_ruleset_new(policy_profile_find("strict"), &rules, &err) == 0);
    base_assert(py_guard_globals(rules));
    PyRun_SimpleString("import warnings; warnings.simplefilter('ignore')");
}

static PyObject *parse(const char *source)
{
    PyCompilerFlags flags = {.cf_flags = PyCF_ONLY_AST, .cf_feature_version = PY_MINOR_VERSION};
    return Py_CompileStringFlags(source, "<fuzz>", Py_file_input, &flags);
}

static bool may_fail(void)
{
    return PyErr_ExceptionMatches(guard.security_error) ||
           PyErr_ExceptionMatches(PyExc_RecursionError) ||
           PyErr_ExceptionMatches(PyExc_MemoryError);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err = ERR_INIT;
    if (!rules)
        start();
    char *source = size ? malloc(size + 64) : NULL;
    if (!source || memchr(data, 0, size)) {
        free(source);
        return 0;
    }
    size_t head = data[0] & 1 ? strlen("from __future__ import annotations\n") : 0;
    memcpy(source, "from __future__ import annotations\n", head);
    memcpy(source + head, data + 1, size - 1);
    source[head + size - 1] = 0;
    PyObject *tree = parse(source), *again = tree ? parse(source) : NULL;
    PyObject *plain = tree ? py_guard_compile(tree, "<fuzz>", "exec") : NULL;
    PyErr_Clear();
    if (again) {
        int r = py_guard_rewrite(again, rules, &err);
        PyObject *guarded = r == 0 ? py_guard_compile(again, "<fuzz>", "exec") : NULL;
        base_assert(!plain || guarded || may_fail());
        PyErr_Clear();
        Py_XDECREF(guarded);
    }
    Py_XDECREF(plain);
    Py_XDECREF(tree);
    Py_XDECREF(again);
    free(source);
    return 0;
}
