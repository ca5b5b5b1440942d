/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that trusted code opens or executes by name after a guest has run, in one list. A guest that can
 * write such a file, or a folder or link on the way to it, decides what runs outside the jail next time: so a run
 * that shares one for writing is refused. By device and inode (src/sys/walk.h), since a folder has many names, and by place in
 * its file system (src/sys/writable.h), since a part of it may be mounted a second time. */
#include "flow/context.h"

#include "base/limits.h"
#include "pool/environment.h"
#include "pool/socket.h"
#include "sys/state.h"
#include "sys/walk.h"
#include "sys/writable.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

struct guard {
    struct walk_rules rules;
    const char *writable[LIMIT_BINDS + 1];
};

/* With TREE no folder below PATH may be shared either. */
static int keep(struct guard *g, const char *what, const char *path, bool tree, struct err *err)
{
    struct err why = ERR_INIT;
    g->rules.what = what;
    int r = path && *path ? walk_apart(&g->rules, path, tree, &why) : 0;
    if (r == ERR_SYS && why.sys_errno == EACCES)
        return 0; /* what we cannot reach ourselves we shall not open or execute */
    if (r < 0 && err)
        *err = why;
    return r;
}

/* Folders of the system whose programs and libraries our own processes start with. */
static int keep_system(struct guard *g, struct err *err)
{
    static const struct {
        const char *what, *path;
        bool tree;
    } rows[] = {
        {"the system's programs in", "/usr/bin", true},
        {"the system's programs in", "/usr/sbin", true},
        {"the system's libraries in", "/usr/lib", true}, /* Python's own modules among them */
        {"the system's programs in", "/bin", true},
        {"the system's programs in", "/sbin", true},
        {"the system's libraries in", "/lib", true},
        {"the system's libraries in", "/lib64", true},
        {"the machine's policy", "/etc/cordon", true},
        {"the loader's", "/etc/ld.so.preload", false},
        {"the loader's", "/etc/ld.so.cache", false},
        {"the list of users", "/etc/passwd", false},
        {"the system's settings, which jails show,", "/etc/alternatives", true},
        {"the system's settings, which templates read,", "/etc/fonts", true},
        {"the system's settings, which templates read,", "/etc/matplotlibrc", false},
        {"the kernel's own files in", "/proc", true}, /* of our processes, among others */
        {"the kernel's own files in", "/sys", true},  /* cgroups of runs among them */
        {"the kernel's own file", "/dev/null", false},
        {"the system's log, which alerts go to,", "/dev/log", false},
    };
    int r = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows && r == 0; i++)
        r = keep(g, rows[i].what, rows[i].path, rows[i].tree, err);
    return r;
}

/* cordon looks for its other programs beside itself and in ../libexec/cordon, by the name it was started with and
 * by the file that this is (src/prog/cordon/programs.c). */
static int keep_programs(struct guard *g, struct err *err)
{
    static const char *const names[] = {
        "cordon",      "cordon-nest",       "cordon-holder",      "cordon-python",
        "cordon-ruby", "cordon-javascript", "cordon-approvals",   "cordon-workspace",
        "cordon-tool", "cordon-plot",       "cordon-image",       "cordon-front",
        "cordond",     "cordon-proxy",      "cordon-proxy-front", "cordon-ask"};
    static const char *const folders[] = {"", "../libexec/cordon/"};
    char self[PATH_MAX], path[PATH_MAX + 64];
    int r = 0;
    for (int by_link = 0; by_link < 2 && r == 0; by_link++) {
        const char *called = (const char *)getauxval(AT_EXECFN);
        ssize_t n = by_link ? readlink("/proc/self/exe", self, sizeof self - 1)
                            : snprintf(self, sizeof self, "%s", called ? called : "");
        if (n <= 0 || n >= (ssize_t)sizeof self)
            continue;
        self[n] = 0;
        char *slash = strrchr(self, '/');
        const int folder = slash ? (int)(slash - self) : 0;
        for (size_t i = 0; i < 2 * sizeof names / sizeof *names && r == 0; i++) {
            const char *name = names[i / 2];
            snprintf(path, sizeof path, "%.*s/%s%s", folder ? folder : 1, slash ? self : ".",
                     folders[i % 2], name);
            r = keep(g, "Cordon's own program", path, false, err);
        }
    }
    return r;
}

/* A command's words: the program, and each argument that names a path, alone or behind a `=`. */
static int keep_command(struct guard *g, const char *what, const struct policy_words *words,
                        struct err *err)
{
    int r = 0;
    for (size_t i = 0; i < words->count && r == 0; i++) {
        const char *word = words->items[i], *value = strchr(word, '=');
        if (strchr(word, '/') || access(word, F_OK) == 0)
            r = keep(g, what, word, false, err);
        if (r == 0 && value && value[1] && (strchr(value, '/') || access(value + 1, F_OK) == 0))
            r = keep(g, what, value + 1, false, err);
    }
    return r;
}

/* What the gateway reads, and what models are told by the operator. */
static int keep_models(struct guard *g, const struct policy *p, struct err *err)
{
    int r = keep(g, "llm.system", p->llm.system, false, err);
    for (size_t i = 0; i < p->arena.njudges && r == 0; i++)
        if (p->arena.judges[i].prompt[0] == '/')
            r = keep(g, "the rules of a judge:", p->arena.judges[i].prompt, false, err);
    for (size_t i = 0; i < p->nupstreams && r == 0; i++) {
        r = keep(g, "the key of an upstream:", p->upstreams[i].key_file, false, err);
        if (r == 0)
            r = keep(g, "certificates of an upstream:", p->upstreams[i].ca_file, false, err);
    }
    for (size_t i = 0; i < p->proxy.nclients && r == 0; i++)
        r = keep(g, "the token of a client:", p->proxy.clients[i].token_file, false, err);
    return r;
}

static int keep_policy(struct guard *g, const struct policy *p, const char *venv, struct err *err)
{
    int r = keep(g, "python.environment", venv ? venv : p->python.environment, true, err);
    struct pool_environment
        packages;                 /* its folder of packages may be a link that leads elsewhere */
    struct err broken = ERR_INIT; /* met again, and told, by whoever needs it */
    if (r == 0 && pool_environment_open(&packages, p, venv, &broken) == 0)
        r = keep(g, "python.environment, its packages in", packages.site, true, err);
    if (r == 0)
        r = keep(g, "audit.alert_file", p->audit.alert_file, false, err);
    if (r == 0 && p->daemon.use != POLICY_DAEMON_NEVER)
        r = keep(g, "daemon.socket", p->daemon.socket, false, err);
    if (r == 0)
        r = keep_command(g, "audit.alert_command:", &p->audit.alert_command, err);
    for (size_t i = 0; i < p->search.collections.count && r == 0; i++) {
        const char *path = strchr(p->search.collections.items[i], '='); /* NAME=/path */
        r = path ? keep(g, "search.collections:", path + 1, true, err) : 0;
    }
    for (size_t i = 0; i < p->arena.njudges && r == 0; i++)
        r = keep_command(g, "a judge of the arena:", &p->arena.judges[i].command, err);
    for (size_t i = 0; i < p->ntools && r == 0; i++)
        r = keep_command(g, "a host tool:", &p->tools[i].command, err);
    return r == 0 ? keep_models(g, p, err) : r;
}

static int keep_state(struct guard *g, struct err *err)
{
    char path[STATE_PATH_MAX];
    int r = state_path(path, sizeof path, err);
    if (r == 0)
        r = keep(g, "the state folder", path, true, err);
    struct err none = ERR_INIT; /* no place for a holder: nobody connects to one */
    if (r == 0 && pool_socket_folder(path, sizeof path, &none) == 0)
        r = keep(g, "the holder's folder", path, true, err);
    return r;
}

int flow_guard_shared(const struct flow_context *h, const struct jail_spec *spec, const char *out,
                      struct err *err)
{
    struct guard g = {.rules.count = 0};
    for (size_t i = 0; i < spec->nbinds && g.rules.count < LIMIT_BINDS; i++)
        if (spec->binds[i].writable)
            g.writable[g.rules.count++] = spec->binds[i].source;
    if (out) /* a guest chooses the names there */
        g.writable[g.rules.count++] = out;
    g.rules.writable = g.writable;
    if (!g.rules.count)
        return 0;
    int r = policy_paths_safe(h->store, g.writable, g.rules.count, err);
    if (r == 0)
        r = writable_set_new(g.writable, g.rules.count, &g.rules.set, err);
    if (r == 0)
        r = keep_state(&g, err);
    if (r == 0)
        r = keep_programs(&g, err);
    if (r == 0)
        r = keep_policy(&g, h->policy, h->venv, err);
    if (r == 0)
        r = keep_system(&g, err);
    writable_set_free(g.rules.set);
    return r;
}
