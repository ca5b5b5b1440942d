/* SPDX-License-Identifier: Apache-2.0 */
/* movemask gives the bits of a comparison directly. SSE2 cannot compare 64-bit ints, so that column
 * kind takes the reference loop there; AVX2 and AVX-512 code is compiled into its own functions and
 * only entered when the processor says it has it. AVX-512 takes 0.8 of AVX2's time in cache, and the
 * same beyond the caches (`make bench BENCH=expr`). */
#if defined(__x86_64__)
#include "expr/kernels.h"

#include <immintrin.h>

/* 64 rows without a loop within: the compilers do not unroll it at -O2, and shifting by a variable and
 * one chain of ORs took most of the time. MASK(r) gives the bits of STEP rows from r. */
#define BITS(mask, r)      (uint32_t)(mask(r))
#define BY2(mask, r)       (BITS(mask, r) | BITS(mask, r + 2) << 2)
#define BY4(mask, r)       (BITS(mask, r) | BITS(mask, r + 4) << 4)
#define EIGHT2(mask, r)    (BY2(mask, r) | BY2(mask, r + 4) << 4)
#define SIXTEEN2(mask, r)  (EIGHT2(mask, r) | EIGHT2(mask, r + 8) << 8)
#define SIXTEEN4(mask, r)  (BY4(mask, r) | BY4(mask, r + 8) << 8)
#define SIXTEEN8(mask, r)  (BITS(mask, r) | BITS(mask, r + 8) << 8)
#define SIXTEEN16(mask, r) BITS(mask, r)
#define SIXTEENS(step, mask)                                                                       \
    ((uint64_t)(SIXTEEN##step(mask, 0) | SIXTEEN##step(mask, 16) << 16) |                          \
     (uint64_t)(SIXTEEN##step(mask, 32) | SIXTEEN##step(mask, 48) << 16) << 32)
#define WIDE(step, mask, invert)                                                                   \
    for (size_t w = 0; w < words; w++, x += 64) {                                                  \
        uint64_t m = SIXTEENS(step, mask);                                                         \
        out[w] = batch_merged(out[w], (invert) ^ m, merge);                                        \
    }                                                                                              \
    break;

/* One loop for each comparison; one that a set lacks is another one's opposite: NOT is then all ones. */
#define COMPARISONS(step, lt, le, not_le, gt, ge, not_ge, eq)                                      \
    switch (op) {                                                                                  \
    case CMP_LT:                                                                                   \
        WIDE(step, lt, 0)                                                                          \
    case CMP_LE:                                                                                   \
        WIDE(step, le, not_le)                                                                     \
    case CMP_GT:                                                                                   \
        WIDE(step, gt, 0)                                                                          \
    case CMP_GE:                                                                                   \
        WIDE(step, ge, not_ge)                                                                     \
    case CMP_EQ:                                                                                   \
        WIDE(step, eq, 0)                                                                          \
    case CMP_NE:                                                                                   \
        WIDE(step, eq, ~0ULL)                                                                      \
    }

#define SSE(test, r) _mm_movemask_pd(test(_mm_loadu_pd(x + (r)), k))
#define SSE_LT(r)    SSE(_mm_cmplt_pd, r)
#define SSE_LE(r)    SSE(_mm_cmple_pd, r)
#define SSE_GT(r)    SSE(_mm_cmpgt_pd, r)
#define SSE_GE(r)    SSE(_mm_cmpge_pd, r)
#define SSE_EQ(r)    SSE(_mm_cmpeq_pd, r)
static void floats_sse2(const double *x, size_t words, enum expr_cmp op, double c,
                        enum expr_join how, uint64_t *out)
{
    __m128d k = _mm_set1_pd(c);
    struct batch_merge merge = batch_merge(how);
    COMPARISONS(2, SSE_LT, SSE_LE, 0, SSE_GT, SSE_GE, 0, SSE_EQ)
}

static void ints_sse2(const int64_t *x, size_t words, enum expr_cmp op, int64_t c,
                      enum expr_join how, uint64_t *out)
{
    kernels_scalar.ints(x, words, op, c, how, out);
}

#define LOAD16(r) _mm_loadu_si128((const __m128i *)(const void *)(x + (r)))
#define SAME16(r) _mm_movemask_epi8(_mm_cmpeq_epi8(LOAD16(r), k))
static void bytes_sse2(const uint8_t *x, size_t words, uint8_t c, bool opposite, enum expr_join how,
                       uint64_t *out)
{
    __m128i k = _mm_set1_epi8((char)c);
    uint64_t invert = opposite ? ~0ULL : 0;
    struct batch_merge merge = batch_merge(how);
    do {
        WIDE(16, SAME16, invert)
    } while (0);
}

static uint8_t greatest_sse2(const uint8_t *x, size_t words)
{
    __m128i most = _mm_setzero_si128();
    uint8_t lane[16], best = 0;
    for (size_t w = 0; w < words; w++, x += 64)
        most = _mm_max_epu8(most, _mm_max_epu8(_mm_max_epu8(LOAD16(0), LOAD16(16)),
                                               _mm_max_epu8(LOAD16(32), LOAD16(48))));
    _mm_storeu_si128((__m128i *)(void *)lane, most);
    for (unsigned i = 0; i < 16; i++)
        best = lane[i] > best ? lane[i] : best;
    return best;
}

#define AVX2               __attribute__((target("avx2")))
#define AVXF(predicate, r) _mm256_movemask_pd(_mm256_cmp_pd(_mm256_loadu_pd(x + (r)), k, predicate))
#define AVXF_LT(r)         AVXF(_CMP_LT_OQ, r)
#define AVXF_LE(r)         AVXF(_CMP_LE_OQ, r)
#define AVXF_GT(r)         AVXF(_CMP_GT_OQ, r)
#define AVXF_GE(r)         AVXF(_CMP_GE_OQ, r)
#define AVXF_EQ(r)         AVXF(_CMP_EQ_OQ, r)
AVX2 static void floats_avx2(const double *x, size_t words, enum expr_cmp op, double c,
                             enum expr_join how, uint64_t *out)
{
    __m256d k = _mm256_set1_pd(c);
    struct batch_merge merge = batch_merge(how);
    COMPARISONS(4, AVXF_LT, AVXF_LE, 0, AVXF_GT, AVXF_GE, 0, AVXF_EQ)
}

#define LOAD32(r)     _mm256_loadu_si256((const __m256i *)(const void *)(x + (r)))
#define AVXI(compare) _mm256_movemask_pd(_mm256_castsi256_pd(compare))
#define AVXI_LESS(r)  AVXI(_mm256_cmpgt_epi64(k, LOAD32(r)))
#define AVXI_MORE(r)  AVXI(_mm256_cmpgt_epi64(LOAD32(r), k))
#define AVXI_SAME(r)  AVXI(_mm256_cmpeq_epi64(LOAD32(r), k))
AVX2 static void ints_avx2(const int64_t *x, size_t words, enum expr_cmp op, int64_t c,
                           enum expr_join how, uint64_t *out)
{
    __m256i k = _mm256_set1_epi64x(c);
    struct batch_merge merge = batch_merge(how);
    COMPARISONS(4, AVXI_LESS, AVXI_MORE, ~0ULL, AVXI_MORE, AVXI_LESS, ~0ULL, AVXI_SAME)
}

#define SAME32(r) (uint32_t) _mm256_movemask_epi8(_mm256_cmpeq_epi8(LOAD32(r), k))
AVX2 static void bytes_avx2(const uint8_t *x, size_t words, uint8_t c, bool opposite,
                            enum expr_join how, uint64_t *out)
{
    __m256i k = _mm256_set1_epi8((char)c);
    uint64_t invert = opposite ? ~0ULL : 0;
    struct batch_merge merge = batch_merge(how);
    for (size_t w = 0; w < words; w++, x += 64) {
        uint64_t m = SAME32(0) | (uint64_t)SAME32(32) << 32;
        out[w] = batch_merged(out[w], invert ^ m, merge);
    }
}

/* A comparison of AVX-512 writes its bits to a mask register, eight rows at once: no vector of truths
 * to take bits from. */
#define AVX512               __attribute__((target("avx512f,avx512bw")))
#define EIGHTF(predicate, r) _mm512_cmp_pd_mask(_mm512_loadu_pd(x + (r)), k, predicate)
#define EIGHTF_LT(r)         EIGHTF(_CMP_LT_OQ, r)
#define EIGHTF_LE(r)         EIGHTF(_CMP_LE_OQ, r)
#define EIGHTF_GT(r)         EIGHTF(_CMP_GT_OQ, r)
#define EIGHTF_GE(r)         EIGHTF(_CMP_GE_OQ, r)
#define EIGHTF_EQ(r)         EIGHTF(_CMP_EQ_OQ, r)
AVX512 static void floats_avx512(const double *x, size_t words, enum expr_cmp op, double c,
                                 enum expr_join how, uint64_t *out)
{
    __m512d k = _mm512_set1_pd(c);
    struct batch_merge merge = batch_merge(how);
    COMPARISONS(8, EIGHTF_LT, EIGHTF_LE, 0, EIGHTF_GT, EIGHTF_GE, 0, EIGHTF_EQ)
}

#define LOAD64(r)      _mm512_loadu_si512((const void *)(x + (r)))
#define EIGHTI_LESS(r) _mm512_cmplt_epi64_mask(LOAD64(r), k)
#define EIGHTI_MORE(r) _mm512_cmpgt_epi64_mask(LOAD64(r), k)
#define EIGHTI_SAME(r) _mm512_cmpeq_epi64_mask(LOAD64(r), k)
AVX512 static void ints_avx512(const int64_t *x, size_t words, enum expr_cmp op, int64_t c,
                               enum expr_join how, uint64_t *out)
{
    __m512i k = _mm512_set1_epi64(c);
    struct batch_merge merge = batch_merge(how);
    COMPARISONS(8, EIGHTI_LESS, EIGHTI_MORE, ~0ULL, EIGHTI_MORE, EIGHTI_LESS, ~0ULL, EIGHTI_SAME)
}

AVX512 static void bytes_avx512(const uint8_t *x, size_t words, uint8_t c, bool opposite,
                                enum expr_join how, uint64_t *out)
{
    __m512i k = _mm512_set1_epi8((char)c);
    uint64_t invert = opposite ? ~0ULL : 0;
    struct batch_merge merge = batch_merge(how);
    for (size_t w = 0; w < words; w++, x += 64)
        out[w] = batch_merged(out[w], invert ^ _mm512_cmpeq_epi8_mask(LOAD64(0), k), merge);
}

extern const struct batch_kernels kernels_sse2, kernels_avx2, kernels_avx512;
const struct batch_kernels kernels_sse2 = {"sse2", floats_sse2, ints_sse2, bytes_sse2,
                                           greatest_sse2};
const struct batch_kernels kernels_avx2 = {"avx2", floats_avx2, ints_avx2, bytes_avx2,
                                           greatest_sse2};
const struct batch_kernels kernels_avx512 = {"avx512", floats_avx512, ints_avx512, bytes_avx512,
                                             greatest_sse2};
#else
typedef int kernels_x86_is_for_x86;
#endif
