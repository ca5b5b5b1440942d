/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of sessions is on record as what they run is: opened, forked, closed, ended by a call. What the
 * holder does by itself (a session that was idle for too long, that did not rest, whose process died) it leaves in a file
 * (pool/ended.h), and the next client of any session records it: the holder never writes to the audit. */
#include "base/languages.h"
#include "pool/ended.h"
#include "pool/socket.h"
#include "result.h"
#include "session.h"
#include "sys/here.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int note(struct session_context *h, const char *event, const char *session, const char *from,
                const char *role, uint64_t ended_ms, const struct audit_outcome *outcome,
                struct err *err)
{
    struct gate_client client;
    int r = h->flow.audit ? 0 : result_open_gate(&h->flow, h->json, err);
    if (r < 0)
        return r;
    const struct audit_arg args[] = {
        {.name = "event", .kind = AUDIT_ARG_TEXT, .text = event},
        {.name = "from", .kind = AUDIT_ARG_TEXT, .text = from},
        {.name = "ended_ms", .kind = AUDIT_ARG_NUMBER, .number = (int64_t)ended_ms},
    };
    gate_client_uid(&client, here_user());
    const struct audit_facts f = {.client_id = client.id,
                                  .tool = "session",
                                  .session = session,
                                  .language =
                                      (h->language ? h->language : language_default())->name,
                                  .role = role && role[0] ? role : h->flow.policy->run.role,
                                  .args = args,
                                  .nargs = sizeof args / sizeof *args - (ended_ms == 0),
                                  .outcome = outcome};
    return audit_event(h->flow.audit, AUDIT_SESSION, &f, err);
}

int session_note_room(struct session_context *h, const char *what, struct err *err)
{
    const int r = h->flow.audit ? 0 : result_open_gate(&h->flow, h->json, err);
    return r < 0 ? r : audit_room(h->flow.audit, what ? strlen(what) : 0, err);
}

int session_note(struct session_context *h, const char *event, const char *session,
                 const char *from, const char *role, struct err *err)
{
    return note(h, event, session, from, role, 0, NULL, err);
}

int session_note_failed(struct session_context *h, const char *event, const char *session,
                        const char *from, const char *role, const char *why, struct err *err)
{
    const struct audit_outcome failed = {.status = "error", .reason = why};
    return note(h, event, session, from, role, 0, &failed, err);
}

/* One that did not rest has broken a limit, and its record says which. */
static int note_end(void *ctx, const struct pool_ended *e, struct err *err)
{
    struct session_context *h = ctx;
    char line[POOL_REASON + 32];
    const char *violations[] = {line};
    snprintf(line, sizeof line, SESSION_RULE_REST ": %s", e->reason);
    const struct audit_outcome broken = {.status = "denied",
                                         .layer = "resources",
                                         .reason = e->reason,
                                         .violations = violations,
                                         .nviolations = 1};
    return note(h, "ended", e->name, e->reason, e->role, e->ended_ms,
                e->ran_at_rest ? &broken : NULL, err);
}

void session_note_ends(struct session_context *h)
{
    struct pool_socket place = {.dir = -1};
    struct err err = ERR_INIT;
    int r = pool_socket_open(&place, false, &err);
    if (r == 0)
        r = pool_ended_take(place.dir, note_end, h, &err);
    if (r < 0) /* they stay for the next client */
        result_complain(h->who, err.msg);
    pool_socket_done(&place);
}
