/* SPDX-License-Identifier: Apache-2.0 */
/* One reader for number + suffix. Fractions are kept exact in thousandths, so no floating point and
 * no locale is involved. */
#include "base/units.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

struct suffix {
    const char *name;
    uint64_t factor; /* in thousandths of the result's unit */
};

static int read_units(const char *s, const struct suffix *table, uint64_t *ret_n)
{
    uint64_t whole = 0, thousandths = 0, scale = 100;
    bool finer = false; /* than thousandths */
    if (!isdigit((unsigned char)*s))
        return ERR_FORMAT;
    for (; isdigit((unsigned char)*s); s++)
        if (__builtin_mul_overflow(whole, 10, &whole) ||
            __builtin_add_overflow(whole, (uint64_t)(*s - '0'), &whole))
            return ERR_FORMAT;
    if (*s == '.') {
        if (!isdigit((unsigned char)*++s))
            return ERR_FORMAT;
        for (; isdigit((unsigned char)*s); s++, scale /= 10) {
            thousandths += (uint64_t)(*s - '0') * scale;
            finer = finer || (!scale && *s != '0');
        }
    }
    for (; table->name; table++)
        if (strcasecmp(s, table->name) == 0)
            break;
    const uint64_t unit = table->name ? table->factor / 1000 : 0;
    uint64_t a, b = thousandths * unit / 1000;
    if (!table->name || __builtin_mul_overflow(whole, unit, &a) ||
        __builtin_add_overflow(a, b, &a) || ((thousandths || finer) && unit == 1))
        return ERR_FORMAT;
    *ret_n = a;
    return 0;
}

int units_count(const char *s, uint64_t *ret_n)
{
    static const struct suffix table[] = {{"", 1000}, {0}};
    return read_units(s, table, ret_n);
}

int units_bytes(const char *s, uint64_t *ret_n)
{
    static const struct suffix table[] = {{"", 1000},
                                          {"b", 1000},
                                          {"k", 1000ULL << 10},
                                          {"kb", 1000ULL << 10},
                                          {"m", 1000ULL << 20},
                                          {"mb", 1000ULL << 20},
                                          {"g", 1000ULL << 30},
                                          {"gb", 1000ULL << 30},
                                          {0}};
    return read_units(s, table, ret_n);
}

int units_millis(const char *s, uint64_t *ret_n)
{
    static const struct suffix table[] = {{"ms", 1000},
                                          {"", 1000000},
                                          {"s", 1000000},
                                          {"m", 60000000},
                                          {"min", 60000000},
                                          {"h", 3600000000ULL},
                                          {0}};
    return read_units(s, table, ret_n);
}

void units_bytes_text(uint64_t bytes, char out[UNITS_TEXT])
{
    static const char *const units[] = {"bytes", "KB", "MB", "GB", "TB", "PB", "EB"};
    size_t i = 0;
    uint64_t whole = bytes, rest = 0; /* rest: in 1024ths */
    for (; whole >= 1024; whole /= 1024, i++)
        rest = whole % 1024;
    const unsigned tenths = (unsigned)(rest * 10 / 1024);
    if (tenths && whole < 100)
        snprintf(out, UNITS_TEXT, "%llu.%u %s", (unsigned long long)whole, tenths, units[i]);
    else
        snprintf(out, UNITS_TEXT, "%llu %s", (unsigned long long)whole,
                 bytes == 1 ? "byte" : units[i]);
}

void units_millis_text(uint64_t ms, char out[UNITS_TEXT])
{
    static const struct {
        uint64_t ms;
        const char *name;
    } units[] = {{3600000, "h"}, {1000, "s"}, {1, "ms"}};
    size_t i = 0;
    while (units[i].ms > 1 && (ms == 0 || ms % units[i].ms))
        i++;
    snprintf(out, UNITS_TEXT, "%llu %s", (unsigned long long)(ms / units[i].ms), units[i].name);
}
