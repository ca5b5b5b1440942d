/* SPDX-License-Identifier: Apache-2.0 */
/* The small files beside the log are mapped, not read and written: a run touches them a dozen times, and a
 * system call each would cost more than all that is computed. What makes that safe: they are ours alone,
 * they have their full size and their disk blocks from the first day on (a hole in a full disk would be a
 * signal instead of an error), and whatever is in them is signed, so a store that was cut short by kill -9
 * is seen. */
#include "audit/inside.h"

#include "sys/state.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* Under the lock. */
static int fill(int fd, size_t size, const char *name, struct err *err)
{
    static const char zeros[4096];
    struct stat st;
    if (fstat(fd, &st) < 0)
        return err_sys(err, "look at seal/%s", name);
    if ((size_t)st.st_size >= size || fallocate(fd, 0, 0, (off_t)size) == 0)
        return 0;
    if (errno != EOPNOTSUPP && errno != ENOSYS)
        return err_sys(err, "no room in the state folder for seal/%s", name);
    int r = 0;
    for (off_t at = st.st_size; r == 0 && at < (off_t)size; at += (off_t)sizeof zeros)
        r = audit_pwrite(fd, zeros, sizeof zeros, at, name, err);
    return r;
}

int audit_map(int fd, struct audit *lock, size_t size, const char *name, void **ret,
              struct err *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return err_sys(err, "look at seal/%s", name);
    if ((size_t)st.st_size < size) {
        int r = lock ? audit_lock_bytes(lock, err) : 0;
        if (r < 0)
            return r;
        r = fill(fd, size, name, err);
        if (lock)
            audit_unlock_bytes(lock);
        if (r < 0)
            return r;
    }
    void *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return err_sys(err, "map seal/%s", name);
    *ret = map;
    return 0;
}

void audit_unmap(void *map, size_t size)
{
    if (map)
        munmap(map, size);
}
