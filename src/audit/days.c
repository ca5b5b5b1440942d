/* SPDX-License-Identifier: Apache-2.0 */
/* Days are UTC: no hour is there twice, and a file's name means the same on every machine. */
#include "audit/inside.h"

#include <stdio.h>

/* Days since 1970-01-01 to a date and back, by the usual arithmetic over eras of 400 years that begin in March. */
static uint32_t from_days(int64_t days)
{
    days += 719468;
    int64_t era = days / 146097, doe = days - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;
    int64_t d = doy - (153 * mp + 2) / 5 + 1, m = mp < 10 ? mp + 3 : mp - 9;
    int64_t y = yoe + era * 400 + (m <= 2);
    return y > 9999 ? 99991231 : (uint32_t)(y * 10000 + m * 100 + d);
}

static int64_t to_days(uint32_t day)
{
    int64_t y = day / 10000, m = day / 100 % 100, d = day % 100;
    y -= m <= 2;
    int64_t era = y / 400, yoe = y - era * 400;
    int64_t doy = (153 * (m > 2 ? m - 3 : m + 9) + 2) / 5 + d - 1;
    return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

uint32_t audit_day_of(uint64_t ms)
{
    uint64_t days = ms / AUDIT_DAY_MS;
    return from_days(days < 4000000 ? (int64_t)days : 4000000);
}

uint32_t audit_day_minus(uint32_t day, unsigned days)
{
    int64_t n = to_days(day) - (int64_t)days;
    return from_days(n > 0 ? n : 0);
}

void audit_day_name(uint32_t day, char out[AUDIT_NAME_MAX])
{
    snprintf(out, AUDIT_NAME_MAX, "%04u-%02u-%02u.jsonl", day / 10000 % 10000, day / 100 % 100,
             day % 100);
}

uint32_t audit_day_parse(const char *name)
{
    char again[AUDIT_NAME_MAX];
    unsigned part[3] = {0}, which = 0;
    for (const char *c = name; *c && *c != '.' && which < 3; c++) {
        if (*c == '-')
            which++;
        else if (*c >= '0' && *c <= '9' && part[which] < 1000)
            part[which] = part[which] * 10 + (unsigned)(*c - '0');
        else
            return 0;
    }
    if (part[1] < 1 || part[1] > 12 || part[2] < 1 || part[2] > 31)
        return 0;
    uint32_t day = part[0] * 10000 + part[1] * 100 + part[2];
    audit_day_name(day, again);
    return __builtin_strcmp(again, name) == 0 ? day : 0;
}
