/* SPDX-License-Identifier: Apache-2.0 */
/* The private root: a small tmpfs with read-only binds of the runtime, five devices, and one file system with a quota
 * for /workspace and /tmp. The builder makes the tmpfs anew for each run. Every part arrives as a detached mount by
 * descriptor (open_tree, mount_setattr, move_mount): the builder makes it read-only and nosuid before it attaches it.
 * The old root is gone before the guest runs. Destinations of the caller's own binds are looked up inside the new root
 * only (RESOLVE_IN_ROOT): a link in one of them leads nowhere else.
 *
 * Waits: write in small_file; a file system in memory; at once; an error */
#include "jail/copy.h"
#include "jail/inside.h"
#include "jail/put.h"

#include "sys/fd.h"
#include "sys/raw.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#define STAGE "/tmp" /* where the new root is hung until the pivot; any folder would do */
#define OLD   ".old" /* where the old root hangs after it; an empty folder when the guest comes */
#define FD    ".fd"  /* where the names of descriptors lead without a /proc */

static int open_in(int root, const char *path, uint64_t flags)
{
    struct open_how how = {.flags = flags | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
    return (int)syscall(SYS_openat2, root, path, &how, sizeof how);
}

/* A detached copy of what is at PATH (with its own submounts), closed down by ATTRS. */
static int detach(int dir, const char *path, uint64_t attrs, struct err *err)
{
    const unsigned empty = *path ? 0 : AT_EMPTY_PATH;
    FD_AUTO fd = open_tree(dir, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | empty);
    struct mount_attr set = {.attr_set = attrs};
    if (fd < 0)
        return err_sys(err, "open_tree %s", path);
    if (mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &set, sizeof set) < 0)
        return err_sys(err, "close down the mount of %s", path);
    return fd_take(&fd);
}

static int attach(int mount, int dir, const char *path, struct err *err)
{
    unsigned flags = MOVE_MOUNT_F_EMPTY_PATH | (*path ? 0 : MOVE_MOUNT_T_EMPTY_PATH);
    if (move_mount(mount, "", dir, path, flags) < 0)
        return err_sys(err, "attach the mount at %s", *path ? path : "its place");
    return 0;
}

static int usr(int root, struct err *err)
{
    FD_AUTO fd =
        detach(AT_FDCWD, "/usr", MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
    if (fd < 0)
        return fd;
    if (mkdirat(root, "usr", 0755) < 0)
        return err_sys(err, "mkdir usr");
    return attach(fd, root, "usr", err);
}

/* The folders of the runtime. Where the host has a link (usr-merge), so has the jail. */
static int runtime(int root, struct err *err)
{
    static const char *const dirs[] = {"/bin", "/lib", "/lib64", "/sbin", "/lib32"};
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
        char link[128];
        const char *name = dirs[i] + 1;
        ssize_t n = readlink(dirs[i], link, sizeof link - 1);
        if (n > 0) {
            link[n] = 0;
            if (symlinkat(link, root, name) < 0)
                return err_sys(err, "link %s", dirs[i]);
            continue;
        }
        if (errno == ENOENT)
            continue;
        FD_AUTO fd = detach(AT_FDCWD, dirs[i],
                            MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
        if (fd < 0)
            return fd;
        if (mkdirat(root, name, 0755) < 0)
            return err_sys(err, "mkdir %s", name);
        int r = attach(fd, root, name, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int small_file(int root, const char *path, const char *text, mode_t mode, struct err *err)
{
    FD_AUTO fd = openat(root, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        return err_sys(err, "write %s", path);
    return 0;
}

/* Single files and devices: {host path, attributes}. A missing one of /etc is no loss. */
static int pieces(int root, struct err *err)
{
    static const struct {
        const char *path;
        uint64_t attrs;
        bool dir, optional;
    } rows[] = {
        {"/etc/ld.so.cache", MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, false, true},
        {"/etc/alternatives", MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, true, true},
        {"/dev/null", MOUNT_ATTR_NOEXEC, false, false},
        {"/dev/zero", MOUNT_ATTR_NOEXEC, false, false},
        {"/dev/urandom", MOUNT_ATTR_NOEXEC, false, false},
    };
    if (mkdirat(root, "etc", 0755) < 0 || mkdirat(root, "dev", 0755) < 0)
        return err_sys(err, "mkdir /etc, /dev");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        FD_AUTO fd =
            detach(AT_FDCWD, rows[i].path, rows[i].attrs | MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID,
                   rows[i].optional ? NULL : err);
        if (fd < 0 && rows[i].optional)
            continue;
        if (fd < 0)
            return fd;
        const char *name = rows[i].path + 1;
        if ((rows[i].dir ? mkdirat(root, name, 0755) : mknodat(root, name, S_IFREG | 0444, 0)) < 0)
            return err_sys(err, "a place for %s", rows[i].path);
        int r = attach(fd, root, name, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Links, empty folders and files that are no mounts. */
static int small_things(int root, struct err *err)
{
    if (symlinkat(".." JAIL_OWN "/tmp", root, "dev/shm") < 0 ||
        symlinkat("urandom", root, "dev/random") < 0 || mkdirat(root, "live", 0755) < 0 ||
        mkdirat(root, &JAIL_OWN[1], 0755) < 0 || mkdirat(root, OLD, 0755) < 0 ||
        symlinkat(&(JAIL_OWN "/workspace")[1], root, "workspace") < 0 ||
        symlinkat(&(JAIL_OWN "/tmp")[1], root, "tmp") < 0)
        return err_sys(err, "links and folders of the private root");
    int r = small_file(root, "etc/passwd",
                       "guest:x:1000:1000:guest:/tmp:/bin/sh\n"
                       "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
                       0444, err);
    if (r == 0)
        r = small_file(root, "etc/group", "guest:x:1000:\nnogroup:x:65534:\n", 0444, err);
    /* readable by its mode, but no Landlock rule opens it: the launcher's proof */
    if (r == 0 && mknodat(root, ".sealed", S_IFREG | 0444, 0) < 0)
        r = err_sys(err, "make .sealed");
    return r;
}

/* /workspace as an overlay: LOWER below, and what the guest changes in the file system that counts it. Whiteouts and
 * opaque folders need attributes there; a kernel without them (before 6.6) gets a copy instead, and so does root where the
 * file system of the state folder cannot be mapped to the guest's id. The layers themselves
 * are covered before the guest comes: nobody may change an upper layer but through the overlay. */
static int layers(const struct jail_spec *spec, int quota, int lower, struct err *err)
{
    static const char options[] = "userxattr,lowerdir=" STAGE JAIL_OWN "/" JAIL_LAYERS "/lower"
                                  ",upperdir=" STAGE JAIL_OWN "/" JAIL_UPPER
                                  ",workdir=" STAGE JAIL_OWN "/" JAIL_LAYERS "/work";
    const unsigned long flags = MS_NOSUID | MS_NODEV | (spec->run_written ? 0 : MS_NOEXEC);
    if (mkdirat(quota, JAIL_LAYERS, 0755) < 0 || mkdirat(quota, JAIL_LAYERS "/lower", 0755) < 0)
        return err_sys(err, "mkdir for the layers of /workspace");
    int r = attach(lower, quota, JAIL_LAYERS "/lower", err);
    if (r < 0)
        return r;
    if (mkdirat(quota, JAIL_UPPER, 0755) < 0 || mkdirat(quota, JAIL_LAYERS "/work", 0755) < 0)
        return err_sys(err, "mkdir for the layers of /workspace");
    FD_AUTO upper = openat(quota, JAIL_UPPER, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat st; /* an owner that has no number in here could not be given to a changed file */
    const bool ours = fstat(lower, &st) == 0 && st.st_uid == geteuid();
    const bool attributes = ours && upper >= 0 && fsetxattr(upper, "user.cordon", "", 0, 0) == 0 &&
                            fremovexattr(upper, "user.cordon") == 0;
    if (!attributes ||
        mount("cordon", STAGE JAIL_OWN "/workspace", "overlay", flags, options) < 0) {
        if (unlinkat(quota, JAIL_UPPER, AT_REMOVEDIR) < 0) /* its absence says: a copy */
            return err_sys(err, "remove the upper layer of /workspace");
        FD_AUTO from = openat(quota, JAIL_LAYERS "/lower", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        FD_AUTO to = openat(quota, "workspace", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        r = from < 0 || to < 0 ? err_sys(err, "open the layers of /workspace")
                               : jail_copy_tree(from, to, err);
    }
    if (r == 0 &&
        mount("cordon", STAGE JAIL_OWN "/" JAIL_LAYERS, "tmpfs",
              MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=4k,nr_inodes=2,mode=0555") < 0)
        r = err_sys(err, "cover the layers of /workspace");
    return r;
}

/* One tmpfs for /workspace and /tmp, so that bytes and inodes are counted together. Both are
 * folders of it, not mounts of their own: each further mount would cost its removal, too. It lies below /live,
 * not on it: Landlock looks at the folders above a mount, never at the one that it hides. */
static int writable(const struct jail_spec *spec, int root, int *ret_quota, struct err *err)
{
    char options[96];
    snprintf(options, sizeof options, "mode=0755,size=%llu,nr_inodes=%llu",
             (unsigned long long)spec->limits.disk,
             /* the root and the two folders are ours, and so are the layers' */
             (unsigned long long)spec->limits.inodes + 3 + (jail_spec_layered(spec) ? 6 : 0));
#ifdef CORDON_LAYER_SWITCHES
    if (jail_off(spec, quota))
        snprintf(options, sizeof options, "mode=0755");
#endif
    unsigned long flags = MS_NOSUID | MS_NODEV | (spec->run_written ? 0 : MS_NOEXEC);
    if (mount("cordon", STAGE JAIL_OWN, "tmpfs", flags, options) < 0)
        return err_sys(err, "mount the quota'd tmpfs");
    FD_AUTO quota = openat(root, &JAIL_OWN[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (quota < 0 || mkdirat(quota, "workspace", 0755) < 0 || mkdirat(quota, "tmp", 01777) < 0 ||
        fchmodat(quota, "tmp", 01777, 0) < 0)
        return err_sys(err, "mkdir in the quota'd tmpfs");
    *ret_quota = fd_take(&quota);
    return 0;
}

/* The place DEST inside ROOT, made if it is not there. */
static int place(int root, const char *dest, bool dir, struct err *err)
{
    char path[4096];
    size_t len = strlen(dest);
    int fd = open_in(root, dest, O_PATH);
    if (fd >= 0)
        return fd;
    if (len >= sizeof path)
        return err_set(err, ERR_USAGE, "%.60s... is too long a path", dest);
    memcpy(path, dest, len + 1);
    for (char *slash = path; slash;) {
        slash = strchr(slash + 1, '/');
        if (slash)
            *slash = 0;
        FD_AUTO have = open_in(root, path, O_PATH);
        if (have < 0) {
            char *base = strrchr(path, '/');
            *base = 0;
            FD_AUTO parent = open_in(root, *path ? path : "/", O_PATH | O_DIRECTORY);
            *base = '/';
            int made = parent < 0     ? -1
                       : slash || dir ? mkdirat(parent, base + 1, 0755)
                                      : openat(parent, base + 1,
                                               O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
            if (made < 0)
                return err_sys(err, "make a place for %s inside", dest);
            if (made > 0)
                fd_close(made);
        }
        if (slash)
            *slash = '/';
    }
    fd = open_in(root, dest, O_PATH);
    return fd >= 0 ? fd : err_sys(err, "open %s inside", dest);
}

/* The caller's binds. As real root the supervisor sent detached mounts, mapped to the owner;
 * otherwise it sent the place it had checked, and what we open here must be that very place. */
static int own_bind(const struct jail_spec *spec, size_t i, int sent, struct err *err)
{
    const struct jail_bind *b = &spec->binds[i];
    uint64_t attrs =
        MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
        (b->writable ? spec->run_written ? 0ULL : MOUNT_ATTR_NOEXEC : MOUNT_ATTR_RDONLY);
    if (b->given) /* a file of the supervisor's memory: it is copied, and on no mount */
        return dup(sent);
    if (spec->binds_detached) {
        struct mount_attr set = {.attr_set = attrs};
        if (mount_setattr(sent, "", AT_EMPTY_PATH | AT_RECURSIVE, &set, sizeof set) < 0)
            return err_sys(err, "close down the mount of %s", b->source);
        return dup(sent);
    }
    struct open_how how = {.flags = O_PATH | O_CLOEXEC,
                           .resolve = RESOLVE_NO_MAGICLINKS |
                                      (b->links ? 0 : (uint64_t)RESOLVE_NO_SYMLINKS)};
    FD_AUTO here = (int)syscall(SYS_openat2, AT_FDCWD, b->source, &how, sizeof how);
    struct stat want, got;
    if (here < 0 || fstat(here, &got) < 0 || fstat(sent, &want) < 0)
        return err_sys(err, "open %s", b->source);
    if (want.st_dev != got.st_dev || want.st_ino != got.st_ino)
        return err_set(err, ERR_STATE, "%s changed while the jail was built", b->source);
    return detach(here, "", attrs, err);
}

static int link_descriptors(int root, const char *to, struct err *err)
{
    static const char *const names[] = {"dev/fd", "dev/stdin", "dev/stdout", "dev/stderr"};
    static const char *const ends[] = {"", "/0", "/1", "/2"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[32];
        snprintf(path, sizeof path, "/%s/self/fd%s", to, ends[i]);
        if (symlinkat(path, root, names[i]) < 0)
            return err_sys(err, "link /%s", names[i]);
    }
    return 0;
}

/* A /proc of its own processes, and the names of its descriptors that lead there. */
static int own_proc(int root, struct err *err)
{
    if (mkdirat(root, "proc", 0555) < 0 ||
        mount("proc", STAGE "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC,
              "subset=pid,hidepid=invisible") < 0)
        return err_sys(err,
                       "mount a masked /proc (leave --proc out, or unmask the container's /proc)");
    return link_descriptors(root, "proc", err);
}

/* What /dev/fd leads to where nobody asked for a /proc. Only procfs has such names, so it is one, but no file of it
 * can be opened: no Landlock rule lets a file below FD be read or written, the mount is read-only, and processes that
 * the guest could not trace (its init) are not in it. A name in self/fd leads out of it, to the open file itself, and
 * is judged by the rules for that file. What is left to see are numbers of the guest's own processes and where
 * links of theirs lead. A container that masks its /proc forbids the mount, and the names then lead nowhere. */
static int descriptor_names(int root, struct err *err)
{
    if (mkdirat(root, FD, 0555) < 0)
        return err_sys(err, "mkdir /" FD);
    if (mount("proc", STAGE "/" FD, "proc", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
              "subset=pid,hidepid=ptraceable") < 0 &&
        errno != EPERM)
        return err_sys(err, "mount what the names of descriptors lead to");
    return link_descriptors(root, FD, err);
}

/* SOURCE, which is open, by the way that B asks for. */
static int show_bind(const struct jail_spec *spec, const struct jail_bind *b, int root, int source,
                     int quota, struct err *err)
{
    struct stat st;
    if (b->lower)
        return layers(spec, quota, source, err);
    if (b->copied)
        return jail_put(source, quota, b, err);
    FD_AUTO at = fstat(source, &st) < 0 ? err_sys(err, "stat %s", b->source)
                                        : place(root, b->dest, S_ISDIR(st.st_mode), err);
    return at < 0 ? at : attach(source, at, "", err);
}

/* Everything in its place under STAGE, then STAGE is the root. */
static int fill_root(const struct jail_spec *spec, const int *own, int *ret_quota, struct err *err)
{
    if (mount("cordon", STAGE, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
              "mode=0755,size=1m,nr_inodes=512") < 0)
        return err_sys(err, "mount the private root");
    FD_AUTO root = open(STAGE, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = root < 0 ? err_sys(err, "open the private root") : usr(root, err);
    if (r == 0)
        r = runtime(root, err);
    if (r == 0)
        r = pieces(root, err);
    if (r == 0)
        r = small_things(root, err);
    if (r == 0 && spec->kind != JAIL_KIND_TEMPLATE) /* its children bring their own */
        r = writable(spec, root, ret_quota, err);
    if (r == 0 && spec->proc)
        r = own_proc(root, err);
    if (r == 0 && jail_spec_names_descriptors(spec))
        r = descriptor_names(root, err);
    for (size_t i = 0; i < spec->nbinds && r == 0; i++)
        r = show_bind(spec, &spec->binds[i], root, own[i], *ret_quota, err);
    struct mount_attr sealed = {.attr_set = MOUNT_ATTR_RDONLY};
    if (r == 0 && (mount_setattr(root, "", AT_EMPTY_PATH, &sealed, sizeof sealed) < 0 ||
                   fchdir(root) < 0 || syscall(SYS_pivot_root, ".", OLD) < 0))
        r = err_sys(err, "enter the private root");
    return r;
}

/* Taking the old root off waits for the other processors: a time in which the launcher can work. Its
 * memory is ours. */
int jail_root_leave_old(const struct jail_spec *spec)
{
    if (spec->mode != JAIL_FULL || jail_off(spec, mount))
        return 0;
    return (int)raw_syscall(SYS_umount2, (long)("/" OLD), MNT_DETACH, 0, 0, 0);
}

int jail_root_build(const struct jail_spec *spec, const int *bind_fds, int *ret_quota,
                    struct err *err)
{
    int own[LIMIT_BINDS], r = 0;
    size_t opened = 0;
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return err_sys(err, "cut the mount table off from the host's");
    if (jail_off(spec, mount)) /* a test looks whether the other layers hold */
        return mount("cordon", "/mnt", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
                     "size=100m,mode=0777") < 0
                   ? err_sys(err, "mount a folder to write in")
                   : 0;
    while (opened < spec->nbinds && r == 0) { /* before the stage hides what lies there */
        r = own[opened] = own_bind(spec, opened, bind_fds[opened], err);
        if (r >= 0) {
            r = 0;
            opened++;
        }
    }
    if (r == 0)
        r = fill_root(spec, own, ret_quota, err);
    while (opened)
        fd_close(own[--opened]);
    return r;
}
