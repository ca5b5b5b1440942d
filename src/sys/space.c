/* SPDX-License-Identifier: Apache-2.0 */
/* One rule for everything of ours that writes to a disk: the audit needs the last of it. What root may still use is not counted. */
#include "sys/space.h"

#include <sys/statvfs.h>

int disk_space_look(int folder, uint64_t bytes, uint64_t percent, struct disk_space *ret,
                    struct err *err)
{
    struct statvfs disk;
    if (fstatvfs(folder, &disk) < 0)
        return err_sys(err, "the free space of the disk");
    const uint64_t all = (uint64_t)disk.f_blocks * disk.f_frsize, part = all / 100 * percent;
    ret->free = (uint64_t)disk.f_bavail * disk.f_frsize;
    ret->inodes = disk.f_favail;
    ret->kept = part > bytes ? part : bytes;
    ret->short_of = all != 0 && ret->free < ret->kept;
    return 0;
}
