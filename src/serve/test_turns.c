/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of HTTP beyond the most that are worked on at once: they are begun in the order in which they came, whatever place
 * their connections have in the table. */
#include "base/tap.h"
#include "serve/front/http_server.h"

#include <stdio.h>
#include <string.h>

enum { WAITING = 5 };

static void send_call(struct serve_http *h, struct http_conn *c)
{
    static const char body[] =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"
        "call\",\"params\":{\"name\":\"execute_code\","
        "\"arguments\":{\"code\":\"1\"},\"_meta\":{\"" SERVE_META
        "protocolVersion\":\"2026-07-28\",\"" SERVE_META "clientCapabilities\":{}}}}";
    char text[2048];
    const int n = snprintf(text, sizeof text,
                           "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer x\r\n"
                           "Accept: application/json\r\nContent-Type: application/json\r\n"
                           "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n"
                           "Mcp-Name: execute_code\r\nContent-Length: %zu\r\n\r\n%s",
                           strlen(body), body);
    http_conn_bytes(&h->server, c, text, (size_t)n);
}

/* As cordond refuses a call: what matters is that it is over. */
static void answer(struct serve_front *f, uint64_t number)
{
    const struct serve_answer a = {.request = number, .stand = SERVE_REFUSED};
    struct err err = ERR_INIT;
    struct buf frame;
    buf_init(&frame, 4096);
    tap_ok(serve_answer_write(&a, NULL, &frame, &err) == 0 &&
               serve_front_frame(f, frame.data, frame.len, &err) == 0,
           "the answer to call %llu is taken", (unsigned long long)number);
    buf_done(&frame);
}

int main(void)
{
    const struct serve_front_config config = {
        {30000, 512 * MIB, 100000}, .answer_ms = 45000, .profile = "", .version = "0"};
    const struct serve_http_config web = {.token = "x", .names = ""};
    struct serve_front *f = serve_front_new(&config);
    struct serve_http *h = f ? serve_http_new(f, &web) : NULL;
    struct http_conn *late[WAITING];
    size_t begun = 0;
    if (!tap_ok(h, "a server without descriptors is made"))
        return tap_done();
    for (int i = 0; i < WAITING; i++) /* the first places of the table */
        late[i] = http_conn_accept(&h->server);
    for (int i = 0; i < LIMIT_SERVE_REQUESTS; i++) {
        struct http_conn *c = http_conn_accept(&h->server);
        send_call(h, c);
        begun += c->state == HTTP_CONN_WAITING;
    }
    tap_eq_int(begun, LIMIT_SERVE_REQUESTS, "as many calls as there may be at once are begun");
    for (int i = WAITING - 1; i >= 0; i--) /* the last place first */
        send_call(h, late[i]);
    (void)http_server_tick(&h->server);
    tap_ok(http_server_first(&h->server) == late[WAITING - 1],
           "who came first is the first in the queue");
    for (int i = WAITING - 1; i >= 0; i--) {
        answer(f, (uint64_t)(WAITING - i)); /* one of those that are worked on */
        if (i == WAITING - 2) {             /* who comes now does not pass those that wait */
            struct http_conn *c = http_conn_accept(&h->server);
            send_call(h, c);
            tap_ok(c->state == HTTP_CONN_READY, "a call that comes when others wait is queued");
        }
        (void)http_server_tick(&h->server);
        tap_ok(late[i]->state == HTTP_CONN_WAITING &&
                   (i == 0 || late[i - 1]->state == HTTP_CONN_READY),
               "call %d of the queue is begun next, and not the one after it", WAITING - i);
    }
    serve_http_free(h);
    serve_front_free(f);
    return tap_done();
}
