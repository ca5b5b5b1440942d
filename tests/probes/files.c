/* SPDX-License-Identifier: Apache-2.0 */
/* Files outside, and files shown read-only. Everything here is judged by effect: what was read
 * that should not be, what was changed. */
#include "probe.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

static void read_outside(int argc, char **argv)
{
    const char *secret = need(argc, argv, 0), *word = need(argc, argv, 1);
    char again[4096];
    const char *const paths[] = {
        secret,     "/etc/shadow",   "/etc/gshadow",    "/root/.bashrc", "/root/.ssh", "/home",
        "/var/lib", "/proc/1/root",  "/boot",           "/run",          "/mnt",       "/media",
        "/opt",     "/etc/hostname", "/etc/machine-id", "/etc/ssh",      "/lost+found"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct stat st;
        if (stat(paths[i], &st) == 0 && S_ISDIR(st.st_mode)) {
            DIR *d = opendir(paths[i]);
            struct dirent *e = NULL;
            while (d && (e = readdir(d)) && e->d_name[0] == '.')
                ;
            if (e)
                reached("%s shows %s", paths[i], e->d_name);
        } else if (open(paths[i], O_RDONLY | O_CLOEXEC) >= 0) {
            reached("%s opens", paths[i]);
        }
    }
    snprintf(again, sizeof again, "/tmp/../../../..%s", secret);
    if (file_holds(again, word) > 0)
        reached("the secret by ..");
    contained("none of the paths outside: %s", error_name(errno));
}

static void write_outside(int argc, char **argv)
{
    const char *secret = need(argc, argv, 0);
    char path[4096];
    tried("the secret", open(secret, O_WRONLY | O_CLOEXEC));
    snprintf(path, sizeof path, "/tmp/../../../..%s", secret);
    tried("the secret by ..", open(path, O_WRONLY | O_TRUNC | O_CLOEXEC));
    tried("/tmp/../etc/shadow", open("/tmp/../etc/shadow", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    tried("/etc/passwd", open("/etc/passwd", O_WRONLY | O_CLOEXEC));
    tried("/new", open("/new", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    tried("/usr/new", open("/usr/new", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    tried("/dev/new", open("/dev/new", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    none_may_have_succeeded();
}

static void symlink_out(int argc, char **argv)
{
    const char *secret = need(argc, argv, 0);
    if (symlink(secret, "/tmp/escape") < 0 || symlink("/", "/workspace/root") < 0)
        broken("symlink: %s", error_name(errno));
    char path[4096];
    snprintf(path, sizeof path, "/workspace/root%s", secret);
    tried("by a link", open("/tmp/escape", O_RDONLY | O_CLOEXEC));
    tried("by a link to /", open(path, O_RDONLY | O_CLOEXEC));
    tried("write by a link", open("/tmp/escape", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    none_may_have_succeeded();
}

/* A folder that is a folder when looked at and a link when used. */
static void swap(int argc, char **argv)
{
    const char *secret = need(argc, argv, 0), *word = need(argc, argv, 1);
    char path[4096];
    snprintf(path, sizeof path, "/workspace/d%s", secret);
    for (int i = 0; i < 2000; i++) {
        mkdir("/workspace/d", 0700);
        rename("/workspace/d", "/workspace/e");
        symlink("/", "/workspace/d");
        if (file_holds(path, word) > 0)
            reached("the secret through a swapped folder");
        unlink("/workspace/d");
        rmdir("/workspace/e");
    }
    contained("2000 swaps: %s", error_name(errno));
}

static void ro_write(int argc, char **argv)
{
    const char *folder = need(argc, argv, 0);
    char file[4096], other[4096];
    snprintf(file, sizeof file, "%s/readable", folder);
    snprintf(other, sizeof other, "%s/new", folder);
    if (access(file, R_OK) < 0)
        broken("%s: %s", file, error_name(errno));
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    tried("open rw", open(file, O_RDWR | O_CLOEXEC));
    tried("truncate", truncate(file, 0));
    tried("create", open(other, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    tried("unlink", unlink(file));
    tried("rename", rename(file, other));
    tried("chmod", chmod(file, 0777));
    tried("fchmod", fchmod(fd, 0777));
    tried("chown", chown(file, 0, 0));
    tried("utimes", utimes(file, NULL));
    tried("mkdir", mkdir(other, 0700));
    tried("symlink", symlink("/", other));
    tried("link", link(file, "/tmp/linked"));
    tried("setxattr", setxattr(file, "user.x", "y", 1, 0));
    tried("fallocate", fallocate(fd, 0, 0, 1));
    none_may_have_succeeded();
}

/* /dev/null is one file for the whole machine. */
static void dev_null(int argc, char **argv)
{
    (void)argc, (void)argv;
    tried("chmod", chmod("/dev/null", 0));
    tried("chown", chown("/dev/null", getuid(), getgid()));
    tried("unlink", unlink("/dev/null"));
    tried("rename", rename("/dev/null", "/tmp/null"));
    tried("utimes", utimes("/dev/null", (struct timeval[2]){{1, 0}, {1, 0}}));
    tried("setxattr", setxattr("/dev/null", "user.x", "y", 1, 0));
    tried("link", link("/dev/null", "/tmp/null"));
    none_may_have_succeeded();
}

static void devices(int argc, char **argv)
{
    (void)argc, (void)argv;
    static const char *const allowed[] = {".",       "..", "null",  "zero",   "full",   "random",
                                          "urandom", "fd", "stdin", "stdout", "stderr", "shm"};
    DIR *dev = opendir("/dev");
    for (struct dirent *d; dev && (d = readdir(dev));) {
        bool good = false;
        for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
            good |= strcmp(d->d_name, allowed[i]) == 0;
        if (!good)
            reached("/dev/%s is there", d->d_name);
    }
    static const char *const nodes[] = {"mem",         "kmsg",         "kvm",     "fuse", "vsock",
                                        "userfaultfd", "loop-control", "net/tun", "vda",  "port",
                                        "rtc0",        "pts/0",        "mqueue",  "hwrng"};
    char path[64];
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        snprintf(path, sizeof path, "/dev/%s", nodes[i]);
        tried(nodes[i], open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    }
    none_may_have_succeeded();
}

/* A device node counts when it opens. */
static void mknod_(int argc, char **argv)
{
    (void)argc, (void)argv;
    static const struct {
        const char *path;
        mode_t mode;
        unsigned major, minor;
    } nodes[] = {{"/tmp/mem", S_IFCHR | 0666, 1, 1},
                 {"/tmp/disk", S_IFBLK | 0666, 254, 0},
                 {"/tmp/tty", S_IFCHR | 0666, 5, 0},
                 {"/tmp/kmsg", S_IFCHR | 0666, 1, 11},
                 {"/tmp/fuse", S_IFCHR | 0666, 10, 229}};
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        int made = mknod(nodes[i].path, nodes[i].mode, makedev(nodes[i].major, nodes[i].minor));
        tried(nodes[i].path, made < 0 ? -1 : open(nodes[i].path, O_RDWR | O_NONBLOCK | O_CLOEXEC));
    }
    none_may_have_succeeded();
}

/* A handle names a file by inode, past every path rule; 2 is the root folder of most disks. */
static void handle(int argc, char **argv)
{
    const char *folder = need(argc, argv, 0);
    struct {
        struct file_handle h;
        unsigned char id[128];
    } f = {.h = {.handle_bytes = 128}};
    int mount_id, dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (name_to_handle_at(AT_FDCWD, folder, &f.h, &mount_id, 0) < 0)
        f.h = (struct file_handle){.handle_bytes = 8, .handle_type = 1};
    static const uint32_t root_inode[2] = {2, 0};
    tried("own handle", open_by_handle_at(dir, &f.h, O_RDONLY | O_CLOEXEC));
    f.h.handle_bytes = 8;
    f.h.handle_type = 1;
    memcpy(f.h.f_handle, root_inode, sizeof root_inode);
    tried("root of the disk", open_by_handle_at(dir, &f.h, O_RDONLY | O_CLOEXEC));
    none_may_have_succeeded();
}

/* O_PATH opens without asking; what can be done with it afterwards? */
static void o_path(int argc, char **argv)
{
    const char *folder = need(argc, argv, 0), *secret = need(argc, argv, 1);
    char file[4096], again[64];
    snprintf(file, sizeof file, "%s/readable", folder);
    int p = open(file, O_PATH | O_CLOEXEC), root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    snprintf(again, sizeof again, "/proc/self/fd/%d", p);
    tried("reopen for writing", open(again, O_RDWR | O_CLOEXEC));
    tried("truncate", truncate(again, 0));
    tried("linkat", linkat(p, "", AT_FDCWD, "/tmp/linked", AT_EMPTY_PATH));
    tried("above the root", openat(root, "../../../..", O_RDONLY | O_CLOEXEC) >= 0 &&
                                    openat(root, secret + 1, O_RDONLY | O_CLOEXEC) >= 0
                                ? 1
                                : -1);
    tried("magic link", open("/proc/1/root", O_PATH | O_CLOEXEC));
    none_may_have_succeeded();
}

/* openat2 and fchmodat2 are newer than most filters and say their modes behind a pointer. */
static void newer_calls(int argc, char **argv)
{
    const char *secret = need(argc, argv, 0);
    struct {
        uint64_t flags, mode, resolve;
    } how = {O_RDONLY | O_CLOEXEC, 0, 0}, make = {O_CREAT | O_WRONLY | O_CLOEXEC, 04755, 0};
    tried("openat2 secret", syscall(SYS_openat2, AT_FDCWD, secret, &how, sizeof how));
    long fd = syscall(SYS_openat2, AT_FDCWD, "/tmp/set-id", &make, sizeof make);
    struct stat st;
    /* in its own /tmp such a bit is worth nothing; what counts is that no call slips by the filter
     */
    bool set_id = fd >= 0 && fstat((int)fd, &st) == 0 && (st.st_mode & 04000);
    tried("openat2 4755", set_id && filtered() ? 1 : -1);
#ifdef SYS_fchmodat2
    tried("fchmodat2 4755",
          syscall(SYS_fchmodat2, AT_FDCWD, "/tmp", 04755, 0) == 0 && filtered() ? 1 : -1);
#endif
    none_may_have_succeeded();
}

const struct probe probes_files[] = {
    {"read-outside", "files and folders outside", "2,19", 5, "filesystem", "benign-files",
     read_outside, .args = "{secret} {word}"},
    {"write-outside", "write files outside", "19", 5, "filesystem", "benign-files", write_outside,
     .args = "{secret}"},
    {"symlink-out", "out by a symbolic link", "17", 5, "filesystem", "benign-files", symlink_out,
     .args = "{secret}"},
    {"folder-swap", "a folder swapped for a link to /", "19", 5, "filesystem", "benign-files", swap,
     .args = "{secret} {word}"},
    {"ro-write", "change what is shown read-only", "18", 5, "filesystem", "benign-files", ro_write,
     .args = "{ro}"},
    {"dev-null", "spoil the machine's /dev/null", "18", 5, "filesystem", "benign-files", dev_null},
    {"devices", "devices in /dev", "18", 5, "filesystem", "benign-files", devices},
    {"mknod", "devices of its own", "18", 5, "filesystem", "benign-files", mknod_},
    {"file-handle", "a file by its inode number", "2", 5, "filesystem", "benign-files", handle,
     .args = "{ro}"},
    {"o-path", "reopen what was opened by O_PATH", "2,3", 6, "filesystem", "benign-files", o_path,
     .options = "--proc", .args = "{ro} {secret}"},
    {"newer-calls", "openat2 and fchmodat2", "9,17", 5, "syscalls", "benign-files", newer_calls,
     .args = "{secret}"},
    {0},
};
