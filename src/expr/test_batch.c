/* SPDX-License-Identifier: Apache-2.0 */
/* Every set of kernels that this processor can run, row by row against the plain operators, and the
 * batch over each of them against row-by-row evaluation. */
#include "base/tap.h"
#include "expr/batch.h"
#include "expr/kernels.h"

#include <math.h>

#define WORDS 5
static uint64_t state = 42;

static uint64_t rnd(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * 0x2545F4914F6CDD1DULL;
}

/* Row R of BITS, joined with TRUTH the plain way. */
static void put(uint64_t *bits, size_t r, bool truth, enum expr_join how)
{
    uint64_t bit = 1ULL << (r % 64);
    bool was = bits[r / 64] & bit;
    bool is = how == JOIN_PUSH ? truth : how == JOIN_AND ? was && truth : was || truth;
    bits[r / 64] = is ? bits[r / 64] | bit : bits[r / 64] & ~bit;
}

static void kernels(const struct batch_kernels *k)
{
    static double f[WORDS * 64];
    static int64_t i[WORDS * 64];
    static uint8_t b[WORDS * 64];
    bool floats = true, ints = true, bytes = true;
    for (int round = 0; round < 300; round++) {
        for (size_t r = 0; r < WORDS * 64; r++) {
            uint64_t x = rnd();
            f[r] = x & 3 ? (double)(x >> 8 & 7) : x & 4 ? NAN : INFINITY;
            i[r] = x & 8 ? (int64_t)(x >> 8 & 7) - 4 : (int64_t)rnd();
            b[r] = (uint8_t)(x & 16 ? x >> 8 & 3 : x >> 8);
        }
        for (unsigned op = CMP_LT; op <= CMP_NE; op++) {
            uint64_t got[WORDS], want[WORDS];
            double c = round % 7 ? (double)(rnd() & 7) : NAN;
            int64_t n = round % 3 ? (int64_t)(rnd() & 7) - 4 : i[rnd() % 64];
            uint8_t u = (uint8_t)(round % 2 ? rnd() & 3 : rnd());
            enum expr_join how = (enum expr_join)(rnd() % 3);
            uint64_t before[WORDS];
            for (size_t w = 0; w < WORDS; w++)
                before[w] = rnd();
#define BEFORE memcpy(got, before, sizeof got), memcpy(want, before, sizeof want)
            BEFORE;
            k->floats(f, WORDS, (enum expr_cmp)op, c, how, got);
            for (size_t r = 0; r < WORDS * 64; r++)
                put(want, r, expr_holds_double((enum expr_cmp)op, f[r], c), how);
            floats = floats && memcmp(got, want, sizeof got) == 0;
            BEFORE;
            k->ints(i, WORDS, (enum expr_cmp)op, n, how, got);
            for (size_t r = 0; r < WORDS * 64; r++)
                put(want, r, expr_holds((enum expr_cmp)op, (i[r] > n) - (i[r] < n)), how);
            ints = ints && memcmp(got, want, sizeof got) == 0;
            BEFORE;
            k->bytes(b, WORDS, u, op & 1, how, got);
            uint8_t most = 0;
            for (size_t r = 0; r < WORDS * 64; r++) {
                put(want, r, (b[r] == u) != (op & 1), how);
                most = b[r] > most ? b[r] : most;
            }
            bytes = bytes && memcmp(got, want, sizeof got) == 0 && k->greatest(b, WORDS) == most;
        }
    }
    tap_ok(floats, "%s: floats in vectors are compared as one by one", k->name);
    tap_ok(ints, "%s: ints in vectors are compared as one by one", k->name);
    tap_ok(bytes, "%s: bytes in vectors are compared as one by one", k->name);
}

#define ROWS 1500
static const char *const programs[] = {
    "ctx['a'] > 0.5 and ctx['b'] == 'low' or ctx['n'] + 1 > 4",
    "ctx['n'] * ctx['n'] > ctx['a'] * 3 and not ctx['p']",
    "1 / ctx['n'] > 0.25 or ctx['b'] != 'mid'",
    "0 < ctx['n'] < 5 < ctx['a'] + 6",
    "ctx['n'] - 9223372036854775807 < 0",
    "ctx['a']",
    "-ctx['n']",
    "ctx['b'] < 'm'",
    "ctx['n'] == None or ctx['a'] != None",
    "ctx['n'] > ctx['a']",
    "True",
    "ctx['b'] == 'nowhere' or ctx['p'] == 1",
    "ctx['a'] < 0.5 and ctx['b'] != 'low' or ctx['b'] == 'mid' and ctx['p'] < 2",
    "(ctx['b'] == 'low' or ctx['b'] == 'mid') and (ctx['b'] != 'high' or not ctx['p'])",
    "ctx['b'] != 'nowhere' and ctx['n'] > 1 and ctx['b'] == 'nowhere'",
};

static void whole(const struct batch_kernels *k)
{
    static const char schema_text[] = "{\"keys\":{\"a\":\"float\",\"b\":{\"type\":\"str\",\"enum\":"
                                      "[\"low\",\"mid\",\"high\"]},\"n\":\"int\",\"p\":\"bool\"}}";
    static const char *const words[] = {"low", "mid", "high"};
    static const uint32_t lens[] = {3, 3, 4};
    static double a[ROWS];
    static int64_t n[ROWS];
    static uint8_t b[ROWS], p[ROWS];
    static uint16_t b16[ROWS];
    static uint32_t b32[ROWS];
    static uint64_t valid[4][ROWS / 64 + 1], truth[ROWS / 64 + 1], errors[ROWS / 64 + 1];
    static char schema_mem[16384], program_mem[65536], ctx_mem[1024], mem[1 << 23],
        scratch[1 << 22];
    struct cordon_error err;
    struct cordon_schema *s;
    if (cordon_schema_read(schema_text, strlen(schema_text), schema_mem, sizeof schema_mem, &s,
                           &err))
        return;
    for (size_t r = 0; r < ROWS; r++) {
        uint64_t x = rnd();
        a[r] = x & 7 ? (double)(x >> 8 & 255) / 256 : x & 8 ? NAN : -INFINITY;
        n[r] = x & 16 ? (int64_t)(x >> 16 & 7) - 2 : (int64_t)rnd() >> (x >> 20 & 63);
        b[r] = (uint8_t)(x >> 32 & 3); /* 3 is past the dictionary: None */
        b16[r] = b[r];
        b32[r] = b[r];
        p[r] = (uint8_t)(x >> 40 & 1);
    }
    for (size_t w = 0; w <= ROWS / 64; w++)
        for (int c = 0; c < 4; c++)
            valid[c][w] = rnd() | rnd() | rnd() | rnd();
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        for (int form = 0; form < 4; form++) {
            struct cordon_program *prog;
            struct cordon_column columns[4] = {{.kind = CORDON_COL_FLOAT, .data = a},
                                               {.kind = CORDON_COL_DICT8,
                                                .data = b,
                                                .dict = words,
                                                .dict_len = lens,
                                                .dict_count = 3},
                                               {.kind = CORDON_COL_INT, .data = n},
                                               {.kind = CORDON_COL_BOOL, .data = p}};
            if (form == 1) {
                columns[1].kind = CORDON_COL_DICT16;
                columns[1].data = b16;
            } else if (form == 2) {
                columns[1].kind = CORDON_COL_DICT32;
                columns[1].data = b32;
            } else if (form == 3) {
                columns[2].kind = CORDON_COL_ABSENT;
            }
            for (int c = 0; c < 4 && form; c++)
                columns[c].valid = valid[c];
            bool good =
                cordon_compile(s, programs[i], strlen(programs[i]), program_mem, sizeof program_mem,
                               &prog, &err) == 0 &&
                cordon_batch_size(prog) <= sizeof mem &&
                batch_run(k, prog, columns, ROWS, mem, sizeof mem, truth, errors, &err) == 0;
            size_t raised = 0;
            for (size_t r = 0; good && r < ROWS; r++) {
                struct cordon_ctx *c = cordon_ctx_init(ctx_mem, sizeof ctx_mem, s, 0);
#define VALID(col) (!columns[col].valid || (valid[col][r / 64] >> (r % 64) & 1))
                if (VALID(0))
                    cordon_ctx_float(c, 0, a[r]);
                if (VALID(1) && b[r] < 3)
                    cordon_ctx_str(c, 1, words[b[r]], lens[b[r]]);
                if (VALID(2) && columns[2].kind == CORDON_COL_INT)
                    cordon_ctx_int(c, 2, n[r]);
                if (VALID(3))
                    cordon_ctx_bool(c, 3, p[r]);
                int t = cordon_test(prog, c, scratch, sizeof scratch);
                raised += t < 0;
                good = (truth[r / 64] >> (r % 64) & 1) == (t == 1) &&
                       (errors[r / 64] >> (r % 64) & 1) == (t < 0);
            }
            tap_ok(good, "%s: form %d of %s (%zu rows raise)", k->name, form, programs[i], raised);
        }
}

/* A dictionary may hold strings that no enum has; their rows answer as any other. */
static void long_entry(const struct batch_kernels *k)
{
    static const char schema_text[] = "{\"keys\":{\"s\":{\"type\":\"str\",\"enum\":[\"a\"]}}}";
    static const char source[] = "ctx['s'] + 'a' != 'b'";
    static char schema_mem[16384], program_mem[65536], text[50000];
    static uint8_t codes[200];
    const char *dict[] = {text, "a"};
    uint32_t lens[] = {sizeof text, 1};
    uint64_t truth[4], errors[4];
    struct cordon_error err;
    struct cordon_schema *s;
    struct cordon_program *p;
    memset(text, 'x', sizeof text);
    for (size_t r = 0; r < 200; r++)
        codes[r] = r % 2;
    struct cordon_column column = {
        .kind = CORDON_COL_DICT8, .data = codes, .dict = dict, .dict_len = lens, .dict_count = 2};
    if (cordon_schema_read(schema_text, strlen(schema_text), schema_mem, sizeof schema_mem, &s,
                           &err) ||
        cordon_compile(s, source, strlen(source), program_mem, sizeof program_mem, &p, &err))
        return;
    size_t size = cordon_batch_size(p), wrong = 0;
    void *mem = malloc(size);
    int r = batch_run(k, p, &column, 200, mem, size, truth, errors, &err);
    for (size_t row = 0; row < 200; row++)
        wrong += !(truth[row / 64] >> (row % 64) & 1) || errors[row / 64] >> (row % 64) & 1;
    tap_ok(r == 0 && wrong == 0, "%s: rows of a 50,000-byte dictionary entry are true (%zu wrong)",
           k->name, wrong);
    free(mem);
}

int main(void)
{
    const struct batch_kernels *k;
    for (size_t n = 0; (k = kernels_nth(n)); n++) {
        kernels(k);
        whole(k);
        long_entry(k);
    }
    tap_ok(strcmp(cordon_batch_backend(), "scalar") != 0, "this machine has vector kernels (%s)",
           cordon_batch_backend());
    return tap_done();
}
