/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's header, and the functions that its library exports beside it.
 *
 * Takes:   nothing.
 * Gives:   the C API of JavaScriptCore.
 * Never:   is included outside of cordon-javascript.
 * Runs in: cordon-javascript.
 */
#ifndef WORKER_JAVASCRIPT_ENGINE_FIRST_H
#define WORKER_JAVASCRIPT_ENGINE_FIRST_H

#include <JavaScriptCore/JavaScript.h>

/* Of JSContextRefPrivate.h and JSBasePrivate.h, which the package does not have; the library does. */
void JSGlobalContextSetEvalEnabled(JSGlobalContextRef ctx, bool enabled, JSStringRef message);
void JSGlobalContextSetUnhandledRejectionCallback(JSGlobalContextRef ctx, JSObjectRef function,
                                                  JSValueRef *exception);
void JSDisableGCTimer(void);

#endif
