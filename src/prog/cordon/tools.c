/* SPDX-License-Identifier: Apache-2.0 */
/* The names of the room's table, and the host tools of the policy. */
#include "tools.h"

#include "base/near.h"
#include "policy/schema.h"
#include "programs.h"
#include "tools/tools.h"

#include <string.h>

enum { NAMES_MAX = LIMIT_HOST_TOOLS + POLICY_TOOLS_MAX };

/* Every name that there is; NAMES has NAMES_MAX of them. */
static size_t all(const struct policy *p, const char **names)
{
    size_t count = 0;
    for (; count < tools_count; count++)
        names[count] = tools_table[count].name;
    for (size_t i = 0; i < p->ntools; i++)
        if (p->tools[i].command.count)
            names[count++] = p->tools[i].name;
    return count;
}

static bool is_tool(const struct policy *p, const char *name)
{
    const struct policy_tool *of = policy_find_tool(p, name);
    return tools_find(name) || (of && of->command.count);
}

static int unknown(const struct policy *policy, const char *name, struct err *err)
{
    const char *names[NAMES_MAX];
    const char *near = near_word(name, names, all(policy, names));
    return err_set(err, ERR_USAGE, "--tool: there is no tool '%.40s'%s%s%s", name,
                   near ? "; did you mean " : "; docs/tools.md has them", near ? near : "",
                   near ? "?" : "");
}

int tools_choose(const struct tool_options *o, const struct policy *policy, struct tool_choice *ret,
                 struct err *err)
{
    const char *names[NAMES_MAX];
    size_t count = 0;
    if (o->worker && !policy_find_role(policy, o->worker))
        return err_set(err, ERR_USAGE,
                       "--worker: there is no type '%.40s'; see `cordon policy show roles`",
                       o->worker);
    const size_t wanted = o->worker ? all(policy, names) : o->names.count;
    if (wanted > LIMIT_HOST_TOOLS)
        return err_set(err, ERR_USAGE, "%zu tools for one program; at most %d%s", wanted,
                       LIMIT_HOST_TOOLS, o->worker ? ": name those that it needs, --tool" : "");
    for (; count < wanted; count++) {
        ret->names[count] = o->worker ? names[count] : o->names.items[count];
        if (!is_tool(policy, ret->names[count]))
            return unknown(policy, ret->names[count], err);
    }
    ret->names[count] = NULL;
    return count ? programs_find("cordon-tool", ret->program, sizeof ret->program, err) : 0;
}

void tools_give(const struct tool_choice *c, const struct tool_options *o, struct flow_request *req)
{
    req->tools = c->names;
    req->tool_program = c->program;
    req->find_program = programs_find;
    req->worker = o->worker;
}
