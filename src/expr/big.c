/* SPDX-License-Identifier: Apache-2.0 */
/* Schoolbook arithmetic on purpose: operands are bounded by CORDON_BITS_MAX and all work is metered
 * by the caller, so asymptotically better methods would only add code to trust. True division needs
 * one 64-bit quotient digit and whether a remainder was left, so there is no general long division.
 */
#include "expr/big.h"

#include <math.h>
#include <string.h>

typedef unsigned __int128 wide;

uint32_t big_trim(const uint64_t *a, uint32_t n)
{
    while (n && a[n - 1] == 0)
        n--;
    return n;
}

uint64_t big_bits(const uint64_t *a, uint32_t n)
{
    n = big_trim(a, n);
    return n ? (uint64_t)n * 64 - (uint64_t)__builtin_clzll(a[n - 1]) : 0;
}

int big_cmp(const uint64_t *a, uint32_t na, const uint64_t *b, uint32_t nb)
{
    na = big_trim(a, na);
    nb = big_trim(b, nb);
    if (na != nb)
        return na < nb ? -1 : 1;
    while (na--)
        if (a[na] != b[na])
            return a[na] < b[na] ? -1 : 1;
    return 0;
}

uint32_t big_add(uint64_t *r, const uint64_t *a, uint32_t na, const uint64_t *b, uint32_t nb)
{
    if (na < nb) {
        const uint64_t *p = a;
        uint32_t n = na;
        a = b;
        na = nb;
        b = p;
        nb = n;
    }
    uint64_t carry = 0;
    for (uint32_t i = 0; i < na; i++) {
        wide t = (wide)a[i] + (i < nb ? b[i] : 0) + carry;
        r[i] = (uint64_t)t;
        carry = (uint64_t)(t >> 64);
    }
    r[na] = carry;
    return big_trim(r, na + 1);
}

uint32_t big_sub(uint64_t *r, const uint64_t *a, uint32_t na, const uint64_t *b, uint32_t nb)
{
    uint64_t borrow = 0;
    nb = big_trim(b, nb);
    for (uint32_t i = 0; i < na; i++) {
        wide t = (wide)a[i] - (i < nb ? b[i] : 0) - borrow;
        r[i] = (uint64_t)t;
        borrow = (uint64_t)(t >> 64) & 1;
    }
    return big_trim(r, na);
}

uint32_t big_mul(uint64_t *r, const uint64_t *a, uint32_t na, const uint64_t *b, uint32_t nb)
{
    memset(r, 0, ((size_t)na + nb) * sizeof *r);
    for (uint32_t i = 0; i < na; i++) {
        uint64_t carry = 0;
        for (uint32_t j = 0; j < nb; j++) {
            wide t = (wide)a[i] * b[j] + r[i + j] + carry;
            r[i + j] = (uint64_t)t;
            carry = (uint64_t)(t >> 64);
        }
        r[i + nb] = carry;
    }
    return big_trim(r, na + nb);
}

uint32_t big_mul_add(uint64_t *r, uint32_t n, uint64_t mul, uint64_t add)
{
    uint64_t carry = add;
    for (uint32_t i = 0; i < n; i++) {
        wide t = (wide)r[i] * mul + carry;
        r[i] = (uint64_t)t;
        carry = (uint64_t)(t >> 64);
    }
    if (carry)
        r[n++] = carry;
    return n;
}

uint64_t big_div_small(uint64_t *r, uint32_t *n, uint64_t d)
{
    uint64_t rest = 0;
    for (uint32_t i = *n; i--;) {
        wide t = (wide)rest << 64 | r[i];
        r[i] = (uint64_t)(t / d);
        rest = (uint64_t)(t % d);
    }
    *n = big_trim(r, *n);
    return rest;
}

uint32_t big_shl(uint64_t *r, const uint64_t *a, uint32_t na, uint64_t s)
{
    uint32_t words = (uint32_t)(s / 64), bits = (uint32_t)(s % 64);
    r[na + words] = 0;
    for (uint32_t i = na; i--;) {
        if (bits)
            r[i + words + 1] |= a[i] >> (64 - bits);
        r[i + words] = a[i] << bits;
    }
    memset(r, 0, words * sizeof *r);
    return big_trim(r, na + words + 1);
}

/* The double nearest to Q * 2^e (Q > 0), a little more than that if STICKY; ties to even. */
static bool round_scaled(uint64_t q, bool sticky, int64_t e, double *ret)
{
    int zeros = __builtin_clzll(q);
    q <<= zeros;
    e -= zeros;
    int64_t top = e + 63; /* exponent of the leading bit */
    if (top > 1023)
        return false;
    int64_t drop = top < -1022 ? 11 + (-1022 - top) : 11; /* bits below the last place */
    uint64_t m = 0;
    if (drop > 64) {
        *ret = 0;
        return true;
    }
    if (drop == 64) {
        m = q > 1ULL << 63 || sticky;
    } else {
        uint64_t half = 1ULL << (drop - 1), rest = q & (half * 2 - 1);
        m = q >> drop;
        m += rest > half || (rest == half && (sticky || (m & 1)));
    }
    *ret = ldexp((double)m, (int)(e + drop));
    return !isinf(*ret);
}

bool big_double(const uint64_t *a, uint32_t n, double *ret)
{
    n = big_trim(a, n);
    if (n == 0) {
        *ret = 0;
        return true;
    }
    int zeros = __builtin_clzll(a[n - 1]);
    uint64_t q = a[n - 1] << zeros;
    bool sticky = false;
    if (n > 1) {
        if (zeros)
            q |= a[n - 2] >> (64 - zeros);
        sticky = zeros ? a[n - 2] << zeros != 0 : a[n - 2] != 0;
        for (uint32_t i = 0; i + 2 < n && !sticky; i++)
            sticky = a[i] != 0;
    }
    return round_scaled(q, sticky, (int64_t)n * 64 - 64 - zeros, ret);
}

/* Shifts that make the quotient fill 63 or 64 bits and the divisor's top limb full. */
struct shifts {
    uint64_t a, b;
    int64_t e; /* the quotient is A / B * 2^-e */
};

static struct shifts shifts_for(uint64_t abits, uint64_t bbits)
{
    int64_t s = 63 - ((int64_t)abits - (int64_t)bbits);
    struct shifts r = {.a = s > 0 ? (uint64_t)s : 0, .b = s < 0 ? (uint64_t)-s : 0, .e = s};
    uint64_t fill = (64 - (bbits + r.b) % 64) % 64;
    r.a += fill;
    r.b += fill;
    return r;
}

uint64_t big_quotient_cap(const uint64_t *a, uint32_t na, const uint64_t *b, uint32_t nb)
{
    struct shifts s = shifts_for(big_bits(a, na), big_bits(b, nb));
    return (uint64_t)na + nb + s.a / 64 + s.b / 64 + 6;
}

bool big_quotient(const uint64_t *a, uint32_t na, const uint64_t *b, uint32_t nb, uint64_t *work,
                  double *ret)
{
    na = big_trim(a, na);
    nb = big_trim(b, nb);
    if (na == 0) {
        *ret = 0;
        return true;
    }
    struct shifts s = shifts_for(big_bits(a, na), big_bits(b, nb));
    uint64_t *y = work, *x;
    uint32_t ny = big_shl(y, b, nb, s.b);
    x = y + nb + s.b / 64 + 1;
    uint32_t nx = big_shl(x, a, na, s.a);
    for (; nx < ny + 1; nx++) /* A < B * 2^64, so ny + 1 limbs hold it */
        x[nx] = 0;
    wide head = (wide)x[ny] << 64 | x[ny - 1];
    uint64_t q = x[ny] >= y[ny - 1] ? UINT64_MAX : (uint64_t)(head / y[ny - 1]);
    uint64_t carry = 0, borrow = 0;
    for (uint32_t i = 0; i <= ny; i++) {
        wide t = (wide)q * (i < ny ? y[i] : 0) + carry;
        carry = (uint64_t)(t >> 64);
        wide u = (wide)x[i] - (uint64_t)t - borrow;
        x[i] = (uint64_t)u;
        borrow = (uint64_t)(u >> 64) & 1;
    }
    while (borrow) { /* the guess was at most two too large */
        q--;
        uint64_t c = 0;
        for (uint32_t i = 0; i <= ny; i++) {
            wide t = (wide)x[i] + (i < ny ? y[i] : 0) + c;
            x[i] = (uint64_t)t;
            c = (uint64_t)(t >> 64);
        }
        borrow -= c;
    }
    return round_scaled(q, big_trim(x, ny + 1) != 0, -s.e, ret);
}

int big_cmp_double(const uint64_t *a, uint32_t n, double d)
{
    n = big_trim(a, n);
    if (d < 1)
        return n ? 1 : d > 0 ? -1 : 0;
    int exp;
    uint64_t m = (uint64_t)ldexp(frexp(d, &exp), 64); /* d = m * 2^(exp - 64), m's top bit set */
    uint64_t bits = big_bits(a, n);
    if (bits != (uint64_t)exp)
        return bits < (uint64_t)exp ? -1 : 1;
    int zeros = __builtin_clzll(a[n - 1]);
    uint64_t head = a[n - 1] << zeros;
    if (zeros && n > 1)
        head |= a[n - 2] >> (64 - zeros);
    if (head != m)
        return head < m ? -1 : 1;
    /* the first 64 bits agree; m holds 53 bits, so the fraction of d lies within them */
    if (n > 1 && (zeros ? a[n - 2] << zeros : a[n - 2]) != 0)
        return 1;
    for (uint32_t i = 0; i + 2 < n; i++)
        if (a[i])
            return 1;
    return 0;
}
