/* A policy file opened so that nobody but root and the user can have written it.
 *
 * Takes:   a path; the folders and files that guests may write.
 * Gives:   an open descriptor and what the file is; or why it is not taken.
 * Never:   follows a path by name twice: each step is taken and looked at once.
 * Runs in: the supervisor; `cordon policy`.
 */
#ifndef POLICY_FILES_H
#define POLICY_FILES_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* *ret_fd is -1, and 0 is returned, when there is no such file. ERR_USAGE: there is one that is not to be
 * trusted, or its place is one that WRITABLE reaches (also when nothing is there yet: it could be put
 * there). ERR_SYS with EACCES in sys_errno: it may not even be looked for. */
ERR_MUST_USE int policy_file_open(const char *path, const char *const *writable, size_t count,
                                  int *ret_fd, struct stat *ret_st, struct err *err);
/* All of it; ERR_LIMIT past POLICY_FILE_MAX. */
ERR_MUST_USE int policy_file_read(int fd, const char *path, struct buf *out, struct err *err);

#endif
