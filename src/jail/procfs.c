/* SPDX-License-Identifier: Apache-2.0 */
/* What a template needs of /proc, and no more. Its children write their id maps there and read their own status, so
 * it holds a procfs for as long as it lives, and code that was imported into its memory may come to use it. The
 * supervisor's /proc would show that code every process of the machine; this one is mounted for the template's own
 * pid namespace, shows processes alone (subset=pid), and is attached to no folder.
 *
 * The kernel mounts a procfs only where the caller sees one that is not masked. In a container that masks /proc a
 * template gets the container's, if all that it imports is the system's: whoever could change that could change
 * the interpreter. With code of anybody else it is not started. */
#include "jail/inside.h"

#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>

static int mount_proc(void)
{
    FD_AUTO fs = fsopen("proc", FSOPEN_CLOEXEC);
    if (fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "subset", "pid", 0) < 0 ||
        fsconfig(fs, FSCONFIG_SET_STRING, "hidepid", "invisible", 0) < 0 ||
        fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return -1;
    return fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
}

int jail_procfs_of_template(struct jail_stage *st, struct err *err)
{
    st->own_proc = mount_proc();
    if (st->own_proc < 0 && errno == EPERM && st->spec->foreign)
        return err_set(
            err, ERR_MISSING,
            "packages of a virtual environment are loaded ahead only where a new /proc can be "
            "mounted: unmask the container's (systempaths=unconfined), or run without the pool");
    if (st->own_proc < 0 && errno == EPERM)
        st->own_proc = fcntl(st->proc, F_DUPFD_CLOEXEC, 0);
    if (st->own_proc < 0)
        return err_sys(err, "mount a procfs of the template's own");
    /* Its files are those of whoever opens them: each namespace has limits of its own. Where /proc/sys is hidden, one
     * second lock is missing (build.c), and what is opened there instead is not found. */
    st->user_limits = openat(st->proc, "sys/user", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (st->user_limits < 0)
        st->user_limits = fcntl(st->own_proc, F_DUPFD_CLOEXEC, 0);
    return st->user_limits < 0 ? err_sys(err, "open /proc/sys/user") : 0;
}
