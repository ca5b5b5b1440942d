/* SPDX-License-Identifier: Apache-2.0 */
/* Tools that start a program of the guest's: which program it is, on the way there, and what it gave, on the way back. The
 * broker starts it, and reads nothing of either. */
#include "tools/inside.h"

#include <string.h>

/* The prompt of llm() is data as well: a marker in it could begin a turn of another speaker, the system's among them. What was replaced in it
 * is not counted: the answer tells about the answer. */
static enum tools_end mark_prompt(struct tools_call *c)
{
    const json_t *prompt = json_object_get(c->args, "prompt");
    json_t *marked = tools_mark(c, json_string_value(prompt), json_string_length(prompt));
    c->neutralised = 0;
    return marked && json_object_set_new(c->args, "prompt", marked) == 0
               ? TOOLS_OK
               : tools_fail(c, "no memory");
}

enum tools_end tools_program(struct tools_call *c, struct tools_program *ret)
{
    const json_t *code = json_object_get(c->args, "code");
    *ret = (struct tools_program){.word = "", .source = ""};
    if (strcmp(c->name, TOOLS_LLM) == 0)
        return mark_prompt(c);
    if (strcmp(c->name, "Search") == 0)
        ret->word = tools_text(c, "collection", "");
    if (strcmp(c->name, "WorkerResult") == 0)
        ret->word = tools_text(c, "worker", "");
    if (strcmp(c->name, "SpawnWorker") == 0)
        *ret = (struct tools_program){.word = tools_text(c, "type", ""),
                                      .source = json_string_value(code),
                                      .len = json_string_length(code)};
    const bool creates = strcmp(c->name, "CreateTool") == 0,
               loads = strcmp(c->name, "LoadModule") == 0;
    const enum tools_end end = creates ? tools_made_new(c) : loads ? tools_module(c) : TOOLS_OK;
    if (end == TOOLS_OK && (creates || loads || c->limits[TOOLS_MADE]))
        *ret =
            (struct tools_program){.word = creates || loads ? tools_text(c, "name", "") : c->name,
                                   .source = c->text.data,
                                   .len = c->text.len};
    return end;
}

static json_t *text_or_null(struct tools_call *c, bool there, const struct tools_text *t)
{
    return there ? tools_mark(c, t->data, t->len) : json_null();
}

enum tools_end tools_program_answer(struct tools_call *c, const struct tools_run *run)
{
    if (c->limits[TOOLS_MADE])
        return tools_made_answer(c, run);
    c->answer = json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:b}", "source", run->which,
                          "worker", run->which, "status", run->status, "reason",
                          tools_mark(c, run->why, strlen(run->why)), "final",
                          text_or_null(c, run->flags & TOOLS_RAN_FINAL, &run->final), "value",
                          text_or_null(c, run->flags & TOOLS_RAN_VALUE, &run->value), "stdout",
                          tools_mark(c, run->streams[0].data, run->streams[0].len), "stderr",
                          tools_mark(c, run->streams[1].data, run->streams[1].len), "cut",
                          (run->flags & TOOLS_RAN_CUT) != 0);
    return c->answer ? TOOLS_OK : tools_fail(c, "no memory");
}
