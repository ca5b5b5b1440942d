/* SPDX-License-Identifier: Apache-2.0 */
/* The log and the differences, for people as git prints them and for programs as JSON. */
#include "workspace/inside.h"

#include "base/buf.h"
#include "base/jsonw.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static int not_written(int r, struct err *err)
{
    return r < 0 ? err_set(err, r, "the output could not be written") : 0;
}

static void id_text(const git_oid *id, char out[WORKSPACE_ID])
{
    git_oid_tostr(out, WORKSPACE_ID, id);
}

/* ---- one commit ---- */

static int put_message(const struct workspace_sink *out, const char *message)
{
    int r = 0;
    while (*message && r == 0) {
        const char *end = strchrnul(message, '\n');
        r = out->put(out->ctx, "    ", 4); /* git indents empty lines, too */
        if (r == 0 && end > message)
            r = out->put(out->ctx, message, (size_t)(end - message));
        if (r == 0)
            r = out->put(out->ctx, "\n", 1);
        message = *end ? end + 1 : end;
    }
    return r;
}

static int put_text(git_commit *c, bool first, const struct workspace_sink *out, struct err *err)
{
    char id[WORKSPACE_ID], date[64];
    const git_signature *by = git_commit_author(c);
    const time_t seconds = (time_t)by->when.time;
    struct tm tm;
    id_text(git_commit_id(c), id);
    if (!gmtime_r(&seconds, &tm) || !strftime(date, sizeof date, "%a %b %e %H:%M:%S %Y +0000", &tm))
        return err_set(err, ERR_FORMAT, "a commit without a date");
    for (char *blank = strstr(date, "  "); blank; blank = NULL) /* git has one blank before a 9 */
        memmove(blank, blank + 1, strlen(blank));
    int r = workspace_printf(out, "%scommit %s\nAuthor: %s <%s>\nDate:   %s\n\n", first ? "" : "\n",
                             id, by->name, by->email, date);
    if (r == 0)
        r = put_message(out, git_commit_message(c));
    return not_written(r, err);
}

static int put_json(git_commit *c, bool first, const struct workspace_sink *out, struct err *err)
{
    char id[WORKSPACE_ID], tree[WORKSPACE_ID];
    const git_signature *by = git_commit_author(c);
    struct buf text;
    buf_init(&text, 1 * MIB);
    struct jsonw j = {.out = &text};
    id_text(git_commit_id(c), id);
    id_text(git_commit_tree_id(c), tree);
    jsonw_open(&j, NULL, '{');
    jsonw_string(&j, "id", id);
    jsonw_string(&j, "tree", tree);
    jsonw_string(&j, "author", by->name);
    jsonw_int(&j, "time", by->when.time);
    jsonw_string(&j, "message", git_commit_message(c));
    jsonw_close(&j, '}');
    int r = j.bad;
    if (r == 0 && !first)
        r = out->put(out->ctx, ", ", 2);
    if (r == 0)
        r = out->put(out->ctx, text.data, text.len);
    buf_done(&text);
    return not_written(r, err);
}

/* What C changed; nothing is printed, not even an empty line, where it changed nothing. */
static int put_patch(struct workspace *w, git_commit *c, git_commit *parent,
                     const struct workspace_sink *out, struct err *err)
{
    git_tree *old = NULL, *new = NULL;
    int r = 0;
    if (git_commit_tree(&new, c) < 0 || (parent && git_commit_tree(&old, parent) < 0))
        r = workspace_git_err(err, "the history is broken");
    if (r == 0 && git_tree_entrycount(new) + (old ? git_tree_entrycount(old) : 0) &&
        !(old && git_oid_equal(git_tree_id(old), git_tree_id(new)))) {
        r = not_written(out->put(out->ctx, "\n", 1), err);
        if (r == 0)
            r = workspace_patch(w->repo, old, new, WORKSPACE_PATCH, out, err);
    }
    git_tree_free(old);
    git_tree_free(new);
    return r;
}

int workspace_log(struct workspace *w, uint64_t most, enum workspace_form form,
                  const struct workspace_sink *out, struct err *err)
{
    git_commit *c = NULL;
    int r = workspace_find(w, "head", &c, err);
    if (r == 0 && form == WORKSPACE_JSON)
        r = not_written(out->put(out->ctx, "[", 1), err);
    for (uint64_t i = 0; r == 0 && c && i < most; i++) {
        git_commit *parent = NULL;
        if (git_commit_parentcount(c) && git_commit_parent(&parent, c, 0) < 0)
            r = workspace_git_err(err, "the history is broken");
        if (r == 0)
            r = (form == WORKSPACE_JSON ? put_json : put_text)(c, i == 0, out, err);
        if (r == 0 && form == WORKSPACE_PATCH)
            r = put_patch(w, c, parent, out, err);
        git_commit_free(c);
        c = parent;
    }
    git_commit_free(c);
    if (r == 0 && form == WORKSPACE_JSON)
        r = not_written(out->put(out->ctx, "]\n", 2), err);
    return r;
}

/* ---- two commits ---- */

int workspace_diff(struct workspace *w, const char *from, const char *to, enum workspace_form form,
                   const struct workspace_sink *out, struct err *err)
{
    git_commit *a = NULL, *b = NULL;
    git_tree *old = NULL, *new = NULL;
    int r = workspace_find(w, from, &a, err);
    if (r == 0)
        r = workspace_find(w, to, &b, err);
    if (r == 0 && (git_commit_tree(&old, a) < 0 || git_commit_tree(&new, b) < 0))
        r = workspace_git_err(err, "the history is broken");
    if (r == 0 && form == WORKSPACE_JSON) {
        char ids[2][WORKSPACE_ID];
        id_text(git_commit_id(a), ids[0]);
        id_text(git_commit_id(b), ids[1]);
        r = not_written(workspace_printf(out, "{\"from\": \"%s\", \"to\": \"%s\", \"files\": [",
                                         ids[0], ids[1]),
                        err);
    }
    if (r == 0)
        r = workspace_patch(w->repo, old, new, form, out, err);
    if (r == 0 && form == WORKSPACE_JSON)
        r = not_written(out->put(out->ctx, "]}\n", 3), err);
    git_tree_free(old);
    git_tree_free(new);
    git_commit_free(a);
    git_commit_free(b);
    return r;
}
