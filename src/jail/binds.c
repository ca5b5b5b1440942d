/* SPDX-License-Identifier: Apache-2.0 */
/* What the caller shows to the guest. The source is opened once, here, and everything after works
 * on that descriptor. It may not be reached through a symbolic link: a guest that could write its
 * parent earlier would otherwise choose what is shown now. As real root the mount is mapped to the
 * owner of the folder: what the guest writes belongs to the owner, and what belongs to others stays
 * theirs.
 *
 * Waits: read in mapping; the parent, in a child that does nothing else; none (it ends with the parent's
 *          pipe); ends
 *        waitpid in mapping; that child; none (the kernel's own: it was killed); goes on */
#include "jail/outside.h"
#include "jail/put.h"

#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *option(const struct jail_bind *b)
{
    return b->out ? "--out" : b->copied ? "--in" : b->writable ? "--rw" : "--ro";
}

int jail_bind_place(const struct jail_bind *b, struct err *err)
{
    static const char *const taken[] = {"/live", "/dev",        "/.fd",
                                        "/proc", "/etc/passwd", "/etc/group"};
    const char *d = b->dest;
    if (d[0] != '/' || d[1] == 0 || strstr(d, "//") || strstr(d, "/./") || strstr(d, "/../") ||
        d[strlen(d) - 1] == '/' || strcmp(strrchr(d, '/'), "/..") == 0 ||
        strcmp(strrchr(d, '/'), "/.") == 0)
        return err_set(err, ERR_USAGE, "%s: '%s' is not an absolute path without . and ..",
                       option(b), d);
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        size_t n = strlen(taken[i]);
        if (strncmp(d, taken[i], n) == 0 && (d[n] == 0 || d[n] == '/'))
            return err_set(err, ERR_USAGE,
                           "%s: %s belongs to the jail itself; choose another destination",
                           option(b), d);
    }
    return 0;
}

int jail_bind_open(const struct jail_bind *b, struct err *err)
{
    struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_MAGICLINKS};
    if (b->given) {
        const int copy = fcntl(b->fd, F_DUPFD_CLOEXEC, 0);
        return copy < 0 ? err_sys(err, "%s", b->source) : copy;
    }
    if (!b->links)
        how.resolve |= RESOLVE_NO_SYMLINKS;
    FD_AUTO fd = (int)syscall(SYS_openat2, AT_FDCWD, b->source, &how, sizeof how);
    if (fd < 0 && errno == ELOOP && !b->links) {
        char real[4096];
        if (!realpath(b->source, real))
            real[0] = 0;
        return err_set(
            err, ERR_USAGE,
            "%s %.100s goes through a symbolic link, which a program may have made; name "
            "what it leads to%s%.100s",
            option(b), b->source, *real ? ": " : "", real);
    }
    if (fd < 0) {
        err_sys(err, "%s %s", option(b), b->source);
        return err_is_host(err) ? err->code : (err->code = ERR_USAGE);
    }
    struct stat st;
    if (fstat(fd, &st) < 0)
        return err_sys(err, "stat %s", b->source);
    if (b->inode && (st.st_dev != b->device || st.st_ino != b->inode))
        return err_set(err, ERR_STATE,
                       "%s %.160s was replaced by another folder after it was checked; try again",
                       option(b), b->source);
    if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
        return err_set(err, ERR_USAGE, "%s %s: neither a folder nor a regular file", option(b),
                       b->source);
    int want = R_OK | (S_ISDIR(st.st_mode) ? X_OK : 0) | (b->writable ? W_OK : 0);
    if (faccessat(fd, "", want, AT_EMPTY_PATH | AT_EACCESS) < 0) {
        err_sys(err, "%s %s", option(b), b->source);
        return err->code = ERR_USAGE;
    }
    return fd_take(&fd);
}

/* A user namespace whose only use is its map: on the disk UID, in the jail the guest's id. */
static int mapping(uid_t uid, gid_t gid, const struct jail_identity *id, struct err *err)
{
    int gate[2];
    if (pipe2(gate, O_CLOEXEC) < 0)
        return err_sys(err, "pipe");
    pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD | CLONE_NEWUSER, NULL, NULL, NULL, NULL);
    if (pid == 0) {
        char c;
        fd_close(gate[1]);
        while (read(gate[0], &c, 1) < 0 && errno == EINTR)
            ;
        _exit(0);
    }
    fd_close(gate[0]);
    int ns = -1;
    if (pid < 0) {
        err_sys(err, "a namespace to map mounts with");
    } else {
        char path[64], map[64];
        snprintf(path, sizeof path, "/proc/%d/uid_map", (int)pid);
        snprintf(map, sizeof map, "%u %u 1", uid, id->uid);
        int r = fd_write_file(AT_FDCWD, path, map);
        snprintf(path, sizeof path, "/proc/%d/gid_map", (int)pid);
        snprintf(map, sizeof map, "%u %u 1", gid, id->gid);
        if (r == 0)
            r = fd_write_file(AT_FDCWD, path, map);
        snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
        if (r == 0)
            ns = open(path, O_RDONLY | O_CLOEXEC);
        if (ns < 0)
            err_sys(err, "map the owner %u:%u to the guest", uid, gid);
    }
    fd_close(gate[1]);
    if (pid > 0)
        kill(pid, SIGKILL); /* its namespace lives by the descriptor */
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return ns >= 0 ? ns : ERR_SYS;
}

static int map_to_owner(const struct jail_bind *b, int source, const struct jail_identity *id,
                        struct err *err)
{
    struct stat st;
    FD_AUTO mount =
        open_tree(source, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE);
    if (mount < 0 || fstat(source, &st) < 0)
        return err_sys(err, "open_tree %s", b->source);
    /* A clone stays in the peer group of a shared mount: what the host mounts there later would show up inside. */
    struct mount_attr alone = {.propagation = MS_PRIVATE};
    if (mount_setattr(mount, "", AT_EMPTY_PATH | AT_RECURSIVE, &alone, sizeof alone) < 0)
        return err_sys(err, "make the mount of %s private", b->source);
    if (b->ours && S_ISREG(st.st_mode) && (~st.st_mode & (S_IROTH | S_IXOTH)) == 0)
        return fd_take(
            &mount); /* everybody may run it and nobody may write it: no map of ids is needed */
    FD_AUTO ns = mapping(st.st_uid, st.st_gid, id, err);
    if (ns < 0)
        return ns;
    struct mount_attr set = {.attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)ns};
    if (mount_setattr(mount, "", AT_EMPTY_PATH | AT_RECURSIVE, &set, sizeof set) < 0) {
        if (b->lower || b->copied) /* everybody may read it, and nobody writes it: a copy is made */
            return fd_take(&mount);
        err_sys(err,
                "%s %s: its file system cannot be mapped to the guest's id; use a folder on "
                "ext4, xfs or btrfs",
                option(b), b->source);
        return err_layer(err, "filesystem");
    }
    return fd_take(&mount);
}

int jail_bind_map_lower(int source, uid_t uid, gid_t gid, struct err *err)
{
    const struct jail_bind lower = {.source = "the checkout", .lower = true};
    const struct jail_identity id = {.uid = uid, .gid = gid};
    return map_to_owner(&lower, source, &id, err);
}

int jail_binds_open(struct jail_spec *spec, const struct jail_identity *id, int *fds,
                    struct err *err)
{
    int r = 0;
    size_t i = 0;
    spec->binds_detached = id->change && id->mapped_mounts && spec->mode == JAIL_FULL;
    for (; i < spec->nbinds; i++) {
        fds[i] = -1;
        r = spec->binds[i].lower ? 0 : jail_bind_place(&spec->binds[i], err);
        FD_AUTO source = r < 0 ? r : jail_bind_open(&spec->binds[i], err);
        if (source < 0) {
            r = source;
            break;
        }
        /* a file of our own memory is on no mount; everybody may read it */
        fds[i] = spec->binds_detached && !spec->binds[i].given
                     ? map_to_owner(&spec->binds[i], source, id, err)
                     : fd_take(&source);
        if (fds[i] < 0) {
            r = fds[i];
            break;
        }
    }
    while (r < 0 && i > 0)
        fd_close(fds[--i]);
    return r;
}

/* As jail_binds_open does for a jail that is built here: of a session the jail was built by another process. */
int jail_bind_seen(const struct jail_bind *b, int source, int files, struct err *err)
{
    struct jail_identity id;
    struct stat st;
    struct mount_attr closed = {.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
                                            (b->writable ? 0ULL : MOUNT_ATTR_RDONLY)};
    int r = jail_identity_choose(&id, err);
    if (r < 0)
        return r;
    if (!id.change || !id.mapped_mounts) {
        const int copy = fcntl(source, F_DUPFD_CLOEXEC, 0);
        return copy < 0 ? err_sys(err, "%s", b->source) : copy;
    }
    if (fstat(files, &st) < 0)
        return err_sys(err, "look who owns the files of %s", b->source);
    id.uid = st.st_uid;
    id.gid = st.st_gid;
    FD_AUTO mount = map_to_owner(b, source, &id, err);
    if (mount < 0)
        return mount;
    if (mount_setattr(mount, "", AT_EMPTY_PATH | AT_RECURSIVE, &closed, sizeof closed) < 0)
        return err_sys(err, "close down the mount of %s", b->source);
    return fd_take(&mount);
}
