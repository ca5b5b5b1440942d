/* SPDX-License-Identifier: Apache-2.0 */
/* A filter is a program of the guest's: it may loop, and the deadline of the process ends it. It has no environment and no
 * module to import, since the process has neither; libjq would end the process over one. */
#include "tools/inside.h"

#include "base/limits.h"
#include "sys/fd.h"

#include <jq.h>
#include <stdio.h>
#include <string.h>

#define FILE_MAX    (8 * MIB)
#define RESULTS_MAX 10000

static void note_error(void *ctx, jv message)
{
    struct tools_call *c = ctx;
    if (!c->refusal[0] && jv_get_kind(message) == JV_KIND_STRING)
        snprintf(c->refusal, sizeof c->refusal, "%.300s", jv_string_value(message));
    jv_free(message);
}

/* Takes VALUE. */
static json_t *read_back(struct tools_call *c, jv value)
{
    jv text = jv_dump_string(value, 0);
    json_t *plain = json_loadb(jv_string_value(text), (size_t)jv_string_length_bytes(jv_copy(text)),
                               JSON_DECODE_ANY, NULL);
    jv_free(text);
    json_t *marked = plain ? tools_mark_all(c, plain) : NULL;
    json_decref(plain);
    return marked;
}

/* The filter's own error, or halt. */
static enum tools_end complain(struct tools_call *c, jv last)
{
    char said[300] = "";
    if (jv_invalid_has_msg(jv_copy(last))) {
        jv message = jv_invalid_get_msg(jv_copy(last));
        jv text = jv_get_kind(message) == JV_KIND_STRING ? jv_copy(message)
                                                         : jv_dump_string(jv_copy(message), 0);
        snprintf(said, sizeof said, "%.290s", jv_string_value(text));
        jv_free(text);
        jv_free(message);
    }
    jv_free(last);
    return said[0] ? tools_refuse(c, "the filter failed: %s", said) : TOOLS_OK;
}

/* Takes INPUT. */
static enum tools_end filter(struct tools_call *c, jq_state *jq, jv input, json_t *results,
                             bool *ret_cut)
{
    size_t bytes = 0;
    jq_start(jq, input, 0);
    jv value = jq_next(jq);
    while (jv_is_valid(value)) {
        json_t *one = read_back(c, value);
        char *text = one ? json_dumps(one, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
        bytes += text ? strlen(text) + 1 : 0;
        free(text);
        *ret_cut = json_array_size(results) == RESULTS_MAX || bytes > LIMIT_ANSWER_TEXT;
        if (*ret_cut || !one) {
            json_decref(one);
            return one ? TOOLS_OK : tools_fail(c, "a result cannot be read as JSON");
        }
        json_array_append_new(results, one);
        value = jq_next(jq);
    }
    return complain(c, value);
}

/* Directives stand at the beginning of a filter and nowhere else. */
static bool loads_modules(const char *filter)
{
    static const char *const words[] = {"import", "include", "module"};
    const char *at = filter + strspn(filter, " \t\r\n");
    while (*at == '#') {
        at += strcspn(at, "\n");
        at += strspn(at, " \t\r\n");
    }
    const size_t len =
        strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789:");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (len == strlen(words[i]) && memcmp(at, words[i], len) == 0)
            return true;
    return false;
}

static enum tools_end run(struct tools_call *c, const struct tools_place *p, const struct buf *text)
{
    bool cut = false;
    if (loads_modules(tools_text(c, "filter", ".")))
        return tools_refuse(c, "the filter is wrong: there are no modules here; write their "
                               "functions into it");
    jv input = jv_parse_sized(text->data ? text->data : "", (int)text->len);
    if (!jv_is_valid(input)) {
        jv_free(input);
        return tools_refuse(c, "%.200s is not one JSON text", p->shown);
    }
    jq_state *jq = jq_init();
    if (!jq) {
        jv_free(input);
        return tools_fail(c, "no memory");
    }
    json_t *results = json_array();
    jq_set_error_cb(jq, note_error, c);
    enum tools_end end;
    if (jq_compile(jq, tools_text(c, "filter", "."))) {
        c->refusal[0] = 0;
        end = filter(c, jq, input, results, &cut);
    } else {
        jv_free(input);
        char said[200];
        snprintf(said, sizeof said, "%.190s", c->refusal);
        end = tools_refuse(c, "the filter is wrong: %s", said);
    }
    if (end == TOOLS_OK)
        c->answer =
            json_pack("{s:O, s:s, s:b}", "results", results, "source", p->shown, "cut", cut);
    json_decref(results);
    jq_teardown(&jq);
    return end;
}

enum tools_end tools_do_jq(struct tools_call *c)
{
    struct tools_place p;
    struct stat st;
    struct buf text;
    buf_init(&text, FILE_MAX + 1);
    enum tools_end end = tools_read_whole(c, tools_text(c, "path", ""), FILE_MAX, &p, &st, &text);
    if (end == TOOLS_OK)
        end = run(c, &p, &text);
    buf_done(&text);
    tools_place_close(&p);
    return end;
}
