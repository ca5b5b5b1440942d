/* SPDX-License-Identifier: Apache-2.0 */
/* The test harness: TAP on stdout, one line a case.
 *
 * Takes:   conditions.
 * Gives:   `ok`, `not ok`, `ok # SKIP reason`, and the plan at the end.
 * Never:   stops at the first failure; counts a skip as a pass where CORDON_MUST_WORK is set.
 * Runs in: tests only.
 */
#ifndef BASE_TAP_H
#define BASE_TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int tap_count, tap_failures;

__attribute__((format(printf, 4, 5), unused)) static bool tap_check(bool good, const char *file,
                                                                    int line, const char *fmt, ...)
{
    va_list ap;
    char name[1024];
    va_start(ap, fmt);
    vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);
    for (char *c = name; *c;
         c++) /* a case is one line of TAP, whatever a program in its name has */
        if (*c == '\n')
            *c = ' ';
    printf("%s %d - %s\n", good ? "ok" : "not ok", ++tap_count, name);
    if (!good) {
        tap_failures++;
        printf("# failed at %s:%d\n", file, line);
    }
    fflush(stdout);
    return good;
}

#define tap_ok(cond, ...) tap_check((cond), __FILE__, __LINE__, __VA_ARGS__)
#define tap_eq_int(got, want, ...)                                                                 \
    do {                                                                                           \
        long long tap_g = (long long)(got), tap_w = (long long)(want);                             \
        if (!tap_check(tap_g == tap_w, __FILE__, __LINE__, __VA_ARGS__))                           \
            printf("# got %lld, want %lld\n", tap_g, tap_w);                                       \
    } while (0)
#define tap_eq_str(got, want, ...)                                                                 \
    do {                                                                                           \
        const char *tap_g = (got), *tap_w = (want);                                                \
        if (!tap_check(tap_g && strcmp(tap_g, tap_w) == 0, __FILE__, __LINE__, __VA_ARGS__))       \
            printf("# got '%s', want '%s'\n", tap_g ? tap_g : "(null)", tap_w);                    \
    } while (0)

__attribute__((unused)) static void tap_skip(const char *what, const char *reason)
{
    if (getenv("CORDON_MUST_WORK")) {
        tap_check(false, __FILE__, __LINE__, "%s (cannot be skipped here: %s)", what, reason);
        return;
    }
    printf("ok %d - %s # SKIP %s\n", ++tap_count, what, reason);
}

/* How many times the time that a test gives is given where the processor is emulated: tests/vm/run. */
__attribute__((unused)) static unsigned tap_slow(void)
{
    const char *slow = getenv("TAPSYS_SLOW");
    return slow ? (unsigned)strtoul(slow, NULL, 10) : 1;
}

__attribute__((unused)) static int tap_done(void)
{
    printf("1..%d\n", tap_count);
    return tap_failures ? 1 : 0;
}

#endif
