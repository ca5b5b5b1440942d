/* movemask gives the bits of a comparison directly. SSE2 cannot compare 64-bit ints, so that column
 * kind takes the reference loop there; AVX2 code is compiled into its own functions and only
 * entered when the processor says it has it. */
#if defined(__x86_64__)
#include "expr/kernels.h"

#include <immintrin.h>

#define WIDE(step, mask, invert)                                                                   \
    for (size_t w = 0; w < words; w++, x += 64) {                                                  \
        uint64_t m = 0;                                                                            \
        for (unsigned r = 0; r < 64; r += (step))                                                  \
            m |= (uint64_t)(unsigned)(mask) << r;                                                  \
        out[w] = (invert) ^ m;                                                                     \
    }                                                                                              \
    break;

#define SSE(test) _mm_movemask_pd(test(_mm_loadu_pd(x + r), k))
static void floats_sse2(const double *x, size_t words, enum expr_cmp op, double c, uint64_t *out)
{
    __m128d k = _mm_set1_pd(c);
    switch (op) {
    case CMP_LT:
        WIDE(2, SSE(_mm_cmplt_pd), 0)
    case CMP_LE:
        WIDE(2, SSE(_mm_cmple_pd), 0)
    case CMP_GT:
        WIDE(2, SSE(_mm_cmpgt_pd), 0)
    case CMP_GE:
        WIDE(2, SSE(_mm_cmpge_pd), 0)
    case CMP_EQ:
        WIDE(2, SSE(_mm_cmpeq_pd), 0)
    case CMP_NE:
        WIDE(2, SSE(_mm_cmpeq_pd), ~0ULL)
    }
}

static void ints_sse2(const int64_t *x, size_t words, enum expr_cmp op, int64_t c, uint64_t *out)
{
    kernels_scalar.ints(x, words, op, c, out);
}

#define LOAD16 _mm_loadu_si128((const __m128i *)(const void *)(x + r))
static void bytes_sse2(const uint8_t *x, size_t words, enum expr_cmp op, uint8_t c, uint64_t *out)
{
    __m128i k = _mm_set1_epi8((char)c);
    switch (op) {
    case CMP_EQ:
        WIDE(16, _mm_movemask_epi8(_mm_cmpeq_epi8(LOAD16, k)), 0)
    case CMP_GE: /* x >= c where max(x, c) is x */
        WIDE(16, _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_max_epu8(LOAD16, k), LOAD16)), 0)
    default:
        kernels_scalar.bytes(x, words, op, c, out);
    }
}

#define AVX2            __attribute__((target("avx2")))
#define AVXF(predicate) _mm256_movemask_pd(_mm256_cmp_pd(_mm256_loadu_pd(x + r), k, predicate))
AVX2 static void floats_avx2(const double *x, size_t words, enum expr_cmp op, double c,
                             uint64_t *out)
{
    __m256d k = _mm256_set1_pd(c);
    switch (op) {
    case CMP_LT:
        WIDE(4, AVXF(_CMP_LT_OQ), 0)
    case CMP_LE:
        WIDE(4, AVXF(_CMP_LE_OQ), 0)
    case CMP_GT:
        WIDE(4, AVXF(_CMP_GT_OQ), 0)
    case CMP_GE:
        WIDE(4, AVXF(_CMP_GE_OQ), 0)
    case CMP_EQ:
        WIDE(4, AVXF(_CMP_EQ_OQ), 0)
    case CMP_NE:
        WIDE(4, AVXF(_CMP_EQ_OQ), ~0ULL)
    }
}

#define LOAD32        _mm256_loadu_si256((const __m256i *)(const void *)(x + r))
#define AVXI(compare) _mm256_movemask_pd(_mm256_castsi256_pd(compare))
AVX2 static void ints_avx2(const int64_t *x, size_t words, enum expr_cmp op, int64_t c,
                           uint64_t *out)
{
    __m256i k = _mm256_set1_epi64x(c);
    switch (op) {
    case CMP_LT:
        WIDE(4, AVXI(_mm256_cmpgt_epi64(k, LOAD32)), 0)
    case CMP_LE:
        WIDE(4, AVXI(_mm256_cmpgt_epi64(LOAD32, k)), ~0ULL)
    case CMP_GT:
        WIDE(4, AVXI(_mm256_cmpgt_epi64(LOAD32, k)), 0)
    case CMP_GE:
        WIDE(4, AVXI(_mm256_cmpgt_epi64(k, LOAD32)), ~0ULL)
    case CMP_EQ:
        WIDE(4, AVXI(_mm256_cmpeq_epi64(LOAD32, k)), 0)
    case CMP_NE:
        WIDE(4, AVXI(_mm256_cmpeq_epi64(LOAD32, k)), ~0ULL)
    }
}

AVX2 static void bytes_avx2(const uint8_t *x, size_t words, enum expr_cmp op, uint8_t c,
                            uint64_t *out)
{
    __m256i k = _mm256_set1_epi8((char)c);
    switch (op) {
    case CMP_EQ:
        WIDE(32, _mm256_movemask_epi8(_mm256_cmpeq_epi8(LOAD32, k)), 0)
    case CMP_GE:
        WIDE(32, _mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_max_epu8(LOAD32, k), LOAD32)), 0)
    default:
        kernels_scalar.bytes(x, words, op, c, out);
    }
}

extern const struct batch_kernels kernels_sse2, kernels_avx2;
const struct batch_kernels kernels_sse2 = {"sse2", floats_sse2, ints_sse2, bytes_sse2};
const struct batch_kernels kernels_avx2 = {"avx2", floats_avx2, ints_avx2, bytes_avx2};
#else
typedef int kernels_x86_is_for_x86;
#endif
