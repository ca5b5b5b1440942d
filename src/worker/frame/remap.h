/* SPDX-License-Identifier: Apache-2.0 */
/* A template's memory becomes a sealed file that its children map: a fork then copies no page tables, and
 * the pages that every child is going to write are fetched in one go.
 *
 * Takes:   an interpreter that has loaded everything; a rehearsal of what each child will do.
 * Gives:   the same memory at the same addresses; for a child, its own copies of the pages that it will write.
 * Never:   leaves a descriptor of that file, or a byte of it that anybody could change.
 * Runs in: a worker: the template before its first fork, each child before its first guest byte.
 */
#ifndef WORKER_FRAME_REMAP_H
#define WORKER_FRAME_REMAP_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

/* Before the interpreter is started: from then on its language says where its objects lie. */
void worker_remap_watch(void);
/* The language maps a block for its objects, or is about to unmap one: it is never moved. */
void worker_remap_add(const void *p, size_t size);
void worker_remap_remove(const void *p);

/* Runs a sample program as a child would: one that imports WITH (NULL: nothing), or with ONLY_PRINT one that does no more
 * than print. 0: it went as it should. */
typedef int worker_remap_rehearse(const char *with, bool only_print);

/* In the template, at the very end. PROC: /proc. REHEARSE is called with WITH in a process of its own, or with NULL if that
 * went wrong. From here on nothing of the interpreter may be touched in the template. What the kernel cannot give is
 * left out. */
ERR_MUST_USE int worker_remap(int proc, worker_remap_rehearse *rehearse, const char *with,
                              struct err *err);

/* In a child: what every program writes, and more until STOP says that there is better to do. False: nothing is known about what it will touch (it then
 * finds out by itself). */
bool worker_remap_fetch(bool (*stop)(void));

#endif
