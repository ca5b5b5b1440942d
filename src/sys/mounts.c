/* A line of mountinfo: ID PARENT MAJOR:MINOR ROOT POINT ... where ROOT is the folder of the file system that is shown at
 * POINT. A file's place is its device and ROOT with the rest of its path behind POINT. */
#include "sys/mounts.h"

#include "sys/fd.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOUNTS = 4096, TEXT = 2 * 1024 * 1024 };

struct mount {
    const char *device, *root, *point; /* MAJOR:MINOR as it is written */
};

struct mounts {
    size_t count;
    struct mount at[MOUNTS];
    char text[TEXT];
};

/* Spaces and the like are written as \ooo. */
static void decode(char *text)
{
    char *to = text;
    for (const char *p = text; *p; to++)
        if (p[0] == '\\' && p[1] >= '0' && p[1] <= '3' && p[2] && p[3]) {
            *to = (char)((p[1] - '0') << 6 | (p[2] - '0') << 3 | (p[3] - '0'));
            p += 4;
        } else {
            *to = *p++;
        }
    *to = 0;
}

static bool parse(char *line, struct mount *ret)
{
    char *word[5], *save = NULL;
    for (int i = 0; i < 5; i++)
        if (!(word[i] = strtok_r(i ? NULL : line, " ", &save)))
            return false;
    decode(word[3]);
    decode(word[4]);
    *ret = (struct mount){word[2], word[3], word[4]};
    return true;
}

int mounts_read(struct mounts **ret, struct err *err)
{
    struct mounts *m = calloc(1, sizeof *m);
    if (!m)
        return err_set(err, ERR_MEMORY, "no memory");
    int r = fd_read_file(AT_FDCWD, "/proc/self/mountinfo", m->text, sizeof m->text) < 0
                ? err_sys(err, "read /proc/self/mountinfo, to see what a shared folder shows")
                : 0;
    for (char *line = m->text, *next; r == 0 && *line; line = next) {
        next = line + strcspn(line, "\n");
        if (*next)
            *next++ = 0;
        if (m->count == MOUNTS || !parse(line, &m->at[m->count++]))
            r = err_set(err, ERR_LIMIT,
                        "/proc/self/mountinfo: more than %d mounts, or a line that is none",
                        MOUNTS);
    }
    if (r < 0) {
        mounts_free(m);
        return r;
    }
    *ret = m;
    return 0;
}

void mounts_free(struct mounts *m)
{
    free(m);
}

/* What of PATH lies behind FOLDER, "" if it is the same; NULL if it does not lie there. */
static const char *behind(const char *path, const char *folder)
{
    size_t len = strlen(folder);
    if (len == 1)
        return strcmp(path, "/") == 0 ? "" : path;
    return strncmp(path, folder, len) == 0 && (!path[len] || path[len] == '/') ? path + len : NULL;
}

struct place {
    const char *device;
    char path[2 * PATH_MAX];
};

/* Of mounts at the same point the last one is seen. */
static bool find(const struct mounts *m, const char *real, struct place *ret)
{
    const struct mount *found = NULL;
    for (size_t i = 0; i < m->count; i++)
        if (behind(real, m->at[i].point) &&
            (!found || strlen(m->at[i].point) >= strlen(found->point)))
            found = &m->at[i];
    if (!found)
        return false;
    ret->device = found->device;
    const char *rest = behind(real, found->point);
    snprintf(ret->path, sizeof ret->path, "%s%s",
             strcmp(found->root, "/") == 0 && *rest ? "" : found->root, rest);
    return true;
}

static bool meet(const char *device, const char *path, const struct place *kept, bool tree)
{
    return strcmp(device, kept->device) == 0 &&
           (behind(kept->path, path) || (tree && behind(path, kept->path)));
}

/* SHARED: its own place and the mounts below it, which are shared with it. */
static bool shows(const struct mounts *m, const char *shared, const struct place *own,
                  const struct place *kept, bool tree)
{
    if (meet(own->device, own->path, kept, tree))
        return true;
    for (size_t i = 0; i < m->count; i++) {
        const char *rest = behind(m->at[i].point, shared);
        if (rest && *rest && meet(m->at[i].device, m->at[i].root, kept, tree))
            return true;
    }
    return false;
}

bool mounts_reach(const struct mounts *m, const char *shared, const char *kept, bool tree)
{
    char real_shared[PATH_MAX], real_kept[PATH_MAX];
    struct place from, to;
    if (!realpath(shared, real_shared) || !realpath(kept, real_kept))
        return false;
    if (!find(m, real_shared, &from) || !find(m, real_kept, &to) ||
        shows(m, real_shared, &from, &to, tree))
        return true;
    for (size_t i = 0; tree && i < m->count; i++) { /* and what is mounted in what is kept */
        const char *rest = behind(m->at[i].point, real_kept);
        struct place part = {.device = m->at[i].device};
        if (!rest || !*rest)
            continue;
        snprintf(part.path, sizeof part.path, "%s", m->at[i].root);
        if (shows(m, real_shared, &from, &part, tree))
            return true;
    }
    return false;
}
