/* The C side of the expression bench: reads a name a line, runs that once, prints nanoseconds per
 * evaluation (or row, or compilation). expr_bench.py asks for the names in turn, so that what is
 * compared ran within milliseconds of each other on the same machine. Time is the process's own CPU
 * time. */
#include "cordon.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static double run_batch(void)
{
    static double *a;
    static int64_t *n;
    static uint8_t *b;
    static uint64_t *truth, *errors;
    static char mem[1 << 18];
    struct cordon_error err;
    if (!a) {
        a = malloc(ROWS * sizeof *a);
        n = malloc(ROWS * sizeof *n);
        b = malloc(ROWS);
        truth = malloc(ROWS / 8);
        errors = malloc(ROWS / 8);
        if (!a || !n || !b || !truth || !errors)
            exit(2);
        for (size_t i = 0; i < ROWS; i++) {
            a[i] = drand48();
            n[i] = lrand48() % 8;
            b[i] = (uint8_t)(lrand48() % 3);
        }
        memset(truth, 0, ROWS / 8);
        memset(errors, 0, ROWS / 8);
    }
    struct cordon_column columns[3] = {{.kind = CORDON_COL_FLOAT, .data = a},
                                       {.kind = CORDON_COL_DICT8,
                                        .data = b,
                                        .dict = words,
                                        .dict_len = word_lens,
                                        .dict_count = 3},
                                       {.kind = CORDON_COL_INT, .data = n}};
    double t = now();
    if (cordon_batch(program, columns, ROWS, mem, sizeof mem, truth, errors, &err)) {
        fprintf(stderr, "%s\n", err.message);
        exit(2);
    }
    t = now() - t;
    for (size_t i = 0; i < ROWS; i += 997) {
        struct record r = {a[i], b[i], n[i]};
        if ((truth[i / 64] >> (i % 64) & 1) != (uint64_t)by_hand(&r) || errors[i / 64])
            exit(2);
    }
    return t / ROWS;
}

int main(void)
{
    static const struct {
        const char *name;
        double (*run)(void);
    } runs[] = {{"hand", run_hand},       {"cordon", run_cordon},   {"eval", run_eval},
                {"compile", run_compile}, {"explain", run_explain}, {"sqlite", run_sqlite},
                {"batch", run_batch}};
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
