/* SPDX-License-Identifier: Apache-2.0 */
/* An interpreter for tests: isolated, without site, without a jail. Nothing that a test judges is run.
 *
 * Takes:   nothing.
 * Gives:   a started CPython, with the judge's tables or without; a word to the leak sanitizer.
 * Never:   is part of a program that people start.
 * Runs in: tests only.
 */
#ifndef WORKER_PYTHON_TEST_START_H
#define WORKER_PYTHON_TEST_START_H

#include "judge.h"

/* What CPython keeps until its end is not ours to free; what is ours counts as before, and objects that
 * the judge forgot are counted by test_judge.c. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libpython\n";
}

ERR_MUST_USE static inline int test_python(struct err *err)
{
    PyConfig config;
    PyConfig_InitIsolatedConfig(&config);
    config.site_import = 0;
    PyStatus status = Py_InitializeFromConfig(&config);
    PyConfig_Clear(&config);
    if (PyStatus_Exception(status))
        return err_set(err, ERR_MISSING, "Python does not start");
    return 0;
}

ERR_MUST_USE static inline int test_start(struct err *err)
{
    int r = test_python(err);
    return r < 0 ? r : py_judge_init(err);
}

#endif
