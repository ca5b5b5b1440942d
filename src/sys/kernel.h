/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel constants and calls that Debian 12's headers (Linux 6.1, glibc 2.36) do not name yet.
 *
 * Takes:   nothing.
 * Gives:   names for the newest ABI we use; each is probed at run time before it is relied on.
 * Never:   numbers of system calls: those come from the compiler's own headers.
 * Runs in: every process.
 */
#ifndef SYS_KERNEL_H
#define SYS_KERNEL_H

#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Landlock, file rights beyond 6.1 (ABI 2). */
#ifndef LANDLOCK_ACCESS_FS_REFER
#define LANDLOCK_ACCESS_FS_REFER (1ULL << 13)
#endif
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif
#ifndef LANDLOCK_ACCESS_FS_IOCTL_DEV
#define LANDLOCK_ACCESS_FS_IOCTL_DEV (1ULL << 15)
#endif
#ifndef LANDLOCK_ACCESS_NET_BIND_TCP
#define LANDLOCK_ACCESS_NET_BIND_TCP    (1ULL << 0)
#define LANDLOCK_ACCESS_NET_CONNECT_TCP (1ULL << 1)
#endif
#ifndef LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
#define LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET (1ULL << 0)
#define LANDLOCK_SCOPE_SIGNAL               (1ULL << 1)
#endif

/* The attribute as of ABI 6; older kernels are given a shorter size. */
struct sys_landlock_attr {
    uint64_t fs, net, scoped;
};

static inline int sys_landlock_abi(void)
{
    return (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
}

static inline int sys_landlock_create(const struct sys_landlock_attr *attr, size_t size)
{
    return (int)syscall(SYS_landlock_create_ruleset, attr, size, 0);
}

static inline int sys_landlock_allow_path(int ruleset, int fd, uint64_t access)
{
    struct landlock_path_beneath_attr a = {.allowed_access = access, .parent_fd = fd};
    return (int)syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &a, 0);
}

static inline int sys_landlock_restrict(int ruleset)
{
    return (int)syscall(SYS_landlock_restrict_self, ruleset, 0);
}

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

#ifndef SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS      SECCOMP_IOW(4, __u64)
#endif

#ifndef CLONE_INTO_CGROUP
#define CLONE_INTO_CGROUP 0x200000000ULL
#endif

#ifndef MADV_POPULATE_READ /* Linux 5.14 */
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

/* The arguments of clone3 as of 5.7 (glibc has the call but no header for it). */
struct sys_clone_args {
    uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
    uint64_t set_tid, set_tid_size, cgroup;
};

#endif
