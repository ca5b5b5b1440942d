/* SPDX-License-Identifier: Apache-2.0 */
/* Every check runs in a child of its own: what it locks or unshares dies with it. A check that
 * cannot fail on a broken machine is no check, so each one does the thing and looks at what came of
 * it.
 *
 * Waits: sys_child_wait in *; a child that tries one call; FD_PATIENCE_MS; it is killed: ECHILD
 *        read in in_child; nobody: the child, whose pipe it is, is gone; at once; ECHILD
 *        write in in_child; a pipe that has room; at once; ends */
#include "jail/doctor.h"

#include "base/limits.h"
#include "jail/inside.h"
#include "jail/outside.h"
#include "sys/child.h"
#include "sys/fd.h"
#include "sys/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

/* 0, or the errno that F ended with in a child of its own; ECHILD when the child died. */
static int in_child(int (*f)(void))
{
    int p[2], result = ECHILD;
    if (pipe2(p, O_CLOEXEC) < 0)
        return errno;
    pid_t pid = fork();
    if (pid < 0) {
        result = errno;
    } else if (pid == 0) {
        int r = f() < 0 ? errno : 0;
        _exit(write(p[1], &r, sizeof r) == sizeof r ? 0 : 1);
    }
    fd_close(p[1]);
    if (pid > 0 && (sys_child_wait(pid, FD_PATIENCE_MS, NULL) < 0 ||
                    read(p[0], &result, sizeof result) != sizeof result))
        result = ECHILD;
    fd_close(p[0]);
    return result;
}

/* An ordinary user inside a user namespace of its own, as a jail starts. */
static int enter_user_namespace(void)
{
    struct jail_identity id;
    struct err err = ERR_INIT;
    if (jail_identity_choose(&id, &err) < 0) {
        errno = EPERM;
        return -1;
    }
    if (id.change && (syscall(SYS_setgroups, 0, NULL) < 0 ||
                      syscall(SYS_setresgid, id.gid, id.gid, id.gid) < 0 ||
                      syscall(SYS_setresuid, id.uid, id.uid, id.uid) < 0 ||
                      prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0))
        return -1;
    FD_AUTO proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (proc < 0 || unshare(CLONE_NEWUSER) < 0 || jail_ns_no_setgroups(proc) < 0)
        return -1;
    return jail_ns_map_self(proc, 0, id.uid, 0, id.gid);
}

static int try_user(void)
{
    return enter_user_namespace();
}

static int try_mount(void)
{
    struct statvfs fs;
    if (enter_user_namespace() < 0 || unshare(CLONE_NEWNS) < 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("cordon", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "size=64k,nr_inodes=20") < 0 ||
        statvfs("/tmp", &fs) < 0)
        return -1;
    if ((uint64_t)fs.f_blocks * fs.f_frsize > 64 * KIB || fs.f_files > 20) {
        errno = EDQUOT; /* mounted, but nobody counts */
        return -1;
    }
    FD_AUTO tree = open_tree(AT_FDCWD, "/usr", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
    struct mount_attr set = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID};
    if (tree < 0 || mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &set, sizeof set) < 0 ||
        mkdir("/tmp/usr", 0755) < 0 ||
        move_mount(tree, "", AT_FDCWD, "/tmp/usr", MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return -1;
    return chdir("/tmp") < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ? -1 : 0;
}

/* As layers() of root.c: attributes in the upper layer, then the overlay itself. */
static int try_overlay(void)
{
    static const char *const folders[] = {"/tmp/lower", "/tmp/upper", "/tmp/work", "/tmp/all"};
    if (enter_user_namespace() < 0 || unshare(CLONE_NEWNS) < 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("cordon", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "size=64k,nr_inodes=20") < 0)
        return -1;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (mkdir(folders[i], 0755) < 0)
            return -1;
    if (setxattr("/tmp/upper", "user.cordon", "", 0, 0) < 0)
        return -1;
    return mount("cordon", "/tmp/all", "overlay", MS_NOSUID | MS_NODEV,
                 "userxattr,lowerdir=/tmp/lower,upperdir=/tmp/upper,workdir=/tmp/work");
}

static int try_pid(void)
{
    int status;
    if (enter_user_namespace() < 0 || unshare(CLONE_NEWPID) < 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0)
        _exit(getpid() == 1 ? 0 : 1);
    if (pid < 0 || sys_child_wait(pid, FD_PATIENCE_MS, &status) < 0)
        return -1;
    errno = ENOSYS;
    return status == 0 ? 0 : -1;
}

static int try_net(void)
{
    struct jail_proof proof = {0};
    if (enter_user_namespace() < 0 || unshare(CLONE_NEWNET) < 0)
        return -1;
    jail_attest_unfiltered(&proof, &proof);
    errno = EISCONN; /* there is a way out */
    return proof.acts[JAIL_ACT_udp] == ENETUNREACH ? 0 : -1;
}

static int try_rest(void)
{
    return enter_user_namespace() < 0 ? -1 : unshare(CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP);
}

static int try_landlock(void)
{
    struct sys_landlock_attr attr = {.fs = LANDLOCK_ACCESS_FS_READ_FILE};
    FD_AUTO rules = sys_landlock_create(&attr, sizeof attr.fs);
    if (rules < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || sys_landlock_restrict(rules) < 0)
        return -1;
    int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        errno = ENOSYS; /* restricted, but nothing is */
    return fd < 0 && errno == EACCES ? 0 : -1;
}

static int load_filter(unsigned action, unsigned long flags)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, action),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog prog = {sizeof code / sizeof *code, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -1;
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog);
}

static int try_seccomp(void)
{
    if (load_filter(SECCOMP_RET_ERRNO | EXDEV, 0) < 0)
        return -1;
    long r = syscall(SYS_getppid);
    if (r >= 0)
        errno = ENOSYS;
    return r < 0 && errno == EXDEV ? 0 : -1;
}

static int try_notify(void)
{
    return load_filter(SECCOMP_RET_USER_NOTIF, SECCOMP_FILTER_FLAG_NEW_LISTENER) < 0 ? -1 : 0;
}

static int try_killable(void)
{
    return load_filter(SECCOMP_RET_USER_NOTIF, SECCOMP_FILTER_FLAG_NEW_LISTENER |
                                                   SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV) < 0
               ? -1
               : 0;
}

static int try_rlimits(void)
{
    struct rlimit one = {3, 3};
    if (setrlimit(RLIMIT_NOFILE, &one) < 0)
        return -1;
    int fd = fcntl(0, F_DUPFD_CLOEXEC, 0);
    if (fd >= 3)
        errno = ENOSYS;
    return fd < 3 ? 0 : -1;
}

static int try_idmap(void)
{
    struct jail_bind bind = {"/usr", "/x", false};
    struct jail_spec spec = {.mode = JAIL_FULL, .binds = &bind, .nbinds = 1};
    struct jail_identity id;
    struct err err = ERR_INIT;
    int fd = -1;
    if (jail_identity_choose(&id, &err) < 0 || jail_binds_open(&spec, &id, &fd, &err) < 0) {
        errno = err.sys_errno ? err.sys_errno : EPERM;
        return -1;
    }
    return 0;
}

#define FIX_USER                                                                                   \
    "sysctl user.max_user_namespaces=15000 (and kernel.unprivileged_userns_clone=1 on Debian); "   \
    "on "                                                                                          \
    "Ubuntu an AppArmor profile that allows userns; in Docker --security-opt seccomp=unconfined "  \
    "--security-opt apparmor=unconfined; else --mode landlock"
#define FIX_MOUNT                                                                                  \
    "Linux 5.12 or newer, and a root that can be pivoted (not an initramfs); else --mode landlock"

static void describe(struct jail_check *c, int error)
{
    c->enforced = error == 0;
    if (error)
        snprintf(c->detail, sizeof c->detail, "%s", strerror(error));
}

static void look_at_landlock(struct jail_check *c)
{
    int abi = sys_landlock_abi();
    describe(c, in_child(try_landlock));
    if (c->enforced)
        snprintf(c->detail, sizeof c->detail, "ABI %d: files%s%s%s%s", abi,
                 abi >= 3 ? ", truncation" : "", abi >= 4 ? ", TCP" : "",
                 abi >= 5 ? ", devices" : "",
                 abi >= 6 ? ", signals and abstract sockets" : " (no scopes: Linux 6.12 has them)");
}

static void look_at_cgroup(struct jail_check *c)
{
    struct jail_limits limits = {.memory = 16 * MIB, .threads = 1};
    struct jail_cgroup cg = JAIL_CGROUP_NONE;
    struct err err = ERR_INIT;
    struct jail_janitor janitor = {0};
    c->enforced = jail_janitor_start(&janitor, &err) == 0 &&
                  jail_cgroup_make(&limits, &janitor, &cg, &err) == 0;
    if (c->enforced)
        snprintf(c->detail, sizeof c->detail, "version %d%s", cg.version,
                 cg.version == 1 ? ", used for --processes only: entering it takes milliseconds"
                                 : "");
    else
        snprintf(c->detail, sizeof c->detail, "%.150s; --processes needs --memory-by rlimit",
                 err.msg);
    jail_cgroup_close(&cg);
    jail_janitor_finish(&janitor);
}

size_t jail_doctor_look(struct jail_check checks[JAIL_CHECKS_MAX])
{
    const struct {
        const char *name, *layer;
        enum jail_need need;
        int (*try)(void);
        const char *good, *fix;
    } rows[] = {
        {"user namespace", "process", JAIL_NEED_FULL, try_user, "own ids, no rights outside",
         FIX_USER},
        {"pid namespace", "process", JAIL_NEED_FULL, try_pid, "own processes only", FIX_USER},
        {"ipc, uts, cgroup namespaces", "process", JAIL_NEED_FULL, try_rest, "own", FIX_USER},
        {"private root with quota", "filesystem", JAIL_NEED_FULL, try_mount,
         "tmpfs counts bytes and inodes, binds are read-only", FIX_MOUNT},
        {"layers of a workspace", "filesystem", JAIL_NEED_SOME, try_overlay,
         "an overlay: a run or a session costs what it changes",
         "Linux 6.6 with overlayfs; without it runs and sessions in a workspace get copies"},
        {"net namespace", "network", JAIL_NEED_FULL, try_net, "empty: no way to any address",
         FIX_USER},
        {"seccomp filter", "syscalls", JAIL_NEED_BOTH, try_seccomp,
         "denies what the table does not allow", "a kernel with CONFIG_SECCOMP_FILTER"},
        {"seccomp notification", "syscalls", JAIL_NEED_BOTH, try_notify, "denied calls are seen",
         "Linux 5.9 or newer; not inside another listener (a container runtime's)"},
        {"notification waits only for kill", "syscalls", JAIL_NEED_SOME, try_killable,
         "a signal cannot interrupt a pending call", "Linux 5.19; works without"},
        {"rlimits", "resources", JAIL_NEED_BOTH, try_rlimits, "enforced",
         "none: every Linux has them"},
    };
    size_t n = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++, n++) {
        checks[n] = (struct jail_check){
            .name = rows[i].name, .layer = rows[i].layer, .need = rows[i].need, .fix = rows[i].fix};
        snprintf(checks[n].detail, sizeof checks[n].detail, "%s", rows[i].good);
        describe(&checks[n], in_child(rows[i].try));
    }
    checks[n] = (struct jail_check){.name = "landlock",
                                    .layer = "filesystem",
                                    .need = JAIL_NEED_BOTH,
                                    .fix = "Linux 5.13 with CONFIG_SECURITY_LANDLOCK, and "
                                           "lsm=landlock,... on the kernel's command line"};
    look_at_landlock(&checks[n++]);
    checks[n] = (struct jail_check){.name = "cgroup",
                                    .layer = "resources",
                                    .need = JAIL_NEED_SOME,
                                    .fix = "delegate one: systemd-run --user --scope -p "
                                           "Delegate=yes, or CORDON_CGROUP=/sys/fs/cgroup/..."};
    look_at_cgroup(&checks[n++]);
    if (geteuid() == 0) {
        checks[n] = (struct jail_check){
            .name = "mapped mounts",
            .layer = "filesystem",
            .need = JAIL_NEED_SOME,
            .detail = "--ro and --rw as root belong to the folder's owner",
            .fix = "Linux 5.12 and CAP_SYS_ADMIN; or start as an ordinary user"};
        describe(&checks[n++], in_child(try_idmap));
    }
    return n;
}
