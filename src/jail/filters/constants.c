/* SPDX-License-Identifier: Apache-2.0 */
/* One compiler serves both architectures, so only names that mean the same on both may stand here.
 * Names that Debian 12's headers lack, or that only x86 has, are given by value. */
#include "jail/filters/constants.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>

#define C(name)                                                                                    \
    {                                                                                              \
#name, (uint64_t)(name)                                                                    \
    }
#define V(name, value)                                                                             \
    {                                                                                              \
#name, (uint64_t)(value)                                                                   \
    }

static const struct {
    const char *name;
    uint64_t value;
} names[] = {
    V(RENAME_WHITEOUT, 4),
    C(PROT_READ),
    C(PROT_WRITE),
    C(PROT_EXEC),
    C(SECCOMP_SET_MODE_FILTER),
    C(MAP_PRIVATE),
    C(MAP_ANONYMOUS),
    C(MAP_NORESERVE),
    C(CLONE_THREAD),
    C(CLONE_VM),
    C(CLONE_VFORK),
    C(CLONE_FS),
    C(CLONE_FILES),
    C(CLONE_SIGHAND),
    C(CLONE_SYSVSEM),
    C(CLONE_SETTLS),
    C(CLONE_PARENT_SETTID),
    C(CLONE_CHILD_CLEARTID),
    C(CLONE_CHILD_SETTID),
    C(CLONE_PARENT),
    C(CLONE_PTRACE),
    C(CLONE_UNTRACED),
    C(CLONE_NEWNS),
    C(CLONE_NEWCGROUP),
    C(CLONE_NEWUTS),
    C(CLONE_NEWIPC),
    C(CLONE_NEWUSER),
    C(CLONE_NEWPID),
    C(CLONE_NEWNET),
    C(CLONE_IO),
    V(CLONE_PIDFD, 0x1000),
    V(SIGCHLD, 17),
    /* CLONE_NEWTIME lies in the exit signal's bits: clone cannot ask for it, only clone3 */
    V(CLONE_NAMESPACES, CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                            CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET),
    V(CLONE_TRACING, CLONE_PTRACE | CLONE_UNTRACED),

    /* O_TMPFILE's own bit; the name itself contains O_DIRECTORY, which differs */
    V(O_CREATES, O_CREAT | 020000000),
    V(O_TMPFILE_BIT, 020000000),
    C(O_CREAT),
    C(O_RDONLY),
    C(O_WRONLY),
    C(O_RDWR),
    C(O_EXCL),
    C(O_TRUNC),
    C(O_CLOEXEC),
    C(O_APPEND),
    V(AT_FDCWD, 0xffffff9c),
    V(S_SETID, S_ISUID | S_ISGID),
    C(AT_EMPTY_PATH),
    C(S_ISUID),
    C(S_ISGID),
    C(S_ISVTX),
    C(S_IFMT),
    C(S_IFREG),
    C(S_IFIFO),
    C(S_IFSOCK),
    C(S_IFCHR),
    C(S_IFBLK),
    C(S_IFDIR),

    C(F_GETFL),
    C(F_SETFL),
    C(F_GETFD),
    C(F_SETFD),
    C(F_DUPFD_CLOEXEC),
    C(F_DUPFD),
    C(F_SETLK),
    C(F_SETLKW),
    C(F_GETLK),
    C(F_OFD_SETLK),
    C(F_OFD_SETLKW),
    C(F_OFD_GETLK),
    C(F_GETOWN),
    C(F_GETOWN_EX),
    C(F_GETSIG),
    C(F_GETLEASE),
    C(F_GETPIPE_SZ),
    C(F_SETPIPE_SZ),
    C(F_ADD_SEALS),
    C(F_GET_SEALS),
    C(F_GET_RW_HINT),
    C(F_SET_RW_HINT),
    V(F_DUPFD_QUERY, 1027),
    V(F_CREATED_QUERY, 1028),
    C(F_SETOWN),
    C(F_SETOWN_EX),
    C(F_SETSIG),
    C(F_NOTIFY),
    C(F_SETLEASE),

    C(TCGETS),
    V(TCGETS2, 0x802c542a),
    C(TIOCGWINSZ),
    C(FIOCLEX),
    C(FIONCLEX),
    C(FIONBIO),
    C(FIONREAD),
    C(FIOQSIZE),
    C(FIGETBSZ),
    C(TCSETS),
    C(TCSETSW),
    C(TCSETSF),
    C(TIOCGPGRP),
    C(TIOCSPGRP),
    C(TIOCGSID),
    C(TIOCOUTQ),
    C(TIOCSTI),
    C(TIOCLINUX),
    C(TIOCSETD),
    C(TIOCCONS),
    C(TIOCSCTTY),
    C(FICLONE),

    C(PRIO_PROCESS),
    C(PRIO_PGRP),
    C(PRIO_USER),
    C(SCHED_OTHER),
    C(SCHED_BATCH),
    C(SCHED_IDLE),
    C(SCHED_FIFO),
    C(SCHED_RR),
    C(SCHED_RESET_ON_FORK),
    V(SCHED_DEADLINE, 6),
    V(SCHED_POLICY, 0xffffffffu & ~(unsigned)SCHED_RESET_ON_FORK),

    V(ARCH_SET_GS, 0x1001),
    V(ARCH_SET_FS, 0x1002),
    V(ARCH_GET_FS, 0x1003),
    V(ARCH_GET_GS, 0x1004),
    V(ARCH_GET_XCOMP_PERM, 0x1022),
    V(ARCH_REQ_XCOMP_PERM, 0x1023),
    V(ARCH_CET_STATUS, 0x3001),

    C(PR_SET_NAME),
    C(PR_GET_NAME),
    C(PR_SET_PDEATHSIG),
    C(PR_GET_PDEATHSIG),
    C(PR_GET_DUMPABLE),
    C(PR_SET_DUMPABLE),
    C(PR_GET_KEEPCAPS),
    C(PR_SET_KEEPCAPS),
    C(PR_GET_TIMING),
    C(PR_GET_SECCOMP),
    C(PR_SET_SECCOMP),
    C(PR_CAPBSET_READ),
    C(PR_CAPBSET_DROP),
    C(PR_GET_SECUREBITS),
    C(PR_SET_SECUREBITS),
    C(PR_SET_TIMERSLACK),
    C(PR_GET_TIMERSLACK),
    C(PR_GET_CHILD_SUBREAPER),
    C(PR_SET_CHILD_SUBREAPER),
    C(PR_SET_NO_NEW_PRIVS),
    C(PR_GET_NO_NEW_PRIVS),
    C(PR_GET_TID_ADDRESS),
    C(PR_SET_THP_DISABLE),
    C(PR_GET_THP_DISABLE),
    C(PR_SVE_SET_VL),
    C(PR_SVE_GET_VL),
    C(PR_GET_SPECULATION_CTRL),
    C(PR_SET_SPECULATION_CTRL),
    C(PR_PAC_RESET_KEYS),
    C(PR_SET_TAGGED_ADDR_CTRL),
    C(PR_GET_TAGGED_ADDR_CTRL),
    C(PR_GET_IO_FLUSHER),
    C(PR_SET_IO_FLUSHER),
    V(PR_SET_VMA, 0x53564d41),
    V(PR_SET_MDWE, 65),
    V(PR_GET_MDWE, 66),
    C(PR_CAP_AMBIENT),
    C(PR_CAP_AMBIENT_IS_SET),
    C(PR_CAP_AMBIENT_RAISE),
    C(PR_SET_PTRACER),
    C(PR_SET_MM),
    V(PR_SCHED_CORE, 62),
    C(PR_SET_SYSCALL_USER_DISPATCH),
    C(PR_TASK_PERF_EVENTS_DISABLE),
    C(PR_TASK_PERF_EVENTS_ENABLE),
    C(PR_SET_TSC),
    C(PR_MCE_KILL),

    C(AF_UNIX),
    C(AF_INET),
    C(AF_INET6),
    C(AF_NETLINK),
    C(AF_PACKET),
    C(AF_VSOCK),
    C(AF_ALG),
    C(SOCK_STREAM),
    C(SOCK_DGRAM),
    C(SOCK_CLOEXEC),
    C(SOCK_NONBLOCK),
    V(SOCK_TYPE, 0xf), /* the kernel's SOCK_TYPE_MASK */
    C(SOL_SOCKET),
    V(IPPROTO_TCP, 6),
    C(SO_SNDBUF),
    C(SO_RCVBUF),
    C(SO_RCVTIMEO),
    C(SO_SNDTIMEO),
    C(SO_REUSEADDR),
    C(SO_KEEPALIVE),
    C(SO_LINGER),
    C(SO_PASSCRED),
    C(SO_BROADCAST),
    C(SO_OOBINLINE),
    C(SO_TYPE),
    C(SO_ERROR),
    C(SO_DOMAIN),
    C(SO_PROTOCOL),
    C(SO_ACCEPTCONN),
    C(SO_PEERCRED),
    C(SO_REUSEPORT),
    C(SO_INCOMING_CPU),
    C(SO_COOKIE),
    V(SO_PEERPIDFD, 77),
    C(MSG_OOB),
    C(SO_PRIORITY),
    C(SO_RCVLOWAT),
    C(SO_TIMESTAMP),
    C(SO_ATTACH_FILTER),
    C(SO_ATTACH_BPF),
    C(SO_ATTACH_REUSEPORT_CBPF),
    C(SO_ATTACH_REUSEPORT_EBPF),

    V(PTRACE_TRACEME, PTRACE_TRACEME),
    V(PTRACE_ATTACH, PTRACE_ATTACH),
    V(ADDR_NO_RANDOMIZE, 0x0040000),
};

static const struct {
    const char *name;
    int value;
} errnos[] = {
    {"0", 0},
    {"EPERM", EPERM},
    {"EINVAL", EINVAL},
    {"ENOSYS", ENOSYS},
    {"ENOTTY", ENOTTY},
    {"EOPNOTSUPP", EOPNOTSUPP},
    {"ENOPROTOOPT", ENOPROTOOPT},
};

static bool one(const char *s, size_t len, uint64_t *ret_value)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strlen(names[i].name) == len && memcmp(names[i].name, s, len) == 0) {
            *ret_value = names[i].value;
            return true;
        }
    }
    if (len == 0 || s[0] < '0' || s[0] > '9')
        return false;
    char *end;
    errno = 0;
    *ret_value = strtoull(s, &end, 0);
    return errno == 0 && end == s + len;
}

bool constants_value(const char *text, uint64_t *ret_value)
{
    uint64_t sum = 0, v;
    for (;;) {
        size_t len = strcspn(text, "|");
        if (!one(text, len, &v))
            return false;
        sum |= v;
        if (!text[len])
            break;
        text += len + 1;
    }
    *ret_value = sum;
    return true;
}

int constants_errno(const char *name)
{
    for (size_t i = 0; i < sizeof errnos / sizeof *errnos; i++)
        if (strcmp(errnos[i].name, name) == 0)
            return errnos[i].value;
    return -1;
}
