/* SPDX-License-Identifier: Apache-2.0 */
/* One block a line; in it a line end is `\n` and a backslash is `\\`. Each is one write to the end of the file, so that
 * two prompts mix their blocks and never their lines. libedit could write a file, too: as a whole, at the end, over what
 * another prompt has written meanwhile.
 *
 * Waits: write in *; the disk; none (the kernel's own); an error
 *        read in read_all; the disk; none (the kernel's own); an error */
#include "history.h"

#include "base/buf.h"
#include "sys/fd.h"
#include "sys/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NAME "history"

/* Which file it is, and what a person can do. Returns R. */
static int about_file(int r, struct err *err)
{
    char folder[STATE_PATH_MAX], why[sizeof err->msg];
    struct err none = ERR_INIT;
    if (r == 0)
        return 0;
    snprintf(why, sizeof why, "%s", err->msg);
    if (state_path(folder, sizeof folder, &none) < 0)
        snprintf(folder, sizeof folder, "the state folder");
    return err_set(err, r, "%.80s; mend or remove %.90s/" NAME ", or use --no-history", why,
                   folder);
}

static int encode(const char *text, size_t len, struct buf *out)
{
    int r = 0;
    for (size_t i = 0; i < len && r == 0; i++)
        r = text[i] == '\n'   ? buf_str(out, "\\n")
            : text[i] == '\\' ? buf_str(out, "\\\\")
                              : buf_add(out, text + i, 1);
    return r == 0 ? buf_str(out, "\n") : r;
}

static int decode(const char *line, size_t len, struct buf *out)
{
    int r = 0;
    buf_reset(out);
    for (size_t i = 0; i < len && r == 0; i++) {
        const bool pair = line[i] == '\\' && i + 1 < len;
        i += pair;
        r = buf_add(out, pair && line[i] == 'n' ? "\n" : line + i, 1);
    }
    return r;
}

static int read_all(int fd, struct buf *out, struct err *err)
{
    char chunk[16384];
    for (ssize_t n; (n = read(fd, chunk, sizeof chunk)) != 0;) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(err, "read");
        if (buf_add(out, chunk, (size_t)n) < 0)
            return err_set(err, ERR_LIMIT, "the history is too long");
    }
    return 0;
}

/* The newer half, in the place of the file, whole or not at all. */
static int shorten(int dir, const struct buf *all, struct err *err)
{
    const char *middle = memchr(all->data + all->len / 2, '\n', all->len - all->len / 2);
    FD_AUTO fd = -1;
    if (!middle)
        return 0;
    const size_t len = (size_t)(all->data + all->len - ++middle);
    int r = state_file(dir, NAME ".new", O_WRONLY | O_CREAT | O_TRUNC, &fd, err);
    if (r == 0 &&
        (write(fd, middle, len) != (ssize_t)len || renameat(dir, NAME ".new", dir, NAME) < 0))
        r = err_sys(err, "the history");
    return r;
}

int history_load(int dir, void (*block)(void *ctx, const char *text, size_t len), void *ctx,
                 struct err *err)
{
    struct buf all, one;
    FD_AUTO fd = -1;
    int r = state_file(dir, NAME, O_RDONLY, &fd, err);
    if (r < 0)
        return r == ERR_SYS && err->sys_errno == ENOENT ? 0 : about_file(r, err);
    buf_init(&all, 16 * HISTORY_BYTES);
    buf_init(&one, HISTORY_BYTES);
    r = read_all(fd, &all, err);
    for (size_t at = 0; r == 0 && at < all.len;) {
        const char *end = memchr(all.data + at, '\n', all.len - at);
        const size_t len = end ? (size_t)(end - all.data) - at : all.len - at;
        if (len && decode(all.data + at, len, &one) == 0)
            block(ctx, one.data, one.len);
        at += len + 1;
    }
    if (r == 0 && all.len > HISTORY_BYTES)
        r = shorten(dir, &all, err);
    buf_done(&all);
    buf_done(&one);
    return about_file(r, err);
}

int history_add(int dir, const char *text, size_t len, struct err *err)
{
    struct buf line;
    FD_AUTO fd = -1;
    buf_init(&line, HISTORY_BYTES);
    int r = encode(text, len, &line);
    if (r < 0) { /* a block of half a megabyte is not typed again */
        buf_done(&line);
        return 0;
    }
    r = state_file(dir, NAME, O_WRONLY | O_CREAT | O_APPEND, &fd, err);
    if (r == 0 && write(fd, line.data, line.len) != (ssize_t)line.len)
        r = err_sys(err, "the history");
    buf_done(&line);
    return about_file(r, err);
}
