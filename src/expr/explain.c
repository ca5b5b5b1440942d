/* SPDX-License-Identifier: Apache-2.0 */
/* Every leaf is evaluated once, also those that the condition skipped, each on its own; then one
 * pass of dynamic programming from the leaves up keeps for every `and`, `or` and `not` the cheapest
 * set of leaves that alone forces what it came to. A skipped leaf may be the cheaper reason: in (a
 * or b) and c, with all three false, c alone explains the answer. One that raises when evaluated
 * out of turn explains nothing and is never chosen. Costs add up only while leaves differ; where one
 * stands twice, smaller sets are tried one by one, as many as a fixed budget allows (finding the
 * smallest is then as hard as set cover). */
#include "expr/eval.h"

#include <string.h>

#define NONE      UINT32_MAX
#define UNKNOWN   2
#define TEXTS_MAX 32       /* leaves of different text among which a smaller set is looked for */
#define TRIES_MAX 1000000u /* nodes looked at for that: some milliseconds */

struct node {
    uint32_t left, right; /* NONE for a leaf; right NONE for `not` */
    bool is_and : 1, use_left : 1, use_right : 1;
    int8_t truth; /* 1, 0, or -1: raises */
    uint8_t raised;
    uint32_t cost; /* leaves in the cheapest set */
    struct expr_span span;
    struct expr_value value;
};

/* What is asked of a node when sets of leaves are tried. */
struct trial {
    bool in_tree; /* joined by and, or, not to the root; operands of a leaf are not */
    uint8_t text; /* of a leaf: its number among the texts that differ */
    int8_t known; /* its truth when only the leaves of a set are known, or UNKNOWN */
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
    struct trial *trials; /* one a node; filled only where a leaf may stand twice */
    uint32_t *stack;      /* of nodes */
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
    *n = (struct node){
        .left = left, .right = right, .is_and = is_and, .span = {l->span.start, r->span.end}};
    int stop = is_and ? 0 : 1; /* the truth that ends it */
    if (l->truth < 0) {
        n->use_left = true;
        n->truth = -1;
        n->raised = l->raised;
        n->cost = l->cost;
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

static struct cordon_reason reason_of(const struct node *n)
{
    return (struct cordon_reason){.offset = n->span.start,
                                  .end = n->span.end,
                                  .truth = n->truth,
                                  .value = expr_export(&n->value),
                                  .raised = (enum cordon_status)n->raised};
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
        out[count++] = reason_of(n);
    }
    return count;
}

static bool same_text(const struct explainer *x, const struct node *a, const struct node *b)
{
    uint32_t len = a->span.end - a->span.start;
    return b->span.end - b->span.start == len &&
           memcmp(x->p->source + a->span.start, x->p->source + b->span.start, len) == 0;
}

/* Lists the nodes of the tree below ROOT, leaves first, and numbers the leaves by their text; FIRST
 * gets the first leaf of each. Returns how many texts there are; 0 if none stands twice, or if there
 * are too many to try sets of them. */
static uint32_t number_texts(struct explainer *x, uint32_t root, uint32_t *list,
                             uint32_t *ret_count, uint32_t first[TEXTS_MAX])
{
    uint32_t texts = 0, leaves = 0, count = 0;
    memset(x->trials, 0, (root + 1) * sizeof *x->trials);
    x->trials[root].in_tree = true;
    for (uint32_t i = root + 1; i--;) { /* a node stands behind its operands */
        const struct node *n = &x->nodes[i];
        if (x->trials[i].in_tree && n->left != NONE)
            x->trials[n->left].in_tree = true;
        if (x->trials[i].in_tree && n->right != NONE)
            x->trials[n->right].in_tree = true;
    }
    for (uint32_t i = 0; i <= root; i++) {
        const struct node *n = &x->nodes[i];
        if (!x->trials[i].in_tree)
            continue;
        list[count++] = i;
        if (n->left != NONE || is_constant(n))
            continue;
        uint32_t t = 0;
        while (t < texts && !same_text(x, n, &x->nodes[first[t]]))
            t++;
        if (t == TEXTS_MAX)
            return 0;
        if (t == texts)
            first[texts++] = i;
        x->trials[i].text = (uint8_t)t;
        leaves++;
    }
    *ret_count = count;
    return leaves > texts ? texts : 0;
}

/* What the `and` or `or` N comes to when its operands are known as far as they are. */
static int8_t joined(const struct explainer *x, const struct node *n)
{
    int8_t l = x->trials[n->left].known, r = x->trials[n->right].known, stop = !n->is_and;
    if (l == UNKNOWN) /* what does not raise may be anything else */
        return x->nodes[n->left].truth >= 0 && r == stop ? stop : UNKNOWN;
    return l == stop || l < 0 ? l : r;
}

/* What the tree comes to when only the leaves whose text is in SET are known. */
static int8_t known_by(struct explainer *x, const uint32_t *list, uint32_t count, uint64_t set)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct node *n = &x->nodes[list[i]];
        struct trial *t = &x->trials[list[i]];
        if (n->left == NONE) {
            t->known = is_constant(n) || set >> t->text & 1 ? n->truth : UNKNOWN;
        } else if (n->right == NONE) {
            int8_t k = x->trials[n->left].known;
            t->known = k == 0 || k == 1 ? !k : k;
        } else {
            t->known = joined(x, n);
        }
    }
    return x->trials[list[count - 1]].known;
}

/* The smallest set of texts, of fewer than COUNT, that forces the answer; 0 if none was found. */
static uint64_t smaller_set(struct explainer *x, const uint32_t *list, uint32_t nodes,
                            uint32_t texts, size_t count)
{
    int8_t answer = x->nodes[list[nodes - 1]].truth;
    uint32_t tried = 0;
    for (size_t size = 1; size < count; size++)
        for (uint64_t set = (1ULL << size) - 1; set < 1ULL << texts;) {
            if ((tried += nodes) > TRIES_MAX)
                return 0;
            if (known_by(x, list, nodes, set) == answer)
                return set;
            uint64_t low = set & -set, up = set + low; /* the next set of as many */
            set = ((set ^ up) >> 2) / low | up;
        }
    return 0;
}

/* Leaves that stand twice: whether fewer than COUNT of them are enough. Gives how many there are. */
static __attribute__((noinline)) size_t shrink(struct explainer *x, uint32_t root, uint32_t *list,
                                               struct cordon_reason *out, size_t count)
{
    uint32_t first[TEXTS_MAX], nodes = 0;
    uint32_t texts = number_texts(x, root, list, &nodes, first);
    uint64_t set = texts ? smaller_set(x, list, nodes, texts, count) : 0;
    if (set == 0)
        return count;
    count = 0;
    for (uint32_t t = 0; t < texts; t++)
        if (set >> t & 1)
            out[count++] = reason_of(&x->nodes[first[t]]);
    return count;
}

size_t cordon_explain_size(const struct cordon_program *p)
{
    /* an instruction makes at most two nodes: a link of a chain, and its join */
    size_t n = (size_t)p->count * 2 + 2;
    return n * (sizeof(struct node) + sizeof(struct trial) + 2 * sizeof(uint32_t) +
                sizeof(struct join)) +
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
    x.trials = expr_area_take(&area, n * sizeof *x.trials);
    uint32_t *todo = expr_area_take(&area, n * sizeof *todo);
    *ret_count = 0;
    *ret_reasons = reasons;
    if (!reasons || !x.nodes || !x.trials || !x.stack || !x.joins || !todo)
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
    if (*ret_count > 1 && p->reads_twice) /* else no leaf stands twice: each reads a slot */
        *ret_count = shrink(&x, root, todo, reasons, *ret_count);
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
