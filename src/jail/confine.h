/* SPDX-License-Identifier: Apache-2.0 */
/* A process of our own that is about to read what a guest or a client wrote: everything but a few folders and a table of
 * system calls is given up, for good.
 *
 * Takes:   the folders that it writes in, those that it may read, the name of a table.
 * Gives:   no new privileges, no core, not dumpable, no capability but the one to read what others shut (root, with a folder
 *          to read, by jail_confine), Landlock, seccomp; or an error that names what failed.
 * Never:   leaves a part out: a process that gets an error must end.
 * Runs in: cordon-workspace, cordon-tool, before they open a file of a guest's; cordon-front, before it reads a client; cordon
 *          monitor, before it reads what a model wrote.
 */
#ifndef JAIL_CONFINE_H
#define JAIL_CONFINE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct jail_folder {
    int fd;
    bool writable; /* else it is only read */
};

/* WRITABLE, READABLE: -1: none. Descriptors that are open stay usable. */
ERR_MUST_USE int jail_confine(int writable, int readable, const char *filter, struct err *err);
/* The same with as many folders as there are, and without a capability, whoever it is. */
ERR_MUST_USE int jail_confine_folders(const struct jail_folder *folders, size_t count,
                                      const char *filter, struct err *err);

#endif
