/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over the code with types in place of values. For a program from our own parser it makes
 * the certificate; for one that was loaded it is also the proof that running it cannot leave its
 * stack, its constants or its slots: regions nest, jumps go forward, no region takes values from
 * below its floor, and both ways to a join leave exactly one value on it. What it accepts, eval.c
 * runs unchecked.
 */
#include "expr/big.h"
#include "expr/code.h"
#include "expr/ops.h"

#include <math.h>

#define T_INTS  (TYPE_BIT(CORDON_INT) | TYPE_BIT(CORDON_BOOL))
#define T_REAL  TYPE_BIT(CORDON_FLOAT)
#define T_NUMS  (T_INTS | T_REAL)
#define T_TEXT  TYPE_BIT(CORDON_STR)
#define T_TRUTH TYPE_BIT(CORDON_BOOL)

struct shape {
    uint8_t types;
    bool nonzero;  /* a constant that is not zero */
    uint32_t bits; /* of the longest int it can be */
    uint32_t text; /* bytes of the longest string */
};

struct join {
    uint32_t target, floor;
    struct shape left;
};

struct checker {
    struct cordon_program *p;
    struct shape *stack;
    struct join *joins;
    uint32_t height, count, cap;
    uint64_t work, scratch;
    struct cordon_certificate *c;
};

static uint32_t value_bits(const struct expr_value *v)
{
    uint64_t cap;
    const uint64_t *limb;
    bool neg;
    int exp;
    if (v->kind == K_FLOAT) {
        if (!isfinite(v->f))
            return CORDON_BITS_MAX;
        frexp(v->f, &exp);
        return exp > 0 ? (uint32_t)exp + 1 : 1;
    }
    uint32_t n = expr_to_limbs(v, &cap, &limb, &neg);
    return (uint32_t)big_bits(limb, n);
}

static struct shape shape_const(const struct expr_value *v)
{
    struct shape s = {.types = (uint8_t)TYPE_BIT(expr_type(v)), .nonzero = expr_truth(v)};
    if (v->kind == K_STR)
        s.text = v->len;
    else if (v->kind != K_NONE && v->kind != K_FLOAT)
        s.bits = value_bits(v);
    return s;
}

static struct shape shape_slot(const struct cordon_schema *sc, const struct expr_key *k)
{
    struct shape s = {.types = (uint8_t)(k->types | (k->required ? 0 : TYPE_BIT(CORDON_NONE)))};
    if (k->types & T_TRUTH)
        s.bits = 1;
    if (k->types & TYPE_BIT(CORDON_INT)) {
        s.bits = CORDON_BITS_MAX;
        if (k->has_min && k->has_max) {
            uint32_t a = value_bits(&k->min), b = value_bits(&k->max);
            s.bits = a > b ? a : b;
        }
    }
    if (k->types & T_TEXT) {
        s.text = k->enums ? 0 : CORDON_STRING_MAX;
        for (uint32_t i = 0; i < k->enums; i++) {
            uint32_t n = sc->strings[sc->members[k->first_enum + i] - 1].len;
            s.text = n > s.text ? n : s.text;
        }
    }
    return s;
}

static uint32_t greater(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static void raise(struct checker *k, enum cordon_status s)
{
    k->c->raises |= (uint16_t)(1u << s);
}

static uint64_t limbs(uint32_t bits)
{
    return bits / 64 + 1;
}

static void note_bits(struct checker *k, struct shape *r, uint64_t bits)
{
    if (bits > CORDON_BITS_MAX) {
        raise(k, CORDON_LIMIT);
        bits = CORDON_BITS_MAX;
    }
    r->bits = (uint32_t)bits;
    k->c->bits = greater(k->c->bits, r->bits);
}

static void note_text(struct checker *k, struct shape *r, uint64_t len)
{
    if (len > CORDON_STRING_MAX) {
        raise(k, CORDON_LIMIT);
        len = CORDON_STRING_MAX;
    }
    r->text = (uint32_t)len;
    k->c->text = greater(k->c->text, r->text);
    k->work += len / 8;
    k->scratch += len + 16;
}

/* The numbers of + - * /; the strings are apart. */
static void numbers(struct checker *k, enum expr_op op, const struct shape *a,
                    const struct shape *b, struct shape *r)
{
    bool ints = a->types & T_INTS && b->types & T_INTS;
    bool mixed = a->types & T_NUMS && b->types & T_NUMS && (a->types | b->types) & T_REAL;
    uint32_t big = greater(a->types & T_INTS ? a->bits : 0, b->types & T_INTS ? b->bits : 0);
    if (a->types & T_NUMS && b->types & T_NUMS) {
        uint64_t la = limbs(a->bits), lb = limbs(b->bits);
        uint64_t cap = op == OP_DIV ? la + lb + (la > lb ? la : lb) + 10 : la + lb + 2;
        k->work += op == OP_MUL ? la * lb + la : cap;
        if (greater(a->bits, b->bits) > 31) {
            uint64_t most = 3 * (CORDON_BITS_MAX / 64 + 8);
            k->scratch += (cap < most ? cap : most) * 8 + 16;
        }
    }
    if (op == OP_DIV) {
        if (ints || mixed) {
            r->types |= T_REAL;
            if (!b->nonzero)
                raise(k, CORDON_ZERO_DIVISION);
            if (big > 1023)
                raise(k, CORDON_OVERFLOW);
        }
        return;
    }
    if (ints) {
        r->types |= TYPE_BIT(CORDON_INT);
        note_bits(k, r, op == OP_MUL ? (uint64_t)a->bits + b->bits : (uint64_t)big + 1);
    }
    if (mixed) {
        r->types |= T_REAL;
        if (big > 1023)
            raise(k, CORDON_OVERFLOW);
    }
}

static void repetition(struct checker *k, const struct shape *s, const struct shape *n,
                       struct shape *r)
{
    r->types |= T_TEXT;
    note_text(k, r,
              n->bits > 21 ? (uint64_t)CORDON_STRING_MAX + (s->text > 0)
                           : (uint64_t)s->text << n->bits);
    if (n->bits > 42)
        raise(k, CORDON_OVERFLOW);
}

static struct shape arithmetic(struct checker *k, enum expr_op op, const struct shape *a,
                               const struct shape *b)
{
    struct shape r = {0};
    uint64_t before = k->scratch, most;
    k->work++;
    numbers(k, op, a, b, &r);
    most = k->scratch - before; /* a result is one or the other: a number or a string */
    k->scratch = before;
    unsigned bad_a = a->types & ~T_NUMS, bad_b = b->types & ~T_NUMS;
    if (op == OP_ADD && a->types & T_TEXT && b->types & T_TEXT) {
        r.types |= T_TEXT;
        note_text(k, &r, (uint64_t)a->text + b->text);
        if ((a->types | b->types) != T_TEXT)
            raise(k, CORDON_TYPE_ERROR);
    } else if (op == OP_MUL && ((a->types & T_TEXT && b->types & T_INTS) ||
                                (b->types & T_TEXT && a->types & T_INTS))) {
        if (a->types & T_TEXT && b->types & T_INTS)
            repetition(k, a, b, &r);
        if (b->types & T_TEXT && a->types & T_INTS) {
            uint32_t longest = r.text;
            most = k->scratch - before > most ? k->scratch - before : most;
            k->scratch = before;
            repetition(k, b, a, &r);
            r.text = greater(r.text, longest);
        }
        bool pure = (a->types == T_TEXT && !(b->types & ~T_INTS)) ||
                    (b->types == T_TEXT && !(a->types & ~T_INTS));
        if (!pure)
            raise(k, CORDON_TYPE_ERROR);
    } else if (bad_a || bad_b) {
        raise(k, CORDON_TYPE_ERROR);
    }
    if (k->scratch - before < most)
        k->scratch = before + most;
    if (r.types == 0) /* it always raises; later instructions still need a type */
        r.types = TYPE_BIT(CORDON_NONE);
    return r;
}

static struct shape comparison(struct checker *k, enum expr_op op, const struct shape *a,
                               const struct shape *b)
{
    k->work += 1;
    if (a->types & T_INTS && b->types & T_NUMS)
        k->work += limbs(a->bits);
    if (b->types & T_INTS && a->types & T_NUMS)
        k->work += limbs(b->bits);
    if (a->types & T_TEXT && b->types & T_TEXT)
        k->work += (a->text < b->text ? a->text : b->text) / 8;
    bool numeric = !(a->types & ~T_NUMS) && !(b->types & ~T_NUMS);
    bool textual = a->types == T_TEXT && b->types == T_TEXT;
    if (op < OP_EQ && !numeric && !textual)
        raise(k, CORDON_TYPE_ERROR);
    return (struct shape){.types = T_TRUTH, .bits = 1};
}

static struct shape either(const struct shape *a, const struct shape *b)
{
    return (struct shape){.types = a->types | b->types,
                          .bits = greater(a->bits, b->bits),
                          .text = greater(a->text, b->text)};
}

static int broken(struct checker *k, uint32_t pc, const char *rule, struct cordon_error *err)
{
    (void)k;
    return expr_fail(err, CORDON_BYTECODE, "instruction %u: %s", pc, rule);
}

/* Opens a region that ends at TARGET; returns what is wrong with that, or NULL. */
static const char *open_region(struct checker *k, uint32_t pc, uint32_t target, uint32_t floor,
                               struct shape left)
{
    if (target <= pc + 1 || target >= k->p->count)
        return "a jump that does not go forward";
    struct join *top = k->count ? &k->joins[k->count - 1] : NULL;
    if (top && target > top->target)
        return "a jump out of its region";
    if (top && top->target == target && top->floor == floor) {
        top->left = either(&top->left, &left);
        return NULL;
    }
    if (k->count == k->cap)
        return "regions nested too deeply";
    k->joins[k->count++] = (struct join){target, floor, left};
    return NULL;
}

static const char *step(struct checker *k, uint32_t pc)
{
    const struct expr_insn *i = &k->p->code[pc];
    uint32_t floor = k->count ? k->joins[k->count - 1].floor : 0, here = k->height - floor;
    struct shape *top = k->stack + k->height;
    unsigned op = i->op;
    if (i->zero || (op != OP_SLOT && i->slot))
        return "a field that must be zero is not";
    if (op == OP_CONST || op == OP_SLOT) {
        if (k->height == k->cap)
            return "the stack is too high";
        if (op == OP_CONST ? i->arg >= k->p->konst_count : i->slot >= k->p->schema->count || i->arg)
            return "no such constant or slot";
        *top = op == OP_CONST ? shape_const(&k->p->konst[i->arg])
                              : shape_slot(k->p->schema, &k->p->schema->keys[i->slot]);
        k->height++;
        return NULL;
    }
    if (op == OP_NEG || op == OP_NOT) {
        if (here < 1 || i->arg)
            return "no operand";
        if (op == OP_NOT) {
            top[-1] = (struct shape){.types = T_TRUTH, .bits = 1};
            return NULL;
        }
        k->work++;
        k->scratch += top[-1].bits > 62 ? 16 : 0;
        struct shape r = {0};
        if (top[-1].types & T_INTS) {
            r.types = TYPE_BIT(CORDON_INT);
            note_bits(k, &r, top[-1].bits);
        }
        r.types |= top[-1].types & T_REAL;
        r.nonzero = top[-1].nonzero;
        if (top[-1].types & ~T_NUMS)
            raise(k, CORDON_TYPE_ERROR);
        if (r.types == 0)
            r.types = TYPE_BIT(CORDON_NONE);
        top[-1] = r;
        return NULL;
    }
    if (op == OP_AND || op == OP_OR) {
        if (here < 1)
            return "no operand";
        k->height--;
        return open_region(k, pc, i->arg, k->height, top[-1]);
    }
    if (op >= OP_COUNT || op == OP_RETURN)
        return "no such instruction";
    if (here < 2)
        return "no operands";
    if (op >= OP_CHAIN_LT) {
        struct shape r =
            comparison(k, (enum expr_op)(op - OP_CHAIN_LT + OP_LT), &top[-2], &top[-1]);
        top[-2] = top[-1];
        k->height--;
        return open_region(k, pc, i->arg, k->height - 1, r);
    }
    if (i->arg)
        return "a field that must be zero is not";
    top[-2] = op >= OP_LT ? comparison(k, (enum expr_op)op, &top[-2], &top[-1])
                          : arithmetic(k, (enum expr_op)op, &top[-2], &top[-1]);
    k->height--;
    return NULL;
}

/* Bytes of results that any run can take, whatever its context holds: the most that each instruction
 * can, all of them run. Types are not followed here, but for `x + 1`, which concatenates nothing. */
static uint64_t most_scratch(const struct cordon_program *p, uint32_t stack)
{
    const uint64_t limbs_max = CORDON_BITS_MAX / 64 + 8, ints = limbs_max * 8 + 16,
                   quotient = 3 * limbs_max * 8 + 16, text = CORDON_STRING_MAX + 16;
    uint64_t sum = (uint64_t)stack * sizeof(struct expr_value) + 64;
    for (uint32_t pc = 0; pc < p->count; pc++) {
        const struct expr_insn *i = &p->code[pc];
        if (i->op == OP_ADD || i->op == OP_MUL)
            sum += i->op == OP_ADD && i[-1].op == OP_CONST && p->konst[i[-1].arg].kind != K_STR
                       ? ints
                       : text;
        else if (i->op == OP_SUB || i->op == OP_DIV)
            sum += i->op == OP_SUB ? ints : quotient;
        else if (i->op == OP_NEG)
            sum += 16;
    }
    return sum < CORDON_SCRATCH_MAX ? sum : CORDON_SCRATCH_MAX;
}

int expr_verify(struct cordon_program *p, struct expr_area *area, struct cordon_error *err)
{
    size_t mark = area->used;
    struct checker k = {.p = p, .c = &p->certificate};
    uint32_t highest = 0;
    k.cap = p->count < CORDON_PENDING_MAX + 2 ? p->count : CORDON_PENDING_MAX + 2;
    k.stack = expr_area_take(area, (k.cap + 1) * sizeof *k.stack);
    k.joins = expr_area_take(area, (k.cap + 1) * sizeof *k.joins);
    if (!k.stack || !k.joins)
        return expr_fail(err, CORDON_MEMORY, "the memory given is too small to verify this");
    *k.c = (struct cordon_certificate){.steps = p->count, .conforming = true};
    for (uint32_t pc = 0;; pc++) {
        for (; k.count && k.joins[k.count - 1].target == pc; k.count--) {
            struct join *j = &k.joins[k.count - 1];
            if (k.height != j->floor + 1)
                return broken(&k, pc, "the two ways to it leave different stacks", err);
            k.stack[k.height - 1] = either(&j->left, &k.stack[k.height - 1]);
        }
        if (pc + 1 >= p->count)
            break;
        const char *rule = step(&k, pc);
        if (rule)
            return broken(&k, pc, rule, err);
        highest = greater(highest, k.height);
    }
    if (p->count == 0 || p->code[p->count - 1].op != OP_RETURN || k.height != 1 || k.count)
        return broken(&k, p->count, "the program does not end with one value", err);
    const struct expr_insn *last = &p->code[p->count - 1];
    if (last->zero || last->slot || last->arg)
        return broken(&k, p->count - 1, "a field that must be zero is not", err);
    k.c->types = k.stack[0].types;
    k.c->stack = highest;
    k.scratch += (uint64_t)highest * sizeof(struct expr_value) + 64;
    if (k.work > CORDON_WORK_MAX || k.scratch > CORDON_SCRATCH_MAX)
        raise(&k, CORDON_LIMIT);
    k.c->work = k.work < CORDON_WORK_MAX ? k.work : CORDON_WORK_MAX;
    k.c->scratch = k.scratch < CORDON_SCRATCH_MAX ? k.scratch : CORDON_SCRATCH_MAX;
    p->scratch = most_scratch(p, highest);
    area->used = mark;
    return 0;
}
