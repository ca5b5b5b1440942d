/* SPDX-License-Identifier: Apache-2.0 */
/* POSIX file locks are charged to nobody: a guest that locked every second byte of a file would hold kernel
 * memory beside each of its limits. So the filter reports F_SETLK and F_SETLKW, and the supervisor lets them go on
 * as long as the calling process holds few.
 *
 * Counting means reading the process's fdinfo files, which is too much for every call of a database. The
 * supervisor counts at one call in N, chosen at random: a guest cannot know which, so no process gets far beyond
 * the limit (more than 40 N calls without a count happen once in 10^17), whichever of its processes calls. N is
 * at least the number of descriptors that a count may have to read, so a call costs the same however many there
 * are. Closing any descriptor of a file ends the process's locks on it, so what fdinfo shows is all there is.
 *
 * Waits: fgets in count_in; /proc; at once; counts what came */
#include "jail/outside.h"

#include "sys/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOCKS_MOST   1024 /* of one process; a database holds a handful */
#define COUNT_ONE_IN 64   /* calls, at least */

/* How many locks one file of fdinfo lists, up to MOST; -1 if it cannot be read. */
static int count_in(int dir, const char *name, int most)
{
    char line[256];
    int n = 0;
    FD_AUTO fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : -1; /* closed meanwhile, and its locks with it */
    FILE *f = fdopen(fd, "r");
    if (!f)
        return -1;
    (void)fd_take(&fd); /* fclose closes it */
    while (n < most && fgets(line, sizeof line, f))
        n += strncmp(line, "lock:", 5) == 0;
    fclose(f);
    return n;
}

/* Up to LOCKS_MOST; -1 if they cannot be counted. A file that is open twice counts twice: too strict, never too lax. */
static int count(pid_t pid)
{
    char path[40];
    int total = 0;
    snprintf(path, sizeof path, "/proc/%d/fdinfo", (int)pid);
    DIR *dir = opendir(path);
    if (!dir)
        return -1;
    for (const struct dirent *e; total < LOCKS_MOST && (e = readdir(dir));) {
        int n = e->d_name[0] == '.' ? 0 : count_in(dirfd(dir), e->d_name, LOCKS_MOST - total);
        if (n < 0) {
            total = -1;
            break;
        }
        total += n;
    }
    closedir(dir);
    return total;
}

bool jail_locks_may_take(struct jail_watch *w, pid_t pid)
{
    char detail[80];
    uint64_t one_in = w->limits->descriptors > COUNT_ONE_IN ? w->limits->descriptors : COUNT_ONE_IN;
    if (arc4random_uniform((uint32_t)one_in) != 0)
        return true;
    int held = count(pid);
    if (held >= 0 && held < LOCKS_MOST)
        return true;
    if (held < 0)
        snprintf(detail, sizeof detail, "its file locks cannot be counted (ENOLCK)");
    else
        snprintf(detail, sizeof detail, "%d file locks held (ENOLCK)", held);
    jail_violation_add(w->out, "resources", "limit.locks", detail,
                       "release locks that are no longer needed, or lock whole files");
    return false;
}
