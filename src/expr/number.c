/* SPDX-License-Identifier: Apache-2.0 */
/* strtod and printf obey the process's locale, and what they round depends on the C library; so
 * both directions are done here with exact integers. Reading keeps 800 digits and folds the rest
 * into one sticky digit: a double's halfway points have at most 767. Printing is Steele and White's
 * free-format algorithm on fixed buffers. */
#include "expr/number.h"

#include "expr/big.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define KEEP 800 /* significant digits that are read exactly */
#define ROOM 160 /* limbs: 10^1143 and shifts of it */

static unsigned digit(char c)
{
    return c <= '9' ? (unsigned)(c - '0') : (unsigned)((c | 32) - 'a' + 10);
}

uint32_t number_integer(const char *s, size_t len, unsigned base, uint64_t *limb)
{
    uint32_t n = 0;
    uint64_t part = 0, scale = 1;
    for (size_t i = 0; i < len; i++) {
        if (s[i] == '_')
            continue;
        part = part * base + digit(s[i]);
        scale *= base;
        if (scale >= 1000000000000000000ULL / 16) {
            n = big_mul_add(limb, n, scale, part);
            part = 0;
            scale = 1;
        }
    }
    return big_trim(limb, big_mul_add(limb, n, scale, part));
}

static const double exact_tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static uint32_t times_ten_to(uint64_t *r, uint32_t n, int64_t e)
{
    for (; e >= 19; e -= 19)
        n = big_mul_add(r, n, 10000000000000000000ULL, 0);
    for (; e > 0; e--)
        n = big_mul_add(r, n, 10, 0);
    return n;
}

/* DIGITS * 10^e by exact division. */
static double read_exact(const char *digits, size_t n, int64_t e)
{
    uint64_t num[ROOM], den[ROOM], work[3 * ROOM];
    uint32_t nn = number_integer(digits, n, 10, num), nd = 1;
    double d = 0;
    if ((int64_t)n + e > 310)
        return INFINITY;
    if ((int64_t)n + e < -330)
        return 0;
    den[0] = 1;
    if (e > 0)
        nn = times_ten_to(num, nn, e);
    else
        nd = times_ten_to(den, nd, -e);
    return big_quotient(num, nn, den, nd, work, &d) ? d : INFINITY;
}

double number_double(const char *s, size_t len)
{
    char digits[KEEP + 1];
    size_t n = 0, i = 0;
    int64_t e = 0, exp = 0;
    bool point = false, sticky = false, neg = false;
    uint64_t m = 0;
    for (; i < len; i++) {
        if (s[i] == '_')
            continue;
        if (s[i] == '.') {
            point = true;
            continue;
        }
        if ((s[i] | 32) == 'e')
            break;
        if (n == 0 && s[i] == '0') {
            e -= point;
            continue;
        }
        if (n < KEEP) {
            if (n < 19)
                m = m * 10 + (uint64_t)(s[i] - '0');
            digits[n++] = s[i];
            e -= point;
        } else {
            sticky = sticky || s[i] != '0';
            e += !point;
        }
    }
    if (i < len && ++i < len && (s[i] == '+' || s[i] == '-'))
        neg = s[i++] == '-';
    for (; i < len; i++)
        if (s[i] != '_' && exp < 100000000)
            exp = exp * 10 + (s[i] - '0');
    e += neg ? -exp : exp;
    if (n == 0)
        return 0;
    if (n <= 19 && m < 1ULL << 53 && e >= -22 && e <= 22)
        return e < 0 ? (double)m / exact_tens[-e] : (double)m * exact_tens[e];
    if (sticky) {
        digits[n++] = '1';
        e--;
    }
    return read_exact(digits, n, e);
}

/* The shortest digits that read back as D (> 0, finite): d = 0.DIGITS * 10^*ret_point. */
static size_t shortest(double d, char *digits, int *ret_point)
{
    uint64_t r[24] = {0}, s[24] = {0}, up[24] = {0}, down[24] = {0}, t[25];
    int exp;
    uint64_t f = (uint64_t)ldexp(frexp(d, &exp), 53);
    exp -= 53;
    if (exp < -1074) { /* subnormal: no hidden bit */
        f >>= -1074 - exp;
        exp = -1074;
    }
    bool even = (f & 1) == 0, narrow = f == 1ULL << 52 && exp > -1074;
    /* value = r / s, half the gap above = up / s, below = down / s */
    uint64_t one[1] = {1}, fs[1] = {f};
    uint64_t shift = narrow ? 2 : 1, pos = exp > 0 ? (uint64_t)exp : 0,
             negexp = exp < 0 ? (uint64_t)-exp : 0;
    uint32_t nr = big_shl(r, fs, 1, pos + shift);
    uint32_t ns = big_shl(s, one, 1, negexp + shift);
    uint32_t nup = big_shl(up, one, 1, pos + shift - 1);
    uint32_t ndown = big_shl(down, one, 1, pos);
    int k = (int)ceil((exp + 52 - __builtin_clzll(f) + 11) * 0.30102999566398119521 - 1e-10);
    if (k >= 0) {
        ns = times_ten_to(s, ns, k);
    } else {
        nr = times_ten_to(r, nr, -k);
        nup = times_ten_to(up, nup, -k);
        ndown = times_ten_to(down, ndown, -k);
    }
    uint32_t nt = big_add(t, r, nr, up, nup);
    int c = big_cmp(t, nt, s, ns);
    if (c > 0 || (c == 0 && even)) { /* the estimate was one too small */
        k++;
    } else {
        nr = big_mul_add(r, nr, 10, 0);
        nup = big_mul_add(up, nup, 10, 0);
        ndown = big_mul_add(down, ndown, 10, 0);
    }
    size_t n = 0;
    for (;;) {
        char q = '0';
        while (big_cmp(r, nr, s, ns) >= 0) {
            nr = big_sub(r, r, nr, s, ns);
            q++;
        }
        c = big_cmp(r, nr, down, ndown);
        bool low = c < 0 || (c == 0 && even);
        nt = big_add(t, r, nr, up, nup);
        c = big_cmp(t, nt, s, ns);
        bool high = c > 0 || (c == 0 && even);
        if (!low && !high) {
            digits[n++] = q;
            nr = big_mul_add(r, nr, 10, 0);
            nup = big_mul_add(up, nup, 10, 0);
            ndown = big_mul_add(down, ndown, 10, 0);
            continue;
        }
        if (low && high) { /* the nearer of the two; a tie goes to even, as CPython's dtoa */
            nt = big_add(t, r, nr, r, nr);
            c = big_cmp(t, nt, s, ns);
            high = c > 0 || (c == 0 && (q & 1));
        }
        digits[n++] = (char)(q + (high ? 1 : 0));
        break;
    }
    *ret_point = k;
    return n;
}

static size_t put(char *out, size_t at, const char *s, size_t n)
{
    memcpy(out + at, s, n);
    return at + n;
}

size_t number_repr(double d, char out[NUMBER_REPR_MAX])
{
    char digits[24];
    size_t n = 0;
    int point;
    if (isnan(d))
        n = put(out, 0, "nan", 3);
    else if (signbit(d))
        out[n++] = '-';
    if (isinf(d))
        n = put(out, n, "inf", 3);
    if (d == 0)
        n = put(out, n, "0.0", 3);
    if (isnan(d) || isinf(d) || d == 0) {
        out[n] = 0;
        return n;
    }
    size_t count = shortest(fabs(d), digits, &point);
    if (point > -4 && point <= 16) {
        if (point <= 0) {
            n = put(out, n, "0.", 2);
            for (int z = point; z < 0; z++)
                out[n++] = '0';
            n = put(out, n, digits, count);
        } else if ((size_t)point >= count) {
            n = put(out, n, digits, count);
            for (size_t z = count; z < (size_t)point; z++)
                out[n++] = '0';
            n = put(out, n, ".0", 2);
        } else {
            n = put(out, n, digits, (size_t)point);
            out[n++] = '.';
            n = put(out, n, digits + point, count - (size_t)point);
        }
    } else {
        int e = point - 1, a = e < 0 ? -e : e;
        out[n++] = digits[0];
        if (count > 1) {
            out[n++] = '.';
            n = put(out, n, digits + 1, count - 1);
        }
        out[n++] = 'e';
        out[n++] = e < 0 ? '-' : '+';
        if (a >= 100)
            out[n++] = (char)('0' + a / 100);
        out[n++] = (char)('0' + a / 10 % 10);
        out[n++] = (char)('0' + a % 10);
    }
    out[n] = 0;
    return n;
}

size_t number_decimal(uint64_t *limb, uint32_t n, char *out)
{
    size_t len = 0;
    n = big_trim(limb, n);
    if (n == 0)
        out[len++] = '0';
    while (n) {
        uint64_t part = big_div_small(limb, &n, 10000000000000000000ULL);
        for (int i = 0; i < 19 && (n || part); i++, part /= 10)
            out[len++] = (char)('0' + part % 10);
    }
    for (size_t i = 0; i < len / 2; i++) {
        char c = out[i];
        out[i] = out[len - 1 - i];
        out[len - 1 - i] = c;
    }
    out[len] = 0;
    return len;
}
