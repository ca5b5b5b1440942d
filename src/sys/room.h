/* SPDX-License-Identifier: Apache-2.0 */
/* Room on a disk, and how much of it is kept free for others.
 *
 * Takes:   an open folder, and what is to stay free there: bytes, and percent of the disk.
 * Gives:   how much is free, how much is kept, and whether there is less than that.
 * Never:   writes.
 * Runs in: every trusted process.
 */
#ifndef SYS_ROOM_H
#define SYS_ROOM_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct room {
    uint64_t free, kept; /* bytes */
    bool short_of;       /* less is free than is kept */
};

/* The larger of BYTES and PERCENT holds. A file system of the kernel, which has no size, is never short of room. ERR_SYS: nobody knows. */
ERR_MUST_USE int room_look(int folder, uint64_t bytes, uint64_t percent, struct room *ret,
                           struct err *err);

#endif
