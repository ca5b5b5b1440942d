/* SPDX-License-Identifier: Apache-2.0 */
/* The tools that look: one file, one folder, one name. */
#include "tools/inside.h"

#include "base/limits.h"
#include "base/utf8.h"
#include "sys/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_MAX 1000 /* of one answer */

/* How many of the LEN bytes are at most MOST characters, and no part of one. */
static size_t whole(const unsigned char *s, size_t len, uint64_t most)
{
    size_t at = 0;
    while (at < len && most--) {
        uint32_t cp;
        const int n = utf8_decode(s + at, len - at, &cp);
        if (n < 0)
            return at ? at : len; /* cut by us; alone it is shown as it is */
        at += n ? (size_t)n : 1;
    }
    return at;
}

/* As much of BYTES as fits the answer once it is marked: a character that is shown by its name takes more room. *RET: how much that is. */
static json_t *mark_fitting(struct tools_call *c, const struct buf *bytes, uint64_t limit,
                            const char *shown, size_t *ret)
{
    for (;; limit /= 2) {
        c->neutralised = 0;
        *ret = whole((const unsigned char *)bytes->data, bytes->len, limit);
        json_t *text = tools_mark(c, bytes->data, *ret);
        if (!text || limit < 2 || tools_fits(text, shown))
            return text;
        json_decref(text);
    }
}

enum tools_end tools_do_read(struct tools_call *c)
{
    struct tools_place p;
    struct stat st;
    struct buf bytes;
    FD_AUTO fd = -1;
    const uint64_t offset = tools_number(c, "offset", 0), most = c->limits[TOOLS_FILE_READ];
    uint64_t limit = tools_number(c, "limit", most);
    limit = limit < most ? limit : most;
    enum tools_end end = tools_place_open(c, tools_text(c, "path", ""), false, &p);
    if (end == TOOLS_OK)
        end = tools_open_file(c, &p, &fd, &st);
    const uint64_t room =
        limit * LIMIT_CHARACTER < LIMIT_ANSWER_TEXT ? limit * LIMIT_CHARACTER : LIMIT_ANSWER_TEXT;
    buf_init(&bytes, room + 1);
    if (end == TOOLS_OK)
        end = tools_read(c, fd, offset, room, &bytes);
    if (end == TOOLS_OK) {
        size_t n;
        json_t *text = mark_fitting(c, &bytes, limit, p.shown, &n);
        const uint64_t size = (uint64_t)st.st_size, next = offset + n;
        c->answer =
            json_pack("{s:o?, s:s, s:I, s:I, s:o}", "text", text, "source", p.shown, "bytes",
                      (json_int_t)size, "offset", (json_int_t)offset, "next_offset",
                      next < size ? json_integer((json_int_t)next) : json_null());
    }
    buf_done(&bytes);
    tools_place_close(&p);
    return end;
}

static const char *kind(mode_t mode)
{
    return S_ISREG(mode)    ? "file"
           : S_ISDIR(mode)  ? "folder"
           : S_ISLNK(mode)  ? "link"
           : S_ISFIFO(mode) ? "pipe"
                            : "other";
}

enum tools_end tools_do_list(struct tools_call *c)
{
    struct tools_place p;
    int fd = -1;
    enum tools_end end = tools_place_open(c, tools_text(c, "path", "."), false, &p);
    if (end == TOOLS_OK)
        end = tools_open_folder(c, &p, &fd);
    struct dirent **all = NULL;
    const int count = end == TOOLS_OK ? tools_names(fd, &all) : 0;
    json_t *names = json_array();
    bool cut = false;
    if (count < 0)
        end = tools_fail(c, "no memory");
    for (int i = 0; i < count; i++) {
        const char *name = all[i]->d_name;
        struct stat st;
        const bool there = fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
        cut = cut || (there && json_array_size(names) == NAMES_MAX);
        if (there && !cut)
            cut =
                !tools_add(c, names,
                           json_pack("{s:o?, s:s, s:I}", "name", tools_mark(c, name, strlen(name)),
                                     "kind", kind(st.st_mode), "bytes", (json_int_t)st.st_size),
                           p.shown);
        free(all[i]);
    }
    free(all);
    fd_close(fd);
    if (end == TOOLS_OK)
        c->answer = json_pack("{s:O, s:s, s:b}", "names", names, "source", p.shown, "cut", cut);
    json_decref(names);
    tools_place_close(&p);
    return end;
}

enum tools_end tools_do_info(struct tools_call *c)
{
    struct tools_place p;
    struct stat st;
    enum tools_end end = tools_place_open(c, tools_text(c, "path", ""), false, &p);
    if (end == TOOLS_OK && fstatat(p.dir, p.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        end = tools_refuse(c, "there is no %.200s", p.shown);
    if (end == TOOLS_OK) {
        char mode[8];
        snprintf(mode, sizeof mode, "%04o", (unsigned)(st.st_mode & 07777));
        c->answer = json_pack("{s:s, s:s, s:I, s:s, s:I}", "source", p.shown, "kind",
                              kind(st.st_mode), "bytes", (json_int_t)st.st_size, "mode", mode,
                              "modified", (json_int_t)st.st_mtime);
    }
    tools_place_close(&p);
    return end;
}
