/* SPDX-License-Identifier: Apache-2.0 */
/* What the caller left open, and what can be made of the three descriptors that every guest has.
 * The tests start cordon with a socket, a log and a folder left open on purpose. */
#include "probe.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <termios.h>
#include <unistd.h>

enum { LAST_FD = 65536 };

static void inherited(int argc, char **argv)
{
    (void)argc, (void)argv;
    struct stat st;
    for (int fd = 3; fd < LAST_FD; fd++)
        if (fstat(fd, &st) == 0)
            reached("descriptor %d is open, mode %o", fd, st.st_mode);
        else if (errno != EBADF)
            broken("fstat(%d): %s", fd, error_name(errno));
    contained("3 to %d are all closed", LAST_FD - 1);
}

static void directory(int argc, char **argv)
{
    const char *secret = need(argc, argv, 0);
    char path[4096];
    for (int fd = -1; fd < 1024; fd++)
        for (int ups = 0; ups < 12; ups++) {
            int n = 0;
            for (int i = 0; i < ups; i++)
                n += snprintf(path + n, sizeof path - (size_t)n, "../");
            snprintf(path + n, sizeof path - (size_t)n, "%s", secret + 1);
            int got = openat(fd < 0 ? AT_FDCWD : fd, path, O_RDONLY | O_CLOEXEC);
            if (got >= 0)
                reached("openat(%d, \"%s\")", fd, path);
            if (fd >= 0 && errno == EBADF)
                break;
        }
    contained("no descriptor leads to the secret");
}

/* A working directory outside the root: getcwd says "(unreachable)" and `..` climbs past it. */
static void cwd_outside(int argc, char **argv)
{
    const char *secret = need(argc, argv, 0);
    char cwd[4096];
    if (!getcwd(cwd, sizeof cwd))
        broken("getcwd: %s", error_name(errno));
    if (cwd[0] != '/')
        reached("the working directory is %s", cwd);
    for (int i = 0; i < 40; i++)
        if (chdir("..") < 0)
            broken("chdir: %s", error_name(errno));
    if (open(secret + 1, O_RDONLY | O_CLOEXEC) >= 0)
        reached("%s from forty levels up", secret + 1);
    contained("the working directory was %s, and up from it is the jail's root", cwd);
}

/* Whoever holds a listener answers for the guest. The ioctls are tried on every descriptor. */
static void listener(int argc, char **argv)
{
    (void)argc, (void)argv;
    for (int fd = 0; fd < 1024; fd++) {
        if (fcntl(fd, F_GETFD) < 0)
            continue;
        uint64_t id = 1;
        if (ioctl(fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0 || errno == ENOENT)
            reached("descriptor %d is a seccomp listener", fd);
    }
    contained("no descriptor answers like a listener");
}

static void tty_inject(int argc, char **argv)
{
    (void)argc, (void)argv;
    for (int fd = 0; fd < 3; fd++) {
        char c = 'x', linux_paste = 3;
        if (isatty(fd))
            reached("descriptor %d is a terminal", fd);
        tried("TIOCSTI", ioctl(fd, TIOCSTI, &c));
        tried("TIOCLINUX", ioctl(fd, TIOCLINUX, &linux_paste));
        tried("TIOCSCTTY", ioctl(fd, TIOCSCTTY, 1));
        tried("TIOCSPGRP", ioctl(fd, TIOCSPGRP, &(pid_t){1}));
    }
    tried("/dev/tty", open("/dev/tty", O_RDWR | O_CLOEXEC));
    tried("/dev/console", open("/dev/console", O_RDWR | O_CLOEXEC));
    tried("/dev/ptmx", open("/dev/ptmx", O_RDWR | O_CLOEXEC | O_NOCTTY));
    none_may_have_succeeded();
}

/* The caller's own stdin, log or terminal must not be one file description with the guest's:
 * O_NONBLOCK, O_APPEND and the offset are shared by all who hold it. The test looks at its own
 * descriptors afterwards. */
static void stdio_flags(int argc, char **argv)
{
    (void)argc, (void)argv;
    int owner = 0;
    for (int fd = 0; fd < 3; fd++) {
        fcntl(fd, F_SETFL, O_NONBLOCK | O_ASYNC | O_APPEND);
        lseek(fd, 7777, SEEK_SET);
        ftruncate(fd, 0);
        fcntl(fd, F_SETOWN, 1);
        owner |= fcntl(fd, F_SETLEASE, F_WRLCK) == 0;
    }
    if (owner)
        reached("a lease on a standard descriptor");
    contained("flags set on 0, 1 and 2; the caller's own are checked outside");
}

/* A pipe opened again through /proc gives its other end: the reader's, with the reader's data. */
static void pipe_reopen(int argc, char **argv)
{
    (void)argc, (void)argv;
    keep_stdout();
    int mine = open("/proc/self/fd/1", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (mine < 0)
        contained("/proc/self/fd/1 for reading: %s", error_name(errno));
    char got[65536];
    /* Only our own bytes may be in it; taking them away from the supervisor harms nobody else. */
    ssize_t n = read(mine, got, sizeof got);
    if (n > 0 && memchr(got, '{', (size_t)n))
        reached("%zd bytes that somebody else wrote", n);
    contained("the pipe opens for reading and holds only what this guest wrote (%zd)", n);
}

static void pipe_size(int argc, char **argv)
{
    (void)argc, (void)argv;
    int before = fcntl(1, F_GETPIPE_SZ);
    int got = fcntl(1, F_SETPIPE_SZ, 64 << 20);
    if (got >= 64 << 20)
        reached("the supervisor's pipe grew from %d to %d bytes", before, got);
    contained("64 MB for the supervisor's pipe: %s", error_name(errno));
}

/* F_SETOWN and F_SETSIG let the kernel send SIGKILL for us to whom we could not signal. */
static void sigio_kill(int argc, char **argv)
{
    (void)argc, (void)argv;
    int p[2];
    if (pipe2(p, O_CLOEXEC | O_NONBLOCK) < 0)
        broken("pipe2: %s", error_name(errno));
    if (fcntl(p[0], F_SETOWN, 1) < 0)
        contained("F_SETOWN to pid 1: %s", error_name(errno));
    fcntl(p[0], F_SETSIG, SIGKILL);
    fcntl(p[0], F_SETFL, O_ASYNC | O_NONBLOCK);
    for (int i = 0; i < 100; i++)
        if (write(p[1], "x", 1) != 1)
            break;
    usleep(50000); /* pid 1 dying would take this process along: no verdict, and the test fails */
    contained("pid 1 outlived the kernel's SIGKILL by SIGIO");
}

static void vmsplice_mutate(int argc, char **argv)
{
    (void)argc, (void)argv;
    static char page[65536] __attribute__((aligned(65536)));
    memset(page, 'a', sizeof page);
    page[sizeof page - 1] = '\n';
    struct iovec iov = {page, 4096};
    ssize_t n = vmsplice(1, &iov, 1, SPLICE_F_GIFT);
    if (n < 0)
        contained("vmsplice: %s", error_name(errno));
    memset(page, '"', 4096); /* after the supervisor counted, before it copied */
    contained("%zd bytes gifted, then changed; the test looks for whole JSON and right counts", n);
}

/* Files in flight over a socket are not in the descriptor table. */
static void in_flight(int argc, char **argv)
{
    (void)argc, (void)argv;
    int pair[2], total = 0;
    if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0)
        contained("socketpair: %s", error_name(errno));
    for (int round = 0; round < 1000; round++) {
        int fds[32];
        char space[CMSG_SPACE(sizeof fds)] = {0};
        for (int i = 0; i < 32; i++)
            fds[i] = 0;
        struct iovec iov = {(char[]){'x'}, 1};
        struct msghdr m = {
            .msg_iov = &iov, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof fds);
        memcpy(CMSG_DATA(c), fds, sizeof fds);
        if (sendmsg(pair[0], &m, MSG_DONTWAIT) < 0)
            contained("%d in flight, then %s", total, error_name(errno));
        total += 32;
        if (total > 4096)
            reached("%d descriptors in flight", total);
    }
    contained("%d in flight", total);
}

static void forged_credentials(int argc, char **argv)
{
    (void)argc, (void)argv;
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair) < 0)
        contained("socketpair: %s", error_name(errno));
    struct ucred liar = {.pid = 1, .uid = 0, .gid = 0};
    char space[CMSG_SPACE(sizeof liar)] = {0};
    struct iovec iov = {(char[]){'x'}, 1};
    struct msghdr m = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_CREDENTIALS;
    c->cmsg_len = CMSG_LEN(sizeof liar);
    memcpy(CMSG_DATA(c), &liar, sizeof liar);
    must_fail("credentials of pid 1, uid 0", sendmsg(pair[0], &m, MSG_DONTWAIT));
}

const struct probe probes_descriptors[] = {
    {"fds-inherited", "descriptors that the caller left open", "1", 6, "process", "benign-pipes",
     inherited},
    {"fds-directory", "a folder descriptor from outside the root", "2", 6, "filesystem",
     "benign-files", directory, .args = "{secret}"},
    {"cwd-outside", "a working directory outside the root", "2", 6, "filesystem", "benign-files",
     cwd_outside, .args = "{secret}"},
    {"fds-listener", "an inherited seccomp listener", "1", 6, "syscalls", "benign-pipes", listener},
    {"tty-inject", "typing into the caller's terminal", "20", 7, "process", "benign-pipes",
     tty_inject, .options = "{pty}"},
    {"stdio-flags", "flags, offset and lease of the caller's own stdin and stdout", "39", 6,
     "process", "benign-pipes", stdio_flags},
    {"pipe-reopen", "the reader's end of the output pipe through /proc", "4,38", 6, "process",
     "benign-pipes", pipe_reopen, .options = "--proc"},
    {"pipe-size", "64 MB of kernel memory in the supervisor's pipe", "38", 3, "resources",
     "benign-pipes", pipe_size},
    {"sigio-kill", "SIGKILL to pid 1 by F_SETOWN and F_SETSIG", "31", 6, "process",
     "benign-signals", sigio_kill},
    {"vmsplice-mutate", "pages changed after they were sent", "38", 7, "process", "benign-output",
     vmsplice_mutate},
    {"fds-in-flight", "descriptors parked in a socket beyond the limit", "44", 3, "resources",
     "benign-pipes", in_flight},
    {"forged-credentials", "another process's credentials over a socket", "22", 6, "network",
     "benign-pipes", forged_credentials},
    {0},
};
