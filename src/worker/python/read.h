/* SPDX-License-Identifier: Apache-2.0 */
/* What a guarded program reads: descriptor 0 as sys.stdin, as text and as bytes.
 *
 * Takes:   the bytes of descriptor 0, whatever that is when they are asked for.
 * Gives:   lines and texts for input(), sys.stdin and sys.stdin.buffer.
 * Never:   shows a descriptor or a raw file; reads ahead further than one read() gives.
 * Runs in: cordon-python, in the jail, where guards are on.
 */
#ifndef WORKER_PYTHON_READ_H
#define WORKER_PYTHON_READ_H

/* Python.h wants to be first */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

int read_init(void); /* 0, or -1 with a Python exception */

PyObject *read_text(void); /* sys.stdin; borrowed */

#endif
