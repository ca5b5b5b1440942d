/* SPDX-License-Identifier: Apache-2.0 */
/* What changed between two states, as git prints it: the options below are those that git has by default, or that the
 * store's configuration gives it (store.c). Contents of files are hostile here: they are compared and passed on. To compare lines takes many
 * times the memory of a file, so a large one is compared as bytes, and whoever asked is told. */
#include "workspace/inside.h"

#include "base/buf.h"
#include "base/jsonw.h"

#include <stdio.h>
#include <string.h>

struct printing {
    const struct workspace_sink *out;
    int bad;
};

static void put(struct printing *p, const void *data, size_t len)
{
    if (p->bad == 0 && len)
        p->bad = p->out->put(p->out->ctx, data, len);
}

/* Git ends the name of a file with a tab where it has a blank; libgit2 does not. */
static void put_header(struct printing *p, const char *text, size_t len)
{
    while (len) {
        const char *end = memchr(text, '\n', len);
        const size_t n = end ? (size_t)(end - text) : len;
        const bool name = n > 4 && (memcmp(text, "--- ", 4) == 0 || memcmp(text, "+++ ", 4) == 0);
        put(p, text, n);
        if (name && memchr(text + 4, ' ', n - 4))
            put(p, "\t", 1);
        put(p, "\n", end ? 1 : 0);
        text += n + (end ? 1 : 0);
        len -= n + (end ? 1 : 0);
    }
}

/* Known once both were looked at. */
static bool is_large(const git_diff_delta *d)
{
    return d->old_file.size > LIMIT_WORKSPACE_DIFF || d->new_file.size > LIMIT_WORKSPACE_DIFF;
}

static void tell_large(const struct printing *p, const git_diff_delta *d)
{
    if (p->out->large && is_large(d))
        p->out->large(p->out->ctx,
                      d->status == GIT_DELTA_DELETED ? d->old_file.path : d->new_file.path);
}

static int put_line(const git_diff_delta *delta, const git_diff_hunk *hunk,
                    const git_diff_line *line, void *printing)
{
    struct printing *p = printing;
    (void)hunk;
    if (line->origin == GIT_DIFF_LINE_BINARY)
        tell_large(p, delta);
    if (line->origin == GIT_DIFF_LINE_CONTEXT || line->origin == GIT_DIFF_LINE_ADDITION ||
        line->origin == GIT_DIFF_LINE_DELETION)
        put(p, &line->origin, 1);
    if (line->origin == GIT_DIFF_LINE_FILE_HDR)
        put_header(p, line->content, line->content_len);
    else
        put(p, line->content, line->content_len);
    return p->bad;
}

/* Git quotes a name with such a byte: in C's manner, bytes beyond ASCII in octal. */
static bool quoted(const char *name)
{
    for (const unsigned char *p = (const unsigned char *)name; *p; p++)
        if (*p < 0x20 || *p >= 0x7f || *p == '"' || *p == '\\')
            return true;
    return false;
}

static void put_quoted(struct printing *p, const char *name)
{
    static const char letters[] = "abtnvfr"; /* 7 to 13 */
    if (!quoted(name)) {
        put(p, name, strlen(name));
        return;
    }
    put(p, "\"", 1);
    for (const unsigned char *c = (const unsigned char *)name; *c; c++) {
        const char escape[] = {'\\', (char)('0' + (*c >> 6)), (char)('0' + (*c >> 3 & 7)),
                               (char)('0' + (*c & 7))};
        if (*c >= 7 && *c <= 13)
            put(p, (const char[]){'\\', letters[*c - 7]}, 2);
        else if (*c == '"' || *c == '\\')
            put(p, (const char[]){'\\', (char)*c}, 2);
        else if (*c < 0x20 || *c >= 0x7f)
            put(p, escape, sizeof escape);
        else
            put(p, c, 1);
    }
    put(p, "\"", 1);
}

/* One file that changed. What became a link, or was one, comes as two differences: here it is one. */
struct change {
    const char *path;
    char status; /* as git's letter */
    unsigned old_mode, new_mode;
    size_t added, deleted;
    bool binary, large;
};

static void put_counts(struct printing *p, const struct change *c)
{
    if (p->bad == 0 && c->binary)
        p->bad = workspace_printf(p->out, "-\t-\t");
    else if (p->bad == 0)
        p->bad = workspace_printf(p->out, "%zu\t%zu\t", c->added, c->deleted);
    put_quoted(p, c->path ? c->path : "");
    put(p, "\n", 1);
}

static void put_mode(struct jsonw *j, const char *key, unsigned mode)
{
    char text[16];
    snprintf(text, sizeof text, "%06o", mode);
    jsonw_string(j, key, mode ? text : NULL);
}

static void put_object(struct printing *p, const struct change *c, bool first)
{
    const char status[] = {c->status, 0};
    struct buf text;
    buf_init(&text, 64 * KIB);
    struct jsonw j = {.out = &text};
    jsonw_open(&j, NULL, '{');
    jsonw_string(&j, "path", c->path);
    jsonw_string(&j, "status", status);
    put_mode(&j, "old_mode", c->old_mode);
    put_mode(&j, "new_mode", c->new_mode);
    jsonw_bool(&j, "binary", c->binary);
    jsonw_bool(&j, "large", c->large);
    jsonw_int(&j, "added", (int64_t)c->added);
    jsonw_int(&j, "deleted", (int64_t)c->deleted);
    jsonw_close(&j, '}');
    if (j.bad)
        p->bad = j.bad;
    if (!first)
        put(p, ", ", 2);
    put(p, text.data, text.len);
    buf_done(&text);
}

/* The difference number I, put on top of what RET says of the same path. */
static int look(git_diff *diff, size_t i, struct change *ret, struct err *err)
{
    git_patch *patch = NULL;
    size_t added = 0, deleted = 0;
    if (git_patch_from_diff(&patch, diff, i) < 0 ||
        (patch && git_patch_line_stats(NULL, &added, &deleted, patch) < 0)) {
        git_patch_free(patch);
        return workspace_git_err(err, "two files cannot be compared");
    }
    const git_diff_delta *d = git_diff_get_delta(diff, i); /* knows by now whether it is binary */
    const bool binary = patch ? git_patch_get_delta(patch)->flags & GIT_DIFF_FLAG_BINARY
                              : d->flags & GIT_DIFF_FLAG_BINARY;
    ret->path = d->status == GIT_DELTA_DELETED ? d->old_file.path : d->new_file.path;
    ret->status = ret->status ? 'T' : git_diff_status_char(d->status);
    if (d->status != GIT_DELTA_ADDED)
        ret->old_mode = d->old_file.mode;
    if (d->status != GIT_DELTA_DELETED)
        ret->new_mode = d->new_file.mode;
    ret->binary |= binary;
    ret->large |= binary && is_large(patch ? git_patch_get_delta(patch) : d);
    ret->added = ret->binary ? 0 : ret->added + added;
    ret->deleted = ret->binary ? 0 : ret->deleted + deleted;
    git_patch_free(patch);
    return 0;
}

static bool same_path(git_diff *diff, size_t i)
{
    const git_diff_delta *a = git_diff_get_delta(diff, i), *b = git_diff_get_delta(diff, i + 1);
    return b && a->status == GIT_DELTA_DELETED && b->status == GIT_DELTA_ADDED &&
           strcmp(a->old_file.path, b->new_file.path) == 0;
}

static int put_files(git_diff *diff, enum workspace_form form, struct printing *p, struct err *err)
{
    const size_t count = git_diff_num_deltas(diff);
    int r = 0;
    for (size_t i = 0; i < count && p->bad == 0 && r == 0; i++) {
        struct change c = {0};
        const bool first = i == 0, two = i + 1 < count && same_path(diff, i);
        r = look(diff, i, &c, err);
        if (r == 0 && two)
            r = look(diff, ++i, &c, err);
        if (r == 0 && c.large && p->out->large)
            p->out->large(p->out->ctx, c.path);
        if (r == 0 && form == WORKSPACE_STAT)
            put_counts(p, &c);
        else if (r == 0)
            put_object(p, &c, first);
    }
    return r;
}

int workspace_patch(git_repository *repo, git_tree *old, git_tree *new, enum workspace_form form,
                    const struct workspace_sink *out, struct err *err)
{
    struct printing p = {.out = out};
    git_diff_options options = GIT_DIFF_OPTIONS_INIT;
    git_diff *diff = NULL;
    options.flags = GIT_DIFF_INDENT_HEURISTIC;
    options.id_abbrev = 12;
    options.max_size = LIMIT_WORKSPACE_DIFF;
    int r = 0;
    if (git_diff_tree_to_tree(&diff, repo, old, new, &options) < 0)
        return workspace_git_err(err, "two states cannot be compared");
    if (form == WORKSPACE_STAT || form == WORKSPACE_JSON)
        r = put_files(diff, form, &p, err);
    else if (git_diff_print(diff, GIT_DIFF_FORMAT_PATCH, put_line, &p) < 0 && p.bad == 0)
        r = workspace_git_err(err, "two states cannot be compared");
    git_diff_free(diff);
    if (r == 0 && p.bad)
        r = err_set(err, p.bad, "the output could not be written");
    return r;
}
