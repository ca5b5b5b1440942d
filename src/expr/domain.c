/* SPDX-License-Identifier: Apache-2.0 */
/* One interval a key is enough for what models write: x > 5 and x < 3, 0 <= x <= 1. Bounds are
 * values of the language, compared by its own exact order, so 2**53 and its neighbours are told
 * apart. */
#include "expr/domain.h"

#include <string.h>

#define NUMBERS (TYPE_NUMBER | TYPE_BIT(CORDON_BOOL))
#define TEXT    TYPE_BIT(CORDON_STR)
#define NOTHING TYPE_BIT(CORDON_NONE)

struct domain domain_of(const struct expr_key *k)
{
    struct domain d = {.types = (uint8_t)(k->types | (k->required ? 0 : NOTHING)),
                       .nan = k->types & TYPE_BIT(CORDON_FLOAT) && !k->has_min && !k->has_max,
                       .has_lo = k->has_min,
                       .has_hi = k->has_max,
                       .lo = k->min,
                       .hi = k->max};
    if (k->enums && k->enums <= 64) {
        d.has_members = true;
        d.members = k->enums == 64 ? ~0ULL : (1ULL << k->enums) - 1;
    }
    return d;
}

static bool is_number(const struct expr_value *v)
{
    return v->kind == K_INT || v->kind == K_BIG || v->kind == K_BOOL ||
           (v->kind == K_FLOAT && !isnan(v->f));
}

/* Drops the types whose values have run out. */
static void normalize(struct domain *d)
{
    if (d->types & NUMBERS && !(d->types & TYPE_BIT(CORDON_FLOAT))) {
        /* only ints: an open or broken bound moves to the next int */
        if (d->has_lo && d->lo.kind == K_FLOAT && fabs(d->lo.f) < 1e15) {
            double c = ceil(d->lo.f);
            d->lo_open = d->lo_open && c == d->lo.f;
            d->lo = expr_int((int64_t)c);
        }
        if (d->has_hi && d->hi.kind == K_FLOAT && fabs(d->hi.f) < 1e15) {
            double c = floor(d->hi.f);
            d->hi_open = d->hi_open && c == d->hi.f;
            d->hi = expr_int((int64_t)c);
        }
        if (d->has_lo && d->lo_open && d->lo.kind <= K_INT && d->lo.i < INT64_MAX) {
            d->lo = expr_int(d->lo.i + 1);
            d->lo_open = false;
        }
        if (d->has_hi && d->hi_open && d->hi.kind <= K_INT && d->hi.i > INT64_MIN) {
            d->hi = expr_int(d->hi.i - 1);
            d->hi_open = false;
        }
    }
    if (d->has_lo && d->has_hi && d->types & NUMBERS) {
        int c = expr_order(&d->lo, &d->hi);
        if (c > 0 || (c == 0 && (d->lo_open || d->hi_open)))
            d->types &= (uint8_t)(d->nan ? ~(NUMBERS & ~TYPE_BIT(CORDON_FLOAT)) : ~NUMBERS);
    }
    if (d->has_members && d->members == 0)
        d->types &= (uint8_t)~TEXT;
}

/* Whether the numbers of D can be below, at, above C. */
static void sides(const struct domain *d, const struct expr_value *c, bool *below, bool *at,
                  bool *above)
{
    int lo = d->has_lo ? expr_order(&d->lo, c) : -1, hi = d->has_hi ? expr_order(&d->hi, c) : 1;
    *below = lo < 0;
    *above = hi > 0;
    *at = !(lo > 0 || (lo == 0 && d->has_lo && d->lo_open)) &&
          !(hi < 0 || (hi == 0 && d->has_hi && d->hi_open));
    if (c->kind == K_FLOAT && c->f != floor(c->f) && !(d->types & TYPE_BIT(CORDON_FLOAT)))
        *at = false;
    if (d->has_hole && expr_order(&d->hole, c) == 0)
        *at = false;
    if (!(d->types & NUMBERS))
        *below = *at = *above = false;
    /* only NaN left: the interval has run out */
    if (d->has_lo && d->has_hi) {
        int both = expr_order(&d->lo, &d->hi);
        if (both > 0 || (both == 0 && (d->lo_open || d->hi_open)))
            *below = *at = *above = false;
    }
}

static int order_text(const struct expr_value *a, const struct expr_value *b)
{
    uint32_t n = a->len < b->len ? a->len : b->len;
    int c = n ? memcmp(a->s, b->s, n) : 0;
    return c ? c : (a->len > b->len) - (a->len < b->len);
}

static const struct expr_value *member(const struct cordon_schema *s, const struct expr_key *k,
                                       unsigned i)
{
    return &s->strings[s->members[k->first_enum + i] - 1];
}

static struct verdict compare_text(const struct domain *d, const struct cordon_schema *s,
                                   const struct expr_key *k, enum expr_cmp op,
                                   const struct expr_value *c)
{
    struct verdict v = {0};
    if (!(d->types & TEXT))
        return v;
    if (!d->has_members)
        return (struct verdict){.can_true = true, .can_false = true};
    for (unsigned i = 0; i < k->enums; i++)
        if (d->members >> i & 1) {
            bool t = expr_holds(op, order_text(member(s, k, i), c));
            v.can_true = v.can_true || t;
            v.can_false = v.can_false || !t;
        }
    return v;
}

struct verdict domain_compare(const struct domain *d, const struct cordon_schema *s,
                              const struct expr_key *k, enum expr_cmp op,
                              const struct expr_value *c)
{
    struct verdict v = {0};
    unsigned others = d->types; /* the types that C's own is not */
    if (is_number(c)) {
        bool below, at, above;
        sides(d, c, &below, &at, &above);
        v.can_true = (below && expr_holds(op, -1)) || (at && expr_holds(op, 0)) ||
                     (above && expr_holds(op, 1));
        v.can_false = (below && !expr_holds(op, -1)) || (at && !expr_holds(op, 0)) ||
                      (above && !expr_holds(op, 1));
        if (d->nan && d->types & TYPE_BIT(CORDON_FLOAT)) {
            v.can_true = v.can_true || op == CMP_NE;
            v.can_false = v.can_false || op != CMP_NE;
        }
        others &= ~NUMBERS;
    } else if (c->kind == K_STR) {
        v = compare_text(d, s, k, op, c);
        others &= ~TEXT;
    } else if (c->kind == K_NONE && op >= CMP_EQ && others & NOTHING) {
        v.can_true = op == CMP_EQ;
        v.can_false = op == CMP_NE;
        others &= ~NOTHING;
    } else if (c->kind == K_FLOAT) { /* NaN */
        v.can_true = op == CMP_NE && others & NUMBERS;
        v.can_false = op != CMP_NE && others & NUMBERS;
        others &= ~NUMBERS;
    }
    if (others && op >= CMP_EQ) {
        v.can_true = v.can_true || op == CMP_NE;
        v.can_false = v.can_false || op == CMP_EQ;
    } else if (others) {
        v.can_raise = true;
    }
    return v;
}

static void raise_lo(struct domain *d, const struct expr_value *c, bool open)
{
    int o = d->has_lo ? expr_order(c, &d->lo) : 1;
    if (o > 0 || (o == 0 && open)) {
        d->has_lo = true;
        d->lo = *c;
        d->lo_open = open;
    }
}

static void lower_hi(struct domain *d, const struct expr_value *c, bool open)
{
    int o = d->has_hi ? expr_order(c, &d->hi) : -1;
    if (o < 0 || (o == 0 && open)) {
        d->has_hi = true;
        d->hi = *c;
        d->hi_open = open;
    }
}

void domain_refine(struct domain *d, const struct cordon_schema *s, const struct expr_key *k,
                   enum expr_cmp op, const struct expr_value *c, bool truth)
{
    static const uint8_t opposite[] = {CMP_GE, CMP_GT, CMP_LE, CMP_LT, CMP_NE, CMP_EQ};
    enum expr_cmp holds = truth ? op : (enum expr_cmp)opposite[op]; /* of what is not NaN */
    bool nan_stays = truth == (op == CMP_NE);
    if (is_number(c)) {
        if (op < CMP_EQ || holds == CMP_EQ)
            d->types &= (uint8_t)NUMBERS;
        if (!nan_stays)
            d->nan = false;
        if (holds == CMP_GT || holds == CMP_GE || holds == CMP_EQ)
            raise_lo(d, c, holds == CMP_GT);
        if (holds == CMP_LT || holds == CMP_LE || holds == CMP_EQ)
            lower_hi(d, c, holds == CMP_LT);
        if (holds == CMP_NE) {
            d->has_hole = true;
            d->hole = *c;
        }
        if (holds == CMP_NE && d->has_lo && expr_order(&d->lo, c) == 0)
            d->lo_open = true;
        if (holds == CMP_NE && d->has_hi && expr_order(&d->hi, c) == 0)
            d->hi_open = true;
    } else if (c->kind == K_STR) {
        if (op < CMP_EQ || holds == CMP_EQ)
            d->types &= (uint8_t)TEXT;
        for (unsigned i = 0; d->has_members && i < k->enums; i++)
            if (!expr_holds(holds, order_text(member(s, k, i), c)))
                d->members &= ~(1ULL << i);
    } else if (c->kind == K_NONE) {
        if (op < CMP_EQ)
            d->types = 0;
        else
            d->types &= (uint8_t)(holds == CMP_EQ ? NOTHING : ~NOTHING);
    }
    normalize(d);
}

struct verdict domain_truth(const struct domain *d)
{
    struct expr_value zero = expr_int(0);
    bool below, at, above;
    sides(d, &zero, &below, &at, &above);
    bool other_text = d->types & TEXT, text_false = other_text;
    bool nan = d->nan && d->types & TYPE_BIT(CORDON_FLOAT);
    return (struct verdict){.can_true = below || above || nan || other_text,
                            .can_false = at || text_false || d->types & NOTHING};
}

void domain_refine_truth(struct domain *d, bool truth)
{
    if (truth)
        d->types &= (uint8_t)~NOTHING;
    else
        d->nan = false;
    normalize(d);
}
