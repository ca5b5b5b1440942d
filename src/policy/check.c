/* SPDX-License-Identifier: Apache-2.0 */
/* What no single key can know: names that must exist, limits below their ceilings, and what is allowed but
 * unwise. The place of a problem is where the value came from. */
#include "policy/final.h"
#include "policy/load.h"

#include "base/near.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct checker {
    const struct policy *p;
    struct policy_problems *problems;
};

static void say_at(const struct checker *c, bool warning, struct policy_origin at, const char *text)
{
    policy_problem_add(c->problems, warning, c->p->files[at.file], at.line, at.column, "%s", text);
}

static void say(const struct checker *c, bool warning, const char *path, const char *text)
{
    char line[400];
    int index = policy_key_find(path);
    base_assert(index >= 0);
    snprintf(line, sizeof line, "%s: %s", path, text);
    say_at(c, warning, c->p->origins[index], line);
}

static bool ours(const struct checker *c, const char *path) /* a file said so, not the built-in */
{
    int index = policy_key_find(path);
    base_assert(index >= 0);
    return c->p->origins[index].file != 0;
}

static void check_profile_name(const struct checker *c, const char *path, const char *name)
{
    char text[200];
    const char *names[POLICY_PROFILES_MAX + 1];
    size_t n = 0;
    if (policy_find_profile(c->p, name))
        return;
    for (; c->p->profiles[n]; n++)
        names[n] = c->p->profiles[n]->name;
    const char *near = near_word(name, names, n);
    snprintf(text, sizeof text, "there is no profile '%.64s'%s%s%s", name,
             near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    say(c, false, path, text);
}

static void check_names(const struct checker *c)
{
    const struct policy *p = c->p;
    char text[300];
    check_profile_name(c, "run.profile", p->run.profile);
    for (size_t i = 0; i < p->run.profiles.count; i++)
        check_profile_name(c, "run.profiles", p->run.profiles.items[i]);
    if (!policy_words_have(&p->run.profiles, p->run.profile))
        say(c, false, ours(c, "run.profile") ? "run.profile" : "run.profiles",
            "the profile of a run must be one of run.profiles");
    if (!policy_find_role(p, p->run.role)) {
        const char *names[POLICY_ROLES_MAX];
        for (size_t i = 0; i < p->nroles; i++)
            names[i] = p->roles[i].name;
        const char *near = near_word(p->run.role, names, p->nroles);
        snprintf(text, sizeof text, "there is no role '%.64s'%s%s%s", p->run.role,
                 near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
        say(c, false, "run.role", text);
    }
    const char *tools[POLICY_TOOLS_MAX];
    for (size_t i = 0; i < p->ntools; i++)
        tools[i] = p->tools[i].name;
    for (size_t i = 0; i < p->nroles; i++)
        for (size_t k = 0; k < p->roles[i].tools.count; k++) {
            const char *tool = p->roles[i].tools.items[k];
            if (strcmp(tool, "*") == 0 || policy_find_tool(p, tool))
                continue;
            const char *near = near_word(tool, tools, p->ntools);
            snprintf(text, sizeof text, "role %s: there is no tool '%.64s' among tools%s%s%s",
                     p->roles[i].name, tool, near ? "; did you mean '" : "", near ? near : "",
                     near ? "'?" : "");
            say_at(c, true, p->roles[i].origin, text);
        }
}

static void check_final(const struct checker *c)
{
    char text[200];
    for (size_t i = 0; i < c->p->final.count; i++) {
        const char *why = policy_final_problem(c->p->final.items[i]);
        snprintf(text, sizeof text, "'%.64s': %s", c->p->final.items[i], why ? why : "");
        if (why)
            say(c, false, "final", text);
    }
}

static void check_ceilings(const struct checker *c)
{
    for (size_t i = 0; i < policy_nkeys; i++) {
        const struct policy_key *key = &policy_keys[i];
        char path[POLICY_KEY_MAX];
        if (strncmp(key->path, "limits.", 7) != 0)
            continue;
        snprintf(path, sizeof path, "ceilings.%s", key->path + 7);
        int index = policy_key_find(path);
        if (index < 0)
            continue;
        uint64_t limit, ceiling;
        memcpy(&limit, (const char *)c->p + key->offset, sizeof limit);
        memcpy(&ceiling, (const char *)c->p + policy_keys[index].offset, sizeof ceiling);
        if (limit <= ceiling)
            continue;
        char text[120];
        snprintf(text, sizeof text, "more than %s; a run could not even have its default", path);
        if (ours(c, key->path))
            say(c, false, key->path, text);
        else
            say(c, false, path, "less than the limit of the same name: lower that one too");
    }
}

static void check_absolute(const struct checker *c, const char *path, const struct policy_words *w,
                           size_t n)
{
    for (size_t i = 0; i < w->count && i < n; i++)
        if (w->items[i][0] != '/') {
            char text[POLICY_WORD_MAX + 40];
            snprintf(text, sizeof text, "'%.200s' is no absolute path", w->items[i]);
            say(c, false, path, text);
        }
}

static void check_arena(const struct checker *c)
{
    const struct policy *p = c->p;
    if (p->arena.njudges && p->arena.quorum > p->arena.njudges)
        say(c, false, "arena.quorum", "more than there are judges");
    if (p->arena.enabled && p->arena.njudges == 0 && p->nupstreams == 0)
        say(c, true, "arena.enabled",
            "no judges are named: the two built in ask a model of the gateway, and no upstreams "
            "are named either; without one what the arena covers is blocked");
    else if (p->arena.enabled && p->arena.njudges == 1)
        say(c, true, "arena.enabled", "one judge has nobody to disagree with");
}

static void check_modules(const struct checker *c)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
    const struct policy_words *w = &c->p->python.preload;
    for (size_t i = 0; i < w->count; i++)
        if (!w->items[i][0] || w->items[i][strspn(w->items[i], letters)] || w->items[i][0] == '.') {
            char text[POLICY_WORD_MAX + 40];
            snprintf(text, sizeof text, "'%.200s' is no name of a module", w->items[i]);
            say(c, false, "python.preload", text);
        }
}

/* Why WORD declares no collection beside the FIRST ones; NULL: it does. */
static const char *collection_problem(const struct policy_words *w, const char *word, size_t first)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    const size_t name = strspn(word, letters);
    if (!name || name > POLICY_COLLECTION_MAX || word[name] != '=')
        return "is no NAME=/path of a collection";
    if (word[name + 1] != '/' || !word[name + 2])
        return "names no folder by an absolute path";
    if (strstr(word, "/../") || strcmp(word + strlen(word) - 3, "/..") == 0)
        return "has a name .. in its path";
    for (size_t i = 0; i < first; i++)
        if (strncmp(w->items[i], word, name + 1) == 0)
            return "has a name that another collection has";
    return NULL;
}

static void check_collections(const struct checker *c)
{
    const struct policy_words *w = &c->p->search.collections;
    for (size_t i = 0; i < w->count; i++) {
        const char *why = collection_problem(w, w->items[i], i);
        char text[POLICY_WORD_MAX + 80];
        snprintf(text, sizeof text, "'%.200s' %s", w->items[i], why ? why : "");
        if (why)
            say(c, false, "search.collections", text);
    }
}

void policy_box_check(const struct policy_box *box, struct policy_problems *problems)
{
    const struct policy *p = &box->p;
    const struct checker check = {p, problems}, *c = &check;
    check_names(c);
    check_final(c);
    check_ceilings(c);
    check_arena(c);
    check_modules(c);
    check_collections(c);
    if (*p->python.environment && access(p->python.environment, X_OK) < 0)
        say(c, true, "python.environment", "there is no such folder on this machine");
    check_absolute(c, "arena.paths", &p->arena.paths, p->arena.paths.count);
    check_absolute(c, "output.scrub_paths", &p->output.scrub_paths, p->output.scrub_paths.count);
    check_absolute(c, "audit.alert_command", &p->audit.alert_command, 1);
    if (p->rates.concurrent_per_client > p->rates.concurrent)
        say(c, true, "rates.concurrent_per_client", "more than rates.concurrent: that one holds");
    if (p->audit.retention_days && p->audit.retention_days < 90)
        say(c, true, "audit.retention_days",
            "below 90 days, the least for a production deployment");
    if (p->audit.sync == POLICY_SYNC_OFF)
        say(c, true, "audit.sync", "a power cut loses records of runs that have begun");
    if (!p->output.redact)
        say(c, true, "output.redact", "secrets in the output of a program reach its reader");
    if (!p->output.scrub)
        say(c, true, "output.scrub", "internal paths in the output of a program reach its reader");
    if (strcmp(p->run.profile, "open") == 0)
        say(c, true, "run.profile", "open judges nothing: the kernel's layers stand alone");
    if (p->run.mode == POLICY_MODE_LANDLOCK)
        say(c, true, "run.mode", "landlock is the weaker mode: no namespaces");
}
