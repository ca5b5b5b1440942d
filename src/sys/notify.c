/* SPDX-License-Identifier: Apache-2.0 */
/* By hand, since it is one datagram: libsystemd would bring its D-Bus client, JSON and compression into a process that is to
 * be small. What the variables say is for this very process: a number of another process is a leftover of its parent's.
 *
 * Waits: connect in connect_to; nobody: a socket of datagrams connects at once; at once; without it nobody is told */
#include "sys/notify.h"

#include "base/units.h"
#include "sys/fd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* A variable as a number; 0: it is not there, or no number. */
static uint64_t number(const char *name)
{
    const char *text = getenv(name);
    uint64_t n = 0;
    return text && units_count(text, &n) == 0 ? n : 0;
}

static int connect_to(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    const size_t len = strlen(path);
    if ((path[0] != '/' && path[0] != '@') || len < 2 || len >= sizeof a.sun_path)
        return -1;
    memcpy(a.sun_path, path, len);
    if (path[0] == '@') /* of the abstract names, which begin with a NUL */
        a.sun_path[0] = 0;
    FD_AUTO fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&a,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) < 0)
        return -1;
    return fd_take(&fd);
}

void sys_notify_open(struct sys_notify *n)
{
    const char *path = getenv("NOTIFY_SOCKET"), *pid = getenv("WATCHDOG_PID");
    *n = (struct sys_notify){.sock = path ? connect_to(path) : -1};
    if (n->sock >= 0 && (!pid || number("WATCHDOG_PID") == (uint64_t)getpid()))
        n->every_ns = number("WATCHDOG_USEC") * 1000 / 2;
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
}

void sys_notify_send(const struct sys_notify *n, const char *lines)
{
    if (n->sock >= 0)
        (void)!send(n->sock, lines, strlen(lines), MSG_DONTWAIT | MSG_NOSIGNAL);
}

uint64_t sys_notify_alive(struct sys_notify *n, uint64_t now_ns)
{
    if (!n->every_ns)
        return UINT64_MAX;
    if (now_ns >= n->next_ns) {
        sys_notify_send(n, "WATCHDOG=1");
        n->next_ns = now_ns + n->every_ns;
    }
    return n->next_ns;
}

unsigned sys_notify_sockets(char *names, size_t size)
{
    const char *said = getenv("LISTEN_FDNAMES");
    const bool ours = number("LISTEN_PID") == (uint64_t)getpid();
    const uint64_t count = ours ? number("LISTEN_FDS") : 0;
    if (names)
        snprintf(names, size, "%s", ours && said ? said : "");
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    return count < 64 ? (unsigned)count : 64;
}
