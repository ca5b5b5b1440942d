/* SPDX-License-Identifier: Apache-2.0 */
/* A virtual environment is a folder with lib/pythonX.Y/site-packages and a pyvenv.cfg. Only its packages are shown
 * to a program, read-only: its bin/ has nothing that a judged program could start. What is loaded ahead is
 * code of the operator's choice; it fills a template's memory, before any guest (jail/template/load.c). */
#include "pool/environment.h"

#include "base/hash.h"
#include "sys/fd.h"
#include "sys/owned.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DEBIAN "/usr/lib/python3/dist-packages"
#define INSIDE "/cordon-packages"
#define WHAT   "python.environment"

/* Loaded ahead where nothing else is said and they are installed. */
static const char *const usual[][2] = {
    {"numpy", "numpy"}, {"pandas", "pandas"}, {"matplotlib", "matplotlib,matplotlib.pyplot"}};
enum { USUAL = sizeof usual / sizeof *usual };

/* `include-system-site-packages = true`, as venv writes it. */
static bool wants_system(const char *folder)
{
    char path[512], text[4096];
    if (snprintf(path, sizeof path, "%s/pyvenv.cfg", folder) >= (int)sizeof path ||
        fd_read_file(AT_FDCWD, path, text, sizeof text) < 0)
        return false;
    const char *at = strstr(text, "include-system-site-packages");
    at = at ? strchr(at, '=') : NULL;
    return at && strncmp(at + 1 + strspn(at + 1, " \t"), "true", 4) == 0;
}

static int list(struct pool_environment *e, const struct policy_words *modules, struct err *err)
{
    size_t at = 0;
    for (size_t i = 0; i < modules->count; i++) {
        int n = snprintf(e->preload + at, sizeof e->preload - at, "%s%s", i ? "," : "",
                         modules->items[i]);
        if (n < 0 || (size_t)n >= sizeof e->preload - at)
            return err_set(err, ERR_USAGE, "python.preload: the list is too long");
        at += (size_t)n;
    }
    return 0;
}

/* What is loaded ahead fills the template's memory: whoever can change it is in every child. */
static int trusted(const struct pool_environment *e, const char *folder, const char *what,
                   struct err *err)
{
    char settings[512];
    struct err why = ERR_INIT;
    int r = owned_way(what, e->site, err);
    if (r < 0 ||
        snprintf(settings, sizeof settings, "%s/pyvenv.cfg", folder) >= (int)sizeof settings)
        return r;
    r = owned_way(what, settings, &why);
    if (r == ERR_SYS && why.sys_errno == ENOENT)
        return 0; /* then it says nothing about Debian's packages */
    if (r < 0 && err)
        *err = why;
    return r;
}

int pool_environment_open(struct pool_environment *ret, const struct policy *policy,
                          const char *venv, struct err *err)
{
    const char *folder = venv ? venv : policy->python.environment, *what = venv ? "--venv" : WHAT;
    *ret = (struct pool_environment){0};
    int r = list(ret, &policy->python.preload, err);
    if (r < 0 || !folder || !*folder)
        return r;
    if (snprintf(ret->site, sizeof ret->site, "%s/lib/python%s/site-packages", folder,
                 CORDON_PYTHON) >= (int)sizeof ret->site)
        return err_set(err, ERR_USAGE, "%s: the path is too long", what);
    if (access(ret->site, R_OK | X_OK) < 0)
        return err_set(err, ERR_USAGE,
                       "%s: %.160s has no lib/python%s/site-packages that can be read: it is no "
                       "environment of this Python; /usr/bin/python3 -m venv DIR makes one",
                       what, folder, CORDON_PYTHON);
    ret->system = wants_system(folder);
    return trusted(ret, folder, what, err);
}

int pool_environment_check(const struct pool_environment *e, struct err *err)
{
    return e && e->site[0] ? owned_tree(WHAT, e->site, err) : 0;
}

int pool_environment_words(struct pool_environment *ret, const char *site, const char *preload,
                           const char *system, struct err *err)
{
    *ret = (struct pool_environment){.system = strcmp(system, "1") == 0};
    if (snprintf(ret->site, sizeof ret->site, "%s", site) >= (int)sizeof ret->site ||
        snprintf(ret->preload, sizeof ret->preload, "%s", preload) >= (int)sizeof ret->preload)
        return err_set(err, ERR_USAGE, "the environment's words are too long");
    return 0;
}

uint32_t pool_environment_mark(const struct pool_environment *e)
{
    if (!e || (!e->site[0] && !e->preload[0]))
        return 0;
    uint32_t h = hash_bytes(HASH_START, e->system ? "1" : "0", 1);
    h = hash_bytes(h, e->site, strlen(e->site) + 1);
    h = hash_bytes(h, e->preload, strlen(e->preload));
    return h ? h : 1;
}

static const char *modules_of(const struct pool_environment *e, char *text, size_t size)
{
    char path[640];
    if (e && e->preload[0])
        return e->preload;
    text[0] = 0;
    for (size_t i = 0; i < USUAL; i++) {
        size_t at = strlen(text);
        const char *const folders[] = {e ? e->site : "",
                                       !e || !e->site[0] || e->system ? DEBIAN : ""};
        bool there = false;
        for (size_t k = 0; k < 2; k++)
            there = there || (folders[k][0] &&
                              snprintf(path, sizeof path, "%s/%s/__init__.py", folders[k],
                                       usual[i][0]) < (int)sizeof path &&
                              access(path, R_OK) == 0);
        if (there)
            snprintf(text + at, size - at, "%s%s", at ? "," : "", usual[i][1]);
    }
    return text;
}

size_t pool_environment_argv(const struct pool_environment *e, bool ahead, char *text, size_t size,
                             const char *out[POOL_ENVIRONMENT_WORDS])
{
    const bool own = e && e->site[0];
    size_t n = 0;
    if (own) {
        out[n++] = "--env";
        out[n++] = INSIDE;
    }
    if (!own || e->system)
        out[n++] = "--packages";
    const char *modules = ahead ? modules_of(e, text, size) : "";
    if (*modules) {
        out[n++] = "--preload";
        out[n++] = modules;
    }
    return n;
}

size_t pool_environment_bind(const struct pool_environment *e, struct jail_bind *out)
{
    if (!e || !e->site[0])
        return 0;
    *out = (struct jail_bind){.source = e->site, .dest = INSIDE, .moved = true, .links = true};
    return 1;
}

bool pool_environment_named(const struct pool_environment *e, const void *source, size_t len)
{
    if (!e || !e->preload[0]) {
        for (size_t i = 0; i < USUAL; i++)
            if (memmem(source, len, usual[i][0], strlen(usual[i][0])))
                return true;
        return false;
    }
    for (const char *at = e->preload; *at;) {
        size_t all = strcspn(at, ","), top = strcspn(at, ",.");
        if (memmem(source, len, at, top))
            return true;
        at += all + (at[all] == ',');
    }
    return false;
}
