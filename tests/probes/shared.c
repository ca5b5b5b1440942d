/* SPDX-License-Identifier: Apache-2.0 */
/* What a guest can leave in a folder that the caller lent it with --rw. The caller will open,
 * list, run and delete what lies there, often with more rights than the guest had; the test looks
 * at the folder from outside after each of these. */
#include "probe.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

static char path_buf[4096];

static const char *in(const char *folder, const char *name)
{
    snprintf(path_buf, sizeof path_buf, "%s/%s", folder, name);
    return path_buf;
}

static bool has_set_id(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && (st.st_mode & (S_ISUID | S_ISGID));
}

static void set_id(int argc, char **argv)
{
    const char *folder = need(argc, argv, 0);
    char file[4096], dir[4096];
    snprintf(file, sizeof file, "%s/shell", folder);
    snprintf(dir, sizeof dir, "%s/dir", folder);
    int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0755);
    if (fd < 0 || write(fd, "#!/bin/sh\n", 10) != 10)
        broken("%s: %s", file, error_name(errno));
    tried("chmod 4755", chmod(file, 04755));
    tried("chmod 2755", chmod(file, 02755));
    tried("fchmod 6755", fchmod(fd, 06755));
    tried("fchmodat", fchmodat(AT_FDCWD, file, 04755, 0));
#ifdef SYS_fchmodat2
    tried("fchmodat2", syscall(SYS_fchmodat2, AT_FDCWD, file, 04755, 0));
#endif
    close(fd);
    unlink(file);
    fd = open(file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 04755);
    tried("open 4755", fd >= 0 && has_set_id(file) ? fd : -1);
    unlink(file);
    tried("mknod 4755", mknod(file, S_IFREG | 04755, 0) == 0 && has_set_id(file) ? 1 : -1);
    unlink(file);
    tried("mkdir 6755", mkdir(dir, 06755) == 0 && has_set_id(dir) ? 1 : -1);
    struct {
        uint64_t flags, mode, resolve;
    } how = {O_CREAT | O_WRONLY | O_CLOEXEC, 04755, 0};
    unlink(file);
    tried("openat2 4755",
          syscall(SYS_openat2, AT_FDCWD, file, &how, sizeof how) >= 0 && has_set_id(file) ? 1 : -1);
    none_may_have_succeeded();
}

/* chmod and chown in turns, hoping that one clears what the other's check looked at. */
static void set_id_race(int argc, char **argv)
{
    const char *file = in(need(argc, argv, 0), "raced");
    int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0777);
    if (fd < 0)
        broken("%s: %s", file, error_name(errno));
    for (int i = 0; i < 3000; i++) {
        fchmod(fd, (mode_t)(0777 | (i & 1 ? 04000 : 0)));
        fchown(fd, getuid(), getgid());
        ftruncate(fd, i & 7);
        if (has_set_id(file))
            reached("a set-id bit after %d tries", i);
    }
    contained("3000 tries: no set-id bit");
}

static void owner(int argc, char **argv)
{
    const char *file = in(need(argc, argv, 0), "given");
    int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0777);
    if (fd < 0)
        broken("%s: %s", file, error_name(errno));
    struct stat before, after;
    fstat(fd, &before);
    const struct {
        uid_t uid;
        gid_t gid;
    } others[] = {{0, 0}, {65534, 65534}, {(uid_t)-1, 0}, {1, (gid_t)-1}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        int r = fchown(fd, others[i].uid, others[i].gid);
        fstat(fd, &after);
        bool changed = after.st_uid != before.st_uid || after.st_gid != before.st_gid;
        tried("chown", r == 0 && changed ? 0 : -1);
    }
    none_may_have_succeeded();
}

static void xattrs(int argc, char **argv)
{
    const char *file = in(need(argc, argv, 0), "labelled");
    int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0777);
    if (fd < 0)
        broken("%s: %s", file, error_name(errno));
    static const unsigned char all_caps[20] = {1,    0, 0, 2, 0xff, 0xff, 0xff,
                                               0xff, 0, 0, 0, 0,    0xff, 1};
    static const unsigned char acl[28] = {2, 0, 0, 0, 1, 0, 7, 0, 0xff, 0xff, 0xff, 0xff};
    tried("security.capability",
          fsetxattr(fd, "security.capability", all_caps, sizeof all_caps, 0));
    tried("trusted", fsetxattr(fd, "trusted.overlay.opaque", "y", 1, 0));
    tried("security.ima", fsetxattr(fd, "security.ima", "y", 1, 0));
    tried("bad acl", fsetxattr(fd, "system.posix_acl_access", acl, sizeof acl, 0));
    none_may_have_succeeded();
}

/* A file that its owner can neither change nor delete. */
static void immutable(int argc, char **argv)
{
    const char *file = in(need(argc, argv, 0), "stuck");
    int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0777);
    if (fd < 0)
        broken("%s: %s", file, error_name(errno));
    long flags = FS_IMMUTABLE_FL;
    tried("immutable", ioctl(fd, FS_IOC_SETFLAGS, &flags));
    flags = FS_APPEND_FL;
    tried("append-only", ioctl(fd, FS_IOC_SETFLAGS, &flags));
    none_may_have_succeeded();
}

static void device(int argc, char **argv)
{
    const char *folder = need(argc, argv, 0);
    tried("disk", mknod(in(folder, "disk"), S_IFBLK | 0666, makedev(254, 0)));
    tried("mem", mknod(in(folder, "mem"), S_IFCHR | 0666, makedev(1, 1)));
    int white = mknod(in(folder, "whiteout"), S_IFCHR | 0666, makedev(0, 0));
    tried("whiteout", white == 0 && !filtered() ? (errno = 0, -1) : white);
    /* RENAME_WHITEOUT leaves such a device behind without mknod */
    char from[4096], to[4096];
    snprintf(from, sizeof from, "%s/from", folder);
    snprintf(to, sizeof to, "%s/to", folder);
    close(open(from, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    int r = renameat2(AT_FDCWD, from, AT_FDCWD, to, 4 /* RENAME_WHITEOUT */);
    tried("rename whiteout", r == 0 && !filtered() ? (errno = 0, -1) : r); /* 0:0 opens nothing */
    none_may_have_succeeded();
}

/* Traps for whoever looks at the folder afterwards. Making them is allowed; falling for them is
 * not: the test runs cordon on the folder again and reads it as a supervisor would. */
static void traps(int argc, char **argv)
{
    const char *folder = need(argc, argv, 0), *secret = need(argc, argv, 1);
    int bad = 0;
    bad |= symlink(secret, in(folder, "result.json")) < 0;
    bad |= symlink("/", in(folder, "d")) < 0;
    bad |= symlink("loop", in(folder, "loop")) < 0;
    if (bad)
        broken("symlink: %s", error_name(errno));
    const char *fifo = mkfifo(in(folder, "out"), 0666) < 0 ? error_name(errno) : "made";
    if (file_holds(in(folder, "result.json"), "") >= 0)
        reached("the secret by a link in the shared folder");
    contained("a link to the secret, a link to /, a loop; fifo: %s", fifo);
}

static void hard_link(int argc, char **argv)
{
    const char *folder = need(argc, argv, 0), *ro = need(argc, argv, 1);
    char from[4096];
    snprintf(from, sizeof from, "%s/readable", ro);
    tried("from --ro", link(from, in(folder, "linked")));
    tried("from /usr", link("/usr/bin/env", in(folder, "env")));
    tried("from /etc", link("/etc/passwd", in(folder, "passwd")));
    tried("to outside", link(in(folder, "linked"), "/usr/bin/linked"));
    none_may_have_succeeded();
}

/* Out of the shared folder by its own ".." and by renames across its edge. */
static void edge(int argc, char **argv)
{
    const char *folder = need(argc, argv, 0), *secret = need(argc, argv, 1);
    char path[4096];
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        broken("%s: %s", folder, error_name(errno));
    const char *name = strrchr(secret, '/') + 1;
    snprintf(path, sizeof path, "../%s", name);
    tried("../secret", openat(fd, path, O_RDONLY | O_CLOEXEC));
    tried("create beside", openat(fd, "../beside", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    tried("rename out", renameat(fd, ".", fd, "../renamed"));
    mkdirat(fd, "sub", 0700);
    int sub = openat(fd, "sub", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char *up = strdup("../../../../../../../..");
    snprintf(path, sizeof path, "%s%s", up, secret);
    tried("far up", openat(sub, path, O_RDONLY | O_CLOEXEC));
    free(up);
    none_may_have_succeeded();
}

/* A lease makes whoever opens the file outside wait; it must be gone with the run. */
static void lease(int argc, char **argv)
{
    const char *file = in(need(argc, argv, 0), "leased");
    int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        broken("%s: %s", file, error_name(errno));
    int r = fcntl(fd, F_SETLEASE, F_WRLCK);
    contained("lease: %s; the test opens the file", r < 0 ? error_name(errno) : "taken");
}

const struct probe probes_shared[] = {
    {"rw-set-id", "a set-id program in a shared folder", "14", 5, "syscalls", "benign-shared",
     set_id, .options = "--rw {rw}", .args = "{rw}", .rule = "chmod"},
    {"rw-set-id-race", "the same by a race", "14", 5, "syscalls", "benign-shared", set_id_race,
     .options = "--rw {rw}", .args = "{rw}"},
    {"rw-owner", "files given to root", "14,18", 5, "process", "benign-shared", owner,
     .options = "--rw {rw}", .args = "{rw}"},
    {"rw-xattrs", "capabilities and labels on a shared file", "14", 5, "process", "benign-shared",
     xattrs, .options = "--rw {rw}", .args = "{rw}"},
    {"rw-immutable", "a file that cannot be deleted", "18", 5, "process", "benign-shared",
     immutable, .options = "--rw {rw}", .args = "{rw}"},
    {"rw-device", "a device in a shared folder", "18", 5, "filesystem", "benign-shared", device,
     .options = "--rw {rw}", .args = "{rw}"},
    {"rw-traps", "links, loops and fifos for the next reader", "17,18", 5, "filesystem",
     "benign-shared", traps, .options = "--rw {rw}", .args = "{rw} {secret}"},
    {"rw-hard-link", "hard links across the folder's edge", "18", 5, "filesystem", "benign-shared",
     hard_link, .options = "--rw {rw}", .args = "{rw} {ro}"},
    {"rw-edge", "over the folder's edge by .. and rename", "2,19", 5, "filesystem", "benign-shared",
     edge, .options = "--rw {rw}", .args = "{rw} {secret}"},
    {"rw-lease", "a lease that stalls the next reader", "18", 5, "process", "benign-shared", lease,
     .options = "--rw {rw}", .args = "{rw}"},
    {0},
};
