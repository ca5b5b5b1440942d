/* SPDX-License-Identifier: Apache-2.0 */
/* The list is words with a NUL behind each, five for a bind: r or w, source, destination, device, inode. A path alone would
 * not do: between the client's look at it and the holder's another folder may have come to its place, and the holder takes
 * none but the one that was looked at. The client reads the list again with each call, since what its user may
 * share is decided anew then. */
#include "pool/shares.h"

#include "base/buf.h"
#include "base/languages.h"
#include "jail/put.h"
#include "sys/fd.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIST_MAX ((size_t)POOL_SHARES * (2 * PATH_MAX + 64))

static const char *option(const struct jail_bind *b)
{
    return b->writable ? "--rw" : "--ro";
}

static bool at_or_below(const char *path, const char *folder)
{
    const size_t n = strlen(folder);
    return strncmp(path, folder, n) == 0 && (path[n] == 0 || path[n] == '/');
}

static bool interpreter_reads(const char *path)
{
    static const char *const folders[] = {
        "/usr",   "/bin", "/sbin", "/lib",     "/lib32",
        "/lib64", "/etc", "/.old", "/.sealed", "/cordon-packages"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (at_or_below(path, folders[i]))
            return true;
    for (const struct language *l = language_next(NULL); l; l = language_next(l))
        if (l->place && at_or_below(path, l->place))
            return true;
    return false;
}

/* What jails refuse, and two kinds of places that a session has to itself: its template's interpreter reads modules,
 * libraries and settings while it is not yet locked; and a session's own files are mounted anew for it and for each of
 * its branches, over whatever its template has there. */
static int check_place(const struct jail_bind *b, struct err *err)
{
    static const char *const own[] = {"/workspace", "/tmp"};
    int r = jail_bind_place(b, err);
    if (r < 0)
        return r;
    if (interpreter_reads(b->dest))
        return err_set(err, ERR_USAGE,
                       "%s: %.100s belongs to the interpreter that a session is forked from; "
                       "choose another destination, such as %.100s:/data",
                       option(b), b->dest, b->source);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (at_or_below(b->dest, own[i]))
            return err_set(err, ERR_USAGE,
                           "%s: %.100s lies in a session's own files, which a fork copies; show it "
                           "elsewhere, such as %.100s:/data, or copy it with --in",
                           option(b), b->dest, b->source);
    return 0;
}

/* ---- the client ---- */

/* The holder stands in another folder. Letters stay as they are: `link/..` is not what they say. */
static int put_source(struct buf *out, const char *source, struct err *err)
{
    char here[PATH_MAX];
    if (source[0] != '/' && !getcwd(here, sizeof here))
        return err_sys(err, "the current folder");
    int r = source[0] == '/' ? 0 : buf_str(out, here);
    if (r == 0 && source[0] != '/')
        r = buf_str(out, "/");
    if (r == 0)
        r = buf_add(out, source, strlen(source) + 1);
    return r < 0 ? err_set(err, ERR_USAGE, "--ro and --rw: the paths are too long") : 0;
}

static int put_share(struct buf *out, const struct jail_bind *b, struct err *err)
{
    struct stat st;
    char numbers[64];
    int r = check_place(b, err);
    FD_AUTO there = r < 0 ? r : jail_bind_open(b, err);
    if (there < 0)
        return there;
    if (fstat(there, &st) < 0)
        return err_sys(err, "%s %.160s", option(b), b->source);
    const int n = snprintf(numbers, sizeof numbers, "%llu%c%llu", (unsigned long long)st.st_dev, 0,
                           (unsigned long long)st.st_ino);
    if (buf_add(out, b->writable ? "w" : "r", 2) < 0)
        return err_set(err, ERR_MEMORY, "no memory");
    r = put_source(out, b->source, err);
    if (r == 0 && (buf_add(out, b->dest, strlen(b->dest) + 1) < 0 ||
                   buf_add(out, numbers, (size_t)n + 1) < 0))
        r = err_set(err, ERR_USAGE, "--ro and --rw: the paths are too long");
    return r;
}

int pool_shares_new(const struct jail_spec *spec, struct pool_shares **ret, struct err *err)
{
    struct buf list;
    size_t count = 0;
    int r = 0;
    *ret = NULL;
    buf_init(&list, LIST_MAX);
    for (size_t i = 0; i < spec->nbinds && r == 0; i++) {
        const struct jail_bind *b = &spec->binds[i];
        if (b->copied || b->out || b->lower)
            continue;
        r = ++count > POOL_SHARES
                ? err_set(err, ERR_USAGE, "--ro and --rw are given more than %d times together",
                          POOL_SHARES)
                : put_share(&list, b, err);
    }
    FD_AUTO fd = -1;
    if (r == 0 && count)
        r = fd_sealed(list.data, list.len, &fd, err);
    buf_done(&list);
    return r < 0 || !count ? r : pool_shares_read(fd, ret, err);
}

/* ---- both ---- */

static bool number(const char *word, uint64_t *ret)
{
    char *end;
    errno = 0;
    *ret = strtoull(word, &end, 10);
    return isdigit((unsigned char)word[0]) && *end == 0 && errno == 0;
}

/* The five words at *AT, which is behind them then. */
static int take_share(const char **at, const char *end, struct jail_bind *ret, struct err *err)
{
    enum { KIND, SOURCE, DEST, DEVICE, INODE, WORDS };
    const char *word[WORDS];
    for (int i = 0; i < WORDS; i++) {
        const char *stop = memchr(*at, 0, (size_t)(end - *at));
        if (!stop)
            return err_set(err, ERR_FORMAT, "the list of folders is cut");
        word[i] = *at;
        *at = stop + 1;
    }
    *ret = (struct jail_bind){.source = word[SOURCE],
                              .dest = word[DEST],
                              .writable = word[KIND][0] == 'w',
                              .moved = strcmp(word[SOURCE], word[DEST]) != 0};
    if ((strcmp(word[KIND], "r") != 0 && strcmp(word[KIND], "w") != 0) || word[SOURCE][0] != '/' ||
        !number(word[DEVICE], &ret->device) || !number(word[INODE], &ret->inode) || !ret->inode)
        return err_set(err, ERR_FORMAT, "the list of folders has a word that makes no sense");
    return check_place(ret, err);
}

int pool_shares_read(int fd, struct pool_shares **ret, struct err *err)
{
    size_t len = 0;
    struct pool_shares *s = calloc(1, sizeof *s);
    if (!s)
        return err_set(err, ERR_MEMORY, "no memory");
    s->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    s->text = fd_sealed_read(fd, LIST_MAX, "the list of folders", &len, err);
    int r = !s->text ? err->code : s->fd < 0 ? err_sys(err, "keep the list of folders") : 0;
    const char *at = s->text, *end = at ? at + len : NULL;
    for (; r == 0 && at < end; s->count++)
        r = s->count == POOL_SHARES ? err_set(err, ERR_FORMAT, "the list of folders is too long")
                                    : take_share(&at, end, &s->binds[s->count], err);
    if (r < 0) {
        pool_shares_free(s);
        return r;
    }
    *ret = s;
    return 0;
}

void pool_shares_free(struct pool_shares *s)
{
    if (!s)
        return;
    fd_close(s->fd);
    free(s->text);
    free(s);
}
