/* SPDX-License-Identifier: Apache-2.0 */
/* The typed code of fast.h, each step over a block of rows: truths are words of 64 bits, numbers
 * are arrays. Rows that are not plain (a null in a column that is read, an overflow, a division by
 * zero) only mark themselves; after the block eval.c answers them one by one, so errors are exact
 * by construction and the loops stay free of them. */
#include "expr/batch.h"

#include "base/utf8.h"
#include "expr/eval.h"
#include "expr/fast.h"

#include <string.h>

#define WORDS 8 /* of 64 rows: a block */
#define ROWS  (WORDS * 64)

union cell {
    double f;
    int64_t i;
};

/* What the dictionary of a column says about one FAST_TEXT step. */
struct match {
    bool found;
    uint32_t code;
};

struct batch {
    const struct batch_kernels *k;
    const struct cordon_program *p;
    const struct cordon_column *columns;
    struct fast_code code;
    struct match *matches; /* by step */
    uint64_t (*bits)[WORDS];
    union cell (*cells)[ROWS];
    uint64_t bad[WORDS]; /* rows of this block to ask eval.c about */
    struct cordon_ctx *ctx;
    void *scratch;
    size_t scratch_len;
};

static uint32_t code_at(const struct cordon_column *c, size_t row)
{
    if (c->kind == CORDON_COL_DICT8)
        return ((const uint8_t *)c->data)[row];
    if (c->kind == CORDON_COL_DICT16)
        return ((const uint16_t *)c->data)[row];
    return ((const uint32_t *)c->data)[row];
}

static bool is_dict(const struct cordon_column *c)
{
    return c->kind >= CORDON_COL_DICT8;
}

static struct expr_value cell_value(const struct cordon_column *c, size_t row)
{
    if (c->kind == CORDON_COL_ABSENT || (c->valid && !(c->valid[row / 64] >> (row % 64) & 1)))
        return expr_none();
    switch (c->kind) {
    case CORDON_COL_FLOAT:
        return expr_float(((const double *)c->data)[row]);
    case CORDON_COL_INT:
        return expr_int(((const int64_t *)c->data)[row]);
    case CORDON_COL_BOOL:
        return expr_bool(((const uint8_t *)c->data)[row] != 0);
    default:
        break;
    }
    uint32_t code = code_at(c, row);
    return code < c->dict_count ? expr_str(c->dict[code], c->dict_len[code]) : expr_none();
}

static void exact_row(struct batch *b, size_t row, uint64_t *truth, uint64_t *errors)
{
    for (uint32_t s = 0; s < b->p->schema->count; s++)
        if (cordon_uses(b->p, s))
            b->ctx->value[s] = cell_value(&b->columns[s], row);
    int r = expr_test_exact(b->p, b->ctx, b->scratch, b->scratch_len);
    uint64_t bit = 1ULL << (row % 64);
    *truth = r == 1 ? *truth | bit : *truth & ~bit;
    *errors = r < 0 ? *errors | bit : *errors & ~bit;
}

/* Rows of a dictionary column whose code is CODE, or whose code is not. */
static void codes(struct batch *b, const struct cordon_column *c, size_t first, size_t words,
                  uint32_t code, bool opposite, enum expr_join how, uint64_t *out)
{
    if (c->kind == CORDON_COL_DICT8 && code <= 255) {
        b->k->bytes((const uint8_t *)c->data + first, words, (uint8_t)code, opposite, how, out);
        return;
    }
    struct batch_merge merge = batch_merge(how);
    for (size_t w = 0; w < words; w++) {
        uint64_t m = 0;
        for (size_t r = 0; r < 64; r++)
            m |= (uint64_t)((code_at(c, first + w * 64 + r) == code) != opposite) << r;
        out[w] = batch_merged(out[w], m, merge);
    }
}

/* Marks the rows whose code is past the dictionary: None. Hardly any block has one, so the greatest
 * code of the block is asked for first. */
static void mark_past(struct batch *b, const struct cordon_column *c, size_t first, size_t words)
{
    if (c->kind == CORDON_COL_DICT8 &&
        b->k->greatest((const uint8_t *)c->data + first, words) < c->dict_count)
        return;
    for (size_t r = 0; r < words * 64; r++)
        b->bad[r / 64] |= (uint64_t)(code_at(c, first + r) >= c->dict_count) << (r % 64);
}

/* A bool column against a number, told by what false and true come to. */
static void bool_leaf(struct batch *b, const struct fast_insn *i, enum expr_cmp op, size_t first,
                      size_t words, enum expr_join how, uint64_t *out)
{
    const uint8_t *data = (const uint8_t *)b->columns[i->slot].data + first;
    struct batch_merge merge = batch_merge(how);
    bool if_no = expr_holds(op, (0 > i->i) - (0 < i->i)),
         if_yes = expr_holds(op, (1 > i->i) - (1 < i->i));
    if (if_no != if_yes)
        b->k->bytes(data, words, 0, if_yes, how, out);
    else
        for (size_t w = 0; w < words; w++)
            out[w] = batch_merged(out[w], if_yes ? ~0ULL : 0, merge);
}

static void leaf(struct batch *b, const struct fast_insn *i, unsigned number, size_t first,
                 size_t words, enum expr_join how, uint64_t *out)
{
    const struct cordon_column *c = &b->columns[i->slot];
    enum expr_cmp op = (enum expr_cmp)(number % FAST_LEAF_INT);
    if (number < FAST_LEAF_INT)
        b->k->floats((const double *)c->data + first, words, op, i->f, how, out);
    else if (c->kind == CORDON_COL_BOOL)
        bool_leaf(b, i, op, first, words, how, out);
    else
        b->k->ints((const int64_t *)c->data + first, words, op, i->i, how, out);
}

static void load(struct batch *b, const struct fast_insn *i, size_t first, size_t rows,
                 union cell *out)
{
    const struct cordon_column *c = &b->columns[i->slot];
    if (c->kind == CORDON_COL_BOOL)
        for (size_t r = 0; r < rows; r++)
            out[r].i = ((const uint8_t *)c->data)[first + r] != 0;
    else
        memcpy(out, (const union cell *)c->data + first, rows * sizeof *out);
}

#define EACH for (size_t r = 0; r < rows; r++)
#define MARK(condition)                                                                            \
    for (size_t w = 0; w < words; w++) {                                                           \
        uint64_t m = 0;                                                                            \
        for (size_t n = 0; n < 64; n++) {                                                          \
            size_t r = w * 64 + n;                                                                 \
            m |= (uint64_t)(condition) << n;                                                       \
        }                                                                                          \
        b->bad[w] |= m;                                                                            \
    }

/* A step on numbers; S is the top of the value stack, T the one below. Returns how it moved. */
static int number_step(struct batch *b, const struct fast_insn *i, size_t first, size_t words,
                       union cell *s, union cell *t, union cell *up)
{
    const int64_t exact = 1LL << 53;
    size_t rows = words * 64;
    switch (i->op) {
    case FAST_SLOT:
        load(b, i, first, rows, up);
        return 1;
    case FAST_CONST:
        EACH up[r].i = i->i;
        return 1;
    case FAST_SWAP:
        EACH
        {
            union cell x = s[r];
            s[r] = t[r];
            t[r] = x;
        }
        return 0;
    case FAST_DOUBLE_EXACT:
        MARK(s[r].i > exact || s[r].i < -exact)
        EACH s[r].f = (double)s[r].i;
        return 0;
    case FAST_DOUBLE:
        EACH s[r].f = (double)s[r].i;
        return 0;
    case FAST_ADD_F:
        EACH t[r].f += s[r].f;
        return -1;
    case FAST_SUB_F:
        EACH t[r].f -= s[r].f;
        return -1;
    case FAST_MUL_F:
        EACH t[r].f *= s[r].f;
        return -1;
    case FAST_DIV_F:
        MARK(s[r].f == 0)
        EACH t[r].f /= s[r].f;
        return -1;
    case FAST_ADD_I:
        MARK(__builtin_add_overflow(t[r].i, s[r].i, &t[r].i))
        return -1;
    case FAST_SUB_I:
        MARK(__builtin_sub_overflow(t[r].i, s[r].i, &t[r].i))
        return -1;
    case FAST_MUL_I:
        MARK(__builtin_mul_overflow(t[r].i, s[r].i, &t[r].i))
        return -1;
    case FAST_DIV_I:
        MARK(s[r].i == 0 || s[r].i > exact || s[r].i < -exact || t[r].i > exact || t[r].i < -exact)
        EACH t[r].f = (double)t[r].i / (double)s[r].i;
        return -1;
    case FAST_NEG_F:
        EACH s[r].f = -s[r].f;
        return 0;
    default: /* FAST_NEG_I */
        MARK(s[r].i == INT64_MIN)
        EACH s[r].i = (int64_t)(0 - (uint64_t)s[r].i);
        return 0;
    }
}

#define COMPARE(field, op)                                                                         \
    for (size_t w = 0; w < words; w++) {                                                           \
        uint64_t m = 0;                                                                            \
        for (size_t n = 0; n < 64; n++)                                                            \
            m |= (uint64_t)(t[w * 64 + n].field op s[w * 64 + n].field) << n;                      \
        out[w] = m;                                                                                \
    }                                                                                              \
    break;

static void compare_cells(unsigned op, bool floats, const union cell *t, const union cell *s,
                          size_t words, uint64_t *out)
{
    switch (op + (floats ? 0 : 6)) {
    case CMP_LT:
        COMPARE(f, <)
    case CMP_LE:
        COMPARE(f, <=)
    case CMP_GT:
        COMPARE(f, >)
    case CMP_GE:
        COMPARE(f, >=)
    case CMP_EQ:
        COMPARE(f, ==)
    case CMP_NE:
        COMPARE(f, !=)
    case CMP_LT + 6:
        COMPARE(i, <)
    case CMP_LE + 6:
        COMPARE(i, <=)
    case CMP_GT + 6:
        COMPARE(i, >)
    case CMP_GE + 6:
        COMPARE(i, >=)
    case CMP_EQ + 6:
        COMPARE(i, ==)
    default:
        COMPARE(i, !=)
    }
}

static void join(uint64_t *into, const uint64_t *with, unsigned how, size_t words)
{
    for (size_t w = 0; w < words; w++)
        into[w] = how == JOIN_AND ? into[w] & with[w] : into[w] | with[w];
}

/* A step on a string: its rows go to the free BITS, or where the join that follows it would put them.
 * Nothing jumps to that join: a jump ends behind one. Returns how it joined. */
static enum expr_join text_leaf(struct batch *b, uint32_t pc, size_t first, size_t words,
                                uint64_t (*bits)[WORDS])
{
    const struct fast_insn *i = &b->code.code[pc];
    const struct match *m = &b->matches[pc];
    enum expr_join how = i[1].op == FAST_AND ? JOIN_AND : i[1].op == FAST_OR ? JOIN_OR : JOIN_PUSH;
    uint64_t *out = how == JOIN_PUSH ? bits[0] : bits[-1];
    struct batch_merge merge = batch_merge(how);
    if (m->found)
        codes(b, &b->columns[i->slot], first, words, m->code, i->op == FAST_TEXT_NE, how, out);
    else
        for (size_t w = 0; w < words; w++)
            out[w] = batch_merged(out[w], i->op == FAST_TEXT_NE ? ~0ULL : 0, merge);
    return how;
}

/* Runs the block of WORDS words from row FIRST; the truths end in bits[0]. */
static void block(struct batch *b, size_t first, size_t words)
{
    uint64_t(*bit)[WORDS] = b->bits; /* the next free one */
    int top = -1;
    for (uint32_t pc = 0;; pc++) {
        const struct fast_insn *i = &b->code.code[pc];
        unsigned op = i->op;
        bool last = op >= FAST_LAST && op < FAST_PLAIN_END;
        if (last)
            op -= FAST_LAST;
        if (op < FAST_BIT) {
            enum expr_join how = (enum expr_join)(op / FAST_JOIN);
            bit += how == JOIN_PUSH;
            leaf(b, i, op % FAST_JOIN, first, words, how, bit[-1]);
            if (last)
                return;
            continue;
        }
        uint64_t any = 0;
        enum expr_join text;
        /* Of a shorter stack the first: no step reads what is not there. */
        union cell *s = b->cells[top > 0 ? top : 0], *t = b->cells[top > 1 ? top - 1 : 0];
        switch (op) {
        case FAST_BIT:
            memset(*bit++, i->i ? 0xff : 0, words * sizeof **bit);
            break;
        case FAST_NOT:
            for (size_t w = 0; w < words; w++)
                bit[-1][w] = ~bit[-1][w];
            break;
        case FAST_AND:
        case FAST_OR:
            bit--;
            join(bit[-1], *bit, op == FAST_AND ? JOIN_AND : JOIN_OR, words);
            break;
        case FAST_JUMP_FALSE:
            for (size_t w = 0; w < words; w++)
                any |= bit[-1][w];
            pc = any ? pc : i->jump - 1;
            break;
        case FAST_JUMP_TRUE:
            for (size_t w = 0; w < words; w++)
                any |= ~bit[-1][w];
            pc = any ? pc : i->jump - 1;
            break;
        case FAST_TEXT_EQ:
        case FAST_TEXT_NE:
            text = text_leaf(b, pc, first, words, bit);
            bit += text == JOIN_PUSH;
            pc += text != JOIN_PUSH;
            break;
        case FAST_RETURN_BIT:
            return;
        case FAST_RETURN_F:
        case FAST_RETURN_I:
            for (size_t w = 0; w < words; w++) {
                uint64_t m = 0;
                for (size_t n = 0; n < 64; n++)
                    m |= (uint64_t)(op == FAST_RETURN_F ? s[w * 64 + n].f != 0
                                                        : s[w * 64 + n].i != 0)
                         << n;
                b->bits[0][w] = m;
            }
            return;
        default:
            if (op < FAST_CMP_F) {
                top += number_step(b, i, first, words, s, t, b->cells[top + 1]);
                break;
            }
            op -= FAST_CMP_F; /* CMP_F, CMP_I, KEEP_F, KEEP_I: six each */
            compare_cells(op % 6, op / 6 % 2 == 0, t, s, words, *bit++);
            top -= 2;
            if (op >= 12)
                memcpy(b->cells[++top], s, words * 64 * sizeof *s);
        }
    }
}

/* Rows with a null in a column that is read. */
static void mark_nulls(struct batch *b, size_t first, size_t words)
{
    memset(b->bad, 0, sizeof b->bad);
    for (uint32_t s = 0; s < b->p->schema->count; s++) {
        const struct cordon_column *c = &b->columns[s];
        if (!cordon_uses(b->p, s))
            continue;
        for (size_t w = 0; c->valid && w < words; w++)
            b->bad[w] |= ~c->valid[first / 64 + w];
        if (is_dict(c))
            mark_past(b, c, first, words);
    }
}

/* The kind each column has for typed code; false if one has none. */
static bool column_kinds(struct batch *b, uint8_t *kinds)
{
    static const uint8_t of[] = {EXPR_NO_KIND, K_FLOAT, K_INT, K_BOOL, K_STR, K_STR, K_STR};
    for (uint32_t s = 0; s < b->p->schema->count; s++) {
        kinds[s] = of[b->columns[s].kind];
        if (cordon_uses(b->p, s) && kinds[s] == EXPR_NO_KIND)
            return false;
    }
    return true;
}

/* Finds each string constant in its column's dictionary; false if it is there twice. */
static bool match_texts(struct batch *b)
{
    for (uint32_t pc = 0; pc < b->code.count; pc++) {
        const struct fast_insn *i = &b->code.code[pc];
        b->matches[pc] = (struct match){0};
        if (i->op != FAST_TEXT_EQ && i->op != FAST_TEXT_NE)
            continue;
        const struct cordon_column *c = &b->columns[i->slot];
        const struct expr_value *v = &b->p->konst[i->jump];
        for (uint32_t n = 0; n < c->dict_count; n++)
            if (c->dict_len[n] == v->len && memcmp(c->dict[n], v->s, v->len) == 0) {
                if (b->matches[pc].found)
                    return false;
                b->matches[pc] = (struct match){true, n};
            }
    }
    return true;
}

static int check_columns(const struct cordon_program *p, const struct cordon_column *columns,
                         struct cordon_error *err)
{
    for (uint32_t s = 0; s < p->schema->count; s++) {
        const struct cordon_column *c = &columns[s];
        if ((unsigned)c->kind > CORDON_COL_DICT32 || (c->kind != CORDON_COL_ABSENT && !c->data))
            return expr_fail(err, CORDON_CONTEXT, "column %u has no data of a known kind", s);
        for (uint32_t n = 0; is_dict(c) && n < c->dict_count; n++)
            if (c->dict_len[n] > CORDON_STRING_MAX ||
                utf8_valid_prefix(c->dict[n], c->dict_len[n]) != c->dict_len[n])
                return expr_fail(err, CORDON_CONTEXT,
                                 "column %u: dictionary entry %u is not valid text", s, n);
    }
    return 0;
}

size_t cordon_batch_size(const struct cordon_program *p)
{
    size_t steps = (size_t)p->count * 3 + 4;
    return cordon_ctx_size(p->schema) + steps * (sizeof(struct fast_insn) + sizeof(struct match)) +
           (FAST_BITS + 2) * WORDS * sizeof(uint64_t) +
           (FAST_STACK + 3) * ROWS * sizeof(union cell) + CORDON_KEYS_MAX + cordon_scratch_size(p) +
           256;
}

int batch_run(const struct batch_kernels *kernels, const struct cordon_program *p,
              const struct cordon_column *columns, size_t rows, void *mem, size_t mem_len,
              uint64_t *truth, uint64_t *errors, struct cordon_error *err)
{
    struct expr_area area = expr_area_of(mem, mem_len);
    struct batch b = {.k = kernels, .p = p, .columns = columns};
    int r = check_columns(p, columns, err);
    if (r)
        return r;
    uint8_t *kinds = expr_area_take(&area, CORDON_KEYS_MAX);
    void *ctx = expr_area_take(&area, cordon_ctx_size(p->schema));
    b.bits = expr_area_take(&area, (FAST_BITS + 2) * sizeof *b.bits);
    b.cells = expr_area_take(&area, (FAST_STACK + 3) * sizeof *b.cells);
    b.matches = expr_area_take(&area, ((size_t)p->count * 3 + 4) * sizeof *b.matches);
    if (!kinds || !ctx || !b.bits || !b.cells || !b.matches)
        return expr_fail(err, CORDON_MEMORY, "the memory given is too small for a batch");
    b.ctx = cordon_ctx_init(ctx, cordon_ctx_size(p->schema), p->schema, 0);
    bool typed = column_kinds(&b, kinds) && fast_make(p, kinds, &area, &b.code) && match_texts(&b);
    b.scratch = area.base + area.used;
    b.scratch_len = area.cap - area.used;
    if (b.scratch_len < cordon_scratch_size(p) - EXPR_SCRATCH_EXTRA)
        return expr_fail(err, CORDON_MEMORY, "the memory given is too small for a batch");
    size_t done = 0;
    while (typed && rows - done >= 64) {
        size_t words = (rows - done) / 64 < WORDS ? (rows - done) / 64 : WORDS, at = done / 64;
        mark_nulls(&b, done, words);
        block(&b, done, words);
        for (size_t w = 0; w < words; w++) {
            truth[at + w] = b.bits[0][w];
            errors[at + w] = 0;
            for (uint64_t m = b.bad[w]; m; m &= m - 1)
                exact_row(&b, (at + w) * 64 + (size_t)__builtin_ctzll(m), &truth[at + w],
                          &errors[at + w]);
        }
        done += words * 64;
    }
    for (; done < rows; done++) {
        if (done % 64 == 0)
            truth[done / 64] = errors[done / 64] = 0;
        exact_row(&b, done, &truth[done / 64], &errors[done / 64]);
    }
    return 0;
}

int cordon_batch(const struct cordon_program *p, const struct cordon_column *columns, size_t rows,
                 void *mem, size_t mem_len, uint64_t *truth, uint64_t *errors,
                 struct cordon_error *err)
{
    return batch_run(kernels_best(), p, columns, rows, mem, mem_len, truth, errors, err);
}
