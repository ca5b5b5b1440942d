/* SPDX-License-Identifier: Apache-2.0 */
/* A model that knows the keys writes fewer wrong conditions: it is told them before it writes. The text comes from the
 * schema that will judge the answer, so the two cannot drift apart. */
#include "expr/number.h"
#include "expr/schema.h"

#include <stdio.h>

static void add_number(struct expr_text *t, const struct expr_value *v)
{
    struct cordon_value x = expr_export(v);
    char text[64];
    if (v->kind == K_BIG)
        snprintf(text, sizeof text, "a very large number");
    else
        cordon_repr(&x, NULL, text, sizeof text);
    expr_text_str(t, text);
}

static void add_types(struct expr_text *t, const struct expr_key *k)
{
    static const struct {
        unsigned types;
        const char *name;
    } names[] = {{TYPE_NUMBER, "number"},
                 {TYPE_BIT(CORDON_INT), "int"},
                 {TYPE_BIT(CORDON_FLOAT), "float"},
                 {TYPE_BIT(CORDON_BOOL), "bool"},
                 {TYPE_BIT(CORDON_STR), "str"}};
    unsigned left = k->types & ~TYPE_BIT(CORDON_NONE);
    const char *between = "";
    if (k->types == TYPE_ANY) {
        expr_text_str(t, "any type");
        return;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if ((left & names[i].types) == names[i].types) {
            expr_text_str(t, between);
            expr_text_str(t, names[i].name);
            between = " or ";
            left &= ~names[i].types;
        }
}

static void add_key(struct expr_text *t, const struct cordon_schema *s, const struct expr_key *k)
{
    expr_text_str(t, "  ctx[");
    expr_text_repr(t, k->name, k->len);
    expr_text_str(t, "]: ");
    add_types(t, k);
    if (k->has_min || k->has_max) {
        expr_text_str(t, k->has_min && k->has_max ? " from "
                         : k->has_min             ? " at least "
                                                  : " at most ");
        add_number(t, k->has_min ? &k->min : &k->max);
        if (k->has_min && k->has_max) {
            expr_text_str(t, " to ");
            add_number(t, &k->max);
        }
    }
    for (uint32_t i = 0; i < k->enums; i++) {
        const struct expr_value *v = &s->strings[s->members[k->first_enum + i] - 1];
        expr_text_str(t, i ? ", " : ", one of ");
        expr_text_repr(t, v->s, v->len);
    }
    if (!k->required)
        expr_text_str(t, "; None if unknown");
    if (k->doc_len) {
        expr_text_str(t, " (");
        expr_text_add(t, k->doc, k->doc_len);
        expr_text_str(t, ")");
    }
    expr_text_str(t, "\n");
}

size_t cordon_prompt(const struct cordon_schema *s, char *out, size_t size)
{
    struct expr_text t = {.out = out, .size = size};
    expr_text_str(&t, "condition: valid Python expression using ONLY these ctx keys:\n");
    for (uint32_t i = 0; i < s->count; i++) {
        expr_text_repr(&t, s->keys[i].name, s->keys[i].len);
        expr_text_str(&t, i + 1 < s->count ? ", " : "\n");
    }
    expr_text_str(&t, "\nWhat each key holds:\n");
    for (uint32_t i = 0; i < s->count; i++)
        add_key(&t, s, &s->keys[i]);
    expr_text_str(
        &t,
        "\nOperators: < <= > >= == != (also chained), and, or, not, + - * / and unary minus, "
        "parentheses.\n"
        "Constants: int, float, str, True, False, None.\n"
        "Nothing else: no function or method calls, no attributes, no other names, no in or is,\n"
        "no lists, no conditional expressions. Compare with None by == None or != None before\n"
        "ordering a key that may be unknown.\n");
    return expr_text_end(&t);
}
