/* SPDX-License-Identifier: Apache-2.0 */
/* One walk over the policy, two writers. The walk is the order of keys.inc, then the things that have names; a
 * writer is told of sections, values and rules, and knows its own brackets. */
#include "policy/show.h"

#include "base/jsonw.h"
#include "policy/schema.h"

#include <stdio.h>
#include <string.h>

struct show {
    const struct policy *p;
    const char *part;
    bool origin, yaml, found;
    struct buf *out;
    struct jsonw json;
    size_t depth;
    int bad;
};

void policy_origin_text(const struct policy *p, struct policy_origin from, char *out, size_t size)
{
    if (from.file)
        snprintf(out, size, "%s:%u", p->files[from.file], from.line);
    else
        snprintf(out, size, "%s", p->files[0]);
}

static void note(struct show *s, int r)
{
    if (r < 0 && !s->bad)
        s->bad = r;
}

/* Whether PATH is asked for, or lies below what is, or above it (then only as a heading). */
static bool wanted(const struct show *s, const char *path)
{
    size_t a = strlen(path), b = s->part ? strlen(s->part) : 0, n = a < b ? a : b;
    return !s->part || (strncmp(path, s->part, n) == 0 &&
                        (a == b || (a > b ? path[n] == '.' : s->part[n] == '.')));
}

static bool whole(const struct show *s, const char *path)
{
    return !s->part || strlen(path) >= strlen(s->part);
}

static void indent(struct show *s)
{
    for (size_t i = 0; i < s->depth; i++)
        note(s, buf_str(s->out, "  "));
}

static void comment(struct show *s, size_t line, struct policy_origin from)
{
    char text[600];
    policy_origin_text(s->p, from, text, sizeof text);
    for (size_t at = s->out->len - line; s->origin && at < 40; at++)
        note(s, buf_str(s->out, " "));
    if (s->origin) {
        note(s, buf_str(s->out, " # "));
        for (const char *c = text; *c; c++) /* a file's name may hold anything */
            note(s, buf_add(s->out, (unsigned char)*c < 0x20 || *c == 0x7f ? "?" : c, 1));
    }
    note(s, buf_str(s->out, "\n"));
}

static void open_map(struct show *s, const char *name)
{
    if (s->yaml) {
        indent(s);
        note(s, buf_printf(s->out, "%s:\n", name));
        s->depth++;
    } else {
        jsonw_open(&s->json, name, '{');
    }
}

static void close_map(struct show *s)
{
    if (s->yaml)
        s->depth--;
    else
        jsonw_close(&s->json, '}');
}

static void json_words(struct show *s, const char *name, const struct policy_words *w)
{
    jsonw_open(&s->json, name, '[');
    for (size_t i = 0; i < w->count; i++)
        jsonw_string(&s->json, NULL, w->items[i]);
    jsonw_close(&s->json, ']');
}

static void json_value(struct show *s, const char *name, const struct policy_key *key,
                       const struct policy *p)
{
    const void *at = (const char *)p + key->offset;
    struct buf text;
    char word[64] = "";
    switch (key->type) {
    case POLICY_TYPE_COUNT:
        jsonw_int(&s->json, name, *(const int64_t *)at);
        return;
    case POLICY_TYPE_BOOL:
        jsonw_bool(&s->json, name, *(const bool *)at);
        return;
    case POLICY_TYPE_WORDS:
        json_words(s, name, at);
        return;
    case POLICY_TYPE_ENUM:
        policy_enum_word(key->words, (size_t) * (const int *)at, word);
        jsonw_string(&s->json, name, word);
        return;
    case POLICY_TYPE_NAME:
    case POLICY_TYPE_FILE:
        jsonw_string(&s->json, name, *(const char *const *)at);
        return;
    case POLICY_TYPE_MILLIS:
    case POLICY_TYPE_BYTES:
        break;
    }
    buf_init(&text, 64);
    note(s, policy_value_write(key, p, &text));
    jsonw_string(&s->json, name, text.data);
    buf_done(&text);
}

/* KEY need not be one of the table: its name, type and field are all that counts. */
static void value(struct show *s, const char *name, const struct policy_key *key,
                  const struct policy *p, struct policy_origin from)
{
    size_t line = s->out->len;
    if (s->yaml) {
        indent(s);
        note(s, buf_printf(s->out, "%s: ", name));
        note(s, policy_value_write(key, p, s->out));
        comment(s, line, from);
        return;
    }
    if (!s->origin) {
        json_value(s, name, key, p);
        return;
    }
    char text[600];
    policy_origin_text(s->p, from, text, sizeof text);
    jsonw_open(&s->json, name, '{');
    json_value(s, "value", key, p);
    jsonw_string(&s->json, "origin", text);
    jsonw_close(&s->json, '}');
}

static struct policy_origin origin_of(const struct policy *p, size_t index)
{
    return p->origins ? p->origins[index] : (struct policy_origin){0};
}

/* ---- things with names ---- */

static const struct policy_key text_key = {
    "", POLICY_TYPE_FILE, offsetof(struct policy, run.role), 0, 0, ""};
static const struct policy_key words_key = {
    "", POLICY_TYPE_WORDS, offsetof(struct policy, run.profiles), 0, 0, ""};
static const struct policy_key flag_key = {
    "", POLICY_TYPE_BOOL, offsetof(struct policy, pool.enabled), 0, 0, ""};

static void text_value(struct show *s, const char *name, const char *text,
                       struct policy_origin from)
{
    struct policy at = {.run.role = text};
    value(s, name, &text_key, &at, from);
}

static void words_value(struct show *s, const char *name, const struct policy_words *w,
                        struct policy_origin from)
{
    struct policy at = {.run.profiles = *w};
    value(s, name, &words_key, &at, from);
}

static void show_roles(struct show *s)
{
    char path[160];
    open_map(s, "roles");
    for (size_t i = 0; i < s->p->nroles; i++) {
        const struct policy_role *r = &s->p->roles[i];
        snprintf(path, sizeof path, "roles.%s", r->name);
        if (!wanted(s, path))
            continue;
        s->found = true;
        open_map(s, r->name);
        words_value(s, "tools", &r->tools, r->origin);
        close_map(s);
    }
    close_map(s);
}

/* JSON is YAML, too. */
static void schema_value(struct show *s, const struct policy_tool *t)
{
    const size_t line = s->out->len;
    if (!s->yaml) {
        jsonw_raw(&s->json, "schema", t->schema, strlen(t->schema));
        return;
    }
    indent(s);
    note(s, buf_printf(s->out, "schema: %s", t->schema));
    comment(s, line, t->origin);
}

static void show_host(struct show *s, const struct policy_tool *t)
{
    static const struct policy_key answer = {
        "", POLICY_TYPE_ENUM, offsetof(struct policy, output.escape), 0, 0, POLICY_ANSWERS};
    static const struct policy_key timeout = {
        "", POLICY_TYPE_MILLIS, offsetof(struct policy, arena.timeout_ms), 0, 0, ""};
    static const struct policy_key memory = {
        "", POLICY_TYPE_BYTES, offsetof(struct policy, limits.memory), 0, 0, ""};
    static const struct policy_key output = {
        "", POLICY_TYPE_BYTES, offsetof(struct policy, limits.output), 0, 0, ""};
    const struct policy at = {.output.escape = (enum policy_escape)t->answer,
                              .arena.timeout_ms = t->timeout_ms,
                              .limits.memory = t->memory,
                              .limits.output = t->output};
    if (t->summary)
        text_value(s, "summary", t->summary, t->origin);
    words_value(s, "command", &t->command, t->origin);
    if (t->env.count)
        words_value(s, "env", &t->env, t->origin);
    schema_value(s, t);
    value(s, "answer", &answer, &at, t->origin);
    value(s, "timeout", &timeout, &at, t->origin);
    value(s, "memory", &memory, &at, t->origin);
    value(s, "output", &output, &at, t->origin);
}

static void show_tools(struct show *s)
{
    static const struct policy_key risk = {
        "", POLICY_TYPE_ENUM, offsetof(struct policy, arena.risk), 0, 0, POLICY_RISKS};
    static const struct policy_key asks = {
        "", POLICY_TYPE_BOOL, offsetof(struct policy, approval.contents), 0, 0, ""};
    char path[160];
    open_map(s, "tools");
    for (size_t i = 0; i < s->p->ntools; i++) {
        const struct policy_tool *t = &s->p->tools[i];
        struct policy at = {.arena.risk = t->risk, .approval.contents = t->approval};
        snprintf(path, sizeof path, "tools.%s", t->name);
        if (!wanted(s, path))
            continue;
        s->found = true;
        open_map(s, t->name);
        value(s, "risk", &risk, &at, t->origin);
        if (t->approval)
            value(s, "approval", &asks, &at, t->origin);
        if (t->command.count)
            show_host(s, t);
        close_map(s);
    }
    close_map(s);
}

/* One line of YAML each: {key: value, ...}; empty texts are left out. */
static void yaml_line(struct show *s, const char *const *names, const char *const *texts, size_t n,
                      struct policy_origin from)
{
    const char *between = "- {";
    size_t line = s->out->len;
    indent(s);
    for (size_t i = 0; i < n; i++) {
        if (!texts[i])
            continue;
        note(s, buf_printf(s->out, "%s%s: ", between, names[i]));
        note(s, texts[i][0] == '[' ? buf_str(s->out, texts[i])
                                   : policy_scalar_write(texts[i], s->out));
        between = ", ";
    }
    note(s, buf_str(s->out, "}"));
    comment(s, line, from);
}

static void json_line(struct show *s, const char *const *names, const char *const *texts, size_t n,
                      const struct policy_words *command, struct policy_origin from)
{
    char origin[600];
    jsonw_open(&s->json, NULL, '{');
    for (size_t i = 0; i < n; i++)
        if (texts[i])
            jsonw_string(&s->json, names[i], texts[i]);
    if (command)
        json_words(s, "command", command);
    policy_origin_text(s->p, from, origin, sizeof origin);
    if (s->origin)
        jsonw_string(&s->json, "origin", origin);
    jsonw_close(&s->json, '}');
}

static void show_judges(struct show *s)
{
    static const char *const names[] = {"name", "model", "prompt", "timeout", "command"};
    if (s->yaml && s->p->arena.njudges == 0) {
        size_t line = s->out->len;
        indent(s);
        note(s, buf_str(s->out, "judges: []"));
        comment(s, line, s->p->judges_origin);
        return;
    }
    if (s->yaml) {
        indent(s);
        note(s, buf_str(s->out, "judges:\n"));
        s->depth++;
    } else {
        jsonw_open(&s->json, "judges", '[');
    }
    for (size_t i = 0; i < s->p->arena.njudges; i++) {
        const struct policy_judge *j = &s->p->arena.judges[i];
        struct policy at = {.run.profiles = j->command};
        struct buf command;
        char wait[32];
        policy_millis_text(j->timeout_ms, wait);
        buf_init(&command, 64 * 600);
        note(s, policy_value_write(&words_key, &at, &command));
        const char *texts[] = {j->name, *j->model ? j->model : NULL, *j->prompt ? j->prompt : NULL,
                               j->timeout_ms ? wait : NULL,
                               j->command.count && command.data ? command.data : NULL};
        if (s->yaml)
            yaml_line(s, names, texts, 5, j->origin);
        else
            json_line(s, names, texts, 4, j->command.count ? &j->command : NULL, j->origin);
        buf_done(&command);
    }
    if (s->yaml)
        s->depth--;
    else
        jsonw_close(&s->json, ']');
}

static void show_naming(struct show *s)
{
    const size_t count = s->p->nnaming;
    size_t line = s->out->len;
    s->found = true;
    if (s->yaml) {
        indent(s);
        note(s, buf_str(s->out, count ? "naming:" : "naming: []"));
        comment(s, line, s->p->naming_origin);
        s->depth++;
    } else {
        jsonw_open(&s->json, "naming", '[');
    }
    for (size_t i = 0; i < count; i++) {
        const struct naming_rule *r = &s->p->naming[i];
        const char *const names[] = {"path", "pattern", "message"}, *const texts[] = {r->path,
                                                                                      r->pattern,
                                                                                      r->message};
        const char *between = "- {";
        line = s->out->len;
        if (s->yaml)
            indent(s);
        else
            jsonw_open(&s->json, NULL, '{');
        for (size_t k = 0; k < 3; k++, between = ", ") {
            if (s->yaml) {
                note(s, buf_printf(s->out, "%s%s: ", between, names[k]));
                note(s, policy_scalar_write(texts[k], s->out));
            } else {
                jsonw_string(&s->json, names[k], texts[k]);
            }
        }
        if (s->yaml) {
            note(s, buf_printf(s->out, ", exports: %s}", r->exports ? "true" : "false"));
            comment(s, line, s->p->naming_origin);
        } else {
            jsonw_bool(&s->json, "exports", r->exports);
            jsonw_close(&s->json, '}');
        }
    }
    if (s->yaml)
        s->depth--;
    else
        jsonw_close(&s->json, ']');
}

static void show_clients(struct show *s)
{
    static const char *const names[] = {"name", "token_file", "budget"};
    const bool none = s->p->proxy.nclients == 0;
    if (s->yaml) {
        size_t line = s->out->len;
        indent(s);
        note(s, buf_str(s->out, none ? "clients: []" : "clients:\n"));
        if (none)
            comment(s, line, s->p->clients_origin);
        s->depth++;
    } else {
        jsonw_open(&s->json, "clients", '[');
    }
    for (size_t i = 0; i < s->p->proxy.nclients; i++) {
        const struct policy_client *c = &s->p->proxy.clients[i];
        char number[32];
        snprintf(number, sizeof number, "%llu", (unsigned long long)c->budget);
        const char *texts[] = {c->name, c->token_file, c->budget ? number : NULL};
        if (s->yaml)
            yaml_line(s, names, texts, 3, c->origin);
        else
            json_line(s, names, texts, 3, NULL, c->origin);
    }
    if (s->yaml)
        s->depth--;
    else
        jsonw_close(&s->json, ']');
}

static void show_upstreams(struct show *s)
{
    char path[160], shape[64];
    if (!s->p->nupstreams)
        return;
    open_map(s, "upstreams");
    for (size_t i = 0; i < s->p->nupstreams; i++) {
        const struct policy_upstream *u = &s->p->upstreams[i];
        const char *const names[] = {"url", "tier", "key_file", "key_env", "ca_file"};
        const char *const texts[] = {u->url, u->tier, u->key_file, u->key_env, u->ca_file};
        snprintf(path, sizeof path, "upstreams.%s", u->name);
        if (!wanted(s, path))
            continue;
        s->found = true;
        open_map(s, u->name);
        if (policy_enum_word(POLICY_SHAPES, u->shape, shape))
            text_value(s, "shape", shape, u->origin);
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            if (*texts[k])
                text_value(s, names[k], texts[k], u->origin);
        words_value(s, "models", &u->models, u->origin);
        close_map(s);
    }
    close_map(s);
}

static void show_rules(struct show *s, const struct policy_profile *profile,
                       const struct policy_origin *origins)
{
    static const char *const names[] = {"kind", "name", "id", "reason", "hint"};
    if (s->yaml) {
        indent(s);
        note(s, buf_str(s->out, profile->rule_count ? "rules:\n" : "rules: []\n"));
        s->depth++;
    } else {
        jsonw_open(&s->json, "rules", '[');
    }
    for (size_t i = 0; i < profile->rule_count; i++) {
        const struct policy_rule *r = &profile->rules[i];
        const char *texts[] = {policy_rule_kind_name(r->kind), r->name, r->id, r->reason, r->hint};
        struct policy_origin from = origins ? origins[i] : (struct policy_origin){0};
        if (s->yaml)
            yaml_line(s, names, texts, 5, from);
        else
            json_line(s, names, texts, 5, NULL, from);
    }
    if (s->yaml)
        s->depth--;
    else
        jsonw_close(&s->json, ']');
}

static void show_profiles(struct show *s)
{
    static const struct policy_key size = {
        "", POLICY_TYPE_BYTES, offsetof(struct policy, limits.output), 0, 0, ""};
    char path[160];
    const struct policy_profile *const *profiles =
        s->p->profiles ? s->p->profiles : policy_profiles();
    open_map(s, "profiles");
    for (size_t i = 0; profiles[i]; i++) {
        const struct policy_profile *p = profiles[i];
        struct policy_profile_origin from = {0};
        if (s->p->profile_origins)
            from = s->p->profile_origins[i];
        snprintf(path, sizeof path, "profiles.%s", p->name);
        if (!wanted(s, path))
            continue;
        s->found = true;
        struct policy guards = {.pool.enabled = p->guards}, threads = {.pool.enabled = p->threads},
                      compute = {.pool.enabled = p->compute_only},
                      files = {.pool.enabled = p->files}, packages = {.pool.enabled = p->packages},
                      bytes = {.limits.output = p->source_max};
        open_map(s, p->name);
        if (s->yaml) { /* read again, it starts from nothing: a rule that was removed stays so */
            indent(s);
            note(s, buf_str(s->out, "base: none\n"));
        }
        text_value(s, "summary", p->summary, from.summary);
        text_value(s, "imports", policy_import_mode_name(p->imports), from.imports);
        value(s, "guards", &flag_key, &guards, from.guards);
        value(s, "threads", &flag_key, &threads, from.threads);
        value(s, "compute_only", &flag_key, &compute, from.compute_only);
        value(s, "files", &flag_key, &files, from.files);
        value(s, "packages", &flag_key, &packages, from.packages);
        value(s, "source_max", &size, &bytes, from.source_max);
        show_rules(s, p, from.rules);
        close_map(s);
    }
    close_map(s);
}

/* ---- the walk ---- */

static void show_keys(struct show *s)
{
    char open[POLICY_KEY_MAX] = "";
    for (size_t i = 0; i <= policy_nkeys; i++) {
        const char *path = i < policy_nkeys ? policy_keys[i].path : "";
        size_t n = strcspn(path, ".");
        bool same = path[n] && strncmp(open, path, n) == 0 && !open[n];
        if (*open && !same) {
            if (strcmp(open, "arena") == 0 && wanted(s, "arena.judges") &&
                whole(s, "arena.judges")) {
                s->found = true;
                show_judges(s);
            }
            if (strcmp(open, "proxy") == 0 && wanted(s, "proxy.clients") &&
                whole(s, "proxy.clients")) {
                s->found = true;
                show_clients(s);
            }
            close_map(s);
            open[0] = 0;
        }
        if (!*path)
            break;
        bool head = path[n] && !*open;
        char section[POLICY_KEY_MAX];
        snprintf(section, sizeof section, "%.*s", (int)n, path);
        if (head && wanted(s, section)) {
            open_map(s, section);
            snprintf(open, sizeof open, "%s", section);
        }
        if (!wanted(s, path) || !whole(s, path))
            continue;
        s->found = true;
        value(s, path[n] ? path + n + 1 : path, &policy_keys[i], s->p, origin_of(s->p, i));
    }
}

static int show(struct show *s)
{
    s->json.out = s->out;
    if (!s->yaml)
        jsonw_open(&s->json, NULL, '{');
    show_keys(s);
    if (wanted(s, "roles"))
        show_roles(s);
    if (wanted(s, "tools"))
        show_tools(s);
    if (wanted(s, "naming") && whole(s, "naming"))
        show_naming(s);
    if (wanted(s, "upstreams"))
        show_upstreams(s);
    if (wanted(s, "profiles"))
        show_profiles(s);
    if (!s->yaml)
        jsonw_close(&s->json, '}');
    if (!s->yaml)
        note(s, s->json.bad ? s->json.bad : buf_str(s->out, "\n"));
    return s->bad;
}

int policy_show_yaml(const struct policy *p, const char *part, bool origin, struct buf *out,
                     bool *ret_found)
{
    struct show s = {.p = p, .part = part, .origin = origin, .yaml = true, .out = out};
    int r = show(&s);
    *ret_found = s.found;
    return r;
}

int policy_show_json(const struct policy *p, const char *part, bool origin, struct buf *out,
                     bool *ret_found)
{
    struct show s = {.p = p, .part = part, .origin = origin, .out = out};
    int r = show(&s);
    *ret_found = s.found;
    return r;
}
