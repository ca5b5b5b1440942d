/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a guest that can open none: its requests come over the worker's channel, through the supervisor, and are
 * carried out here. A path is put in order by its text alone, which is exact because no link is ever followed; what is left of
 * it begins with workspace or tmp, and the kernel resolves it beneath that folder, through no link and into no other
 * file system. Nothing is kept between two requests.
 *
 * Waits: read in tools_serve_files; the supervisor, its parent; none (its death ends us: the kernel kills us with it); ended
 *        write in tools_serve_files; the supervisor, which waits for one answer at a time; the same; ended */
#include "tools/inside.h"

#include "base/limits.h"
#include "sys/fd.h"
#include "wire/files.h"
#include "wire/msg.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NUMBERS 2

enum { PATH_ROOM = 4100 };

struct place {
    int root;
    char path[PATH_ROOM]; /* in order, beneath ROOT */
};

struct asked {
    uint64_t id, what, numbers[NUMBERS];
    struct place first, second;
    const char *bytes;
    size_t len;
    struct buf out;
    uint64_t said[WIRE_FILES_NUMBERS];
    size_t nsaid;
};

/* ---- paths ---- */

/* The letters of the parent of the first LEN of PATH. */
static size_t parent_of(const char *path, size_t len)
{
    while (len && path[len - 1] != '/')
        len--;
    return len ? len - 1 : 0;
}

/* An absolute path without `.`, `..` and double slashes, and without its first slash. 0, or an errno. */
static int put_in_order(const char *from, size_t len, char *to, size_t size)
{
    size_t at = 0, end = 0;
    if (memchr(from, 0, len))
        return EINVAL;
    if (len == 0)
        return ENOENT;
    if (from[0] != '/')
        return EINVAL;
    while (at < len) {
        while (at < len && from[at] == '/')
            at++;
        const char *slash = memchr(from + at, '/', len - at);
        const size_t n = slash ? (size_t)(slash - from) - at : len - at;
        if (n > 255 || end + n + 2 > size)
            return ENAMETOOLONG;
        if (n == 2 && memcmp(from + at, "..", 2) == 0) {
            end = parent_of(to, end);
        } else if (n && !(n == 1 && from[at] == '.')) {
            if (end)
                to[end++] = '/';
            memcpy(to + end, from + at, n);
            end += n;
        }
        at += n;
    }
    to[end] = 0;
    return 0;
}

/* The two folders that a guest has: each may be a mount, of layers or of a session's branch. Neither is left again. */
static const char *const roots[] = {"workspace", "tmp"};
enum { ROOTS = sizeof roots / sizeof *roots };
static int root_fds[ROOTS];

/* The path beneath one of them; "." is the folder itself. */
static int order_path(const void *from, size_t len, struct place *ret)
{
    char whole[PATH_ROOM] = "";
    const int e = put_in_order(from, len, whole, sizeof whole);
    if (e)
        return e;
    for (size_t i = 0; i < ROOTS; i++) {
        const size_t n = strlen(roots[i]);
        if (strncmp(whole, roots[i], n) == 0 && (whole[n] == '/' || !whole[n])) {
            ret->root = root_fds[i];
            snprintf(ret->path, sizeof ret->path, "%s", whole[n] ? whole + n + 1 : ".");
            return 0;
        }
    }
    return (int)WIRE_FILES_OUTSIDE;
}

static int open_beneath(const struct place *p, int flags)
{
    /* a pipe is not waited for; the kernel takes no such word with O_PATH */
    const int more = flags & O_PATH ? 0 : O_NONBLOCK | O_NOCTTY;
    struct open_how how = {.flags = (uint64_t)(flags | more) | O_CLOEXEC,
                           .mode = flags & O_CREAT ? 0644 : 0,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
                                      RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV};
    return (int)syscall(SYS_openat2, p->root, p->path, &how, sizeof how);
}

/* The folder that P lies in, and its last name there. The two folders themselves are nobody's to change. */
static int open_above(const struct place *p, const char **ret_name)
{
    struct place above = {.root = p->root, .path = "."};
    const size_t len = parent_of(p->path, strlen(p->path));
    if (strcmp(p->path, ".") == 0) {
        errno = EBUSY;
        return -1;
    }
    if (len) {
        memcpy(above.path, p->path, len);
        above.path[len] = 0;
    }
    *ret_name = p->path + (len ? len + 1 : 0);
    return open_beneath(&above, O_PATH | O_DIRECTORY);
}

/* A regular file: anything else would wait, or act. */
static int open_regular(const struct asked *a, int flags)
{
    struct stat st;
    FD_AUTO fd = open_beneath(&a->first, flags);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -1;
    if (!S_ISREG(st.st_mode)) {
        errno = S_ISDIR(st.st_mode) ? EISDIR : EACCES;
        return -1;
    }
    return fd_take(&fd);
}

/* ---- requests: 0, or an errno ---- */

static uint64_t ns(const struct timespec *t)
{
    return (uint64_t)t->tv_sec * 1000000000U + (uint64_t)t->tv_nsec;
}

static int look(struct asked *a)
{
    struct stat st;
    FD_AUTO fd = open_beneath(&a->first, O_PATH | O_NOFOLLOW);
    if (fd < 0 || fstat(fd, &st) < 0)
        return errno;
    const uint64_t said[] = {st.st_mode,      (uint64_t)st.st_size, st.st_ino,      st.st_nlink,
                             ns(&st.st_atim), ns(&st.st_mtim),      ns(&st.st_ctim)};
    memcpy(a->said, said, sizeof said);
    a->nsaid = WIRE_FILES_NUMBERS;
    return 0;
}

static int open_once(struct asked *a)
{
    const uint64_t want = a->numbers[0];
    const int flags = (want & WIRE_FILES_FOR_WRITING ? O_RDWR : O_RDONLY) |
                      (want & WIRE_FILES_CREATE ? O_CREAT : 0) |
                      (want & WIRE_FILES_EXCLUSIVE ? O_EXCL : 0);
    struct stat st;
    FD_AUTO fd = open_regular(a, flags);
    if (fd < 0 || ((want & WIRE_FILES_EMPTY) && ftruncate(fd, 0) < 0) || fstat(fd, &st) < 0)
        return errno;
    a->said[a->nsaid++] = (uint64_t)st.st_size;
    return 0;
}

static int read_piece(struct asked *a)
{
    size_t left = a->numbers[1] < LIMIT_FILE_PIECE ? a->numbers[1] : LIMIT_FILE_PIECE;
    FD_AUTO fd = open_regular(a, O_RDONLY);
    if (fd < 0 || a->numbers[0] > INT64_MAX - LIMIT_FILE_PIECE)
        return fd < 0 ? errno : EINVAL;
    for (uint64_t at = a->numbers[0]; left;) {
        char chunk[16384];
        const ssize_t n = pread(fd, chunk, left < sizeof chunk ? left : sizeof chunk, (off_t)at);
        if (n < 0)
            return errno;
        if (n == 0)
            break;
        if (buf_add(&a->out, chunk, (size_t)n) < 0)
            return ENOMEM;
        at += (uint64_t)n;
        left -= (size_t)n;
    }
    return 0;
}

static int write_piece(struct asked *a)
{
    uint64_t at = a->numbers[0];
    struct stat st;
    FD_AUTO fd = open_regular(a, O_WRONLY);
    if (fd < 0 || fstat(fd, &st) < 0)
        return errno;
    if (at == WIRE_FILES_END)
        at = (uint64_t)st.st_size;
    if (at > INT64_MAX - LIMIT_FRAME)
        return EFBIG;
    for (size_t done = 0; done < a->len;) {
        const ssize_t n = pwrite(fd, a->bytes + done, a->len - done, (off_t)at);
        if (n < 0)
            return errno;
        done += (size_t)n;
        at += (uint64_t)n;
    }
    a->said[a->nsaid++] = at;
    return 0;
}

static int truncate_file(struct asked *a)
{
    FD_AUTO fd = open_regular(a, O_WRONLY);
    if (fd < 0)
        return errno;
    if (a->numbers[0] > INT64_MAX)
        return EFBIG;
    return ftruncate(fd, (off_t)a->numbers[0]) < 0 ? errno : 0;
}

static char kind_of(const struct dirent *e)
{
    return e->d_type == DT_DIR ? 'd' : e->d_type == DT_REG ? 'f' : e->d_type == DT_LNK ? 'l' : '?';
}

/* The names behind those that are to be skipped, as many as fit. */
static int list_names(struct asked *a, DIR *folder)
{
    uint64_t seen = 0;
    errno = 0;
    for (struct dirent *e; (e = readdir(folder)); errno = 0) {
        const size_t len = strlen(e->d_name);
        const char kind = kind_of(e);
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 || seen++ < a->numbers[0])
            continue;
        if (a->out.len + len + 2 > LIMIT_FILE_PIECE) {
            a->said[0] = seen - 1;
            a->said[1] = 0;
            return 0;
        }
        if (buf_add(&a->out, &kind, 1) < 0 || buf_add(&a->out, e->d_name, len + 1) < 0)
            return ENOMEM;
    }
    a->said[0] = seen;
    a->said[1] = 1;
    return errno;
}

static int list(struct asked *a)
{
    FD_AUTO fd = open_beneath(&a->first, O_RDONLY | O_DIRECTORY);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    if (!folder)
        return errno;
    (void)fd_take(&fd);
    const int e = list_names(a, folder);
    a->nsaid = 2;
    closedir(folder);
    return e;
}

static int make_folder(struct asked *a)
{
    const char *name;
    FD_AUTO dir = open_above(&a->first, &name);
    if (dir < 0)
        return errno == EBUSY ? EEXIST : errno;
    return mkdirat(dir, name, 0755) < 0 ? errno : 0;
}

static int remove_name(struct asked *a)
{
    const char *name;
    FD_AUTO dir = open_above(&a->first, &name);
    const int flags = a->what == WIRE_FILES_RMDIR ? AT_REMOVEDIR : 0;
    if (dir < 0 && errno == EBUSY && !flags)
        return EISDIR;
    return dir < 0 || unlinkat(dir, name, flags) < 0 ? errno : 0;
}

static int rename_to(struct asked *a)
{
    const char *name, *second;
    FD_AUTO dir = open_above(&a->first, &name);
    FD_AUTO into = dir < 0 ? -1 : open_above(&a->second, &second);
    return into < 0 || renameat(dir, name, into, second) < 0 ? errno : 0;
}

static int touch(struct asked *a)
{
    FD_AUTO fd = open_beneath(&a->first, O_RDONLY);
    return fd < 0 || futimens(fd, NULL) < 0 ? errno : 0;
}

static int (*const requests[WIRE_FILES_COUNT])(struct asked *a) = {
    [WIRE_FILES_STAT] = look,          [WIRE_FILES_OPEN] = open_once,
    [WIRE_FILES_READ] = read_piece,    [WIRE_FILES_WRITE] = write_piece,
    [WIRE_FILES_LIST] = list,          [WIRE_FILES_TRUNCATE] = truncate_file,
    [WIRE_FILES_MKDIR] = make_folder,  [WIRE_FILES_RMDIR] = remove_name,
    [WIRE_FILES_UNLINK] = remove_name, [WIRE_FILES_RENAME] = rename_to,
    [WIRE_FILES_TOUCH] = touch,
};

/* ---- one after the other ---- */

static int carry_out(struct asked *a, struct wire_reader *r)
{
    size_t len, second_len;
    const void *path = wire_get_bytes(r, &len), *second = wire_get_bytes(r, &second_len);
    const size_t given = wire_get_uints(r, a->numbers, NUMBERS);
    a->bytes = wire_get_bytes(r, &a->len);
    if (a->what >= WIRE_FILES_COUNT || given > NUMBERS)
        return EINVAL;
    int e = order_path(path, len, &a->first);
    if (!e && a->what == WIRE_FILES_RENAME)
        e = order_path(second, second_len, &a->second);
    return e ? e : requests[a->what](a);
}

static int write_answer(const struct asked *a, int e, struct buf *to)
{
    struct wire_writer m;
    buf_reset(to);
    wire_begin(&m, to, WIRE_FILE_DONE);
    wire_put_uint(&m, a->id);
    wire_put_uint(&m, (uint64_t)e);
    wire_put_uints(&m, a->said, e ? 0 : a->nsaid);
    wire_put_bytes(&m, a->out.data ? a->out.data : "", e ? 0 : a->out.len);
    return wire_end(&m);
}

/* Once, by name: what is mounted there was mounted by whoever built the jail. */
static int open_roots(int files)
{
    struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
    for (size_t i = 0; i < ROOTS; i++) {
        root_fds[i] = (int)syscall(SYS_openat2, files, roots[i], &how, sizeof how);
        if (root_fds[i] < 0)
            return -1;
    }
    return 0;
}

static int serve_one(const void *frame, size_t len, struct buf *ret_answer)
{
    struct wire_reader r;
    struct asked a = {.id = 0};
    if (wire_open(&r, frame, len, NULL) < 0 || r.type != WIRE_FILE_ASK)
        return -1;
    buf_init(&a.out, LIMIT_FILE_PIECE + 1);
    a.id = wire_get_uint(&r);
    a.what = wire_get_uint(&r);
    const int e = carry_out(&a, &r);
    const int written = write_answer(&a, e, ret_answer);
    buf_done(&a.out);
    return written;
}

int tools_serve_files(int files)
{
    static char asked[LIMIT_FRAME], said[LIMIT_FRAME];
    struct buf b = {.data = said, .cap = sizeof said, .max = sizeof said - 1};
    if (open_roots(files) < 0)
        return -1;
    for (;;) {
        const ssize_t n = read(TOOLS_SOCKET, asked, sizeof asked);
        if (n <= 0)
            return n < 0 ? -1 : 0;
        if (serve_one(asked, (size_t)n, &b) < 0 ||
            write(TOOLS_SOCKET, b.data, b.len) != (ssize_t)b.len)
            return -1;
    }
}
