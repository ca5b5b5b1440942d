/* SPDX-License-Identifier: Apache-2.0 */
/* Which function carries which tool of the table out, and what all of them say things with. */
#include "tools/api.h"
#include "tools/inside.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 2, 0))) static void say(struct tools_call *c, const char *fmt,
                                                      va_list ap)
{
    vsnprintf(c->refusal, sizeof c->refusal, fmt, ap);
}

enum tools_end tools_refuse(struct tools_call *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say(c, fmt, ap);
    va_end(ap);
    return TOOLS_REFUSED;
}

enum tools_end tools_fail(struct tools_call *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say(c, fmt, ap);
    va_end(ap);
    return TOOLS_FAILED;
}

const char *tools_text(const struct tools_call *c, const char *name, const char *otherwise)
{
    const json_t *v = json_object_get(c->args, name);
    return json_is_string(v) ? json_string_value(v) : otherwise;
}

uint64_t tools_number(const struct tools_call *c, const char *name, uint64_t otherwise)
{
    const json_t *v = json_object_get(c->args, name);
    return json_is_integer(v) ? (uint64_t)json_integer_value(v) : otherwise;
}

/* SHOWN is in the answer, too, marked: at most four times as long. */
static size_t room_beside(const char *shown)
{
    const size_t beside = KIB + 4 * strlen(shown);
    return beside < LIMIT_ANSWER ? LIMIT_ANSWER - beside : 0;
}

static size_t size_of(const json_t *v)
{
    return json_dumpb(v, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY);
}

bool tools_fits(const json_t *text, const char *shown)
{
    return size_of(text) <= room_beside(shown);
}

bool tools_add(struct tools_call *c, json_t *list, json_t *one, const char *shown)
{
    c->listed += size_of(one) + 1;
    const bool fits = one && c->listed <= room_beside(shown);
    if (fits)
        json_array_append(list, one);
    json_decref(one);
    return fits;
}

static enum tools_end do_echo(struct tools_call *c)
{
    c->answer = json_incref(c->args);
    return TOOLS_OK;
}

static const struct {
    const char *name;
    enum tools_end (*run)(struct tools_call *c);
} rows[] = {
    {"echo", do_echo},
    {"ReadFile", tools_do_read},
    {"ListFiles", tools_do_list},
    {"FileInfo", tools_do_info},
    {"Find", tools_do_find},
    {"Grep", tools_do_grep},
    {"Jq", tools_do_jq},
    {"WriteFile", tools_do_write},
    {"Edit", tools_do_edit},
    {"CreateTool", tools_do_create},
    {"LoadModule", tools_do_load},
    {"Search", tools_do_search},
    {"Filter", tools_do_filter},
    {"Fuse", tools_do_fuse},
    {"Diversify", tools_do_diversify},
    {"Rescore", tools_do_rescore},
};

enum tools_end tools_do(struct tools_call *c)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].name, c->name) == 0) {
            enum tools_end end = rows[i].run(c);
            if (end == TOOLS_OK && !c->answer)
                return tools_fail(c, "no memory for the answer");
            return end;
        }
    return tools_fail(c, "there is no tool '%.60s'", c->name);
}
