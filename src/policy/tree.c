/* SPDX-License-Identifier: Apache-2.0 */
/* libyaml's events, and no more of it than that. libcyaml, which would fill structs by itself, stops at the
 * first error, forgets which line a value came from, and follows aliases; a checker that reports everything needs
 * its own walk, and a second reader beside it would be a second opinion on what a file says. */
#include "policy/tree.h"

#include "base/fit.h"
#include "base/limits.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

/* ---- problems ---- */

void policy_problems_init(struct policy_problems *p)
{
    *p = (struct policy_problems){0};
    arena_init(&p->mem, 2 * MIB);
}

void policy_problems_done(struct policy_problems *p)
{
    arena_done(&p->mem);
    p->items = NULL;
    p->count = 0;
}

void policy_problem_add(struct policy_problems *p, bool warning, const char *file, uint32_t line,
                        uint32_t column, const char *fmt, ...)
{
    char text[700];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    p->errors += !warning;
    if (!p->items)
        p->items = arena_alloc(&p->mem, POLICY_PROBLEMS_MAX * sizeof *p->items);
    const char *kept = arena_strdup(&p->mem, text), *name = arena_strdup(&p->mem, file);
    if (p->items && p->count < POLICY_PROBLEMS_MAX && kept && name)
        p->items[p->count++] = (struct policy_problem){name, line, column, warning, kept};
    else
        p->dropped++;
}

void policy_problems_sort(struct policy_problems *p)
{
    for (size_t i = 1; i < p->count; i++) { /* few, and nearly in order */
        struct policy_problem x = p->items[i];
        size_t at = i;
        for (; at > 0; at--) {
            const struct policy_problem *y = &p->items[at - 1];
            if (strcmp(y->file, x.file) != 0 || y->line < x.line ||
                (y->line == x.line && y->column <= x.column))
                break;
            p->items[at] = *y;
        }
        p->items[at] = x;
    }
}

int policy_problems_err(const struct policy_problems *p, struct err *err)
{
    for (size_t i = 0; i < p->count; i++) {
        const struct policy_problem *x = &p->items[i];
        char more[80] = "";
        if (x->warning)
            continue;
        if (p->errors > 1)
            snprintf(more, sizeof more, " (and %zu more: cordon policy check)", p->errors - 1);
        char said[sizeof err->msg]; /* whole words of it, and how many more there are */
        const size_t room = sizeof said - strlen(more);
        fit_words(
            said, room,
            x->line ? snprintf(said, room, "%.80s:%u:%u: %s", x->file, x->line, x->column, x->text)
                    : snprintf(said, room, "%.80s: %s", x->file, x->text));
        return err_set(err, ERR_FORMAT, "%s%s", said, more);
    }
    return err_set(err, ERR_FORMAT, "the policy could not be read");
}

/* ---- events to tree ---- */

struct builder {
    const char *file;
    struct arena *mem;
    struct policy_problems *problems;
    struct policy_node *root;
    const char *data;
    size_t len;
    struct {
        struct policy_node *node, *last, *key; /* key: waits for its value */
    } stack[POLICY_DEPTH_MAX];
    size_t depth, nodes, documents;
};

static void complain(struct builder *b, const yaml_mark_t *at, const char *text)
{
    policy_problem_add(b->problems, false, b->file, (uint32_t)at->line + 1,
                       (uint32_t)at->column + 1, "%s", text);
}

/* Hangs NODE where the builder stands: the root, an item, a key or a value. */
static void hang(struct builder *b, struct policy_node *node)
{
    if (b->depth == 0) {
        b->root = node;
        return;
    }
    struct policy_node *parent = b->stack[b->depth - 1].node;
    base_assert(parent != NULL);
    if (parent->kind == POLICY_MAP && !b->stack[b->depth - 1].key) {
        b->stack[b->depth - 1].key = node;
        return;
    }
    node->key = b->stack[b->depth - 1].key;
    b->stack[b->depth - 1].key = NULL;
    if (b->stack[b->depth - 1].last)
        b->stack[b->depth - 1].last->next = node;
    else
        parent->first = node;
    b->stack[b->depth - 1].last = node;
}

/* 0: go on; 1: enough; negative: no memory. */
/* A text's own part. 1: it is refused, and so is the rest. */
static int fill_scalar(struct builder *b, const yaml_event_t *e, struct policy_node *n)
{
    n->quoted = e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    n->text = arena_memdup(b->mem, e->data.scalar.value, e->data.scalar.length);
    if (!n->text)
        return ERR_MEMORY;
    if (strlen(n->text) != e->data.scalar.length)
        complain(b, &e->start_mark, "a NUL character in a text");
    return 0;
}

/* A scalar, or the beginning of a list or mapping. 1: it is refused, and so is the rest. */
static int add_node(struct builder *b, const yaml_event_t *e, enum policy_node_kind kind)
{
    struct policy_node *n = arena_alloc(b->mem, sizeof *n);
    if (!n)
        return ERR_MEMORY;
    if (++b->nodes > POLICY_NODES_MAX) {
        complain(b, &e->start_mark, "more values than any policy needs");
        return 1;
    }
    n->kind = kind;
    n->line = (uint32_t)e->start_mark.line + 1;
    n->column = (uint32_t)e->start_mark.column + 1;
    if (kind == POLICY_SCALAR) {
        int r = fill_scalar(b, e, n);
        if (r)
            return r;
    } else if (b->depth == POLICY_DEPTH_MAX) {
        complain(b, &e->start_mark, "nested deeper than any key of a policy");
        return 1;
    }
    const struct policy_node *parent = b->depth ? b->stack[b->depth - 1].node : NULL;
    bool is_key = parent && parent->kind == POLICY_MAP && !b->stack[b->depth - 1].key;
    if (is_key && kind != POLICY_SCALAR) {
        complain(b, &e->start_mark, "a key must be a word, not a list or a mapping");
        return 1;
    }
    hang(b, n);
    if (kind != POLICY_SCALAR) {
        b->stack[b->depth].node = n;
        b->stack[b->depth].last = b->stack[b->depth].key = NULL;
        b->depth++;
    }
    return 0;
}

static int take(struct builder *b, const yaml_event_t *e)
{
    enum policy_node_kind kind = POLICY_SCALAR;
    const yaml_char_t *anchor = NULL, *tag = NULL;
    switch (e->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (b->documents++) {
            complain(b, &e->start_mark, "a second YAML document (---): a policy is one document");
            return 1;
        }
        return 0;
    case YAML_ALIAS_EVENT:
        complain(b, &e->start_mark, "a YAML alias (*name) is not allowed: write the value out");
        return 1; /* the alias's value is unknown, so the rest of the file cannot be read */
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        b->depth--;
        return 0;
    case YAML_SEQUENCE_START_EVENT:
        kind = POLICY_LIST;
        anchor = e->data.sequence_start.anchor;
        tag = e->data.sequence_start.tag;
        break;
    case YAML_MAPPING_START_EVENT:
        kind = POLICY_MAP;
        anchor = e->data.mapping_start.anchor;
        tag = e->data.mapping_start.tag;
        break;
    case YAML_SCALAR_EVENT:
        anchor = e->data.scalar.anchor;
        tag = e->data.scalar.tag;
        break;
    default:
        return 0;
    }
    if (anchor)
        complain(b, &e->start_mark,
                 "a YAML anchor (&name) is not allowed: write the value where it is needed");
    if (tag)
        complain(b, &e->start_mark, "a YAML tag (!name) is not allowed: each key has its type");
    return add_node(b, e, kind);
}

static void syntax_error(struct builder *b, const yaml_parser_t *p)
{
    const yaml_mark_t *at = &p->problem_mark;
    char text[200];
    if (p->error == YAML_READER_ERROR)
        snprintf(text, sizeof text, "not UTF-8 text: %s at byte %zu", p->problem,
                 p->problem_offset);
    else if (at->index < b->len && b->data[at->index] == '\t')
        snprintf(text, sizeof text, "YAML: a tab where a key or value begins; indent with blanks");
    else
        snprintf(text, sizeof text, "YAML: %s%s%s", p->problem ? p->problem : "cannot be read",
                 p->context ? " " : "", p->context ? p->context : "");
    complain(b, at, text);
}

int policy_tree_read(const char *file, const void *data, size_t len, struct arena *mem,
                     struct policy_problems *problems, struct policy_node **ret_root)
{
    struct builder b = {.file = file, .mem = mem, .problems = problems, .data = data, .len = len};
    yaml_parser_t parser;
    int r = 0;
    *ret_root = NULL;
    if (len > POLICY_FILE_MAX) {
        policy_problem_add(problems, false, file, 0, 0, "more than %d bytes", POLICY_FILE_MAX);
        return 0;
    }
    if (!yaml_parser_initialize(&parser))
        return ERR_MEMORY;
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, data, len);
    for (bool end = false; !end && r == 0;) {
        yaml_event_t e;
        if (!yaml_parser_parse(&parser, &e)) {
            r = parser.error == YAML_MEMORY_ERROR ? ERR_MEMORY : 1;
            if (r == 1)
                syntax_error(&b, &parser);
            break;
        }
        end = e.type == YAML_STREAM_END_EVENT;
        r = take(&b, &e);
        yaml_event_delete(&e);
    }
    yaml_parser_delete(&parser);
    if (r < 0)
        return r;
    *ret_root = b.root;
    return 0;
}
