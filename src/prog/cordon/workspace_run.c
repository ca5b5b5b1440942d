/* SPDX-License-Identifier: Apache-2.0 */
/* The lock for readers is held from the checkout to the end of the run, so nobody takes the lower layer away; the lock to
 * change the workspace only while the commit is made, so that runs of one workspace can go side by side. The first that
 * ends moves the head; another that began with the same files is told that it did (workspace_keep). */
#include "workspace_run.h"

#include "sys/here.h"
#include "sys/state.h"
#include "workspace/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IDS_ROOM 4096

static const char strange_answer[] = "cordon-workspace gave an answer that cordon does not "
                                     "understand; are both of the same version?";

/* Id, a word, a number, an empty piece, and two pieces for each file that was left out, each with a NUL behind it. Who wrote it has read a guest's bytes. */
static bool whole_answer(const struct buf *text)
{
    size_t pieces = 0;
    for (size_t i = 0; i < text->len; i++)
        pieces += text->data[i] == 0;
    return text->len >= 48 && pieces >= 4 && !text->data[text->len - 1] && pieces % 2 == 0 &&
           strlen(text->data) == 40;
}

bool workspace_run_discards(const struct flow_request *req, enum flow_status status, char *why,
                            size_t size)
{
    const enum policy_commit commit = req->context->policy->workspaces.commit;
    if (commit == POLICY_COMMIT_NEVER)
        snprintf(why, size, "the policy commits no run (workspaces.commit)");
    else if (status != FLOW_OK && !(commit == POLICY_COMMIT_ENDED && status == FLOW_ERROR))
        snprintf(why, size, "the run ended with status %s", flow_status_name(status));
    else
        return false;
    return true;
}

int workspace_run_commit(struct workspace_order *o, int files, const char *base,
                         const char *message, struct flow_result *result)
{
    struct flow_snapshot *s = &result->snapshot;
    struct err err = ERR_INIT;
    struct buf text;
    buf_init(&text, 16 * MIB);
    o->verb = "keep";
    o->other = files;
    o->words[0] = result->id;
    o->words[1] = base;
    o->words[2] = message;
    int r = workspace_order_hold(o, HOLD_CHANGE, &err);
    if (r == 0)
        r = workspace_order_run(o, &text, &err);
    workspace_order_release(o);
    if (r == 0 && !whole_answer(&text))
        r = err_set(&err, ERR_FORMAT, strange_answer);
    if (r == 0) {
        memcpy(s->id, text.data, 41);
        s->changed = strcmp(text.data + 41, "new") == 0;
        const char *percent = text.data + 41 + strlen(text.data + 41) + 1;
        const size_t told = (size_t)(percent - text.data) + strlen(percent) + 2;
        s->percent = (unsigned)strtoul(percent, NULL, 10);
        buf_init(&s->left, 16 * MIB);
        if (buf_add(&s->left, text.data + told, text.len - told) < 0)
            s->left.len = 0;
    } else {
        snprintf(s->why, sizeof s->why, "its files were not committed: %.200s", err.msg);
        flow_result_say(result, FLOW_ERROR, "filesystem", "CODE", "WorkspaceError", s->why);
    }
    buf_done(&text);
    return r;
}

/* The order's name is the caller's word: it lives as long as the command line. */
static void keep(void *run, int files, struct flow_result *result)
{
    struct workspace_run *w = run;
    struct flow_snapshot *s = &result->snapshot;
    snprintf(s->workspace, sizeof s->workspace, "%s", w->order.name);
    w->order.stop = w->req->stop;
    char why[120] = "--discard";
    if (w->discard || workspace_run_discards(w->req, result->status, why, sizeof why))
        snprintf(s->why, sizeof s->why, "%s: its files are discarded", why);
    else
        (void)!workspace_run_commit(&w->order, files, w->base, "run", result);
}

static int refuse_binds(const struct jail_spec *spec, struct err *err)
{
    for (size_t i = 0; i < spec->nbinds; i++)
        if (jail_bind_in_workspace(&spec->binds[i]))
            return err_set(
                err, ERR_USAGE,
                "--workspace: nothing else can be shown in /workspace; give %.80s another "
                "place",
                spec->binds[i].source);
    return spec->nbinds < LIMIT_BINDS
               ? 0
               : err_set(err, ERR_USAGE, "--ro and --rw are given too many times");
}

/* The checkout as one more thing that the jail shows: below what the guest writes. The index of its files lies beside it. */
static int add_lower(struct flow_request *req, const char *name, const char *tree,
                     struct arena *mem, struct err *err)
{
    struct jail_spec *spec = &req->spec;
    char state[STATE_PATH_MAX], path[STATE_PATH_MAX + 256], folder[WORKSPACE_NAME_MAX + 1];
    int r = state_path(state, sizeof state, err);
    if (r < 0)
        return r;
    workspace_base_part(name, folder);
    snprintf(path, sizeof path, "%s/workspaces/%s/trees/%s", state, folder, tree);
    struct jail_bind *binds = arena_alloc(mem, (spec->nbinds + 1) * sizeof *binds);
    const char *source = arena_strdup(mem, path);
    snprintf(path, sizeof path, "%s/workspaces/%s", state, folder);
    req->index_folder = arena_strdup(mem, path);
    if (!binds || !source || !req->index_folder)
        return err_set(err, ERR_MEMORY, "no memory");
    if (spec->nbinds)
        memcpy(binds, spec->binds, spec->nbinds * sizeof *binds);
    binds[spec->nbinds++] = (struct jail_bind){
        .source = source, .dest = "/workspace", .moved = true, .lower = true, .links = true};
    spec->binds = binds;
    return 0;
}

int workspace_run_begin(struct workspace_run *w, const struct jail_options *o,
                        struct flow_request *req, struct arena *mem, struct err *err)
{
    const char *name = o->workspace;
    struct buf text;
    char tree[41] = "";
    *w = (struct workspace_run){.order = WORKSPACE_ORDER_INIT, .req = req, .discard = o->discard};
    w->order.lock_ms = LIMIT_WORKSPACE_LOCK_MS;
    w->order.policy = req->context->policy;
    if (!name)
        return o->discard ? err_set(err, ERR_USAGE, "--discard is for a run with --workspace") : 0;
    if (req->spec.mode != JAIL_FULL)
        return err_set(err, ERR_USAGE,
                       "--workspace needs --mode full: mode landlock has no mounts");
    buf_init(&text, IDS_ROOM);
    int r = refuse_binds(&req->spec, err);
    if (r == 0 && !*name)
        r = err_set(err, ERR_USAGE, "--workspace needs a name; see cordon workspace list");
    if (r == 0) {
        r = workspace_order_open(&w->order, "checkout", name, HOLD_READ, err);
        w->open = true;
    }
    if (r == 0)
        r = workspace_order_hold(&w->order, HOLD_CHANGE, err);
    const char *boot = here_boot();
    w->order.words[0] = boot ? boot : "";
    if (r == 0)
        r = workspace_order_run(&w->order, &text, err);
    if (w->open && w->order.lock >= 0)
        workspace_order_release(&w->order);
    if (r == 0 && sscanf(text.data ? text.data : "", "%40[0-9a-f] %40[0-9a-f]", w->base, tree) != 2)
        r = err_set(err, ERR_FORMAT, strange_answer);
    if (r == 0)
        r = add_lower(req, name, tree, mem, err);
    req->spec.keep_files = true;
    req->keep = keep;
    req->keep_ctx = w;
    buf_done(&text);
    return r;
}

void workspace_run_done(struct workspace_run *w)
{
    if (w->open)
        workspace_order_done(&w->order);
    w->open = false;
}
