/* SPDX-License-Identifier: Apache-2.0 */
/* The names of the room's table, and `llm`, which says that there is no gateway yet. */
#include "tools.h"

#include "base/near.h"
#include "programs.h"
#include "tools/tools.h"

#include <string.h>

#define LLM "llm"

static size_t all(const char **names)
{
    size_t count = 0;
    for (; count < tools_count; count++)
        names[count] = tools_table[count].name;
    names[count++] = LLM;
    return count;
}

static int unknown(const char *name, struct err *err)
{
    const char *names[LIMIT_HOST_TOOLS];
    const char *near = near_word(name, names, all(names));
    return err_set(err, ERR_USAGE, "--tool: there is no tool '%.40s'%s%s%s", name,
                   near ? "; did you mean " : "; docs/tools.md has them", near ? near : "",
                   near ? "?" : "");
}

int tools_choose(const struct tool_options *o, const struct policy *policy, struct tool_choice *ret,
                 struct err *err)
{
    size_t count = 0;
    if (o->worker && !policy_find_role(policy, o->worker))
        return err_set(err, ERR_USAGE,
                       "--worker: there is no type '%.40s'; see `cordon policy show roles`",
                       o->worker);
    if (o->worker)
        count = all(ret->names);
    for (size_t i = 0; i < o->names.count && !o->worker; i++) {
        if (!tools_find(o->names.items[i]) && strcmp(o->names.items[i], LLM) != 0)
            return unknown(o->names.items[i], err);
        if (count == LIMIT_HOST_TOOLS)
            return err_set(err, ERR_USAGE, "more than %d of --tool", LIMIT_HOST_TOOLS);
        ret->names[count++] = o->names.items[i];
    }
    ret->names[count] = NULL;
    return count ? programs_find("cordon-tool", ret->program, sizeof ret->program, err) : 0;
}

void tools_give(const struct tool_choice *c, const struct tool_options *o, struct flow_request *req)
{
    req->tools = c->names;
    req->tool_program = c->program;
    req->worker = o->worker;
}
