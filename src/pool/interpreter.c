/* What a template is, for each profile: the same program, folders and variables that a run without a pool has, so
 * that a program cannot tell which of the two it runs in; on top of it, the packages that are loaded ahead. */
#include "pool/holding.h"

#include "policy/profile.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PACKAGES "/usr/lib/python3/dist-packages"

/* Loaded ahead where they are installed. */
static const char *const ahead[][2] = {
    {"numpy", "numpy"}, {"pandas", "pandas"}, {"matplotlib", "matplotlib,matplotlib.pyplot"}};

static void list_packages(struct pool_interpreter *t)
{
    char path[128];
    for (size_t i = 0; i < sizeof ahead / sizeof *ahead; i++) {
        size_t at = strlen(t->preload);
        snprintf(path, sizeof path, "%s/%s/__init__.py", PACKAGES, ahead[i][0]);
        if (access(path, R_OK) == 0)
            snprintf(t->preload + at, sizeof t->preload - at, "%s%s", at ? "," : "", ahead[i][1]);
    }
}

void pool_interpreter_plan(struct pool_interpreter *t, const struct policy_profile *profile,
                           bool packages, const char *python, struct jail_spec *spec)
{
    const bool installed = packages || !profile->guards;
    size_t n = 0;
    *t = (struct pool_interpreter){
        .binds = {{.source = python, .dest = "/cordon-python", .moved = true}}};
    jail_spec_init(spec);
    spec->kind = JAIL_KIND_TEMPLATE;
    spec->filter = "template";
    spec->program = "/cordon-python";
    t->argv[n++] = "cordon-python";
    t->argv[n++] = "--template";
    t->argv[n++] = "--profile";
    t->argv[n++] = profile->name;
    if (installed)
        t->argv[n++] = "--packages";
    if (packages)
        list_packages(t);
    if (t->preload[0]) {
        t->argv[n++] = "--preload";
        t->argv[n++] = t->preload;
    }
    spec->argv = t->argv;
    spec->argc = n;
    memcpy(t->env, pool_env, sizeof t->env);
    spec->env = t->env;
    spec->envc = POOL_ENV;
    spec->binds = t->binds;
    spec->nbinds = 1;
    if (installed)
        spec->nbinds += pool_settings(t->binds + 1);
    spec->limits.memory = LIMIT_MEMORY_MAX; /* children have limits of their own, at most this */
    spec->limits.flood = MIB;               /* it has nothing to say */
}
