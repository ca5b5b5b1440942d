/* SPDX-License-Identifier: Apache-2.0 */
/* Texts between us, UTF-8 with a length, and the engine, UTF-16.
 *
 * Takes:   strict UTF-8; values of the engine.
 * Gives:   its strings, and bytes of our own; half a surrogate pair becomes U+FFFD.
 * Never:   stops at a NUL.
 * Runs in: cordon-javascript.
 */
#ifndef WORKER_JAVASCRIPT_TEXT_H
#define WORKER_JAVASCRIPT_TEXT_H

#include "engine_first.h"

#include <stddef.h>

/* NULL: no memory. What is not UTF-8 becomes U+FFFD. */
JSStringRef js_text_new(const char *text, size_t len);
JSValueRef js_text_value(JSContextRef ctx, const char *text, size_t len);

/* With a NUL behind LEN bytes; the caller frees it. NULL: no memory, or the value has no text. The first one runs what the value's own
 * toString is. */
char *js_text_of(JSContextRef ctx, JSValueRef value, size_t *ret_len);
char *js_text_utf8(JSStringRef text, size_t *ret_len);

/* Of an object: the property as it is, a number or 0, a text or NULL. */
JSValueRef js_text_property(JSContextRef ctx, JSValueRef object, const char *name);
double js_text_number(JSContextRef ctx, JSValueRef object, const char *name);
char *js_text_string(JSContextRef ctx, JSValueRef object, const char *name, size_t *ret_len);

#endif
