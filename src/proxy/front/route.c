/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked for, and by whom: settled by the head before a byte of the body is read. */
#include "proxy/front/front.h"

#include <stdio.h>
#include <string.h>

static const struct proxy_shape *const shapes[] = {&proxy_shape_chat, &proxy_shape_messages,
                                                   &proxy_shape_responses, NULL};
#define MODELS "/v1/models"

/* OpenAI's libraries send the token as a bearer, Anthropic's as x-api-key. Every client is compared, whichever it is. */
static bool find_client(const struct proxy_front *f, const struct http_head *q, unsigned *ret)
{
    const char *token = http_bearer(q);
    bool found = false;
    if (!token)
        token = http_find(q, "x-api-key");
    for (size_t i = 0; token && i < f->config->nclients; i++)
        if (http_same_token(token, f->config->clients[i].token)) {
            *ret = (unsigned)i;
            found = true;
        }
    return found;
}

int proxy_route_admit(struct proxy_front *f, struct http_conn *c)
{
    const struct http_head *q = &c->q;
    const struct proxy_shape *shape = NULL;
    for (size_t i = 0; shapes[i]; i++)
        if (http_is_path(q, shapes[i]->path))
            shape = shapes[i];
    c->route = shape;
    if (!http_is_ours(q, ""))
        return 403;
    if (!find_client(f, q, &c->client))
        return 401;
    if (!shape && !http_is_path(q, MODELS))
        return 404;
    if (q->method != (shape ? HTTP_POST : HTTP_GET))
        return 405;
    if (!shape && (q->length || q->chunked))
        return 400;
    if (shape && !http_is_json(q))
        return 415;
    return q->length > LIMIT_PROXY_BODY ? 413 : 0;
}

/* ---- models ---- */

static bool listed(const json_t *list, const char *name)
{
    size_t i;
    json_t *row;
    json_array_foreach(list, i, row) if (strcmp(json_string_value(json_object_get(row, "id")),
                                                name) == 0) return true;
    return false;
}

/* The names that clients may use; the two protocols have different members, which do not disturb each other. */
static void list_models(struct proxy_front *f, struct http_conn *c)
{
    json_t *data = json_array(), *o = NULL;
    for (size_t i = 0; i < f->config->nupstreams; i++)
        for (size_t k = 0; k < f->config->upstreams[i].nmodels; k++) {
            const char *name = f->config->upstreams[i].models[k].name;
            if (!listed(data, name))
                json_array_append_new(
                    data, json_pack("{s:s, s:s, s:s, s:i, s:s, s:s, s:s}", "id", name, "object",
                                    "model", "type", "model", "created", 0, "owned_by", "cordon",
                                    "display_name", name, "created_at", "1970-01-01T00:00:00Z"));
        }
    o = json_pack("{s:s, s:b, s:n, s:n, s:o}", "object", "list", "has_more", 0, "first_id",
                  "last_id", "data", data);
    struct proxy_call call = {.front = f, .conn = c};
    proxy_answer_json(&call, 200, o);
    json_decref(o);
}

/* ---- calls ---- */

static void refuse(struct proxy_call *c, int status, const char *why)
{
    struct http_conn *conn = c->conn;
    proxy_answer_error(conn, c->shape->anthropic, status, 0, why);
    conn->work = NULL;
    proxy_call_free(c);
}

static void begin_call(struct proxy_front *f, struct http_conn *conn, json_t *request)
{
    char why[300];
    struct proxy_call *c = proxy_call_new(f, conn, conn->route, conn->client, request);
    if (!c) {
        conn->broken = true;
    } else if (!c->model || strlen(c->model) > 200) {
        refuse(c, 400, "model: a name is wanted");
    } else if (!proxy_attempt_first(c)) {
        snprintf(why, sizeof why, "model '%.100s': no upstream of this protocol has it", c->model);
        refuse(c, 404, why);
    } else if (!c->shape->check(c, why)) {
        refuse(c, 400, why);
    } else {
        proxy_call_ask(c);
    }
}

bool proxy_route_begin(struct proxy_front *f, struct http_conn *c)
{
    const struct proxy_shape *shape = c->route;
    json_error_t problem;
    if (!shape) {
        list_models(f, c);
        return true;
    }
    json_t *o =
        json_loadb(c->body.len ? c->body.data : "", c->body.len, JSON_REJECT_DUPLICATES, &problem);
    if (json_is_object(o))
        begin_call(f, c, o);
    else
        proxy_answer_error(c, shape->anthropic, 400, 0,
                           o ? "the body must be an object" : "the body is no JSON");
    json_decref(o);
    return true;
}
