/* SPDX-License-Identifier: Apache-2.0 */
/* The C side of the expression bench: reads a name a line, runs that once, prints nanoseconds per
 * evaluation (or row, or compilation). expr_bench.py asks for the names in turn, so that what is
 * compared ran within milliseconds of each other on the same machine. Time is the process's own CPU
 * time. */
#include "cordon.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define CONTEXTS 1024
#define ROWS     (4u << 20)

static const char source[] = "ctx['a'] > 0.5 and ctx['b'] == 'low' or ctx['n'] + 1 > 4";
static const char schema_text[] = "{\"keys\":{\"a\":\"float\",\"b\":{\"type\":\"str\",\"enum\":["
                                  "\"low\",\"mid\",\"high\"]},\"n\":\"int\"}}";
static const char *const words[] = {"low", "mid", "high"};
static const uint32_t word_lens[] = {3, 3, 4};

struct record {
    double a;
    int b;
    int64_t n;
};
static struct record records[CONTEXTS];
static struct cordon_ctx *contexts[CONTEXTS];
static struct cordon_schema *schema;
static struct cordon_program *program;
static char schema_mem[16384], program_mem[65536], compile_mem[65536], scratch[1 << 17];
static volatile long sink;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* What a person would write for this one condition. */
__attribute__((noinline)) static int by_hand(const struct record *r)
{
    return (r->a > 0.5 && r->b == 0) || r->n + 1 > 4;
}

static double run_hand(void)
{
    const long rounds = 2000;
    long x = 0;
    double t = now();
    for (long k = 0; k < rounds; k++)
        for (size_t i = 0; i < CONTEXTS; i++)
            x += by_hand(&records[i]);
    sink = x;
    return (now() - t) / (double)(rounds * CONTEXTS);
}

static double run_cordon(void)
{
    const long rounds = 2000;
    long x = 0;
    double t = now();
    for (long k = 0; k < rounds; k++)
        for (size_t i = 0; i < CONTEXTS; i++)
            x += cordon_test(program, contexts[i], scratch, sizeof scratch);
    sink = x;
    return (now() - t) / (double)(rounds * CONTEXTS);
}

static double run_eval(void)
{
    const long rounds = 500;
    struct cordon_value v;
    long x = 0;
    double t = now();
    for (long k = 0; k < rounds; k++)
        for (size_t i = 0; i < CONTEXTS; i++) {
            cordon_eval(program, contexts[i], scratch, sizeof scratch, &v, NULL);
            x += v.i;
        }
    sink = x;
    return (now() - t) / (double)(rounds * CONTEXTS);
}

static double run_compile(void)
{
    const long rounds = 20000;
    struct cordon_program *p;
    double t = now();
    for (long k = 0; k < rounds; k++)
        if (cordon_compile(schema, source, sizeof source - 1, compile_mem, sizeof compile_mem, &p,
                           NULL))
            exit(2);
    return (now() - t) / (double)rounds;
}

static double run_explain(void)
{
    static char mem[1 << 18];
    const long rounds = 50;
    const struct cordon_reason *reasons;
    size_t count;
    double t = now();
    for (long k = 0; k < rounds; k++)
        for (size_t i = 0; i < CONTEXTS; i++)
            cordon_explain(program, contexts[i], mem, sizeof mem, &reasons, &count);
    return (now() - t) / (double)(rounds * CONTEXTS);
}

static double run_sqlite(void)
{
    const long rounds = 100;
    static sqlite3 *db;
    static sqlite3_stmt *s;
    long x = 0;
    if (!db &&
        (sqlite3_open(":memory:", &db) ||
         sqlite3_prepare_v2(db, "SELECT ?1 > 0.5 AND ?2 = 'low' OR ?3 + 1 > 4", -1, &s, NULL)))
        exit(2);
    double t = now();
    for (long k = 0; k < rounds; k++)
        for (size_t i = 0; i < CONTEXTS; i++) {
            sqlite3_bind_double(s, 1, records[i].a);
            sqlite3_bind_text(s, 2, words[records[i].b], -1, SQLITE_STATIC);
            sqlite3_bind_int64(s, 3, records[i].n);
            sqlite3_step(s);
            x += sqlite3_column_int(s, 0);
            sqlite3_reset(s);
        }
    sink = x;
    return (now() - t) / (double)(rounds * CONTEXTS);
}

/* Columns of ROWS rows, in memory as numpy takes it: malloc, and huge pages for what is 4 MB or more. */
struct columns {
    size_t rows, rounds;
    double *a;
    int64_t *n;
    uint8_t *b;
    uint64_t *truth, *errors;
};

static void *column(size_t size)
{
    char *p = malloc(size);
    if (!p)
        exit(2);
    if (size >= 4u << 20) {
        size_t skip = 4096 - (uintptr_t)p % 4096;
        madvise(p + skip, size - skip, MADV_HUGEPAGE);
    }
    memset(p, 0, size);
    return p;
}

static void fill(struct columns *c)
{
    if (c->a)
        return;
    c->a = column(c->rows * sizeof *c->a);
    c->n = column(c->rows * sizeof *c->n);
    c->b = column(c->rows);
    c->truth = column(c->rows / 8);
    c->errors = column(c->rows / 8);
    for (size_t i = 0; i < c->rows; i++) {
        c->a[i] = drand48();
        c->n[i] = lrand48() % 8;
        c->b[i] = (uint8_t)(lrand48() % 3);
    }
}

static double time_batch(struct columns *c)
{
    static void *mem;
    struct cordon_error err;
    fill(c);
    if (!mem && !(mem = malloc(cordon_batch_size(program))))
        exit(2);
    struct cordon_column columns[3] = {{.kind = CORDON_COL_FLOAT, .data = c->a},
                                       {.kind = CORDON_COL_DICT8,
                                        .data = c->b,
                                        .dict = words,
                                        .dict_len = word_lens,
                                        .dict_count = 3},
                                       {.kind = CORDON_COL_INT, .data = c->n}};
    double t = now();
    for (size_t k = 0; k < c->rounds; k++)
        if (cordon_batch(program, columns, c->rows, mem, cordon_batch_size(program), c->truth,
                         c->errors, &err)) {
            fprintf(stderr, "%s\n", err.message);
            exit(2);
        }
    t = now() - t;
    for (size_t i = 0; i < c->rows; i += 997) {
        struct record r = {c->a[i], c->b[i], c->n[i]};
        if ((c->truth[i / 64] >> (i % 64) & 1) != (uint64_t)by_hand(&r) || c->errors[i / 64])
            exit(2);
    }
    return t / (double)(c->rows * c->rounds);
}

/* What the machine takes to read a column and do nothing with it. */
typedef uint64_t lane __attribute__((vector_size(16), aligned(8), may_alias));

static uint64_t read_column(const void *data, size_t size)
{
    const lane *p = data;
    lane a = {0}, b = {0}, c = {0}, d = {0};
    for (size_t i = 0; i + 8 <= size / sizeof *p; i += 8) {
        a ^= p[i] ^ p[i + 4];
        b ^= p[i + 1] ^ p[i + 5];
        c ^= p[i + 2] ^ p[i + 6];
        d ^= p[i + 3] ^ p[i + 7];
    }
    a ^= b ^ c ^ d;
    return a[0] ^ a[1];
}

/* Reads the same bytes, in blocks of the three columns by turns as the batch does. */
static double time_read(struct columns *c)
{
    const size_t block = 512;
    uint64_t x = 0;
    fill(c);
    double t = now();
    for (size_t k = 0; k < c->rounds; k++)
        for (size_t at = 0; at < c->rows; at += block)
            x ^= read_column(c->a + at, block * 8) ^ read_column(c->b + at, block) ^
                 read_column(c->n + at, block * 8);
    t = now() - t;
    sink = (long)x;
    return t / (double)(c->rows * c->rounds);
}

static struct columns large = {.rows = ROWS, .rounds = 1},
                      small = {.rows = 32768, .rounds = ROWS / 32768};

static double run_batch(void)
{
    return time_batch(&large);
}

static double run_batch_cached(void)
{
    return time_batch(&small);
}

static double run_read(void)
{
    return time_read(&large);
}

static double run_read_cached(void)
{
    return time_read(&small);
}

int main(void)
{
    static const struct {
        const char *name;
        double (*run)(void);
    } runs[] = {{"hand", run_hand},       {"cordon", run_cordon},
                {"eval", run_eval},       {"compile", run_compile},
                {"explain", run_explain}, {"sqlite", run_sqlite},
                {"batch", run_batch},     {"batch_cached", run_batch_cached},
                {"read", run_read},       {"read_cached", run_read_cached}};
    struct cordon_error err;
    char line[64];
    srand48(1);
    if (cordon_schema_read(schema_text, strlen(schema_text), schema_mem, sizeof schema_mem, &schema,
                           &err) ||
        cordon_compile(schema, source, strlen(source), program_mem, sizeof program_mem, &program,
                       &err))
        return 2;
    size_t size = cordon_ctx_size(schema);
    for (size_t i = 0; i < CONTEXTS; i++) {
        struct record *r = &records[i];
        *r = (struct record){drand48(), (int)(lrand48() % 3), lrand48() % 8};
        contexts[i] = cordon_ctx_init(malloc(size), size, schema, 0);
        cordon_ctx_float(contexts[i], 0, r->a);
        cordon_ctx_str(contexts[i], 1, words[r->b], word_lens[r->b]);
        cordon_ctx_int(contexts[i], 2, r->n);
        if (cordon_test(program, contexts[i], scratch, sizeof scratch) != by_hand(r))
            return 2;
    }
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
            if (strcmp(line, runs[i].name) == 0)
                printf("%.4f\n", runs[i].run());
        if (strcmp(line, "backend") == 0)
            printf("%s\n", cordon_batch_backend());
        fflush(stdout);
    }
    return 0;
}
