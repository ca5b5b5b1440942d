/* SPDX-License-Identifier: Apache-2.0 */
/* Looked up before anything is built, so that a typing mistake is one line and EXIT_NEVER_RAN
 * instead of a jail that was built for nothing. What is found here is only advice: the launcher's
 * exec decides. */
#include "programs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

static int find(const char *name, char *path, size_t size, struct err *err)
{
    static const char *const places[] = {"", "../libexec/cordon/"};
    size_t len = 0;                                 /* of the folder */
    for (int by_link = 0; by_link < 2; by_link++) { /* as we were called; then where that leads */
        const char *called = (const char *)getauxval(AT_EXECFN);
        if (!by_link && called)
            snprintf(path, size, "%s", called);
        if (by_link) {
            ssize_t n = readlink("/proc/self/exe", path, size - 1);
            path[n < 0 ? 0 : n] = 0;
        }
        const char *slash = strrchr(path, '/');
        if (!slash)
            continue;
        len = (size_t)(slash - path);
        for (size_t i = 0; i < sizeof places / sizeof *places; i++)
            if (snprintf(path + len, size - len, "/%s%s", places[i], name) < (int)(size - len) &&
                access(path, X_OK) == 0)
                return 0;
    }
    err_set(err, ERR_MISSING, "%s is neither in %.*s nor in its ../libexec/cordon; reinstall", name,
            len < 80 ? (int)len : 80, path);
    return err_layer(err, "process");
}

int programs_find(const char *name, char *path, size_t size, struct err *err)
{
    static struct {
        char name[32], path[4096];
    } found[4]; /* a runner looks for them before it has a request, and again for its run */
    size_t i = 0;
    for (; i < sizeof found / sizeof *found && found[i].name[0]; i++)
        if (strcmp(found[i].name, name) == 0)
            return snprintf(path, size, "%s", found[i].path) < (int)size
                       ? 0
                       : err_set(err, ERR_LIMIT, "the path of %s is too long", name);
    int r = find(name, path, size, err);
    if (r == 0 && i < sizeof found / sizeof *found && strlen(name) < sizeof found[i].name &&
        strlen(path) < sizeof found[i].path) {
        memcpy(found[i].path, path, strlen(path) + 1);
        memcpy(found[i].name, name, strlen(name) + 1);
    }
    return r;
}

static const char *current_folder(struct arena *mem)
{
    char cwd[4096];
    return getcwd(cwd, sizeof cwd) ? arena_strdup(mem, cwd) : NULL;
}

const char *programs_absolute(const char *path, struct arena *mem)
{
    const char *cwd = path[0] == '/' ? "" : current_folder(mem);
    if (!cwd)
        return NULL;
    size_t cap = strlen(cwd) + strlen(path) + 3, at = 0;
    char *joined = arena_alloc(mem, cap), *out = arena_alloc(mem, cap);
    if (!joined || !out)
        return NULL;
    snprintf(joined, cap, "%s/%s", cwd, path);
    for (char *save = NULL, *part = strtok_r(joined, "/", &save); part;
         part = strtok_r(NULL, "/", &save)) {
        if (strcmp(part, ".") == 0)
            continue;
        if (strcmp(part, "..") == 0) {
            while (at && out[--at] != '/')
                ;
            continue;
        }
        at += (size_t)snprintf(out + at, cap - at, "/%s", part);
    }
    out[at] = 0;
    return at ? out : arena_strdup(mem, "/");
}

int programs_parse_bind(const char *word, bool writable, struct arena *mem, struct jail_bind *ret,
                        struct err *err)
{
    const char *colon = strrchr(word, ':');
    char *source = arena_strdup(mem, word);
    if (!source)
        return err_set(err, ERR_MEMORY, "no memory");
    if (!*word || (colon && colon == word))
        return err_set(err, ERR_USAGE, "--%s needs a path", writable ? "rw" : "ro");
    *ret = (struct jail_bind){.writable = writable};
    if (colon && colon[1] == '/') {
        source[colon - word] = 0;
        ret->dest = colon + 1;
        ret->moved = true;
    } else if (colon && access(word, F_OK) < 0) { /* no file whose name has a colon */
        const char *slash = strrchr(word, '/'),
                   *name = slash && slash > colon ? slash + 1 : colon + 1;
        return err_set(err, ERR_USAGE, "--%s: DEST must be absolute, such as /%.80s",
                       writable ? "rw" : "ro", *name ? name : "data");
    }
    /* The source stays as it was written: `link/..` is not what its letters say. */
    ret->source = source;
    if (!ret->dest)
        ret->dest = programs_absolute(source, mem);
    return ret->dest ? 0 : err_sys(err, "the current folder");
}

#define COPIES "/workspace"

/* NAME as a path below /workspace, or NULL: it is outside, or no name. */
static const char *place_of_copy(const char *name, struct arena *mem)
{
    const size_t len = strlen(COPIES);
    const char *rest =
        strncmp(name, COPIES, len) == 0 && (name[len] == '/' || !name[len]) ? name + len : name;
    if (rest == name && *name == '/')
        return NULL;
    size_t cap = len + strlen(rest) + 2, at = len;
    char *out = arena_alloc(mem, cap), *parts = arena_strdup(mem, rest);
    if (!out || !parts)
        return NULL;
    memcpy(out, COPIES, len + 1);
    for (char *save = NULL, *part = strtok_r(parts, "/", &save); part;
         part = strtok_r(NULL, "/", &save)) {
        if (strcmp(part, "..") == 0)
            return NULL;
        if (strcmp(part, ".") != 0)
            at += (size_t)snprintf(out + at, cap - at, "/%s", part);
    }
    return out;
}

int programs_parse_copy(const char *word, struct arena *mem, struct jail_bind *ret, struct err *err)
{
    struct stat st;
    char *source = arena_strdup(mem, word);
    if (!source)
        return err_set(err, ERR_MEMORY, "no memory");
    *ret = (struct jail_bind){.source = source, .copied = true, .moved = true};
    char *colon = lstat(word, &st) < 0 ? strrchr(source, ':') : NULL; /* a name may have one */
    if (colon)
        *colon++ = 0;
    if (!*source || (colon && !*colon))
        return err_set(err, ERR_USAGE, "--in needs a path, or PATH:NAME");
    if (stat(source, &st) < 0) {
        err_sys(err, "--in %.160s", source);
        return err_is_host(err) ? err->code : (err->code = ERR_USAGE);
    }
    const char *slash = strrchr(source, '/'), *own = slash ? slash + 1 : source;
    ret->dest = place_of_copy(colon ? colon : S_ISDIR(st.st_mode) ? "" : own, mem);
    if (ret->dest && (S_ISDIR(st.st_mode) || strcmp(ret->dest, COPIES) != 0))
        return 0;
    return err_set(err, ERR_USAGE,
                   "--in: '%.80s' is no path in /workspace; write NAME, such as data/%.80s",
                   colon ? colon : own, S_ISDIR(st.st_mode) ? "in" : own);
}

static const char *below(const char *path, const char *dir)
{
    size_t n = strlen(dir);
    return strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == 0) ? path + n : NULL;
}

/* Where INSIDE is on the host, or NULL when the jail does not show it. */
static const char *on_host(const struct jail_spec *spec, const char *inside, struct arena *mem)
{
    static const char *const runtime[] = {"/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32"};
    for (size_t i = spec->nbinds; i-- > 0;) {
        const char *rest = below(inside, spec->binds[i].dest);
        if (!rest)
            continue;
        size_t cap = strlen(spec->binds[i].source) + strlen(rest) + 1;
        char *host = arena_alloc(mem, cap);
        if (host)
            snprintf(host, cap, "%s%s", spec->binds[i].source, rest);
        return host;
    }
    for (size_t i = 0; i < sizeof runtime / sizeof *runtime; i++)
        if (below(inside, runtime[i]))
            return inside;
    return NULL;
}

static int check(const char *word, const char *host, struct err *err)
{
    struct stat st;
    if (stat(host, &st) < 0)
        return err_set(err, ERR_USAGE, "%.120s: %s", word, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_USAGE, "%.120s is no regular file, so it cannot be run", word);
    if (!(st.st_mode & 0111))
        return err_set(err, ERR_USAGE, "%.120s: not executable (chmod +x)", word);
    return 0;
}

int programs_resolve(const struct jail_spec *spec, const char *word, struct arena *mem,
                     const char **ret_inside, struct err *err)
{
    static const char *const path[] = {"/usr/bin", "/bin"};
    if (!*word)
        return err_set(err, ERR_USAGE, "the program's name is empty");
    if (!strchr(word, '/')) {
        for (size_t i = 0; i < 2; i++) {
            size_t cap = strlen(path[i]) + strlen(word) + 2;
            char *inside = arena_alloc(mem, cap);
            if (!inside)
                return err_set(err, ERR_MEMORY, "no memory");
            snprintf(inside, cap, "%s/%s", path[i], word);
            if (check(word, inside, NULL) == 0) {
                *ret_inside = inside;
                return 0;
            }
        }
        return err_set(err, ERR_USAGE, "%.120s: no such program in /usr/bin:/bin", word);
    }
    const char *wanted = programs_absolute(word, mem),
               *host = wanted ? on_host(spec, wanted, mem) : NULL;
    if (!wanted)
        return err_set(err, ERR_MEMORY, "no memory");
    *ret_inside = wanted;
    if (!host) { /* a path of the host may be shown under another name */
        for (size_t i = spec->nbinds; i-- > 0 && !host;) {
            const char *source = programs_absolute(spec->binds[i].source, mem);
            const char *rest = source ? below(wanted, source) : NULL;
            if (!rest)
                continue;
            size_t cap = strlen(spec->binds[i].dest) + strlen(rest) + 1;
            char *inside = arena_alloc(mem, cap);
            if (!inside)
                return err_set(err, ERR_MEMORY, "no memory");
            snprintf(inside, cap, "%s%s", spec->binds[i].dest, rest);
            *ret_inside = inside;
            host = wanted;
        }
    }
    if (!host) {
        int r = check(word, wanted, err);
        return r < 0 ? r
                     : err_set(err, ERR_USAGE,
                               "%.100s is not visible inside the jail; add --ro with its folder",
                               word);
    }
    return check(word, host, err);
}
