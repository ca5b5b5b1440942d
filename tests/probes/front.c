/* SPDX-License-Identifier: Apache-2.0 */
/* TEST ONLY: cordon-front whose code is the client's from the first byte on. It is linked from the product's own objects, its main and
 * what that gives up among them; only the two loops that serve clients are replaced (ld --wrap), and try what a front must
 * not be able to do. With FRONT_UNFILTERED the table of system calls is one that lets all of them through: what is refused then, Landlock,
 * rlimits and missing capabilities refuse. A filter says EPERM to an open and Landlock EACCES, so each is seen by itself.
 *
 * Takes:   what cordond starts a front with.
 * Gives:   a line for each act on standard error: its name, and 0 or the number of its error.
 * Never:   is installed.
 * Runs in: the place of cordon-front, in the test serve-front.
 */
#include "serve/front/front.h"
#include "jail/filter.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define CORDOND 3

static void tell(const char *act, long result)
{
    char line[80];
    const int error = result < 0 ? errno : 0,
              n = snprintf(line, sizeof line, "act %s %d\n", act, error);
    if (write(STDERR_FILENO, line, (size_t)n) != n)
        _exit(3);
}

/* Closed again: a front has room for one more descriptor. */
static long opened(int fd)
{
    if (fd > 3)
        close(fd);
    return fd;
}

static void try_files(void)
{
    tell("read-file", opened(open("/etc/passwd", O_RDONLY | O_CLOEXEC)));
    tell("list-folder", opened(open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
    const int fd =
        open("/tmp/cordon-front-was-here", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    tell("make-file", opened(fd));
    if (fd >= 0)
        unlink("/tmp/cordon-front-was-here");
    tell("duplicate", opened(dup(STDERR_FILENO)));
}

static void try_sockets(void)
{
    const struct sockaddr_in any = {.sin_family = AF_INET,
                                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in port = any;
    port.sin_port = htons(1); /* nobody is there: ECONNREFUSED where nothing forbids it */
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    tell("socket", fd);
    tell("connect", connect(fd, (const struct sockaddr *)&port, sizeof port));
    tell("bind", bind(fd, (const struct sockaddr *)&any, sizeof any));
    (void)opened(fd);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    tell("unix-socket", fd);
    (void)opened(fd);
}

/* Last the one that would end us. */
static void try_processes(void)
{
    static const char *const argv[] = {"/bin/true", NULL};
    const long child = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (child == 0)
        _exit(0);
    tell("process", child);
    tell("signal", kill(getppid(), 0));
#ifndef FRONT_UNFILTERED /* whoever makes a user namespace has every capability in it */
    tell("namespace", unshare(CLONE_NEWUSER));
#endif
    const void *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    tell("code", code == MAP_FAILED ? -1 : 0);
    const struct rlimit files = {1 << 20, 1 << 20};
    tell("limits", setrlimit(RLIMIT_NOFILE, &files));
    tell("program", execve(argv[0], (char *const *)argv, NULL));
}

_Noreturn static void attack(void)
{
    try_files();
    try_sockets();
    try_processes();
    tell("end", 0);
    struct pollfd cordond = {.fd = CORDOND, .events = POLLIN};
    (void)poll(&cordond, 1, -1); /* the test reads /proc, and ends the server */
    _exit(0);
}

int __wrap_serve_front_run(const struct serve_front_config *config, struct err *err);
int __wrap_serve_front_http(const struct serve_front_config *config,
                            const struct serve_http_config *http, struct err *err);

int __wrap_serve_front_run(const struct serve_front_config *config, struct err *err)
{
    (void)config;
    (void)err;
    attack();
}

int __wrap_serve_front_http(const struct serve_front_config *config,
                            const struct serve_http_config *http, struct err *err)
{
    (void)config;
    (void)http;
    (void)err;
    attack();
}

#ifdef FRONT_UNFILTERED
const struct jail_filter *__wrap_jail_filter_find(const char *name);

const struct jail_filter *__wrap_jail_filter_find(const char *name)
{
    static const struct sock_filter all = {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
    static const struct jail_filter lets_all_through = {.name = "", .insns = &all, .len = 1};
    (void)name;
    return &lets_all_through;
}
#endif
