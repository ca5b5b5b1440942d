/* SPDX-License-Identifier: Apache-2.0 */
/* The order of the days is the order of their records, not of their names: a clock that was set back
 * may begin a file whose name is older than the one before it.
 *
 * Waits: pread in *; a file of the log; none (the kernel's own); an error */
#include "audit/inside.h"

#include "sys/entries.h"
#include "sys/fd.h"
#include "sys/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_MAX 40000 /* a hundred years */
#define CHUNK     (256 * 1024)

_Static_assert(CHUNK > 2 * AUDIT_RECORD_MAX, "a line must fit");

static int by_name(const void *a, const void *b)
{
    const struct audit_file *x = a, *y = b;
    return (x->day > y->day) - (x->day < y->day);
}

static int add(int dir, uint32_t day, struct audit_files *f, struct err *err)
{
    char name[AUDIT_NAME_MAX], line[64];
    struct stat st;
    if (f->count % 64 == 0) {
        struct audit_file *more =
            f->count < FILES_MAX ? realloc(f->items, (f->count + 64) * sizeof *more) : NULL;
        if (!more)
            return err_set(err, ERR_LIMIT,
                           "the audit has more than %d daily files: shorten audit.retention, or "
                           "move old ones away",
                           FILES_MAX);
        f->items = more;
    }
    struct audit_file *new = &f->items[f->count];
    *new = (struct audit_file){.day = day, .fd = -1};
    audit_day_name(day, name);
    int r = state_file(dir, name, O_RDONLY, &new->fd, err);
    if (r == ERR_SYS && err->sys_errno == ENOENT)
        return 0; /* retention was quicker */
    if (r < 0)
        return r;
    f->count++;
    if (fstat(new->fd, &st) < 0)
        return err_sys(err, "look at %s", name);
    new->size = (uint64_t)st.st_size;
    ssize_t n = pread(new->fd, line, sizeof line - 1, 0);
    if (n > 8 && memcmp(line, "{\"seq\": ", 8) == 0) {
        line[n] = 0;
        new->first = strtoull(line + 8, NULL, 10);
    }
    return 0;
}

int audit_files_open(int dir, struct audit_files *ret, struct err *err)
{
    *ret = (struct audit_files){0};
    DIR *d = entries_of(dir);
    if (!d)
        return err_sys(err, "list the log");
    int r = 0;
    for (const char *name; r == 0 && (name = entries_next(d));) {
        uint32_t day = audit_day_parse(name);
        if (day)
            r = add(dir, day, ret, err);
    }
    closedir(d);
    if (r < 0)
        audit_files_done(ret);
    else if (ret->count)
        qsort(ret->items, ret->count, sizeof *ret->items, by_name);
    return r;
}

void audit_files_done(struct audit_files *f)
{
    for (size_t i = 0; i < f->count; i++)
        fd_close(f->items[i].fd);
    free(f->items);
    *f = (struct audit_files){0};
}

struct audit_file *audit_files_take(struct audit_files *f, uint64_t seq)
{
    struct audit_file *next = NULL;
    for (size_t i = 0; i < f->count; i++) {
        struct audit_file *file = &f->items[i];
        if (file->done || file->size == 0)
            continue;
        if (file->first == seq && seq != 0) {
            next = file;
            break;
        }
        if (!next)
            next = file;
    }
    if (next)
        next->done = true;
    return next;
}

void audit_lines_init(struct audit_lines *l, int fd, uint64_t from, uint64_t stop)
{
    *l = (struct audit_lines){.fd = fd, .at = from, .stop = stop, .chunk = malloc(CHUNK)};
}

void audit_lines_done(struct audit_lines *l)
{
    free(l->chunk);
    l->chunk = NULL;
}

int audit_lines_next(struct audit_lines *l, const char **ret, size_t *ret_len, uint64_t *ret_at)
{
    if (!l->chunk) {
        errno = ENOMEM;
        return -2;
    }
    for (;;) {
        uint64_t begin = l->at - (l->have - l->used); /* of what lies in the chunk */
        const char *from = l->chunk + l->used;
        size_t left = l->have - l->used;
        const char *end = left ? memchr(from, '\n', left) : NULL;
        *ret = from;
        *ret_at = begin;
        if (end && (size_t)(end - from) < AUDIT_RECORD_MAX) {
            *ret_len = (size_t)(end - from);
            l->used += *ret_len + 1;
            return 1;
        }
        if (left >= AUDIT_RECORD_MAX || (l->at >= l->stop && left)) {
            *ret_len = (size_t)(l->stop - begin);
            return -1;
        }
        if (l->at >= l->stop)
            return 0;
        memmove(l->chunk, from, left);
        l->have = left;
        l->used = 0;
        uint64_t want = l->stop - l->at;
        if (want > CHUNK - left)
            want = CHUNK - left;
        ssize_t n = pread(l->fd, l->chunk + left, (size_t)want, (off_t)l->at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -2;
        if (n == 0) /* the file became shorter while it was read: the rest counts as missing */
            l->stop = l->at;
        l->at += (uint64_t)n;
        l->have += (size_t)n;
    }
}
