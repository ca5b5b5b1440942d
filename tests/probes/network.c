/* SPDX-License-Identifier: Apache-2.0 */
/* The network: the listeners of the test outside, the machine's own services, other families.
 * Addresses are loopback, or unreachable from the empty namespace that the tests run in. */
#include "probe.h"

#include <arpa/inet.h>
#include <linux/if_alg.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/vm_sockets.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

static struct sockaddr_in ipv4(const char *address, long port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, address, &a.sin_addr) != 1)
        broken("%s is no address", address);
    return a;
}

static void connect_to(int argc, char **argv)
{
    const char *where = need(argc, argv, 0);
    long port = number(need(argc, argv, 1));
    int r, s;
    if (strchr(where, ':')) {
        struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
        if (inet_pton(AF_INET6, where, &a.sin6_addr) != 1)
            broken("%s is no address", where);
        s = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
        r = connect(s < 0 ? 0 : s, (struct sockaddr *)&a, sizeof a);
    } else {
        struct sockaddr_in a = ipv4(where, port);
        s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        r = connect(s < 0 ? 0 : s, (struct sockaddr *)&a, sizeof a);
    }
    char what[64];
    snprintf(what, sizeof what, "connect %s:%ld", where, port);
    must_fail(what, r);
}

static void socket_(int argc, char **argv)
{
    (void)argc, (void)argv;
    int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s < 0)
        contained("socket: %s", error_name(errno));
    /* a socket alone reaches nothing: is there an interface that is up? */
    struct ifreq ifr = {0};
    for (int i = 1; i < 64; i++) {
        ifr.ifr_ifindex = i;
        if (ioctl(s, SIOCGIFNAME, &ifr) == 0 && ioctl(s, SIOCGIFFLAGS, &ifr) == 0 &&
            (ifr.ifr_flags & IFF_UP))
            reached("a socket, and interface %s is up", ifr.ifr_name);
    }
    contained("a socket without any interface");
}

static void bind_(int argc, char **argv)
{
    (void)argc, (void)argv;
    struct sockaddr_in a = ipv4("127.0.0.1", 0);
    int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(s < 0 ? 0 : s, (struct sockaddr *)&a, sizeof a) < 0)
        contained("bind: %s", error_name(errno));
    reached("a port of the loopback");
}

static void listen_(int argc, char **argv)
{
    (void)argc, (void)argv;
    int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listen(s < 0 ? 0 : s, 5) < 0)
        contained("listen: %s", error_name(errno));
    struct sockaddr_in to = ipv4("127.0.0.1", 0);
    socklen_t n = sizeof to;
    getsockname(s, (struct sockaddr *)&to, &n);
    int c = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    must_fail("connect to an own listener", connect(c, (struct sockaddr *)&to, sizeof to));
}

static void accept_(int argc, char **argv)
{
    (void)argc, (void)argv;
    int s = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    tried("accept", accept(s < 0 ? 0 : s, NULL, NULL));
    tried("accept4", accept4(s < 0 ? 0 : s, NULL, NULL, SOCK_CLOEXEC));
    none_may_have_succeeded();
}

/* A question whose name carries the secret; the test's own resolver must not hear it. */
static void dns(int argc, char **argv)
{
    static const unsigned char question[] =
        "\x12\x34\x01\0\0\1\0\0\0\0\0\0\6secret\7example\0\0\1\0\1";
    struct sockaddr_in to[] = {ipv4("127.0.0.1", number(need(argc, argv, 0))),
                               ipv4("127.0.0.53", 53)};
    int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    for (size_t i = 0; i < 2; i++) {
        tried("sendto", sendto(s < 0 ? 0 : s, question, sizeof question, 0,
                               (struct sockaddr *)&to[i], sizeof *to));
        struct iovec iov = {(void *)(uintptr_t)question, sizeof question};
        struct mmsghdr m = {
            .msg_hdr = {
                .msg_name = &to[i], .msg_namelen = sizeof *to, .msg_iov = &iov, .msg_iovlen = 1}};
        tried("sendmsg", sendmsg(s < 0 ? 0 : s, &m.msg_hdr, 0));
        tried("sendmmsg", sendmmsg(s < 0 ? 0 : s, &m, 1, 0));
    }
    none_may_have_succeeded();
}

static void unix_connect(const char *what, const struct sockaddr_un *to, socklen_t size)
{
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must_fail(what, connect(s < 0 ? 0 : s, (const struct sockaddr *)to, size));
}

static void abstract(int argc, char **argv)
{
    const char *name = need(argc, argv, 0);
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path + 1, sizeof a.sun_path - 1, "%s", name);
    unix_connect("an abstract socket outside", &a,
                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name)));
}

/* A socket file in a folder that is shown to the guest: no namespace separates those. */
static void unix_path(int argc, char **argv)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof a.sun_path, "%s", need(argc, argv, 0));
    if (access(a.sun_path, F_OK) < 0)
        broken("%s is not there: %s", a.sun_path, error_name(errno));
    unix_connect("a socket file in a shared folder", &a, sizeof a);
}

static void netlink(int argc, char **argv)
{
    (void)argc, (void)argv;
    int s = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (s < 0)
        contained("AF_NETLINK: %s", error_name(errno));
    struct {
        struct nlmsghdr h;
        struct ifinfomsg m;
    } ask = {{sizeof ask, RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, 1, 0},
             {.ifi_family = AF_UNSPEC}};
    if (send(s, &ask, sizeof ask, 0) < 0)
        contained("netlink: %s", error_name(errno));
    char answer[16384] __attribute__((aligned(8)));
    ssize_t n = recv(s, answer, sizeof answer, 0);
    int links = 0;
    size_t left = n < 0 ? 0 : (size_t)n;
    for (struct nlmsghdr *h = (struct nlmsghdr *)answer; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left))
        if (h->nlmsg_type == RTM_NEWLINK) {
            struct ifinfomsg *m = NLMSG_DATA(h);
            links++;
            if (m->ifi_flags & IFF_UP)
                reached("netlink shows interface %d, and it is up", m->ifi_index);
        }
    contained("netlink shows %d interfaces, none up", links);
}

static void packet(int argc, char **argv)
{
    (void)argc, (void)argv;
    tried("AF_PACKET", socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
    tried("raw IP", socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP));
    tried("raw IPv6", socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMPV6));
    none_may_have_succeeded();
}

/* The hypervisor's own network knows no namespaces. Only the local address is dialled. */
static void vsock(int argc, char **argv)
{
    long port = number(need(argc, argv, 0));
    int s = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s < 0)
        contained("AF_VSOCK: %s", error_name(errno));
    struct sockaddr_vm to = {
        .svm_family = AF_VSOCK, .svm_cid = VMADDR_CID_LOCAL, .svm_port = (unsigned)port};
    must_fail("connect by vsock", connect(s, (struct sockaddr *)&to, sizeof to));
}

static void alg(int argc, char **argv)
{
    (void)argc, (void)argv;
    int s = socket(AF_ALG, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (s < 0)
        contained("AF_ALG: %s", error_name(errno));
    struct sockaddr_alg a = {.salg_family = AF_ALG, .salg_type = "hash", .salg_name = "sha256"};
    must_fail("the kernel's ciphers", bind(s, (struct sockaddr *)&a, sizeof a));
}

static void families(int argc, char **argv)
{
    (void)argc, (void)argv;
    int got = 0, last = -1;
    for (int family = 0; family < 46; family++) {
        if (family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK ||
            family == AF_PACKET || family == AF_VSOCK || family == AF_ALG)
            continue; /* they have probes of their own */
        for (int type = SOCK_STREAM; type <= SOCK_SEQPACKET; type++)
            if (socket(family, type | SOCK_CLOEXEC, 0) >= 0) {
                got++;
                last = family;
            }
    }
    if (got)
        reached("%d kinds of socket, the last of family %d", got, last);
    contained("no other family: %s", error_name(errno));
}

/* Urgent bytes on a unix socket: the way of CVE-2025-38236. */
static void urgent(int argc, char **argv)
{
    (void)argc, (void)argv;
    int p[2];
    char c = 'x';
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p) < 0)
        broken("socketpair: %s", error_name(errno));
    long sent = send(p[0], &c, 1, MSG_OOB);
    if (!filtered() &&
        sent == 1) /* the danger is the kernel's code on that way, not where the byte goes */
        contained("without a filter the byte reached the other end of the pair, and nobody else");
    tried("send MSG_OOB", sent);
    tried("recv MSG_OOB", recv(p[1], &c, 1, MSG_OOB | MSG_DONTWAIT));
    none_may_have_succeeded();
}

/* The process at the other end of a socket, as a handle: of a socket that came from outside it would be one outside. */
static void peer_handle(int argc, char **argv)
{
    (void)argc, (void)argv;
    int p[2], handle = -1;
    socklen_t len = sizeof handle;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p) < 0)
        broken("socketpair: %s", error_name(errno));
    long got = getsockopt(p[0], SOL_SOCKET, 77 /* SO_PEERPIDFD, newer than Debian 12's headers */,
                          &handle, &len);
    if (!filtered() && got == 0)
        contained("without a filter the handle is of this process: it made both ends");
    tried("getsockopt SO_PEERPIDFD", got);
    none_may_have_succeeded();
}

const struct probe probes_network[] = {
    {"socket", "a socket", "24", 4, "network", "benign-pipes", socket_, .rule = "socket"},
    {"connect", "a service on the caller's loopback", "24", 4, "network", "benign-pipes",
     connect_to, .args = "127.0.0.1 {port}", .rule = "connect"},
    {"connect-6", "the same by IPv6", "24", 4, "network", "benign-pipes", connect_to,
     .args = "::1 {port}", .rule = "connect"},
    {"connect-metadata", "the cloud's metadata service", "24", 4, "network", "benign-pipes",
     connect_to, .args = "169.254.169.254 80", .rule = "connect"},
    {"connect-any", "the address 0.0.0.0, which is loopback too", "24", 4, "network",
     "benign-pipes", connect_to, .args = "0.0.0.0 {port}", .rule = "connect"},
    {"bind", "a port of its own", "24", 4, "network", "benign-pipes", bind_, .rule = "bind"},
    {"listen", "a listener of its own", "24", 4, "network", "benign-pipes", listen_,
     .rule = "listen"},
    {"accept", "an accept", "24", 4, "network", "benign-pipes", accept_, .rule = "accept"},
    {"dns", "a secret in a name that is asked for", "25", 4, "network", "benign-pipes", dns,
     .args = "{udp}"},
    {"abstract", "an abstract unix socket outside", "22", 4, "network", "benign-pipes", abstract,
     .args = "{abstract}", .rule = "connect|socket"},
    /* the filter's own: what a folder shows is not the network namespace's to hide */
    {"unix-path", "a socket file in a shared folder", "22", 4, "syscalls", "benign-pipes",
     unix_path, .args = "{ro}/canary.sock", .rule = "connect|socket"},
    {"netlink", "the interfaces by netlink", "23", 4, "network", "benign-pipes", netlink,
     .rule = "socket"},
    {"packet", "raw packets", "23", 4, "network", "benign-pipes", packet, .rule = "socket"},
    {"vsock", "the hypervisor's sockets", "23", 4, "network", "benign-pipes", vsock,
     .args = "{vsock}", .rule = "socket"},
    {"alg", "the kernel's crypto sockets", "23", 4, "network", "benign-pipes", alg,
     .rule = "socket"},
    {"families", "every other family of sockets", "23", 4, "network", "benign-pipes", families,
     .rule = "socket"},
    {"urgent", "urgent bytes on a unix socket pair", "22", 4, "syscalls", "benign-pipes", urgent,
     .rule = "sendto"},
    {"peer-handle", "a handle of the process behind a socket", "22", 4, "syscalls", "benign-pipes",
     peer_handle, .rule = "getsockopt"},
    {0},
};
