/* SPDX-License-Identifier: Apache-2.0 */
/* Answers and their fields. The text of the server is kept as it came; a string is decoded when it is asked for. */
#include "client/inside.h"

#include <stdlib.h>
#include <string.h>

/* ---- made of a reply ---- */

/* What was refused before there was a result has only words: they become the fields that a caller looks at. */
static int words_alone(struct cordon_answer *a, enum client_kind kind)
{
    struct jsonw j = {.out = &a->own};
    const char *text = a->text.data ? a->text.data : "", *rest = text;
    size_t len = a->text.len, status = 0;
    if (kind == CLIENT_RESULT && strncmp(text, "status: ", 8) == 0) {
        status = strcspn(text + 8, "\n");
        rest = text + 8 + status + (text[8 + status] == '\n');
        len -= (size_t)(rest - text);
    }
    while (len && rest[len - 1] == '\n')
        len--;
    buf_init(&a->own, CLIENT_REPLY_MAX);
    jsonw_open(&j, NULL, '{');
    if (kind == CLIENT_EVALUATION) {
        jsonw_open(&j, "error", '{');
        jsonw_string(&j, "type", "refused");
        jsonw_bytes(&j, "message", rest, len);
        jsonw_close(&j, '}');
    } else if (kind != CLIENT_SESSION) {
        jsonw_bytes(&j, "status", status ? text + 8 : "refused", status ? status : 7);
        jsonw_bytes(&j, kind == CLIENT_REPORT ? "message" : "reason", rest, len);
    }
    jsonw_close(&j, '}');
    a->raw = a->own.data;
    a->raw_len = a->own.len;
    return j.bad;
}

static int add_text(struct cordon_answer *a, const struct client_value *block)
{
    struct client_value v;
    size_t len;
    if (!client_member(block->text, block->len, "text", &v) || v.kind != JSON_STRING)
        return 0;
    char *text = client_decode(&v, &len);
    const int r = text ? buf_add(&a->text, text, len) : ERR_MEMORY;
    free(text);
    return r;
}

/* The texts of all blocks, one behind the other. */
static int take_text(struct cordon_answer *a, const struct client_value *content)
{
    struct cordon_error err;
    struct json j;
    struct json_token t;
    int r = 0;
    json_init(&j, content->text, content->len, CORDON_CONTEXT, &err);
    if (json_next(&j, &t) || t.kind != JSON_ARRAY)
        return 0;
    while (r == 0 && !json_next(&j, &t) && t.kind == JSON_OBJECT && !json_skip(&j, &t)) {
        const struct client_value block = {t.kind, false, content->text + t.start, j.at - t.start};
        r = add_text(a, &block);
    }
    return r;
}

struct cordon_answer *client_answer_new(char *reply, const struct client_value *result,
                                        enum client_kind kind)
{
    struct cordon_answer *a = calloc(1, sizeof *a);
    struct client_value v;
    if (!a) {
        free(reply);
        return NULL;
    }
    a->reply = reply;
    buf_init(&a->text, CLIENT_REPLY_MAX);
    buf_init(&a->own, CLIENT_REPLY_MAX);
    int r = client_member(result->text, result->len, "content", &v) ? take_text(a, &v) : 0;
    a->is_error = client_member(result->text, result->len, "isError", &v) && v.kind == JSON_TRUE;
    if (client_member(result->text, result->len, "structuredContent", &v) &&
        v.kind == JSON_OBJECT) {
        a->raw = v.text;
        a->raw_len = v.len;
    } else if (r == 0) {
        r = words_alone(a, kind);
    }
    if (r == 0)
        return a;
    cordon_answer_free(a);
    return NULL;
}

void cordon_answer_free(struct cordon_answer *a)
{
    if (!a)
        return;
    while (a->texts) {
        struct client_text *t = a->texts;
        a->texts = t->next;
        free(t->data);
        free(t);
    }
    buf_done(&a->own);
    buf_done(&a->text);
    free(a->reply);
    free(a);
}

/* ---- fields ---- */

const char *cordon_answer_text(const struct cordon_answer *a)
{
    return a->text.data ? a->text.data : "";
}

bool cordon_answer_is_error(const struct cordon_answer *a)
{
    return a->is_error;
}

const char *cordon_answer_raw(const struct cordon_answer *a, size_t *ret_len)
{
    if (ret_len)
        *ret_len = a->raw_len;
    return a->raw;
}

const char *cordon_answer_string(struct cordon_answer *a, const char *field, size_t *ret_len)
{
    struct client_value v;
    size_t ignored, *len = ret_len ? ret_len : &ignored, name = strlen(field) + 1;
    for (struct client_text *t = a->texts; t; t = t->next)
        if (strcmp(t->field, field) == 0) {
            *len = t->len;
            return t->data;
        }
    if (!client_member(a->raw, a->raw_len, field, &v) || v.kind != JSON_STRING)
        return NULL;
    struct client_text *t = malloc(sizeof *t + name);
    if (!t)
        return NULL;
    t->data = client_decode(&v, &t->len);
    if (!t->data) {
        free(t);
        return NULL;
    }
    memcpy(t->field, field, name);
    t->next = a->texts;
    a->texts = t;
    *len = t->len;
    return t->data;
}

bool cordon_answer_integer(const struct cordon_answer *a, const char *field, int64_t *ret_number)
{
    struct client_value v;
    return client_member(a->raw, a->raw_len, field, &v) && client_integer(&v, ret_number);
}

bool cordon_answer_boolean(const struct cordon_answer *a, const char *field)
{
    struct client_value v;
    return client_member(a->raw, a->raw_len, field, &v) && v.kind == JSON_TRUE;
}

const char *cordon_answer_json(const struct cordon_answer *a, const char *field, size_t *ret_len)
{
    struct client_value v;
    if (!client_member(a->raw, a->raw_len, field, &v))
        return NULL;
    const size_t quote = v.kind == JSON_STRING;
    if (ret_len)
        *ret_len = v.len + 2 * quote;
    return v.text - quote;
}
