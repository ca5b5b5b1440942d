/* SPDX-License-Identifier: Apache-2.0 */
/* Roles and judges: things that have a name of the operator's choice, and the rules for names of files. Roles are laid over those
 * of the same name. The list of judges is replaced whole, because a judge too many is a vote too many, and so is that of rules. */
#include "base/units.h"
#include "policy/load.h"

#include <string.h>

static const struct policy_key role_tools = {"tools of a role", POLICY_TYPE_WORDS, 0, 0, 256, ""};
static const struct policy_key judge_command = {
    "command of a judge", POLICY_TYPE_WORDS, 0, 0, 64, ""};
static const struct policy_key judge_timeout = {"timeout of a judge",
                                                POLICY_TYPE_MILLIS,
                                                offsetof(struct policy, arena.timeout_ms),
                                                1,
                                                3600000,
                                                ""};

bool policy_load_name_good(struct policy_loader *l, const struct policy_node *n, const char *what)
{
    if (policy_name_good(n->key->text))
        return true;
    policy_load_problem(l, n->key,
                        "'%.64s' is no name for %s: letters, digits, - _ and dots, at most 64",
                        n->key->text, what);
    return false;
}

const char *policy_load_keep(struct policy_loader *l, const char *s)
{
    const char *copy = arena_strdup(&l->box->mem, s);
    l->no_memory = l->no_memory || !copy;
    return copy ? copy : "";
}

void policy_load_roles(struct policy_loader *l, const struct policy_node *map)
{
    static const char *const keys[] = {"tools", NULL};
    struct policy_box *box = l->box;
    if (!policy_load_map(l, map, "roles", NULL))
        return;
    for (const struct policy_node *n = map->first; n; n = n->next) {
        struct policy_words tools;
        size_t i = 0;
        if (!policy_load_name_good(l, n, "a role") || !policy_load_map(l, n, "a role", keys))
            continue;
        const struct policy_node *list = policy_load_get(n, "tools");
        if (!list || !policy_load_words(l, list, &role_tools, &tools))
            continue;
        while (i < box->p.nroles && strcmp(box->roles[i].name, n->key->text) != 0)
            i++;
        if (i == POLICY_ROLES_MAX) {
            policy_load_problem(l, n->key, "more than %d roles", POLICY_ROLES_MAX);
            return;
        }
        if (i == box->p.nroles)
            box->roles[box->p.nroles++].name = policy_load_keep(l, n->key->text);
        box->roles[i].tools = tools;
        box->roles[i].origin = policy_load_origin(l, n->key);
    }
}

/* ---- judges ---- */

static const char *text_of(struct policy_loader *l, const struct policy_node *map, const char *key)
{
    const struct policy_node *n = policy_load_get(map, key);
    const char *text = n ? policy_load_text(l, n, key, POLICY_WORD_MAX) : NULL;
    return text ? policy_load_keep(l, text) : "";
}

/* A judge that is no command: the model that it asks and the rules that it gives it. */
static bool load_model_judge(struct policy_loader *l, const struct policy_node *n,
                             struct policy_judge *j)
{
    const struct policy_node *url = policy_load_get(n, "url"),
                             *prompt = policy_load_get(n, "prompt");
    if (url) { /* keys and addresses are the gateway's, so that no run needs them */
        policy_load_problem(l, url,
                            "judge %s: a model is asked through the gateway: name its address in "
                            "`upstreams`, and the model here: model: NAME",
                            j->name);
        return false;
    }
    if (!prompt)
        j->prompt = "reviewer";
    if (*j->prompt != '/' && policy_enum_find(POLICY_PROMPTS, j->prompt) < 0) {
        policy_load_problem(l, prompt,
                            "judge %s: prompt '%.60s' is neither one of " POLICY_PROMPTS
                            " nor the absolute path of a file",
                            j->name, j->prompt);
        return false;
    }
    return true;
}

static bool load_judge(struct policy_loader *l, const struct policy_node *n, struct policy_judge *j)
{
    static const char *const keys[] = {"name",   "command", "url", "model",
                                       "prompt", "timeout", NULL};
    if (n->kind != POLICY_MAP || !n->first) {
        policy_load_problem(
            l, n, "a judge is a mapping: {name: ..., command: [...]}, or {name: ..., model: ...}");
        return false;
    }
    if (!policy_load_map(l, n, "a judge", keys))
        return false;
    const struct policy_node *command = policy_load_get(n, "command"), *wait;
    *j = (struct policy_judge){.name = text_of(l, n, "name"),
                               .model = text_of(l, n, "model"),
                               .prompt = text_of(l, n, "prompt"),
                               .origin = policy_load_origin(l, n)};
    if (!policy_name_good(j->name)) {
        policy_load_problem(l, n, "a judge needs a name: letters, digits, - and _");
        return false;
    }
    if (command && !policy_load_words(l, command, &judge_command, &j->command))
        return false;
    const bool model = *j->model || *j->prompt || policy_load_get(n, "url");
    if ((j->command.count > 0) == model) {
        policy_load_problem(
            l, n, "judge %s: either command: [/program, ...] or model: NAME is wanted", j->name);
        return false;
    }
    if (j->command.count && j->command.items[0][0] != '/') {
        policy_load_problem(l, command,
                            "judge %s: the program needs its absolute path, not '%.60s'", j->name,
                            j->command.items[0]);
        return false;
    }
    if (model && !load_model_judge(l, n, j))
        return false;
    wait = policy_load_get(n, "timeout");
    if (wait) {
        struct policy at = {0};
        struct err err = ERR_INIT;
        const char *text = policy_load_text(l, wait, "timeout of a judge", 64);
        if (!text)
            return false;
        if (policy_value_read(&judge_timeout, text, &l->box->mem, &at, &err) < 0) {
            policy_load_problem(l, wait, "timeout of a judge: %s", err.msg);
            return false;
        }
        j->timeout_ms = at.arena.timeout_ms;
    }
    return true;
}

void policy_load_judges(struct policy_loader *l, const struct policy_node *list)
{
    size_t count = 0, good = 0;
    if (list->kind != POLICY_LIST) {
        policy_load_problem(l, list,
                            "arena.judges: a list is wanted: [{name: ..., command: [...]}]");
        return;
    }
    for (const struct policy_node *n = list->first; n; n = n->next)
        count++;
    if (count > POLICY_JUDGES_MAX) {
        policy_load_problem(l, list, "arena.judges: %zu judges; at most %d", count,
                            POLICY_JUDGES_MAX);
        return;
    }
    struct policy_judge *judges = policy_load_alloc(l, (count + 1) * sizeof *judges);
    if (!judges)
        return;
    for (const struct policy_node *n = list->first; n; n = n->next) {
        if (!load_judge(l, n, &judges[good]))
            continue;
        for (size_t i = 0; i < good; i++)
            if (strcmp(judges[i].name, judges[good].name) == 0)
                policy_load_problem(l, n, "judge '%s' comes twice", judges[i].name);
        good++;
    }
    if (good != count)
        return;
    l->box->p.arena.judges = judges;
    l->box->p.arena.njudges = good;
    l->box->p.judges_origin = policy_load_origin(l, list->key);
}

/* ---- names of files ---- */

static bool load_rule(struct policy_loader *l, const struct policy_node *n, struct naming_rule *r)
{
    static const char *const keys[] = {"path", "pattern", "message", "exports", NULL};
    if (n->kind != POLICY_MAP || !n->first) {
        policy_load_problem(l, n, "a rule is a mapping: {path: ..., pattern: ..., message: ...}");
        return false;
    }
    if (!policy_load_map(l, n, "a rule of naming", keys))
        return false;
    const struct policy_node *exports = policy_load_get(n, "exports");
    const char *word = exports ? policy_load_text(l, exports, "exports", 8) : "false";
    *r = (struct naming_rule){.path = text_of(l, n, "path"),
                              .pattern = text_of(l, n, "pattern"),
                              .message = text_of(l, n, "message"),
                              .exports = word && strcmp(word, "true") == 0};
    if (r->path[0] != '/') {
        policy_load_problem(l, n, "naming: a path begins with / at the root of the workspace");
        return false;
    }
    if (!*r->pattern || !*r->message) {
        policy_load_problem(l, n, "naming: a rule for %.60s needs a pattern and a message",
                            r->path);
        return false;
    }
    if (!word || (strcmp(word, "true") != 0 && strcmp(word, "false") != 0)) {
        policy_load_problem(l, exports ? exports : n, "naming: exports is true or false");
        return false;
    }
    const char *why = naming_pattern_problem(r->pattern);
    if (why)
        policy_load_problem(l, policy_load_get(n, "pattern"), "naming: '%.60s' is no pattern: %s",
                            r->pattern, why);
    return !why;
}

void policy_load_naming(struct policy_loader *l, const struct policy_node *list)
{
    size_t count = 0, good = 0;
    if (list->kind != POLICY_LIST) {
        policy_load_problem(l, list,
                            "naming: a list is wanted: [{path: ..., pattern: ..., message: ...}]");
        return;
    }
    for (const struct policy_node *n = list->first; n; n = n->next)
        count++;
    if (count > NAMING_MAX) {
        policy_load_problem(l, list, "naming: %zu rules; at most %d", count, NAMING_MAX);
        return;
    }
    struct naming_rule *rules = policy_load_alloc(l, (count + 1) * sizeof *rules);
    for (const struct policy_node *n = list->first; rules && n; n = n->next)
        good += load_rule(l, n, &rules[good]);
    if (!rules || good != count)
        return;
    l->box->p.naming = rules;
    l->box->p.nnaming = good;
    l->box->p.naming_origin = policy_load_origin(l, list->key);
}
