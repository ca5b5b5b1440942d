/* SPDX-License-Identifier: Apache-2.0 */
/* The gateway is ours, but the words in its replies are a model's, so everything is checked as if they were anybody's. A reply ends with
 * the connection, and its length must be the one that its head has: a part of an answer is none. */
#include "proxy/ask/ask.h"

#include "base/limits.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* One line that is safe to show: what is not printable ASCII of somebody else's words becomes a question mark. */
__attribute__((format(printf, 3, 4))) static void end(struct ask_answer *a, enum gateway_end how,
                                                      const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(a->why, sizeof a->why, fmt, ap);
    va_end(ap);
    for (char *at = a->why; *at; at++)
        if (*at < ' ' || *at > '~')
            *at = '?';
    a->end = how;
}

/* ---- the head ---- */

/* The value of Content-Length; -1: there is none that is a number. */
static long long length_of(const char *head, size_t len)
{
    static const char name[] = "\r\ncontent-length:";
    const size_t n = sizeof name - 1;
    for (size_t i = 0; i + n < len; i++) {
        if (strncasecmp(head + i, name, n) != 0)
            continue;
        long long value = 0;
        size_t digits = 0;
        for (i += n; i < len && head[i] == ' '; i++)
            ;
        for (; i < len && head[i] >= '0' && head[i] <= '9' && digits < 12; i++, digits++)
            value = 10 * value + (head[i] - '0');
        return digits && i < len && head[i] == '\r' ? value : -1;
    }
    return -1;
}

/* The status, and where the body begins; 0: it is no whole reply. */
static int status_of(const char *data, size_t len, const char **ret_body, size_t *ret_len)
{
    static const char begin[] = "HTTP/1.1 ";
    const size_t n = sizeof begin - 1;
    const char *blank = len ? memmem(data, len, "\r\n\r\n", 4) : NULL;
    if (!blank || len < n + 4 || memcmp(data, begin, n) != 0)
        return 0;
    int status = 0;
    for (size_t i = n; i < n + 3; i++) {
        if (data[i] < '0' || data[i] > '9')
            return 0;
        status = 10 * status + (data[i] - '0');
    }
    *ret_body = blank + 4;
    *ret_len = len - (size_t)(*ret_body - data);
    return length_of(data, (size_t)(blank - data) + 2) == (long long)*ret_len ? status : 0;
}

/* ---- the body ---- */

static void take_text(struct ask_answer *a, const json_t *text)
{
    const char *s = json_string_value(text);
    size_t len = json_string_length(text);
    if (len > a->text.max - a->text.len) {
        len = a->text.max - a->text.len;
        while (len && ((unsigned char)s[len] & 0xc0) == 0x80) /* a character is not cut in two */
            len--;
        a->cut = true;
    }
    if (len && buf_add(&a->text, s, len) < 0)
        end(a, GATEWAY_FAILED, "no memory for the answer");
}

/* What its protocol calls the reason of its end; NULL: it is no answer of that protocol. */
static const char *take_chat(struct ask_answer *a, const json_t *o)
{
    const json_t *choice = json_array_get(json_object_get(o, "choices"), 0),
                 *message = json_object_get(choice, "message"),
                 *content = json_object_get(message, "content"),
                 *refusal = json_object_get(message, "refusal");
    if (!json_is_object(message))
        return NULL;
    take_text(a, json_is_string(content) ? content : refusal);
    return json_string_value(json_object_get(choice, "finish_reason"));
}

static const char *take_message(struct ask_answer *a, const json_t *o)
{
    const json_t *list = json_object_get(o, "content"), *block;
    size_t i;
    if (!json_is_array(list))
        return NULL;
    json_array_foreach((json_t *)list, i, block)
    {
        const char *type = json_string_value(json_object_get(block, "type"));
        if (type && strcmp(type, "text") == 0)
            take_text(a, json_object_get(block, "text"));
    }
    return json_string_value(json_object_get(o, "stop_reason"));
}

static void take_answer(struct ask_answer *a, const json_t *o, bool anthropic)
{
    static const char *const whole[] = {"stop", "end_turn", "stop_sequence"}, *const part[] = {
                                                                                  "length",
                                                                                  "max_tokens",
                                                                                  "content_filter",
                                                                                  "refusal"};
    const char *reason = anthropic ? take_message(a, o) : take_chat(a, o);
    const json_t *verdict = json_object_get(o, "cordon");
    const char *why = json_string_value(json_object_get(verdict, "reason")),
               *by = json_string_value(json_object_get(verdict, "detector"));
    if (a->why[0])
        return;
    if (reason && strcmp(reason, "early_abort") == 0) {
        end(a, GATEWAY_ABORTED,
            "early_abort: %.40s by %.40s after %lld tokens, and no tier is left", why ? why : "cut",
            by ? by : "the monitor",
            (long long)json_integer_value(json_object_get(verdict, "tokens")));
        return;
    }
    for (size_t i = 0; reason && i < sizeof whole / sizeof *whole; i++)
        if (strcmp(reason, whole[i]) == 0) {
            a->end = GATEWAY_ANSWERED;
            return;
        }
    for (size_t i = 0; reason && i < sizeof part / sizeof *part; i++)
        if (strcmp(reason, part[i]) == 0) {
            a->end = GATEWAY_ANSWERED;
            a->cut = true;
            return;
        }
    end(a, GATEWAY_FAILED, "the model's answer ended in a way that is not known: %.60s",
        reason ? reason : "it says none");
}

static void take_error(struct ask_answer *a, const json_t *o, int status)
{
    const char *said = json_string_value(json_object_get(json_object_get(o, "error"), "message"));
    const bool refused = status == 400 || status == 404 || status == 413 || status == 429;
    end(a,
        refused         ? GATEWAY_REFUSED
        : status == 504 ? GATEWAY_LATE
                        : GATEWAY_FAILED,
        "the gateway answered with status %d: %.200s", status, said ? said : "it says nothing");
}

void ask_reply(const char *data, size_t len, bool anthropic, struct ask_answer *ret)
{
    const char *body = NULL;
    size_t body_len = 0;
    *ret = (struct ask_answer){.end = GATEWAY_FAILED};
    buf_init(&ret->text, LIMIT_ASK_TEXT);
    const int status = status_of(data, len, &body, &body_len);
    json_t *o = status ? json_loadb(body, body_len, JSON_REJECT_DUPLICATES, NULL) : NULL;
    if (!status)
        end(ret, GATEWAY_FAILED, "the gateway's reply is not whole");
    else if (status != 200)
        take_error(ret, o, status);
    else if (!json_is_object(o))
        end(ret, GATEWAY_FAILED, "the gateway's reply is no JSON object");
    else
        take_answer(ret, o, anthropic);
    json_decref(o);
}

void ask_answer_done(struct ask_answer *a)
{
    buf_done(&a->text);
}
