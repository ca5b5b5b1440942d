/* SPDX-License-Identifier: Apache-2.0 */
/* A folder becomes a tree. The folder may be a guest's: its bytes and names are hostile, and what it holds may be
 * anything that a file system can hold. Each name is looked at before it is opened and again afterwards, by descriptor:
 * of a caller's own folder the two may differ. Nothing but a regular file is ever opened for reading.
 *
 * Waits: read in read_whole; the disk; none (the kernel's own); O_NONBLOCK, should it be a FIFO by now */
#include "workspace/inside.h"

#include "sys/entries.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#define CHUNK     (1 * MIB) /* a larger file goes to the store in pieces */
#define LINK_MAX_ 4096
#define ENTRY     64 /* bytes of a folder in the store, for each entry, about */

struct walk {
    struct workspace *w;
    git_repository *repo;
    git_odb *odb;
    struct workspace_left *left;
    char *chunk;
    char path[4096]; /* of what is looked at, from the top */
    size_t depth;
    bool layer; /* the folder is the upper layer of an overlay */
    bool guest; /* a guest made it: nobody else is at it, and it is ours to open up */
    uint64_t room,
        size; /* of a guest: bytes that its file system has, 0: unlimited; bytes of its files */
};

/* ---- what is left out ---- */

static int leave(struct walk *k, const char *why, struct err *err)
{
    struct workspace_left *left = k->left;
    if (left->count == LIMIT_WORKSPACE_LEFT) {
        left->more++;
        return 0;
    }
    char *path = strdup(k->path);
    if (!path)
        return err_set(err, ERR_MEMORY, "no memory");
    left->items[left->count].path = path;
    left->items[left->count++].why = why;
    return 0;
}

void workspace_left_done(struct workspace_left *left)
{
    for (size_t i = 0; i < left->count; i++)
        free(left->items[i].path);
    left->count = 0;
}

/* Why a name that could not be opened is left out; NULL: that is an error. */
static const char *unopened(int error)
{
    switch (error) {
    case EACCES:
    case EPERM:
        return "it may not be read";
    case EXDEV:
        return "it is on another file system";
    case ELOOP:
    case ENOENT:
    case ENXIO:
        return "it changed while it was looked at";
    default:
        return NULL;
    }
}

static const char *special(mode_t mode)
{
    return S_ISFIFO(mode)                   ? "a FIFO"
           : S_ISSOCK(mode)                 ? "a socket"
           : S_ISBLK(mode) || S_ISCHR(mode) ? "a device"
           : S_ISREG(mode)                  ? NULL
                                            : "no file, folder or link";
}

static int open_in(int dir, const char *name, int flags)
{
    struct open_how how = {
        .flags = (uint64_t)(flags | O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY),
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV};
    return (int)syscall(SYS_openat2, dir, name, &how, sizeof how);
}

/* By descriptor: a session's guest is stopped and not dead, and a mode by name would be set through a link. */
int workspace_open_up(int dir, const char *name)
{
    char self[40];
    struct stat st;
    FD_AUTO fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -1;
    if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)) {
        errno = ENOENT;
        return -1;
    }
    return chmod(self, 0700);
}

/* A guest may have taken every right from what it left. It belongs to us. */
static int open_shut(const struct walk *k, int dir, const char *name, int flags)
{
    const int fd = open_in(dir, name, flags);
    if (fd >= 0 || errno != EACCES || !k->guest || workspace_open_up(dir, name) < 0)
        return fd;
    return open_in(dir, name, flags);
}

/* ---- one entry ---- */

/* Entries that were put into the tree in the making. */
struct entry {
    git_oid id;
    git_filemode_t mode;
    bool kept;
};

static int count(struct walk *k, uint64_t bytes, struct err *err)
{
    k->left->files++;
    k->left->bytes += bytes;
    if (k->left->files > LIMIT_WORKSPACE_FILES)
        return err_set(err, ERR_LIMIT, "more than %d files and folders: a commit holds no more",
                       LIMIT_WORKSPACE_FILES);
    if (k->left->bytes > LIMIT_WORKSPACE_BYTES)
        return err_set(err, ERR_LIMIT, "more than %llu MB of files: a commit holds no more",
                       (unsigned long long)(LIMIT_WORKSPACE_BYTES / MIB));
    return 0;
}

/* Of its quota a guest used less than this where a file has holes or several names: the store has no holes, and it must
 * not cost the machine more than the guest was given. */
static int count_file(struct walk *k, uint64_t bytes, struct err *err)
{
    k->size += bytes;
    if (k->room && k->size > k->room)
        return err_set(err, ERR_LIMIT,
                       "its files have more than the %llu bytes of its quota, holes and hard links "
                       "counted: a commit holds no more",
                       (unsigned long long)k->room);
    return count(k, bytes, err);
}

/* Up to LEN bytes; fewer only at the end of the file. */
static ssize_t read_whole(int fd, char *out, size_t len)
{
    size_t at = 0;
    while (at < len) {
        ssize_t n = read(fd, out + at, len - at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        at += (size_t)n;
    }
    return (ssize_t)at;
}

static int changed(const struct walk *k, struct err *err)
{
    return err_set(err, ERR_STATE, "%.120s changed while it was read; try again", k->path);
}

/* What the store has takes no more of it. */
static int add_blob(struct walk *k, const char *data, size_t len, const char *what, git_oid *ret,
                    struct err *err)
{
    if (git_odb_hash(ret, data, len, GIT_OBJECT_BLOB) < 0)
        return workspace_git_err(err, what);
    if (git_odb_exists(k->odb, ret))
        return 0;
    int r = workspace_take(k->w, len + 1, err);
    if (r == 0)
        r = workspace_bulk_one(k->w, err);
    return r == 0 && git_odb_write(ret, k->odb, data, len, GIT_OBJECT_BLOB) < 0
               ? workspace_git_err(err, what)
               : r;
}

static int add_large(struct walk *k, int fd, uint64_t size, git_oid *ret, struct err *err)
{
    git_odb_stream *stream = NULL;
    int r = workspace_take(k->w, size, err); /* whether the store has it nobody knows yet */
    if (r == 0)
        r = workspace_bulk_one(k->w, err);
    if (r < 0)
        return r;
    if (git_odb_open_wstream(&stream, k->odb, (git_object_size_t)size, GIT_OBJECT_BLOB) < 0)
        return workspace_git_err(err, "a file cannot be stored");
    for (uint64_t left = size; left && r == 0;) {
        const size_t want = left < CHUNK ? (size_t)left : CHUNK;
        const ssize_t n = read_whole(fd, k->chunk, want);
        if (n < 0)
            r = err_sys(err, "read %.120s", k->path);
        else if ((size_t)n != want)
            r = changed(k, err);
        else if (git_odb_stream_write(stream, k->chunk, want) < 0)
            r = workspace_git_err(err, "a file cannot be stored");
        left -= want;
    }
    if (r == 0 && git_odb_stream_finalize_write(ret, stream) < 0)
        r = workspace_git_err(err, "a file cannot be stored");
    git_odb_stream_free(stream);
    return r;
}

/* MODE is as it was found. */
static int add_file(struct walk *k, int dir, const char *name, mode_t mode, struct entry *ret,
                    struct err *err)
{
    struct stat st;
    FD_AUTO fd = open_shut(k, dir, name, O_NONBLOCK);
    if (fd < 0) {
        const char *why = unopened(errno);
        return why ? leave(k, why, err) : err_sys(err, "open %.120s", k->path);
    }
    if (fstat(fd, &st) < 0)
        return err_sys(err, "look at %.120s", k->path);
    if (!S_ISREG(st.st_mode))
        return leave(k, "it changed while it was looked at", err);
    if ((uint64_t)st.st_size > LIMIT_WORKSPACE_FILE)
        return leave(k, "larger than 256 MB", err);
    int r = count_file(k, (uint64_t)st.st_size, err);
    if (r < 0)
        return r;
    ret->mode = mode & S_IXUSR ? GIT_FILEMODE_BLOB_EXECUTABLE : GIT_FILEMODE_BLOB;
    ret->kept = true;
    if ((uint64_t)st.st_size > CHUNK)
        return add_large(k, fd, (uint64_t)st.st_size, &ret->id, err);
    const ssize_t n = read_whole(fd, k->chunk, (size_t)st.st_size);
    if (n < 0)
        return err_sys(err, "read %.120s", k->path);
    if (n != st.st_size)
        return changed(k, err);
    return add_blob(k, k->chunk, (size_t)n, "a file cannot be stored", &ret->id, err);
}

static int add_link(struct walk *k, int dir, const char *name, struct entry *ret, struct err *err)
{
    char target[LINK_MAX_];
    const char *named = workspace_name_fault(name, true);
    if (named)
        return leave(k, named, err);
    const ssize_t n = readlinkat(dir, name, target, sizeof target);
    if (n < 0)
        return errno == EINVAL || errno == ENOENT
                   ? leave(k, "it changed while it was looked at", err)
                   : err_sys(err, "read the link %.120s", k->path);
    const char *fault = n == sizeof target ? "a link with an endless target"
                                           : workspace_link_fault(target, (size_t)n, k->depth);
    if (fault)
        return leave(k, fault, err);
    int r = count(k, (uint64_t)n, err);
    if (r < 0)
        return r;
    ret->mode = GIT_FILEMODE_LINK;
    ret->kept = true;
    return add_blob(k, target, (size_t)n, "a link cannot be stored", &ret->id, err);
}

/* ---- folders ---- */

/* What a folder becomes: BASE, if there is one, with the entries of the folder put over it. */
struct made {
    git_oid id;
    size_t entries;
};
static int add_folder(struct walk *k, int fd, const git_tree *base, struct made *ret,
                      struct err *err);

/* The folder NAME of BASE; NULL, if it has none. */
static int below(struct walk *k, const git_tree *base, const char *name, git_tree **ret,
                 struct err *err)
{
    const git_tree_entry *e = base ? git_tree_entry_byname(base, name) : NULL;
    if (!e || git_tree_entry_type(e) != GIT_OBJECT_TREE)
        return 0;
    return git_tree_lookup(ret, k->repo, git_tree_entry_id(e)) < 0
               ? workspace_git_err(err, "the store cannot be read")
               : 0;
}

/* A folder that hides the one below it altogether. Without attributes there is none. */
static bool opaque(const struct walk *k, int fd)
{
    char mark = 0;
    return k->layer && fgetxattr(fd, "user.overlay.opaque", &mark, 1) == 1 && mark == 'y';
}

static int add_below(struct walk *k, int dir, const char *name, const git_tree *base,
                     struct entry *ret, struct err *err)
{
    git_tree *under = NULL;
    struct made made = {.entries = 0};
    if (k->depth == LIMIT_WORKSPACE_DEPTH)
        return leave(k, "too deep: more than 64 folders below each other", err);
    FD_AUTO fd = open_shut(k, dir, name, O_DIRECTORY);
    if (fd < 0) {
        const char *why = errno == ENOTDIR ? unopened(ENOENT) : unopened(errno);
        return why ? leave(k, why, err) : err_sys(err, "open %.120s", k->path);
    }
    int r = count(k, 0, err);
    if (r == 0 && !opaque(k, fd))
        r = below(k, base, name, &under, err);
    k->depth++;
    if (r == 0)
        r = add_folder(k, fd_take(&fd), under, &made, err);
    k->depth--;
    git_tree_free(under);
    ret->id = made.id;
    ret->mode = GIT_FILEMODE_TREE;
    ret->kept = made.entries > 0;
    return r;
}

/* What says that the file of this name below is deleted. It may have many names; it is never opened. */
static bool whiteout(const struct walk *k, const struct stat *st)
{
    return k->layer && S_ISCHR(st->st_mode) && st->st_rdev == 0;
}

static int add_entry(struct walk *k, int dir, const char *name, const git_tree *base,
                     struct entry *ret, struct err *err)
{
    struct stat st;
    const char *fault = workspace_name_fault(name, false);
    if (fault)
        return leave(k, fault, err);
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        const char *why = unopened(errno);
        return why ? leave(k, why, err) : err_sys(err, "look at %.120s", k->path);
    }
    if (whiteout(k, &st))
        return 0;
    if (S_ISDIR(st.st_mode))
        return add_below(k, dir, name, base, ret, err);
    if (S_ISLNK(st.st_mode))
        return add_link(k, dir, name, ret, err);
    fault = special(st.st_mode);
    return fault ? leave(k, fault, err) : add_file(k, dir, name, st.st_mode, ret, err);
}

/* Puts NAME behind the path of its folder for as long as it is looked at. What is not kept is not in the new state,
 * whatever the one below had by that name. */
static int add_named(struct walk *k, int dir, const char *name, const git_tree *base,
                     git_treebuilder *into, struct err *err)
{
    const size_t before = strlen(k->path);
    struct entry entry = {.kept = false};
    const int n =
        snprintf(k->path + before, sizeof k->path - before, "%s%s", before ? "/" : "", name);
    if (n < 0 || (size_t)n >= sizeof k->path - before) {
        k->path[before] = 0;
        return leave(k, "a name in it makes a path of more than 4095 bytes", err);
    }
    int r = add_entry(k, dir, name, base, &entry, err);
    if (r == 0 && entry.kept && git_treebuilder_insert(NULL, into, name, &entry.id, entry.mode) < 0)
        r = leave(k, "a name that git refuses", err);
    else if (r == 0 && !entry.kept && git_treebuilder_get(into, name) &&
             git_treebuilder_remove(into, name) < 0)
        r = workspace_git_err(err, "a folder cannot be stored");
    k->path[before] = 0;
    return r;
}

/* Takes FD. */
static int add_folder(struct walk *k, int fd, const git_tree *base, struct made *ret,
                      struct err *err)
{
    git_treebuilder *builder = NULL;
    DIR *d = entries_take(fd);
    int r = 0;
    if (!d)
        return err_sys(err, "look into %.120s", k->path);
    if (git_treebuilder_new(&builder, k->repo, base) < 0)
        r = workspace_git_err(err, "a folder cannot be stored");
    errno = 0;
    for (const char *name; r == 0 && (name = entries_next(d));)
        r = add_named(k, dirfd(d), name, base, builder, err);
    if (r == 0 && errno)
        r = err_sys(err, "look into %.120s", k->path);
    if (r == 0)
        ret->entries = git_treebuilder_entrycount(builder);
    if (r == 0)
        r = workspace_take(k->w, ret->entries * ENTRY, err);
    if (r == 0)
        r = workspace_bulk_one(k->w, err);
    if (r == 0 && (ret->entries || k->depth == 0) && git_treebuilder_write(&ret->id, builder) < 0)
        r = workspace_git_err(err, "a folder cannot be stored");
    git_treebuilder_free(builder);
    closedir(d);
    return r;
}

int workspace_tree(struct workspace *w, int folder, bool guest, const git_tree *base,
                   struct workspace_left *left, git_oid *ret, struct err *err)
{
    git_repository *repo = w->repo;
    struct walk k = {
        .w = w, .repo = repo, .left = left, .chunk = malloc(CHUNK), .layer = base, .guest = guest};
    struct made made = {.entries = 0};
    struct statfs fs = {0};
    int r = k.chunk ? 0 : err_set(err, ERR_MEMORY, "no memory");
    if (r == 0 && guest && fstatfs(folder, &fs) < 0)
        r = err_sys(err, "the quota of what the run left");
    k.room = (uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize;
    if (r == 0 && git_repository_odb(&k.odb, repo) < 0)
        r = workspace_git_err(err, "the store cannot be opened");
    const int fd = r == 0 ? open_in(folder, ".", O_DIRECTORY) : -1;
    if (r == 0 && fd < 0)
        r = err_sys(err, "open the folder");
    if (r == 0)
        r = add_folder(&k, fd, base && !opaque(&k, fd) ? base : NULL, &made, err);
    if (r == 0)
        r = workspace_bulk_end(w, err);
    if (r == 0)
        *ret = made.id;
    git_odb_free(k.odb);
    free(k.chunk);
    return r;
}
