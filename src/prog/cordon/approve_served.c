/* SPDX-License-Identifier: Apache-2.0 */
/* `cordon approve served`: what a client of `cordon serve` asks by its tool `approvals`. Whether it may is decided by the
 * policy of that server, and by the gate for each yes.
 *
 * Waits: source_read in take_words; nobody: cordond wrote it before; LIMIT_TOOL_MS; an error */
#include "approve.h"

#include "admin.h"
#include "base/limits.h"
#include "commands.h"
#include "source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WHY_MAX = 200, WORDS = 3 };

struct served {
    struct text text;
    const char *action, *id, *why;
};

static int take_words(struct served *s, struct err *err)
{
    const char *words[WORDS];
    int r = source_read("-", 16 * KIB, LIMIT_TOOL_MS, &s->text, err);
    if (r < 0)
        return r;
    const char *at = s->text.data, *end = at + s->text.len;
    for (int i = 0; i < WORDS; i++) {
        const char *nul = at < end ? memchr(at, 0, (size_t)(end - at)) : NULL;
        if (!nul)
            return err_set(err, ERR_USAGE,
                           "served: an action, an id and a reason, each with a NUL");
        words[i] = at;
        at = nul + 1;
    }
    s->action = words[0];
    s->id = words[1];
    s->why = words[2];
    if (strlen(s->why) >= WHY_MAX)
        return err_set(err, ERR_USAGE, "why: it is longer than %d bytes", WHY_MAX - 1);
    return 0;
}

static void refused(struct jsonw *j, const struct gate_refusal *no)
{
    jsonw_string(j, "status", "denied");
    jsonw_string(j, "rule", no->word);
    jsonw_string(j, "reason", no->reason);
    jsonw_string(j, "hint", no->hint);
    jsonw_open(j, "approvals", '[');
    jsonw_close(j, ']');
}

static void told(struct jsonw *j, const char *action, const struct gate_approval *items,
                 size_t count, bool whole)
{
    jsonw_string(j, "status", "ok");
    jsonw_string(j, "action", action);
    jsonw_open(j, "approvals", '[');
    for (size_t i = 0; i < count; i++)
        approve_json(j, &items[i], whole);
    jsonw_close(j, ']');
}

static int list_or_show(struct admin *admin, const struct served *s, struct jsonw *j,
                        struct arena *mem, struct err *err)
{
    struct gate_approval *items = NULL, one;
    size_t count = 0;
    if (strcmp(s->action, "list") == 0) {
        const int r = gate_approvals_list(admin->gate, true, mem, &items, &count, err);
        if (r == 0)
            told(j, s->action, items, count, false);
        return r;
    }
    const int r = gate_approval_show(admin->gate, s->id, mem, &one, err);
    if (r == 0)
        return err_set(err, ERR_USAGE,
                       "there is no approval '%.40s'; approvals(action=list) has them", s->id);
    if (r == 1)
        told(j, s->action, &one, 1, true);
    return r < 0 ? r : 0;
}

static int answer(struct admin *admin, const struct served *s, struct jsonw *j, struct arena *mem,
                  struct err *err)
{
    struct gate_refusal no;
    struct gate_approval one;
    int r = gate_approval_by_tool(admin->gate, s->id, &admin->self,
                                  strcmp(s->action, "approve") == 0, s->why, &no, err);
    if (r == 0)
        refused(j, &no);
    if (r == 1)
        r = gate_approval_show(admin->gate, s->id, mem, &one, err);
    if (r == 1)
        told(j, s->action, &one, 1, false);
    return r < 0 ? r : 0;
}

static int act(struct admin *admin, const struct served *s, struct buf *out, struct arena *mem,
               struct err *err)
{
    struct jsonw j = {.out = out};
    const bool asks = strcmp(s->action, "list") == 0 || strcmp(s->action, "show") == 0;
    if (!admin->context.policy->approval
             .tool) /* it may have changed since the server was started */
        return err_set(err, ERR_STATE,
                       "the policy lets no client answer by a tool (approval.tool)");
    jsonw_open(&j, NULL, '{');
    int r = asks ? list_or_show(admin, s, &j, mem, err)
            : strcmp(s->action, "approve") == 0 || strcmp(s->action, "deny") == 0
                ? answer(admin, s, &j, mem, err)
                : err_set(err, ERR_USAGE, "served: list, show, approve or deny");
    jsonw_close(&j, '}');
    if (r == 0 && (j.bad || puts(out->data) < 0))
        r = err_set(err, ERR_MEMORY, "the answer is too long");
    return r;
}

int approve_served(const char *policy, struct arena *mem, struct err *err)
{
    struct admin admin;
    struct err closing = ERR_INIT;
    struct served s = {0};
    struct buf out;
    if (!approve_started_by_cordond())
        return err_set(err, ERR_USAGE, "served: started by cordon serve only");
    buf_init(&out, LIMIT_SERVE_ANSWER);
    int r = take_words(&s, err);
    if (r == 0)
        r = admin_open_policy(&admin, policy, err);
    if (r == 0) {
        r = act(&admin, &s, &out, mem, err);
        if (admin_close(&admin, &closing) < 0 && r >= 0)
            r = err_set(err, closing.code, "%s", closing.msg);
    }
    buf_done(&out);
    free(s.text.data);
    return r < 0 ? r : EXIT_DONE;
}
