/* SPDX-License-Identifier: Apache-2.0 */
/* A walk of the file's tree beside the table of keys. A mistake is written down and the walk goes on, so a
 * checker reports all of them; whether any of it is taken into force is for the caller to say. */
#include "policy/load.h"

#include "policy/final.h"

#include "base/limits.h"
#include "base/near.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEYS_IN_MAP 4096 /* of one map */
#define FILES_MAX   8

void policy_load_problem(struct policy_loader *l, const struct policy_node *at, const char *fmt,
                         ...)
{
    char text[600];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    policy_problem_add(l->problems, false, l->file, at->line, at->column, "%s", text);
}

struct policy_origin policy_load_origin(const struct policy_loader *l, const struct policy_node *at)
{
    uint16_t column = at->column < UINT16_MAX ? (uint16_t)at->column : UINT16_MAX;
    return (struct policy_origin){l->number, column, at->line};
}

void *policy_load_alloc(struct policy_loader *l, size_t size)
{
    void *p = arena_alloc(&l->box->mem, size);
    l->no_memory = l->no_memory || !p;
    return p;
}

static const char *kind_word(const struct policy_node *n)
{
    return n->kind == POLICY_MAP    ? "a mapping"
           : n->kind == POLICY_LIST ? "a list"
                                    : "a single value";
}

static bool is_empty(const struct policy_node *n)
{
    return n->kind == POLICY_SCALAR && !n->quoted &&
           (!*n->text || strcmp(n->text, "~") == 0 || strcmp(n->text, "null") == 0);
}

const struct policy_node *policy_load_get(const struct policy_node *map, const char *key)
{
    for (const struct policy_node *n = map->first; n; n = n->next)
        if (strcmp(n->key->text, key) == 0)
            return n;
    return NULL;
}

static void unknown_key(struct policy_loader *l, const struct policy_node *n, const char *what,
                        const char *const *keys, size_t nkeys)
{
    const char *near = near_word(n->key->text, keys, nkeys);
    char all[300] = "";
    for (size_t i = 0; i < nkeys && strlen(all) < sizeof all - 70; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? ", " : "", keys[i]);
    policy_load_problem(l, n->key, "unknown key '%.64s'%s%s%s (%s%s has %s)", n->key->text,
                        near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "",
                        *what ? "" : "a policy", what, all);
}

static bool comes_twice(struct policy_loader *l, const struct policy_node *map,
                        const struct policy_node *n)
{
    for (const struct policy_node *before = map->first; before != n; before = before->next)
        if (strcmp(before->key->text, n->key->text) == 0) {
            policy_load_problem(l, n->key, "'%.64s' comes twice; the first is in line %u",
                                n->key->text, before->key->line);
            return true;
        }
    return false;
}

bool policy_load_map(struct policy_loader *l, const struct policy_node *map, const char *what,
                     const char *const *keys)
{
    size_t nkeys = 0, count = 0;
    if (is_empty(map))
        return false; /* a heading with nothing, or only comments, below it */
    if (map->kind != POLICY_MAP) {
        policy_load_problem(l, map, "%s: a mapping of keys is wanted, not %s",
                            *what ? what : "a policy", kind_word(map));
        return false;
    }
    while (keys && keys[nkeys])
        nkeys++;
    for (const struct policy_node *n = map->first; n; n = n->next) {
        if (++count > KEYS_IN_MAP) {
            policy_load_problem(l, n->key, "%s: more than %d keys", what, KEYS_IN_MAP);
            return false;
        }
        bool known = !keys;
        for (size_t i = 0; i < nkeys && !known; i++)
            known = strcmp(keys[i], n->key->text) == 0;
        if (!comes_twice(l, map, n) && !known)
            unknown_key(l, n, what, keys, nkeys);
    }
    return map->first != NULL;
}

const char *policy_load_text(struct policy_loader *l, const struct policy_node *n, const char *what,
                             size_t max)
{
    if (n->kind != POLICY_SCALAR)
        policy_load_problem(l, n, "%s: a single value is wanted, not %s", what, kind_word(n));
    else if (is_empty(n))
        policy_load_problem(l, n, "%s: a value is missing", what);
    else if (strlen(n->text) > max)
        policy_load_problem(l, n, "%s: longer than %zu bytes", what, max);
    else
        return n->text;
    return NULL;
}

bool policy_load_words(struct policy_loader *l, const struct policy_node *n,
                       const struct policy_key *key, struct policy_words *ret)
{
    size_t count = 0, bad = 0;
    struct err err = ERR_INIT;
    if (n->kind != POLICY_LIST) {
        policy_load_problem(l, n, "%s: a list is wanted, [a, b], not %s", key->path, kind_word(n));
        return false;
    }
    for (const struct policy_node *w = n->first; w; w = w->next)
        count++;
    if (count > key->max) {
        policy_load_problem(l, n, "%s: %zu items; at most %llu", key->path, count,
                            (unsigned long long)key->max);
        return false;
    }
    const char **items = policy_load_alloc(l, (count + 1) * sizeof *items);
    if (!items)
        return false;
    size_t at = 0;
    for (const struct policy_node *w = n->first; w; w = w->next) {
        const char *text = policy_load_text(l, w, key->path, POLICY_WORD_MAX);
        if (text && policy_word_check(key, text, &err) < 0) {
            policy_load_problem(l, w, "%s: %s", key->path, err.msg);
            text = NULL;
        }
        bad += !text;
        items[at] = text ? arena_strdup(&l->box->mem, text) : NULL;
        l->no_memory = l->no_memory || (text && !items[at]);
        at += items[at] != NULL;
    }
    if (bad)
        return false;
    *ret = (struct policy_words){items, at};
    return true;
}

/* What the machine's file has made final, a later one can only tighten. */
static bool may_change(struct policy_loader *l, const struct policy_node *n,
                       const struct policy_key *key, const struct policy *before)
{
    if (!l->box->later || policy_tightens(key, before, &l->box->p))
        return true;
    if (strcmp(key->path, "final") == 0 || strncmp(key->path, "state.", 6) == 0)
        policy_load_problem(l, n, "%s: only the machine's policy (%s) may set it", key->path,
                            l->box->files[1]);
    else if (policy_is_final(before, key->path))
        policy_load_problem(l, n,
                            "%s is final in the machine's policy (%s): it can only be made "
                            "tighter, or stay as it is",
                            key->path, l->box->files[1]);
    else
        return true;
    return false;
}

/* Things by name have no order: they stay as they are. */
static bool may_name(struct policy_loader *l, const struct policy_node *n, const char *section)
{
    if (!l->box->later || !policy_is_final(&l->box->p, section))
        return true;
    policy_load_problem(l, n, "%s: final in the machine's policy (%s)", section, l->box->files[1]);
    return false;
}

static void load_value(struct policy_loader *l, const struct policy_node *n, int index)
{
    const struct policy_key *key = &policy_keys[index];
    struct err err = ERR_INIT;
    const struct policy before = l->box->p;
    if (key->type == POLICY_TYPE_WORDS) {
        struct policy_words words;
        if (!policy_load_words(l, n, key, &words))
            return;
        memcpy((char *)&l->box->p + key->offset, &words, sizeof words);
    } else {
        const char *text = policy_load_text(l, n, key->path, POLICY_WORD_MAX);
        if (!text)
            return;
        int r = policy_value_read(key, text, &l->box->mem, &l->box->p, &err);
        if (r < 0) {
            l->no_memory = l->no_memory || r == ERR_MEMORY;
            policy_load_problem(l, n, "%s: %s", key->path, err.msg);
            return;
        }
    }
    if (!may_change(l, n, key, &before)) {
        l->box->p = before;
        return;
    }
    l->box->origins[index] = policy_load_origin(l, n->key);
}

/* The words that may stand below PREFIX ("" or "limits."), without repetition. */
static size_t keys_below(const char *prefix, char words[][POLICY_KEY_MAX], size_t max)
{
    size_t count = 0, len = strlen(prefix);
    for (size_t i = 0; i < policy_nkeys && count < max; i++) {
        const char *path = policy_keys[i].path;
        if (strncmp(path, prefix, len) != 0)
            continue;
        size_t n = strcspn(path + len, ".");
        if (count && strncmp(words[count - 1], path + len, n) == 0 && !words[count - 1][n])
            continue;
        snprintf(words[count++], POLICY_KEY_MAX, "%.*s", (int)n, path + len);
    }
    for (size_t i = 0; !len && policy_named[i] && count < max; i++)
        snprintf(words[count++], POLICY_KEY_MAX, "%s", policy_named[i]);
    if (strcmp(prefix, "arena.") == 0 && count < max)
        snprintf(words[count++], POLICY_KEY_MAX, "judges");
    if (strcmp(prefix, "proxy.") == 0 && count < max)
        snprintf(words[count++], POLICY_KEY_MAX, "clients");
    return count;
}

/* Whether PATH is one of the things by name; then it was read. */
static bool load_named(struct policy_loader *l, const struct policy_node *n, const char *path)
{
    static const struct {
        const char *path;
        void (*load)(struct policy_loader *l, const struct policy_node *n);
    } rows[] = {{"profiles", policy_load_profiles},    {"roles", policy_load_roles},
                {"tools", policy_load_tools},          {"naming", policy_load_naming},
                {"arena.judges", policy_load_judges},  {"upstreams", policy_load_upstreams},
                {"proxy.clients", policy_load_clients}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].path, path) != 0)
            continue;
        if (may_name(l, n, path))
            rows[i].load(l, n);
        return true;
    }
    return false;
}

static void load_section(struct policy_loader *l, const struct policy_node *map, const char *name)
{
    char words[40][POLICY_KEY_MAX], prefix[POLICY_KEY_MAX + 1] = "", path[2 * POLICY_KEY_MAX + 2];
    const char *keys[41];
    if (*name)
        snprintf(prefix, sizeof prefix, "%s.", name);
    size_t nkeys = keys_below(prefix, words, 40);
    for (size_t i = 0; i < nkeys; i++)
        keys[i] = words[i];
    keys[nkeys] = NULL;
    if (!policy_load_map(l, map, name, keys))
        return;
    for (const struct policy_node *n = map->first; n; n = n->next) {
        if (policy_load_get(map, n->key->text) != n)
            continue; /* the second of two was reported */
        snprintf(path, sizeof path, "%s%.64s", prefix, n->key->text);
        int index = policy_key_find(path);
        if (index >= 0)
            load_value(l, n, index);
        else if (load_named(l, n, path))
            continue;
        else if (!*name && keys_below(strncat(path, ".", 2), words, 1))
            load_section(l, n, n->key->text);
    }
}

/* ---- boxes ---- */

void policy_box_free(struct policy_box *box)
{
    if (box)
        arena_done(&box->mem);
    free(box);
}

struct policy_box *policy_box_new(void)
{
    struct policy_box *box = calloc(1, sizeof *box);
    if (!box)
        return NULL;
    arena_init(&box->mem, 16 * MIB);
    box->p = policy_builtin;
    box->refs = 1;
    const struct policy_profile *const *profiles = policy_profiles();
    while (profiles[box->nprofiles])
        box->nprofiles++;
    box->origins = arena_alloc(&box->mem, policy_nkeys * sizeof *box->origins);
    box->roles = arena_alloc(&box->mem, POLICY_ROLES_MAX * sizeof *box->roles);
    box->tools = arena_alloc(&box->mem, POLICY_TOOLS_MAX * sizeof *box->tools);
    box->upstreams = arena_alloc(&box->mem, POLICY_UPSTREAMS_MAX * sizeof *box->upstreams);
    box->profiles = arena_alloc(&box->mem, (POLICY_PROFILES_MAX + 1) * sizeof(void *));
    box->profile_origins =
        arena_alloc(&box->mem, POLICY_PROFILES_MAX * sizeof *box->profile_origins);
    box->files = arena_alloc(&box->mem, FILES_MAX * sizeof *box->files);
    if (!box->origins || !box->roles || !box->tools || !box->upstreams || !box->profiles ||
        !box->profile_origins || !box->files) {
        policy_box_free(box);
        return NULL;
    }
    memcpy(box->roles, box->p.roles, box->p.nroles * sizeof *box->roles);
    memcpy(box->tools, box->p.tools, box->p.ntools * sizeof *box->tools);
    memcpy(box->profiles, profiles, box->nprofiles * sizeof(void *));
    box->files[0] = policy_builtin.files[0];
    box->p.origins = box->origins;
    box->p.roles = box->roles;
    box->p.tools = box->tools;
    box->p.upstreams = box->upstreams;
    box->p.profiles = box->profiles;
    box->p.profile_origins = box->profile_origins;
    box->p.files = box->files;
    return box;
}

int policy_box_load(struct policy_box *box, const char *name, const void *data, size_t len,
                    struct policy_problems *problems)
{
    struct policy_loader l = {.box = box, .problems = problems, .number = (uint16_t)box->p.nfiles};
    struct policy_node *root = NULL;
    struct arena trees;
    base_assert(box->p.nfiles < FILES_MAX);
    l.file = arena_strdup(&box->mem, name);
    if (!l.file)
        return ERR_MEMORY;
    box->files[box->p.nfiles++] = l.file;
    arena_init(&trees, 32 * MIB);
    int r = policy_tree_read(l.file, data, len, &trees, problems, &root);
    if (r == 0 && root)
        load_section(&l, root, "");
    arena_done(&trees);
    return r < 0 || l.no_memory ? ERR_MEMORY : 0;
}
