/* SPDX-License-Identifier: Apache-2.0 */
/* The names in a folder, one after the other, without `.` and `..`.
 *
 * Takes:   a descriptor of a folder.
 * Gives:   a listing, which closedir frees; its end can be told from an error.
 * Never:   follows a name; moves the position of a descriptor that stays the caller's.
 * Runs in: every process.
 */
#ifndef SYS_ENTRIES_H
#define SYS_ENTRIES_H

#include <dirent.h>

/* Takes FD, also where it fails. NULL: errno tells why; FD may be -1 with errno set by whoever tried to open it. */
DIR *entries_take(int fd);

/* A listing of its own: FOLDER stays the caller's. NULL: errno tells why. */
DIR *entries_of(int folder);

/* The next name, valid until the next call. NULL: the end, and errno is 0; or an error, and errno tells which. */
const char *entries_next(DIR *listing);

/* How many names the folder PATH has; 0 if it cannot be read. */
unsigned entries_count(const char *path);

#endif
