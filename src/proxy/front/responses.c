/* SPDX-License-Identifier: Apache-2.0 */
/* OpenAI's responses. Its last event repeats the whole answer, which an attempt that went on for another could not do: so an answer of
 * which the client has a part is never continued, it ends as incomplete. */
#include "proxy/front/front.h"

#include <stdio.h>
#include <string.h>

static bool check(const struct proxy_call *c, char *why)
{
    if (json_is_true(json_object_get(c->request, "background"))) {
        snprintf(why, 300, "background: the gateway carries what it can watch");
        return false;
    }
    return true;
}

static json_t *body(const struct proxy_call *c, const char *model, const struct buf *prefix)
{
    json_t *o = json_copy(c->request);
    (void)prefix; /* never continued */
    if (json_object_set_new(o, "model", json_string(model)) |
        json_object_set_new(o, "stream", json_true())) {
        json_decref(o);
        return NULL;
    }
    return o;
}

/* The last event; it has the answer as a whole. */
static bool is_last(const char *type)
{
    return strcmp(type, "response.completed") == 0 || strcmp(type, "response.incomplete") == 0;
}

static bool is_call(const json_t *item)
{
    const char *type = json_string_value(json_object_get(item, "type"));
    return type && strstr(type, "_call");
}

/* Text that an event repeats, all its parts together. What was not streamed was not watched. */
static size_t repeated(const json_t *o)
{
    static const char *const inside[] = {"response", "item", "part"};
    static const char *const lists[] = {"output", "content"};
    size_t all = json_string_length(json_object_get(o, "text"));
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++)
        if (json_object_get(o, inside[i]))
            all += repeated(json_object_get(o, inside[i]));
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        const json_t *list = json_object_get(o, lists[i]);
        for (size_t k = 0; k < json_array_size(list); k++)
            all += repeated(json_array_get(list, k));
    }
    return all;
}

/* The last event repeats calls of tools, too: those that were cut go. */
static void drop_cut_calls(json_t *output)
{
    for (size_t i = json_array_size(output); i-- > 0;) {
        const json_t *item = json_array_get(output, i),
                     *arguments = json_object_get(item, "arguments");
        const char *status = json_string_value(json_object_get(item, "status"));
        json_t *o = json_is_string(arguments) ? json_loadb(json_string_value(arguments),
                                                           json_string_length(arguments), 0, NULL)
                                              : NULL;
        if (is_call(item) && ((status && strcmp(status, "completed") != 0) ||
                              (json_string_length(arguments) && !json_is_object(o))))
            json_array_remove(output, i);
        json_decref(o);
    }
}

static void take_last(struct proxy_call *c, json_t *o)
{
    const json_t *usage = json_object_get(json_object_get(o, "response"), "usage");
    drop_cut_calls(json_object_get(json_object_get(o, "response"), "output"));
    c->usage_in = (uint64_t)json_integer_value(json_object_get(usage, "input_tokens"));
    c->usage_out = (uint64_t)json_integer_value(json_object_get(usage, "output_tokens"));
    proxy_pieces_tools(c, false);
    proxy_piece_add(c, o, NULL, NULL, false);
    proxy_call_finish(c);
    c->final = true;
}

static void take_delta(struct proxy_call *c, json_t *o)
{
    const json_t *text = json_object_get(o, "delta");
    if (c->block_is_tool && json_is_string(text) &&
        buf_add(&c->arguments, json_string_value(text), json_string_length(text)) < 0)
        proxy_call_fail(c, GATE_ERROR_FORMAT, "the arguments of a tool call are too long");
    proxy_piece_add(c, o, json_is_string(text) ? o : NULL, "delta", c->block_is_tool);
}

static void event(struct proxy_call *c, json_t *o)
{
    const char *type = json_string_value(json_object_get(o, "type"));
    const size_t len = type ? strlen(type) : 0;
    const bool failed = type && strcmp(type, "response.failed") == 0;
    if (!type || strcmp(type, "error") == 0 || failed) {
        const json_t *error = json_object_get(json_object_get(o, "response"), "error");
        const char *what = json_string_value(json_object_get(failed ? error : o, "message"));
        proxy_call_fail(c, type ? GATE_ERROR_HOST : GATE_ERROR_FORMAT,
                        what ? what : "the upstream reported an error");
    } else if (repeated(o) > c->fed) {
        proxy_call_fail(c, GATE_ERROR_FORMAT, "the upstream sent text that it did not stream");
    } else if (is_last(type)) {
        take_last(c, o);
    } else if (strcmp(type, "response.output_item.added") == 0) {
        c->block_is_tool = is_call(json_object_get(o, "item"));
        buf_reset(&c->arguments);
        proxy_piece_add(c, o, NULL, NULL, c->block_is_tool);
    } else if (len > 6 && strcmp(type + len - 6, ".delta") == 0) {
        take_delta(c, o);
    } else {
        proxy_piece_add(c, o, NULL, NULL, c->block_is_tool);
        if (strcmp(type, "response.output_item.done") == 0 && c->block_is_tool) {
            proxy_pieces_tools(c, proxy_arguments_whole(&c->arguments));
            c->block_is_tool = false;
        }
    }
}

static bool pass(struct proxy_call *c, json_t *o)
{
    const char *id = json_string_value(json_object_get(json_object_get(o, "response"), "id"));
    if (id && !c->id[0])
        snprintf(c->id, sizeof c->id, "%s", id);
    return true;
}

static void assemble(struct proxy_call *c, json_t *o)
{
    json_t *response = json_object_get(o, "response");
    if (!response)
        return;
    json_decref(c->answer);
    c->answer = json_incref(response);
}

/* What is known of the answer, and that it was cut. */
static void cut(struct proxy_call *c)
{
    json_t *answer = json_pack(
        "{s:s, s:s, s:i, s:s, s:s, s:[], s:{s:s}, s:o}", "id", c->id[0] ? c->id : "cut", "object",
        "response", "created_at", 0, "model", c->model, "status", "incomplete", "output",
        "incomplete_details", "reason", "early_abort", "cordon", proxy_answer_verdict(c));
    json_t *o = json_pack("{s:s, s:o, s:i}", "type", "response.incomplete", "response", answer,
                          "sequence_number", 0);
    if (!o)
        c->conn->broken = true;
    else if (c->streams)
        proxy_answer_event(c, o);
    else
        assemble(c, o);
    json_decref(o);
}

const struct proxy_shape proxy_shape_responses = {.path = "/v1/responses",
                                                  .to = PROXY_RESPONSES,
                                                  .named = true,
                                                  .check = check,
                                                  .body = body,
                                                  .event = event,
                                                  .pass = pass,
                                                  .cut = cut,
                                                  .assemble = assemble};
