/* SPDX-License-Identifier: Apache-2.0 */
/* H = ln Z - sum(e^(x - m) (x - m)) / Z with m the largest logit and Z = sum e^(x - m). Sums are kept in lanes of their own, which
 * the compiler turns into vectors, and e^x is a polynomial on float: absolute error below 1e-5 nats (test_monitor.c), several
 * times faster than a call of exp a logit (`make bench BENCH=monitor`). */
#include "monitor/entropy.h"

#include <math.h>
#include <string.h>

#define LANES 16

/* e^x for x <= 0: 2^n * 2^f with f in [-0.5, 0.5]. Below -87 it is 0 for our purpose. */
static inline float exp_of(float x)
{
    x = x < -87.0F ? -87.0F : x;
    float t = x * 1.44269504F,
          shifted = t + 12582912.0F; /* 1.5 * 2^23: rounds to the nearest whole number */
    float n = shifted - 12582912.0F, f = (t - n) * 0.693147181F;
    float p = 1.0F + f * (1.0F + f * (0.5F + f * (0.166666672F +
                                                  f * (0.0416664556F + f * (0.00833284296F +
                                                                            f * 0.00139302888F)))));
    int32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (int32_t)((uint32_t)bits << 23);
    int32_t result;
    memcpy(&result, &p, sizeof result);
    result = (int32_t)((uint32_t)result + (uint32_t)bits);
    memcpy(&p, &result, sizeof p);
    return p;
}

static float largest(const float *x, size_t count, bool *ret_good)
{
    float most[LANES];
    int bad = 0;
    for (int k = 0; k < LANES; k++)
        most[k] = x[0];
    size_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (int k = 0; k < LANES; k++) {
            most[k] = x[i + k] > most[k] ? x[i + k] : most[k];
            bad |= x[i + k] != x[i + k];
        }
    for (; i < count; i++) {
        most[0] = x[i] > most[0] ? x[i] : most[0];
        bad |= x[i] != x[i];
    }
    for (int k = 1; k < LANES; k++)
        most[0] = most[k] > most[0] ? most[k] : most[0];
    *ret_good = !bad && isfinite(most[0]);
    return most[0];
}

/* Adds e^x and e^x * x of COUNT logits, at most a few thousand, so that floats are exact enough. */
static void sums(const float *x, size_t count, float most, double *z, double *zx)
{
    float a[LANES] = {0}, b[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (int k = 0; k < LANES; k++) {
            float d = x[i + k] - most;
            d = d < -87.0F ? -87.0F : d;
            float e = exp_of(d);
            a[k] += e;
            b[k] += e * d;
        }
    for (; i < count; i++) {
        float d = x[i] - most;
        d = d < -87.0F ? -87.0F : d;
        float e = exp_of(d);
        a[0] += e;
        b[0] += e * d;
    }
    for (int k = 0; k < LANES; k++) {
        *z += (double)a[k];
        *zx += (double)b[k];
    }
}

bool entropy_of_logits(const float *logits, size_t count, struct monitor_entropy *ret)
{
    const size_t block = 4096;
    bool good = false;
    double z = 0, zx = 0;
    if (!count)
        return false;
    float most = largest(logits, count, &good);
    if (!good)
        return false;
    for (size_t i = 0; i < count; i += block)
        sums(logits + i, count - i < block ? count - i : block, most, &z, &zx);
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
