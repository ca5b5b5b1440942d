/* SPDX-License-Identifier: Apache-2.0 */
/* Ways back out through the facilities that made the jail: namespaces, mounts, roots, cgroups. */
#include "probe.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static bool has_capabilities(void)
{
    struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct d[2] = {{0}};
    if (syscall(SYS_capget, &h, d) < 0)
        broken("capget: %s", error_name(errno));
    return d[0].effective || d[1].effective || d[0].permitted || d[1].permitted;
}

static void unshare_user(int argc, char **argv)
{
    (void)argc, (void)argv;
    if (has_capabilities())
        reached("capabilities before anything was tried");
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
        contained("unshare(NEWUSER|NEWNS): %s", error_name(errno));
    if (mount("none", "/tmp", "tmpfs", 0, NULL) == 0)
        reached("a new user namespace and a mount in it");
    if (has_capabilities())
        reached("a new user namespace with all capabilities, though mount says %s",
                error_name(errno));
    contained("a new user namespace without capabilities");
}

static int child(void *arg)
{
    (void)arg;
    _exit(has_capabilities() ? 10 : 0);
}

static char stack[65536] __attribute__((aligned(16)));

static void clone_user(int argc, char **argv)
{
    (void)argc, (void)argv;
    pid_t pid = clone(child, stack + sizeof stack, CLONE_NEWUSER | CLONE_NEWPID | SIGCHLD, NULL);
    if (pid < 0)
        contained("clone(NEWUSER|NEWPID): %s", error_name(errno));
    int status = 0;
    waitpid(pid, &status, 0);
    reached("a child in a new user namespace, status %d", status);
}

static void unshare_each(int argc, char **argv)
{
    (void)argc, (void)argv;
    tried("NEWNET", unshare(CLONE_NEWNET));
    tried("NEWIPC", unshare(CLONE_NEWIPC));
    tried("NEWUTS", unshare(CLONE_NEWUTS));
    tried("NEWPID", unshare(CLONE_NEWPID));
    tried("NEWCGROUP", unshare(CLONE_NEWCGROUP));
    tried("NEWTIME", unshare(0x80 /* CLONE_NEWTIME */));
    none_may_have_succeeded();
}

static void setns_(int argc, char **argv)
{
    (void)argc, (void)argv;
    static const char *const which[] = {"mnt", "user", "net", "pid", "ipc", "uts", "cgroup"};
    char path[64];
    for (size_t i = 0; i < sizeof which / sizeof *which; i++) {
        snprintf(path, sizeof path, "/proc/1/ns/%s", which[i]);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        tried(which[i], setns(fd < 0 ? 0 : fd, 0));
    }
    int pidfd = (int)syscall(SYS_pidfd_open, 1, 0);
    tried("pidfd", setns(pidfd < 0 ? 0 : pidfd, CLONE_NEWNS | CLONE_NEWUSER));
    none_may_have_succeeded();
}

/* mkdir, chroot, cd .., the oldest of them. */
static void chroot_(int argc, char **argv)
{
    const char *secret = need(argc, argv, 0);
    int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    mkdir("/tmp/deeper", 0700);
    if (chroot("/tmp/deeper") < 0)
        contained("chroot: %s", error_name(errno));
    if (fchdir(here) == 0)
        for (int i = 0; i < 40; i++)
            if (chdir("..") < 0)
                break;
    if (open(secret + 1, O_RDONLY | O_CLOEXEC) >= 0)
        reached("the secret, by the old chroot trick");
    reached("chroot works");
}

static void mount_(int argc, char **argv)
{
    (void)argc, (void)argv;
    tried("tmpfs", mount("none", "/tmp", "tmpfs", 0, NULL));
    tried("proc", mount("none", "/tmp", "proc", 0, NULL));
    tried("sysfs", mount("none", "/tmp", "sysfs", 0, NULL));
    tried("cgroup2", mount("none", "/tmp", "cgroup2", 0, NULL));
    tried("bind", mount("/usr", "/tmp", NULL, MS_BIND, NULL));
    tried("overlay",
          mount("none", "/tmp", "overlay", 0, "lowerdir=/usr,upperdir=/tmp,workdir=/tmp"));
    none_may_have_succeeded();
}

/* Were the mounts still shared, a mount in here would appear outside; the test compares mountinfo.
 */
static void propagation(int argc, char **argv)
{
    (void)argc, (void)argv;
    tried("MS_SHARED", mount(NULL, "/", NULL, MS_SHARED | MS_REC, NULL));
    tried("MS_SLAVE", mount(NULL, "/", NULL, MS_SLAVE | MS_REC, NULL));
    tried("mount", mount("cordon-canary", "/workspace", "tmpfs", 0, NULL));
    none_may_have_succeeded();
}

static void remount(int argc, char **argv)
{
    (void)argc, (void)argv;
    tried("remount /tmp larger", mount(NULL, "/tmp", NULL, MS_REMOUNT, "size=10g,nr_inodes=0"));
    tried("remount /live/own larger",
          mount(NULL, "/live/own", NULL, MS_REMOUNT, "size=10g,nr_inodes=0"));
    tried("remount / rw", mount(NULL, "/", NULL, MS_REMOUNT, NULL));
    tried("remount /usr rw", mount(NULL, "/usr", NULL, MS_REMOUNT | MS_BIND, NULL));
    none_may_have_succeeded();
}

static void umount_(int argc, char **argv)
{
    (void)argc, (void)argv;
    tried("umount /tmp", umount2("/tmp", MNT_DETACH));
    tried("umount /live/own", umount2("/live/own", MNT_DETACH));
    tried("umount /usr", umount2("/usr", MNT_DETACH));
    tried("umount /dev/null", umount2("/dev/null", MNT_DETACH));
    tried("umount /", umount2("/", MNT_DETACH));
    none_may_have_succeeded();
}

static void pivot(int argc, char **argv)
{
    (void)argc, (void)argv;
    must_fail("pivot_root", syscall(SYS_pivot_root, "/tmp", "/tmp"));
}

/* The newer mount calls, which older filters have never heard of. */
static void mount_api(int argc, char **argv)
{
    (void)argc, (void)argv;
    int fs = (int)syscall(SYS_fsopen, "tmpfs", 0);
    tried("fsopen", fs);
    tried("open_tree", syscall(SYS_open_tree, AT_FDCWD, "/", 1 /* OPEN_TREE_CLONE */ | O_CLOEXEC));
    tried("fspick", syscall(SYS_fspick, AT_FDCWD, "/tmp", 0));
    tried("fsconfig", syscall(SYS_fsconfig, fs < 0 ? 0 : fs, 6 /* CMD_CREATE */, NULL, NULL, 0));
    tried("fsmount", syscall(SYS_fsmount, fs < 0 ? 0 : fs, 0, 0));
    tried("move_mount", syscall(SYS_move_mount, AT_FDCWD, "/usr", AT_FDCWD, "/tmp", 0));
    uint64_t clear_readonly[4] = {0, 1 /* MOUNT_ATTR_RDONLY */, 0, 0};
    tried("mount_setattr",
          syscall(SYS_mount_setattr, AT_FDCWD, "/usr", 0, clear_readonly, sizeof clear_readonly));
    none_may_have_succeeded();
}

static void cgroup(int argc, char **argv)
{
    (void)argc, (void)argv;
    static const char *const files[] = {"/sys/fs/cgroup/memory.max",
                                        "/sys/fs/cgroup/cgroup.procs",
                                        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
                                        "/sys/fs/cgroup/memory/release_agent",
                                        "/sys/fs/cgroup/unified/cgroup.procs",
                                        "/sys/fs/cgroup/pids/cgroup.procs",
                                        "/sys/fs/cgroup/memory/cgroup.procs",
                                        "/sys/fs/cgroup/devices/devices.allow"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        tried(files[i] + 15, open(files[i], O_WRONLY | O_CLOEXEC));
    mkdir("/tmp/cg", 0700);
    tried("mount cgroup", mount("none", "/tmp/cg", "cgroup", 0, "memory"));
    tried("mount cgroup2", mount("none", "/tmp/cg", "cgroup2", 0, NULL));
    none_may_have_succeeded();
}

/* From a namespace's descriptor to the one above it, by ioctl, and then in. */
static void ns_parent(int argc, char **argv)
{
    (void)argc, (void)argv;
    static const char *const which[] = {"/proc/self/ns/user", "/proc/self/ns/pid",
                                        "/proc/self/ns/net", "/proc/self/ns/mnt"};
    for (size_t i = 0; i < sizeof which / sizeof *which; i++) {
        int fd = open(which[i], O_RDONLY | O_CLOEXEC);
        int above = fd < 0 ? -1 : ioctl(fd, NS_GET_PARENT);
        tried("parent", above);
        int owner = fd < 0 ? -1 : ioctl(fd, NS_GET_USERNS);
        tried("enter its owner", owner < 0 ? -1 : setns(owner, CLONE_NEWUSER));
    }
    none_may_have_succeeded();
}

const struct probe probes_namespaces[] = {
    {"unshare-user", "a new user namespace regains capabilities", "10", 1, "syscalls",
     "benign-files", unshare_user, .rule = "unshare"},
    {"clone-user", "the same by clone", "10", 1, "syscalls", "benign-fork", clone_user,
     .options = "--processes 8", .rule = "clone"},
    {"unshare-each", "every other namespace", "10", 1, "syscalls", "benign-files", unshare_each,
     .rule = "unshare"},
    {"setns", "into the namespaces of pid 1", "11", 1, "syscalls", "benign-files", setns_,
     .options = "--proc", .rule = "setns"},
    {"ns-parent", "up from a namespace by ioctl", "11", 1, "syscalls", "benign-files", ns_parent,
     .options = "--proc"},
    {"chroot", "the old chroot trick", "2", 5, "filesystem", "benign-files", chroot_,
     .args = "{secret}", .rule = "chroot"},
    {"mount", "six file systems", "10", 5, "filesystem", "benign-files", mount_, .rule = "mount"},
    {"mount-propagation", "a mount that shows outside", "10", 5, "filesystem", "benign-files",
     propagation, .rule = "mount"},
    {"remount", "the quota and read-only flags by remount", "10,42", 5, "filesystem",
     "benign-files", remount, .rule = "mount"},
    {"umount", "take the jail's mounts away", "10", 5, "filesystem", "benign-files", umount_,
     .rule = "umount"},
    {"pivot-root", "another root", "10", 5, "filesystem", "benign-files", pivot},
    {"mount-api", "the newer mount calls", "10", 5, "filesystem", "benign-files", mount_api},
    {"cgroup-raise", "raise its own memory limit", "29", 3, "resources", "benign-files", cgroup},
    {0},
};
