/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the audit hook share.
 *
 * Takes:   an event's name and arguments.
 * Gives:   words for a report: its layer, what was tried.
 * Never:   calls a method of an argument: they are the guest's objects.
 * Runs in: cordon-python, called by the interpreter.
 */
#ifndef WORKER_PYTHON_HOOK_INSIDE_H
#define WORKER_PYTHON_HOOK_INSIDE_H

#include "guard_inside.h"
#include "hook.h"

#define HOOK_DETAIL 200 /* bytes of a report's detail, with its NUL */

void hook_rules(const struct check_ruleset *rules); /* if it is armed: by these from now on */

const char *hook_layer(const char *event);
void hook_detail(const char *event, PyObject *args, char *out, size_t size);

/* An `open` event: is it one that will fail, or goes where no program has business? OUT tells what. */
bool hook_open_is_wrong(PyObject *args, char *out, size_t size);
/* What libraries ask of the machine as they are imported: platform's `uname -p` for pandas, matplotlib's `fc-list --help`. */
bool hook_asks_machine(const char *event, PyObject *args);
/* A socket object of the family AF_UNIX. */
bool hook_socket_is_local(const char *event, PyObject *args);
/* Does it read a library's own file? */
bool hook_open_is_library(PyObject *args, char *out, size_t size);

#endif
