/* SPDX-License-Identifier: Apache-2.0 */
/* Both allocators, with a hole on every page: what is taken afterwards lies together only if the holes were filled. */
#include "holes.h"

/* Python.h wants to be first */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "base/sanitized.h"
#include "base/tap.h"
#include "worker/frame/holes.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

enum {
    SIZE = 48,
    LONG = 720,
    BLOCKS = 20000,
    LONG_BLOCKS = 3000,
    TAKEN = 60,
    EACH = 100,
    PAGE = 4096
};

NO_SEARCH_FOR_LEAKS

static void *small[BLOCKS], *longer[LONG_BLOCKS];

/* Every hundredth block is given back: each hole has a page of its own. */
static void make_holes(void)
{
    for (size_t i = 0; i < BLOCKS; i++)
        small[i] = PyObject_Malloc(SIZE);
    for (size_t i = 0; i < LONG_BLOCKS; i++)
        longer[i] = malloc(LONG);
    for (size_t i = 0; i < BLOCKS; i += EACH)
        PyObject_Free(small[i]);
    for (size_t i = 0; i < LONG_BLOCKS; i += EACH / 2)
        free(longer[i]);
}

static size_t pages_of(void *(*take)(size_t), size_t size)
{
    uintptr_t pages[TAKEN];
    size_t count = 0;
    for (int i = 0; i < TAKEN; i++) {
        uintptr_t page = (uintptr_t)take(size) / PAGE;
        size_t k = 0;
        while (k < count && pages[k] != page)
            k++;
        if (k == count)
            pages[count++] = page;
    }
    return count;
}

static const bool has_heap =
    !SANITIZED; /* there the C library's allocator is not the one that is linked */

int main(void)
{
    Py_InitializeEx(0);
    make_holes();
    size_t before = pages_of(PyObject_Malloc, SIZE), before_long = pages_of(malloc, LONG);
    tap_ok(before > TAKEN / 2, "with holes, small blocks are taken from %zu pages", before);
    tap_ok(!has_heap || before_long > TAKEN / 3, "with holes, long blocks are taken from %zu pages",
           before_long);
    py_holes_fill();
    worker_holes_fill();
    size_t after = pages_of(PyObject_Malloc, SIZE), after_long = pages_of(malloc, LONG);
    tap_ok(after <= 3, "without holes, small blocks are taken from %zu pages", after);
    tap_ok(!has_heap || after_long <= TAKEN * LONG / PAGE + 3,
           "without holes, long blocks are taken from %zu pages", after_long);
    py_holes_fill();
    worker_holes_fill(); /* once more: there is nothing to do */
    tap_ok(pages_of(PyObject_Malloc, SIZE) <= 3, "closing the holes a second time changes nothing");
    return tap_done();
}
