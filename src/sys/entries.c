/* SPDX-License-Identifier: Apache-2.0 */
/* readdir returns NULL for the end and for an error, and only errno tells them apart: so errno is cleared in one place.
 * A listing by dup would share its position with every copy of the descriptor; opening `.` anew does not. */
#include "sys/entries.h"

#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

DIR *entries_take(int fd)
{
    DIR *listing = fd < 0 ? NULL : fdopendir(fd);
    if (!listing) {
        const int why = errno;
        fd_close(fd);
        errno = why;
    }
    return listing;
}

DIR *entries_of(int folder)
{
    return entries_take(openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

const char *entries_next(DIR *listing)
{
    const struct dirent *e;
    do {
        errno = 0;
        e = readdir(listing);
    } while (e && (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0));
    return e ? e->d_name : NULL;
}

unsigned entries_count(const char *path)
{
    unsigned count = 0;
    DIR *listing = opendir(path);
    while (listing && entries_next(listing))
        count++;
    if (listing)
        closedir(listing);
    return count;
}
