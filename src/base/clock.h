/* SPDX-License-Identifier: Apache-2.0 */
/* Monotonic time, and the time that files are stamped with.
 *
 * Takes:   nothing.
 * Gives:   nanoseconds since some fixed moment; of files since 1970.
 * Never:   goes back, but for the time of files, which the machine's owner sets.
 * Runs in: every process.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define CLOCK_NS_PER_MS 1000000ULL
#define CLOCK_NS_PER_S  1000000000ULL

static inline uint64_t clock_ns(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * CLOCK_NS_PER_S + (uint64_t)t.tv_nsec;
}

static inline uint64_t clock_now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

/* Not before the stamp of any file that was changed until now. */
static inline uint64_t clock_files_ns(void)
{
    return clock_ns(CLOCK_REALTIME);
}

#endif
