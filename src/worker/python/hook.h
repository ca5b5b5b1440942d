/* SPDX-License-Identifier: Apache-2.0 */
/* The audit hook: what a program tries at run time, seen by the interpreter itself (PEP 578).
 *
 * Takes:   the events that CPython raises; the profile's event rules.
 * Gives:   reports with the guest's line; PermissionError for what the profile refuses.
 * Never:   can be found, removed or replaced by guest code; runs guest code; reports what importing a
 *          library does; reports more than PY_HOOK_REPORTS_MAX distinct things.
 * Runs in: cordon-python, called by the interpreter, in every profile.
 *
 * The guards report through it too: one list, one ceiling.
 */
#ifndef WORKER_PYTHON_HOOK_H
#define WORKER_PYTHON_HOOK_H

/* Python.h wants to be first */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "base/err.h"
#include "check/ruleset.h"

#define PY_HOOK_REPORTS_MAX 100 /* distinct ones; at most a quarter of them of one rule */

/* One thing that was tried: layer, rule id, what exactly, what to do instead, line (0: not known). */
typedef void py_report(void *ctx, const char *layer, const char *rule, const char *detail,
                       const char *hint, unsigned line);

/* Once, before the first guest byte; in a template: before the fork. It sleeps until it is armed. */
ERR_MUST_USE int py_hook_install(struct err *err);

/* Before a program or a cell runs. FILE is the name that its code was compiled under, for the line.
 * The rule set must live until the next call. REPORT is called with the interpreter's lock held. */
void py_hook_arm(const struct check_ruleset *rules, const char *file, py_report *report, void *ctx);

/* ASK is called whenever input() is about to read. */
void py_hook_input(void (*ask)(void));

/* NOTE is called, once a program for each ID, when something is said that is no refusal. */
void py_hook_notes(void (*note)(const char *id));
void py_hook_note(const char *id);

/* Reports, unless the same was reported before or there is no room; for the guards. */
void py_hook_report(const char *layer, const char *rule, const char *detail, const char *hint);

#endif
