/* SPDX-License-Identifier: Apache-2.0 */
/* Two loops: one for programs whose every step is a leaf or joins truths (the usual condition),
 * which needs no stack in memory, no call and so no frame at all; one for the rest. Threaded by
 * computed gotos: each step's jump has its own place in the branch predictor. */
#include "expr/eval.h"
#include "expr/fast.h"

#include <string.h>

/* Tables and their steps: the layout is ours. */
/* clang-format off */
#define LEAVES(X, join)                                                                            \
    X(join, 0, f, <)  X(join, 1, f, <=) X(join, 2, f, >)    X(join, 3, f, >=)                      \
    X(join, 4, f, ==) X(join, 5, f, !=) X(join, 6, i, <)    X(join, 7, i, <=)                      \
    X(join, 8, i, >)  X(join, 9, i, >=) X(join, 10, i, ==)  X(join, 11, i, !=)                     \
    X(join, 12, code, ==) X(join, 13, code, !=)

#define LABEL(join, n, field, op) [FAST_LEAF + FAST_JOIN * join + n] = &&leaf_##join##_##n,
#define AT                        ((const struct expr_value *)((const char *)v + i->jump))
#define READ_f                    AT->f
#define READ_i                    AT->i
#define READ_code                 (int64_t) AT->code
#define WITH_f                    i->f
#define WITH_i                    i->i
#define WITH_code                 i->i
#define NEXT                      goto *steps[(++i)->op]
#define STEP_0(truth)             b = b << 1 | (truth)
#define STEP_1(truth)             b &= (truth) | ~1ULL
#define STEP_2(truth)             b |= (truth)
#define BODY(join, n, field, op)                                                                   \
    leaf_##join##_##n : STEP_##join((uint64_t)(READ_##field op WITH_##field));                     \
    NEXT;

/* The last leaf returns at once. */
#define LAST_LABEL(join, n, field, op) [FAST_LAST + FAST_JOIN * join + n] = &&last_##join##_##n,
#define LAST_0(truth)                  (truth)
#define LAST_1(truth)                  (b & (truth))
#define LAST_2(truth)                  ((b | (truth)) & 1)
#define LAST_BODY(join, n, field, op)                                                              \
    last_##join##_##n : RETURN_BIT(LAST_##join((uint64_t)(READ_##field op WITH_##field)));

static inline bool same_text(const struct expr_value *a, const struct expr_value *b)
{
    return a->len == b->len && memcmp(a->s, b->s, a->len) == 0;
}

/* The steps that both loops have. */
#define COMMON_LABELS                                                                              \
    LEAVES(LABEL, 0) LEAVES(LABEL, 1) LEAVES(LABEL, 2)                                             \
    LEAVES(LAST_LABEL, 0) LEAVES(LAST_LABEL, 1) LEAVES(LAST_LABEL, 2)                              \
    [FAST_BIT] = &&bit, [FAST_NOT] = &&not, [FAST_AND] = &&and, [FAST_OR] = &&or,                  \
    [FAST_JUMP_FALSE] = &&jump_false, [FAST_JUMP_TRUE] = &&jump_true,                              \
    [FAST_RETURN_BIT] = &&return_bit
#define COMMON_STEPS                                                                               \
    LEAVES(BODY, 0)                                                                                \
    LEAVES(BODY, 1)                                                                                \
    LEAVES(BODY, 2)                                                                                \
    LEAVES(LAST_BODY, 0)                                                                           \
    LEAVES(LAST_BODY, 1)                                                                           \
    LEAVES(LAST_BODY, 2)                                                                           \
    bit:                                                                                           \
    b = b << 1 | (uint64_t)i->i;                                                                   \
    NEXT;                                                                                          \
    not : b ^= 1;                                                                                  \
    NEXT;                                                                                          \
    and : b = b >> 1 & (b | ~1ULL);                                                                \
    NEXT;                                                                                          \
    or : b = b >> 1 | (b & 1);                                                                     \
    NEXT;                                                                                          \
    jump_false:                                                                                    \
    if (!(b & 1))                                                                                  \
        i = p->fast + i->jump - 1;                                                                 \
    NEXT;                                                                                          \
    jump_true:                                                                                     \
    if (b & 1)                                                                                     \
        i = p->fast + i->jump - 1;                                                                 \
    NEXT;
/* clang-format on */

static int run_plain(const struct fast_insn *i, const struct cordon_program *p,
                     const struct cordon_ctx *c)
{
    static const void *const steps[FAST_COUNT] = {COMMON_LABELS};
    const struct expr_value *v = c->value;
    uint64_t b = 0;
    goto *steps[i->op];
#define RETURN_BIT(truth) return (int)(truth)
    COMMON_STEPS
return_bit:
    return (int)(b & 1);
#undef RETURN_BIT
}

union cell {
    double f;
    int64_t i;
};

#define SIX(base, at, cmp, field)                                                                  \
    [base + 0] = &&at##0, [base + 1] = &&at##1, [base + 2] = &&at##2, [base + 3] = &&at##3,        \
            [base + 4] = &&at##4, [base + 5] = &&at##5
#define SIX_STEPS(at, down, keep, field)                                                           \
    at##0 : down;                                                                                  \
    b = b << 1 | (s[-1 + keep].field < s[keep].field);                                             \
    goto at##end;                                                                                  \
    at##1 : down;                                                                                  \
    b = b << 1 | (s[-1 + keep].field <= s[keep].field);                                            \
    goto at##end;                                                                                  \
    at##2 : down;                                                                                  \
    b = b << 1 | (s[-1 + keep].field > s[keep].field);                                             \
    goto at##end;                                                                                  \
    at##3 : down;                                                                                  \
    b = b << 1 | (s[-1 + keep].field >= s[keep].field);                                            \
    goto at##end;                                                                                  \
    at##4 : down;                                                                                  \
    b = b << 1 | (s[-1 + keep].field == s[keep].field);                                            \
    goto at##end;                                                                                  \
    at##5 : down;                                                                                  \
    b = b << 1 | (s[-1 + keep].field != s[keep].field);                                            \
    goto at##end;

/* S is below the bottom of the stack; the maker of the code (quicken.c) has seen that no step reads
 * a cell that none has written. */
static int run_full(const struct cordon_program *p, const struct cordon_ctx *c, union cell *s,
                    struct expr_value *ret)
{
    static const void *const steps[FAST_COUNT] = {
        COMMON_LABELS,
        [FAST_TEXT_EQ] = &&text_eq,
        [FAST_TEXT_NE] = &&text_ne,
        [FAST_SLOT] = &&slot,
        [FAST_CONST] = &&konst,
        [FAST_SWAP] = &&swap,
        [FAST_DOUBLE] = &&to_double,
        [FAST_DOUBLE_EXACT] = &&to_double_exact,
        [FAST_ADD_F] = &&add_f,
        [FAST_SUB_F] = &&sub_f,
        [FAST_MUL_F] = &&mul_f,
        [FAST_DIV_F] = &&div_f,
        [FAST_ADD_I] = &&add_i,
        [FAST_SUB_I] = &&sub_i,
        [FAST_MUL_I] = &&mul_i,
        [FAST_DIV_I] = &&div_i,
        [FAST_NEG_F] = &&neg_f,
        [FAST_NEG_I] = &&neg_i,
        SIX(FAST_CMP_F, cf, , ),
        SIX(FAST_CMP_I, ci, , ),
        SIX(FAST_KEEP_F, kf, , ),
        SIX(FAST_KEEP_I, ki, , ),
        [FAST_RETURN_F] = &&return_f,
        [FAST_RETURN_I] = &&return_i,
    };
    const struct fast_insn *i = p->fast;
    const struct expr_value *v = c->value;
    const int64_t exact = 1LL << 53;
    uint64_t b = 0;
    goto *steps[i->op];
#define RETURN_BIT(truth)                                                                          \
    b = (truth);                                                                                   \
    goto return_bit
    COMMON_STEPS
text_eq:
    b = b << 1 | same_text(&v[i->slot], &p->konst[i->jump]);
    NEXT;
text_ne:
    b = b << 1 | !same_text(&v[i->slot], &p->konst[i->jump]);
    NEXT;
slot:
    (++s)->i = v[i->slot].i;
    NEXT;
konst:
    (++s)->i = i->i;
    NEXT;
swap : {
    union cell t = s[0];
    s[0] = s[-1];
    s[-1] = t;
    NEXT;
}
to_double_exact:
    if (s->i > exact || s->i < -exact)
        return -1;
to_double:
    s->f = (double)s->i;
    NEXT;
add_f:
    s--;
    s->f += s[1].f;
    NEXT;
sub_f:
    s--;
    s->f -= s[1].f;
    NEXT;
mul_f:
    s--;
    s->f *= s[1].f;
    NEXT;
div_f:
    s--;
    if (s[1].f == 0)
        return -1;
    s->f /= s[1].f;
    NEXT;
add_i:
    s--;
    if (__builtin_add_overflow(s->i, s[1].i, &s->i))
        return -1;
    NEXT;
sub_i:
    s--;
    if (__builtin_sub_overflow(s->i, s[1].i, &s->i))
        return -1;
    NEXT;
mul_i:
    s--;
    if (__builtin_mul_overflow(s->i, s[1].i, &s->i))
        return -1;
    NEXT;
div_i:
    s--;
    if (s[1].i == 0 || s->i > exact || s->i < -exact || s[1].i > exact || s[1].i < -exact)
        return -1;
    s->f = (double)s->i / (double)s[1].i;
    NEXT;
neg_f:
    s->f = -s->f;
    NEXT;
neg_i:
    if (s->i == INT64_MIN)
        return -1;
    s->i = -s->i;
    NEXT;
    SIX_STEPS(cf, s -= 2, 2, f)
    SIX_STEPS(ci, s -= 2, 2, i)
    SIX_STEPS(kf, s -= 1, 1, f)
    SIX_STEPS(ki, s -= 1, 1, i)
kfend:
kiend:
    s[0] = s[1];
cfend:
ciend:
    NEXT;
return_bit:
    *ret = expr_bool(b & 1);
    return (int)(b & 1);
return_f:
    *ret = expr_float(s->f);
    return s->f != 0;
return_i:
    *ret = expr_int(s->i);
    return s->i != 0;
}

static __attribute__((noinline)) int
run_on_stack(const struct cordon_program *p, const struct cordon_ctx *c, struct expr_value *ret)
{
    union cell stack[FAST_STACK + 2] __attribute__((uninitialized)); /* [0] is never used */
    return run_full(p, c, stack, ret);
}

int fast_run(const struct cordon_program *p, const struct cordon_ctx *c, struct expr_value *ret)
{
    if (!p->fast_plain)
        return run_on_stack(p, c, ret);
    int r = run_plain(p->fast, p, c);
    *ret = expr_bool(r);
    return r;
}

static __attribute__((noinline)) int
test_other(const struct cordon_program *p, const struct cordon_ctx *c, void *scratch, size_t len)
{
    struct expr_value v;
    int r = fast_ready(p, c) ? fast_run(p, c, &v) : -1;
    return r >= 0 ? r : expr_test_exact(p, c, scratch, len);
}

int cordon_test(const struct cordon_program *p, const struct cordon_ctx *c, void *scratch,
                size_t scratch_len)
{
    if (__builtin_expect(p->plain && (c->bits.ready & p->ready) == p->ready, 1))
        return run_plain(p->plain, p, c);
    return test_other(p, c, scratch, scratch_len);
}
