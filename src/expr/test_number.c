/* SPDX-License-Identifier: Apache-2.0 */
/* Exact arithmetic and number text, against 128-bit arithmetic and the C library where those
 * suffice. The differential test compares the rest with CPython. */
#include "base/tap.h"
#include "expr/big.h"
#include "expr/number.h"

#include <math.h>

static uint64_t state = 88172645463325252ULL;

static uint64_t rnd(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * 0x2545F4914F6CDD1DULL;
}

static void small_arithmetic(void)
{
    bool add = true, sub = true, mul = true, div = true, shl = true;
    for (int i = 0; i < 200000; i++) {
        uint64_t x = rnd() >> (rnd() % 64), y = rnd() >> (rnd() % 64), r[4], k = rnd() % 60;
        unsigned __int128 s = (unsigned __int128)x + y, p = (unsigned __int128)x * y;
        uint32_t n = big_add(r, &x, 1, &y, 1);
        add = add && (n < 1 || r[0] == (uint64_t)s) && (n < 2 || r[1] == (uint64_t)(s >> 64)) &&
              n == (s >> 64 ? 2u : s != 0);
        n = big_mul(r, &x, 1, &y, 1);
        mul = mul && (n < 1 || r[0] == (uint64_t)p) && (n < 2 || r[1] == (uint64_t)(p >> 64));
        if (x >= y) {
            n = big_sub(r, &x, 1, &y, 1);
            sub = sub && (n ? r[0] == x - y : x == y);
        }
        uint64_t two[2] = {(uint64_t)p, (uint64_t)(p >> 64)}, d = (rnd() >> 1) | 1;
        n = 2;
        uint64_t rest = big_div_small(two, &n, d);
        div = div && rest == (uint64_t)(p % d) && (n == 0 || two[0] == (uint64_t)(p / d));
        n = big_shl(r, &x, 1, k);
        unsigned __int128 w = (unsigned __int128)x << k;
        shl = shl && (n < 1 || r[0] == (uint64_t)w) && (n < 2 || r[1] == (uint64_t)(w >> 64));
    }
    tap_ok(add, "addition agrees with 128 bits");
    tap_ok(sub, "subtraction agrees with 64 bits");
    tap_ok(mul, "multiplication agrees with 128 bits");
    tap_ok(div, "short division agrees with 128 bits");
    tap_ok(shl, "shifting agrees with 128 bits");
}

static void rounding(void)
{
    bool quotient = true, convert = true, compare = true;
    for (int i = 0; i < 200000; i++) {
        uint64_t x = rnd() >> (rnd() % 64), y = (rnd() >> (rnd() % 64)) | 1, work[32];
        double got = 0, want;
        /* a quotient of 53-bit numbers is what the machine rounds itself */
        uint64_t a = x >> 11, b = y >> 11 ? y >> 11 : 1;
        want = (double)a / (double)b;
        quotient = quotient && big_quotient_cap(&a, 1, &b, 1) <= 32 &&
                   big_quotient(&a, 1, &b, 1, work, &got) && got == want;
        convert = convert && big_double(&x, 1, &got) && got == (double)x;
        int c = big_cmp_double(&x, 1, (double)y);
        unsigned __int128 whole = (unsigned __int128)(double)y;
        compare = compare && c == (((unsigned __int128)x > whole) - ((unsigned __int128)x < whole));
    }
    tap_ok(quotient, "true division rounds as the machine does");
    tap_ok(convert, "conversion rounds as the machine does");
    tap_ok(compare, "comparison with a double is exact");
    /* divisors whose leading limb says little: the first guess of the quotient is too large, by two
     * at most */
    static const uint64_t limbs[] = {
        0, 1, UINT64_MAX, 1ULL << 63, (1ULL << 63) + 1, UINT64_MAX - 1};
    bool multiple = true, sticky = true;
    for (int i = 0; i < 200000; i++) {
        uint64_t y[4], x[6], space[64], k = (rnd() >> 11) | 1ULL << 52 | 1, two_k = 2 * k;
        uint32_t n = 1 + (uint32_t)(rnd() % 4), nx;
        double got = 0;
        for (uint32_t j = 0; j < n; j++)
            y[j] = rnd() % 3 ? limbs[rnd() % 6] : rnd();
        y[n - 1] |= 1ULL << 62;
        nx = big_mul(x, y, n, &k, 1);
        multiple = multiple && big_quotient(x, nx, y, n, space, &got) && got == (double)k;
        /* (2k + 1) - a little: below the halfway point between two neighbours of 54 bits */
        two_k += 1;
        nx = big_mul(x, y, n, &two_k, 1);
        uint64_t one_less = 1;
        nx = big_sub(x, x, nx, &one_less, 1);
        sticky = sticky && big_quotient(x, nx, y, n, space, &got) && got == (double)(two_k - 1);
    }
    tap_ok(multiple, "long divisors divide their multiples exactly");
    tap_ok(sticky, "a remainder decides a near tie");
    uint64_t big[17] = {0}, one = 1, work[80];
    double d;
    big[16] = 1;
    tap_ok(!big_double(big, 17, &d), "2**1024 is too large for a float");
    tap_ok(big_quotient(&one, 1, big, 17, work, &d) && d == ldexp(1, -1024),
           "1 / 2**1024 is subnormal, and exact");
    tap_ok(big_cmp_double(big, 17, 1e308) > 0, "2**1024 is above every float");
}

static void text(void)
{
    static const struct {
        double d;
        const char *repr;
    } t[] = {{0.1, "0.1"},
             {1e16, "1e+16"},
             {9999999999999998, "9999999999999998.0"},
             {1e22, "1e+22"},
             {123456.789, "123456.789"},
             {1e-5, "1e-05"},
             {0.0001, "0.0001"},
             {5e-324, "5e-324"},
             {1.7976931348623157e308, "1.7976931348623157e+308"},
             {-0.0, "-0.0"},
             {1, "1.0"},
             {-2.5, "-2.5"},
             {INFINITY, "inf"},
             {-INFINITY, "-inf"},
             {2.2250738585072014e-308, "2.2250738585072014e-308"},
             {4.35, "4.35"},
             {1e100, "1e+100"},
             {9007199254740993.0, "9007199254740992.0"}};
    char out[NUMBER_REPR_MAX];
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        number_repr(t[i].d, out);
        tap_eq_str(out, t[i].repr, "repr %s", t[i].repr);
    }
    number_repr(NAN, out);
    tap_eq_str(out, "nan", "repr of nan is nan");
    static const struct {
        const char *s;
        double d;
    } r[] = {{"1_000.5", 1000.5},
             {".5", 0.5},
             {"1.", 1},
             {"1e400", INFINITY},
             {"1e-400", 0},
             {"0e999999999999", 0},
             {"2.2250738585072011e-308", 2.2250738585072011e-308},
             {"9007199254740993", 9007199254740992.0},
             {"9007199254740993.0000000000000000000000001", 9007199254740994.0},
             {"1e22", 1e22},
             {"1e23", 1e23},
             {"00000000000000000000000000000.1", 0.1},
             {"179769313486231580793e289", INFINITY},
             {"4.9406564584124654e-324", 5e-324},
             {"2.4703282292062327e-324", 0},
             {"2.4703282292062328e-324", 5e-324}};
    for (size_t i = 0; i < sizeof r / sizeof *r; i++)
        tap_ok(number_double(r[i].s, strlen(r[i].s)) == r[i].d, "read %s", r[i].s);
    bool round = true;
    for (int i = 0; i < 100000; i++) {
        uint64_t bits = rnd() & ~(1ULL << 63);
        double d, back;
        memcpy(&d, &bits, 8);
        if (!isfinite(d))
            continue;
        size_t n = number_repr(d, out);
        back = number_double(out, n);
        round = round && back == d;
    }
    tap_ok(round, "what repr prints reads back the same");
    uint64_t limb[40];
    const char *digits = "123456789012345678901234567890123456789012345678901234567890";
    char printed[128];
    uint32_t n = number_integer(digits, strlen(digits), 10, limb);
    number_decimal(limb, n, printed);
    tap_eq_str(printed, digits, "a number of sixty digits is read and printed whole");
    n = number_integer("ffff_ffff_ffff_ffff_ffff", 24, 16, limb);
    number_decimal(limb, n, printed);
    tap_eq_str(printed, "1208925819614629174706175",
               "a hexadecimal number with underscores is read");
    n = number_integer("0", 1, 10, limb);
    number_decimal(limb, n, printed);
    tap_eq_str(printed, "0", "zero is printed as 0");
}

int main(void)
{
    small_arithmetic();
    rounding();
    text();
    return tap_done();
}
