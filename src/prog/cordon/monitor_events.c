/* SPDX-License-Identifier: Apache-2.0 */
/* A stream of text carries entropies only where the server gives log-probabilities; all else is found in the text alone. What an event
 * says of other things (roles, usage, pings) is skipped: it is known, and not part of the generation. */
#include "monitor_events.h"

#include "monitor/entropy.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TOP_MAX    1024
#define LOGITS_MAX (1 << 20)

static bool text_of(struct monitor_events *e, const json_t *s)
{
    if (!json_is_string(s))
        return false;
    monitor_text(e->monitor, json_string_value(s), json_string_length(s));
    return true;
}

/* A list of numbers, or of objects with "logprob". */
static void top(struct monitor_events *e, const json_t *list)
{
    double logprobs[TOP_MAX];
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(list) && count < TOP_MAX; i++) {
        const json_t *item = json_array_get(list, i);
        const json_t *n = json_is_object(item) ? json_object_get(item, "logprob") : item;
        if (json_is_number(n))
            logprobs[count++] = json_number_value(n);
    }
    struct monitor_entropy h;
    if (entropy_of_top(logprobs, count, e->vocabulary, &h))
        monitor_saw_entropy(e->monitor, &h);
}

static bool logits(struct monitor_events *e, const json_t *list)
{
    size_t count = json_array_size(list);
    float *x = count && count <= LOGITS_MAX ? malloc(count * sizeof *x) : NULL;
    if (!x)
        return false;
    for (size_t i = 0; i < count; i++)
        x[i] = (float)json_number_value(json_array_get(list, i));
    struct monitor_entropy h;
    bool good = entropy_of_logits(x, count, &h);
    free(x);
    if (good)
        monitor_saw_entropy(e->monitor, &h);
    return good;
}

/* What our own lines say beside the text or the token: {"text": "...", "top_logprobs": [...]}. */
static bool distribution(struct monitor_events *e, const json_t *o)
{
    const json_t *t = json_object_get(o, "top_logprobs"), *l = json_object_get(o, "logits"),
                 *h = json_object_get(o, "entropy");
    if (json_is_array(t))
        top(e, t);
    else if (json_is_array(l))
        return logits(e, l);
    else if (json_is_number(h))
        monitor_saw_entropy(e->monitor,
                            &(struct monitor_entropy){json_number_value(h), json_number_value(h)});
    return true;
}

/* OpenAI: choices[].delta.content, .reasoning_content, or .text of completions; logprobs.content[].top_logprobs. */
static bool choices(struct monitor_events *e, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *choice = json_array_get(list, i), *delta = json_object_get(choice, "delta");
        const json_t *tokens = json_object_get(json_object_get(choice, "logprobs"), "content");
        for (size_t k = 0; k < json_array_size(tokens); k++)
            top(e, json_object_get(json_array_get(tokens, k), "top_logprobs"));
        text_of(e, json_object_get(delta, "reasoning_content"));
        text_of(e, json_object_get(delta, "content"));
        text_of(e, json_object_get(choice, "text"));
    }
    return true;
}

static bool event(struct monitor_events *e, const json_t *o)
{
    const json_t *list = json_object_get(o, "choices"), *delta = json_object_get(o, "delta"),
                 *id = json_object_get(o, "token");
    if (json_is_array(list))
        return choices(e, list);
    if (json_is_object(delta)) { /* Anthropic: text_delta, thinking_delta, input_json_delta */
        text_of(e, json_object_get(delta, "text"));
        text_of(e, json_object_get(delta, "thinking"));
        text_of(e, json_object_get(delta, "partial_json"));
        return true;
    }
    if (json_is_integer(id)) {
        bool good = distribution(e, o);
        monitor_token(e->monitor, (uint64_t)json_integer_value(id), NULL);
        return good;
    }
    if (json_is_string(json_object_get(o, "text")))
        return distribution(e, o) && text_of(e, json_object_get(o, "text"));
    if (json_is_string(json_object_get(o, "content"))) /* llama.cpp */
        return text_of(e, json_object_get(o, "content"));
    return json_is_string(
        json_object_get(o, "type")); /* Anthropic's other events: message_start, ping */
}

static bool is_field(const char *line, size_t len, const char *name)
{
    return len >= strlen(name) && memcmp(line, name, strlen(name)) == 0;
}

void monitor_events_line(struct monitor_events *e, const char *line, size_t len)
{
    e->lines++;
    while (len && (line[len - 1] == '\r' || line[len - 1] == ' '))
        len--;
    if (!len || line[0] == ':' || is_field(line, len, "event:") || is_field(line, len, "id:") ||
        is_field(line, len, "retry:"))
        return; /* of server-sent events: no data */
    if (is_field(line, len, "data:")) {
        line += 5;
        len -= 5;
        while (len && *line == ' ') {
            line++;
            len--;
        }
    }
    if (len == 6 && memcmp(line, "[DONE]", 6) == 0)
        return;
    json_t *o =
        json_loadb(line, len, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    bool known = json_is_string(o) ? text_of(e, o) : json_is_object(o) && event(e, o);
    json_decref(o);
    if (!known && !e->unknown++)
        e->first_unknown = e->lines;
}
