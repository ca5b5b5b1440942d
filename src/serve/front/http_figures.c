/* SPDX-License-Identifier: Apache-2.0 */
/* The port of --metrics: two paths, GET alone, no token and no body. What is there is numbers; who may see them is settled
 * by the address, which is loopback's, and by the host, so that no page of a browser reads them. */
#include "serve/front/http_server.h"

#include <string.h>

#define METRICS "/metrics"
#define HEALTH  "/health"

int serve_http_figures_admit(const struct http_head *q)
{
    const bool known = http_is_path(q, METRICS) || http_is_path(q, HEALTH);
    return known && q->method == HTTP_GET ? 0 : 404;
}

bool serve_http_figures_begin(struct serve_http *h, struct http_conn *c)
{
    if (!serve_calls_room(h->front, SERVE_METRICS))
        return false;
    struct serve_http_exchange *x = serve_http_exchange_new(h, c);
    if (!x) {
        serve_http_refuse(c, 503, NULL);
        return true;
    }
    const struct serve_reply to = {.id = "null", .sink = &x->sink, .talk = &x->talk};
    const struct serve_request q = {.verb = http_is_path(&c->q, METRICS) ? SERVE_METRICS
                                                                         : SERVE_HEALTH};
    x->sink.head = NULL;
    x->plain = true;
    x->events = false;
    c->state = HTTP_CONN_WAITING;
    serve_calls_start(h->front, &to, "", &q, "", "");
    return true;
}

bool serve_figures_render(struct serve_front *f, struct serve_call *c)
{
    if (c->verb != SERVE_METRICS && c->verb != SERVE_HEALTH)
        return false;
    struct serve_sink *s = c->to.sink;
    s->code = c->answer.stand == SERVE_DONE && c->answer.number == 0 ? 0 : 503;
    const int r = s->put(s, SERVE_PUT_REPLY, c->body.len ? c->body.data : "", c->body.len);
    if (r < 0 && !f->bad)
        f->bad = r;
    return true;
}
