/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as those of an upstream: what goes to the client is HTTP, and no tool call in it is cut. The first byte of the input says
 * which protocol, whether the client wants a stream, and how long the pieces are that the rest comes in. */
#include "proxy/front/front.h"

#include <stdio.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char config[] =
    "{\"holdback\": 8, \"retries\": 0, \"clients\": [{\"name\": \"c\", \"token\": "
    "\"tttttttttttttttttttttttttttttttt\"}], \"upstreams\": ["
    "{\"name\": \"o\", \"tier\": \"worker\", \"shape\": \"openai\", \"models\": [\"m\", \"m\"]}, "
    "{\"name\": \"p\", \"tier\": \"coder\", \"shape\": \"openai\", \"models\": [\"m\", \"n\"]}, "
    "{\"name\": \"a\", \"tier\": \"worker\", \"shape\": \"anthropic\", \"models\": [\"m\", "
    "\"m\"]}]}";

static void request(struct proxy_front *f, struct http_conn *c, unsigned kind)
{
    static const char *const paths[] = {"chat/completions", "messages", "responses"};
    char body[100], text[400];
    snprintf(body, sizeof body, "{\"model\": \"m\", \"messages\": [], \"stream\": %s}",
             kind & 4 ? "true" : "false");
    const int n = snprintf(text, sizeof text,
                           "POST /v1/%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                           "application/json\r\nAuthorization: Bearer "
                           "tttttttttttttttttttttttttttttttt\r\nContent-Length: %zu\r\n\r\n%s",
                           paths[kind % 3], strlen(body), body);
    http_conn_bytes(&f->server, c, text, (size_t)n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct proxy_front_config c;
    struct err err = ERR_INIT;
    if (size < 1 || proxy_front_config_read(config, sizeof config - 1, &c, &err) < 0)
        return 0;
    struct proxy_front *f = proxy_front_new(&c);
    struct http_conn *conn = f ? http_conn_accept(&f->server) : NULL;
    const size_t most = (size_t)(data[0] >> 3) + 1;
    if (conn) {
        request(f, conn, data[0] & 7);
        base_assert(conn->work);
        proxy_call_may(conn->work, 0, 0, "");
    }
    data++;
    size--;
    while (conn && conn->work && size) { /* a second attempt gets what the first one left */
        const size_t n = most < size ? most : size;
        proxy_call_status(conn->work, 200);
        proxy_call_bytes(conn->work, (const char *)data, n);
        data += n;
        size -= n;
    }
    if (conn && conn->work)
        proxy_call_end(conn->work, PROXY_END_WHOLE);
    if (conn && conn->work) /* the tier above */
        proxy_call_end(conn->work, PROXY_END_SILENT);
    if (conn)
        base_assert(conn->out.len == 0 || memcmp(conn->out.data, "HTTP/1.1 ", 9) == 0);
    if (conn && !conn->broken)
        base_assert(!conn->work && conn->state == HTTP_CONN_WRITING);
    proxy_front_free(f);
    proxy_front_config_done(&c);
    return 0;
}
