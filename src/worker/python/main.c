/* SPDX-License-Identifier: Apache-2.0 */
/* cordon-python: an interpreter that lives in a jail. --child: one worker, behind all its locks before it
 * starts its interpreter.
 * --template: a pristine interpreter that forks locked workers until its holder is gone; what it imports is
 * imported by another process, which has its memory and nothing else of it. It is never
 * started by hand; what it needs comes by descriptor. */
#include "interp.h"

#include "channel.h"
#include "compute.h"
#include "driver.h"
#include "guard.h"
#include "holes.h"
#include "hook.h"
#include "jail/enter.h"
#include "jail/template.h"
#include "judge.h"
#include "rehearse.h"
#include "remap.h"
#include "stack.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct words {
    bool template;
    const char *profile;
    struct py_start start;
};

static int complain(const char *text)
{
    fprintf(stderr, "cordon-python: %s\n", text);
    return 70;
}

/* argv: --child | --template, [--profile NAME] [--packages] [--env FOLDER] [--preload a,b] */
static int parse(int argc, char **argv, struct words *w)
{
    if (argc < 2 || (strcmp(argv[1], "--child") != 0 && strcmp(argv[1], "--template") != 0))
        return -1;
    w->template = strcmp(argv[1], "--template") == 0;
    w->start.alone = !w->template;
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--packages") == 0)
            w->start.packages = true;
        else if (strcmp(argv[i], "--preload") == 0 && i + 1 < argc)
            w->start.preload = argv[++i];
        else if (strcmp(argv[i], "--env") == 0 && i + 1 < argc)
            w->start.env = argv[++i];
        else if (strcmp(argv[i], "--profile") == 0 && i + 1 < argc)
            w->profile = argv[++i];
        else
            return -1;
    }
    return 0;
}

static int start(const struct words *w, struct err *err)
{
    if (py_stack_threads(err) < 0 || py_interp_start(&w->start, err) < 0 ||
        py_judge_init(err) < 0 || py_guard_init(err) < 0 || py_hook_install(err) < 0 ||
        (w->profile && py_driver_profile(w->profile, err) < 0))
        return -1;
    return py_interp_started(err);
}

/* ---- template ---- */

/* A child of the stock has time until a job comes; one that somebody waits for gets it at once, and then serves it rather
 * than fetch what it may not need. */
static int entry(void *ctx)
{
    (void)ctx;
    py_driver_ready();
    bool fetched = py_remap_fetch(py_channel_waits);
    py_interp_after_fork();
    if (!fetched && !py_channel_waits() && py_driver_warm() < 0)
        return 70;
    return !py_channel_waits() && py_driver_close() < 0 ? 70 : py_driver_serve();
}

/* The profile's own list of modules that its programs use: imported once, shared by every child. */
static int preload(struct err *err)
{
    const struct policy_profile *p = check_ruleset_profile(py_driver_rules());
    for (size_t i = 0; i < p->rule_count; i++)
        if (p->rules[i].kind == POLICY_PRELOAD && py_interp_import(p->rules[i].name, err) < 0)
            return -1;
    if (py_compute_load(p, err) < 0)
        return -1;
    /* Freezing needs it: loaded later, it would be news to the guards, and every child would look at all
     * classes again. */
    if (py_interp_import("gc", err) < 0)
        return -1;
    /* its children serve this profile alone: what guards take away is taken away once, and what guards and
     * judge make once is made here for all of them */
    if (py_guard_close(py_driver_rules(), err) < 0)
        return -1;
    if (py_driver_warm() < 0)
        return err_set(err, ERR_STATE, "not even a small program runs");
    if (py_finish_prepare(err) < 0 || py_compute_forget_files(p, err) < 0)
        return -1;
    return py_interp_freeze(err);
}

struct loading {
    const struct words *words;
    struct err err;
};

/* All that the interpreter of a template ever does, in a process that has nothing but its memory (jail/template.h): the
 * start, the modules, the hooks that they registered for a fork. It stands at that fork for good: the template itself runs
 * no Python, neither now nor between two children. */
static int load(void *ctx)
{
    struct loading *l = ctx;
    if (start(l->words, &l->err) < 0)
        return -1;
    if (!py_driver_rules())
        return err_set(&l->err, ERR_USAGE, "a template needs a profile");
    if (preload(&l->err) < 0)
        return -1;
    PyOS_BeforeFork();
    py_holes_fill();
    return 0;
}

static int serve_template(const struct words *w, struct err *err)
{
    const struct jail_template_hooks hooks = {.entry = entry};
    struct loading l = {.words = w, .err = ERR_INIT};
    py_remap_watch();
    int r = jail_template_load(load, &l, err);
    if (r < 0 && l.err.code)
        *err = l.err;
    if (r == 0)
        r = py_remap(JAIL_FD_TEMPLATE_PROC, py_rehearse, w->start.preload, err);
    return r == 0 ? jail_template_serve(&hooks, err) : r;
}

int main(int argc, char **argv)
{
    struct words w = {0};
    struct err err = ERR_INIT;
    if (parse(argc, argv, &w) < 0 || fcntl(PY_CHANNEL, F_GETFD) < 0)
        return complain("started by cordon, not by hand; see `cordon run --help`");
    if (w.template)
        return serve_template(&w, &err) < 0 ? complain(err.msg) : 0;
    if (jail_enter(&err) < 0)
        _exit(70); /* who started it says why */
    if (start(&w, &err) < 0 || jail_entered(&err) < 0)
        return complain(err.msg);
    py_driver_ready();
    _exit(py_driver_serve());
}
