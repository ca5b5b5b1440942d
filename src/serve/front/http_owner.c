/* SPDX-License-Identifier: Apache-2.0 */
/* What src/http/server.h asks of who owns its connections: here requests go to the front, which asks cordond. A client that leaves while
 * it waits cancels what it asked for, in the newest revision. */
#include "serve/front/http_server.h"
#include "serve/front/link.h"

#include <stdlib.h>

#define LISTENER_FD 0

static int admit(void *of, struct http_conn *c)
{
    return serve_http_admit(of, &c->q);
}

static bool begin(void *of, struct http_conn *c)
{
    return serve_http_begin(of, c);
}

static void refuse(void *of, struct http_conn *c, int status)
{
    (void)of;
    serve_http_refuse(c, status,
                      c->state == HTTP_CONN_READY ? "32 calls of this client are not answered yet, "
                                                    "which is the most; wait for one of them"
                                                  : NULL);
}

/* A request of a session goes on without its connection, and its stream of GET waits for who comes back; any other ends
 * with it, and its run, too. */
static void left(void *of, struct http_conn *c)
{
    struct serve_http *h = of;
    struct serve_http_exchange *x = c->work;
    if (x && x->session) {
        x->conn = NULL;
        x->over_ms = h->server.now_ms;
    } else if (x) {
        serve_calls_drop(h->front, &x->talk, &x->sink);
        serve_http_exchange_free(x);
    }
}

static uint64_t beat(void *of, struct http_conn *c)
{
    const struct serve_http *h = of;
    struct serve_http_exchange *x = c->work;
    if (!x)
        return UINT64_MAX;
    if (h->server.now_ms >= x->beat_ms) {
        serve_http_stream_beat(x);
        x->beat_ms = h->server.now_ms + LIMIT_HTTP_BEAT_MS;
    }
    return x->beat_ms;
}

static void tick(void *of)
{
    serve_http_sessions_tick(of);
}

static bool room(void *of)
{
    const struct serve_http *h = of;
    return serve_calls_room(h->front, SERVE_RUN);
}

static const struct http_owner owner = {.body_max = LIMIT_SERVE_LINE,
                                        .out_max = LIMIT_SERVE_OUT,
                                        .unread_max = LIMIT_HTTP_UNREAD,
                                        .admit = admit,
                                        .begin = begin,
                                        .refuse = refuse,
                                        .left = left,
                                        .beat = beat,
                                        .tick = tick,
                                        .room = room};

struct serve_http *serve_http_new(struct serve_front *f, const struct serve_http_config *config)
{
    struct serve_http *h = calloc(1, sizeof *h);
    if (!h)
        return NULL;
    h->front = f;
    h->config = *config;
    h->server = (struct http_server){.owner = &owner,
                                     .of = h,
                                     .conns = h->conns,
                                     .count = LIMIT_HTTP_CONNECTIONS,
                                     .ready_ms = f->config.answer_ms};
    return h;
}

void serve_http_free(struct serve_http *h)
{
    if (!h)
        return;
    for (size_t i = 0; i < LIMIT_HTTP_EXCHANGES; i++)
        serve_http_exchange_free(&h->exchanges[i]);
    http_server_done(&h->server);
    free(h);
}

/* ---- cordond ---- */

static short link_events(void *of)
{
    const struct serve_http *h = of;
    return serve_link_events(&h->link);
}

static int link_send(void *of, bool *ret_over, struct err *err)
{
    struct serve_http *h = of;
    serve_link_send(&h->link);
    *ret_over = h->link.over;
    return h->front->bad ? err_set(err, h->front->bad, "no memory") : 0;
}

static int link_read(void *of, bool *ret_over, struct err *err)
{
    struct serve_http *h = of;
    const int r = serve_link_read(&h->link, err);
    *ret_over = h->link.over;
    return r;
}

int serve_front_http(const struct serve_front_config *config, const struct serve_http_config *http,
                     struct err *err)
{
    static const struct http_link cordond = {.fd = SERVE_LINK_FD,
                                             .events = link_events,
                                             .send = link_send,
                                             .read = link_read,
                                             .flush_ms = LIMIT_SERVE_FLUSH_MS};
    struct serve_front *f = serve_front_new(config);
    struct serve_http *h = f ? serve_http_new(f, http) : NULL;
    if (!h) {
        serve_front_free(f);
        return err_set(err, ERR_MEMORY, "no memory");
    }
    serve_link_init(&h->link, f);
    const int r = http_server_run(&h->server, LISTENER_FD, &cordond, err);
    serve_http_free(h);
    serve_front_free(f);
    return r;
}
