/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions of the protocol, for the revisions that have them: which revision was settled, and the streams that can be
 * resumed. They are not the sessions of code, which cordond has: those are the token's, and do not end with these. */
#include "serve/front/http_server.h"

#include <string.h>
#include <sys/random.h>

static bool new_id(char out[SERVE_HTTP_SESSION + 1])
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567";
    unsigned char bytes[SERVE_HTTP_SESSION];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return false;
    for (size_t i = 0; i < sizeof bytes; i++)
        out[i] = letters[bytes[i] & 31];
    out[SERVE_HTTP_SESSION] = 0;
    return true;
}

/* A request of it goes on, or a stream is open. */
static bool busy(const struct serve_http *h, const struct serve_http_session *s)
{
    for (size_t i = 0; i < LIMIT_HTTP_EXCHANGES; i++)
        if (h->exchanges[i].used && h->exchanges[i].session == s &&
            !serve_http_exchange_rests(&h->exchanges[i]))
            return true;
    return false;
}

/* An unused place; else that of the one that nobody called for the longest. */
struct serve_http_session *serve_http_session_new(struct serve_http *h,
                                                  const struct serve_talk *talk)
{
    struct serve_http_session *s = NULL;
    for (size_t i = 0; i < LIMIT_HTTP_SESSIONS && !(s && !s->used); i++) {
        struct serve_http_session *e = &h->sessions[i];
        if (!e->used || (!busy(h, e) && (!s || e->called_ms < s->called_ms)))
            s = e;
    }
    if (!s)
        return NULL;
    if (s->used)
        serve_http_session_end(h, s);
    *s = (struct serve_http_session){.used = true, .talk = *talk, .called_ms = h->server.now_ms};
    s->used = new_id(s->id);
    return s->used ? s : NULL;
}

struct serve_http_session *serve_http_session_find(struct serve_http *h, const char *id)
{
    for (size_t i = 0; i < LIMIT_HTTP_SESSIONS; i++) {
        struct serve_http_session *s = &h->sessions[i];
        if (!s->used || strcmp(s->id, id) != 0)
            continue;
        s->called_ms = h->server.now_ms;
        return s;
    }
    return NULL;
}

void serve_http_session_end(struct serve_http *h, struct serve_http_session *s)
{
    serve_calls_drop(h->front, &s->talk, NULL);
    for (size_t i = 0; i < LIMIT_HTTP_EXCHANGES; i++) {
        struct serve_http_exchange *x = &h->exchanges[i];
        if (x->used && x->session == s)
            serve_http_exchange_end(x, "the session was ended");
    }
    s->used = false;
}

void serve_http_sessions_tick(struct serve_http *h)
{
    size_t held = 0;
    for (size_t i = 0; i < LIMIT_HTTP_SESSIONS; i++) {
        struct serve_http_session *s = &h->sessions[i];
        if (s->used && h->server.now_ms > s->called_ms + LIMIT_SERVE_IDLE_MS && !busy(h, s))
            serve_http_session_end(h, s);
    }
    for (size_t i = 0; i < LIMIT_HTTP_EXCHANGES; i++) {
        struct serve_http_exchange *x = &h->exchanges[i];
        const bool rests = x->used && serve_http_exchange_rests(x);
        if (rests && h->server.now_ms > x->over_ms + LIMIT_HTTP_LOGS_MS)
            serve_http_exchange_free(x);
        held += rests && x->used ? x->log.len : 0;
    }
    while (held > LIMIT_HTTP_LOGS) {
        struct serve_http_exchange *oldest = NULL;
        for (size_t i = 0; i < LIMIT_HTTP_EXCHANGES; i++) {
            struct serve_http_exchange *x = &h->exchanges[i];
            if (x->used && serve_http_exchange_rests(x) &&
                (!oldest || x->over_ms < oldest->over_ms))
                oldest = x;
        }
        base_assert(oldest);
        held -= oldest->log.len;
        serve_http_exchange_free(oldest);
    }
}
