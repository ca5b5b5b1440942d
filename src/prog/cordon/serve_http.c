/* SPDX-License-Identifier: Apache-2.0 */
/* The options of the socket are set here, once: connections inherit them, and the front, which accepts, cannot set any. */
#include "serve_http.h"

#include "base/limits.h"
#include "base/units.h"
#include "result.h"
#include "sys/fd.h"
#include "token.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TOKEN_NAME "serve-token"
enum { BACKLOG = 256, KEPT_ALIVE_S = 60 };

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* ---- the address ---- */

static int wrong(const char *option, const char *where, struct err *err)
{
    return err_set(err, ERR_USAGE,
                   "%s: '%.60s' is no PORT, ADDRESS:PORT or [ADDRESS]:PORT, in numbers", option,
                   where);
}

static int parse(const char *option, const char *where, union address *a, struct err *err)
{
    char host[64] = "127.0.0.1";
    const char *colon = strrchr(where, ':'), *digits = colon ? colon + 1 : where;
    size_t len = colon ? (size_t)(colon - where) : 0;
    const bool six = len > 2 && where[0] == '[' && where[len - 1] == ']';
    uint64_t port;
    if (six)
        len -= 2;
    if (units_count(digits, &port) < 0 || port > 65535 || len >= sizeof host)
        return wrong(option, where, err);
    if (colon) {
        memcpy(host, where + six, len);
        host[len] = 0;
    }
    memset(a, 0, sizeof *a);
    a->any.sa_family = six ? AF_INET6 : AF_INET;
    if (six) {
        a->v6.sin6_port = htons((uint16_t)port);
        return inet_pton(AF_INET6, host, &a->v6.sin6_addr) == 1 ? 0 : wrong(option, where, err);
    }
    a->v4.sin_port = htons((uint16_t)port);
    return inet_pton(AF_INET, host, &a->v4.sin_addr) == 1 ? 0 : wrong(option, where, err);
}

static bool is_loopback(const union address *a)
{
    return a->any.sa_family == AF_INET ? ntohl(a->v4.sin_addr.s_addr) >> 24 == 127
                                       : IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr);
}

/* Connections inherit these. */
static int set_options(int fd, struct err *err)
{
    const int yes = 1, idle = KEPT_ALIVE_S;
    if (setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes) < 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle) < 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) < 0 ||
        fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
        return err_sys(err, "--http: options of the socket");
    return 0;
}

static int listen_at(const char *option, const char *where, union address *a, int *ret_fd,
                     struct err *err)
{
    const int yes = 1;
    socklen_t size = a->any.sa_family == AF_INET ? sizeof a->v4 : sizeof a->v6;
    FD_AUTO fd = socket(a->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) < 0 ||
        bind(fd, &a->any, size) < 0 || listen(fd, BACKLOG) < 0 ||
        getsockname(fd, &a->any, &size) < 0)
        return err_sys(err, "%s %.60s", option, where);
    *ret_fd = fd_take(&fd);
    return 0;
}

/* One that the service manager listens at. */
static int address_of(int fd, union address *a, struct err *err)
{
    socklen_t size = sizeof *a;
    memset(a, 0, sizeof *a);
    return getsockname(fd, &a->any, &size) < 0 ? err_sys(err, "--activated: a socket of TCP") : 0;
}

static int find_token(const struct serve_http_options *o, char *file, char *token, bool *ret_made,
                      struct err *err)
{
    *ret_made = false;
    if (!o->token)
        return token_own(TOKEN_NAME, file, token, ret_made, err);
    snprintf(file, STATE_PATH_MAX, "%s", o->token);
    return token_read("--token-file", o->token, token, err);
}

/* ---- both ---- */

static int check_names(const char *names, struct err *err)
{
    if (names &&
        (strlen(names) > LIMIT_HTTP_NAMES || !*names ||
         strspn(names, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.,[]:") !=
             strlen(names)))
        return err_set(err, ERR_USAGE, "--allow-host: host names with commas between them");
    return 0;
}

/* http://ADDRESS:PORT */
static int put_url(const union address *a, char *out, size_t size)
{
    char host[INET6_ADDRSTRLEN] = "?";
    const bool six = a->any.sa_family == AF_INET6;
    (void)!inet_ntop(a->any.sa_family,
                     six ? (const void *)&a->v6.sin6_addr : (const void *)&a->v4.sin_addr, host,
                     sizeof host);
    return snprintf(out, size, "http://%s%s%s:%u", six ? "[" : "", host, six ? "]" : "",
                    ntohs(six ? a->v6.sin6_port : a->v4.sin_port));
}

static void tell(const union address *a, const char *file, bool made)
{
    char line[STATE_PATH_MAX + 200];
    int n = put_url(a, line, sizeof line);
    n += snprintf(line + n, sizeof line - (size_t)n, "/mcp, ");
    if (file)
        snprintf(line + n, sizeof line - (size_t)n, "token %s %s", made ? "made, in" : "in", file);
    else
        snprintf(line + n, sizeof line - (size_t)n, "for the conformance suite, without a token");
    result_note("cordon serve", line);
}

static int hand_over(int sock, int token, struct err *err)
{
    const int high[2] = {fcntl(sock, F_DUPFD_CLOEXEC, 16), fcntl(token, F_DUPFD_CLOEXEC, 16)};
    if (high[0] < 0 || high[1] < 0 || dup2(high[0], SERVE_HTTP_FD) < 0 ||
        dup2(high[1], SERVE_TOKEN_FD) < 0)
        return err_sys(err, "--http");
    return 0;
}

int serve_http_listen(const struct serve_http_options *o, int given, struct err *err)
{
    char file[STATE_PATH_MAX], token[LIMIT_HTTP_TOKEN + 3] = "";
    union address a = {.any = {0}};
    bool made = false;
    int sock = given, sealed = -1; /* closed by exec */
    int r = given < 0 ? parse("--http", o->where, &a, err) : address_of(given, &a, err);
    if (r == 0)
        r = check_names(o->names, err);
    if (r == 0 && !is_loopback(&a) && !o->names)
        r = err_set(err, ERR_USAGE,
                    "%s: an address that others reach needs --allow-host: the names that "
                    "clients call it by; put a proxy that speaks TLS before it",
                    given < 0 ? "--http" : "--activated");
    if (r == 0 && !o->no_token)
        r = find_token(o, file, token, &made, err);
    if (r == 0 && given < 0)
        r = listen_at("--http", o->where, &a, &sock, err);
    if (r == 0)
        r = set_options(sock, err);
    if (r == 0)
        r = fd_sealed(token, strlen(token), &sealed, err);
    explicit_bzero(token, sizeof token);
    if (r == 0)
        r = hand_over(sock, sealed, err);
    if (r == 0)
        tell(&a, o->no_token ? NULL : file, made);
    return r;
}

int serve_http_listen_loopback(const char *option, const char *where, int at, char *url,
                               size_t size, struct err *err)
{
    union address a = {.any = {0}};
    int sock = -1; /* closed by exec */
    int r = parse(option, where, &a, err);
    if (r == 0 && !is_loopback(&a))
        r = err_set(err, ERR_USAGE,
                    "%s: it listens at loopback only: PORT, 127.0.0.1:PORT or [::1]:PORT", option);
    if (r == 0)
        r = listen_at(option, where, &a, &sock, err);
    if (r == 0)
        r = set_options(sock, err);
    /* by way of another number: dup2 onto itself would leave it to be closed by exec */
    const int high = r == 0 ? fcntl(sock, F_DUPFD_CLOEXEC, 16) : -1;
    if (r == 0 && (high < 0 || dup2(high, at) < 0))
        r = err_sys(err, "%s", option);
    if (r == 0)
        put_url(&a, url, size);
    return r;
}

int serve_http_listen_metrics(const char *where, struct err *err)
{
    char url[80], line[160];
    int r = serve_http_listen_loopback("--metrics", where, SERVE_METRICS_FD, url, sizeof url, err);
    if (r < 0)
        return r;
    snprintf(line, sizeof line, "%s/metrics and /health, for figures", url);
    result_note("cordon serve", line);
    return 0;
}
