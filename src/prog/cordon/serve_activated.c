/* SPDX-License-Identifier: Apache-2.0 */
/* What kind a socket is, the kernel says, not its name. The unix socket's folder and mode are the unit's; who connects is
 * still looked at one by one. */
#include "serve_activated.h"

#include "sys/fd.h"
#include "sys/notify.h"

#include <fcntl.h>
#include <sys/socket.h>

static int ask(int fd, int what)
{
    int value = 0;
    socklen_t size = sizeof value;
    return getsockopt(fd, SOL_SOCKET, what, &value, &size) < 0 ? -1 : value;
}

/* Above the numbers that are handed over: none may lie in the way of another. */
static int keep(int fd, int *place, const char *kind, struct err *err)
{
    if (*place >= 0)
        return err_set(err, ERR_USAGE, "--activated: more than one %s; one server has one", kind);
    *place = fcntl(fd, F_DUPFD_CLOEXEC, 16);
    return *place < 0 ? err_sys(err, "--activated") : 0;
}

int serve_activated_take(struct serve_activated *ret, struct err *err)
{
    const unsigned count = sys_notify_sockets(NULL, 0);
    int r = 0;
    *ret = (struct serve_activated){.sock = -1, .http = -1};
    if (count == 0)
        return err_set(err, ERR_USAGE,
                       "--activated: no sockets were given (LISTEN_FDS); a service manager starts "
                       "it, see docs/deployment.md");
    for (int fd = SYS_NOTIFY_FD; r == 0 && fd < SYS_NOTIFY_FD + (int)count; fd++) {
        const int family = ask(fd, SO_DOMAIN);
        if (ask(fd, SO_TYPE) != SOCK_STREAM || ask(fd, SO_ACCEPTCONN) != 1)
            return err_set(err, ERR_USAGE,
                           "--activated: descriptor %d is no stream socket that listens "
                           "(ListenStream=, Accept=no)",
                           fd);
        if (family == AF_UNIX)
            r = keep(fd, &ret->sock, "unix socket", err);
        else if (family == AF_INET || family == AF_INET6)
            r = keep(fd, &ret->http, "socket of TCP", err);
        else
            r = err_set(err, ERR_USAGE, "--activated: descriptor %d is neither unix nor TCP", fd);
    }
    return r;
}
