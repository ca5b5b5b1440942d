/* SPDX-License-Identifier: Apache-2.0 */
/* The tool for questions that wait for a person, for a client that reviews what others ask. It is there only where the policy
 * of this server has approval.tool. Whose question it may say yes to is the gate's to say: never one that came through this
 * server, nor one of a process tree that this server belongs to. */
#include "serve/front/inside.h"

#include <stdio.h>
#include <string.h>

enum { ACTION, ID, WHY };

static bool is(const struct serve_value *v, const char *word)
{
    return strcmp(v->text, word) == 0;
}

static void approvals(struct serve_front *f, const struct serve_reply *to, const char *token,
                      const struct serve_value *v)
{
    struct serve_request q = {.verb = SERVE_APPROVALS};
    struct buf body;
    const bool lists = is(&v[ACTION], "list"), shows = is(&v[ACTION], "show");
    int r = 0;
    if (lists && v[ID].given) {
        serve_reply_bad_argument(f, to, "id: list takes none");
        return;
    }
    if (!lists && !v[ID].given) {
        serve_reply_bad_argument(f, to, "id is missing: approvals(action=list) has them");
        return;
    }
    if ((lists || shows) == v[WHY].given) {
        serve_reply_bad_argument(f, to,
                                 v[WHY].given ? "why: list and show take none"
                                              : "why is missing: it is kept with the answer");
        return;
    }
    buf_init(&body, SERVE_WORDS);
    for (int i = ACTION; i <= WHY && r == 0; i++) {
        r = v[i].given ? buf_add(&body, v[i].text, v[i].len) : 0;
        r = r < 0 ? r : buf_add(&body, "", 1);
    }
    q.body = body.len;
    if (r < 0)
        serve_reply_bad_argument(f, to, "it is longer than this tool takes");
    else
        serve_calls_start(f, to, token, &q, body.data, "");
    buf_done(&body);
}

const struct serve_tool serve_tools_approvals = {
    .name = "approvals",
    .title = "Approvals",
    .description =
        "Questions of other clients that wait for a person: list tells them, show has the code and "
        "the arguments of one, approve and deny answer it. A yes is for exactly that code, once. "
        "Whoever asked cannot say yes: a question that came through this server, or from the "
        "program that started it, is answered elsewhere.",
    .args = {{"action", SERVE_ARG_WORD, true, "list show approve deny", "what to do"},
             {"id", SERVE_ARG_NAME, false, NULL, "of show, approve and deny: which question"},
             {"why", SERVE_ARG_NAME, false, NULL,
              "of approve and deny: the reason; it is kept with the answer"}},
    .output = {{"status", "string", true, "ok, denied, refused, error"},
               {"reason", "string", false, "where it is not ok: why"},
               {"action", "string", false, "what was done"},
               {"approvals", "array", false,
                "id, state, client, tool, because, asked, expires; of show with arguments and "
                "code"}},
    .destructive = true,
    .call = approvals};

/* ---- the answer ---- */

/* What somebody else wrote: nothing in it acts on the reader. */
static void add_shown(struct serve_text *t, const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    if (!json_is_string(v))
        return;
    serve_text_add(t, "%s:\n", key);
    if (!t->bad)
        t->bad = serve_approval_visible(&t->out, json_string_value(v), json_string_length(v));
    serve_text_add(t, "\n");
}

bool serve_render_approvals(struct serve_text *t, const json_t *o)
{
    const json_t *all = json_object_get(o, "approvals"), *v;
    size_t i;
    if (!json_is_array(all))
        return false;
    if (strcmp(serve_member_text(o, "status"), "ok") != 0) {
        serve_text_add(t, "status: %s\nreason: %s\n", serve_member_text(o, "status"),
                       serve_member_text(o, "reason"));
        if (*serve_member_text(o, "hint"))
            serve_text_add(t, "instead: %s\n", serve_member_text(o, "hint"));
        return true;
    }
    serve_text_add(t, "%s: %s\n", serve_member_text(o, "action"),
                   json_array_size(all) ? "done" : "nothing waits for an answer");
    json_array_foreach(all, i, v)
    {
        serve_text_add(t, "- %s %s: %s of %s, %s\n", serve_member_text(v, "id"),
                       serve_member_text(v, "state"), serve_member_text(v, "tool"),
                       serve_member_text(v, "client"), serve_member_text(v, "because"));
        add_shown(t, v, "arguments");
        add_shown(t, v, "code");
    }
    return true;
}
