/* SPDX-License-Identifier: Apache-2.0 */
/* Why our own tree and not libseccomp's: libseccomp sorts calls into a tree too (OPTIMIZE=2), but
 * it has one default action where we need two (unknown and unlisted), answers "the rest of this
 * call" with that default, and gives each call its own leaf. Here neighbours of equal fate are one
 * range, and equal answers nearby are one return. From libseccomp come the numbers of both
 * architectures.
 *
 * When a filter is loaded the kernel walks it once for every call number, to learn which calls it
 * allows without looking at arguments; those never run the filter again. Then it translates it to
 * machine code. A straight list makes the walk quadratic, a tree does not, and fewer instructions
 * make the translation shorter: loading, once for each run, is what the shape pays for. The walk
 * understands only the instructions used here (load, and, ja, jeq, jge, ret): use no other. */
#include "jail/filters/tree.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBERS 1024 /* call numbers looked at; both architectures end near 470 */
#define REACH   230  /* instructions that share their returns */
#define X32_BIT 0x40000000u

/* A run of numbers with the same rules. */
struct range {
    uint32_t first;
    const struct table_call *call;
};

static uint32_t scmp_arch(uint32_t audit_arch)
{
    return audit_arch == AUDIT_ARCH_X86_64 ? SCMP_ARCH_X86_64 : SCMP_ARCH_AARCH64;
}

int tree_number(const char *name, uint32_t audit_arch)
{
    int nr = seccomp_syscall_resolve_name_arch(scmp_arch(audit_arch), name);
    return nr < 0 ? -1 : nr; /* libseccomp gives absent calls negative numbers of its own */
}

char *tree_name(int nr, uint32_t audit_arch)
{
    return seccomp_syscall_resolve_num_arch(scmp_arch(audit_arch), nr);
}

static unsigned put(struct tree *t, uint16_t code, uint32_t k, uint8_t jt, uint8_t jf)
{
    if (t->n == TREE_MAX) {
        fprintf(stderr, "filtergen: more than %d instructions\n", TREE_MAX);
        exit(1);
    }
    t->insns[t->n] = (struct sock_filter){code, jt, jf, k};
    return t->n++;
}

static unsigned load(struct tree *t, size_t offset)
{
    return put(t, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static unsigned jump_if_equal(struct tree *t, uint32_t k)
{
    return put(t, BPF_JMP | BPF_JEQ | BPF_K, k, 0, 0);
}

static uint8_t distance(unsigned from, unsigned to)
{
    unsigned d = to - from - 1;
    if (d > 255) {
        fprintf(stderr, "filtergen: conditions too long for BPF jumps: make REACH smaller\n");
        exit(1);
    }
    return (uint8_t)d;
}

/* A jump of one instruction: the one for yes, or the one for no. */
struct jump {
    unsigned at;
    bool yes;
};

static void land(struct tree *t, struct jump j, unsigned target)
{
    struct sock_filter *in = &t->insns[j.at];
    *(j.yes ? &in->jt : &in->jf) = distance(j.at, target);
}

/* Jumps inside one chunk that wait for the returns behind it. */
struct pool {
    unsigned n;
    struct {
        struct jump jump;
        uint32_t action;
    } wait[4 * REACH];
};

static void later(struct pool *p, struct jump j, uint32_t action)
{
    if (p->n == sizeof p->wait / sizeof *p->wait) {
        fprintf(stderr, "filtergen: too many jumps in one chunk\n");
        exit(1);
    }
    p->wait[p->n].jump = j;
    p->wait[p->n++].action = action;
}

struct jumps {
    unsigned n;
    struct jump jump[2 * TABLE_LIST + 2 * TABLE_CONDS];
};

static void add(struct jumps *list, unsigned at, bool yes)
{
    list->jump[list->n++] = (struct jump){at, yes};
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* More than a number that is written in when the filter is loaded (filter.c has the same four lines): until
 * then nothing is. */
static void over(struct tree *t, size_t low, struct jumps *yes, struct jumps *no)
{
    if (t->n_over == TREE_OVER) {
        fprintf(stderr, "filtergen: `over` more than %d times\n", TREE_OVER);
        exit(1);
    }
    load(t, low + 4);
    t->over[t->n_over++] = t->n;
    add(yes, put(t, BPF_JMP | BPF_JGE | BPF_K, UINT32_MAX, 0, 0), true); /* the upper half + 1 */
    add(no, put(t, BPF_JMP | BPF_JGE | BPF_K, UINT32_MAX, 0, 0), false); /* the upper half */
    load(t, low);
    unsigned last = put(t, BPF_JMP | BPF_JGE | BPF_K, UINT32_MAX, 0, 0); /* the lower half + 1 */
    add(yes, last, true);
    add(no, last, false);
}

/* Emits one condition. YES collects the jumps to be taken when it holds, NO when it does not. Three
 * neighbours or more are two comparisons. */
static void condition(struct tree *t, const struct table_cond *c, struct jumps *yes,
                      struct jumps *no)
{
    /* both architectures are little-endian: the lower half comes first */
    size_t low = offsetof(struct seccomp_data, args) + 8 * (size_t)c->arg;
    uint64_t values[TABLE_LIST];
    if (c->over) {
        over(t, low, yes, no);
        return;
    }
    if (c->wide) {
        load(t, low + 4);
        add(no, jump_if_equal(t, (uint32_t)(c->values[0] >> 32)), false);
    }
    load(t, low);
    if (c->masked)
        put(t, BPF_ALU | BPF_AND | BPF_K, c->mask, 0, 0);
    memcpy(values, c->values, c->n * sizeof *values);
    qsort(values, c->n, sizeof *values, by_value);
    for (unsigned i = 0, end; i < c->n; i = end) {
        uint32_t first = (uint32_t)values[i];
        for (end = i + 1; end < c->n && (uint32_t)values[end] == first + (end - i);)
            end++;
        if (end - i < 3) {
            end = i + 1;
            unsigned at = jump_if_equal(t, first);
            add(yes, at, true);
            if (end == c->n)
                add(no, at, false);
            continue;
        }
        unsigned below = put(t, BPF_JMP | BPF_JGE | BPF_K, first, 0, 1);
        unsigned above = put(t, BPF_JMP | BPF_JGE | BPF_K, first + (end - i), 0, 0);
        add(yes, above, false);
        if (end == c->n) {
            add(no, below, false);
            add(no, above, true);
        }
    }
}

static void land_all(struct tree *t, const struct jumps *list)
{
    for (unsigned i = 0; i < list->n; i++)
        land(t, list->jump[i], t->n);
}

static void wait_all(struct pool *p, const struct jumps *list, uint32_t action)
{
    for (unsigned i = 0; i < list->n; i++)
        later(p, list->jump[i], action);
}

/* The lines of one call, in their order; the last has no condition. No line has a return of its own: its
 * jumps go to those behind the chunk. */
static void decide(struct tree *t, const struct table_call *call, struct pool *p)
{
    if (call->n_rules == 1)
        put(t, BPF_RET | BPF_K, call->rules[0].action, 0, 0);
    for (unsigned i = 0; i + 1 < call->n_rules; i++) {
        const struct table_rule *r = &call->rules[i];
        struct jumps yes = {0}, no = {0};
        for (unsigned c = 0; c < r->n_conds; c++) {
            land_all(t, &yes);
            yes.n = 0;
            condition(t, &r->conds[c], &yes, &no);
        }
        wait_all(p, &yes, r->action);
        if (i + 2 == call->n_rules)
            wait_all(p, &no, call->rules[i + 1].action);
        else
            land_all(t, &no);
    }
}

static bool plain(const struct range *r)
{
    return r->call->n_rules == 1;
}

/* Binary search in ranges FIRST to END: left below the middle, right from it on. A side that is one
 * plain action takes no instruction of its own: the jump goes to a return behind the chunk. */
static void search_chunk(struct tree *t, const struct range *r, unsigned first, unsigned end,
                         struct pool *p)
{
    if (end - first == 1) {
        decide(t, r[first].call, p);
        return;
    }
    unsigned mid = first + (end - first) / 2;
    unsigned at = put(t, BPF_JMP | BPF_JGE | BPF_K, r[mid].first, 0, 0);
    if (mid - first == 1 && plain(&r[first]))
        later(p, (struct jump){at, false}, r[first].call->rules[0].action);
    else
        search_chunk(t, r, first, mid, p);
    if (end - mid == 1 && plain(&r[mid])) {
        later(p, (struct jump){at, true}, r[mid].call->rules[0].action);
    } else {
        t->insns[at].jt = distance(at, t->n);
        search_chunk(t, r, mid, end, p);
    }
}

/* One return for each action of the chunk; conditional jumps reach 255 instructions, so a chunk is
 * as many ranges as surely stay within that. */
static bool one_chunk(const struct range *r, unsigned first, unsigned end)
{
    unsigned size = 0;
    for (unsigned i = first; i < end; i++) {
        size++;
        for (unsigned k = 0; k < r[i].call->n_rules; k++)
            for (unsigned c = 0; c < r[i].call->rules[k].n_conds; c++)
                size += 6 + r[i].call->rules[k].conds[c].n;
    }
    return size <= REACH;
}

static void chunk(struct tree *t, const struct range *r, unsigned first, unsigned end)
{
    static struct pool p;
    p.n = 0;
    search_chunk(t, r, first, end, &p);
    unsigned returns = t->n;
    for (unsigned i = 0; i < p.n; i++) {
        unsigned target = returns;
        while (target < t->n && t->insns[target].k != p.wait[i].action)
            target++;
        if (target == t->n)
            put(t, BPF_RET | BPF_K, p.wait[i].action, 0, 0);
        land(t, p.wait[i].jump, target);
    }
}

/* The upper levels of the tree, above the chunks. */
static void search(struct tree *t, const struct range *r, unsigned first, unsigned end)
{
    if (end - first == 1 || one_chunk(r, first, end)) {
        chunk(t, r, first, end);
        return;
    }
    unsigned mid = first + (end - first) / 2;
    unsigned at = put(t, BPF_JMP | BPF_JGE | BPF_K, r[mid].first, 0, 0);
    search(t, r, first, mid);
    unsigned left = t->n - at - 1;
    if (left <= 255) {
        t->insns[at].jt = (uint8_t)left;
    } else {
        /* too far for a conditional jump: make room for a long one. All jumps are relative, and
         * none crosses this place, so moving the left side is safe. */
        put(t, BPF_JMP | BPF_JA, 0, 0, 0);
        memmove(&t->insns[at + 2], &t->insns[at + 1], left * sizeof *t->insns);
        t->insns[at + 1] = (struct sock_filter){BPF_JMP | BPF_JA, 0, 0, left};
        for (unsigned i = 0; i < t->n_over; i++)
            t->over[i] += t->over[i] > at;
        t->insns[at].jf = 1;
    }
    search(t, r, mid, end);
}

static bool same_fate(const struct table_call *a, const struct table_call *b)
{
    return a == b ||
           (a->n_rules == 1 && b->n_rules == 1 && a->rules[0].action == b->rules[0].action);
}

void tree_compile(struct tree *out, const struct table *table, uint32_t audit_arch)
{
    const struct table_call *fate[NUMBERS];
    struct range ranges[NUMBERS];
    unsigned n = 0;

    for (int nr = 0; nr < NUMBERS; nr++) {
        char *name = tree_name(nr, audit_arch);
        fate[nr] = name ? &table->unlisted : &table->unknown;
        free(name);
    }
    for (unsigned i = 0; i < table->n_calls; i++) {
        int nr = tree_number(table->calls[i].name, audit_arch);
        if (nr >= NUMBERS)
            table_fail(table->calls[i].rules[0].file, table->calls[i].rules[0].line,
                       "%s has a number past %d", table->calls[i].name, NUMBERS);
        if (nr >= 0)
            fate[nr] = &table->calls[i];
    }
    for (uint32_t nr = 0; nr < NUMBERS; nr++)
        if (nr == 0 || !same_fate(fate[nr], ranges[n - 1].call))
            ranges[n++] = (struct range){nr, fate[nr]};
    if (ranges[n - 1].call != &table->unknown) {
        fprintf(stderr, "filtergen: call numbers go past %d\n", NUMBERS);
        exit(1);
    }

    out->n = out->n_over = 0;
    load(out, offsetof(struct seccomp_data, arch));
    jump_if_equal(out, audit_arch);
    out->insns[1].jt = 1;
    put(out, BPF_RET | BPF_K, table->foreign.rules[0].action, 0, 0);
    load(out, offsetof(struct seccomp_data, nr));
    if (audit_arch == AUDIT_ARCH_X86_64) {
        /* x32 calls report the same architecture and set a bit of the number. The number -1 has it
         * too but is nobody's call (a tracer skips calls with it): that one is merely unknown. */
        put(out, BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 2);
        put(out, BPF_JMP | BPF_JEQ | BPF_K, UINT32_MAX, 1, 0);
        put(out, BPF_RET | BPF_K, table->foreign.rules[0].action, 0, 0);
    }
    search(out, ranges, 0, n);
}
