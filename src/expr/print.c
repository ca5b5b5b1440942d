/* SPDX-License-Identifier: Apache-2.0 */
/* Values as text: repr() for people, JSON for programs. The only difference that matters: JSON has
 * no inf and nan, so they are strings there, and its strings use double quotes. */
#include "expr/error.h"
#include "expr/number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

size_t cordon_print_size(const struct cordon_value *v)
{
    return v->type == CORDON_INT && v->words ? v->len * 28 + 32 : 0;
}

static void integer(struct expr_text *t, const struct cordon_value *v, void *work)
{
    char small[32];
    if (!v->words) {
        snprintf(small, sizeof small, "%lld", (long long)v->i);
        expr_text_str(t, small);
        return;
    }
    if (!work)
        return;
    uint64_t *limb = work; /* the caller's, aligned by malloc or alignas */
    char *digits = (char *)(limb + v->len);
    memcpy(limb, v->words, v->len * sizeof *limb);
    size_t n = number_decimal(limb, (uint32_t)v->len, digits);
    if (v->negative)
        expr_text_str(t, "-");
    expr_text_add(t, digits, n);
}

static size_t print(const struct cordon_value *v, void *work, char *out, size_t size, bool json)
{
    struct expr_text t = {.out = out, .size = size};
    char number[NUMBER_REPR_MAX];
    switch (v->type) {
    case CORDON_NONE:
        expr_text_str(&t, json ? "null" : "None");
        break;
    case CORDON_BOOL:
        expr_text_str(&t, v->i ? (json ? "true" : "True") : (json ? "false" : "False"));
        break;
    case CORDON_INT:
        integer(&t, v, work);
        break;
    case CORDON_FLOAT:
        number_repr(v->f, number);
        if (json && !isfinite(v->f))
            expr_text_quote(&t, number, strlen(number));
        else
            expr_text_str(&t, number);
        break;
    case CORDON_STR:
        if (json)
            expr_text_quote(&t, v->s, v->len);
        else
            expr_text_repr(&t, v->s, v->len);
        break;
    }
    return expr_text_end(&t);
}

size_t cordon_repr(const struct cordon_value *v, void *work, char *out, size_t size)
{
    return print(v, work, out, size, false);
}

size_t cordon_json(const struct cordon_value *v, void *work, char *out, size_t size)
{
    return print(v, work, out, size, true);
}
