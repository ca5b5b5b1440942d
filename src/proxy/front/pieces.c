/* SPDX-License-Identifier: Apache-2.0 */
/* What a model wrote waits here until it is known to be no part of a loop: monitor_settled says how far. Events wait in their order, so
 * that a client gets them as the upstream sent them; those of a tool call wait until the call is whole, because half a call may be
 * carried out by who does not look. */
#include "proxy/front/front.h"

#include "monitor/entropy.h"

#include <stdlib.h>
#include <string.h>

#define TOP_MAX    64
#define VOCABULARY 131072

static void free_piece(struct proxy_call *c, struct proxy_piece *p)
{
    c->held -= p->size;
    json_decref(p->event);
    free(p);
}

void proxy_piece_add(struct proxy_call *c, json_t *event, json_t *holder, const char *key,
                     bool tool)
{
    const json_t *text = holder ? json_object_get(holder, key) : NULL;
    const size_t len = json_string_length(text);
    struct proxy_piece *p = c->failed ? NULL : calloc(1, sizeof *p);
    if (c->failed)
        return;
    if (!p || c->held + len + sizeof *p > LIMIT_PROXY_HELD) {
        free(p);
        proxy_call_fail(c, GATE_ERROR_FORMAT,
                        "the upstream sent more than the gateway holds back at once");
        return;
    }
    *p = (struct proxy_piece){.event = json_incref(event),
                              .holder = json_is_string(text) ? holder : NULL,
                              .key = key,
                              .start = c->fed,
                              .len = len,
                              .size = len + sizeof *p + 512,
                              .tool = tool};
    c->held += p->size;
    c->fed += len;
    *c->last = p;
    c->last = &p->next;
    if (len)
        monitor_text(c->monitor, json_string_value(text), len);
}

void proxy_piece_entropy(struct proxy_call *c, const json_t *tokens)
{
    for (size_t i = 0; i < json_array_size(tokens); i++) {
        const json_t *top = json_object_get(json_array_get(tokens, i), "top_logprobs");
        double logprobs[TOP_MAX];
        size_t count = 0;
        for (size_t k = 0; k < json_array_size(top) && count < TOP_MAX; k++) {
            const json_t *n = json_object_get(json_array_get(top, k), "logprob");
            if (json_is_number(n))
                logprobs[count++] = json_number_value(n);
        }
        struct monitor_entropy h;
        if (entropy_of_top(logprobs, count, VOCABULARY, &h))
            monitor_saw_entropy(c->monitor, &h);
    }
}

/* To the client, or into the answer that is made for it. */
static void hand_on(struct proxy_call *c, struct proxy_piece *p)
{
    const json_t *text = p->holder ? json_object_get(p->holder, p->key) : NULL;
    const bool visible = p->key && (strcmp(p->key, "content") == 0 || strcmp(p->key, "text") == 0);
    if (text && visible && c->text.len + json_string_length(text) <= c->text.max)
        (void)!buf_add(&c->text, json_string_value(text), json_string_length(text));
    c->released = p->start + p->len;
    if (!c->streams)
        c->shape->assemble(c, p->event);
    else if (c->shape->pass(c, p->event))
        proxy_answer_event(c, p->event);
}

static struct proxy_piece *take_first(struct proxy_call *c)
{
    struct proxy_piece *p = c->first;
    c->first = p->next;
    if (!c->first)
        c->last = &c->first;
    return p;
}

void proxy_pieces_release(struct proxy_call *c, uint64_t upto)
{
    while (c->first && !c->first->tool && c->first->start + c->first->len <= upto) {
        struct proxy_piece *p = take_first(c);
        hand_on(c, p);
        free_piece(c, p);
    }
}

void proxy_pieces_tools(struct proxy_call *c, bool whole)
{
    struct proxy_piece **at = &c->first;
    while (*at) {
        struct proxy_piece *p = *at;
        if (!p->tool || whole) {
            p->tool = false;
            at = &p->next;
            continue;
        }
        *at = p->next;
        free_piece(c, p);
    }
    c->last = at;
}

void proxy_pieces_drop(struct proxy_call *c)
{
    while (c->first)
        free_piece(c, take_first(c));
}

/* The first LEN bytes of its text, and no half of a character. */
static void shorten(struct proxy_piece *p, uint64_t len)
{
    const char *s = json_string_value(json_object_get(p->holder, p->key));
    while (len && ((unsigned char)s[len] & 0xc0) == 0x80)
        len--;
    json_object_set_new(p->holder, p->key, json_stringn(s, (size_t)len));
    p->len = len;
}

void proxy_pieces_cut(struct proxy_call *c, uint64_t at)
{
    proxy_pieces_tools(c, false);
    proxy_pieces_release(c, at);
    if (c->first && c->first->holder && c->first->start < at) {
        struct proxy_piece *p = take_first(c);
        shorten(p, at - p->start);
        hand_on(c, p);
        free_piece(c, p);
    }
    proxy_pieces_drop(c);
}

bool proxy_arguments_whole(const struct buf *text)
{
    if (text->len == 0)
        return true;
    json_t *o = json_loadb(text->data, text->len, 0, NULL);
    const bool whole = json_is_object(o);
    json_decref(o);
    return whole;
}
