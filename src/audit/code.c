/* SPDX-License-Identifier: Apache-2.0 */
/* The code of programs, where the policy asks for it (audit.code): a file for each, named by its hash, which stands in
 * the signed record. So the log stays small, the same program is kept once, and whoever changes a file is found by
 * sha256sum. The time of a file is that of the last run of its program: retention goes by it.
 *
 * Waits: fd_write_all in keep_new; the disk; none (the kernel's own); the run is refused
 *        fsync in keep_new; the disk; none (the kernel's own); the run is refused */
#include "audit/inside.h"

#include "sys/entries.h"
#include "sys/fd.h"
#include "sys/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CODE_DIR "code" /* in the folder of the log */

/* Under a name of this process, then by its hash: what has that name is whole. */
static int keep_new(struct audit *a, int dir, const char *hash, const char *code, size_t len,
                    struct err *err)
{
    char own[32];
    FD_AUTO fd = -1;
    snprintf(own, sizeof own, "new.%d", (int)getpid());
    unlinkat(dir, own, 0); /* of one that died, and had our number */
    int r = state_file(dir, own, O_WRONLY | O_CREAT | O_EXCL, &fd, err);
    if (r < 0)
        return r;
    if (fd_write_all(fd, code, len) < 0 || (a->config.sync != AUDIT_SYNC_OFF && fsync(fd) < 0) ||
        renameat(dir, own, dir, hash) < 0) {
        r = err_sys(err, "keep the code of the program (audit.code)");
        unlinkat(dir, own, 0);
    }
    return r;
}

int audit_code_keep(struct audit *a, const char *hash, const char *code, size_t len,
                    struct err *err)
{
    FD_AUTO dir = -1;
    if (!a->config.code || !hash || !code)
        return 0;
    int r = state_folder(a->dir, CODE_DIR, true, &dir, err);
    if (r < 0)
        return r;
    return utimensat(dir, hash, NULL, AT_SYMLINK_NOFOLLOW) == 0
               ? 0
               : keep_new(a, dir, hash, code, len, err);
}

void audit_code_expire(struct audit *a, uint64_t before_ms)
{
    struct err none = ERR_INIT;
    int fd = -1;
    DIR *d = state_folder(a->dir, CODE_DIR, false, &fd, &none) == 0 ? entries_take(fd) : NULL;
    if (!d) /* nothing was ever kept */
        return;
    for (const char *name; (name = entries_next(d));) {
        struct stat st;
        if (name[0] != '.' && fstatat(dirfd(d), name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            (uint64_t)st.st_mtim.tv_sec * 1000 < before_ms)
            unlinkat(dirfd(d), name, 0);
    }
    closedir(d);
}
