/* Every leaf is evaluated once, also those that the condition skipped, each on its own; then one
 * pass of dynamic programming from the leaves up keeps for every `and`, `or` and `not` the cheapest
 * set of leaves that alone forces what it came to. A skipped leaf may be the cheaper reason: in (a
 * or b) and c, with all three false, c alone explains the answer. One that raises when evaluated
 * out of turn explains nothing and is never chosen. */
#include "expr/eval.h"

#include <string.h>

#define NONE UINT32_MAX

struct node {
    uint32_t left, right; /* NONE for a leaf; right NONE for `not` */
    bool use_left, use_right;
    int8_t truth; /* 1, 0, or -1: raises */
    uint8_t raised;
    uint32_t cost; /* leaves in the cheapest set */
    struct expr_span span;
    struct expr_value value;
};

struct join {
    uint32_t target, node;
    bool is_and;
};

struct explainer {
    const struct cordon_program *p;
    const struct cordon_ctx *c;
    struct expr_run run;
    struct node *nodes;
    uint32_t *stack; /* of nodes */
    struct join *joins;
    uint32_t count, height, join_count;
};

static uint32_t leaf(struct explainer *x, uint32_t pc, int raised, struct expr_value v,
                     bool constant)
{
    struct node *n = &x->nodes[x->count];
    *n = (struct node){.left = NONE,
                       .right = NONE,
                       .truth = (int8_t)(raised ? -1 : expr_truth(&v)),
                       .raised = (uint8_t)raised,
                       .cost = !constant,
                       .span = x->p->span[pc],
                       .value = v};
    return x->count++;
}

static bool is_constant(const struct node *n)
{
    return n->cost == 0;
}

/* The first of two operands that raises, as the operator would. */
static int first_raise(const struct node *a, const struct node *b)
{
    return a->raised ? a->raised : b ? b->raised : 0;
}

static uint32_t combine(struct explainer *x, uint32_t left, uint32_t right, bool is_and)
{
    struct node *l = &x->nodes[left], *r = &x->nodes[right], *n = &x->nodes[x->count];
    *n = (struct node){.left = left, .right = right, .span = {l->span.start, r->span.end}};
    int stop = is_and ? 0 : 1; /* the truth that ends it */
    if (l->truth < 0) {
        n->use_left = true;
        *n = (struct node){.left = left,
                           .right = right,
                           .use_left = true,
                           .truth = -1,
                           .raised = l->raised,
                           .cost = l->cost,
                           .span = n->span};
        return x->count++;
    }
    bool ended = l->truth == stop;
    n->value = ended ? l->value : r->value;
    n->truth = ended ? l->truth : r->truth;
    n->raised = ended ? 0 : r->raised;
    if (ended) {
        n->use_right = r->truth == stop && r->cost < l->cost;
        n->use_left = !n->use_right;
    } else { /* right decided; where it did not end it, left had to let it */
        n->use_right = true;
        n->use_left = r->truth != stop;
    }
    n->cost = (n->use_left ? l->cost : 0) + (n->use_right ? r->cost : 0);
    return x->count++;
}

static uint32_t negation(struct explainer *x, uint32_t child)
{
    struct node *c = &x->nodes[child], *n = &x->nodes[x->count];
    *n = *c;
    n->left = child;
    n->right = NONE;
    n->use_left = true;
    n->use_right = false;
    if (c->truth >= 0) {
        n->truth = !c->truth;
        n->value = expr_bool(!c->truth);
    }
    return x->count++;
}

static uint32_t binary(struct explainer *x, uint32_t pc, unsigned op, uint32_t ia, uint32_t ib)
{
    const struct node *a = &x->nodes[ia], *b = &x->nodes[ib];
    bool constant = is_constant(a) && is_constant(b), holds = false;
    struct expr_value v = expr_none();
    int r = first_raise(a, b);
    if (r == 0 && op >= OP_LT) {
        r = expr_compare(&x->run, (enum expr_cmp)(op - OP_LT), &a->value, &b->value, &holds);
        v = expr_bool(holds);
    } else if (r == 0) {
        r = expr_arith(&x->run, (enum expr_arith)(op - OP_ADD), &a->value, &b->value, &v);
    }
    return leaf(x, pc, r, v, constant);
}

static void open_join(struct explainer *x, uint32_t target, uint32_t node, bool is_and)
{
    if (x->join_count) {
        struct join *last = &x->joins[x->join_count - 1];
        if (last->target == target && last->is_and == is_and) {
            last->node = combine(x, last->node, node, is_and);
            return;
        }
    }
    x->joins[x->join_count++] = (struct join){target, node, is_and};
}

static void step(struct explainer *x, uint32_t pc)
{
    const struct expr_insn *i = &x->p->code[pc];
    uint32_t *top = x->stack + x->height;
    struct expr_value v = expr_none();
    int r;
    switch (i->op) {
    case OP_CONST:
        *top = leaf(x, pc, 0, x->p->konst[i->arg], true);
        x->height++;
        return;
    case OP_SLOT:
        r = expr_read_slot(&x->run, x->c, i->slot, &v);
        *top = leaf(x, pc, r, v, false);
        x->height++;
        return;
    case OP_NEG: {
        const struct node *a = &x->nodes[top[-1]];
        bool constant = is_constant(a);
        r = a->raised ? a->raised : expr_negate(&x->run, &a->value, &v);
        top[-1] = leaf(x, pc, r, v, constant);
        return;
    }
    case OP_NOT:
        top[-1] = negation(x, top[-1]);
        return;
    case OP_AND:
    case OP_OR:
        x->height--;
        open_join(x, i->arg, top[-1], i->op == OP_AND);
        return;
    default:
        break;
    }
    x->height--;
    if (i->op >= OP_CHAIN_LT) {
        uint32_t link = binary(x, pc, i->op - OP_CHAIN_LT + OP_LT, top[-2], top[-1]);
        top[-2] = top[-1];
        open_join(x, i->arg, link, true);
        return;
    }
    top[-2] = binary(x, pc, i->op, top[-2], top[-1]);
}

/* The chosen leaves, left to right, each text once. */
static size_t collect(struct explainer *x, uint32_t root, uint32_t *todo, struct cordon_reason *out)
{
    const char *s = x->p->source;
    size_t count = 0, waiting = 0;
    todo[waiting++] = root;
    while (waiting) {
        const struct node *n = &x->nodes[todo[--waiting]];
        if (n->cost == 0)
            continue;
        if (n->left != NONE) {
            if (n->use_right)
                todo[waiting++] = n->right;
            if (n->use_left)
                todo[waiting++] = n->left;
            continue;
        }
        uint32_t len = n->span.end - n->span.start;
        bool again = false;
        for (size_t k = 0; k < count && k < 64 && !again; k++)
            again = out[k].end - out[k].offset == len &&
                    memcmp(s + out[k].offset, s + n->span.start, len) == 0;
        if (again)
            continue;
        out[count++] = (struct cordon_reason){.offset = n->span.start,
                                              .end = n->span.end,
                                              .truth = n->truth,
                                              .value = expr_export(&n->value),
                                              .raised = (enum cordon_status)n->raised};
    }
    return count;
}

size_t cordon_explain_size(const struct cordon_program *p)
{
    /* an instruction makes at most two nodes: a link of a chain, and its join */
    size_t n = (size_t)p->count * 2 + 2;
    return n * (sizeof(struct node) + 2 * sizeof(uint32_t) + sizeof(struct join)) +
           ((size_t)p->count + 1) * sizeof(struct cordon_reason) + cordon_scratch_size(p) + 256;
}

int cordon_explain(const struct cordon_program *p, const struct cordon_ctx *c, void *mem,
                   size_t mem_len, const struct cordon_reason **ret_reasons, size_t *ret_count)
{
    struct expr_area area = expr_area_of(mem, mem_len);
    struct explainer x = {.p = p, .c = c};
    size_t n = (size_t)p->count * 2 + 2;
    struct cordon_reason *reasons = expr_area_take(&area, ((size_t)p->count + 1) * sizeof *reasons);
    x.nodes = expr_area_take(&area, n * sizeof *x.nodes);
    x.stack = expr_area_take(&area, n * sizeof *x.stack);
    x.joins = expr_area_take(&area, n * sizeof *x.joins);
    uint32_t *todo = expr_area_take(&area, n * sizeof *todo);
    *ret_count = 0;
    *ret_reasons = reasons;
    if (!reasons || !x.nodes || !x.stack || !x.joins || !todo)
        return -1;
    int answer = expr_test_exact(p, c, area.base + area.used, area.cap - area.used);
    x.run = expr_run_of(area.base + area.used, area.cap - area.used, NULL);
    for (uint32_t pc = 0;; pc++) {
        for (; x.join_count && x.joins[x.join_count - 1].target == pc; x.join_count--) {
            struct join *j = &x.joins[x.join_count - 1];
            uint32_t *top = &x.stack[x.height - 1];
            *top = combine(&x, j->node, *top, j->is_and);
        }
        if (pc + 1 == p->count)
            break;
        step(&x, pc);
    }
    uint32_t root = x.stack[0];
    if (x.nodes[root].truth !=
        answer) { /* leaves out of turn used up the meter: the whole is the reason */
        reasons[0] = (struct cordon_reason){.offset = p->span[p->count - 1].start,
                                            .end = p->span[p->count - 1].end,
                                            .truth = answer};
        *ret_count = 1;
        return answer;
    }
    *ret_count = collect(&x, root, todo, reasons);
    return answer;
}

size_t cordon_readings(const struct cordon_program *p, const struct cordon_ctx *c,
                       const struct cordon_reason *reason, struct cordon_reading *out, size_t max)
{
    struct expr_run run = {0};
    uint64_t seen[CORDON_KEYS_MAX / 64] = {0};
    size_t count = 0;
    for (uint32_t pc = 0; pc < p->count; pc++) {
        const struct expr_insn *i = &p->code[pc];
        uint64_t bit = 1ULL << (i->slot % 64);
        if (i->op != OP_SLOT || p->span[pc].start < reason->offset ||
            p->span[pc].end > reason->end || seen[i->slot / 64] & bit)
            continue;
        seen[i->slot / 64] |= bit;
        if (count < max) {
            struct expr_value v = expr_none();
            bool readable = expr_read_slot(&run, c, i->slot, &v) == 0;
            out[count] = (struct cordon_reading){i->slot, expr_export(&v), readable};
        }
        count++;
    }
    return count;
}
