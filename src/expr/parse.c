/* SPDX-License-Identifier: Apache-2.0 */
/* Operator precedence with an explicit stack: the source cannot make the C stack grow, and each
 * token is looked at once. Instructions are written as operators are reduced, so there is no tree;
 * their spans carry what the later passes would have asked a tree for. */
#include "expr/code.h"
#include "expr/lex.h"
#include "expr/refuse.h"

#include <string.h>

/* What waits on the stack, by how tightly it binds. */
enum pending { P_PAREN, P_OR, P_AND, P_NOT, P_COMPARE, P_SUM, P_PRODUCT, P_NEGATE };

struct entry {
    uint8_t kind, op; /* op: enum expr_op of a binary operator */
    uint32_t start;   /* of the operator, or of the whole chain for P_COMPARE */
    uint32_t patch;   /* first of the jumps to resolve, linked through their targets; or NONE */
};
#define NONE UINT32_MAX

struct parser {
    struct lex lx;
    struct lex_token t; /* the token at hand */
    struct cordon_program *p;
    struct entry *stack;
    struct expr_span *operand; /* of each value on the stack, parentheses included */
    uint32_t depth, values, cap, parens, pending_cap;
    uint32_t barrier; /* instructions before it are jumped around: no folding */
};

static int advance(struct parser *ps)
{
    return lex_next(&ps->lx, &ps->t);
}

static int emit(struct parser *ps, unsigned op, uint32_t slot, uint32_t arg, struct expr_span span)
{
    struct cordon_program *p = ps->p;
    if (p->count == ps->cap) {
        expr_fail(ps->lx.err, CORDON_UNSAFE, "The expression has more than %u nodes",
                  CORDON_NODES_MAX);
        expr_place(ps->lx.err, ps->lx.s, ps->lx.len, span.start, span.end);
        return CORDON_UNSAFE;
    }
    p->code[p->count] = (struct expr_insn){.op = (uint8_t)op, .slot = (uint16_t)slot, .arg = arg};
    p->span[p->count++] = span;
    return 0;
}

static int emit_const(struct parser *ps, struct expr_value v, struct expr_span span)
{
    struct cordon_program *p = ps->p;
    if (v.kind == K_STR)
        v.code = expr_schema_code(p->schema, v.s, v.len);
    p->konst[p->konst_count] = v; /* never more than instructions */
    int r = emit(ps, OP_CONST, 0, p->konst_count, span);
    p->konst_count += r == 0;
    ps->operand[ps->values++] = span;
    return r;
}

static int push(struct parser *ps, enum pending kind, unsigned op, uint32_t start)
{
    if (ps->depth == ps->pending_cap) {
        expr_fail(ps->lx.err, CORDON_UNSAFE, "More than %u operators wait for their operands",
                  CORDON_PENDING_MAX);
        expr_place(ps->lx.err, ps->lx.s, ps->lx.len, ps->t.start, ps->t.end);
        return CORDON_UNSAFE;
    }
    ps->stack[ps->depth++] = (struct entry){(uint8_t)kind, (uint8_t)op, start, NONE};
    return 0;
}

static void resolve(struct parser *ps, uint32_t patch)
{
    while (patch != NONE) {
        uint32_t next = ps->p->code[patch].arg;
        ps->p->code[patch].arg = ps->p->count;
        patch = next;
    }
    ps->barrier = ps->p->count;
}

static int negate(struct parser *ps, struct expr_span whole)
{
    struct cordon_program *p = ps->p;
    struct expr_insn *last = &p->code[p->count - 1];
    /* -5 is a constant, as for CPython's own folding; only a literal with nothing jumping behind it
     */
    if (last->op == OP_CONST && p->count > ps->barrier) {
        struct expr_value *v = &p->konst[last->arg];
        bool small = v->kind == K_INT && v->i != INT64_MIN;
        if (small || v->kind == K_FLOAT || v->kind == K_BIG) {
            if (small)
                v->i = -v->i;
            else if (v->kind == K_FLOAT)
                v->f = -v->f;
            else
                *v = expr_from_limbs(v->limb, v->len, !v->neg);
            p->span[p->count - 1] = whole;
            return 0;
        }
    }
    return emit(ps, OP_NEG, 0, 0, whole);
}

/* Writes out the operator on top. */
static int reduce_one(struct parser *ps)
{
    struct entry e = ps->stack[--ps->depth];
    struct expr_span *b = &ps->operand[ps->values - 1], *a = b - 1;
    int r = 0;
    switch (e.kind) {
    case P_NOT:
        b->start = e.start;
        return emit(ps, OP_NOT, 0, 0, *b);
    case P_NEGATE:
        b->start = e.start;
        return negate(ps, *b);
    case P_AND:
    case P_OR:
        resolve(ps, e.patch);
        a->end = b->end;
        ps->values--;
        return 0;
    case P_COMPARE:
        r = emit(ps, e.op, 0, 0, (struct expr_span){a->start, b->end});
        if (e.patch != NONE)
            resolve(ps, e.patch);
        *a = (struct expr_span){e.start, b->end};
        ps->values--;
        return r;
    default:
        a->end = b->end;
        ps->values--;
        return emit(ps, e.op, 0, 0, *a);
    }
}

static int reduce(struct parser *ps, enum pending least)
{
    while (ps->depth && ps->stack[ps->depth - 1].kind >= least) {
        int r = reduce_one(ps);
        if (r)
            return r;
    }
    return 0;
}

/* `and` and `or`: a run of one operator shares its jumps' target. The left operand's value stays as
 * the jump's result, so only its span is merged when the run ends. */
static int boolean(struct parser *ps, enum pending kind)
{
    int r = reduce(ps, kind + 1);
    if (r)
        return r;
    bool again = ps->depth && ps->stack[ps->depth - 1].kind == kind;
    if (!again && (r = push(ps, kind, 0, ps->t.start)))
        return r;
    struct entry *e = &ps->stack[ps->depth - 1];
    struct expr_span *top = &ps->operand[ps->values - 1];
    uint32_t at = ps->p->count;
    if ((r = emit(ps, kind == P_AND ? OP_AND : OP_OR, 0, e->patch, *top)))
        return r;
    e->patch = at;
    if (again) { /* the run so far is one operand */
        top[-1].end = top->end;
        ps->values--;
    }
    return 0;
}

static int compare(struct parser *ps, enum expr_op op)
{
    int r = reduce(ps, P_COMPARE + 1);
    if (r)
        return r;
    if (!ps->depth || ps->stack[ps->depth - 1].kind != P_COMPARE)
        return push(ps, P_COMPARE, op, ps->operand[ps->values - 1].start);
    struct entry *e = &ps->stack[ps->depth - 1];
    struct expr_span *b = &ps->operand[ps->values - 1], *a = b - 1;
    uint32_t at = ps->p->count;
    if ((r = emit(ps, e->op - OP_LT + OP_CHAIN_LT, 0, e->patch,
                  (struct expr_span){a->start, b->end})))
        return r;
    e->patch = at;
    e->op = (uint8_t)op;
    *a = *b;
    ps->values--;
    ps->barrier = ps->p->count;
    return 0;
}

static int binary(struct parser *ps, enum pending kind, enum expr_op op)
{
    int r = reduce(ps, kind);
    return r ? r : push(ps, kind, op, ps->t.start);
}

/* A bracket of any kind opens: T is read over. */
static int open_bracket(struct parser *ps)
{
    if (ps->lx.depth == CORDON_NESTING_MAX)
        return lex_fail(&ps->lx, ps->t.start, ps->t.end, "too many nested parentheses (%u)",
                        CORDON_NESTING_MAX);
    ps->lx.depth++;
    return advance(ps);
}

/* One string, or several side by side, which are one. */
static int strings(struct parser *ps, struct expr_value *ret, struct expr_span *span)
{
    struct lex_token first = ps->t;
    int r = advance(ps);
    *ret = first.value;
    *span = (struct expr_span){first.start, first.end};
    while (r == 0 && ((ps->t.kind == T_VALUE && ps->t.value.kind == K_STR) ||
                      ps->t.kind == T_FOREIGN_VALUE)) {
        if (ps->t.kind == T_FOREIGN_VALUE)
            return refuse_constant(&ps->lx, &ps->t);
        uint32_t n = ret->len + ps->t.value.len;
        /* the area still ends with the last piece in most cases, but copying is simpler to trust;
         * doubling the buffer keeps many pieces linear */
        uint32_t cap = ret->code; /* log2 of the room behind ret->s, while it is ours */
        if (cap == 0 || n > 1u << cap) {
            cap = 5;
            while (1u << cap < n)
                cap++;
            char *out = expr_area_take(ps->lx.area, (size_t)1 << cap);
            if (!out)
                return expr_fail(ps->lx.err, CORDON_MEMORY,
                                 "the memory given is too small to compile this");
            if (ret->len)
                memcpy(out, ret->s, ret->len);
            ret->s = out;
            ret->code = (uint16_t)cap;
        }
        if (ps->t.value.len)
            memcpy((char *)(uintptr_t)ret->s + ret->len, ps->t.value.s, ps->t.value.len);
        ret->len = n;
        span->end = ps->t.end;
        r = advance(ps);
    }
    ret->code = 0;
    return r;
}

/* At the [ of ctx[: one declared key and the closing bracket. */
static int subscript(struct parser *ps, uint32_t start)
{
    struct lex_token key;
    struct expr_value v = expr_none();
    struct expr_span span = {0};
    unsigned inner = 0;
    int r = open_bracket(ps);
    for (; r == 0 && ps->t.kind == T_OPEN; inner++)
        r = open_bracket(ps);
    if (r)
        return r;
    key = ps->t;
    if (key.kind == T_VALUE && key.value.kind == K_STR)
        r = strings(ps, &v, &span);
    else if (key.kind == T_VALUE || key.kind == T_TRUE || key.kind == T_FALSE || key.kind == T_NONE)
        r = advance(ps);
    else
        return refuse_node(&ps->lx, "Subscript", start, key.end, "ctx takes one key in quotes");
    for (; r == 0 && inner && ps->t.kind == T_CLOSE; inner--) {
        ps->lx.depth--;
        r = advance(ps);
    }
    if (r)
        return r;
    if (inner || ps->t.kind != T_CLOSE_SQUARE)
        return refuse_node(&ps->lx, "Subscript", start, ps->t.end, "ctx takes one key in quotes");
    if (v.kind == K_STR)
        key.end = span.end;
    ps->lx.depth--;
    uint32_t end = ps->t.end;
    if ((r = advance(ps)))
        return r;
    if (refuse_is_trailer(ps->t.kind))
        return refuse_trailer(&ps->lx, start, &ps->t);
    int slot = v.kind == K_STR ? expr_schema_slot(ps->p->schema, v.s, v.len) : -1;
    if (slot < 0)
        return refuse_key(&ps->lx, ps->p->schema, &key, &v);
    expr_use(ps->p, (uint32_t)slot);
    ps->operand[ps->values++] = (struct expr_span){start, end};
    return emit(ps, OP_SLOT, (uint32_t)slot, 0, (struct expr_span){start, end});
}

static int constant(struct parser *ps, struct expr_value v)
{
    struct expr_span span = {ps->t.start, ps->t.end};
    int r = v.kind == K_STR ? strings(ps, &v, &span) : advance(ps);
    if (r)
        return r;
    if (refuse_is_trailer(ps->t.kind))
        return refuse_trailer(&ps->lx, span.start, &ps->t);
    return emit_const(ps, v, span);
}

/* Reads what may stand before an operand, and the operand. */
static int operand(struct parser *ps)
{
    for (;;) {
        int r = 0;
        struct lex_token t = ps->t;
        switch (t.kind) {
        case T_OPEN:
            if ((r = push(ps, P_PAREN, 0, t.start)))
                return r;
            ps->parens++;
            if ((r = open_bracket(ps)))
                return r;
            if (ps->t.kind == T_CLOSE)
                return refuse_node(&ps->lx, "Tuple", t.start, ps->t.end,
                                   "a condition has one value");
            continue;
        case T_MINUS:
            if ((r = push(ps, P_NEGATE, 0, t.start)) || (r = advance(ps)))
                return r;
            continue;
        case T_NOT:
            if (ps->depth && ps->stack[ps->depth - 1].kind > P_NOT)
                return lex_fail(&ps->lx, t.start, t.end, "'not' needs parentheses here");
            if ((r = push(ps, P_NOT, 0, t.start)) || (r = advance(ps)))
                return r;
            continue;
        case T_VALUE:
            return constant(ps, t.value);
        case T_TRUE:
        case T_FALSE:
            return constant(ps, expr_bool(t.kind == T_TRUE));
        case T_NONE:
            return constant(ps, expr_none());
        case T_NAME: {
            bool ctx = t.end - t.start == 3 && memcmp(ps->lx.s + t.start, "ctx", 3) == 0;
            if ((r = advance(ps)))
                return r;
            if (ctx && ps->t.kind == T_OPEN_SQUARE)
                return subscript(ps, t.start);
            return refuse_name(&ps->lx, &t, &ps->t);
        }
        default:
            return refuse_operand(&ps->lx, &t);
        }
    }
}

static int close_paren(struct parser *ps)
{
    int r = reduce(ps, P_OR);
    if (r)
        return r;
    if (ps->parens == 0)
        return refuse_operator(&ps->lx, &ps->t, 0);
    ps->parens--;
    ps->lx.depth--;
    struct expr_span *top = &ps->operand[ps->values - 1];
    top->start = ps->stack[--ps->depth].start;
    top->end = ps->t.end;
    if ((r = advance(ps)))
        return r;
    if (refuse_is_trailer(ps->t.kind))
        return refuse_trailer(&ps->lx, top->start, &ps->t);
    return 0;
}

/* Operators, until one wants an operand; *ret_end when the source ends. */
static int operators(struct parser *ps, bool *ret_end)
{
    int r = 0;
    while (r == 0) {
        switch (ps->t.kind) {
        case T_CLOSE:
            r = close_paren(ps);
            continue;
        case T_END:
            if (ps->parens)
                return refuse_operator(&ps->lx, &ps->t, ps->parens);
            *ret_end = true;
            return reduce(ps, P_OR);
        case T_AND:
            r = boolean(ps, P_AND);
            break;
        case T_OR:
            r = boolean(ps, P_OR);
            break;
        case T_PLUS:
        case T_MINUS:
            r = binary(ps, P_SUM, ps->t.kind == T_PLUS ? OP_ADD : OP_SUB);
            break;
        case T_STAR:
        case T_SLASH:
            r = binary(ps, P_PRODUCT, ps->t.kind == T_STAR ? OP_MUL : OP_DIV);
            break;
        case T_LT:
        case T_LE:
        case T_GT:
        case T_GE:
        case T_EQ:
        case T_NE:
            r = compare(ps, (enum expr_op)(OP_LT + (ps->t.kind - T_LT)));
            break;
        default:
            return refuse_operator(&ps->lx, &ps->t, ps->parens);
        }
        return r ? r : advance(ps);
    }
    return r;
}

/* What was refused stands in parentheses, and they may belong to a node further out. */
static void name_enclosing(struct parser *ps)
{
    uint32_t open[CORDON_NESTING_MAX], count = 0;
    for (uint32_t i = 0; i < ps->depth && count < CORDON_NESTING_MAX; i++)
        if (ps->stack[i].kind == P_PAREN)
            open[count++] = ps->stack[i].start;
    refuse_enclosing(&ps->lx, open, count);
}

int expr_parse(struct cordon_program *p, struct expr_area *area, struct cordon_error *err)
{
    struct parser ps = {.p = p};
    uint32_t n = p->source_len;
    ps.lx = (struct lex){.s = p->source, .len = n, .area = area, .err = err};
    while (p->source[ps.lx.at] == ' ' || p->source[ps.lx.at] == '\t') /* as eval() does */
        ps.lx.at++;
    /* a token makes at most one instruction, and every source has a RETURN more */
    ps.cap = n + 1 < CORDON_NODES_MAX ? n + 1 : CORDON_NODES_MAX;
    ps.pending_cap = n + 1 < CORDON_PENDING_MAX ? n + 1 : CORDON_PENDING_MAX;
    p->code = expr_area_take(area, (ps.cap + 1) * sizeof *p->code);
    p->span = expr_area_take(area, (ps.cap + 1) * sizeof *p->span);
    p->konst = expr_area_take(area, (ps.cap + 1) * sizeof *p->konst);
    ps.stack = expr_area_take(area, ps.pending_cap * sizeof *ps.stack);
    ps.operand = expr_area_take(area, (ps.pending_cap + 2) * sizeof *ps.operand);
    if (!p->code || !p->span || !p->konst || !ps.stack || !ps.operand)
        return expr_fail(err, CORDON_MEMORY, "the memory given is too small to compile this");
    bool end = false;
    int r = advance(&ps);
    while (r == 0 && !end) {
        if ((r = operand(&ps)) == 0)
            r = operators(&ps, &end);
    }
    if (r && ps.lx.disallowed && ps.parens)
        name_enclosing(&ps);
    if (r)
        return r;
    ps.cap++;
    return emit(&ps, OP_RETURN, 0, 0, ps.operand[0]);
}
