/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a guest that can open none: its requests come over the worker's channel, through the supervisor, and are
 * carried out here, beneath what is served (served_paths.c). Nothing is kept between two requests.
 *
 * Waits: read in tools_serve_files; the supervisor, its parent; none (its death ends us: the kernel kills us with it); ended
 *        write in tools_serve_files; the supervisor, which waits for one answer at a time; the same; ended
 *        pread in *; a regular file of the workspace or of a folder that was given; none (the kernel's own); an error
 *        pwrite in *; the same; none (the kernel's own); an error */
#include "tools/inside.h"

#include "base/limits.h"
#include "sys/fd.h"
#include "wire/files.h"
#include "wire/msg.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NUMBERS 2

struct asked {
    uint64_t id, what, numbers[NUMBERS];
    struct tools_served first, second;
    const char *bytes;
    size_t len;
    struct buf out;
    uint64_t said[WIRE_FILES_NUMBERS];
    size_t nsaid;
};

/* ---- requests: 0, or an errno ---- */

static uint64_t ns(const struct timespec *t)
{
    return (uint64_t)t->tv_sec * 1000000000U + (uint64_t)t->tv_nsec;
}

static int look(struct asked *a)
{
    struct stat st;
    FD_AUTO fd = tools_served_beneath(&a->first, O_PATH | O_NOFOLLOW);
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
    FD_AUTO fd = tools_served_regular(&a->first, flags);
    if (fd < 0 || ((want & WIRE_FILES_EMPTY) && ftruncate(fd, 0) < 0) || fstat(fd, &st) < 0)
        return errno;
    a->said[a->nsaid++] = (uint64_t)st.st_size;
    return 0;
}

static int read_piece(struct asked *a)
{
    size_t left = a->numbers[1] < LIMIT_FILE_PIECE ? a->numbers[1] : LIMIT_FILE_PIECE;
    FD_AUTO fd = tools_served_regular(&a->first, O_RDONLY);
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
    FD_AUTO fd = tools_served_regular(&a->first, O_WRONLY);
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
    FD_AUTO fd = tools_served_regular(&a->first, O_WRONLY);
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
    FD_AUTO fd = tools_served_beneath(&a->first, O_RDONLY | O_DIRECTORY);
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
    FD_AUTO dir = tools_served_above(&a->first, &name);
    if (dir < 0)
        return errno == EBUSY ? EEXIST : errno;
    return mkdirat(dir, name, 0755) < 0 ? errno : 0;
}

static int remove_name(struct asked *a)
{
    const char *name;
    FD_AUTO dir = tools_served_above(&a->first, &name);
    const int flags = a->what == WIRE_FILES_RMDIR ? AT_REMOVEDIR : 0;
    if (dir < 0 && errno == EBUSY && !flags) { /* it is served itself: a folder, or a file */
        FD_AUTO folder = tools_served_beneath(&a->first, O_PATH | O_DIRECTORY);
        return folder < 0 ? EBUSY : EISDIR;
    }
    return dir < 0 || unlinkat(dir, name, flags) < 0 ? errno : 0;
}

static int rename_to(struct asked *a)
{
    const char *name, *second;
    if (!tools_served_together(&a->first, &a->second))
        return EXDEV;
    FD_AUTO dir = tools_served_above(&a->first, &name);
    FD_AUTO into = dir < 0 ? -1 : tools_served_above(&a->second, &second);
    return into < 0 || renameat(dir, name, into, second) < 0 ? errno : 0;
}

static int touch(struct asked *a)
{
    FD_AUTO fd = tools_served_beneath(&a->first, O_RDONLY);
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

static bool changes(const struct asked *a)
{
    return a->what == WIRE_FILES_OPEN ? (a->numbers[0] & ~(uint64_t)WIRE_FILES_EXCLUSIVE) != 0
                                      : a->what != WIRE_FILES_STAT && a->what != WIRE_FILES_READ &&
                                            a->what != WIRE_FILES_LIST;
}

/* What the kernel would say of a read-only mount. As an ordinary user there is none, only Landlock's rule, whose word is another. */
static int say_read_only(const struct asked *a)
{
    FD_AUTO fd = tools_served_beneath(&a->first, O_PATH | O_NOFOLLOW);
    const bool makes = a->what == WIRE_FILES_OPEN && (a->numbers[0] & WIRE_FILES_CREATE);
    if (a->what == WIRE_FILES_MKDIR && fd >= 0)
        return EEXIST;
    return a->what == WIRE_FILES_OPEN && !makes && fd < 0 ? errno : EROFS;
}

static bool is_refused(const struct asked *a)
{
    return changes(a) && (!tools_served_writable(&a->first) ||
                          (a->what == WIRE_FILES_RENAME && !tools_served_writable(&a->second)));
}

static int carry_out(struct asked *a, struct wire_reader *r)
{
    size_t len, second_len;
    const void *path = wire_get_bytes(r, &len), *second = wire_get_bytes(r, &second_len);
    const size_t given = wire_get_uints(r, a->numbers, NUMBERS);
    a->bytes = wire_get_bytes(r, &a->len);
    if (a->what >= WIRE_FILES_COUNT || given > NUMBERS)
        return EINVAL;
    int e = tools_served_find(path, len, &a->first);
    if (!e && a->what == WIRE_FILES_RENAME)
        e = tools_served_find(second, second_len, &a->second);
    return e ? e : is_refused(a) ? say_read_only(a) : requests[a->what](a);
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

int tools_serve_files(void)
{
    static char asked[LIMIT_FRAME], said[LIMIT_FRAME];
    struct buf b = {.data = said, .cap = sizeof said, .max = sizeof said - 1};
    for (;;) {
        const ssize_t n = read(TOOLS_SOCKET, asked, sizeof asked);
        if (n <= 0)
            return n < 0 ? -1 : 0;
        if (serve_one(asked, (size_t)n, &b) < 0 ||
            write(TOOLS_SOCKET, b.data, b.len) != (ssize_t)b.len)
            return -1;
    }
}
