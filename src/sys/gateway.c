/* SPDX-License-Identifier: Apache-2.0 */
/* A lock of the kernel goes with the process that holds it, however that ended; a file, or a pid in one, would stay.
 *
 * Waits: read in gateway_find; a regular file; none (the kernel's own); holds no lock
 *        connect in gateway_connect; loopback; none (the kernel's own: it is accepted or refused at once); holds no lock
 *        pwrite in *; the file that tells where the gateway is; none (the kernel's own); an error */
#include "sys/gateway.h"

#include "base/limits.h"
#include "sys/fd.h"
#include "sys/lock.h"
#include "sys/state.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FILE_NAME "proxy-gateway"

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* ---- the gateway's side ---- */

static int write_address(int listener, struct buf *out, struct err *err)
{
    union address a = {.any.sa_family = AF_UNSPEC};
    socklen_t len = sizeof a;
    char text[INET6_ADDRSTRLEN] = "";
    if (getsockname(listener, &a.any, &len) < 0)
        return err_sys(err, "the address of the gateway");
    const bool six = a.any.sa_family == AF_INET6;
    const void *from = six ? (const void *)&a.v6.sin6_addr : (const void *)&a.v4.sin_addr;
    if (!inet_ntop(a.any.sa_family, from, text, sizeof text))
        return err_sys(err, "the address of the gateway");
    return buf_printf(out, "%s %u\n", text, ntohs(six ? a.v6.sin6_port : a.v4.sin_port)) < 0
               ? err_set(err, ERR_MEMORY, "no memory")
               : 0;
}

int gateway_announce(int state, int listener, const struct buf *models, int *ret_fd,
                     struct err *err)
{
    FD_AUTO fd = -1;
    struct buf text;
    int r = state_file(state, FILE_NAME, O_RDWR | O_CREAT, &fd, err);
    if (r < 0)
        return r;
    if (lock_try(fd, F_WRLCK, 0) < 0)
        return errno == EAGAIN || errno == EACCES ? 1 : err_sys(err, "lock %s", FILE_NAME);
    buf_init(&text, LIMIT_GATEWAY);
    r = write_address(listener, &text, err);
    if (r == 0 && models->len && buf_add(&text, models->data, models->len) < 0)
        r = err_set(err, ERR_LIMIT, "more models than %s takes", FILE_NAME);
    if (r == 0 && (ftruncate(fd, 0) < 0 || pwrite(fd, text.data, text.len, 0) != (ssize_t)text.len))
        r = err_sys(err, "write %s", FILE_NAME);
    buf_done(&text);
    if (r == 0)
        *ret_fd = fd_take(&fd);
    return r;
}

/* ---- who asks ---- */

static int none(struct err *err)
{
    return err_set(err, ERR_STATE, "no gateway to models answers: " GATEWAY_FIX);
}

int gateway_find(int state, struct gateway *ret, struct err *err)
{
    struct flock held = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
    struct err gone = ERR_INIT;
    FD_AUTO fd = -1;
    char *room;
    int used = 0;
    *ret = (struct gateway){.port = 0};
    if (state_file(state, FILE_NAME, O_RDONLY, &fd, &gone) < 0)
        return gone.sys_errno == ENOENT ? none(err) : err_set(err, gone.code, "%s", gone.msg);
    if (fcntl(fd, F_OFD_GETLK, &held) < 0)
        return err_sys(err, "the lock of %s", FILE_NAME);
    if (held.l_type == F_UNLCK)
        return none(err);
    buf_init(&ret->models, LIMIT_GATEWAY);
    if (buf_reserve(&ret->models, LIMIT_GATEWAY - 1, &room) < 0)
        return err_set(err, ERR_MEMORY, "no memory");
    const ssize_t n = read(fd, room, LIMIT_GATEWAY - 1);
    buf_added(&ret->models, n > 0 ? (size_t)n : 0);
    /* a gateway that has the lock and has written nothing is about to */
    if (n <= 0 || sscanf(ret->models.data, "%47s %5u\n%n", ret->address, &ret->port, &used) != 2 ||
        !used || ret->port > 65535) {
        gateway_done(ret);
        return none(err);
    }
    memmove(ret->models.data, ret->models.data + used, ret->models.len - (size_t)used + 1);
    ret->models.len -= (size_t)used;
    return 0;
}

void gateway_done(struct gateway *g)
{
    buf_done(&g->models);
}

bool gateway_model(const struct gateway *g, const char *wanted, char *ret_name, size_t size,
                   bool *ret_anthropic)
{
    for (const char *line = g->models.len ? g->models.data : ""; *line;) {
        const size_t len = strcspn(line, "\n"), word = strcspn(line, " \n");
        const char *name = line + word + 1;
        const size_t n = len > word ? len - word - 1 : 0;
        if (n && n < size && (!*wanted || (strlen(wanted) == n && memcmp(wanted, name, n) == 0))) {
            memcpy(ret_name, name, n);
            ret_name[n] = 0;
            *ret_anthropic = word == strlen("anthropic") && memcmp(line, "anthropic", word) == 0;
            return true;
        }
        line += len + (line[len] == '\n');
    }
    return false;
}

int gateway_connect(const struct gateway *g, int *ret_fd, struct err *err)
{
    union address a;
    memset(&a, 0, sizeof a);
    const bool six = strchr(g->address, ':') != NULL;
    a.any.sa_family = six ? AF_INET6 : AF_INET;
    const int good = inet_pton(a.any.sa_family, g->address,
                               six ? (void *)&a.v6.sin6_addr : (void *)&a.v4.sin_addr);
    if (six)
        a.v6.sin6_port = htons((uint16_t)g->port);
    else
        a.v4.sin_port = htons((uint16_t)g->port);
    FD_AUTO fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (good != 1 || fd < 0 || connect(fd, &a.any, six ? sizeof a.v6 : sizeof a.v4) < 0)
        return err_sys(err, "the gateway at %s, port %u", g->address, g->port);
    *ret_fd = fd_take(&fd);
    return 0;
}
