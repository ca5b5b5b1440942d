/* SPDX-License-Identifier: Apache-2.0 */
/* A session's /workspace becomes an overlay: a checkout below, and what the session changes in the file system that
 * counts its bytes and files. Its process was made by a template before anybody knew of a workspace, so the overlay is
 * mounted where that process already is, by two helpers:
 *
 *   1  in a user and a mount namespace of its own: a detached mount of the checkout, read-only. As root of the host that
 *      is done without a helper, and the mount is mapped to the session's id.
 *   2  in the session's namespaces (within.h): folders for the layers, the overlay, and an empty mount over the layers,
 *      because nobody may change an upper layer but through the overlay.
 *
 * The second overlay of a session (the head has moved) is made whole before the first one is taken away: what fails on
 * the way leaves the session as it was. An overlay keeps its layers by itself, so the lower one stays mounted nowhere.
 * Descriptors that the guest has open on the first overlay stay on that one.
 *
 * Waits: sys_child_wait in detach_lower; a process that makes one mount; FD_PATIENCE_MS; a copy, or an error */
#include "jail/child.h"
#include "jail/supervisor/branching.h"
#include "jail/supervisor/within.h"

#include "jail/outside.h"
#include "sys/child.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#define LOWER     "lower" /* names in JAIL_LAYERS, beside JAIL_UPPER_IN */
#define WORK      "work"
#define OLD_UPPER "old"
#define OLD_WORK  "oldwork"

enum { MORE_INODES = 12 }; /* while there are two of each */

/* ---- the lower layer ---- */

#define CLOSED (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)

/* In a namespace of its own; the current folder goes along into it, whatever its name is there. The number of a descriptor,
 * which we share, or -1. */
static int detach_here(int from)
{
    struct mount_attr set = {.attr_set = CLOSED, .propagation = MS_PRIVATE};
    if (fchdir(from) < 0 || unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
        return -1;
    FD_AUTO fd =
        open_tree(AT_FDCWD, ".", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (unsigned)AT_RECURSIVE);
    return fd < 0 || mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &set, sizeof set) < 0
               ? -1
               : fd_take(&fd);
}

/* -1: a mount of it is not to be had here. */
static int detach_lower(int from)
{
    int status = 0;
    int *got = mmap(NULL, sizeof *got, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (got == MAP_FAILED)
        return -1;
    *got = -1;
    /* its memory is a copy: the kernel lets nobody change the user namespace who shares memory */
    const pid_t pid = (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0) {
        *got = detach_here(from);
        _exit(0);
    }
    int fd = pid > 0 && sys_child_wait(pid, FD_PATIENCE_MS, &status) == 0 ? *got : -1;
    munmap(got, sizeof *got);
    return fd;
}

static int open_lower(const struct jail_child *c, int from)
{
    struct stat files;
    struct err unmapped = ERR_INIT; /* then a copy is made */
    if (fstat(c->files, &files) < 0)
        return -1;
    if (files.st_uid == geteuid())
        return detach_lower(from);
    FD_AUTO fd = jail_bind_map_lower(from, files.st_uid, files.st_gid, &unmapped);
    struct mount_attr set = {.attr_set = CLOSED};
    return fd < 0 || mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &set, sizeof set) < 0
               ? -1
               : fd_take(&fd);
}

/* ---- in the session's namespaces ---- */

struct laying {
    const struct jail_child *child;
    int lower;
    bool first, kept; /* no layers yet; there is an upper layer already, of a branch */
    bool moved;       /* none that was there bears its name any more */
    bool none;        /* an overlay is not to be had */
    unsigned more_inodes;
    int layers;
    struct err err;
};

/* A session that has used up its files leaves no room for new layers beside the old ones. The file system of a branch
 * belongs to the namespace of the session's init, too. */
static int make_room(void *p)
{
    struct laying *l = p;
    char inodes[32];
    snprintf(inodes, sizeof inodes, "%llu",
             (unsigned long long)l->child->limits.inodes + JAIL_LAYER_INODES + l->more_inodes);
    FD_AUTO fs = jail_within_session(l->child) < 0
                     ? -1
                     : fspick(l->child->files, "", FSPICK_CLOEXEC | FSPICK_EMPTY_PATH);
    if (fs >= 0 && fsconfig(fs, FSCONFIG_SET_STRING, "nr_inodes", inodes, 0) == 0 &&
        fsconfig(fs, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0) == 0)
        return 0;
    err_sys(&l->err, "make room for the layers of /workspace");
    return 1;
}

/* Root of our own user namespace owns them: another owner has no number for a file that is changed. */
static bool can_layer(const struct laying *l)
{
    struct stat st;
    FD_AUTO upper = openat(l->layers, JAIL_UPPER_IN, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fstat(l->lower, &st) == 0 && st.st_uid == geteuid() && upper >= 0 &&
           fsetxattr(upper, "user.cordon", "", 0, 0) == 0 &&
           fremovexattr(upper, "user.cordon") == 0;
}

/* A detached overlay; -1 with errno. The layers are named from the folder that we stand in. */
static int make_overlay(const struct laying *l)
{
    if (fchdir(l->layers) < 0 || mkdirat(l->layers, LOWER, 0755) < 0)
        return -1;
    int made = -1;
    if (move_mount(l->lower, "", l->layers, LOWER, MOVE_MOUNT_F_EMPTY_PATH) == 0) {
        FD_AUTO fs = fsopen("overlay", FSOPEN_CLOEXEC);
        if (fs >= 0 && fsconfig(fs, FSCONFIG_SET_STRING, "source", "cordon", 0) == 0 &&
            fsconfig(fs, FSCONFIG_SET_FLAG, "userxattr", NULL, 0) == 0 &&
            fsconfig(fs, FSCONFIG_SET_STRING, "lowerdir", LOWER, 0) == 0 &&
            fsconfig(fs, FSCONFIG_SET_STRING, "upperdir", JAIL_UPPER_IN, 0) == 0 &&
            fsconfig(fs, FSCONFIG_SET_STRING, "workdir", WORK, 0) == 0 &&
            fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
            made = fsmount(fs, FSMOUNT_CLOEXEC,
                           MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
        const int why = errno;
        (void)umount2(LOWER, MNT_DETACH);
        errno = why;
    }
    const int why = errno;
    (void)unlinkat(l->layers, LOWER, AT_REMOVEDIR);
    errno = why;
    return made;
}

/* The session's own folder, wherever a link of that name would lead. */
static int attach(const struct laying *l, int overlay)
{
    struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV};
    FD_AUTO at = (int)syscall(SYS_openat2, l->child->files, JAIL_WORKSPACE_IN, &how, sizeof how);
    return at < 0 || move_mount(overlay, "", at, "",
                                MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0
               ? -1
               : 0;
}

static int cover(void)
{
    return mount("cordon", JAIL_OWN "/" JAIL_LAYERS, "tmpfs",
                 MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=4k,nr_inodes=2,mode=0555");
}

/* All of a folder and itself. One that is not there is fine. */
static int remove_layer(int layers, const char *name)
{
    FD_AUTO dir = openat(layers, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return errno == ENOENT ? 0 : -1;
    jail_scratch_empty(dir, LIMIT_SCRATCH_MS);
    return unlinkat(layers, name, AT_REMOVEDIR);
}

/* What bears the names of the layers is new, once the old ones were moved. */
static void undo(const struct laying *l)
{
    if (!l->moved)
        return;
    (void)!remove_layer(l->layers, WORK);
    if (!l->kept)
        (void)!remove_layer(l->layers, JAIL_UPPER_IN);
    (void)!renameat(l->layers, OLD_UPPER, l->layers, JAIL_UPPER_IN);
    (void)!renameat(l->layers, OLD_WORK, l->layers, WORK);
    if (l->first && !l->kept)
        (void)!unlinkat(l->child->files, JAIL_LAYERS, AT_REMOVEDIR);
}

/* Both or none. What an earlier try could not remove goes first. */
static int move_old(int layers)
{
    if (remove_layer(layers, OLD_UPPER) < 0 || remove_layer(layers, OLD_WORK) < 0 ||
        renameat(layers, JAIL_UPPER_IN, layers, OLD_UPPER) < 0)
        return -1;
    if (renameat(layers, WORK, layers, OLD_WORK) == 0)
        return 0;
    (void)!renameat(layers, OLD_UPPER, layers, JAIL_UPPER_IN);
    return -1;
}

/* The layers that there were stay until the new ones are in their place. */
static int make_folders(struct laying *l)
{
    const struct jail_child *c = l->child;
    if (l->first && !l->kept && mkdirat(c->files, JAIL_LAYERS, 0755) < 0)
        return -1;
    l->layers = l->first
                    ? openat(c->files, JAIL_LAYERS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                    : fcntl(c->laid, F_DUPFD_CLOEXEC, 3);
    if (l->layers < 0)
        return -1;
    if (!l->first && move_old(l->layers) < 0)
        return -1;
    l->moved = true;
    return (l->kept ? 0 : mkdirat(l->layers, JAIL_UPPER_IN, 0755)) < 0 ||
                   mkdirat(l->layers, WORK, 0755) < 0
               ? -1
               : 0;
}

static int lay(void *p)
{
    struct laying *l = p;
    if (jail_within_mounts(l->child) < 0) {
        err_sys(&l->err, "enter the session's namespaces");
        return 1;
    }
    FD_AUTO overlay = -1;
    if (make_folders(l) < 0 || !can_layer(l) || (overlay = make_overlay(l)) < 0) {
        undo(l);
        l->none = true;
        return 0;
    }
    /* From here on the session has one of the two, or it is not to go on. */
    if (!l->first && umount2(JAIL_OWN "/" JAIL_WORKSPACE_IN, MNT_DETACH | UMOUNT_NOFOLLOW) < 0)
        err_sys(&l->err, "take the session's /workspace away");
    else if (attach(l, overlay) < 0)
        err_sys(&l->err, "lay the session's /workspace");
    else if (l->first && cover() < 0)
        err_sys(&l->err, "cover the layers of /workspace");
    else if (remove_layer(l->layers, OLD_UPPER) < 0 || remove_layer(l->layers, OLD_WORK) < 0)
        err_sys(&l->err, "remove the layers that were there");
    return l->err.code != 0;
}

/* ---- both ---- */

static int lay_upon(struct jail_child *c, int lower, bool kept, struct err *err)
{
    struct laying l = {
        .child = c, .first = c->laid < 0, .kept = kept, .layers = -1, .more_inodes = MORE_INODES};
    struct err full = ERR_INIT; /* files that threads of the guest made meanwhile stay */
    FD_AUTO checkout = fcntl(lower, F_DUPFD_CLOEXEC, 3);
    FD_AUTO mount = checkout < 0 ? -1 : open_lower(c, lower);
    if (checkout < 0)
        return err_sys(err, "the checkout");
    if (mount < 0)
        return JAIL_LAYER_NONE;
    l.lower = mount;
    int r = jail_within_run(make_room, &l, &l.err, err);
    if (r == 0) {
        r = jail_within_run(lay, &l, &l.err, err);
        l.more_inodes = 0;
        (void)!jail_within_run(make_room, &l, &l.err, &full);
    }
    FD_AUTO layers = l.layers;
    if (r < 0)
        return r;
    if (l.none)
        return JAIL_LAYER_NONE;
    fd_close(c->laid);
    fd_close(c->lower);
    c->laid = fd_take(&layers);
    c->lower = fd_take(&checkout);
    return 0;
}

int jail_child_layer(struct jail_child *child, int lower, struct err *err)
{
    return lay_upon(child, lower, false, err);
}

int jail_branch_layer(struct jail_child *branch, int lower, struct err *err)
{
    return lay_upon(branch, lower, true, err);
}
