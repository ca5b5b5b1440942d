/* SPDX-License-Identifier: Apache-2.0 */
/* Tools, value by value over those of the same name. A row with a command is a host tool. Its schema is a mapping, and JSON is
 * one: `{"type": "object", ...}` can be copied from where the tool is described. It is kept as JSON text, since it is checked by
 * another process; what that one would not understand is refused here, when the file is read, and not at each call. */
#include "base/argwords.h"
#include "base/jsonw.h"
#include "base/limits.h"
#include "policy/load.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define SCHEMA_MAX 16000 /* as cordon-tool takes it */

/* ---- one value ---- */

static const struct {
    const char *name;
    struct policy_key key;
} values[] = {
    {"risk",
     {"risk of a tool", POLICY_TYPE_ENUM, offsetof(struct policy, arena.risk), 0, 0, POLICY_RISKS}},
    {"approval",
     {"approval of a tool", POLICY_TYPE_BOOL, offsetof(struct policy, approval.contents), 0, 0,
      ""}},
    {"answer",
     {"answer of a tool", POLICY_TYPE_ENUM, offsetof(struct policy, output.escape), 0, 0,
      POLICY_ANSWERS}},
    {"timeout",
     {"timeout of a tool", POLICY_TYPE_MILLIS, offsetof(struct policy, arena.timeout_ms), 1,
      3600000, ""}},
    {"memory",
     {"memory of a tool", POLICY_TYPE_BYTES, offsetof(struct policy, limits.memory),
      LIMIT_MEMORY_MIN, LIMIT_MEMORY_MAX, ""}},
    {"output",
     {"output of a tool", POLICY_TYPE_BYTES, offsetof(struct policy, limits.output), 1,
      LIMIT_TOOL_OUTPUT_MAX, ""}},
};

/* The values that a row has, into AT. False: one of them is none. */
static bool read_values(struct policy_loader *l, const struct policy_node *row, struct policy *at)
{
    bool good = true;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        const struct policy_node *n = policy_load_get(row, values[i].name);
        const char *text = n ? policy_load_text(l, n, values[i].key.path, 64) : NULL;
        struct err err = ERR_INIT;
        if (text && policy_value_read(&values[i].key, text, &l->box->mem, at, &err) < 0) {
            policy_load_problem(l, n, "%s: %s", values[i].key.path, err.msg);
            text = NULL;
        }
        good = good && (!n || text);
    }
    return good;
}

/* ---- the schema ---- */

static bool is_number(const char *s)
{
    s += *s == '-';
    if (!isdigit((unsigned char)*s) || (*s == '0' && isdigit((unsigned char)s[1])))
        return false;
    while (isdigit((unsigned char)*s))
        s++;
    if (*s == '.' && isdigit((unsigned char)s[1]))
        for (s++; isdigit((unsigned char)*s);)
            s++;
    return !*s;
}

static void write_json(struct jsonw *j, const char *key, const struct policy_node *n)
{
    const bool raw = n->kind == POLICY_SCALAR && !n->quoted &&
                     (is_number(n->text) || strcmp(n->text, "true") == 0 ||
                      strcmp(n->text, "false") == 0 || strcmp(n->text, "null") == 0);
    if (raw) {
        jsonw_raw(j, key, n->text, strlen(n->text));
        return;
    }
    if (n->kind == POLICY_SCALAR) {
        jsonw_string(j, key, n->text);
        return;
    }
    jsonw_open(j, key, n->kind == POLICY_MAP ? '{' : '[');
    for (const struct policy_node *at = n->first; at; at = at->next)
        write_json(j, n->kind == POLICY_MAP ? at->key->text : NULL, at);
    jsonw_close(j, n->kind == POLICY_MAP ? '}' : ']');
}

static bool is_word(const char *word)
{
#define PLAIN(w)        w,
#define BOUND(w, least) w,
    static const char *const words[] = {ARGWORDS_PLAIN(PLAIN) ARGWORDS_BOUNDS(BOUND) "type", "enum",
                                        "items", "properties", "additionalProperties"};
#undef BOUND
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i], word) == 0)
            return true;
    return false;
}

static bool is_type(const struct policy_node *n)
{
    static const char *const types[] = {ARGWORDS_TYPES(PLAIN)};
#undef PLAIN
    for (size_t i = 0; n && n->kind == POLICY_SCALAR && i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i], n->text) == 0)
            return true;
    return false;
}

static bool good_word(struct policy_loader *l, const struct policy_node *n, int depth)
{
    const char *word = n->key->text;
    if (strcmp(word, "format") == 0 && depth == 1 && n->kind == POLICY_SCALAR &&
        strcmp(n->text, ARGWORDS_FILE) == 0)
        return true;
    if (!is_word(word))
        policy_load_problem(l, n->key,
                            "schema of a tool: '%.40s' is not checked here; docs/tools.md has the "
                            "words of a schema",
                            word);
    else if (strcmp(word, "additionalProperties") == 0 &&
             (n->kind != POLICY_SCALAR || strcmp(n->text, "false") != 0))
        policy_load_problem(l, n,
                            "schema of a tool: additionalProperties can only be false; leave it "
                            "out, or write false");
    else
        return true;
    return false;
}

/* DEPTH 0: of the arguments, 1: of one of them. */
static bool good_schema(struct policy_loader *l, const struct policy_node *schema, int depth)
{
    bool good = schema->kind == POLICY_MAP && is_type(policy_load_get(schema, "type"));
    if (!good) {
        policy_load_problem(l, schema,
                            "schema of a tool: a mapping with its type is wanted: "
                            "{type: string}");
        return false;
    }
    for (const struct policy_node *n = schema->first; n; n = n->next) {
        good = good_word(l, n, depth) && good;
        if (strcmp(n->key->text, "items") == 0)
            good = good_schema(l, n, depth + 2) && good;
        if (strcmp(n->key->text, "properties") == 0)
            for (const struct policy_node *p = n->first; p; p = p->next)
                good = good_schema(l, p, depth + 1) && good;
    }
    return good;
}

static const char *read_schema(struct policy_loader *l, const struct policy_node *n)
{
    const struct policy_node *type = policy_load_get(n, "type");
    struct buf text;
    struct jsonw j = {.out = &text};
    const char *ret = NULL;
    if (n->kind != POLICY_MAP || !type || type->kind != POLICY_SCALAR ||
        strcmp(type->text, "object") != 0) {
        policy_load_problem(
            l, n, "schema of a tool: a mapping is wanted: {type: object, properties: {...}}");
        return NULL;
    }
    if (!good_schema(l, n, 0))
        return NULL;
    buf_init(&text, SCHEMA_MAX);
    write_json(&j, NULL, n);
    if (j.bad == ERR_LIMIT)
        policy_load_problem(l, n, "schema of a tool: longer than %d bytes", SCHEMA_MAX);
    else if (j.bad < 0)
        l->no_memory = true;
    else
        ret = policy_load_keep(l, text.data);
    buf_done(&text);
    return ret;
}

/* ---- a host tool ---- */

/* Guest code calls it by its name. */
static bool is_function_name(const char *s)
{
    static const char *const taken[] = {"FINAL", "echo"};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        if (strcmp(taken[i], s) == 0)
            return false;
    for (const char *at = s; *at; at++)
        if (!isalnum((unsigned char)*at) && *at != '_')
            return false;
    return !isdigit((unsigned char)*s) && strlen(s) < 32;
}

static bool read_env(struct policy_loader *l, const struct policy_node *n, struct policy_words *ret)
{
    static const struct policy_key key = {"env of a tool", POLICY_TYPE_WORDS, 0, 0, 64, ""};
    if (!policy_load_words(l, n, &key, ret))
        return false;
    for (size_t i = 0; i < ret->count; i++)
        if (ret->items[i][0] == '=' || !strchr(ret->items[i], '=')) {
            policy_load_problem(l, n, "env of a tool: NAME=value is wanted, not '%.60s'",
                                ret->items[i]);
            return false;
        }
    return true;
}

static bool read_command(struct policy_loader *l, const struct policy_node *n,
                         struct policy_tool *t)
{
    static const struct policy_key key = {"command of a tool", POLICY_TYPE_WORDS, 0, 0, 64, ""};
    struct policy_words command;
    if (!policy_load_words(l, n, &key, &command))
        return false;
    if (policy_find_tool(&policy_builtin, t->name))
        policy_load_problem(l, n, "tool %s is built in: a command needs a name of its own",
                            t->name);
    else if (!is_function_name(t->name))
        policy_load_problem(l, n,
                            "'%s' is no name for a function that programs call: letters, digits "
                            "and _, at most 31, not FINAL or echo",
                            t->name);
    else if (!command.count || command.items[0][0] != '/')
        policy_load_problem(l, n, "tool %s: the program needs its absolute path", t->name);
    else {
        t->command = command;
        return true;
    }
    return false;
}

/* What only a command has. False: something in it is wrong. */
static bool read_host(struct policy_loader *l, const struct policy_node *row, struct policy_tool *t,
                      const struct policy *at)
{
    static const char *const only[] = {"schema",  "env",    "summary", "answer",
                                       "timeout", "memory", "output"};
    const struct policy_node *command = policy_load_get(row, "command"),
                             *schema = policy_load_get(row, "schema"),
                             *env = policy_load_get(row, "env"),
                             *summary = policy_load_get(row, "summary");
    if (command && !read_command(l, command, t))
        return false;
    for (size_t i = 0; i < sizeof only / sizeof *only; i++)
        if (!t->command.count && policy_load_get(row, only[i])) {
            policy_load_problem(l, policy_load_get(row, only[i])->key,
                                "tool %s: %s is for a tool of yours, with command: [/program, ...]",
                                t->name, only[i]);
            return false;
        }
    if (schema)
        t->schema = read_schema(l, schema);
    if (t->command.count && !schema && !t->schema)
        policy_load_problem(l, row, "tool %s: the schema of its arguments is missing", t->name);
    const char *text =
        summary ? policy_load_text(l, summary, "summary of a tool", POLICY_WORD_MAX) : NULL;
    if (text)
        t->summary = policy_load_keep(l, text);
    t->answer = (enum policy_answer)at->output.escape;
    t->timeout_ms = at->arena.timeout_ms;
    t->memory = at->limits.memory;
    t->output = at->limits.output;
    return (!t->command.count || t->schema) && (!summary || text) &&
           (!env || read_env(l, env, &t->env));
}

/* ---- all of them ---- */

/* The row as it stands, or a new one with what holds where nothing is said. */
static struct policy_tool tool_before(struct policy_loader *l, const struct policy_node *n,
                                      size_t *ret_index)
{
    const struct policy_box *box = l->box;
    size_t i = 0;
    while (i < box->p.ntools && strcmp(box->tools[i].name, n->key->text) != 0)
        i++;
    *ret_index = i;
    if (i < box->p.ntools)
        return box->tools[i];
    return (struct policy_tool){.name = policy_load_keep(l, n->key->text)};
}

static void load_tool(struct policy_loader *l, const struct policy_node *n)
{
    static const char *const keys[] = {"risk",   "approval", "command", "schema", "summary", "env",
                                       "answer", "timeout",  "memory",  "output", NULL};
    struct policy_box *box = l->box;
    size_t i;
    if (!policy_load_name_good(l, n, "a tool") || !policy_load_map(l, n, "a tool", keys))
        return;
    struct policy_tool t = tool_before(l, n, &i);
    struct policy at = {.arena.risk = t.risk,
                        .approval.contents = t.approval,
                        .output.escape = (enum policy_escape)t.answer,
                        .arena.timeout_ms = t.timeout_ms ? t.timeout_ms : LIMIT_TOOL_MS,
                        .limits.memory = t.memory ? t.memory : LIMIT_TOOL_MEMORY,
                        .limits.output = t.output ? t.output : LIMIT_TOOL_OUTPUT};
    if (i == box->p.ntools && !policy_load_get(n, "risk")) {
        policy_load_problem(l, n->key, "tool %.64s: its risk is missing (%s)", n->key->text,
                            POLICY_RISKS);
        return;
    }
    if (!read_values(l, n, &at) || !read_host(l, n, &t, &at))
        return;
    if (i == POLICY_TOOLS_MAX) {
        policy_load_problem(l, n->key, "more than %d tools", POLICY_TOOLS_MAX);
        return;
    }
    t.risk = at.arena.risk;
    t.approval = at.approval.contents;
    t.origin = policy_load_origin(l, n->key);
    box->p.ntools += i == box->p.ntools;
    box->tools[i] = t;
}

void policy_load_tools(struct policy_loader *l, const struct policy_node *map)
{
    if (!policy_load_map(l, map, "tools", NULL))
        return;
    for (const struct policy_node *n = map->first; n; n = n->next)
        load_tool(l, n);
}
