/* SPDX-License-Identifier: Apache-2.0 */
/* Monotonic time, and the one place that asks for it.
 *
 * Takes:   nothing.
 * Gives:   nanoseconds since some fixed moment.
 * Never:   goes back.
 * Runs in: every process.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define CLOCK_NS_PER_MS 1000000ULL
#define CLOCK_NS_PER_S  1000000000ULL

static inline uint64_t clock_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * CLOCK_NS_PER_S + (uint64_t)t.tv_nsec;
}

#endif
