/* SPDX-License-Identifier: Apache-2.0 */
/* Each operator first tries the two common cases (two small ints, two floats), then the exact ones.
 * Which of CPython's many TypeError texts comes out depends on which slot of which type it asks
 * first; the order of the tests below is CPython's order. */
#include "expr/big.h"
#include "expr/error.h"
#include "expr/ops.h"

#include <string.h>

static bool is_int(const struct expr_value *v)
{
    return v->kind == K_INT || v->kind == K_BOOL || v->kind == K_BIG;
}

int expr_spend(struct expr_run *run, uint64_t units)
{
    run->work += units;
    if (run->work > CORDON_WORK_MAX)
        return expr_fail(run->err, CORDON_LIMIT,
                         "the evaluation takes more than %u word operations", CORDON_WORK_MAX);
    return 0;
}

static int no_room(struct expr_run *run)
{
    if (run->area.cap >= CORDON_SCRATCH_MAX)
        return expr_fail(run->err, CORDON_LIMIT, "the evaluation takes more than %u bytes",
                         CORDON_SCRATCH_MAX);
    return expr_fail(run->err, CORDON_MEMORY,
                     "the scratch memory is too small for this evaluation");
}

static int give_int(struct expr_run *run, const uint64_t *limb, uint32_t n, bool neg,
                    struct expr_value *ret)
{
    uint64_t bits = big_bits(limb, n);
    if (bits > CORDON_BITS_MAX)
        return expr_fail(run->err, CORDON_LIMIT, "an integer of more than %u bits",
                         CORDON_BITS_MAX);
    if (bits > run->bits)
        run->bits = (uint32_t)bits;
    *ret = expr_from_limbs(limb, n, neg);
    return 0;
}

static int give_small(struct expr_run *run, int64_t i, struct expr_value *ret)
{
    uint64_t m = i < 0 ? -(uint64_t)i : (uint64_t)i;
    uint32_t bits = m ? 64 - (uint32_t)__builtin_clzll(m) : 0;
    if (bits > run->bits)
        run->bits = bits;
    *ret = expr_int(i);
    return 0;
}

/* +, - and * of two ints of any size. */
static int big_arith(struct expr_run *run, enum expr_arith op, const struct expr_value *a,
                     const struct expr_value *b, struct expr_value *ret)
{
    uint64_t ra, rb;
    const uint64_t *la, *lb;
    bool na, nb;
    uint32_t ca = expr_to_limbs(a, &ra, &la, &na), cb = expr_to_limbs(b, &rb, &lb, &nb);
    uint64_t cap = op == ARITH_MUL ? (uint64_t)ca + cb : (uint64_t)(ca > cb ? ca : cb) + 1;
    int r = expr_spend(run, op == ARITH_MUL ? (uint64_t)ca * cb + ca : (uint64_t)ca + cb);
    if (r)
        return r;
    if (op == ARITH_MUL && cap > CORDON_BITS_MAX / 64 + 2)
        return expr_fail(run->err, CORDON_LIMIT, "an integer of more than %u bits",
                         CORDON_BITS_MAX);
    uint64_t *out = expr_area_take(&run->area, (size_t)(cap ? cap : 1) * sizeof *out);
    if (!out)
        return no_room(run);
    if (op == ARITH_MUL)
        return give_int(run, out, big_mul(out, la, ca, lb, cb), na != nb, ret);
    if (op == ARITH_SUB)
        nb = !nb;
    if (na == nb)
        return give_int(run, out, big_add(out, la, ca, lb, cb), na, ret);
    if (big_cmp(la, ca, lb, cb) >= 0)
        return give_int(run, out, big_sub(out, la, ca, lb, cb), na, ret);
    return give_int(run, out, big_sub(out, lb, cb, la, ca), nb, ret);
}

static int int_arith(struct expr_run *run, enum expr_arith op, const struct expr_value *a,
                     const struct expr_value *b, struct expr_value *ret)
{
    int64_t r;
    if (a->kind == K_BIG || b->kind == K_BIG)
        return big_arith(run, op, a, b, ret);
    if (op == ARITH_ADD   ? __builtin_add_overflow(a->i, b->i, &r)
        : op == ARITH_SUB ? __builtin_sub_overflow(a->i, b->i, &r)
                          : __builtin_mul_overflow(a->i, b->i, &r))
        return big_arith(run, op, a, b, ret);
    return give_small(run, r, ret);
}

static int int_divide(struct expr_run *run, const struct expr_value *a, const struct expr_value *b,
                      struct expr_value *ret)
{
    if (b->kind != K_BIG && b->i == 0)
        return expr_fail(run->err, CORDON_ZERO_DIVISION, "division by zero");
    const int64_t exact = 1LL << 53;
    if (a->kind != K_BIG && b->kind != K_BIG && a->i >= -exact && a->i <= exact && b->i >= -exact &&
        b->i <= exact) {
        *ret = expr_float((double)a->i / (double)b->i);
        return 0;
    }
    uint64_t ra, rb;
    const uint64_t *la, *lb;
    bool na, nb;
    uint32_t ca = expr_to_limbs(a, &ra, &la, &na), cb = expr_to_limbs(b, &rb, &lb, &nb);
    uint64_t cap = big_quotient_cap(la, ca, lb, cb);
    int r = expr_spend(run, cap);
    if (r)
        return r;
    size_t mark = run->area.used;
    uint64_t *work = expr_area_take(&run->area, (size_t)cap * sizeof *work);
    if (!work)
        return no_room(run);
    double d = 0;
    bool fits = big_quotient(la, ca, lb, cb, work, &d);
    run->area.used = mark;
    if (!fits)
        return expr_fail(run->err, CORDON_OVERFLOW,
                         "integer division result too large for a float");
    *ret = expr_float(na != nb ? -d : d);
    return 0;
}

static int to_double(struct expr_run *run, const struct expr_value *v, double *ret)
{
    if (v->kind == K_FLOAT)
        *ret = v->f;
    else if (v->kind != K_BIG)
        *ret = (double)v->i;
    else if (!big_double(v->limb, v->len, ret))
        return expr_fail(run->err, CORDON_OVERFLOW, "int too large to convert to float");
    else if (v->neg)
        *ret = -*ret;
    return 0;
}

static int float_arith(struct expr_run *run, enum expr_arith op, const struct expr_value *a,
                       const struct expr_value *b, struct expr_value *ret)
{
    double x, y;
    int r;
    run->work += (a->kind == K_BIG ? a->len : 0) + (b->kind == K_BIG ? b->len : 0);
    if ((r = to_double(run, a, &x)) || (r = to_double(run, b, &y)))
        return r;
    if (op == ARITH_DIV && y == 0)
        return expr_fail(run->err, CORDON_ZERO_DIVISION, "float division by zero");
    *ret = expr_float(op == ARITH_ADD   ? x + y
                      : op == ARITH_SUB ? x - y
                      : op == ARITH_MUL ? x * y
                                        : x / y);
    return 0;
}

static int text_room(struct expr_run *run, uint64_t len, char **ret)
{
    if (len > CORDON_STRING_MAX)
        return expr_fail(run->err, CORDON_LIMIT, "a string of more than %u bytes",
                         CORDON_STRING_MAX);
    int r = expr_spend(run, len / 8);
    if (r)
        return r;
    *ret = expr_area_take(&run->area, len ? (size_t)len : 1);
    if (!*ret)
        return no_room(run);
    if (len > run->text)
        run->text = (uint32_t)len;
    return 0;
}

static int concat(struct expr_run *run, const struct expr_value *a, const struct expr_value *b,
                  struct expr_value *ret)
{
    char *out;
    int r = text_room(run, (uint64_t)a->len + b->len, &out);
    if (r)
        return r;
    if (a->len)
        memcpy(out, a->s, a->len);
    if (b->len)
        memcpy(out + a->len, b->s, b->len);
    *ret = expr_str(out, a->len + b->len);
    return 0;
}

static int repeat(struct expr_run *run, const struct expr_value *s, const struct expr_value *n,
                  struct expr_value *ret)
{
    if (!is_int(n))
        return expr_fail(run->err, CORDON_TYPE_ERROR,
                         "can't multiply sequence by non-int of type '%s'",
                         expr_type_name(expr_type(n)));
    if (n->kind == K_BIG) /* also a negative one: CPython converts before it looks */
        return expr_fail(run->err, CORDON_OVERFLOW, "cannot fit 'int' into an index-sized integer");
    *ret = expr_str("", 0);
    if (n->i < 1 || s->len == 0)
        return 0;
    *ret = *s;
    if (n->i == 1)
        return 0;
    uint64_t chars = 0;
    for (uint32_t i = 0; i < s->len; i++)
        chars += ((unsigned char)s->s[i] & 0xc0) != 0x80;
    if (chars > (uint64_t)INT64_MAX / (uint64_t)n->i)
        return expr_fail(run->err, CORDON_OVERFLOW, "repeated string is too long");
    if ((uint64_t)n->i > CORDON_STRING_MAX)
        return expr_fail(run->err, CORDON_LIMIT, "a string of more than %u bytes",
                         CORDON_STRING_MAX);
    char *out;
    uint64_t len = (uint64_t)n->i * s->len;
    int r = text_room(run, len, &out);
    if (r)
        return r;
    for (uint64_t at = 0; at < len; at += s->len)
        memcpy(out + at, s->s, s->len);
    *ret = expr_str(out, (uint32_t)len);
    return 0;
}

int expr_arith(struct expr_run *run, enum expr_arith op, const struct expr_value *a,
               const struct expr_value *b, struct expr_value *ret)
{
    static const char symbols[] = "+-*/";
    bool ia = is_int(a), ib = is_int(b), fa = a->kind == K_FLOAT, fb = b->kind == K_FLOAT;
    int r = expr_spend(run, 1);
    if (r)
        return r;
    if (ia && ib)
        return op == ARITH_DIV ? int_divide(run, a, b, ret) : int_arith(run, op, a, b, ret);
    if ((ia || fa) && (ib || fb))
        return float_arith(run, op, a, b, ret);
    if (op == ARITH_ADD && a->kind == K_STR) {
        if (b->kind == K_STR)
            return concat(run, a, b, ret);
        return expr_fail(run->err, CORDON_TYPE_ERROR,
                         "can only concatenate str (not \"%s\") to str",
                         expr_type_name(expr_type(b)));
    }
    if (op == ARITH_MUL && a->kind == K_STR)
        return repeat(run, a, b, ret);
    if (op == ARITH_MUL && b->kind == K_STR)
        return repeat(run, b, a, ret);
    return expr_fail(run->err, CORDON_TYPE_ERROR,
                     "unsupported operand type(s) for %c: '%s' and '%s'", symbols[op],
                     expr_type_name(expr_type(a)), expr_type_name(expr_type(b)));
}

int expr_negate(struct expr_run *run, const struct expr_value *a, struct expr_value *ret)
{
    if (expr_spend(run, 1))
        return CORDON_LIMIT;
    switch (a->kind) {
    case K_FLOAT:
        *ret = expr_float(-a->f);
        return 0;
    case K_BOOL:
    case K_INT:
        if (a->i != INT64_MIN)
            return give_small(run, -a->i, ret);
        break;
    case K_BIG:
        break;
    default:
        return expr_fail(run->err, CORDON_TYPE_ERROR, "bad operand type for unary -: '%s'",
                         expr_type_name(expr_type(a)));
    }
    uint64_t cap;
    const uint64_t *limb;
    bool neg;
    uint32_t n = expr_to_limbs(a, &cap, &limb, &neg);
    if (a->kind == K_BIG) /* the same limbs with the other sign */
        return give_int(run, limb, n, !neg, ret);
    uint64_t *out = expr_area_take(&run->area, sizeof *out);
    if (!out)
        return no_room(run);
    *out = cap;
    return give_int(run, out, n, !neg, ret);
}
