/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over the code. Each truth is judged twice: alone, over all the schema allows, and here,
 * where what must hold for control to get this far has narrowed the keys it compares. A part that
 * could hold alone but cannot here is a contradiction, and the message is worth sending back to the
 * model that wrote it. Comparisons of a key with a constant are understood; anything else is taken
 * to be able to come out any way, so no claim is ever made too much. */
#include "expr/domain.h"

#include <stdio.h>
#include <string.h>

#define NONE UINT32_MAX
#define LONG_LIST                                                                                  \
    256 /* comparisons applied at once; more are left out, which only loses findings */

/* slot OP constant; or the slot's own truth if konst is NONE. */
struct atom {
    uint32_t konst, next;
    uint16_t slot;
    uint8_t op;
    bool truth; /* what is known to hold */
};

struct list {
    uint32_t head, tail;
};

struct item {
    enum { I_OTHER, I_SLOT, I_CONST } kind;
    uint32_t ref; /* slot or constant */
    struct verdict alone, here;
    struct list if_true, if_false; /* atoms that then hold */
    struct expr_span span;
};

struct join {
    uint32_t target, trail;
    bool is_and;
    struct item left;
};

struct saved {
    uint16_t slot;
    struct domain was;
};

struct analyser {
    const struct cordon_program *p;
    struct domain *base, *now;
    struct atom *atoms;
    struct item *stack;
    struct join *joins;
    struct saved *trail;
    uint32_t atom_count, height, join_count, trail_count, trail_room, dead; /* dead: empty keys */
    struct cordon_finding *out;
    size_t found, max;
};

static const struct verdict ANY = {true, true, true};
static const struct list EMPTY = {NONE, NONE};

const char *cordon_finding_name(enum cordon_finding_kind kind)
{
    static const char *const names[] = {
        "",          "always-true", "always-false", "always-raises", "contradiction",
        "tautology", "unreachable", "not-in-domain"};
    return (size_t)kind < sizeof names / sizeof *names ? names[kind] : "";
}

static void finding(struct analyser *x, enum cordon_finding_kind kind, struct expr_span span,
                    const char *message)
{
    if (x->found < x->max) {
        struct cordon_finding *f = &x->out[x->found];
        *f = (struct cordon_finding){.kind = kind, .offset = span.start, .end = span.end};
        snprintf(f->message, sizeof f->message, "%s", message);
    }
    x->found++;
}

static struct list one(struct analyser *x, struct atom a)
{
    a.next = NONE;
    x->atoms[x->atom_count] = a;
    return (struct list){x->atom_count, x->atom_count++};
}

static struct list both(struct analyser *x, struct list a, struct list b)
{
    if (a.head == NONE)
        return b;
    if (b.head == NONE)
        return a;
    x->atoms[a.tail].next = b.head;
    return (struct list){a.head, b.tail};
}

/* Narrows the keys by what L says, to be undone by forget(). */
static void assume(struct analyser *x, struct list l)
{
    unsigned n = 0;
    for (uint32_t i = l.head; i != NONE && n < LONG_LIST && x->trail_count < x->trail_room;
         i = x->atoms[i].next, n++) {
        const struct atom *a = &x->atoms[i];
        struct domain *d = &x->now[a->slot];
        x->trail[x->trail_count++] = (struct saved){a->slot, *d};
        bool was = domain_empty(d);
        if (a->konst == NONE)
            domain_refine_truth(d, a->truth);
        else
            domain_refine(d, x->p->schema, &x->p->schema->keys[a->slot], (enum expr_cmp)a->op,
                          &x->p->konst[a->konst], a->truth);
        x->dead += !was && domain_empty(d);
    }
}

static void forget(struct analyser *x, uint32_t mark)
{
    while (x->trail_count > mark) {
        struct saved *s = &x->trail[--x->trail_count];
        x->dead -= domain_empty(&x->now[s->slot]) && !domain_empty(&s->was);
        x->now[s->slot] = s->was;
    }
}

static struct verdict constant_truth(const struct expr_value *v)
{
    bool t = expr_truth(v);
    return (struct verdict){.can_true = t, .can_false = !t};
}

/* Gives a slot or constant its truth, where one is wanted. */
static void as_truth(struct analyser *x, struct item *i)
{
    if (i->kind == I_CONST) {
        i->alone = i->here = constant_truth(&x->p->konst[i->ref]);
    } else if (i->kind == I_SLOT) {
        i->alone = domain_truth(&x->base[i->ref]);
        i->here = domain_truth(&x->now[i->ref]);
        struct atom a = {.konst = NONE, .slot = (uint16_t)i->ref, .truth = true};
        i->if_true = one(x, a);
        a.truth = false;
        i->if_false = one(x, a);
    }
    i->kind = I_OTHER;
}

struct members {
    const struct cordon_schema *s;
    const struct expr_key *k;
};

static const char *get_member(const void *from, size_t i, size_t *ret_len)
{
    const struct members *m = from;
    const struct expr_value *v = &m->s->strings[m->s->members[m->k->first_enum + i] - 1];
    *ret_len = v->len;
    return v->s;
}

static void check_member(struct analyser *x, uint32_t slot, const struct expr_value *c,
                         struct expr_span span)
{
    const struct expr_key *k = &x->p->schema->keys[slot];
    if (c->kind != K_STR || !k->enums || expr_schema_member(x->p->schema, k, c->code))
        return;
    char text[256];
    struct expr_text t = {.out = text, .size = sizeof text};
    expr_text_str(&t, "ctx[");
    expr_text_repr(&t, k->name, k->len);
    expr_text_str(&t, "] is never ");
    expr_text_repr(&t, c->s, c->len < 80 ? c->len : 0);
    struct members m = {x->p->schema, k};
    int near = expr_nearest(c->s, c->len, k->enums, get_member, &m);
    if (near >= 0) {
        size_t n;
        const char *s = get_member(&m, (size_t)near, &n);
        expr_text_str(&t, "; did you mean ");
        expr_text_repr(&t, s, n);
        expr_text_str(&t, "?");
    }
    expr_text_end(&t);
    finding(x, CORDON_NOT_IN_DOMAIN, span, text);
}

static struct item compare(struct analyser *x, uint32_t pc, enum expr_cmp op, const struct item *a,
                           const struct item *b)
{
    static const uint8_t mirrored[] = {CMP_GT, CMP_GE, CMP_LT, CMP_LE, CMP_EQ, CMP_NE};
    struct item r = {.kind = I_OTHER,
                     .alone = ANY,
                     .here = ANY,
                     .if_true = EMPTY,
                     .if_false = EMPTY,
                     .span = x->p->span[pc]};
    if (a->kind == I_CONST && b->kind == I_CONST) {
        struct expr_run run = {0};
        bool t = false;
        int e = expr_compare(&run, op, &x->p->konst[a->ref], &x->p->konst[b->ref], &t);
        r.alone = r.here = e ? (struct verdict){.can_raise = true}
                             : (struct verdict){.can_true = t, .can_false = !t};
        return r;
    }
    if (a->kind == I_CONST && b->kind == I_SLOT) {
        const struct item *t = a;
        a = b;
        b = t;
        op = (enum expr_cmp)mirrored[op];
    }
    if (a->kind != I_SLOT || b->kind != I_CONST)
        return r;
    const struct expr_key *k = &x->p->schema->keys[a->ref];
    const struct expr_value *c = &x->p->konst[b->ref];
    r.alone = domain_compare(&x->base[a->ref], x->p->schema, k, op, c);
    r.here = domain_compare(&x->now[a->ref], x->p->schema, k, op, c);
    struct atom at = {.konst = b->ref, .slot = (uint16_t)a->ref, .op = (uint8_t)op, .truth = true};
    r.if_true = one(x, at);
    at.truth = false;
    r.if_false = one(x, at);
    if (op >= CMP_EQ)
        check_member(x, a->ref, c, r.span);
    return r;
}

static struct verdict sequence(struct verdict l, struct verdict r, bool is_and)
{
    struct verdict v;
    bool goes_on = is_and ? l.can_true : l.can_false;
    v.can_true = is_and ? goes_on && r.can_true : l.can_true || (goes_on && r.can_true);
    v.can_false = is_and ? l.can_false || (goes_on && r.can_false) : goes_on && r.can_false;
    v.can_raise = l.can_raise || (goes_on && r.can_raise);
    return v;
}

static struct item combine(struct analyser *x, const struct item *l, const struct item *r,
                           bool is_and)
{
    struct item n = {.kind = I_OTHER,
                     .alone = sequence(l->alone, r->alone, is_and),
                     .here = sequence(l->here, r->here, is_and),
                     .if_true = is_and ? both(x, l->if_true, r->if_true) : EMPTY,
                     .if_false = is_and ? EMPTY : both(x, l->if_false, r->if_false),
                     .span = {l->span.start, r->span.end}};
    bool goes_on = is_and ? l->here.can_true : l->here.can_false;
    if (!goes_on && (l->here.can_true || l->here.can_false))
        finding(x, CORDON_UNREACHABLE, r->span, "this operand is never evaluated");
    else if (is_and && goes_on && !r->here.can_true && !r->here.can_raise && r->alone.can_true)
        finding(x, CORDON_CONTRADICTION, n.span, "these cannot hold together");
    else if (!is_and && goes_on && !r->here.can_false && !r->here.can_raise && r->alone.can_false)
        finding(x, CORDON_TAUTOLOGY, n.span, "one of these always holds");
    return n;
}

/* In a region that cannot be reached nothing comes out at all; taken as: any way. */
static void open_join(struct analyser *x, uint32_t target, const struct item *left, bool is_and)
{
    struct join *j = x->join_count ? &x->joins[x->join_count - 1] : NULL;
    struct list known = is_and ? left->if_true : left->if_false;
    if (j && j->target == target && j->is_and == is_and) {
        j->left = combine(x, &j->left, left, is_and);
    } else {
        j = &x->joins[x->join_count++];
        *j = (struct join){target, x->trail_count, is_and, *left};
    }
    assume(x, known);
}

static void step(struct analyser *x, uint32_t pc)
{
    const struct expr_insn *i = &x->p->code[pc];
    struct item *top = x->stack + x->height;
    struct item other = {.kind = I_OTHER,
                         .alone = ANY,
                         .here = ANY,
                         .if_true = EMPTY,
                         .if_false = EMPTY,
                         .span = x->p->span[pc]};
    switch (i->op) {
    case OP_CONST:
    case OP_SLOT:
        *top = other;
        top->kind = i->op == OP_CONST ? I_CONST : I_SLOT;
        top->ref = i->op == OP_CONST ? i->arg : i->slot;
        x->height++;
        return;
    case OP_NEG:
        top[-1] = other;
        return;
    case OP_NOT: {
        as_truth(x, &top[-1]);
        struct item n = top[-1];
        n.alone = (struct verdict){n.alone.can_false, n.alone.can_true, n.alone.can_raise};
        n.here = (struct verdict){n.here.can_false, n.here.can_true, n.here.can_raise};
        n.if_true = top[-1].if_false;
        n.if_false = top[-1].if_true;
        n.span = x->p->span[pc];
        top[-1] = n;
        return;
    }
    case OP_AND:
    case OP_OR:
        as_truth(x, &top[-1]);
        x->height--;
        open_join(x, i->arg, &top[-1], i->op == OP_AND);
        return;
    default:
        break;
    }
    x->height--;
    if (i->op >= OP_CHAIN_LT) {
        struct item link = compare(x, pc, (enum expr_cmp)(i->op - OP_CHAIN_LT), &top[-2], &top[-1]);
        top[-2] = top[-1];
        open_join(x, i->arg, &link, true);
    } else {
        top[-2] = i->op >= OP_LT
                      ? compare(x, pc, (enum expr_cmp)(i->op - OP_LT), &top[-2], &top[-1])
                      : other;
    }
}

size_t cordon_analyse_size(const struct cordon_program *p)
{
    size_t n = p->count + 2u;
    return n * (sizeof(struct item) + sizeof(struct join) + 4 * sizeof(struct atom)) +
           (4 * n + 1024) * sizeof(struct saved) + 2 * p->schema->count * sizeof(struct domain) +
           512;
}

static void verdict_of_all(struct analyser *x, const struct item *root)
{
    const struct verdict *v = &root->here;
    size_t before = x->found;
    if (!v->can_true && !v->can_false)
        finding(x, CORDON_ALWAYS_RAISES, root->span, "every evaluation raises an error");
    else if (!v->can_false)
        finding(x, CORDON_ALWAYS_TRUE, root->span,
                v->can_raise ? "always true, unless it raises" : "always true");
    else if (!v->can_true)
        finding(x, CORDON_ALWAYS_FALSE, root->span,
                v->can_raise ? "always false, unless it raises" : "always false");
    if (x->found == before || x->max == 0)
        return;
    /* the most telling first */
    size_t at = before < x->max ? before : x->max - 1;
    struct cordon_finding last = x->out[at];
    if (before >= x->max)
        return;
    memmove(x->out + 1, x->out, at * sizeof *x->out);
    x->out[0] = last;
}

size_t cordon_analyse(const struct cordon_program *p, void *mem, size_t mem_len,
                      struct cordon_finding *findings, size_t max)
{
    struct expr_area area = expr_area_of(mem, mem_len);
    struct analyser x = {.p = p, .out = findings, .max = max};
    size_t n = p->count + 2u;
    x.trail_room = (uint32_t)(4 * n + 1000);
    x.base = expr_area_take(&area, p->schema->count * sizeof *x.base);
    x.now = expr_area_take(&area, p->schema->count * sizeof *x.now);
    x.stack = expr_area_take(&area, n * sizeof *x.stack);
    x.joins = expr_area_take(&area, n * sizeof *x.joins);
    x.atoms = expr_area_take(&area, 4 * n * sizeof *x.atoms);
    x.trail = expr_area_take(&area, x.trail_room * sizeof *x.trail);
    if (!x.base || !x.now || !x.stack || !x.joins || !x.atoms || !x.trail)
        return 0;
    for (uint32_t s = 0; s < p->schema->count; s++)
        x.now[s] = x.base[s] = domain_of(&p->schema->keys[s]);
    for (uint32_t pc = 0;; pc++) {
        for (; x.join_count && x.joins[x.join_count - 1].target == pc; x.join_count--) {
            struct join *j = &x.joins[x.join_count - 1];
            struct item *top = &x.stack[x.height - 1];
            as_truth(&x, top);
            forget(&x, j->trail);
            *top = combine(&x, &j->left, top, j->is_and);
        }
        if (pc + 1 == p->count)
            break;
        step(&x, pc);
    }
    as_truth(&x, &x.stack[0]);
    verdict_of_all(&x, &x.stack[0]);
    return x.found;
}
