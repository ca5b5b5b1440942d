/* SPDX-License-Identifier: Apache-2.0 */
/* The tools that search. A regular expression is the guest's: PCRE2 counts its steps, and a search that needs more than those is
 * refused by name rather than waited for. */
#include "tools/inside.h"

#include "base/limits.h"
#include "sys/fd.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fcntl.h>
#include <fnmatch.h>
#include <pcre2.h>
#include <stdio.h>
#include <string.h>

#define NAMES_MAX      100000 /* that one search looks at */
#define FOUND_MAX      1000   /* names of one answer */
#define FILE_MAX       (8 * MIB)
#define LINE_MAX_SHOWN 400     /* bytes of a line that are shown */
#define STEPS_MAX      1000000 /* of one match */

/* ---- names ---- */

struct finding {
    struct tools_call *c;
    const char *pattern, *below;
    json_t *found;
    bool cut;
};

static bool look_at_name(void *ctx, int dir, const char *name, const char *shown,
                         const struct stat *st)
{
    struct finding *f = ctx;
    (void)dir;
    if (fnmatch(f->pattern, name, 0) != 0)
        return true;
    f->cut =
        json_array_size(f->found) == FOUND_MAX ||
        !tools_add(f->c, f->found,
                   json_pack("{s:o?, s:s, s:I}", "path", tools_mark(f->c, shown, strlen(shown)),
                             "kind", S_ISDIR(st->st_mode) ? "folder" : "file", "bytes",
                             (json_int_t)st->st_size),
                   f->below);
    return !f->cut;
}

enum tools_end tools_do_find(struct tools_call *c)
{
    struct finding f = {.c = c, .pattern = tools_text(c, "pattern", "*"), .found = json_array()};
    struct tools_walk w = {.ctx = &f, .visit = look_at_name, .left = NAMES_MAX};
    struct tools_place p;
    FD_AUTO fd = -1;
    enum tools_end end = tools_place_open(c, tools_text(c, "path", "."), false, &p);
    if (end == TOOLS_OK)
        end = tools_open_folder(c, &p, &fd);
    if (end == TOOLS_OK) {
        f.below = p.shown;
        tools_walk(&w, fd, p.shown);
        c->answer = json_pack("{s:O, s:s, s:b}", "found", f.found, "source", p.shown, "cut",
                              f.cut || w.cut || w.shut);
    }
    json_decref(f.found);
    tools_place_close(&p);
    return end;
}

/* ---- lines ---- */

struct grepping {
    struct tools_call *c;
    pcre2_code *code;
    pcre2_match_data *data;
    pcre2_match_context *bounds;
    json_t *matches;
    const char *below;
    uint64_t files, skipped; /* read; too large, or not to be opened */
    enum tools_end end;
    bool cut;
};

static bool add_match(struct grepping *g, const char *shown, json_int_t line, const char *text,
                      size_t len)
{
    const size_t most = len < LINE_MAX_SHOWN ? len : LINE_MAX_SHOWN;
    g->cut =
        json_array_size(g->matches) >= g->c->limits[TOOLS_GREP_MATCHES] ||
        !tools_add(g->c, g->matches,
                   json_pack("{s:o?, s:I, s:o?}", "path", tools_mark(g->c, shown, strlen(shown)),
                             "line", line, "text", tools_mark(g->c, text, most)),
                   g->below);
    return !g->cut;
}

/* False: enough, or the expression is refused. */
static bool grep_lines(struct grepping *g, const char *shown, const char *text, size_t len)
{
    json_int_t line = 1;
    for (size_t at = 0; at < len; line++) {
        const char *end = memchr(text + at, '\n', len - at);
        const size_t n = end ? (size_t)(end - text) - at : len - at;
        const int r = pcre2_match(g->code, (PCRE2_SPTR)text + at, n, 0, 0, g->data, g->bounds);
        if (r == PCRE2_ERROR_MATCHLIMIT || r == PCRE2_ERROR_DEPTHLIMIT ||
            r == PCRE2_ERROR_HEAPLIMIT) {
            g->end = tools_refuse(g->c,
                                  "the pattern needs more than %d steps in line %lld of "
                                  "%.200s: write it without nested repeats",
                                  STEPS_MAX, (long long)line, shown);
            return false;
        }
        if (r >= 0 && !add_match(g, shown, line, text + at, n))
            return false;
        at += n + 1;
    }
    return true;
}

static bool grep_file(void *ctx, int dir, const char *name, const char *shown,
                      const struct stat *st)
{
    struct grepping *g = ctx;
    struct buf text;
    struct stat now;
    if (!S_ISREG(st->st_mode))
        return true;
    FD_AUTO fd = tools_open_beneath(dir, name, O_RDONLY);
    if (fd < 0 || fstat(fd, &now) < 0 || !S_ISREG(now.st_mode) || now.st_size > (off_t)FILE_MAX) {
        g->skipped++;
        return true;
    }
    buf_init(&text, FILE_MAX + 1);
    g->end = tools_read(g->c, fd, 0, FILE_MAX, &text);
    bool more = g->end == TOOLS_OK;
    g->files++;
    if (more && text.len)
        more = grep_lines(g, shown, text.data, text.len);
    buf_done(&text);
    return more;
}

static enum tools_end compile(struct grepping *g)
{
    const char *pattern = tools_text(g->c, "pattern", "");
    const bool blind = json_is_true(json_object_get(g->c->args, "ignore_case"));
    PCRE2_UCHAR why[128];
    PCRE2_SIZE at;
    int code;
    g->code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
                            PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C |
                                (blind ? PCRE2_CASELESS : 0),
                            &code, &at, NULL);
    if (!g->code) {
        pcre2_get_error_message(code, why, sizeof why);
        return tools_refuse(g->c, "the pattern is wrong at its character %zu: %s", (size_t)at,
                            (const char *)why);
    }
    g->data = pcre2_match_data_create_from_pattern(g->code, NULL);
    g->bounds = pcre2_match_context_create(NULL);
    if (!g->data || !g->bounds)
        return tools_fail(g->c, "no memory");
    pcre2_set_match_limit(g->bounds, STEPS_MAX);
    pcre2_set_depth_limit(g->bounds, STEPS_MAX);
    pcre2_set_heap_limit(g->bounds, 32 * 1024); /* KiB */
    return TOOLS_OK;
}

/* PATH may be a file, too. */
static enum tools_end grep_place(struct grepping *g, struct tools_place *p)
{
    struct tools_walk w = {.ctx = g, .visit = grep_file, .left = NAMES_MAX};
    struct stat st;
    FD_AUTO fd = -1;
    g->below = p->shown;
    if (fstatat(p->dir, p->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return tools_refuse(g->c, "there is no %.200s", p->shown);
    if (S_ISDIR(st.st_mode)) {
        enum tools_end end = tools_open_folder(g->c, p, &fd);
        if (end != TOOLS_OK)
            return end;
        tools_walk(&w, fd, p->shown);
    } else {
        enum tools_end end = tools_open_file(g->c, p, &fd, &st);
        if (end != TOOLS_OK)
            return end;
        (void)grep_file(g, p->dir, p->name, p->shown, &st);
    }
    g->cut = g->cut || w.cut;
    g->skipped += w.shut;
    return g->end;
}

enum tools_end tools_do_grep(struct tools_call *c)
{
    struct grepping g = {.c = c, .matches = json_array(), .end = TOOLS_OK};
    struct tools_place p;
    enum tools_end end = compile(&g);
    if (end == TOOLS_OK)
        end = tools_place_open(c, tools_text(c, "path", "."), false, &p);
    if (g.code && end == TOOLS_OK) {
        end = grep_place(&g, &p);
        if (end == TOOLS_OK)
            c->answer = json_pack("{s:O, s:s, s:I, s:I, s:b}", "matches", g.matches, "source",
                                  p.shown, "files", (json_int_t)g.files, "skipped",
                                  (json_int_t)g.skipped, "cut", g.cut);
        tools_place_close(&p);
    }
    pcre2_match_context_free(g.bounds);
    pcre2_match_data_free(g.data);
    pcre2_code_free(g.code);
    json_decref(g.matches);
    return end;
}
