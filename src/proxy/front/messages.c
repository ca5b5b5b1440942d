/* SPDX-License-Identifier: Apache-2.0 */
/* Anthropic's messages. Blocks follow each other, so the client's numbers are counted anew as blocks go to it: a block that was dropped
 * leaves no gap, and those of a second attempt go on where the first ended. */
#include "proxy/front/front.h"

#include <stdio.h>
#include <string.h>

/* ---- the request ---- */

static bool check(const struct proxy_call *c, char *why)
{
    if (json_is_array(json_object_get(c->request, "messages")))
        return true;
    snprintf(why, 300, "messages: a list is wanted");
    return false;
}

static json_t *body(const struct proxy_call *c, const char *model, const struct buf *prefix)
{
    json_t *o = json_copy(c->request);
    int bad = json_object_set_new(o, "model", json_string(model)) |
              json_object_set_new(o, "stream", json_true());
    size_t len = prefix->len; /* the interface takes no blanks at the end of it */
    while (len && strchr(" \t\r\n", prefix->data[len - 1]))
        len--;
    if (len) {
        json_t *messages = json_copy(json_object_get(o, "messages"));
        bad |= json_array_append_new(
            messages, json_pack("{s:s, s:s%}", "role", "assistant", "content", prefix->data, len));
        bad |= json_object_set_new(o, "messages", messages);
    }
    if (!bad)
        return o;
    json_decref(o);
    return NULL;
}

/* ---- events ---- */

static void take_usage(struct proxy_call *c, const json_t *usage)
{
    const json_t *in = json_object_get(usage, "input_tokens"),
                 *out = json_object_get(usage, "output_tokens");
    if (json_is_integer(in))
        c->usage_in = (uint64_t)json_integer_value(in);
    if (json_is_integer(out))
        c->usage_out = (uint64_t)json_integer_value(out);
}

static void take_delta(struct proxy_call *c, json_t *o)
{
    json_t *delta = json_object_get(o, "delta");
    const json_t *json = json_object_get(delta, "partial_json");
    if (json_is_string(json)) {
        if (buf_add(&c->arguments, json_string_value(json), json_string_length(json)) < 0)
            proxy_call_fail(c, GATE_ERROR_FORMAT, "the arguments of a tool call are too long");
        proxy_piece_add(c, o, delta, "partial_json", true);
    } else if (json_is_string(json_object_get(delta, "thinking"))) {
        proxy_piece_add(c, o, delta, "thinking", c->block_is_tool);
    } else {
        proxy_piece_add(c, o, json_object_get(delta, "text") ? delta : NULL, "text",
                        c->block_is_tool);
    }
}

static void event(struct proxy_call *c, json_t *o)
{
    const char *type = json_string_value(json_object_get(o, "type"));
    json_t *block = json_object_get(o, "content_block");
    if (!type || strcmp(type, "error") == 0) {
        const char *what =
            json_string_value(json_object_get(json_object_get(o, "error"), "message"));
        proxy_call_fail(c, type ? GATE_ERROR_HOST : GATE_ERROR_FORMAT,
                        what ? what : "the upstream reported an error");
    } else if (strcmp(type, "message_start") == 0) {
        take_usage(c, json_object_get(json_object_get(o, "message"), "usage"));
        proxy_piece_add(c, o, NULL, NULL, false);
    } else if (strcmp(type, "content_block_start") == 0) {
        const char *kind = json_string_value(json_object_get(block, "type"));
        c->block_is_tool = kind && strcmp(kind, "tool_use") == 0;
        buf_reset(&c->arguments);
        /* a block may begin with a part of its text */
        proxy_piece_add(c, o, json_object_get(block, "text") ? block : NULL, "text",
                        c->block_is_tool);
    } else if (strcmp(type, "content_block_delta") == 0) {
        take_delta(c, o);
    } else if (strcmp(type, "content_block_stop") == 0) {
        proxy_piece_add(c, o, NULL, NULL, c->block_is_tool);
        if (c->block_is_tool)
            proxy_pieces_tools(c, proxy_arguments_whole(&c->arguments));
        c->block_is_tool = false;
    } else if (strcmp(type, "message_delta") == 0) {
        take_usage(c, json_object_get(o, "usage"));
        proxy_piece_add(c, o, NULL, NULL, false);
    } else if (strcmp(type, "message_stop") == 0) {
        proxy_pieces_tools(c, false);
        proxy_piece_add(c, o, NULL, NULL, false);
        proxy_call_finish(c);
        c->final = true;
    } /* others, pings among them, are nothing that a client waits for */
}

/* ---- to the client ---- */

static bool pass(struct proxy_call *c, json_t *o)
{
    const char *type = json_string_value(json_object_get(o, "type"));
    const char *kind =
        json_string_value(json_object_get(json_object_get(o, "content_block"), "type"));
    if (strcmp(type, "message_start") == 0) {
        const bool first = !c->started;
        c->started = true;
        return first; /* a second attempt goes on with the message of the first */
    }
    if (strcmp(type, "content_block_start") == 0) {
        c->block_open = true;
        c->tool_sent = c->tool_sent || (kind && strcmp(kind, "tool_use") == 0);
        c->blocks++;
    } else if (strcmp(type, "content_block_stop") == 0) {
        c->block_open = false;
    } else if (strcmp(type, "content_block_delta") != 0) {
        return true;
    }
    return json_object_set_new(o, "index", json_integer((json_int_t)c->blocks - 1)) == 0;
}

static void close_block(struct proxy_call *c)
{
    json_t *o = c->block_open ? json_pack("{s:s, s:I}", "type", "content_block_stop", "index",
                                          (json_int_t)c->blocks - 1)
                              : NULL;
    if (o && c->streams)
        proxy_answer_event(c, o);
    json_decref(o);
    c->block_open = false;
}

/* The block that was cut ends before another attempt begins one of its own. */
static void leave(struct proxy_call *c)
{
    close_block(c);
    c->block_is_tool = false;
}

static void assemble(struct proxy_call *c, json_t *o);

static void cut(struct proxy_call *c)
{
    json_t *o = json_pack("{s:s, s:{s:s, s:n}, s:{s:I}, s:o}", "type", "message_delta", "delta",
                          "stop_reason", "early_abort", "stop_sequence", "usage", "output_tokens",
                          (json_int_t)monitor_verdict(c->monitor)->tokens, "cordon",
                          proxy_answer_verdict(c));
    json_t *stop = json_pack("{s:s}", "type", "message_stop");
    close_block(c);
    if (!o || !stop)
        c->conn->broken = true;
    else if (!c->streams)
        assemble(c, o);
    else {
        proxy_answer_event(c, o);
        proxy_answer_event(c, stop);
    }
    json_decref(o);
    json_decref(stop);
}

/* ---- without a stream ---- */

static void append(json_t *to, const char *key, const json_t *more)
{
    const json_t *old = json_object_get(to, key);
    if (json_is_string(more))
        json_object_set_new(to, key,
                            json_pack("s%+%", old ? json_string_value(old) : "",
                                      json_string_length(old), json_string_value(more),
                                      json_string_length(more)));
}

static void assemble_delta(struct proxy_call *c, json_t *block, const json_t *delta)
{
    const json_t *json = json_object_get(delta, "partial_json");
    append(block, "text", json_object_get(delta, "text"));
    append(block, "thinking", json_object_get(delta, "thinking"));
    append(block, "signature", json_object_get(delta, "signature"));
    if (json_is_string(json) &&
        buf_add(&c->arguments, json_string_value(json), json_string_length(json)) < 0)
        c->conn->broken = true;
}

static void assemble(struct proxy_call *c, json_t *o)
{
    const char *type = json_string_value(json_object_get(o, "type"));
    json_t *content = json_object_get(c->answer, "content");
    json_t *block = json_array_get(content, json_array_size(content) - 1);
    const char *key;
    json_t *value;
    if (strcmp(type, "message_start") == 0 && !c->answer) {
        c->answer = json_deep_copy(json_object_get(o, "message"));
        json_object_set_new(c->answer, "content", json_array());
    } else if (strcmp(type, "content_block_start") == 0) {
        buf_reset(&c->arguments);
        json_array_append_new(content, json_deep_copy(json_object_get(o, "content_block")));
    } else if (strcmp(type, "content_block_delta") == 0) {
        assemble_delta(c, block, json_object_get(o, "delta"));
    } else if (strcmp(type, "content_block_stop") == 0 && c->arguments.len) {
        json_object_set_new(block, "input",
                            json_loadb(c->arguments.data, c->arguments.len, 0, NULL));
    } else if (strcmp(type, "message_delta") == 0) {
        json_object_update(c->answer, json_object_get(o, "delta"));
        json_object_foreach(json_object_get(o, "usage"), key, value)
            json_object_set(json_object_get(c->answer, "usage"), key, value);
        if (json_object_get(o, "cordon"))
            json_object_set(c->answer, "cordon", json_object_get(o, "cordon"));
    }
}

const struct proxy_shape proxy_shape_messages = {.path = "/v1/messages",
                                                 .to = PROXY_MESSAGES,
                                                 .anthropic = true,
                                                 .named = true,
                                                 .check = check,
                                                 .body = body,
                                                 .event = event,
                                                 .pass = pass,
                                                 .leave = leave,
                                                 .cut = cut,
                                                 .assemble = assemble,
                                                 .continues = true};
