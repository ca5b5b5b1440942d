/* SPDX-License-Identifier: Apache-2.0 */
/* A workspace as one file: a tar archive of a state, or a bundle, which is a list of names and a pack (git's
 * bundle-format(5)) that `git clone` reads. Neither holds anything that the store does not: regular files, links that stay
 * inside, folders. The archive is written in the pax form: long and odd names need no other trick. */
#include "workspace/inside.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define BLOCK 512

struct archive {
    git_repository *repo;
    const struct workspace_sink *out;
    int64_t time;
    int bad;
    struct err *err;
};

static int put(struct archive *a, const void *data, size_t len)
{
    if (a->bad == 0 && a->out->put(a->out->ctx, data, len) < 0)
        a->bad = err_set(a->err, ERR_SYS, "the archive could not be written");
    return a->bad;
}

static int put_padded(struct archive *a, const void *data, size_t len)
{
    static const char zeros[BLOCK];
    if (put(a, data, len) == 0 && len % BLOCK)
        put(a, zeros, BLOCK - len % BLOCK);
    return a->bad;
}

struct header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100], magic[6],
        version[2], user[32], group[32], major[8], minor[8], prefix[155], rest[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "a header is one block");

static int put_header(struct archive *a, const char *name, char type, unsigned mode, size_t size,
                      const char *link)
{
    struct header h = {.type = type, .magic = "ustar", .version = {'0', '0'}};
    unsigned sum = 0;
    memcpy(h.name, name, strnlen(name, sizeof h.name));
    memcpy(h.link, link, strnlen(link, sizeof h.link));
    snprintf(h.mode, sizeof h.mode, "%07o", mode & 07777U);
    snprintf(h.uid, sizeof h.uid, "%07o", 0U);
    snprintf(h.gid, sizeof h.gid, "%07o", 0U);
    snprintf(h.size, sizeof h.size, "%011llo", (unsigned long long)size & 077777777777ULL);
    snprintf(h.mtime, sizeof h.mtime, "%011llo", (unsigned long long)a->time & 077777777777ULL);
    memset(h.sum, ' ', sizeof h.sum);
    for (size_t i = 0; i < sizeof h; i++)
        sum += ((const unsigned char *)&h)[i];
    snprintf(h.sum, sizeof h.sum, "%06o", sum & 0777777U);
    return put(a, &h, sizeof h);
}

/* "LEN KEY=VALUE\n", where LEN counts itself. */
static size_t pax_line(char *out, size_t size, const char *key, const char *value)
{
    const size_t rest = strlen(key) + strlen(value) + 3;
    size_t len = rest + 1;
    while (len != rest + (size_t)snprintf(NULL, 0, "%zu", len))
        len++;
    const int n = snprintf(out, size, "%zu %s=%s\n", len, key, value);
    return n > 0 && (size_t)n < size ? (size_t)n : 0;
}

static int put_entry(struct archive *a, const char *path, char type, unsigned mode, size_t size,
                     const char *link)
{
    char extra[2 * 4096 + 64];
    size_t len = 0;
    if (strlen(path) > sizeof((struct header *)NULL)->name)
        len += pax_line(extra, sizeof extra, "path", path);
    if (strlen(link) > sizeof((struct header *)NULL)->link)
        len += pax_line(extra + len, sizeof extra - len, "linkpath", link);
    if (len && put_header(a, "pax", 'x', 0644, len, "") == 0)
        put_padded(a, extra, len);
    return a->bad ? a->bad : put_header(a, path, type, mode, size, link);
}

static int put_blob(struct archive *a, const char *path, const git_tree_entry *e)
{
    git_blob *blob = NULL;
    const git_filemode_t mode = git_tree_entry_filemode(e);
    if (git_blob_lookup(&blob, a->repo, git_tree_entry_id(e)) < 0)
        return a->bad = workspace_git_err(a->err, "a file of the store cannot be read");
    const size_t size = (size_t)git_blob_rawsize(blob);
    if (mode == GIT_FILEMODE_LINK) {
        char target[4096];
        snprintf(target, sizeof target, "%.*s", (int)size, (const char *)git_blob_rawcontent(blob));
        put_entry(a, path, '2', 0777, 0, target);
    } else if (put_entry(a, path, '0', mode == GIT_FILEMODE_BLOB_EXECUTABLE ? 0755 : 0644, size,
                         "") == 0) {
        put_padded(a, git_blob_rawcontent(blob), size);
    }
    git_blob_free(blob);
    return a->bad;
}

static int put_tree_entry(const char *root, const git_tree_entry *e, void *archive)
{
    struct archive *a = archive;
    char path[4096 + 256];
    const bool folder = git_tree_entry_type(e) == GIT_OBJECT_TREE;
    snprintf(path, sizeof path, "%s%s%s", root, git_tree_entry_name(e), folder ? "/" : "");
    return folder ? put_entry(a, path, '5', 0755, 0, "") : put_blob(a, path, e);
}

int workspace_export_tar(struct workspace *w, const char *word, const struct workspace_sink *out,
                         struct err *err)
{
    static const char end[2 * BLOCK];
    struct archive a = {.repo = w->repo, .out = out, .err = err};
    git_commit *c = NULL;
    git_tree *tree = NULL;
    int r = workspace_find(w, word, &c, err);
    if (r < 0)
        return r;
    a.time = git_commit_time(c);
    if (git_commit_tree(&tree, c) < 0 ||
        (git_tree_walk(tree, GIT_TREEWALK_PRE, put_tree_entry, &a) < 0 && a.bad == 0))
        r = workspace_git_err(err, "a state of the store cannot be read");
    if (r == 0)
        r = put(&a, end, sizeof end);
    git_tree_free(tree);
    git_commit_free(c);
    return r;
}

static int put_pack(void *data, size_t len, void *archive)
{
    return put(archive, data, len);
}

int workspace_export_bundle(struct workspace *w, const struct workspace_sink *out, struct err *err)
{
    struct archive a = {.out = out, .err = err};
    git_packbuilder *pack = NULL;
    git_revwalk *walk = NULL;
    git_oid head;
    char id[WORKSPACE_ID], names[2 * WORKSPACE_ID + WORKSPACE_REF + 64];
    int r = 0;
    if (git_reference_name_to_id(&head, w->repo, w->ref) < 0 ||
        git_revwalk_new(&walk, w->repo) < 0 || git_revwalk_push(walk, &head) < 0 ||
        git_packbuilder_new(&pack, w->repo) < 0 || git_packbuilder_insert_walk(pack, walk) < 0)
        r = workspace_git_err(err, "the history cannot be read");
    if (r == 0) {
        git_oid_tostr(id, sizeof id, &head);
        const int n =
            snprintf(names, sizeof names, "# v2 git bundle\n%s %s\n%s HEAD\n\n", id, w->ref, id);
        r = put(&a, names, (size_t)n);
    }
    if (r == 0 && git_packbuilder_foreach(pack, put_pack, &a) < 0 && a.bad == 0)
        r = workspace_git_err(err, "the history cannot be packed");
    git_packbuilder_free(pack);
    git_revwalk_free(walk);
    return a.bad ? a.bad : r;
}
