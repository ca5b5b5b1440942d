/* SPDX-License-Identifier: Apache-2.0 */
/* The sessions of a client. The holder keeps them; here is only which of them this client made, so that nobody reaches a
 * session of somebody else by its name. A handle is 130 random bits, since whoever has it has the session. */
#include "serve/holding.h"

#include "base/clock.h"
#include "base/jsonw.h"

#include <string.h>
#include <sys/random.h>

enum { CLOSE_TRIES = 3 }; /* a runner that cannot live is not started for ever */

int serve_handle_new(enum serve_handle kind, char out[SERVE_HANDLE + 1], struct err *err)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567";
    unsigned char bytes[SERVE_HANDLE - 4];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return err_sys(err, "getrandom");
    memcpy(out, kind == SERVE_HANDLE_JOB ? "job-" : "mcp-", 4);
    for (size_t i = 0; i < sizeof bytes; i++)
        out[4 + i] = letters[bytes[i] & 31];
    out[SERVE_HANDLE] = 0;
    return 0;
}

const char *serve_sessions_workspace(const struct serve_config *config, const struct buf *name)
{
    static char found[SERVE_WORKSPACE +
                      1]; /* the operator's word, for the one command line that is being built */
    for (const char *w = config->workspaces; name->len && w && *w;) {
        const size_t n = strcspn(w, ",");
        if (n == name->len && n <= SERVE_WORKSPACE && memcmp(w, name->data, n) == 0) {
            memcpy(found, w, n);
            found[n] = 0;
            return found;
        }
        w += n + (w[n] == ',');
    }
    return NULL;
}

/* The holder ends a session that was not called for so long. */
static bool expired(const struct serve_client *c, const struct serve_session *s, uint64_t now_ns)
{
    if (now_ns - s->called_ns <= LIMIT_SERVE_IDLE_MS * CLOCK_NS_PER_MS)
        return false;
    for (size_t i = 0; i < LIMIT_SERVE_JOBS; i++) /* a call goes on in it: it is not idle */
        if (c->jobs[i].used && !c->jobs[i].ended_ns && strcmp(c->jobs[i].session, s->handle) == 0)
            return false;
    return true;
}

struct serve_session *serve_sessions_find(struct serve_client *c, const char *handle,
                                          uint64_t now_ns)
{
    for (size_t i = 0; i < LIMIT_SERVE_SESSIONS; i++) {
        struct serve_session *s = &c->sessions[i];
        if (s->used && !s->over && expired(c, s, now_ns)) {
            s->over = true;
            s->used = !s->unwanted;
        }
        if (s->used && !s->unwanted && strcmp(s->handle, handle) == 0)
            return s;
    }
    return NULL;
}

bool serve_sessions_room(struct serve_client *c, uint64_t now_ns)
{
    size_t count = 0;
    (void)serve_sessions_find(c, "", now_ns); /* those that have expired are over */
    for (size_t i = 0; i < LIMIT_SERVE_SESSIONS; i++)
        count += serve_session_lives(&c->sessions[i]);
    for (size_t i = 0; i < LIMIT_SERVE_JOBS; i++) /* sessions that a job is making */
        count += c->jobs[i].used && !c->jobs[i].ended_ns &&
                 (c->jobs[i].verb == SERVE_SESSION_NEW || c->jobs[i].verb == SERVE_SESSION_FORK);
    return count < LIMIT_SERVE_SESSIONS;
}

/* An unused place; else that of the one that is over and was not called for the longest. */
static struct serve_session *free_session(struct serve_client *c)
{
    struct serve_session *oldest = NULL;
    for (size_t i = 0; i < LIMIT_SERVE_SESSIONS; i++) {
        struct serve_session *s = &c->sessions[i];
        if (!s->used)
            return s;
        if (!serve_session_lives(s) && (!oldest || s->called_ns < oldest->called_ns))
            oldest = s;
    }
    return oldest;
}

struct serve_session *serve_sessions_add(struct serve_client *c, const char *handle,
                                         uint64_t now_ns)
{
    struct serve_session *s = free_session(c);
    if (!s)
        return NULL;
    *s = (struct serve_session){.used = true, .called_ns = now_ns};
    memcpy(s->handle, handle, sizeof s->handle);
    return s;
}

void serve_sessions_closed(struct serve_client *c, const char *handle, enum serve_close how)
{
    for (size_t i = 0; i < LIMIT_SERVE_SESSIONS; i++) {
        struct serve_session *s = &c->sessions[i];
        if (!s->used || strcmp(s->handle, handle) != 0)
            continue;
        s->over = how == SERVE_CLOSED; /* its client may close it once more */
        s->used = how == SERVE_CLOSED ? !s->unwanted : s->tries < CLOSE_TRIES;
        s->unwanted = s->unwanted || how == SERVE_CLOSE_ENDED;
        s->closing = false;
    }
}

int serve_sessions_list(struct serve_client *c, uint64_t now_ns, struct buf *out)
{
    struct jsonw j = {.out = out};
    (void)serve_sessions_find(c, "", now_ns);
    jsonw_open(&j, NULL, '[');
    for (size_t i = 0; i < LIMIT_SERVE_SESSIONS; i++) {
        const struct serve_session *s = &c->sessions[i];
        if (!s->used || s->unwanted || s->over)
            continue;
        const uint64_t past = (now_ns - s->called_ns) / CLOCK_NS_PER_S,
                       most = LIMIT_SERVE_IDLE_MS / 1000, idle = past < most ? past : most;
        jsonw_open(&j, NULL, '{');
        jsonw_string(&j, "session_id", s->handle);
        jsonw_int(&j, "calls", (int64_t)s->calls);
        jsonw_int(&j, "idle_s", (int64_t)idle);
        jsonw_int(&j, "expires_in_s", (int64_t)(most - idle));
        jsonw_close(&j, '}');
    }
    jsonw_close(&j, ']');
    return j.bad;
}
