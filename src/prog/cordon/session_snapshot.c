/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots of a session's workspace. What the session has and no commit has yet is committed first, so that a snapshot is
 * of what the client sees, and nothing is lost by a restore; after a restore the session is lent once more, which gives it
 * the files of the new head. The store is read by cordon-workspace. */
#include "base/jsonw.h"
#include "base/limits.h"
#include "commands.h"
#include "session_request.h"
#include "session_workspace.h"
#include "workspace_note.h"
#include "workspace_order.h"

#include <string.h>

#define COMMITS "100" /* that one list tells */

static void commit_all(void *request, int files, uint64_t disk)
{
    struct session_request *q = request;
    (void)files;
    (void)disk;
    q->call->wrote = true;
}

/* False: there is no workspace, or the session was not lent. */
static bool begin(struct session_request *q, bool commits)
{
    if (!session_request_lend(q, commits ? commit_all : NULL))
        return false;
    if (q->status == 0 && !q->workspace[0])
        q->status = err_set(&q->err, ERR_USAGE,
                            "this session is in no workspace, so there are no snapshots; make one "
                            "with session(action=new, workspace=...)");
    return q->status == 0;
}

/* What cordon-workspace printed, without its line end. */
static int order(struct session_request *q, const char *verb, const char *form, const char *first,
                 const char *second, struct buf *out)
{
    struct workspace_order o = WORKSPACE_ORDER_INIT;
    struct flow_context *context = &q->h->flow;
    const bool changes = strcmp(verb, "snapshot") == 0 || strcmp(verb, "restore") == 0;
    o.form = form;
    int r =
        workspace_order_open(&o, verb, q->workspace, changes ? HOLD_CHANGE : HOLD_READ, &q->err);
    o.words[0] = first;
    o.words[1] = second;
    o.policy = changes ? context->policy : NULL;
    o.looks = !changes;
    if (o.looks) /* files that a guest wrote to be compared, or a history of any length */
        o.most_ms = LIMIT_TOOL_MS;
    o.cut = strcmp(verb, "diff") == 0 && !*form; /* a patch: its beginning is shown */
    if (r == 0)
        r = workspace_order_run(&o, out, &q->err);
    if (changes) {
        struct err unsaid = ERR_INIT;
        const int noted = workspace_note(context, &o, r == 0 ? EXIT_DONE : EXIT_FAILED, &unsaid);
        if (noted < 0 && r == 0) {
            q->err = unsaid;
            r = noted;
        }
    }
    workspace_order_done(&o);
    while (r == 0 && out->len && out->data[out->len - 1] == '\n')
        out->len--;
    return q->status = r;
}

void session_snapshot_create(struct session_request *q)
{
    if (begin(q, true))
        (void)!order(q, "snapshot", "j", q->words[1], q->words[0], &q->answer);
}

void session_snapshot_list(struct session_request *q)
{
    struct buf log;
    struct jsonw j = {.out = &q->answer};
    buf_init(&log, 4 * MIB);
    if (begin(q, false) && order(q, "log", "j", COMMITS, "", &log) == 0) {
        jsonw_open(&j, NULL, '{');
        jsonw_string(&j, "workspace", q->workspace);
        jsonw_raw(&j, "snapshots", log.data, log.len);
        jsonw_close(&j, '}');
    }
    buf_done(&log);
    if (j.bad)
        q->status = err_set(&q->err, j.bad, "no memory");
}

void session_snapshot_diff(struct session_request *q)
{
    struct buf files, patch;
    struct jsonw j = {.out = &q->answer};
    const char *from = q->words[0][0] ? q->words[0] : "head~1",
               *to = q->words[1][0] ? q->words[1] : "head";
    buf_init(&files, 4 * MIB);
    buf_init(&patch, 16 * MIB);
    if (begin(q, true) && order(q, "diff", "j", from, to, &files) == 0 &&
        order(q, "diff", "", from, to, &patch) == 0) {
        const size_t shown = patch.len < LIMIT_VALUE ? patch.len : LIMIT_VALUE;
        jsonw_open(&j, NULL, '{');
        jsonw_string(&j, "workspace", q->workspace);
        jsonw_raw(&j, "changes", files.data, files.len);
        jsonw_bytes(&j, "patch", patch.data ? patch.data : "", shown);
        jsonw_bool(&j, "cut", shown < patch.len);
        jsonw_close(&j, '}');
    }
    buf_done(&files);
    buf_done(&patch);
    if (j.bad)
        q->status = err_set(&q->err, j.bad, "no memory");
}

void session_snapshot_restore(struct session_request *q)
{
    if (!begin(q, true) || order(q, "restore", "j", "", q->words[0], &q->answer) < 0)
        return;
    (void)session_request_lend(q, NULL); /* where it is not lent now, its next call follows */
}
