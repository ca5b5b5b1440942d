/* SPDX-License-Identifier: Apache-2.0 */
/* Device and inode tell that two names are the same folder, and `..` tells what a folder lies in; but at the root of a
 * mount `..` leads to where it is mounted, and a part of a trusted tree that is mounted a second time looks like a
 * folder of its own. So each is named by its file system and its path inside that file system: the mount that a
 * descriptor was opened through (statx tells its number), the folder of the file system that is the root of that mount
 * (/proc/self/mountinfo), and the path below it. What lies in what is then a comparison of paths. Where no file system
 * that a guest may write is mounted twice, which is the usual case, names cannot deceive, and nothing is compared.
 *
 * Waits: read in read_mounts; /proc/self/mountinfo; none (the kernel's own); an error */
#include "sys/writable.h"

#include "base/buf.h"
#include "base/limits.h"
#include "sys/fd.h"

#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOUNTS_TEXT_MAX (4 * MIB) /* of /proc/self/mountinfo: some ten thousand mounts */

struct mount {
    uint64_t id;
    unsigned major, minor;
    const char *root, *point;
};

struct tree {
    const struct mount *mount; /* for its file system */
    char *path;                /* in it */
    const char *name;          /* of the writable one */
};

struct writable_set {
    struct buf text;
    struct mount *mounts;
    size_t nmounts;
    struct tree *trees;
    size_t count;
    bool aliased; /* a file system of one of them is mounted more than once */
};

static bool lies_in(const char *path, const char *folder)
{
    size_t len = strlen(folder);
    if (len == 1)
        return true; /* the root */
    return strncmp(path, folder, len) == 0 && (path[len] == 0 || path[len] == '/');
}

static bool same_file_system(const struct mount *a, const struct mount *b)
{
    return a->major == b->major && a->minor == b->minor;
}

/* Blanks, tabs, newlines and backslashes are written as three octal digits. */
static void decode(char *s)
{
    char *to = s;
    for (; *s; s++, to++) {
        *to = *s;
        if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' &&
            s[3] >= '0' && s[3] <= '7') {
            *to = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
            s += 3;
        }
    }
    *to = 0;
}

/* "36 35 98:0 /root /point options ..." */
static int read_line(struct writable_set *p, char *line)
{
    char *rest = NULL, *number = strtok_r(line, " ", &rest), *parent = strtok_r(NULL, " ", &rest),
         *device = strtok_r(NULL, " ", &rest), *root = strtok_r(NULL, " ", &rest),
         *point = strtok_r(NULL, " ", &rest);
    struct mount m = {0};
    if (!number || !parent || !device || !root || !point ||
        sscanf(device, "%u:%u", &m.major, &m.minor) != 2)
        return -1;
    decode(root);
    decode(point);
    m.id = strtoull(number, NULL, 10);
    m.root = root;
    m.point = point;
    if (p->nmounts % 64 == 0) {
        struct mount *more = realloc(p->mounts, (p->nmounts + 64) * sizeof *more);
        if (!more)
            return -1;
        p->mounts = more;
    }
    p->mounts[p->nmounts++] = m;
    return 0;
}

static int read_mounts(struct writable_set *p, struct err *err)
{
    char *at, *rest = NULL;
    ssize_t n;
    FD_AUTO fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(err, "/proc/self/mountinfo");
    buf_init(&p->text, MOUNTS_TEXT_MAX);
    do {
        if (buf_reserve(&p->text, 16 * KIB, &at) < 0)
            return err_set(err, ERR_LIMIT,
                           "too many mounts: it cannot be checked whether a program could write "
                           "what is protected");
        n = read(fd, at, 16 * KIB - 1);
        if (n > 0)
            buf_added(&p->text, (size_t)n);
    } while (n > 0);
    if (n < 0 || buf_add(&p->text, "", 1) < 0)
        return err_sys(err, "/proc/self/mountinfo");
    for (char *line = strtok_r(p->text.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        if (read_line(p, line) < 0)
            return err_set(err, ERR_FORMAT, "/proc/self/mountinfo has a line of another form");
    return 0;
}

/* The mount that FD was opened through, its path from our root and that in its file system. NULL with ERR_STATE: never
 * ERR_SYS, which callers take for a path that nobody can reach. */
static const struct mount *locate(const struct writable_set *p, int fd, char shown[PATH_MAX],
                                  char inside[2 * PATH_MAX], struct err *err)
{
    char self[32];
    struct statx st;
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(self, shown, PATH_MAX - 1);
    if (n <= 0 || statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st) < 0) {
        err_set(err, ERR_STATE,
                "/proc/self/mountinfo does not tell on which mount a protected folder is");
        return NULL;
    }
    shown[n] = 0;
    for (size_t i = 0; i < p->nmounts && (st.stx_mask & STATX_MNT_ID); i++) {
        const struct mount *m = &p->mounts[i];
        if (m->id != st.stx_mnt_id || !lies_in(shown, m->point))
            continue;
        const char *below = shown + (strlen(m->point) == 1 ? 0 : strlen(m->point));
        const bool at_root = strlen(m->root) == 1;
        snprintf(inside, 2 * PATH_MAX, "%s%s", at_root ? "" : m->root,
                 below[0] == '/' && below[1] == 0 ? "" : below);
        if (!inside[0])
            snprintf(inside, 2 * PATH_MAX, "/");
        return m;
    }
    err_set(err, ERR_STATE, "%.150s: its mount is not in /proc/self/mountinfo", shown);
    return NULL;
}

static int add(struct writable_set *p, const struct mount *m, const char *path, const char *name,
               struct err *err)
{
    struct tree *more =
        p->count % 16 ? p->trees : realloc(p->trees, (p->count + 16) * sizeof *more);
    char *copy = strdup(path);
    if (more)
        p->trees = more;
    if (!more || !copy) {
        free(copy);
        return err_set(err, ERR_MEMORY, "no memory");
    }
    p->trees[p->count++] = (struct tree){m, copy, name};
    return 0;
}

static int add_writable(struct writable_set *p, const char *name, struct err *err)
{
    char shown[PATH_MAX], inside[2 * PATH_MAX];
    FD_AUTO fd = open(name, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return 0; /* not there, or not reachable: the jail reports which when it opens it */
    const struct mount *m = locate(p, fd, shown, inside, err);
    if (!m)
        return ERR_STATE;
    int r = add(p, m, inside, name, err);
    for (size_t i = 0; i < p->nmounts && r == 0; i++) /* they are shared along with it */
        if (&p->mounts[i] != m && lies_in(p->mounts[i].point, shown))
            r = add(p, &p->mounts[i], p->mounts[i].root, name, err);
    return r;
}

int writable_set_new(const char *const *writable, size_t count, struct writable_set **ret,
                     struct err *err)
{
    struct writable_set *p = calloc(1, sizeof *p);
    if (!p)
        return err_set(err, ERR_MEMORY, "no memory");
    int r = read_mounts(p, err);
    for (size_t i = 0; i < count && r == 0; i++)
        r = add_writable(p, writable[i], err);
    if (r < 0) {
        writable_set_free(p);
        return r;
    }
    for (size_t i = 0; i < p->count; i++)
        for (size_t k = 0; k < p->nmounts; k++)
            p->aliased = p->aliased || (&p->mounts[k] != p->trees[i].mount &&
                                        same_file_system(&p->mounts[k], p->trees[i].mount));
    *ret = p;
    return 0;
}

void writable_set_free(struct writable_set *p)
{
    if (!p)
        return;
    while (p->count)
        free(p->trees[--p->count].path);
    free(p->trees);
    free(p->mounts);
    buf_done(&p->text);
    free(p);
}

/* The writable one that PATH in the file system of M lies in; with TREE also one that lies in it. */
static const char *meets(const struct writable_set *p, const struct mount *m, const char *path,
                         bool tree)
{
    for (size_t i = 0; i < p->count; i++)
        if (same_file_system(m, p->trees[i].mount) &&
            (lies_in(path, p->trees[i].path) || (tree && lies_in(p->trees[i].path, path))))
            return p->trees[i].name;
    return NULL;
}

int writable_set_find(const struct writable_set *p, int fd, bool tree, const char **ret_writable,
                      struct err *err)
{
    char shown[PATH_MAX], inside[2 * PATH_MAX];
    *ret_writable = NULL;
    if (!p->aliased)
        return 0;
    const struct mount *m = locate(p, fd, shown, inside, err);
    if (!m)
        return ERR_STATE;
    *ret_writable = meets(p, m, inside, tree);
    for (size_t i = 0; i < p->nmounts && tree && !*ret_writable; i++)
        if (&p->mounts[i] != m && lies_in(p->mounts[i].point, shown))
            *ret_writable = meets(p, &p->mounts[i], p->mounts[i].root, true);
    return 0;
}
