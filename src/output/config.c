/* SPDX-License-Identifier: Apache-2.0 */
/* What a guest must not learn is known only here and now: where the caller stands, where we live, what was
 * bound. A path may have two spellings, with its links and without; both are taken. */
#include "output/config.h"

#include "base/arena.h"
#include "base/limits.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct list {
    struct arena mem;
    struct output_known *items;
    size_t count;
    bool no_memory;
};

static void add(struct list *l, const char *path, size_t len, const char *label)
{
    char *copy = arena_memdup(&l->mem, path, len);
    if (!copy)
        l->no_memory = true;
    else if (l->count < OUTPUT_KNOWN_MAX)
        l->items[l->count++] = (struct output_known){copy, len, label, false};
}

static void add_path(struct list *l, const char *path, const char *label)
{
    char real[4096];
    if (!path || path[0] != '/')
        return;
    add(l, path, strlen(path), label);
    if (realpath(path, real) && strcmp(real, path) != 0)
        add(l, real, strlen(real), label);
}

static void add_folder_of(struct list *l, const char *file, const char *label)
{
    const char *slash = file ? strrchr(file, '/') : NULL;
    char folder[4096];
    if (!slash || (size_t)(slash - file) >= sizeof folder)
        return;
    memcpy(folder, file, (size_t)(slash - file));
    folder[slash - file] = 0;
    add(l, folder, strlen(folder), label);
}

static void add_named_secrets(struct list *l, const struct policy_words *names,
                              const char *const *env, size_t count)
{
    for (size_t v = 0; v < count && env && env[v]; v++) {
        const char *equals = strchr(env[v], '=');
        for (size_t i = 0; equals && i < names->count; i++)
            if (strlen(names->items[i]) == (size_t)(equals - env[v]) &&
                strncmp(names->items[i], env[v], (size_t)(equals - env[v])) == 0 &&
                l->count < OUTPUT_KNOWN_MAX)
                l->items[l->count++] = (struct output_known){equals + 1, strlen(equals + 1),
                                                             "[REDACTED:environment]", true};
    }
}

int output_rules_for(const struct policy *p, const char *const *env, const char *const *guest_env,
                     size_t nguest_env, const struct output_internal *internal, size_t count,
                     struct output_rules **ret_rules, struct err *err)
{
    unsigned what = (p->output.scrub ? OUTPUT_SCRUB : 0) | (p->output.redact ? OUTPUT_REDACT : 0);
    struct list l = {0};
    char here[4096], self[4096];
    arena_init(&l.mem, MIB);
    l.items = arena_alloc(&l.mem, OUTPUT_KNOWN_MAX * sizeof *l.items);
    if (!l.items)
        return err_set(err, ERR_MEMORY, "no memory for the output's rules");
    if (what & OUTPUT_REDACT) {
        const size_t share = OUTPUT_KNOWN_MAX / 4;
        l.count = output_env_secrets(env, SIZE_MAX, l.items, share);
        l.count += output_env_secrets(guest_env, nguest_env, l.items + l.count, share);
        add_named_secrets(&l, &p->output.secret_names, env, SIZE_MAX);
        add_named_secrets(&l, &p->output.secret_names, guest_env, nguest_env);
    }
    if (what & OUTPUT_SCRUB) {
        for (size_t i = 0; i < count; i++)
            add_path(&l, internal[i].path, internal[i].label);
        for (size_t i = 0; i < p->output.scrub_paths.count; i++)
            add_path(&l, p->output.scrub_paths.items[i], "/INTERNAL");
        ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
        self[n < 0 ? 0 : n] = 0;
        add_folder_of(&l, self, "/CORDON");
        if (getcwd(here, sizeof here))
            add(&l, here, strlen(here), "/CALLER"); /* the kernel's answers have no links in them */
        for (; env && *env; env++)
            if (strncmp(*env, "HOME=", 5) == 0)
                add_path(&l, *env + 5, "/home/USER");
    }
    int r = l.no_memory ? err_set(err, ERR_MEMORY, "no memory for the output's rules")
                        : output_rules_new(l.items, l.count, what, ret_rules, err);
    arena_done(&l.mem);
    return r;
}

enum output_escape output_escape_for(const struct policy *p, const struct policy_profile *profile)
{
    return policy_escapes_html(p, profile) ? OUTPUT_ESCAPE_HTML : OUTPUT_ESCAPE_NONE;
}
