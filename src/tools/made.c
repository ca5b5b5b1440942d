/* SPDX-License-Identifier: Apache-2.0 */
/* Tools that guest code made. Each is one file, so that one sum is over all of it: its first line is a comment with description and
 * schema as JSON, the rest is the source, which has a function of the tool's name. The broker has the file judged and keeps its
 * sum; what is called later is this file if it still has that sum. */
#include "tools/inside.h"

#include "base/argwords.h"
#include "base/limits.h"
#include "sys/fd.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCHEMA_DEPTH 8
#define HEAD         "# "

/* ---- the name, and where its file is ---- */

/* CamelCase: a large letter first, letters and digits, a small letter among them. */
static bool is_name(const char *name)
{
    const size_t n = strlen(name);
    bool small = false;
    for (size_t i = 0; i < n; i++) {
        if (!isascii(name[i]) || !isalnum(name[i]))
            return false;
        small |= islower(name[i]) != 0;
    }
    return n >= 2 && n <= TOOLS_MADE_NAME && isupper(name[0]) && small;
}

static void path_of(const char *name, char *path, size_t size)
{
    snprintf(path, size, TOOLS_MADE_FOLDER "/%s.py", name);
}

/* Whether a line begins `def NAME(`. */
static bool exports(const char *source, const char *name)
{
    const size_t n = strlen(name);
    for (const char *line = source; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, "def ", 4) == 0) {
            const char *at = line + 4 + strspn(line + 4, " ");
            if (strncmp(at, name, n) == 0 && at[n + strspn(at + n, " ")] == '(')
                return true;
        }
    }
    return false;
}

/* ---- its schema ---- */

static bool is_word_of(const char *const *list, size_t count, const char *word)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i], word) == 0)
            return true;
    return false;
}

static bool schema_is_good(const json_t *schema, int depth, const char **ret_why);

static bool properties_are_good(const json_t *list, int depth, const char **ret_why)
{
    const char *name;
    json_t *one;
    *ret_why = "'properties' is no object";
    if (!json_is_object(list))
        return false;
    json_object_foreach((json_t *)list, name,
                        one) if (!schema_is_good(one, depth + 1, ret_why)) return false;
    return true;
}

/* One word of a schema: what tools_check acts on, and of the right kind. */
static bool word_is_good(const char *word, const json_t *of, int depth, const char **ret_why)
{
#define BOUND(word, least) word,
#define WORD(word)         word,
    static const char *const bounds[] = {ARGWORDS_BOUNDS(BOUND)},
                             *const plain[] = {ARGWORDS_PLAIN(WORD)},
                             *const types[] = {ARGWORDS_TYPES(WORD)};
#undef BOUND
#undef WORD
    *ret_why = "a word of it has a value of the wrong kind";
    if (strcmp(word, "type") == 0)
        return json_is_string(of) &&
               is_word_of(types, sizeof types / sizeof *types, json_string_value(of));
    if (strcmp(word, "properties") == 0)
        return properties_are_good(of, depth, ret_why);
    if (strcmp(word, "items") == 0)
        return schema_is_good(of, depth + 1, ret_why);
    if (strcmp(word, "enum") == 0 || strcmp(word, "required") == 0)
        return json_is_array(of);
    if (strcmp(word, "additionalProperties") == 0)
        return json_is_false(of);
    if (is_word_of(bounds, sizeof bounds / sizeof *bounds, word))
        return json_is_number(of);
    *ret_why = "it has a word that nobody checks by; docs/tools.md has those that there are";
    return is_word_of(plain, sizeof plain / sizeof *plain, word);
}

static bool schema_is_good(const json_t *schema, int depth, const char **ret_why)
{
    const char *word;
    json_t *of;
    *ret_why =
        depth > SCHEMA_DEPTH ? "it is nested too deeply" : "a part of it does not say its type";
    if (depth > SCHEMA_DEPTH || !json_is_string(json_object_get(schema, "type")))
        return false;
    json_object_foreach((json_t *)schema, word,
                        of) if (!word_is_good(word, of, depth, ret_why)) return false;
    return true;
}

/* ---- making one ---- */

static enum tools_end look(struct tools_call *c, const char *name, const char *source,
                           const json_t *schema)
{
    const char *why = "";
    const char *type = json_string_value(json_object_get(schema, "type"));
    if (!is_name(name))
        return tools_refuse(c,
                            "'%.40s' is no name of a tool: CamelCase, letters and digits, at most "
                            "%d, such as WordCount",
                            name, TOOLS_MADE_NAME);
    if (tools_find(name))
        return tools_refuse(c, "there is a tool %.40s already: choose another name", name);
    if (!type || strcmp(type, "object") != 0)
        return tools_refuse(c,
                            "the schema is not of type object: its properties are the arguments");
    if (!schema_is_good(schema, 1, &why))
        return tools_refuse(c, "the schema cannot be used: %s", why);
    if (!exports(source, name))
        return tools_refuse(
            c, "the source has no line 'def %.40s(': a tool is a function of its own name", name);
    return TOOLS_OK;
}

enum tools_end tools_made_new(struct tools_call *c)
{
    const char *name = tools_text(c, "name", ""), *source = tools_text(c, "source", "");
    json_t *schema = json_object_get(c->args, "schema");
    enum tools_end end = look(c, name, source, schema);
    if (end != TOOLS_OK)
        return end;
    json_t *head =
        json_pack("{s:s, s:O}", "description", tools_text(c, "description", ""), "schema", schema);
    char *text = head ? json_dumps(head, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
    buf_init(&c->text, LIMIT_FRAME);
    if (!text || buf_printf(&c->text, HEAD "%s\n%s", text, source) < 0)
        end = tools_fail(c, "no memory");
    free(text);
    json_decref(head);
    return end;
}

enum tools_end tools_do_create(struct tools_call *c)
{
    char path[96];
    const char *name = tools_text(c, "name", "");
    path_of(name, path, sizeof path);
    const enum tools_end end = tools_write(c, path, c->text.data, c->text.len);
    return end == TOOLS_OK && json_object_set_new(c->answer, "name", json_string(name)) < 0
               ? tools_fail(c, "no memory")
               : end;
}

static enum tools_end read_file(struct tools_call *c, const char *path)
{
    struct tools_place p;
    struct stat st;
    FD_AUTO fd = -1;
    enum tools_end end = tools_place_open(c, path, false, &p);
    if (end == TOOLS_OK)
        end = tools_open_file(c, &p, &fd, &st);
    if (end == TOOLS_OK && st.st_size > (off_t)(2 * LIMIT_CALL))
        end = tools_refuse(c, "%.200s is longer than %llu KB", p.shown, 2 * LIMIT_CALL / KIB);
    if (end == TOOLS_OK)
        end = tools_read(c, fd, 0, 2 * LIMIT_CALL, &c->text);
    tools_place_close(&p);
    return end;
}

/* ---- calling one ---- */

/* The schema in the first line, as text; the caller's to free. NULL: there is none. */
static char *schema_of(const struct buf *file)
{
    const char *end = file->len ? memchr(file->data, '\n', file->len) : NULL;
    const size_t head = sizeof HEAD - 1;
    if (!end || (size_t)(end - file->data) <= head)
        return NULL;
    json_t *line = json_loadb(file->data + head, (size_t)(end - file->data) - head,
                              JSON_REJECT_DUPLICATES, NULL);
    const json_t *schema = json_object_get(line, "schema");
    const char *why;
    char *text =
        schema && schema_is_good(schema, 1, &why) ? json_dumps(schema, JSON_COMPACT) : NULL;
    json_decref(line);
    return text;
}

enum tools_end tools_made_schema(struct tools_call *c, char **ret_schema)
{
    char path[96];
    buf_init(&c->text, LIMIT_FRAME);
    if (!is_name(c->name))
        return tools_refuse(c, "'%.40s' is no name of a tool that was made", c->name);
    path_of(c->name, path, sizeof path);
    const enum tools_end end = read_file(c, path);
    if (end != TOOLS_OK)
        return end;
    *ret_schema = schema_of(&c->text);
    return *ret_schema
               ? TOOLS_OK
               : tools_refuse(c, "%.80s is no tool any more: make it again with CreateTool", path);
}

enum tools_end tools_made_answer(struct tools_call *c, const struct tools_run *run)
{
    json_error_t error;
    const bool gave = run->flags & TOOLS_RAN_FINAL && run->final.len < LIMIT_RAN_TEXT;
    if (strcmp(run->status, "ok") != 0)
        return tools_refuse(c, "%.60s: %.300s", c->name, run->why);
    json_t *value =
        gave ? json_loadb(run->final.data, run->final.len, JSON_DECODE_ANY, &error) : NULL;
    if (!value)
        return tools_refuse(c, "%.60s gave no value that is JSON and has at most %llu KB", c->name,
                            LIMIT_RAN_TEXT / KIB);
    json_t *marked = tools_mark_all(c, value);
    json_decref(value);
    c->answer = json_pack("{s:o, s:s}", "value", marked, "source", c->name);
    return c->answer ? TOOLS_OK : tools_fail(c, "no memory");
}

/* ---- modules ---- */

/* Names with dots between them, each of small letters and digits as modules have. No name begins with an underscore: those are the
 * interpreter's. */
static bool is_module(const char *name)
{
    const char *at = name;
    do {
        const size_t n =
            strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
        if (n == 0 || *at == '_' || isdigit(*at) || (at[n] && at[n] != '.'))
            return false;
        at += n;
    } while (*at++);
    return true;
}

enum tools_end tools_module(struct tools_call *c)
{
    const char *name = tools_text(c, "name", "");
    char path[96];
    if (!is_module(name))
        return tools_refuse(
            c, "'%.60s' is no name of a module: letters, digits and _, and dots between folders",
            name);
    snprintf(path, sizeof path, "/workspace/%s", name);
    for (char *dot = path; (dot = strchr(dot, '.'));)
        *dot = '/';
    strncat(path, ".py", sizeof path - strlen(path) - 1);
    buf_init(&c->text, LIMIT_FRAME);
    return read_file(c, path);
}

enum tools_end tools_do_load(struct tools_call *c)
{
    json_t *code = json_stringn(c->text.data ? c->text.data : "", c->text.len);
    if (!code)
        return tools_refuse(c, "the module is not UTF-8");
    c->answer = json_pack("{s:s, s:o}", "name", tools_text(c, "name", ""), "code", code);
    return c->answer ? TOOLS_OK : tools_fail(c, "no memory");
}
