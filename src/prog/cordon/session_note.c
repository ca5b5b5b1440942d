/* What becomes of sessions is on record as what they run is: opened, forked, closed, ended by a call. What the
 * holder does by itself (a session that was idle for too long) it tells with the next request for it. */
#include "result.h"
#include "session.h"

#include <unistd.h>

int session_note(struct session_house *h, const char *event, const char *session, const char *from,
                 const char *role, struct err *err)
{
    struct gate_client client;
    int r = h->flow.audit ? 0 : result_staff(&h->flow, h->json, err);
    if (r < 0)
        return r;
    const struct audit_arg args[] = {
        {.name = "event", .kind = AUDIT_ARG_TEXT, .text = event},
        {.name = "from", .kind = AUDIT_ARG_TEXT, .text = from},
    };
    gate_client_uid(&client, getuid());
    const struct audit_facts f = {.client_id = client.id,
                                  .tool = "session",
                                  .session = session,
                                  .language = "python",
                                  .role = role ? role : h->flow.policy->run.role,
                                  .args = args,
                                  .nargs = sizeof args / sizeof *args};
    return audit_event(h->flow.audit, AUDIT_SESSION, &f, err);
}
