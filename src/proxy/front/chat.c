/* SPDX-License-Identifier: Apache-2.0 */
/* OpenAI's chat completions. A chunk that has several things in it (text, a tool call, the end) becomes several, so that each can wait for
 * as long as it has to. */
#include "proxy/front/front.h"

#include <stdio.h>
#include <string.h>

static json_t *choice_of(const json_t *event)
{
    return json_array_get(json_object_get(event, "choices"), 0);
}

/* ---- the request ---- */

static bool check(const struct proxy_call *c, char *why)
{
    const json_t *n = json_object_get(c->request, "n");
    if (!json_is_array(json_object_get(c->request, "messages"))) {
        snprintf(why, 300, "messages: a list is wanted");
        return false;
    }
    if (n && !json_is_null(n) && json_integer_value(n) != 1) {
        snprintf(why, 300, "n: the gateway watches one choice of an answer; ask again for another");
        return false;
    }
    return true;
}

static json_t *body(const struct proxy_call *c, const char *model, const struct buf *prefix)
{
    json_t *o = json_copy(c->request), *messages = NULL;
    const json_t *asked = json_object_get(c->request, "stream_options");
    json_t *options = json_is_object(asked) ? json_deep_copy(asked) : json_object();
    int bad = json_object_set_new(options, "include_usage", json_true()) |
              json_object_set_new(o, "stream_options", options) |
              json_object_set_new(o, "model", json_string(model)) |
              json_object_set_new(o, "stream", json_true());
    if (prefix->len) { /* what the client has of the answer: the model goes on from there */
        messages = json_copy(json_object_get(o, "messages"));
        bad |= json_array_append_new(messages, json_pack("{s:s, s:s%}", "role", "assistant",
                                                         "content", prefix->data, prefix->len));
        bad |= json_object_set_new(o, "messages", messages);
    }
    if (!bad)
        return o;
    json_decref(o);
    return NULL;
}

/* ---- events ---- */

static const char *const keys[] = {"reasoning_content", "reasoning",  "content",
                                   "refusal",           "tool_calls", "function_call"};
enum { KEYS = sizeof keys / sizeof *keys, FIRST_TOOL = 4 };

static bool said(const json_t *delta, size_t k)
{
    const json_t *v = json_object_get(delta, keys[k]);
    return json_string_length(v) || json_array_size(v) || json_object_size(v);
}

/* A chunk like EVENT with the delta DELTA and without an end; both may be NULL: no memory. */
static json_t *chunk_with(const json_t *event, json_t *delta)
{
    json_t *o = json_copy((json_t *)event), *choice = json_copy(choice_of(event)),
           *list = json_array();
    if (json_object_set_new(choice, "delta", delta) |
        json_object_set_new(choice, "finish_reason", json_null()) |
        json_array_append_new(list, choice) | json_object_set_new(o, "choices", list)) {
        json_decref(o);
        return NULL;
    }
    return o;
}

static void add(struct proxy_call *c, const json_t *event, const json_t *delta, size_t k)
{
    json_t *only = json_object(), *value = json_object_get(delta, keys[k]);
    const json_t *role = json_object_get(delta, "role");
    if (role && json_object_set(only, "role", (json_t *)role) < 0)
        c->conn->broken = true;
    if (json_object_set(only, keys[k], value) < 0)
        c->conn->broken = true;
    json_t *o = chunk_with(event, only);
    json_t *holder = json_object_get(choice_of(o), "delta"), *call;
    size_t i;
    if (!o)
        c->conn->broken = true;
    else if (k < FIRST_TOOL)
        proxy_piece_add(c, o, holder, keys[k], false);
    else
        proxy_piece_add(c, o, NULL, NULL, true);
    json_array_foreach(value, i, call)
    {
        const json_t *text = json_object_get(json_object_get(call, "function"), "arguments");
        monitor_text(c->monitor, json_string_value(text), json_string_length(text));
        c->fed += json_string_length(text);
    }
    json_decref(o);
}

/* The arguments of every call of a tool that waits are whole. */
static bool tools_whole(struct proxy_call *c)
{
    bool good = true;
    size_t i, most = 0;
    json_t *call;
    for (size_t index = 0; good && index <= most; index++) {
        buf_reset(&c->arguments);
        for (const struct proxy_piece *p = c->first; good && p; p = p->next) {
            const json_t *delta = json_object_get(choice_of(p->event), "delta");
            json_array_foreach(json_object_get(delta, "tool_calls"), i, call)
            {
                const size_t at = (size_t)json_integer_value(json_object_get(call, "index"));
                const json_t *text =
                    json_object_get(json_object_get(call, "function"), "arguments");
                most = at > most && at < 256 ? at : most;
                if (at == index)
                    good = buf_add(&c->arguments,
                                   json_string_length(text) ? json_string_value(text) : "",
                                   json_string_length(text)) == 0;
            }
        }
        good = good && proxy_arguments_whole(&c->arguments);
    }
    return good;
}

static void finish(struct proxy_call *c, const json_t *event, const char *reason)
{
    json_t *o = chunk_with(event, json_object());
    json_t *end = json_string(reason);
    const bool cut = strcmp(reason, "length") == 0 || strcmp(reason, "content_filter") == 0;
    proxy_pieces_tools(c, !cut && tools_whole(c));
    if (!o || json_object_set_new(choice_of(o), "finish_reason", end) < 0 ||
        json_object_set_new(choice_of(o), "logprobs", json_null()) < 0)
        c->conn->broken = true;
    else
        proxy_piece_add(c, o, NULL, NULL, false);
    json_decref(o);
    proxy_call_finish(c);
}

static void take_usage(struct proxy_call *c, json_t *event)
{
    const json_t *usage = json_object_get(event, "usage");
    if (!json_is_object(usage))
        return;
    c->usage_in = (uint64_t)json_integer_value(json_object_get(usage, "prompt_tokens"));
    c->usage_out = (uint64_t)json_integer_value(json_object_get(usage, "completion_tokens"));
    if (json_array_size(json_object_get(event, "choices")) == 0 && (c->wants_usage || !c->streams))
        proxy_piece_add(c, event, NULL, NULL, false);
}

static void event(struct proxy_call *c, json_t *o)
{
    const json_t *choice = choice_of(o), *delta = json_object_get(choice, "delta"),
                 *error = json_object_get(o, "error");
    const char *reason = json_string_value(json_object_get(choice, "finish_reason"));
    if (json_is_object(error)) {
        const char *what = json_string_value(json_object_get(error, "message"));
        proxy_call_fail(c, GATE_ERROR_HOST, what ? what : "the upstream reported an error");
        return;
    }
    take_usage(c, o);
    if (!choice)
        return;
    if (!json_is_object(delta) || json_integer_value(json_object_get(choice, "index")) != 0 ||
        c->ended) {
        proxy_call_fail(c, GATE_ERROR_FORMAT, "the upstream sent a chunk that is none");
        return;
    }
    proxy_piece_entropy(c, json_object_get(json_object_get(choice, "logprobs"), "content"));
    size_t count = 0;
    for (size_t k = 0; k < KEYS; k++)
        if (said(delta, k)) {
            add(c, o, delta, k);
            count++;
        }
    if (!count && !reason && !c->started)
        proxy_piece_add(c, o, NULL, NULL, false); /* who speaks, and nothing else */
    c->started = true;
    if (reason)
        finish(c, o, reason);
}

/* ---- to the client ---- */

static bool pass(struct proxy_call *c, json_t *o)
{
    const char *id = json_string_value(json_object_get(o, "id"));
    const json_t *delta = json_object_get(choice_of(o), "delta");
    if (!c->id[0] && id)
        snprintf(c->id, sizeof c->id, "%s", id);
    c->tool_sent = c->tool_sent || json_object_get(delta, "tool_calls");
    return json_object_set_new(o, "id", json_string(c->id)) == 0; /* one answer, one id */
}

static void assemble(struct proxy_call *c, json_t *o);

static void cut(struct proxy_call *c)
{
    json_t *o = json_pack("{s:s, s:s, s:i, s:s, s:[{s:i, s:{}, s:s}], s:o}", "id",
                          c->id[0] ? c->id : "cut", "object", "chat.completion.chunk", "created", 0,
                          "model", c->model, "choices", "index", 0, "delta", "finish_reason",
                          "early_abort", "cordon", proxy_answer_verdict(c));
    if (!o) {
        c->conn->broken = true;
        return;
    }
    if (!c->streams) {
        assemble(c, o);
    } else {
        proxy_answer_event(c, o);
        proxy_answer_raw(c, "data: [DONE]\n\n");
    }
    json_decref(o);
}

/* ---- without a stream ---- */

static void append(json_t *to, const char *key, const json_t *more)
{
    const json_t *old = json_object_get(to, key);
    if (!json_is_string(more))
        return;
    if (!json_is_string(old)) {
        json_object_set(to, key, (json_t *)more);
        return;
    }
    json_object_set_new(to, key,
                        json_pack("s%+%", json_string_value(old), json_string_length(old),
                                  json_string_value(more), json_string_length(more)));
}

static void append_call(json_t *message, const json_t *part)
{
    json_t *list = json_object_get(message, "tool_calls");
    const size_t at = (size_t)json_integer_value(json_object_get(part, "index"));
    if (!list) {
        json_object_set_new(message, "tool_calls", json_array());
        list = json_object_get(message, "tool_calls");
    }
    json_t *call = json_array_get(list, at);
    if (!call) {
        json_array_append_new(list, json_deep_copy(part));
        json_object_del(json_array_get(list, json_array_size(list) - 1), "index");
        return;
    }
    append(json_object_get(call, "function"), "arguments",
           json_object_get(json_object_get(part, "function"), "arguments"));
}

static json_t *answer_of(struct proxy_call *c, const json_t *o)
{
    if (c->answer)
        return c->answer;
    c->answer = json_pack("{s:O?, s:s, s:O?, s:O?, s:[{s:i, s:{s:s, s:n}, s:n, s:n}]}", "id",
                          json_object_get(o, "id"), "object", "chat.completion", "created",
                          json_object_get(o, "created"), "model", json_object_get(o, "model"),
                          "choices", "index", 0, "message", "role", "assistant", "content",
                          "logprobs", "finish_reason");
    return c->answer;
}

static void append_logprobs(json_t *choice, const json_t *more)
{
    json_t *old = json_object_get(choice, "logprobs");
    if (!json_is_object(more))
        return;
    if (json_is_object(old) && json_is_array(json_object_get(old, "content")))
        json_array_extend(json_object_get(old, "content"), json_object_get(more, "content"));
    else
        json_object_set_new(choice, "logprobs", json_deep_copy(more));
}

static void assemble(struct proxy_call *c, json_t *o)
{
    json_t *answer = answer_of(c, o), *to = choice_of(answer), *from = choice_of(o), *part;
    json_t *message = json_object_get(to, "message"), *delta = json_object_get(from, "delta");
    const json_t *end = json_object_get(from, "finish_reason");
    size_t i;
    for (size_t k = 0; k < FIRST_TOOL; k++)
        append(message, keys[k], json_object_get(delta, keys[k]));
    json_array_foreach(json_object_get(delta, "tool_calls"), i, part) append_call(message, part);
    append_logprobs(to, json_object_get(from, "logprobs"));
    if (json_is_string(end))
        json_object_set(to, "finish_reason", (json_t *)end);
    if (json_object_get(o, "usage"))
        json_object_set(answer, "usage", json_object_get(o, "usage"));
    if (json_object_get(o, "cordon"))
        json_object_set(answer, "cordon", json_object_get(o, "cordon"));
}

const struct proxy_shape proxy_shape_chat = {.path = "/v1/chat/completions",
                                             .to = PROXY_CHAT,
                                             .check = check,
                                             .body = body,
                                             .event = event,
                                             .pass = pass,
                                             .cut = cut,
                                             .assemble = assemble,
                                             .continues = true};
