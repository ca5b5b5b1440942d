/* SPDX-License-Identifier: Apache-2.0 */
/* An int and a float are compared as the exact numbers they are, never by casting one to the other:
 * 9007199254740993 == 9007199254740992.0 is False. Strings are ordered by code point, which on
 * valid UTF-8 is the order of the bytes. */
#include "expr/big.h"
#include "expr/error.h"
#include "expr/ops.h"

#include <string.h>

static bool is_int(const struct expr_value *v)
{
    return v->kind == K_INT || v->kind == K_BOOL || v->kind == K_BIG;
}

static int order_ints(const struct expr_value *a, const struct expr_value *b)
{
    if (a->kind != K_BIG && b->kind != K_BIG)
        return (a->i > b->i) - (a->i < b->i);
    uint64_t ra, rb;
    const uint64_t *la, *lb;
    bool na, nb;
    uint32_t ca = expr_to_limbs(a, &ra, &la, &na), cb = expr_to_limbs(b, &rb, &lb, &nb);
    if (na != nb)
        return na ? -1 : 1;
    int c = big_cmp(la, ca, lb, cb);
    return na ? -c : c;
}

/* INT against a double that is not NaN. */
static int order_int_double(const struct expr_value *a, double d)
{
    if (isinf(d))
        return d > 0 ? -1 : 1;
    if (a->kind != K_BIG && a->i >= -(1LL << 53) && a->i <= 1LL << 53) {
        double x = (double)a->i;
        return (x > d) - (x < d);
    }
    uint64_t cap;
    const uint64_t *limb;
    bool neg;
    uint32_t n = expr_to_limbs(a, &cap, &limb, &neg);
    if (neg != (d < 0))
        return neg ? -1 : 1;
    int c = big_cmp_double(limb, n, fabs(d));
    return neg ? -c : c;
}

int expr_order(const struct expr_value *a, const struct expr_value *b)
{
    bool fa = a->kind == K_FLOAT, fb = b->kind == K_FLOAT;
    if (fa && fb)
        return (a->f > b->f) - (a->f < b->f);
    if (fa)
        return -order_int_double(b, a->f);
    return fb ? order_int_double(a, b->f) : order_ints(a, b);
}

static int order_strings(const struct expr_value *a, const struct expr_value *b)
{
    uint32_t n = a->len < b->len ? a->len : b->len;
    int c = n ? memcmp(a->s, b->s, n) : 0;
    return c ? c : (a->len > b->len) - (a->len < b->len);
}

int expr_compare(struct expr_run *run, enum expr_cmp op, const struct expr_value *a,
                 const struct expr_value *b, bool *ret)
{
    static const char *const symbols[] = {"<", "<=", ">", ">=", "==", "!="};
    bool ia = is_int(a), ib = is_int(b), fa = a->kind == K_FLOAT, fb = b->kind == K_FLOAT;
    uint64_t words = 1;
    if (a->kind == K_STR && b->kind == K_STR)
        words += (a->len < b->len ? a->len : b->len) / 8;
    else if ((ia || fa) && (ib || fb))
        words += (a->kind == K_BIG ? a->len : 0) + (b->kind == K_BIG ? b->len : 0);
    int r = expr_spend(run, words);
    if (r)
        return r;
    if ((ia || fa) && (ib || fb)) {
        if ((fa && isnan(a->f)) || (fb && isnan(b->f))) {
            *ret = op == CMP_NE;
            return 0;
        }
        *ret = expr_holds(op, expr_order(a, b));
        return 0;
    }
    if (a->kind == K_STR && b->kind == K_STR) {
        if (op >= CMP_EQ && a->len != b->len)
            *ret = op == CMP_NE;
        else
            *ret = expr_holds(op, order_strings(a, b));
        return 0;
    }
    if (op >= CMP_EQ) {
        bool same = a->kind == K_NONE && b->kind == K_NONE;
        *ret = same == (op == CMP_EQ);
        return 0;
    }
    return expr_fail(run->err, CORDON_TYPE_ERROR,
                     "'%s' not supported between instances of '%s' and '%s'", symbols[op],
                     expr_type_name(expr_type(a)), expr_type_name(expr_type(b)));
}
