/* SPDX-License-Identifier: Apache-2.0 */
/* Exact code to typed code. Operands are kept unread as long as possible: a slot or constant that
 * meets a comparison becomes one leaf instead of two loads and a compare. The rewritings are exact
 * because ints are: n + 1 > 4 is n > 3, n > 0.5 is n > 0. Whatever has no exact typed form gets
 * none. */
#include "expr/fast.h"

enum lazy { L_SLOT, L_CONST, L_NUMBER, L_BIT };

struct item {
    uint8_t lazy;
    uint8_t kind; /* K_INT (also bool), K_FLOAT, K_STR, K_BOOL of a slot */
    uint16_t slot;
    uint32_t konst; /* L_CONST: its index */
    int64_t plus;   /* L_SLOT of ints: slot + plus */
};

struct join {
    uint32_t target, start, jump; /* start: fast code when the region began */
    uint8_t op;                   /* FAST_AND or FAST_OR */
};
#define NO_JUMP UINT32_MAX

struct quick {
    const struct cordon_program *p;
    const uint8_t *kinds; /* by slot, in place of the schema's; strings are then compared as such */
    struct fast_insn *out;
    uint32_t count, cap;
    struct item stack[FAST_STACK * 2];
    struct join joins[FAST_BITS];
    uint32_t height, join_count, numbers, bits;
    bool plain, failed;
    struct fast_insn nowhere; /* written to once `failed` */
};

static struct fast_insn *put(struct quick *q, unsigned op)
{
    if (q->count == q->cap) {
        q->failed = true;
        return &q->nowhere;
    }
    struct fast_insn *i = &q->out[q->count++];
    *i = (struct fast_insn){.op = (uint16_t)op};
    q->plain = q->plain && op < FAST_PLAIN_END;
    return i;
}

static void push(struct quick *q, struct item x)
{
    if (q->height == FAST_STACK * 2)
        q->failed = true;
    else
        q->stack[q->height++] = x;
}

static void push_bit(struct quick *q)
{
    if (++q->bits > FAST_BITS)
        q->failed = true;
    push(q, (struct item){.lazy = L_BIT, .kind = K_BOOL});
}

static const struct expr_value *konst(const struct quick *q, const struct item *x)
{
    return &q->p->konst[x->konst];
}

static bool is_number(const struct item *x)
{
    return x->lazy != L_BIT && (x->kind == K_INT || x->kind == K_FLOAT || x->kind == K_BOOL);
}

/* Puts a lazy number on the value stack. */
static void load(struct quick *q, const struct item *x)
{
    if (x->lazy == L_NUMBER)
        return;
    if (++q->numbers > FAST_STACK)
        q->failed = true;
    if (x->lazy == L_CONST) {
        put(q, FAST_CONST)->i = konst(q, x)->i; /* a double's bits too */
        return;
    }
    put(q, FAST_SLOT)->slot = x->slot;
    if (x->plus) {
        put(q, FAST_CONST)->i = x->plus;
        put(q, FAST_ADD_I);
    }
}

/* Both operands of a binary operator as numbers of one kind, in order. Mixed: the int becomes a
 * float by OP. Returns whether they are floats. */
static bool load_both(struct quick *q, const struct item *a, const struct item *b, enum fast_op op)
{
    bool fa = a->kind == K_FLOAT, fb = b->kind == K_FLOAT;
    bool late = a->lazy != L_NUMBER && b->lazy == L_NUMBER; /* b is there already */
    if (late) {
        load(q, a);
        if (!fa && fb)
            put(q, op);
        put(q, FAST_SWAP);
        if (fa && !fb)
            put(q, op);
        return fa || fb;
    }
    load(q, a);
    if (!fa && fb) {
        if (b->lazy == L_NUMBER) { /* a lies below b */
            put(q, FAST_SWAP);
            put(q, op);
            put(q, FAST_SWAP);
        } else {
            put(q, op);
        }
    }
    load(q, b);
    if (fa && !fb)
        put(q, op);
    return fa || fb;
}

static void leaf(struct quick *q, unsigned number, uint16_t slot, double f, int64_t i)
{
    struct fast_insn *n = put(q, FAST_LEAF + number);
    n->slot = slot;
    n->jump = slot * (uint32_t)sizeof(struct expr_value);
    if (number < FAST_LEAF_INT)
        n->f = f;
    else
        n->i = i;
}

static void constant_bit(struct quick *q, bool truth)
{
    put(q, FAST_BIT)->i = truth;
}

/* int slot + plus CMP the number C, as a comparison of the slot with an int64. */
static bool int_leaf(struct quick *q, enum expr_cmp op, const struct item *x,
                     const struct expr_value *c)
{
    __int128 bound;
    if (c->kind == K_FLOAT) {
        double f = c->f, down = floor(f);
        if (!(fabs(f) < 1e18))
            return false;
        if (down != f) { /* between two ints */
            if (op >= CMP_EQ) {
                constant_bit(q, op == CMP_NE);
                return true;
            }
            op = op == CMP_LT ? CMP_LE : op == CMP_GE ? CMP_GT : op;
        }
        bound = (int64_t)down;
    } else {
        bound = c->i;
    }
    bound -= x->plus;
    if (bound > INT64_MAX || bound < INT64_MIN) {
        bool high = bound > INT64_MAX;
        constant_bit(q, op == CMP_NE || (op <= CMP_LE && high) ||
                            ((op == CMP_GT || op == CMP_GE) && !high));
        return true;
    }
    leaf(q, FAST_LEAF_INT + op, x->slot, 0, (int64_t)bound);
    return true;
}

/* slot CMP constant; false if it has no typed form. */
static bool slot_with_const(struct quick *q, enum expr_cmp op, const struct item *x,
                            const struct item *y)
{
    const struct expr_value *c = konst(q, y);
    const struct expr_key *k = &q->p->schema->keys[x->slot];
    if (c->kind == K_NONE && op >= CMP_EQ) { /* a slot that is ready is not None */
        constant_bit(q, op == CMP_NE);
        return true;
    }
    if (x->kind == K_STR) {
        if (c->kind != K_STR || op < CMP_EQ)
            return false;
        if (k->enums && !q->kinds && c->code == 0)
            constant_bit(q, op == CMP_NE);
        else if (k->enums && !q->kinds)
            leaf(q, FAST_LEAF_CODE + (op == CMP_NE), x->slot, 0, c->code);
        else {
            struct fast_insn *i = put(q, op == CMP_EQ ? FAST_TEXT_EQ : FAST_TEXT_NE);
            i->slot = x->slot;
            i->jump = y->konst;
        }
        return true;
    }
    if (c->kind != K_INT && c->kind != K_FLOAT && c->kind != K_BOOL)
        return false;
    if (x->kind != K_FLOAT)
        return int_leaf(q, op, x, c);
    if (c->kind != K_FLOAT && (c->i > 1LL << 53 || c->i < -(1LL << 53)))
        return false;
    leaf(q, op, x->slot, c->kind == K_FLOAT ? c->f : (double)c->i, 0);
    return true;
}

/* Writes the comparison, giving one truth; KEEP leaves B for the next link. */
static void compare(struct quick *q, enum expr_cmp op, struct item a, struct item b, bool keep)
{
    static const uint8_t mirrored[] = {CMP_GT, CMP_GE, CMP_LT, CMP_LE, CMP_EQ, CMP_NE};
    bool done = false;
    if (a.lazy == L_SLOT && b.lazy == L_CONST)
        done = slot_with_const(q, op, &a, &b);
    else if (a.lazy == L_CONST && b.lazy == L_SLOT)
        done = slot_with_const(q, (enum expr_cmp)mirrored[op], &b, &a);
    if (!done) {
        if (!is_number(&a) || !is_number(&b)) {
            q->failed = true;
            return;
        }
        bool lazy = b.lazy != L_NUMBER;
        bool floats = load_both(q, &a, &b, FAST_DOUBLE_EXACT);
        if (keep && !lazy) {
            if (floats !=
                (b.kind == K_FLOAT)) { /* b was changed: the next link needs it as it was */
                q->failed = true;
                return;
            }
            put(q, (floats ? FAST_KEEP_F : FAST_KEEP_I) + op);
            q->numbers--;
        } else {
            put(q, (floats ? FAST_CMP_F : FAST_CMP_I) + op);
            q->numbers -= 2;
        }
    }
    push_bit(q);
    if (keep) {
        q->height--; /* the bit belongs to the join */
        push(q, b);
    }
}

/* The item on top as a truth. */
static void as_bit(struct quick *q, bool invert)
{
    struct item x = q->stack[--q->height];
    if (x.lazy == L_BIT) {
        if (invert)
            put(q, FAST_NOT);
        q->stack[q->height++] = x;
        return;
    }
    if (x.lazy == L_CONST)
        constant_bit(q, expr_truth(konst(q, &x)) != invert);
    else if (x.lazy == L_SLOT && (x.kind == K_INT || x.kind == K_BOOL) && x.plus == 0)
        leaf(q, FAST_LEAF_INT + (invert ? CMP_EQ : CMP_NE), x.slot, 0, 0);
    else if (x.lazy == L_SLOT && x.kind == K_FLOAT)
        leaf(q, invert ? CMP_EQ : CMP_NE, x.slot, 0, 0);
    else
        q->failed = true;
    push_bit(q);
}

/* Joins the truth on top to the one below. */
static void join_bits(struct quick *q, struct join *j)
{
    struct fast_insn *last = &q->out[q->count - 1];
    if (q->count == j->start + 1 && last->op < FAST_JOIN)
        last->op = (uint16_t)(last->op + FAST_JOIN * (j->op == FAST_AND ? JOIN_AND : JOIN_OR));
    else
        put(q, j->op);
    if (j->jump != NO_JUMP)
        q->out[j->jump].jump = q->count;
    q->bits--;
    j->start = q->count;
    j->jump = NO_JUMP;
}

#define LONG_REGION 24 /* instructions from which a jump is cheaper than computing both sides */

/* A link of a chain may hand a number on to the next one, so a jump over it would unbalance the
 * stack: only operands of `and` and `or` are jumped over. */
static void open_join(struct quick *q, uint32_t pc, uint32_t target, unsigned op, bool may_jump)
{
    struct join *j = q->join_count ? &q->joins[q->join_count - 1] : NULL;
    if (j && j->target == target && j->op == op) {
        join_bits(q, j);
    } else {
        if (q->join_count == FAST_BITS) {
            q->failed = true;
            return;
        }
        j = &q->joins[q->join_count++];
        *j = (struct join){.target = target, .op = (uint8_t)op};
    }
    j->jump = NO_JUMP;
    if (may_jump && target - pc > LONG_REGION) {
        j->jump = q->count;
        put(q, op == FAST_AND ? FAST_JUMP_FALSE : FAST_JUMP_TRUE);
    }
    j->start = q->count;
}

static void arithmetic(struct quick *q, unsigned op)
{
    struct item b = q->stack[--q->height], a = q->stack[--q->height];
    if (!is_number(&a) || !is_number(&b)) {
        q->failed = true;
        return;
    }
    bool fold = a.lazy == L_SLOT && a.kind != K_FLOAT && b.lazy == L_CONST && b.kind != K_FLOAT;
    int64_t plus;
    if (fold && ((op == OP_ADD && !__builtin_add_overflow(a.plus, konst(q, &b)->i, &plus)) ||
                 (op == OP_SUB && !__builtin_sub_overflow(a.plus, konst(q, &b)->i, &plus)))) {
        a.plus = plus;
        a.kind = K_INT;
        push(q, a);
        return;
    }
    bool floats = load_both(q, &a, &b, FAST_DOUBLE);
    put(q, (floats ? FAST_ADD_F : FAST_ADD_I) + (op - OP_ADD));
    q->numbers--;
    push(q, (struct item){.lazy = L_NUMBER, .kind = floats || op == OP_DIV ? K_FLOAT : K_INT});
}

static void step(struct quick *q, uint32_t pc)
{
    const struct expr_insn *i = &q->p->code[pc];
    struct item a, b;
    if (i->op == OP_CONST) {
        const struct expr_value *v = &q->p->konst[i->arg];
        push(q, (struct item){.lazy = L_CONST, .kind = v->kind, .konst = i->arg});
    } else if (i->op == OP_SLOT) {
        uint8_t kind = q->kinds ? q->kinds[i->slot] : q->p->schema->keys[i->slot].kind;
        q->failed = q->failed || kind == EXPR_NO_KIND;
        push(q, (struct item){.lazy = L_SLOT, .kind = kind, .slot = i->slot});
    } else if (i->op <= OP_DIV) {
        arithmetic(q, i->op);
    } else if (i->op == OP_NEG) {
        a = q->stack[--q->height];
        q->failed = q->failed || !is_number(&a);
        if (q->failed)
            return;
        load(q, &a);
        put(q, a.kind == K_FLOAT ? FAST_NEG_F : FAST_NEG_I);
        push(q, (struct item){.lazy = L_NUMBER, .kind = a.kind == K_FLOAT ? K_FLOAT : K_INT});
    } else if (i->op == OP_NOT) {
        as_bit(q, true);
    } else if (i->op <= OP_NE) {
        b = q->stack[--q->height];
        a = q->stack[--q->height];
        compare(q, (enum expr_cmp)(i->op - OP_LT), a, b, false);
    } else if (i->op <= OP_CHAIN_NE) {
        b = q->stack[--q->height];
        a = q->stack[--q->height];
        compare(q, (enum expr_cmp)(i->op - OP_CHAIN_LT), a, b, true);
        if (!q->failed)
            open_join(q, pc, i->arg, FAST_AND, false);
    } else { /* OP_AND, OP_OR */
        /* the operand must be a truth already: `and` gives back the operand itself */
        a = q->stack[q->height - 1];
        if (a.kind != K_BOOL || (a.lazy == L_CONST && konst(q, &a)->kind != K_BOOL)) {
            q->failed = true;
            return;
        }
        as_bit(q, false);
        q->height--;
        if (!q->failed)
            open_join(q, pc, i->arg, i->op == OP_AND ? FAST_AND : FAST_OR, true);
    }
}

/* Whether a jump goes behind the last step, so that a return must stand there. */
static bool jumped_to(const struct quick *q)
{
    for (uint32_t i = 0; i < q->count; i++)
        if ((q->out[i].op == FAST_JUMP_FALSE || q->out[i].op == FAST_JUMP_TRUE) &&
            q->out[i].jump == q->count)
            return true;
    return false;
}

static void finish(struct quick *q)
{
    if (q->height == 0) { /* the verifier lets no program end without a value */
        q->failed = true;
        return;
    }
    struct item *x = &q->stack[q->height - 1];
    if (x->kind == K_BOOL) {
        uint32_t before = q->count;
        as_bit(q, false);
        struct fast_insn *last = &q->out[q->count - 1];
        if (last->op < FAST_BIT && (before < q->count || !jumped_to(q)))
            last->op = (uint16_t)(last->op + FAST_LAST);
        else
            put(q, FAST_RETURN_BIT);
    } else if (is_number(x)) {
        load(q, x);
        put(q, x->kind == K_FLOAT ? FAST_RETURN_F : FAST_RETURN_I);
    } else {
        q->failed = true;
    }
}

bool fast_make(const struct cordon_program *p, const uint8_t *kinds, struct expr_area *area,
               struct fast_code *ret)
{
    struct quick q __attribute__((uninitialized));
    size_t mark = area->used;
    q.p = p;
    q.kinds = kinds;
    q.count = q.height = q.join_count = q.numbers = q.bits = 0;
    q.plain = true;
    q.failed = false;
    q.cap = p->count * 3 + 4;
    q.out = expr_area_take(area, q.cap * sizeof *q.out);
    if (!q.out)
        return false;
    for (uint32_t pc = 0; !q.failed; pc++) {
        while (!q.failed && q.join_count && q.joins[q.join_count - 1].target == pc) {
            if (q.stack[q.height - 1].kind != K_BOOL)
                q.failed = true;
            else
                as_bit(&q, false);
            if (!q.failed)
                join_bits(&q, &q.joins[q.join_count - 1]);
            q.join_count--;
        }
        if (q.failed || pc + 1 == p->count)
            break;
        step(&q, pc);
    }
    if (!q.failed)
        finish(&q);
    area->used = mark;
    if (q.failed)
        return false;
    ret->code = expr_area_take(area, q.count * sizeof *q.out); /* the same place, cut to size */
    ret->count = q.count;
    ret->plain = q.plain;
    return true;
}

void expr_quicken(struct cordon_program *p, struct expr_area *area)
{
    struct fast_code made;
    p->fast = NULL;
    p->plain = NULL;
    p->fast_plain = false;
    if (!fast_make(p, NULL, area, &made))
        return;
    p->fast = made.code;
    p->fast_plain = made.plain;
    p->ready = p->uses[0];
    p->fast_wide = false;
    for (uint32_t w = 1; w < CORDON_KEYS_MAX / 64; w++)
        p->fast_wide = p->fast_wide || p->uses[w];
    p->plain = p->fast_plain && !p->fast_wide ? p->fast : NULL;
}
