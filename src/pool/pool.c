/* SPDX-License-Identifier: Apache-2.0 */
/* What the holder and its clients must agree on: names of sessions, the environment of a guest. */
#include "pool/pool.h"

#include "base/err.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* PWD: the kernel's name of /workspace is that of the file system behind it; shells take the one of PWD where it is the same folder.
 *
 * What libraries keep for later goes to /tmp, which counts against the quota and is gone after the run, also where HOME is the workspace. Bytecode
 * has no place there: with a place of its own Python would compile its whole library at each start, so it writes none.
 *
 * The C library reserves 128 MB of addresses for the memory of each thread and keeps 64, which RLIMIT_AS counts like memory: seven threads would
 * have eaten the usual limit before any of them did something. One arena for all of them costs a lock that interpreters hardly meet. */
const char *const pool_env[POOL_ENV + 1] = {"PATH=/usr/bin:/bin",
                                            "PWD=/workspace",
                                            "HOME=/tmp",
                                            "TMPDIR=/tmp",
                                            "LANG=C.UTF-8",
                                            "XDG_CACHE_HOME=/tmp/.cache",
                                            "MPLCONFIGDIR=/tmp/.cache/matplotlib",
                                            "HF_HOME=/tmp/.cache/huggingface",
                                            "PYTHONDONTWRITEBYTECODE=1",
                                            "MALLOC_ARENA_MAX=1",
                                            NULL};

bool pool_name_good(const char *name)
{
    size_t len = strlen(name);
    if (len == 0 || len > POOL_NAME || name[0] == '-' || name[0] == '_')
        return false;
    return strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") == len;
}

bool pool_profile_good(const char *profile)
{
    return strcmp(profile, "strict") == 0 || strcmp(profile, "locked") == 0 ||
           strcmp(profile, "standard") == 0 || strcmp(profile, "open") == 0;
}

const struct language *pool_language(const char *name)
{
    const struct language *l = *name ? language_named(name) : language_default();
    return l && l->worker ? l : NULL;
}

void pool_template_name(const struct language *language, const char *profile, bool packages,
                        char *out, size_t size)
{
    const bool usual = language == language_default();
    snprintf(out, size, "%s%s%s%s", usual ? "" : language->name, usual ? "" : ":", profile,
             packages ? "+packages" : "");
}

void pool_limits_pack(const struct jail_limits *l, uint64_t out[POOL_LIMITS])
{
    size_t at = 0;
#define X(name) out[at++] = l->name;
    JAIL_LIMITS(X)
#undef X
    base_assert(at == POOL_LIMITS);
}

void pool_limits_unpack(const uint64_t in[POOL_LIMITS], struct jail_limits *ret)
{
    size_t at = 0;
#define X(name) ret->name = in[at++];
    JAIL_LIMITS(X)
#undef X
    base_assert(at == POOL_LIMITS);
}

const char *pool_limits_cannot(const struct jail_limits *has, const struct jail_limits *want)
{
    const struct {
        const char *name;
        uint64_t has, want;
        bool tightens;
    } rows[] = {
        {"timeout", has->wall_ms, want->wall_ms, true},
        {"cpu", has->cpu_ms, want->cpu_ms, true},
        {"memory", has->memory, want->memory, true},
        {"descriptors", has->descriptors, want->descriptors, false},
        {"disk", has->disk, want->disk, false},
        {"inodes", has->inodes, want->inodes, false},
        {"processes", has->processes, want->processes, false},
        {"threads", has->threads, want->threads, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].tightens ? rows[i].want > rows[i].has : rows[i].want != rows[i].has)
            return rows[i].name;
    return NULL;
}

size_t pool_settings(struct jail_bind *out)
{
    static const char *const files[POOL_SETTINGS] = {"/etc/matplotlibrc", "/etc/fonts"};
    size_t n = 0;
    for (size_t i = 0; i < POOL_SETTINGS; i++)
        if (access(files[i], R_OK) == 0)
            out[n++] = (struct jail_bind){
                .source = files[i], .dest = files[i], .moved = true, .links = true};
    return n;
}
