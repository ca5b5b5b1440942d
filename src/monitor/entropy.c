/* SPDX-License-Identifier: Apache-2.0 */
/* H = ln Z - sum(e^(x - m) (x - m)) / Z with m the largest logit and Z = sum e^(x - m). Four floats at a time, as vectors of the
 * language: the compiler does not find them by itself (it was slower than libm). e^x is a polynomial: absolute error below 1e-5 nats
 * (test_monitor.c), several times faster than a call of exp a logit (`make bench BENCH=monitor`). */
#include "monitor/entropy.h"

#include <math.h>
#include <string.h>

#define LANES    4
#define UNROLLED 4      /* vectors at once, so that one need not wait for another */
#define BLOCK    4096   /* logits whose sums are kept as floats: exact enough */
#define LEAST    -87.0F /* e to it is 0 for our purpose */

typedef float floats __attribute__((vector_size(LANES * sizeof(float))));
typedef int32_t ints __attribute__((vector_size(LANES * sizeof(int32_t))));

static inline floats all(float x)
{
    return (floats){x, x, x, x};
}

static inline floats load(const float *x)
{
    floats v;
    memcpy(&v, x, sizeof v);
    return v;
}

static inline floats larger(floats a, floats b)
{
    const ints mask = a > b;
    return (floats)(((ints)a & mask) | ((ints)b & ~mask));
}

/* e^x for LEAST <= x <= 0: 2^n * 2^f with f in [-0.5, 0.5]. */
static inline floats exp_of(floats x)
{
    const floats t = x * 1.44269504F;
    const floats shifted = t + 12582912.0F; /* 1.5 * 2^23: rounds to the nearest whole number */
    const floats f = (t - (shifted - 12582912.0F)) * 0.693147181F;
    const floats p =
        1.0F + f * (1.0F + f * (0.5F + f * (0.166666672F + f * (0.0416664556F + f * 0.0084F))));
    return (floats)((ints)p + ((ints)shifted << 23));
}

static float largest(const float *x, size_t count, bool *ret_good)
{
    floats most[UNROLLED];
    ints bad = {0};
    size_t i = 0;
    for (int k = 0; k < UNROLLED; k++)
        most[k] = all(x[0]);
    for (; i + UNROLLED * LANES <= count; i += UNROLLED * LANES)
        for (int k = 0; k < UNROLLED; k++) {
            const floats v = load(x + i + k * LANES);
            most[k] = larger(v, most[k]);
            bad |= v != v;
        }
    float result = x[0];
    bool wrong = false;
    for (int k = 0; k < UNROLLED * LANES; k++) {
        const float v = most[k / LANES][k % LANES];
        result = v > result ? v : result;
        wrong |= bad[k % LANES] != 0;
    }
    for (; i < count; i++) {
        result = x[i] > result ? x[i] : result;
        wrong |= x[i] != x[i];
    }
    *ret_good = !wrong && isfinite(result);
    return result;
}

/* Adds e^x and e^x * x of COUNT logits, at most BLOCK. */
static void sums(const float *x, size_t count, float most, double *z, double *zx)
{
    floats a[UNROLLED] = {0}, b[UNROLLED] = {0};
    size_t i = 0;
    for (; i + UNROLLED * LANES <= count; i += UNROLLED * LANES)
        for (int k = 0; k < UNROLLED; k++) {
            const floats d = larger(load(x + i + k * LANES) - most, all(LEAST)), e = exp_of(d);
            a[k] += e;
            b[k] += e * d;
        }
    for (; i < count; i += LANES) {
        float rest[LANES] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
        memcpy(rest, x + i, (count - i < LANES ? count - i : LANES) * sizeof *rest);
        const floats d = larger(load(rest) - most, all(LEAST)), e = exp_of(d);
        a[0] += e;
        b[0] += e * d;
    }
    for (int k = 0; k < UNROLLED * LANES; k++) {
        *z += (double)a[k / LANES][k % LANES];
        *zx += (double)b[k / LANES][k % LANES];
    }
}

bool entropy_of_logits(const float *logits, size_t count, struct monitor_entropy *ret)
{
    bool good = false;
    double z = 0, zx = 0;
    if (!count)
        return false;
    float most = largest(logits, count, &good);
    if (!good)
        return false;
    for (size_t i = 0; i < count; i += BLOCK)
        sums(logits + i, count - i < BLOCK ? count - i : BLOCK, most, &z, &zx);
    double h = log(z) - zx / z;
    ret->low = ret->high = h > 0 ? h : 0;
    return true;
}

bool entropy_of_top(const double *logprobs, size_t count, uint64_t vocabulary,
                    struct monitor_entropy *ret)
{
    double known = 0, mass = 0;
    for (size_t i = 0; i < count; i++) {
        if (!(logprobs[i] <= 1e-6)) /* NaN too; rounding may lift a certain token above 0 */
            return false;
        double p = exp(logprobs[i]);
        mass += p;
        known -= p > 0 ? p * logprobs[i] : 0;
    }
    if (!count || mass > 1.001)
        return false;
    double rest = mass < 1 ? 1 - mass : 0,
           others = vocabulary > count ? (double)(vocabulary - count) : 1;
    ret->low = known - (rest > 0 ? rest * log(rest) : 0);
    ret->high = known - (rest > 0 ? rest * log(rest / others) : 0);
    if (ret->low < 0)
        ret->low = 0;
    if (ret->high < ret->low)
        ret->high = ret->low;
    return true;
}
