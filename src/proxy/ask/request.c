/* SPDX-License-Identifier: Apache-2.0 */
/* What a guest wrote is the content of one message, as a JSON string: no byte of it can begin another message, a role or a field. */
#include "proxy/ask/ask.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static json_t *text_of(const struct buf *b)
{
    return json_stringn(b->len ? b->data : "", b->len);
}

static json_t *message(const char *role, const struct buf *content)
{
    return json_pack("{s:s, s:o}", "role", role, "content", text_of(content));
}

/* The reply comes whole: nobody reads it while it is written. */
static json_t *body_of(const struct ask_question *q)
{
    json_t *o = json_pack("{s:s, s:b}", "model", q->model, "stream", 0), *list = json_array();
    const bool system = q->system.len > 0;
    int bad = 0;
    if (system && q->anthropic)
        bad |= json_object_set_new(o, "system", text_of(&q->system));
    else if (system)
        bad |= json_array_append_new(list, message("system", &q->system));
    bad |= json_array_append_new(list, message("user", &q->prompt));
    bad |= json_object_set_new(o, "messages", list);
    bad |= json_object_set_new(o, q->anthropic ? "max_tokens" : "max_completion_tokens",
                               json_integer((json_int_t)q->tokens));
    if (!bad)
        return o;
    json_decref(o);
    return NULL;
}

int ask_request(const struct ask_question *q, const char *host, const char *token, struct buf *out,
                struct err *err)
{
    json_t *body = body_of(q);
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    json_decref(body);
    if (!text)
        return err_set(err, ERR_FORMAT, "the question is no text in UTF-8");
    int r = buf_printf(out,
                       "POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: "
                       "application/json\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n",
                       q->anthropic ? "/v1/messages" : "/v1/chat/completions", host, token,
                       strlen(text));
    if (r == 0)
        r = buf_add(out, text, strlen(text));
    free(text);
    return r < 0 ? err_set(err, r, "the question is longer than %llu bytes",
                           (unsigned long long)out->max)
                 : 0;
}
