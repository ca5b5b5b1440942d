/* SPDX-License-Identifier: Apache-2.0 */
/* Makes programs and contexts, answers them, and writes both down for the oracle (diff.py), which
 * asks the installed CPython. Everything that needs no oracle is checked here: the certificate, the
 * typed code against the exact one, lazy evaluation, batch, explain, save and load, analysis. Each
 * gets the memory that its _size() function asks for and no more. Records end with 0x1e, fields with
 * 0x1f: neither occurs in a generated program. */
#include "cordon.h"
#include "expr/context.h"
#include "gen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POOL     64
#define PER_POOL 512 /* programs a pool of contexts serves */

#define WORK_SIZE (CORDON_SCRATCH_MAX + (32u << 20)) /* never touched as a whole */
static char schema_mem[65536], program_mem[1 << 20], loaded_mem[1 << 20];
static char *scratch, *work_mem;
static char context_text[POOL][16384], context_json[POOL][40000], context_mem[POOL][4096];
static size_t context_len[POOL];
static struct cordon_ctx *contexts[POOL];
static struct cordon_schema *schema;

__attribute__((noreturn)) static void die(const char *what, const struct cordon_error *err)
{
    fprintf(stderr, "diff_driver: %s: %s\n", what, err->message);
    exit(2);
}

static void put_value(const struct cordon_value *v)
{
    char text[64];
    switch (v->type) {
    case CORDON_NONE:
        fputs("N", stdout);
        break;
    case CORDON_BOOL:
        fputs(v->i ? "b:True" : "b:False", stdout);
        break;
    case CORDON_FLOAT:
        cordon_repr(v, NULL, text, sizeof text);
        printf("f:%s", text);
        break;
    case CORDON_STR:
        fputs("s:", stdout);
        fwrite(v->s, 1, v->len, stdout);
        break;
    case CORDON_INT:
        if (v->words) {
            printf("i:%s0x%llx", v->negative ? "-" : "", (unsigned long long)v->words[v->len - 1]);
            for (size_t i = v->len - 1; i--;)
                printf("%016llx", (unsigned long long)v->words[i]);
        } else {
            unsigned long long m = v->i < 0 ? -(unsigned long long)v->i : (unsigned long long)v->i;
            printf("i:%s0x%llx", v->i < 0 ? "-" : "", m);
        }
    }
}

static void complain(const char *what, const char *source, size_t context)
{
    printf("!\x1f%s\x1f%s\x1f%s\x1e", what, source, context_text[context]);
}

static bool truth_of(const struct cordon_value *v)
{
    return v->type == CORDON_FLOAT ? v->f != 0
           : v->type == CORDON_STR ? v->len != 0
                                   : v->i != 0 || v->words != NULL;
}

#define ROWS 200
static double col_f[32][ROWS];
static int64_t col_i[32][ROWS];
static uint8_t col_b[32][ROWS];
static uint64_t col_valid[32][4];
static struct cordon_column columns[32];
static char long_text[3000]; /* longer than any enum */
static const char *const dict[] = {"low", "mid", "high", "", "a", "\xc3\xa9", long_text};
static const uint32_t dict_len[] = {3, 3, 4, 0, 1, 2, sizeof long_text};

/* Columns of random values, mostly of the kind each key declares; for the free ones of any. */
static void new_columns(struct gen *g)
{
    static const double edges[] = {0, 1, -1, 0.5, -0.0, 1e308, 9007199254740993.0, 3};
    for (size_t s = 0; s < cordon_schema_count(schema); s++) {
        struct cordon_column *c = &columns[s];
        const char *key = cordon_schema_key(schema, s, NULL);
        static const char kinds[] = "a?b?c?d?e?fFgFiIjImFrIuFsDtDpBqB";
        const char *k = *key & 0x80 ? NULL : strchr(kinds, *key);
        char kind = k ? k[1] : '?';
        if (kind == '?' || gen_below(g, 6) == 0) /* a column need not follow the schema */
            kind = "FIBDA"[gen_below(g, 5)];
        *c = (struct cordon_column){.dict = dict, .dict_len = dict_len, .dict_count = 7};
        c->kind = kind == 'F'   ? CORDON_COL_FLOAT
                  : kind == 'I' ? CORDON_COL_INT
                  : kind == 'B' ? CORDON_COL_BOOL
                  : kind == 'D' ? CORDON_COL_DICT8
                                : CORDON_COL_ABSENT;
        c->data = kind == 'F'   ? (void *)col_f[s]
                  : kind == 'I' ? (void *)col_i[s]
                                : (void *)col_b[s];
        c->valid = gen_below(g, 2) ? col_valid[s] : NULL;
        for (size_t r = 0; r < ROWS; r++) {
            uint64_t x = gen_random(g);
            col_f[s][r] = x & 1 ? edges[x >> 8 & 7] : (double)(int64_t)(x >> 32) / 65536.0 - 30000;
            if ((x >> 1 & 31) == 0)
                col_f[s][r] = x & 64 ? __builtin_nan("") : __builtin_inf();
            col_i[s][r] =
                (x & 3) < 2 ? (int64_t)(x >> 8 & 15) - 7 : (int64_t)gen_random(g) >> (x >> 8 & 63);
            if ((x >> 40 & 31) == 0)
                col_i[s][r] = x & 4 ? INT64_MAX : INT64_MIN;
            col_b[s][r] = kind == 'B' ? x >> 8 & 1
                                      : (uint8_t)(x >> 8 & 7); /* code 7 is past the dictionary */
            if (r % 64 == 0)
                col_valid[s][r / 64] = gen_random(g) | gen_random(g) | gen_random(g);
        }
    }
}

static void fill_row(struct cordon_ctx *c, size_t r)
{
    cordon_ctx_clear(c);
    for (size_t s = 0; s < cordon_schema_count(schema); s++) {
        const struct cordon_column *k = &columns[s];
        if (k->kind == CORDON_COL_ABSENT || (k->valid && !(k->valid[r / 64] >> (r % 64) & 1)))
            continue;
        if (k->kind == CORDON_COL_FLOAT)
            cordon_ctx_float(c, s, col_f[s][r]);
        else if (k->kind == CORDON_COL_INT)
            cordon_ctx_int(c, s, col_i[s][r]);
        else if (k->kind == CORDON_COL_BOOL)
            cordon_ctx_bool(c, s, col_b[s][r] != 0);
        else if (col_b[s][r] < 7)
            cordon_ctx_str(c, s, dict[col_b[s][r]], dict_len[col_b[s][r]]);
    }
}

static void check_batch(const struct cordon_program *p, const char *source, size_t rows)
{
    static char row_mem[4096];
    uint64_t truth[4], errors[4];
    struct cordon_error err;
    struct cordon_ctx *c = cordon_ctx_init(row_mem, sizeof row_mem, schema, 0);
    if (cordon_batch(p, columns, rows, work_mem, cordon_batch_size(p), truth, errors, &err)) {
        complain(err.message, source, 0);
        return;
    }
    for (size_t r = 0; r < rows; r++) {
        fill_row(c, r);
        int t = cordon_test(p, c, scratch, cordon_scratch_size(p));
        if ((truth[r / 64] >> (r % 64) & 1) != (t == 1) ||
            (errors[r / 64] >> (r % 64) & 1) != (t < 0)) {
            char what[64];
            snprintf(what, sizeof what, "batch differs in row %zu", r);
            complain(what, source, 0);
            return;
        }
    }
}

static struct cordon_finding findings[8];
static size_t findings_count;

static bool same_value(const struct cordon_value *a, const struct cordon_value *b)
{
    if (a->type != b->type || a->negative != b->negative || !a->words != !b->words)
        return false;
    if (a->type == CORDON_STR)
        return a->len == b->len && memcmp(a->s, b->s, a->len) == 0;
    if (a->words)
        return a->len == b->len && memcmp(a->words, b->words, a->len * 8) == 0;
    if (a->type == CORDON_FLOAT) /* one NaN is as good as another, one zero is not */
        return memcmp(&a->f, &b->f, 8) == 0 || (a->f != a->f && b->f != b->f);
    return a->i == b->i;
}

/* The same with each value handed over only when it is asked for: once, and never an unused one. */
static void check_lazy(const struct cordon_program *p, const char *source, size_t context,
                       int status, const struct cordon_value *v)
{
    static char lazy_mem[4096];
    const struct cordon_ctx *c = contexts[context];
    struct cordon_ctx *lazy = cordon_ctx_init(lazy_mem, sizeof lazy_mem, schema, 0);
    struct cordon_value got;
    uint64_t asked = 0;
    size_t slot = 0;
    for (size_t s = 0; s < cordon_schema_count(schema); s++)
        cordon_ctx_unread(lazy, s);
    for (bool resume = false;; resume = true) {
        int r =
            cordon_eval_lazy(p, lazy, work_mem, cordon_scratch_size(p), resume, &slot, &got, NULL);
        if (r == CORDON_UNREAD && !(asked >> slot & 1) && cordon_uses(p, slot)) {
            asked |= 1ULL << slot;
            lazy->value[slot] = c->value[slot];
            continue;
        }
        if (r != status || (r == 0 && !same_value(&got, v)))
            complain("lazy evaluation differs", source, context);
        return;
    }
}

/* What needs no oracle. STATUS and V are the answer. */
static void check_alone(const struct cordon_program *p, const struct cordon_program *loaded,
                        const char *source, size_t context, int status,
                        const struct cordon_value *v)
{
    const struct cordon_ctx *c = contexts[context];
    const struct cordon_certificate *k = cordon_certify(p);
    struct cordon_certificate m;
    size_t size = cordon_scratch_size(p);
    check_lazy(p, source, context, status, v);
    int exact = cordon_measure(p, c, work_mem, size, &m);
    int test = cordon_test(p, c, work_mem, size);
    if (exact != status || (status == 0 && m.types != 1u << v->type))
        complain("typed and exact code differ", source, context);
    if (test != (status ? -1 : truth_of(v)))
        complain("cordon_test differs from cordon_eval", source, context);
    if (m.conforming && ((m.types & ~k->types) || (m.raises & ~k->raises) ||
                         (status != CORDON_LIMIT && (m.bits > k->bits || m.text > k->text ||
                                                     m.work > k->work || m.scratch > k->scratch))))
        complain("the certificate was exceeded", source, context);
    if (m.steps > k->steps || m.stack > k->stack)
        complain("the certificate's steps or stack were exceeded", source, context);
    if (!strpbrk(source, "<>=!") && !strstr(source, "and") && !strstr(source, "or") &&
        status == 0 && (m.steps != k->steps || m.stack != k->stack))
        complain("a program without jumps did not run as certified", source, context);
    const struct cordon_reason *reasons;
    size_t count;
    if (cordon_explain(p, c, work_mem, cordon_explain_size(p), &reasons, &count) != test)
        complain("explain answers something else", source, context);
    if (loaded) {
        struct cordon_value again;
        struct cordon_error err;
        if (cordon_eval(loaded, c, work_mem, size, &again, &err) != status ||
            cordon_test(loaded, c, work_mem, size) != test)
            complain("the saved program answers something else", source, context);
    }
    if (m.conforming && findings_count) {
        enum cordon_finding_kind f = findings[0].kind;
        if ((f == CORDON_ALWAYS_TRUE && test == 0) || (f == CORDON_ALWAYS_FALSE && test == 1) ||
            (f == CORDON_ALWAYS_RAISES && test >= 0))
            complain("the analysis claimed too much", source, context);
    }
}

static void new_pool(struct gen *g)
{
    struct cordon_error err;
    fputs("P", stdout);
    for (size_t i = 0; i < POOL; i++) {
        context_len[i] = gen_context(g, context_text[i], sizeof context_text[i]);
        contexts[i] = cordon_ctx_init(context_mem[i], sizeof context_mem[i], schema, 0);
        if (!contexts[i] || cordon_ctx_json(contexts[i], context_text[i], context_len[i],
                                            context_json[i], sizeof context_json[i], &err))
            die(context_text[i], &err);
        printf("\x1f%s", context_text[i]);
    }
    fputs("\x1e", stdout);
    new_columns(g);
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000;
    uint64_t each = argc > 3 ? strtoull(argv[3], NULL, 10) : 2;
    static char source[4096];
    struct cordon_error err;
    struct gen g;
    setvbuf(stdout, NULL, _IOFBF, 1 << 20);
    memset(long_text, 'L', sizeof long_text);
    scratch = malloc(CORDON_SCRATCH_MAX + 4096);
    work_mem = malloc(WORK_SIZE);
    if (!scratch || !work_mem)
        return 2;
    gen_seed(&g, seed);
    if (argc > 4)
        g.size = (int)strtol(argv[4], NULL, 10);
    if (cordon_schema_read(gen_schema, strlen(gen_schema), schema_mem, sizeof schema_mem, &schema,
                           &err))
        die("schema", &err);
    for (uint64_t n = 0; n < count; n++) {
        struct cordon_program *p, *loaded = NULL;
        if (n % PER_POOL == 0)
            new_pool(&g);
        size_t len = gen_program(&g, source, sizeof source);
        printf("X\x1f%s", source);
        if (cordon_compile(schema, source, len, program_mem, sizeof program_mem, &p, &err)) {
            printf("\x1fU\x1f%s\x1e", err.message);
            continue;
        }
        findings_count = cordon_analyse(p, work_mem, cordon_analyse_size(p), findings, 8);
        if (n % 4 == 0) {
            static char saved[65536];
            size_t size = cordon_save(p, saved, sizeof saved);
            if (size > sizeof saved ||
                cordon_load(schema, saved, size, loaded_mem, sizeof loaded_mem, &loaded, &err)) {
                printf("\x1e");
                complain(err.message, source, 0);
                printf("X\x1f%s", source);
                loaded = NULL;
            }
        }
        uint32_t picks[16];
        for (uint64_t i = 0; i < each && i < 16; i++) {
            struct cordon_value v;
            picks[i] = gen_below(&g, POOL);
            int r = cordon_eval(p, contexts[picks[i]], scratch, cordon_scratch_size(p), &v, &err);
            printf("\x1f%u\x1f", picks[i]);
            if (r)
                printf("E:%s:%s", cordon_class(err.status), err.message);
            else
                put_value(&v);
        }
        fputs("\x1e", stdout);
        for (uint64_t i = 0; i < each && i < 16; i++) {
            struct cordon_value v;
            int r = cordon_eval(p, contexts[picks[i]], scratch, cordon_scratch_size(p), &v, &err);
            check_alone(p, loaded, source, picks[i], r, &v);
        }
        if (n % 8 == 0)
            check_batch(p, source, 1 + gen_below(&g, ROWS));
    }
    return fflush(stdout) ? 2 : 0;
}
