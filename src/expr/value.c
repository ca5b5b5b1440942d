/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions between the forms of a value; out of the header, so that the hot paths there stay in
 * view. */
#include "expr/value.h"

#include "expr/big.h"

const char *expr_type_name(enum cordon_type t)
{
    static const char *const names[] = {"NoneType", "bool", "int", "float", "str"};
    return names[t];
}

struct expr_value expr_from_limbs(const uint64_t *limb, uint32_t n, bool neg)
{
    n = big_trim(limb, n);
    if (n == 0)
        return expr_int(0);
    if (n == 1 && limb[0] <= (uint64_t)INT64_MAX)
        return expr_int(neg ? -(int64_t)limb[0] : (int64_t)limb[0]);
    if (n == 1 && neg && limb[0] == 1ULL << 63)
        return expr_int(INT64_MIN);
    return (struct expr_value){.kind = K_BIG, .neg = neg, .len = n, .limb = limb};
}

uint32_t expr_to_limbs(const struct expr_value *v, uint64_t *cap, const uint64_t **ret_limb,
                       bool *ret_neg)
{
    if (v->kind == K_BIG) {
        *ret_limb = v->limb;
        *ret_neg = v->neg;
        return v->len;
    }
    *ret_neg = v->i < 0;
    *cap = v->i < 0 ? -(uint64_t)v->i : (uint64_t)v->i;
    *ret_limb = cap;
    return *cap != 0;
}

struct cordon_value expr_export(const struct expr_value *v)
{
    struct cordon_value r = {.type = expr_type(v), .len = v->len};
    switch (v->kind) {
    case K_FLOAT:
        r.f = v->f;
        break;
    case K_STR:
        r.s = v->s;
        break;
    case K_BIG:
        r.words = v->limb;
        r.negative = v->neg;
        break;
    default:
        r.i = v->kind == K_NONE ? 0 : v->i;
    }
    return r;
}
