/* SPDX-License-Identifier: Apache-2.0 */
/* cordon-python: the frame's program, with Python as its language. */
#include "program.h"

#include "base/speed.h"
#include "call.h"
#include "compute.h"
#include "files.h"
#include "guard.h"
#include "holes.h"
#include "hook.h"
#include "interp.h"
#include "interrupt.h"
#include "judge.h"
#include "lookup.h"
#include "worker/frame/input.h"
#include "worker/frame/remap.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

/* ---- where objects lie ---- */

/* A template's objects lie in one piece, so that they are one map: a fork copies each map. Blocks that the kernel places would lie
 * between the libraries. What is left of the room is given back before the first fork: it would count as address
 * space of every child. */
enum { ROOM = 64 << 20, LARGE_PAGE = 2 << 20 };
static struct {
    char *next, *end;
} room;

static void make_room(void)
{
    char *p = mmap(NULL, ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) /* then they lie anywhere */
        return;
    room.next = p + (-(uintptr_t)p) % LARGE_PAGE;
    room.end = p + ROOM;
    if (room.next > p)
        munmap(p, (size_t)(room.next - p));
}

static void leave_room(void)
{
    if (room.end > room.next)
        munmap(room.next, (size_t)(room.end - room.next));
    room.end = room.next;
}

static void *take_block(void *ctx, size_t size)
{
    (void)ctx;
    void *p = MAP_FAILED;
    if (size <= (size_t)(room.end - room.next) &&
        mprotect(room.next, size, PROT_READ | PROT_WRITE) == 0) {
        p = room.next;
        room.next += size;
    } else {
        p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    if (p == MAP_FAILED)
        return NULL;
    worker_remap_add(p, size);
    return p;
}

static void give_block(void *ctx, void *p, size_t size)
{
    (void)ctx;
    worker_remap_remove(p);
    munmap(p, size);
}

static void watch(void)
{
    PyObjectArenaAllocator allocator = {.alloc = take_block, .free = give_block};
    if (SPEED_FEW_MAPS)
        make_room();
    PyObject_SetArenaAllocator(&allocator);
}

/* ---- start ---- */

static int start(const struct worker_start *how, struct err *err)
{
    if (py_interp_start(how, err) < 0 || py_judge_init(err) < 0 || py_guard_init(err) < 0 ||
        py_hook_install(err) < 0)
        return -1;
    py_hook_input(worker_input_ask);
    if (how->workspace)
        py_judge_look_up(py_lookup_exists);
    py_guard_files(&py_files_ask);
    return 0;
}

/* The profile's own list of modules that its programs use: imported once, shared by every child. */
static int load(const struct check_ruleset *rules, struct err *err)
{
    const struct policy_profile *p = check_ruleset_profile(rules);
    for (size_t i = 0; i < p->rule_count; i++)
        if (p->rules[i].kind == POLICY_PRELOAD && py_interp_import(p->rules[i].name, err) < 0)
            return -1;
    if (py_compute_load(p, err) < 0)
        return -1;
    /* Freezing needs it: loaded later, it would be news to the guards, and every child would look at all
     * classes again. */
    if (py_interp_import("gc", err) < 0)
        return -1;
    if (p->guards && py_interp_forget_threads(err) < 0)
        return -1;
    /* its children serve this profile alone: what guards take away is taken away once, and what guards and
     * judge make once is made here for all of them */
    if (py_guard_close(rules, err) < 0)
        return -1;
    if (py_program_warm(rules) < 0)
        return err_set(err, ERR_STATE, "not even a small program runs");
    if (py_finish_prepare(err) < 0 || py_compute_forget_files(p, err) < 0)
        return -1;
    if (p->compute_only && py_interrupt_prepare() < 0) /* every child of it sets the handler */
        return err_set(err, ERR_STATE, "the handler of interrupts cannot be set");
    return py_interp_freeze(err);
}

static void before_fork(void)
{
    PyOS_BeforeFork();
    if (SPEED_HOLES)
        py_holes_fill();
    leave_room();
}

/* ---- rehearsals ---- */

static const struct worker_language python = {
    .sessions = true,
    .template = true,
    .program = "cordon-python",
    .compute_rule = "py.compute.call",
    .watch = watch,
    .start = start,
    .started = py_interp_started,
    .load = load,
    .before_fork = before_fork,
    .after_fork = py_interp_after_fork,
    .warm = py_program_warm,
    .sample = PY_PROGRAM_SAMPLE "print(x)\n",
    .sample_print = "print(1)\n",
    .sample_import = "import ",
    .expect = py_program_expect,
    .rules = py_program_rules,
    .incomplete = py_call_incomplete,
    .names = py_program_names,
    .judge = py_program_judge,
    .prepare = py_program_prepare,
    .close = py_program_close,
    .begin = py_program_begin,
    .execute = py_program_execute,
    .report = py_program_report,
    .finish = py_program_finish,
    .forget = py_program_forget,
    .set_variable = py_call_variable,
    .input_comes = py_call_input,
    .empty_input = py_call_empty_input,
    .set_interrupt = py_interrupt_set,
    .drop_interrupt = py_interrupt_drop,
};

int main(int argc, char **argv)
{
    return worker_main(&python, argc, argv);
}
