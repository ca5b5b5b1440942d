/* SPDX-License-Identifier: Apache-2.0 */
/* What the front of HTTP does by time, and nobody can wait for: how long a client may take to say or read something, how often a
 * stream is told that it lives, how long protocol sessions and their events stay. The time is a number here. */
#include "base/tap.h"
#include "serve/front/http_server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define T0   1000000ULL /* ms, when everything here begins */
#define HEAD "Host: localhost\r\nAuthorization: Bearer x\r\nContent-Type: application/json\r\n"
#define CALL                                                                                       \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"                                            \
    "call\",\"params\":{\"name\":\"execute_code\",\"arguments\":{\"code\":\"1\"}}}"
#define OPENS                                                                                      \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"     \
    "\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}"

static struct serve_front *front;
static struct serve_http *http;
static char session[SERVE_HTTP_SESSION + 1];

static void at(uint64_t ms)
{
    http->server.now_ms = ms;
    (void)http_server_tick(&http->server);
}

/* What was put for the client of C, which has read it then. */
static const char *told(struct http_conn *c)
{
    static char text[8192];
    snprintf(text, sizeof text, "%.*s", (int)(c->out.len - c->written),
             c->out.len ? c->out.data + c->written : "");
    http_conn_wrote(&http->server, c, c->out.len - c->written);
    return text;
}

static struct http_conn *says(const char *text)
{
    struct http_conn *c = http_conn_accept(&http->server);
    if (!c)
        abort();
    http_conn_bytes(&http->server, c, text, strlen(text));
    return c;
}

static struct http_conn *posts(const char *fields, const char *body)
{
    char text[4096];
    snprintf(text, sizeof text,
             "POST /mcp HTTP/1.1\r\n" HEAD "Accept: application/json, text/event-stream\r\n"
             "%sContent-Length: %zu\r\n\r\n%s",
             fields, strlen(body), body);
    return says(text);
}

/* In the session. */
static struct http_conn *listens(const char *fields)
{
    char text[1024];
    snprintf(text, sizeof text,
             "GET /mcp HTTP/1.1\r\n" HEAD
             "Accept: text/event-stream\r\nMcp-Session-Id: %s\r\n%s\r\n",
             session, fields);
    return says(text);
}

static struct http_conn *calls(void)
{
    char field[80];
    snprintf(field, sizeof field, "Mcp-Session-Id: %s\r\n", session);
    return posts(field, CALL);
}

static void open_session(void)
{
    struct http_conn *c = posts("", OPENS);
    const char *found = strstr(told(c), "Mcp-Session-Id: ");
    snprintf(session, sizeof session, "%s", found ? found + 16 : "");
    tap_eq_int(strlen(session), SERVE_HTTP_SESSION, "a session is opened");
    http_conn_left(&http->server, c);
}

static void test_slow_clients(void)
{
    at(T0);
    struct http_conn *idle = says(""), *head = says("POST /mcp"), *body, *deaf;
    body = says("POST /mcp HTTP/1.1\r\n" HEAD "Content-Length: 10\r\n\r\n{");
    at(T0 + 9999);
    tap_ok(head->out.len == 0 && body->out.len == 0, "a slow client is waited for");
    at(T0 + 10000);
    tap_ok(strstr(told(head), " 408 "), "a head that is not there after 10 seconds is refused");
    tap_ok(idle->broken, "a connection on which nothing was said for 10 seconds is closed");
    at(T0 + 29999);
    tap_ok(body->out.len == 0, "a body has 30 seconds");
    at(T0 + 30000);
    tap_ok(strstr(told(body), " 408 "), "a body that is not there after 30 seconds is refused");
    deaf = posts("", OPENS);
    at(T0 + 30000 + 59999);
    tap_ok(!deaf->broken && deaf->out.len, "a client that does not read is waited for");
    at(T0 + 30000 + 60000);
    tap_ok(deaf->broken, "a client that read nothing for a minute is dropped");
    http_server_done(&http->server);
}

/* A client that does not read an answer of LEN bytes; there are no bytes. */
static struct http_conn *owed(size_t len)
{
    struct http_conn *c = says("");
    c->out.len = len;
    c->state = HTTP_CONN_WRITING;
    c->deadline_ms = http->server.now_ms + LIMIT_HTTP_STALL_MS;
    return c;
}

static void test_large_answers(void)
{
    at(T0);
    struct http_conn *first = owed(LIMIT_HTTP_UNREAD / 2), *small = owed(100), *second, *third;
    at(T0);
    second = owed(LIMIT_HTTP_UNREAD / 2 - 100);
    at(T0 + 1000);
    at(T0 + 20000);
    tap_ok(!http_server_behind(&http->server) && !first->broken,
           "128 MiB of answers may wait for their readers for as long as one alone");
    third = owed(1);
    at(T0 + 20000);
    tap_ok(
        first->broken && !small->broken && !second->broken && !third->broken,
        "of more than 128 MiB the largest answer that has waited for 5 seconds goes, and no other");
    third->out.len = LIMIT_HTTP_UNREAD + 1;
    at(T0 + 20001);
    tap_ok(small->broken && second->broken && !third->broken && http_server_behind(&http->server),
           "an answer that has waited for less than 5 seconds is not dropped for that");
    http->server.now_ms = T0 + 20002;
    tap_eq_int(http_server_tick(&http->server), T0 + 25000, "when its time is over is awaited");
    at(T0 + 25000);
    tap_ok(third->broken && !http_server_behind(&http->server),
           "an answer that is not read for 5 seconds while others wait is dropped");
    http_server_done(&http->server);
}

static void test_slow_second_head(void)
{
    at(T0);
    struct http_conn *c = posts("", OPENS);
    (void)told(c);
    at(T0 + 20000);
    http_conn_bytes(&http->server, c, "POST", 4);
    at(T0 + 25000);
    http_conn_bytes(&http->server, c, " ", 1);
    at(T0 + 29999);
    tap_ok(c->out.len == 0 && !c->broken,
           "the head of a later request has 10 seconds from its first byte");
    at(T0 + 30000);
    tap_ok(strstr(told(c), " 408 "), "a later head that comes byte by byte gets no more time");
    http_server_done(&http->server);
}

static void test_streams(void)
{
    at(T0);
    open_session();
    struct http_conn *stream = listens(""), *call = calls();
    (void)told(stream);
    (void)told(call);
    at(T0 + 14999);
    tap_ok(stream->out.len == 0 && call->out.len == 0, "a stream is quiet for 15 seconds");
    at(T0 + 15000);
    tap_ok(strstr(told(stream), ": \n\n"), "the stream of a session tells that it lives");
    tap_ok(strstr(told(call), ": \n\n"), "the stream of a call tells that it lives");
    at(T0 + 29999);
    tap_eq_int(stream->out.len, 0, "a stream that told that it lives is quiet again");
    at(T0 + 30000);
    tap_ok(strstr(told(stream), ": \n\n"), "a stream tells every 15 seconds that it lives");
    http_server_done(&http->server);
}

/* As cordond refuses call NUMBER. */
static void answer(uint64_t number)
{
    const struct serve_answer a = {.request = number, .stand = SERVE_REFUSED};
    struct err err = ERR_INIT;
    struct buf frame;
    buf_init(&frame, 4096);
    tap_ok(serve_answer_write(&a, NULL, &frame, &err) == 0 &&
               serve_front_frame(front, frame.data, frame.len, &err) == 0,
           "the answer to call %llu is taken", (unsigned long long)number);
    buf_done(&frame);
}

static void test_events(void)
{
    char field[100] = "";
    at(T0);
    open_session();
    struct http_conn *call = calls(), *again;
    const char *id = strstr(told(call), "id: ");
    if (id)
        snprintf(field, sizeof field, "Last-Event-ID: %.*s\r\n", (int)strcspn(id + 4, "\n"),
                 id + 4);
    http_conn_left(&http->server, call);
    answer(front->numbers);
    at(T0 + LIMIT_HTTP_LOGS_MS);
    again = listens(field);
    tap_ok(strstr(told(again), "\"isError\":"), "the events of a call are kept for five minutes");
    at(T0 + LIMIT_HTTP_LOGS_MS + 1);
    again = listens(field);
    tap_ok(strstr(told(again), " 400 "), "the events of a call are gone after five minutes");
    http_server_done(&http->server);
}

static void test_sessions(void)
{
    at(T0);
    open_session();
    const uint64_t called = T0 + 5;
    at(called);
    struct http_conn *stream = listens("");
    at(called + LIMIT_SERVE_IDLE_MS + 1);
    tap_ok(serve_http_session_find(http, session), "a session that has a stream open is not idle");
    at(called);
    (void)serve_http_session_find(http, session); /* as a call does */
    http_conn_left(&http->server, stream);
    at(called + LIMIT_SERVE_IDLE_MS);
    struct http_conn *c = listens("Last-Event-ID: 1-1\r\n");
    tap_ok(strstr(told(c), " 400 "), "a session is there for 30 minutes after a call");
    at(called + 2 * LIMIT_SERVE_IDLE_MS + 1);
    c = listens("");
    tap_ok(strstr(told(c), " 404 "), "a session without a call ends after 30 minutes");
    http_server_done(&http->server);
}

int main(void)
{
    const struct serve_front_config config = {
        {30000, 512 * MIB, 100000}, .answer_ms = 45000, .profile = "", .version = "0"};
    const struct serve_http_config web = {.token = "x", .names = ""};
    front = serve_front_new(&config);
    http = front ? serve_http_new(front, &web) : NULL;
    if (!tap_ok(http, "a server without descriptors is made"))
        return tap_done();
    test_slow_clients();
    test_large_answers();
    test_slow_second_head();
    test_streams();
    test_events();
    test_sessions();
    serve_http_free(http);
    serve_front_free(front);
    return tap_done();
}
