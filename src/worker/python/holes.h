/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreter of a template hands out fresh memory from here on, not the holes between what was loaded.
 *
 * Takes:   an interpreter that has loaded everything and collected its garbage.
 * Gives:   the same one; what its children allocate lies together, on few pages.
 * Never:   frees or moves anything; the memory it takes is part of the template's file anyway.
 * Runs in: cordon-python: the process that loads a template, last of all.
 */
#ifndef WORKER_PYTHON_HOLES_H
#define WORKER_PYTHON_HOLES_H

void py_holes_fill(void);

#endif
