/* SPDX-License-Identifier: Apache-2.0 */
/* An interpreter that lives in a jail. --child: one worker, behind all its locks before it starts its interpreter.
 * --template: a pristine interpreter that forks locked workers until its holder is gone; what it imports is
 * imported by another process, which has its memory and nothing else of it. It is never
 * started by hand; what it needs comes by descriptor. */
#include "base/speed.h"
#include "jail/enter.h"
#include "jail/template.h"
#include "worker/frame/channel.h"
#include "worker/frame/driver.h"
#include "worker/frame/holes.h"
#include "worker/frame/language.h"
#include "worker/frame/rehearse.h"
#include "worker/frame/remap.h"
#include "worker/frame/stack.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const struct worker_language *worker_language;

struct words {
    bool template;
    const char *profile;
    bool told; /* its rules come on the channel */
    struct worker_start start;
};

static int complain(const char *text)
{
    fprintf(stderr, "%s: %s\n", worker_language->program, text);
    return 70;
}

/* A word that stands alone. */
static bool flag(const char *word, struct words *w)
{
    if (strcmp(word, "--packages") == 0)
        return w->start.packages = true;
    if (strcmp(word, "--workspace") == 0)
        return w->start.workspace = true;
    return w->template && strcmp(word, "--rules") == 0 && (w->told = true);
}

/* argv: --child | --template, [--profile NAME | --rules] [--dialect NAME] [--packages] [--workspace] [--env FOLDER] [--preload a,b] */
static int parse(int argc, char **argv, struct words *w)
{
    const struct {
        const char *word, **value;
    } rows[] = {{"--preload", &w->start.preload},
                {"--env", &w->start.env},
                {"--dialect", &w->start.dialect},
                {"--profile", &w->profile}};
    if (argc < 2 || (strcmp(argv[1], "--child") != 0 && strcmp(argv[1], "--template") != 0))
        return -1;
    w->template = strcmp(argv[1], "--template") == 0;
    if (w->template && !worker_language->template)
        return -1;
    w->start.alone = !w->template;
    for (int i = 2; i < argc; i++) {
        size_t k = 0;
        if (flag(argv[i], w))
            continue;
        while (k < sizeof rows / sizeof *rows && strcmp(rows[k].word, argv[i]) != 0)
            k++;
        if (k == sizeof rows / sizeof *rows || ++i == argc)
            return -1;
        *rows[k].value = argv[i];
    }
    const struct policy_profile *profile = w->profile ? policy_profile_find(w->profile) : NULL;
    w->start.guarded = profile && profile->guards;
    return 0;
}

static int start(const struct words *w, struct err *err)
{
    if (worker_stack_threads(err) < 0 || worker_language->start(&w->start, err) < 0 ||
        (w->profile && worker_driver_profile(w->profile, err) < 0))
        return -1;
    return worker_language->started ? worker_language->started(err) : 0;
}

/* ---- template ---- */

/* A child of the stock has time until a job comes; one that somebody waits for gets it at once, and then serves it rather
 * than fetch what it may not need. */
static int entry(void *ctx)
{
    (void)ctx;
    worker_driver_ready();
    bool fetched = worker_remap_fetch(worker_channel_waits);
    worker_language->after_fork();
    if (!fetched && !worker_channel_waits() && worker_driver_warm() < 0)
        return 70;
    worker_stack_watch(); /* a table that is closed below refuses it */
    return !worker_channel_waits() && worker_driver_close() < 0 ? 70 : worker_driver_serve();
}

struct loading {
    const struct words *words;
    struct err err;
};

/* All that the interpreter of a template ever does, in a process that has nothing but its memory (jail/template.h): the
 * start, the modules, the hooks that they registered for a fork. It stands at that fork for good: the template itself runs
 * nothing of the language, neither now nor between two children. */
static int load(void *ctx)
{
    struct loading *l = ctx;
    if (start(l->words, &l->err) < 0)
        return -1;
    if (!worker_driver_rules())
        return err_set(&l->err, ERR_USAGE, "a template needs a profile");
    worker_channel_warm();
    if (worker_language->load(worker_driver_rules(), &l->err) < 0)
        return -1;
    if (worker_language->before_fork)
        worker_language->before_fork();
    if (SPEED_HOLES)
        worker_holes_fill();
    return 0;
}

static int serve_template(const struct words *w, struct err *err)
{
    const struct jail_template_hooks hooks = {.entry = entry};
    struct loading l = {.words = w, .err = ERR_INIT};
    worker_remap_watch();
    int r = w->told ? worker_driver_told(err) : 0; /* here: the loader has no channel */
    if (r == 0)
        r = jail_template_load(load, &l, err);
    if (r < 0 && l.err.code)
        *err = l.err;
    if (r == 0)
        r = worker_remap(JAIL_FD_TEMPLATE_PROC, worker_rehearse, w->start.preload, err);
    return r == 0 ? jail_template_serve(&hooks, err) : r;
}

int worker_main(const struct worker_language *language, int argc, char **argv)
{
    worker_language = language;
    struct words w = {0};
    struct err err = ERR_INIT;
    if (parse(argc, argv, &w) < 0 || fcntl(WORKER_CHANNEL, F_GETFD) < 0)
        return complain("started by cordon, not by hand; see `cordon run --help`");
    if (w.template)
        return serve_template(&w, &err) < 0 ? complain(err.msg) : 0;
    if (jail_enter(&err) < 0)
        _exit(70); /* the builder, which started it, reports why */
    if (start(&w, &err) < 0)
        return complain(err.msg);
    if (jail_entered(&err) < 0)
        _exit(70); /* the builder was ended, and whoever ended it tells that: a Ctrl-C, a limit */
    worker_driver_ready();
    worker_stack_watch();
    _exit(worker_driver_serve());
}
