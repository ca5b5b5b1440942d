/* SPDX-License-Identifier: Apache-2.0 */
/* cordon-nest: pid 1 of a jail. A program of its own, and a very small one, so that what sits above the
 * guest starts in no time and has none of the supervisor's memory. It is not meant to be run by
 * hand: it takes its orders from the builder that executes it.
 *
 * Waits: write in main; stderr, where it was started by hand; none (nothing runs); ends */
#include "jail/nest.h"
#include "start.h"
#include "sys/raw.h"

#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

/* A decimal number and nothing else. */
static bool number(const char *s, uint64_t *ret)
{
    uint64_t n = 0;
    if (!*s)
        return false;
    for (; *s >= '0' && *s <= '9'; s++)
        if (__builtin_mul_overflow(n, 10, &n) ||
            __builtin_add_overflow(n, (uint64_t)(*s - '0'), &n))
            return false;
    *ret = n;
    return !*s;
}

int main(int argc, char **argv)
{
    static const char usage[] = "cordon-nest: started by cordon only; see cordon-exec(1)\n";
    struct jail_nest n = {.control = JAIL_NEST_CONTROL, .quota = JAIL_NEST_QUOTA};
    uint64_t words[JAIL_NEST_WORDS];
    bool good = argc == 1 + JAIL_NEST_WORDS;
    for (int i = 0; good && i < JAIL_NEST_WORDS; i++)
        good = number(argv[1 + i], &words[i]);
    if (!good || raw_syscall(SYS_fcntl, n.control, F_GETFD, 0, 0, 0) < 0)
        return raw_syscall(SYS_write, STDERR_FILENO, (long)usage, sizeof usage - 1, 0, 0) < 0 ? 3
                                                                                              : 2;
    if (raw_syscall(SYS_fcntl, n.quota, F_GETFD, 0, 0, 0) < 0)
        n.quota = -1;
    n.guest = (int)words[JAIL_NEST_GUEST];
    n.deadline_ns = words[JAIL_NEST_DEADLINE];
    n.subreaper = words[JAIL_NEST_SUBREAPER] != 0;
    return jail_nest_watch(&n);
}
