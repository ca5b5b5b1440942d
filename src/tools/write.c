/* SPDX-License-Identifier: Apache-2.0 */
/* The tools that change a file. The new text is written beside it and then takes its name: killed at any instant, the file is
 * the old one or the new one, and a link that stands in its place is replaced, never followed.
 *
 * Waits: fd_write_all in replace; memory: the run's files are; at once; an error */
#include "tools/inside.h"

#include "base/limits.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define FILE_MAX (8 * MIB) /* that Edit works on */

static enum tools_end replace(struct tools_call *c, const struct tools_place *p, const char *text,
                              size_t len, mode_t mode)
{
    char beside[48];
    uint64_t number;
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        return tools_fail(c, "no random number");
    snprintf(beside, sizeof beside, ".cordon-%016llx", (unsigned long long)number);
    FD_AUTO fd =
        openat(p->dir, beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode & 0777);
    if (fd < 0)
        return tools_refuse(c, "%.200s: %s", p->shown, strerror(errno));
    if (fd_write_all(fd, text, len) == 0 && renameat(p->dir, beside, p->dir, p->name) == 0)
        return TOOLS_OK;
    const int why = errno;
    (void)!unlinkat(p->dir, beside, 0);
    return tools_refuse(c, "%.200s: %s", p->shown,
                        why == ENOSPC ? "the quota of the run is used up" : strerror(why));
}

/* The mode that the file has, or a new one's; refused where something else has the name. */
static enum tools_end look(struct tools_call *c, const struct tools_place *p, mode_t *ret)
{
    struct stat st;
    *ret = 0644;
    if (strcmp(p->name, ".") == 0)
        return tools_refuse(c, "%.200s is a folder", p->shown);
    if (fstatat(p->dir, p->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? TOOLS_OK
                               : tools_refuse(c, "%.200s: %s", p->shown, strerror(errno));
    if (S_ISLNK(st.st_mode))
        return tools_refuse(
            c, "Path not in allowed locations: %.200s is a link; allowed: /workspace, /tmp",
            p->shown);
    if (!S_ISREG(st.st_mode))
        return tools_refuse(c, "%.200s is no regular file", p->shown);
    *ret = st.st_mode;
    return TOOLS_OK;
}

static json_t *written(const struct tools_place *p, size_t bytes)
{
    return json_pack("{s:s, s:I}", "source", p->shown, "bytes", (json_int_t)bytes);
}

/* Whether the policy's rules let a file of this name and text be saved. RET: what an answer warns of, or NULL. */
static enum tools_end keeps_rules(struct tools_call *c, const struct tools_place *p,
                                  const char *text, size_t len, const char **ret)
{
    static const char root[] = "/workspace";
    *ret = NULL;
    if (strncmp(p->shown, root, sizeof root - 1) != 0)
        return TOOLS_OK;
    const struct naming_rule *broken =
        naming_broken(c->naming, c->nnaming, p->shown + sizeof root - 1, text, len);
    if (!broken)
        return TOOLS_OK;
    if (!c->limits[TOOLS_NAMING_WARNS])
        return tools_refuse(c, "%.200s: %.180s", p->shown, broken->message);
    *ret = broken->message;
    return TOOLS_OK;
}

static enum tools_end say_written(struct tools_call *c, const struct tools_place *p, size_t bytes,
                                  const char *warning)
{
    c->answer = written(p, bytes);
    return !c->answer ||
                   (warning && json_object_set_new(c->answer, "warning", json_string(warning)) < 0)
               ? tools_fail(c, "no memory")
               : TOOLS_OK;
}

enum tools_end tools_write(struct tools_call *c, const char *path, const char *text, size_t len)
{
    struct tools_place p;
    mode_t mode = 0;
    const char *warning = NULL;
    enum tools_end end = tools_place_open(c, path, true, &p);
    if (end == TOOLS_OK)
        end = look(c, &p, &mode);
    if (end == TOOLS_OK)
        end = keeps_rules(c, &p, text, len, &warning);
    if (end == TOOLS_OK)
        end = replace(c, &p, text, len, mode);
    if (end == TOOLS_OK)
        end = say_written(c, &p, len, warning);
    tools_place_close(&p);
    return end;
}

enum tools_end tools_do_write(struct tools_call *c)
{
    const json_t *text = json_object_get(c->args, "text");
    return tools_write(c, tools_text(c, "path", ""), json_string_value(text),
                       json_string_length(text));
}

static enum tools_end edited(struct tools_call *c, const struct tools_place *p,
                             const struct buf *now, struct buf *ret)
{
    const json_t *old = json_object_get(c->args, "old"), *new = json_object_get(c->args, "new");
    const size_t n = json_string_length(old);
    const char *first = NULL, *end = now->data + now->len;
    size_t times = 0;
    if (n == 0)
        return tools_refuse(c, "'old' is empty: name the text that is to be replaced");
    for (const char *at = now->data;
         now->len && (at = memmem(at, (size_t)(end - at), json_string_value(old), n)); at++) {
        first = first ? first : at;
        times++;
    }
    if (times != 1)
        return tools_refuse(c, "'old' occurs %zu times in %.200s: %s", times, p->shown,
                            times ? "name more of what stands around it"
                                  : "read the file, and name it exactly");
    if (buf_add(ret, now->data, (size_t)(first - now->data)) < 0 ||
        buf_add(ret, json_string_value(new), json_string_length(new)) < 0 ||
        buf_add(ret, first + n, (size_t)(end - first) - n) < 0)
        return tools_fail(c, "no memory");
    return TOOLS_OK;
}

enum tools_end tools_do_edit(struct tools_call *c)
{
    struct tools_place p;
    struct stat st;
    struct buf now, then;
    buf_init(&now, FILE_MAX + 1);
    buf_init(&then, FILE_MAX + LIMIT_CALL);
    enum tools_end end = tools_read_whole(c, tools_text(c, "path", ""), FILE_MAX, &p, &st, &now);
    if (end == TOOLS_OK)
        end = edited(c, &p, &now, &then);
    const char *warning = NULL;
    if (end == TOOLS_OK)
        end = keeps_rules(c, &p, then.data ? then.data : "", then.len, &warning);
    if (end == TOOLS_OK)
        end = replace(c, &p, then.data ? then.data : "", then.len, st.st_mode);
    if (end == TOOLS_OK)
        end = say_written(c, &p, then.len, warning);
    buf_done(&now);
    buf_done(&then);
    tools_place_close(&p);
    return end;
}
