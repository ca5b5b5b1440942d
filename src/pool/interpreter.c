/* SPDX-License-Identifier: Apache-2.0 */
/* What a template is, for each profile: the same program, folders and variables that a run without a pool has, so
 * that a program cannot tell which of the two it runs in; on top of it, the packages that are loaded ahead. */
#include "pool/holding.h"

#include "base/languages.h"

#include <string.h>

static const char *worker_of(const struct language *language, const struct pool_holder_start *start)
{
    if (language == language_default())
        return start->python;
    for (size_t i = 0; i < start->worker_count; i++)
        if (start->workers[i].language == language)
            return start->workers[i].path;
    return NULL;
}

int pool_interpreter_spec(struct pool_interpreter *t, const struct pool_warm *w,
                          const struct pool_holder_start *start, struct jail_spec *spec,
                          struct err *err)
{
    const char *worker = worker_of(w->language, start);
    const bool installed = /* packages and environments are Python's */
        w->language == language_default() && (w->packages || w->rules.installed);
    size_t n = 0;
    if (!worker)
        return err_set(err, ERR_MISSING, "%s is not installed", w->language->worker);
    *t = (struct pool_interpreter){
        .binds = {{.source = worker, .dest = w->language->place, .moved = true, .links = true}}};
    jail_spec_init(spec);
    spec->kind = JAIL_KIND_TEMPLATE;
    spec->filter = "template";
    spec->program = w->language->place;
    spec->stack = LIMIT_STACK;
    t->argv[n++] = w->language->worker;
    t->argv[n++] = "--template";
    if (w->own.rules) {
        t->argv[n++] = "--rules"; /* it is told them */
    } else {
        t->argv[n++] = "--profile";
        t->argv[n++] = w->profile;
    }
    if (w->language->dialect) {
        t->argv[n++] = "--dialect";
        t->argv[n++] = w->language->name;
    }
    if (installed)
        n += pool_environment_argv(start->environment, w->packages, t->modules, sizeof t->modules,
                                   t->argv + n);
    spec->argv = t->argv;
    spec->argc = n;
    memcpy(t->env, pool_env, sizeof t->env);
    spec->env = t->env;
    spec->envc = POOL_ENV;
    spec->binds = t->binds;
    spec->nbinds = 1;
    if (installed)
        spec->nbinds += pool_environment_bind(start->environment, t->binds + spec->nbinds);
    spec->foreign = spec->nbinds > 1; /* modules of a virtual environment can be imported */
    if (installed)
        spec->nbinds += pool_settings(t->binds + spec->nbinds);
    for (size_t i = 0; w->own.shares && i < w->own.shares->count; i++)
        t->binds[spec->nbinds++] = w->own.shares->binds[i];
    spec->alone = w->own.shares;            /* root maps them to the id of one child */
    spec->limits.memory = LIMIT_MEMORY_MAX; /* children have limits of their own, at most this */
    spec->limits.flood = MIB;               /* a template prints next to nothing */
    return 0;
}
