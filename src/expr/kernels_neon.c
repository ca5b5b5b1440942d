/* SPDX-License-Identifier: Apache-2.0 */
/* NEON has no movemask, so lanes are narrowed pair by pair (each step keeps the low halves) until
 * 64 rows are 64 bytes of 0 or 255; those are weighted with their bit and added up in three steps.
 */
#if defined(__aarch64__)
#include "expr/kernels.h"

#include <arm_neon.h>

static inline uint64_t pack(uint8x16_t a, uint8x16_t b, uint8x16_t c, uint8x16_t d)
{
    const uint8x16_t weight = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint8x16_t p = vpaddq_u8(vandq_u8(a, weight), vandq_u8(b, weight));
    uint8x16_t q = vpaddq_u8(vandq_u8(c, weight), vandq_u8(d, weight));
    p = vpaddq_u8(p, q);
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(p, p)), 0);
}

static inline uint32x4_t two(uint64x2_t a, uint64x2_t b)
{
    return vuzp1q_u32(vreinterpretq_u32_u64(a), vreinterpretq_u32_u64(b));
}

static inline uint16x8_t four(uint32x4_t a, uint32x4_t b)
{
    return vuzp1q_u16(vreinterpretq_u16_u32(a), vreinterpretq_u16_u32(b));
}

static inline uint8x16_t eight(uint16x8_t a, uint16x8_t b)
{
    return vuzp1q_u8(vreinterpretq_u8_u16(a), vreinterpretq_u8_u16(b));
}

/* 16 rows of 8 bytes each to 16 bytes. */
#define SIXTEEN(load, test, x)                                                                     \
    eight(four(two(test(load(x), k), test(load(x + 2), k)),                                        \
               two(test(load(x + 4), k), test(load(x + 6), k))),                                   \
          four(two(test(load(x + 8), k), test(load(x + 10), k)),                                   \
               two(test(load(x + 12), k), test(load(x + 14), k))))
#define WIDE(load, test, invert)                                                                   \
    for (size_t w = 0; w < words; w++, x += 64) {                                                  \
        uint64_t m = pack(SIXTEEN(load, test, x), SIXTEEN(load, test, (x + 16)),                   \
                          SIXTEEN(load, test, (x + 32)), SIXTEEN(load, test, (x + 48)));           \
        out[w] = batch_merged(out[w], (invert) ^ m, merge);                                        \
    }                                                                                              \
    break;

static void floats(const double *x, size_t words, enum expr_cmp op, double c, enum expr_join how,
                   uint64_t *out)
{
    struct batch_merge merge = batch_merge(how);
    float64x2_t k = vdupq_n_f64(c);
    switch (op) {
    case CMP_LT:
        WIDE(vld1q_f64, vcltq_f64, 0)
    case CMP_LE:
        WIDE(vld1q_f64, vcleq_f64, 0)
    case CMP_GT:
        WIDE(vld1q_f64, vcgtq_f64, 0)
    case CMP_GE:
        WIDE(vld1q_f64, vcgeq_f64, 0)
    case CMP_EQ:
        WIDE(vld1q_f64, vceqq_f64, 0)
    case CMP_NE:
        WIDE(vld1q_f64, vceqq_f64, ~0ULL)
    }
}

static void ints(const int64_t *x, size_t words, enum expr_cmp op, int64_t c, enum expr_join how,
                 uint64_t *out)
{
    struct batch_merge merge = batch_merge(how);
    int64x2_t k = vdupq_n_s64(c);
    switch (op) {
    case CMP_LT:
        WIDE(vld1q_s64, vcltq_s64, 0)
    case CMP_LE:
        WIDE(vld1q_s64, vcleq_s64, 0)
    case CMP_GT:
        WIDE(vld1q_s64, vcgtq_s64, 0)
    case CMP_GE:
        WIDE(vld1q_s64, vcgeq_s64, 0)
    case CMP_EQ:
        WIDE(vld1q_s64, vceqq_s64, 0)
    case CMP_NE:
        WIDE(vld1q_s64, vceqq_s64, ~0ULL)
    }
}

static void bytes(const uint8_t *x, size_t words, uint8_t c, bool opposite, enum expr_join how,
                  uint64_t *out)
{
    uint8x16_t k = vdupq_n_u8(c);
    uint64_t invert = opposite ? ~0ULL : 0;
    struct batch_merge merge = batch_merge(how);
    for (size_t w = 0; w < words; w++, x += 64) {
        uint64_t m = pack(vceqq_u8(vld1q_u8(x), k), vceqq_u8(vld1q_u8(x + 16), k),
                          vceqq_u8(vld1q_u8(x + 32), k), vceqq_u8(vld1q_u8(x + 48), k));
        out[w] = batch_merged(out[w], invert ^ m, merge);
    }
}

static uint8_t greatest(const uint8_t *x, size_t words)
{
    uint8x16_t most = vdupq_n_u8(0);
    for (size_t w = 0; w < words; w++, x += 64)
        most = vmaxq_u8(most, vmaxq_u8(vmaxq_u8(vld1q_u8(x), vld1q_u8(x + 16)),
                                       vmaxq_u8(vld1q_u8(x + 32), vld1q_u8(x + 48))));
    return vmaxvq_u8(most);
}

extern const struct batch_kernels kernels_neon;
const struct batch_kernels kernels_neon = {"neon", floats, ints, bytes, greatest};
#else
typedef int kernels_neon_is_for_arm;
#endif
