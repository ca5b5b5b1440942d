/* SPDX-License-Identifier: Apache-2.0 */
/* The two ends of a host tool that read what others wrote: the arguments on their way to the operator's command, and what it
 * printed on the way back. The command runs in neither: it is started by the broker, and gets a file of the guest's as an
 * open descriptor, so that it needs no way into the jail and no path of a guest is ever resolved by it. */
#include "base/argwords.h"
#include "base/limits.h"
#include "sys/fd.h"
#include "tools/inside.h"

#include <stdio.h>
#include <string.h>

static bool is_file(const json_t *property)
{
    const char *format = json_string_value(json_object_get(property, "format"));
    return format && strcmp(format, ARGWORDS_FILE) == 0;
}

/* The argument NAME as a descriptor, and as the path of that descriptor. */
static enum tools_end open_argument(struct tools_call *c, const char *name, const char *path,
                                    int *fds, size_t count)
{
    struct tools_place place;
    struct stat st;
    char as[32];
    enum tools_end end = tools_place_open(c, path, false, &place);
    if (end != TOOLS_OK)
        return end;
    end = count == LIMIT_TOOL_FILES
              ? tools_refuse(c, "more than %d files in one call", LIMIT_TOOL_FILES)
              : tools_open_file(c, &place, &fds[count], &st);
    tools_place_close(&place);
    if (end != TOOLS_OK)
        return end;
    snprintf(as, sizeof as, "/dev/fd/%zu", TOOLS_COMMAND_FILES + count);
    if (st.st_size > (off_t)LIMIT_TOOL_FILE)
        end = tools_refuse(c, "'%.60s' is larger than %llu MB", name, LIMIT_TOOL_FILE / MIB);
    else if (json_object_set_new(c->args, name, json_string(as)) < 0)
        end = tools_fail(c, "no memory");
    if (end != TOOLS_OK)
        fd_close(fd_take(&fds[count]));
    return end;
}

enum tools_end tools_host_files(struct tools_call *c, const char *schema, int fds[LIMIT_TOOL_FILES],
                                size_t *ret_count)
{
    json_t *rules = json_loads(schema, JSON_REJECT_DUPLICATES, NULL), *one;
    enum tools_end end = TOOLS_OK;
    const char *name;
    size_t count = 0;
    json_object_foreach(json_object_get(rules, "properties"), name, one)
    {
        const char *path = tools_text(c, name, NULL);
        if (end == TOOLS_OK && path && is_file(one)) {
            end = open_argument(c, name, path, fds, count);
            count += end == TOOLS_OK;
        }
    }
    json_decref(rules);
    for (size_t i = 0; end != TOOLS_OK && i < count; i++)
        fd_close(fds[i]);
    *ret_count = end == TOOLS_OK ? count : 0;
    return end;
}

/* ---- the answer ---- */

static enum tools_end answer_json(struct tools_call *c, const void *bytes, size_t len)
{
    json_error_t error;
    json_t *value = json_loadb(bytes, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY,
                               &error); /* bounded by LEN */
    if (!value)
        return tools_fail(c, "%.60s did not answer in JSON: %.100s", c->name, error.text);
    json_t *marked = tools_mark_all(c, value);
    json_decref(value);
    c->answer = json_pack("{s:o, s:s}", "value", marked, "source", c->name);
    return c->answer ? TOOLS_OK : tools_fail(c, "no memory");
}

/* {"text": ..., "model": ..., "cut": ...}. The model may have read what anybody wrote: its words are data. */
static enum tools_end answer_model(struct tools_call *c, const void *bytes, size_t len)
{
    json_t *o = json_loadb(bytes, len, JSON_REJECT_DUPLICATES, NULL);
    const json_t *text = json_object_get(o, "text"), *cut = json_object_get(o, "cut");
    const char *model = json_string_value(json_object_get(o, "model"));
    if (json_is_string(text) && model && json_is_boolean(cut))
        c->answer = json_pack("{s:o, s:o, s:b, s:s+}", "text",
                              tools_mark(c, json_string_value(text), json_string_length(text)),
                              "model", tools_mark(c, model, strlen(model)), "cut",
                              json_is_true(cut), "source", "model:", model);
    json_decref(o);
    return c->answer ? TOOLS_OK : tools_fail(c, "the model's answer cannot be read");
}

enum tools_end tools_host_answer(struct tools_call *c, enum tools_wrote kind, const void *bytes,
                                 size_t len)
{
    switch (kind) {
    case TOOLS_WROTE_TEXT:
    case TOOLS_WROTE_PART:
        c->answer = json_pack("{s:o, s:b, s:s}", "text", tools_mark(c, bytes, len), "cut",
                              kind == TOOLS_WROTE_PART, "source", c->name);
        return c->answer ? TOOLS_OK : tools_fail(c, "no memory");
    case TOOLS_WROTE_JSON:
        return answer_json(c, bytes, len);
    case TOOLS_WROTE_MODEL:
        return answer_model(c, bytes, len);
    case TOOLS_WROTE_GOALS:
        return tools_goal_answer(c, bytes, len);
    case TOOLS_WROTE_WRONG:
        return tools_refuse(c, "%.*s", (int)len, (const char *)bytes);
    case TOOLS_WROTE_WHY:
    case TOOLS_WROTE_COUNT:
        break;
    }
    return tools_fail(c, "%.*s", (int)len, (const char *)bytes);
}
