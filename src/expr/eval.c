/* SPDX-License-Identifier: Apache-2.0 */
/* The exact interpreter: values with their kinds, all of CPython's cases. It is the reference for
 * the typed code of fast.c, which hands over to it whenever a case is not plain. The verifier has
 * proved every index below, so none is checked again. */
#include "expr/eval.h"

#include "expr/error.h"
#include "expr/fast.h"

struct expr_run expr_run_of(void *scratch, size_t len, struct cordon_error *err)
{
    struct expr_run run = {.area = expr_area_of(scratch, len), .err = err};
    if (run.area.cap > CORDON_SCRATCH_MAX)
        run.area.cap = CORDON_SCRATCH_MAX;
    return run;
}

int expr_read_slot(struct expr_run *run, const struct cordon_ctx *c, size_t slot,
                   struct expr_value *ret)
{
    const struct expr_value *v = &c->value[slot];
    const struct expr_key *k = &c->schema->keys[slot];
    if (v->kind <= K_BIG) {
        *ret = *v;
        return 0;
    }
    if (v->kind == K_ABSENT) {
        *ret = expr_none();
        if (!(c->flags & CORDON_REQUIRE_KEYS) && !k->required)
            return 0;
        char name[200];
        struct expr_text t = {.out = name, .size = sizeof name};
        expr_text_repr(&t, k->name, k->len);
        expr_text_end(&t);
        return expr_fail(run->err, CORDON_KEY_ERROR, "%s", name);
    }
    char name[200];
    struct expr_text t = {.out = name, .size = sizeof name};
    expr_text_repr(&t, k->name, k->len);
    expr_text_end(&t);
    if (v->kind == K_UNREAD) {
        *ret = expr_none();
        return expr_fail(run->err, CORDON_UNREAD, "ctx[%s] is not read yet", name);
    }
    return expr_fail(run->err, CORDON_TYPE_ERROR,
                     "ctx[%s] holds a %s; conditions read int, float, str, bool and None", name,
                     v->i ? "list" : "dict");
}

int expr_run(const struct cordon_program *p, const struct cordon_ctx *c, struct expr_run *run,
             struct expr_value *ret, uint32_t *ret_pc)
{
    if (!run->stack)
        run->stack = expr_area_take(&run->area, (p->certificate.stack + 1) * sizeof *run->stack);
    if (!run->stack)
        return expr_fail(run->err, CORDON_MEMORY,
                         "the scratch memory is too small for this evaluation");
    struct expr_value *top = run->stack + run->height; /* one past the last */
    struct expr_value *highest = run->stack + run->highest;
    uint32_t steps = run->steps;
    for (uint32_t pc = run->pc;; pc++) {
        const struct expr_insn *i = &p->code[pc];
        highest = top > highest ? top : highest;
        steps++;
        struct expr_value out = expr_none();
        bool holds;
        int r = 0;
        switch (i->op) {
        case OP_CONST:
            *top++ = p->konst[i->arg];
            break;
        case OP_SLOT:
            if (c->value[i->slot].kind <= K_BIG)
                *top = c->value[i->slot];
            else
                r = expr_read_slot(run, c, i->slot, top);
            top++;
            break;
        case OP_ADD:
        case OP_SUB:
        case OP_MUL:
        case OP_DIV:
            top--;
            r = expr_arith(run, (enum expr_arith)(i->op - OP_ADD), top - 1, top, &out);
            top[-1] = out;
            break;
        case OP_NEG:
            r = expr_negate(run, top - 1, &out);
            top[-1] = out;
            break;
        case OP_NOT:
            top[-1] = expr_bool(!expr_truth(top - 1));
            break;
        case OP_LT:
        case OP_LE:
        case OP_GT:
        case OP_GE:
        case OP_EQ:
        case OP_NE:
            top--;
            holds = false;
            r = expr_compare(run, (enum expr_cmp)(i->op - OP_LT), top - 1, top, &holds);
            top[-1] = expr_bool(holds);
            break;
        case OP_CHAIN_LT:
        case OP_CHAIN_LE:
        case OP_CHAIN_GT:
        case OP_CHAIN_GE:
        case OP_CHAIN_EQ:
        case OP_CHAIN_NE:
            top--;
            holds = false;
            r = expr_compare(run, (enum expr_cmp)(i->op - OP_CHAIN_LT), top - 1, top, &holds);
            top[-1] = *top;
            if (!holds) {
                top[-1] = expr_bool(false);
                pc = r ? pc : i->arg - 1;
            }
            break;
        case OP_AND:
            if (expr_truth(top - 1))
                top--;
            else
                pc = i->arg - 1;
            break;
        case OP_OR:
            if (expr_truth(top - 1))
                pc = i->arg - 1;
            else
                top--;
            break;
        default: /* OP_RETURN: the verifier lets no other through */
            *ret = top[-1];
            run->steps = steps;
            run->highest = (uint32_t)(highest - run->stack);
            return 0;
        }
        if (__builtin_expect(r != 0, 0)) {
            if (r == CORDON_UNREAD) { /* this instruction runs again */
                run->pc = pc;
                run->height = (uint32_t)(top - run->stack) - 1;
                steps--;
            }
            run->steps = steps;
            run->highest = (uint32_t)(highest - run->stack);
            *ret_pc = pc;
            return r;
        }
    }
}

static int exact(const struct cordon_program *p, const struct cordon_ctx *c, void *scratch,
                 size_t len, struct expr_value *ret, struct cordon_error *err)
{
    struct expr_run run = expr_run_of(scratch, len, err);
    uint32_t pc = 0;
    int r = expr_run(p, c, &run, ret, &pc);
    if (r && err)
        expr_place(err, p->source, p->source_len, p->span[pc].start, p->span[pc].end);
    return r;
}

size_t cordon_scratch_size(const struct cordon_program *p)
{
    return (size_t)p->scratch + EXPR_SCRATCH_EXTRA;
}

int cordon_eval(const struct cordon_program *p, const struct cordon_ctx *c, void *scratch,
                size_t scratch_len, struct cordon_value *ret_value, struct cordon_error *err)
{
    struct expr_value v;
    if (!fast_ready(p, c) || fast_run(p, c, &v) < 0) {
        int r = exact(p, c, scratch, scratch_len, &v, err);
        if (r)
            return r;
    }
    *ret_value = expr_export(&v);
    return 0;
}

int cordon_eval_lazy(const struct cordon_program *p, const struct cordon_ctx *c, void *scratch,
                     size_t scratch_len, bool resume, size_t *ret_slot,
                     struct cordon_value *ret_value, struct cordon_error *err)
{
    struct expr_area area = expr_area_of(scratch, scratch_len);
    struct expr_run *run = expr_area_take(&area, sizeof *run); /* between calls it lies there */
    struct expr_value v;
    uint32_t pc = 0;
    if (!run)
        return expr_fail(err, CORDON_MEMORY, "the scratch memory is too small for this evaluation");
    if (!resume)
        *run = expr_run_of(area.base + area.used, area.cap - area.used, err);
    run->err = err;
    int r = expr_run(p, c, run, &v, &pc);
    if (r == CORDON_UNREAD)
        *ret_slot = p->code[pc].slot;
    if (r && err)
        expr_place(err, p->source, p->source_len, p->span[pc].start, p->span[pc].end);
    if (r == 0)
        *ret_value = expr_export(&v);
    return r;
}

int expr_test_exact(const struct cordon_program *p, const struct cordon_ctx *c, void *scratch,
                    size_t len)
{
    struct expr_value v;
    return exact(p, c, scratch, len, &v, NULL) ? -1 : expr_truth(&v);
}

int cordon_measure(const struct cordon_program *p, const struct cordon_ctx *c, void *scratch,
                   size_t scratch_len, struct cordon_certificate *ret_cost)
{
    struct expr_run run = expr_run_of(scratch, scratch_len, NULL);
    struct expr_value v;
    uint32_t pc = 0;
    int r = expr_run(p, c, &run, &v, &pc);
    *ret_cost = (struct cordon_certificate){.types = (uint8_t)(r ? 0 : TYPE_BIT(expr_type(&v))),
                                            .raises = (uint16_t)(r ? 1u << r : 0),
                                            .steps = run.steps,
                                            .stack = run.highest,
                                            .bits = run.bits,
                                            .text = run.text,
                                            .work = run.work,
                                            .scratch = run.area.used,
                                            .conforming = cordon_ctx_conforms(c)};
    return r;
}
