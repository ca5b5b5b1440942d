/* SPDX-License-Identifier: Apache-2.0 */
/* The reference loops, which any compiler can vectorise, and the choice among the sets. */
#include "expr/kernels.h"

#define LOOP(compare)                                                                              \
    for (size_t w = 0; w < words; w++, x += 64) {                                                  \
        uint64_t m = 0;                                                                            \
        for (unsigned r = 0; r < 64; r++)                                                          \
            m |= (uint64_t)(x[r] compare c) << r;                                                  \
        out[w] = batch_merged(out[w], m, merge);                                                   \
    }                                                                                              \
    break;
#define LOOPS                                                                                      \
    struct batch_merge merge = batch_merge(how);                                                   \
    switch (op) {                                                                                  \
    case CMP_LT:                                                                                   \
        LOOP(<)                                                                                    \
    case CMP_LE:                                                                                   \
        LOOP(<=)                                                                                   \
    case CMP_GT:                                                                                   \
        LOOP(>)                                                                                    \
    case CMP_GE:                                                                                   \
        LOOP(>=)                                                                                   \
    case CMP_EQ:                                                                                   \
        LOOP(==)                                                                                   \
    case CMP_NE:                                                                                   \
        LOOP(!=)                                                                                   \
    }

static void floats(const double *x, size_t words, enum expr_cmp op, double c, enum expr_join how,
                   uint64_t *out)
{
    LOOPS
}

static void ints(const int64_t *x, size_t words, enum expr_cmp op, int64_t c, enum expr_join how,
                 uint64_t *out)
{
    LOOPS
}

static void bytes(const uint8_t *x, size_t words, uint8_t c, bool opposite, enum expr_join how,
                  uint64_t *out)
{
    enum expr_cmp op = opposite ? CMP_NE : CMP_EQ;
    LOOPS
}

static uint8_t greatest(const uint8_t *x, size_t words)
{
    uint8_t most = 0;
    for (size_t r = 0; r < words * 64; r++)
        most = x[r] > most ? x[r] : most;
    return most;
}

const struct batch_kernels kernels_scalar = {"scalar", floats, ints, bytes, greatest};

#if defined(__aarch64__)
extern const struct batch_kernels kernels_neon;
#elif defined(__x86_64__)
extern const struct batch_kernels kernels_sse2, kernels_avx2, kernels_avx512;
#endif

const struct batch_kernels *kernels_nth(size_t n)
{
    const struct batch_kernels *all[4] = {&kernels_scalar};
    size_t count = 1;
#if defined(__aarch64__)
    all[count++] = &kernels_neon; /* every 64-bit ARM has it */
#elif defined(__x86_64__)
    all[count++] = &kernels_sse2; /* every 64-bit x86 has it */
    if (__builtin_cpu_supports("avx2"))
        all[count++] = &kernels_avx2;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw"))
        all[count++] = &kernels_avx512;
#endif
    return n < count ? all[n] : NULL;
}

const struct batch_kernels *kernels_best(void)
{
    const struct batch_kernels *best = &kernels_scalar, *k;
    for (size_t n = 0; (k = kernels_nth(n)); n++)
        best = k;
    return best;
}

const char *cordon_batch_backend(void)
{
    return kernels_best()->name;
}
