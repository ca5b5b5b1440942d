/* SPDX-License-Identifier: Apache-2.0 */
/* What a gateway says of itself in a state folder, and that only a living one is believed. */
#include "base/limits.h"
#include "base/tap.h"
#include "sys/fd.h"
#include "sys/gateway.h"
#include "sys/state.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/cordon-gateway-XXXXXX";

static int listen_at(int family)
{
    const struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001)};
    const struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool six = family == AF_INET6;
    if (fd < 0 ||
        bind(fd, six ? (const struct sockaddr *)&v6 : (const struct sockaddr *)&v4,
             six ? sizeof v6 : sizeof v4) < 0 ||
        listen(fd, 4) < 0) {
        fd_close(fd);
        return -1;
    }
    return fd;
}

static void test_models(const struct gateway *g)
{
    char name[64];
    bool anthropic = true;
    tap_ok(gateway_model(g, "", name, sizeof name, &anthropic) && strcmp(name, "fast") == 0 &&
               !anthropic,
           "without a name it is the first model");
    tap_ok(gateway_model(g, "large one", name, sizeof name, &anthropic) && anthropic &&
               strcmp(name, "large one") == 0,
           "a model is found by its whole name, with its protocol");
    tap_ok(!gateway_model(g, "fas", name, sizeof name, &anthropic) &&
               !gateway_model(g, "fast\nanthropic", name, sizeof name, &anthropic),
           "a part of a name, and more than one line, is no model");
    tap_ok(!gateway_model(g, "large one", name, 5, &anthropic), "a name that does not fit is none");
}

static void test_life(int state, int family)
{
    struct err err = ERR_INIT;
    struct gateway g;
    struct buf models;
    int held = -1, other = -1, sock = -1, status;
    FD_AUTO listener = listen_at(family);
    if (listener < 0) {
        tap_skip("a gateway of this family", "this machine has no such loopback");
        return;
    }
    buf_init(&models, 1024);
    tap_ok(buf_str(&models, "openai fast\nanthropic large one\n") == 0, "models are written");
    tap_ok(gateway_find(state, &g, &err) == ERR_STATE && strstr(err.msg, "cordon proxy"),
           "without a gateway the error names what to do: %s", err.msg);
    tap_eq_int(gateway_announce(state, listener, &models, &held, &err), 0,
               "a gateway says where it is");
    tap_eq_int(gateway_announce(state, listener, &models, &other, &err), 1,
               "a second gateway of the same state folder is told so");
    tap_ok(gateway_find(state, &g, &err) == 0 && g.port > 0, "a gateway that lives is found: %s %u",
           g.address, g.port);
    test_models(&g);
    tap_ok(gateway_connect(&g, &sock, &err) == 0, "a gateway that lives is connected to");
    fd_close(sock);
    gateway_done(&g);
    const pid_t pid =
        fork(); /* a process that inherits nothing and dies: as a gateway that is killed */
    if (pid == 0) {
        fd_close(held);
        int own = -1;
        _exit(gateway_announce(state, listener, &models, &own, &err) == 1 ? 0 : 1);
    }
    waitpid(pid, &status, 0);
    tap_eq_int(status, 0, "another process cannot take its place");
    fd_close(held);
    tap_eq_int(gateway_find(state, &g, &err), ERR_STATE,
               "once it has ended, what it wrote is not believed");
    buf_done(&models);
}

int main(void)
{
    struct err err = ERR_INIT;
    int state = -1;
    if (!mkdtemp(folder) || state_open(folder, false, &state, &err) < 0)
        return 1;
    test_life(state, AF_INET);
    test_life(state, AF_INET6);
    unlinkat(state, "proxy-gateway", 0);
    rmdir(folder);
    fd_close(state);
    return tap_done();
}
