/* SPDX-License-Identifier: Apache-2.0 */
/* Free space on a disk, and how much of it is kept for others.
 *
 * Takes:   an open folder, and what is to stay free there: bytes, and percent of the disk.
 * Gives:   how much is free, how much is kept, and whether there is less than that.
 * Never:   writes.
 * Runs in: every trusted process.
 */
#ifndef SYS_SPACE_H
#define SYS_SPACE_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct disk_space {
    uint64_t free, kept; /* bytes */
    bool short_of;       /* less is free than is kept */
    uint64_t inodes;     /* that are free; 0 also where the file system does not count them */
};

/* The larger of BYTES and PERCENT holds. A file system of the kernel, which has no size, is never short of it. ERR_SYS: nobody knows. */
ERR_MUST_USE int disk_space_look(int folder, uint64_t bytes, uint64_t percent,
                                 struct disk_space *ret, struct err *err);

#endif
