/* SPDX-License-Identifier: Apache-2.0 */
/* The engine: JavaScriptCore as an interpreter with one thread, and its two contexts.
 *
 * Takes:   the process behind all its locks; in a template, the one that loads.
 * Gives:   a context for the judge, that no program ever runs in, and one for programs; descriptors that a fork may share.
 * Never:   compiles to machine code, starts a thread, or reads a variable of the caller's environment.
 * Runs in: cordon-javascript, in the jail: template and child.
 */
#ifndef WORKER_JAVASCRIPT_ENGINE_H
#define WORKER_JAVASCRIPT_ENGINE_H

#include "base/err.h"
#include "engine_first.h"

/* Once; a second call does nothing. */
ERR_MUST_USE int js_engine_start(struct err *err);
JSGlobalContextRef js_engine_judge(void);
JSGlobalContextRef js_engine_run(void);

/* Evaluates TEXT, of ours, in CTX. NULL: it threw, and ERR has what. */
JSValueRef js_engine_evaluate(JSGlobalContextRef ctx, const char *name, const char *text,
                              size_t len, struct err *err);

/* In a template, last of all: garbage is gone, and which descriptors the engine keeps is noted. */
void js_engine_settle(void);
/* In a forked process: these descriptors are devices of its own. */
void js_engine_after_fork(void);

#endif
