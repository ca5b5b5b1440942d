/* SPDX-License-Identifier: Apache-2.0 */
/* Cyclic garbage is collected between two instructions of a program, never inside one. CPython before 3.12 collects whenever
 * a container is allocated: tuple(v), v[1:], v + v look at v, allocate, and go on with what they saw, while a __del__ or
 * the callback of a weak reference has emptied v meanwhile. Later versions collect where we do.
 *
 * So the collector does not run by itself. Allocations are counted; every so often the interpreter is asked for a call between two
 * instructions, and that call collects, by CPython's own counts of what is young. */
#include "guard_inside.h"

#if PY_VERSION_HEX < 0x030c0000

/* as CPython has them: new containers, collections of the youngest, of the one above */
enum { EVERY = 512, YOUNG = 700, OLDER = 10 };

static struct {
    PyMemAllocatorEx below;
    PyObject *count, *collect, *blocks; /* gc.get_count, gc.collect, sys.getallocatedblocks */
    unsigned made;
    bool asked;
    long long after_full; /* blocks in use when everything was last looked at */
} gc;

/* Everything is looked at once there is a quarter more than the last time. */
static bool full_is_due(void)
{
    PyObject *n = PyObject_CallNoArgs(gc.blocks);
    const long long now = n ? PyLong_AsLongLong(n) : -1;
    Py_XDECREF(n);
    if (now < gc.after_full + gc.after_full / 4)
        return false;
    gc.after_full = now;
    return true;
}

static void collect(void)
{
    long young = 0, older = 0, oldest = 0;
    PyObject *counts = PyObject_CallNoArgs(gc.count);
    if (!counts || !PyArg_ParseTuple(counts, "lll", &young, &older, &oldest) || young <= YOUNG) {
        Py_XDECREF(counts);
        return;
    }
    Py_DECREF(counts);
    const int generation = older <= OLDER ? 0 : oldest > OLDER && full_is_due() ? 2 : 1;
    Py_XDECREF(PyObject_CallFunction(gc.collect, "i", generation));
}

static int between_instructions(void *unused)
{
    (void)unused;
    gc.asked = false;
    collect();
    PyErr_Clear(); /* no memory to collect with: the program will meet that itself */
    return 0;
}

static void count_one(void)
{
    if (++gc.made < EVERY || gc.asked)
        return;
    gc.made = 0;
    gc.asked = Py_AddPendingCall(between_instructions, NULL) == 0;
}

static void *counted_malloc(void *ctx, size_t size)
{
    count_one();
    return gc.below.malloc(ctx, size);
}

static void *counted_calloc(void *ctx, size_t count, size_t size)
{
    count_one();
    return gc.below.calloc(ctx, count, size);
}

int guard_collect_start(void)
{
    PyObject *module = PyImport_ImportModule("gc");
    PyObject *off = module ? PyObject_CallMethod(module, "disable", NULL) : NULL;
    gc.count = off ? PyObject_GetAttrString(module, "get_count") : NULL;
    gc.collect = gc.count ? PyObject_GetAttrString(module, "collect") : NULL;
    PyObject *blocks = PySys_GetObject("getallocatedblocks"); /* borrowed */
    Py_XDECREF(off);
    Py_XDECREF(module);
    if (!gc.collect || !blocks)
        return -1;
    Py_INCREF(blocks);
    gc.blocks = blocks;
    PyMem_GetAllocator(PYMEM_DOMAIN_OBJ, &gc.below);
    PyMemAllocatorEx counted = gc.below; /* what is freed and moved goes straight on */
    counted.malloc = counted_malloc;
    counted.calloc = counted_calloc;
    PyMem_SetAllocator(PYMEM_DOMAIN_OBJ, &counted);
    return 0;
}

#else

int guard_collect_start(void)
{
    return 0;
}

#endif
