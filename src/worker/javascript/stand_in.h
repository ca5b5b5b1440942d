/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the C library that the engine finds here first: by which it reserves addresses, and learns where its stack is.
 *
 * Takes:   calls of libjavascriptcoregtk.
 * Gives:   the same as the C library, but for the engine's largest reservation, which becomes JS_SHAPES bytes; the stack without /proc.
 * Never:   gives addresses that are in use.
 * Runs in: cordon-javascript: whoever links the file.
 */
#ifndef WORKER_JAVASCRIPT_STAND_IN_H
#define WORKER_JAVASCRIPT_STAND_IN_H

#include <stddef.h>

/* Room for the shapes of objects. The engine would reserve 4 GB for them, of which no limit of the kernel counts what is
 * filled; a shape takes some 100 bytes. */
#define JS_SHAPES ((size_t)64 << 20)

#endif
