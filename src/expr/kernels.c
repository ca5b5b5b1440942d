/* SPDX-License-Identifier: Apache-2.0 */
/* The choice among the sets, by what the processor says that it has. */
#include "expr/kernels.h"

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
