/* SPDX-License-Identifier: Apache-2.0 */
/* One sum over all that lies in what is shared, for policies that bind an approval to it (approval.contents). A folder
 * is summed as a listing: of each entry type, mode, name and sum, in the order of the names' bytes, so that the same
 * contents give the same sum wherever they were made. Links are not followed: their text counts. Everything here may
 * have been made by an earlier guest, so the walk is bounded in entries, bytes and depth, and what is past a bound, or
 * cannot be read, is refused by name: nobody can be asked about what was not looked at. A file is read in pieces and
 * not mapped, since one that shrinks while it is summed would end us.
 *
 * Waits: read in fill; regular files only, opened without waiting; none (the kernel's own); an error */
#include "flow/steps.h"

#include "base/limits.h"
#include "sys/entries.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE     (256 * KIB)
#define DEPTH_MAX 64

struct walk {
    const char *source; /* what was shared */
    uint64_t entries, bytes;
    char *piece;
};

static int sum_entry(struct walk *w, int dir, const char *name, int depth, char sum[65],
                     struct err *err);

static int past_bound(const struct walk *w, const char *what, struct err *err)
{
    return err_set(err, ERR_USAGE,
                   "%.100s holds more than %s that an approval can be bound to "
                   "(approval.contents): share less of it",
                   w->source, what);
}

static int unreadable(const struct walk *w, const char *name, struct err *err)
{
    err_sys(err, "%.100s: %.60s cannot be read, so no approval can be bound to it", w->source,
            name);
    return err_is_host(err) ? err->code : (err->code = ERR_USAGE);
}

/* A whole piece but at the end, so that the same bytes give the same pieces. -1: errno tells why. */
static ssize_t fill(int fd, char *piece)
{
    size_t have = 0;
    while (have < PIECE) {
        ssize_t n = read(fd, piece + have, PIECE - have);
        if (n == 0)
            break;
        if (n < 0 && errno != EINTR)
            return -1;
        have += n > 0 ? (size_t)n : 0;
    }
    return (ssize_t)have;
}

/* The sum over the sums of its pieces. */
static int sum_file(struct walk *w, int dir, const char *name, char sum[65], struct err *err)
{
    char sums[65 + 64] = ""; /* of what came before, and of one piece */
    struct stat st;
    FD_AUTO fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return unreadable(w, name, err);
    for (ssize_t n; (n = fill(fd, w->piece)) != 0;) {
        if (n < 0)
            return unreadable(w, name, err);
        w->bytes += (uint64_t)n;
        if (w->bytes > LIMIT_CONTENTS_BYTES)
            return past_bound(w, "64 MiB", err);
        gate_sha256_hex(w->piece, (size_t)n, sums + strlen(sums));
        gate_sha256_hex(sums, strlen(sums), sums);
    }
    gate_sha256_hex(sums, strlen(sums), sum);
    return 0;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void free_names(char **names, size_t count)
{
    while (count)
        free(names[--count]);
    free(names);
}

/* The names of a folder in order. */
static int read_names(struct walk *w, int folder, char ***ret, size_t *ret_count, struct err *err)
{
    char **names = NULL;
    size_t count = 0;
    int r = 0;
    DIR *d = entries_of(folder);
    if (!d)
        return err_sys(err, "read %.100s", w->source);
    for (const char *name; r == 0 && (name = entries_next(d));) {
        if (++w->entries > LIMIT_CONTENTS_FILES) {
            r = past_bound(w, "10,000 files and folders", err);
            continue;
        }
        char **more = count % 64 ? names : realloc(names, (count + 64) * sizeof *names);
        if (more)
            names = more;
        if (!more || !(names[count] = strdup(name)))
            r = err_set(err, ERR_MEMORY, "no memory");
        else
            count++;
    }
    if (r == 0 && errno)
        r = unreadable(w, "a folder", err);
    closedir(d);
    if (r < 0) {
        free_names(names, count);
        return r;
    }
    if (count)
        qsort(names, count, sizeof *names, by_bytes);
    *ret = names;
    *ret_count = count;
    return 0;
}

static int sum_folder(struct walk *w, int dir, const char *name, int depth, char sum[65],
                      struct err *err)
{
    char **names = NULL, one[65];
    size_t count = 0;
    struct buf listing;
    if (depth == DEPTH_MAX)
        return past_bound(w, "64 levels of folders", err);
    FD_AUTO fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return unreadable(w, name, err);
    int r = read_names(w, fd, &names, &count, err);
    buf_init(&listing, (NAME_MAX + 128) * LIMIT_CONTENTS_FILES);
    for (size_t i = 0; i < count && r == 0; i++) {
        struct stat st;
        if (fstatat(fd, names[i], &st, AT_SYMLINK_NOFOLLOW) < 0)
            r = unreadable(w, names[i], err);
        else
            r = sum_entry(w, fd, names[i], depth + 1, one, err);
        if (r == 0 && buf_printf(&listing, "%o %zu:%s %s\n", (unsigned)st.st_mode, strlen(names[i]),
                                 names[i], one) < 0)
            r = err_set(err, ERR_MEMORY, "no memory");
    }
    if (r == 0)
        gate_sha256_hex(listing.data ? listing.data : "", listing.len, sum);
    buf_done(&listing);
    free_names(names, count);
    return r;
}

static int sum_entry(struct walk *w, int dir, const char *name, int depth, char sum[65],
                     struct err *err)
{
    char target[PATH_MAX];
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return unreadable(w, name, err);
    if (S_ISDIR(st.st_mode))
        return sum_folder(w, dir, name, depth, sum, err);
    if (S_ISREG(st.st_mode))
        return sum_file(w, dir, name, sum, err);
    ssize_t n = S_ISLNK(st.st_mode) ? readlinkat(dir, name, target, sizeof target) : 0;
    if (n < 0)
        return unreadable(w, name, err);
    gate_sha256_hex(target, (size_t)n, sum); /* of pipes and sockets only that they are there */
    return 0;
}

int flow_contents_sum(const char *source, char sum[65], struct err *err)
{
    struct walk w = {.source = source, .piece = malloc(PIECE)};
    struct stat st;
    char inside[65], text[160];
    if (!w.piece)
        return err_set(err, ERR_MEMORY, "no memory");
    int r = stat(source, &st) < 0 ? unreadable(&w, source, err)
                                  : sum_entry(&w, AT_FDCWD, source, 0, inside, err);
    free(w.piece);
    if (r < 0)
        return r;
    /* another folder with the same contents is another folder */
    snprintf(text, sizeof text, "%llu %llu %o %s", (unsigned long long)st.st_dev,
             (unsigned long long)st.st_ino, (unsigned)st.st_mode, inside);
    gate_sha256_hex(text, strlen(text), sum);
    return 0;
}

/* Between the question and the run minutes may have passed. */
int flow_confirm(struct flow *f, struct err *err)
{
    const struct jail_spec *s = &f->req->spec;
    for (size_t i = 0; i < s->nbinds && f->contents; i++) {
        char sum[65];
        int r = flow_contents_sum(f->contents[i].path, sum, err);
        if (r < 0)
            return r;
        if (strcmp(sum, f->contents[i].sum) != 0)
            return flow_contents_changed(f, s->binds[i].source);
    }
    return FLOW_GO_ON;
}
