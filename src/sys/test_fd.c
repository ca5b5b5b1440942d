/* SPDX-License-Identifier: Apache-2.0 */
/* Packets with descriptors: whole, or not at all and nothing left open. */
#include "base/tap.h"
#include "sys/entries.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

int main(void)
{
    int sv[2], on = 1;
    tap_ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) == 0,
           "a pair of sockets is made");
    setsockopt(sv[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
    unsigned before = entries_count("/proc/self/fd");

    int fds[3] = {0, 1, 2};
    struct fd_packet out = {.data = (char[]){"hello"}, .len = 5, .fds = fds, .nfds = 3};
    char text[16];
    int got[3];
    struct fd_packet in = {.data = text, .len = sizeof text, .fds = got, .nfds = 3};
    tap_eq_int(fd_send(sv[0], &out), 0, "a packet with three descriptors is sent");
    tap_eq_int(fd_receive(sv[1], &in), 1, "fd_receive gets a packet");
    tap_ok(in.len == 5 && memcmp(text, "hello", 5) == 0 && in.nfds == 3,
           "a packet arrives whole, with its three descriptors");
    tap_eq_int(in.sender, getpid(), "the sender's pid comes from the kernel");
    tap_ok(fcntl(got[0], F_GETFD) & FD_CLOEXEC, "descriptors arrive close-on-exec");
    for (int i = 0; i < 3; i++)
        close(got[i]);

    in = (struct fd_packet){.data = text, .len = sizeof text, .fds = got, .nfds = 1};
    (void)!fd_send(sv[0], &out);
    tap_ok(fd_receive(sv[1], &in) == -1 && errno == EMSGSIZE,
           "a packet with too many descriptors is EMSGSIZE");
    in = (struct fd_packet){.data = text, .len = 2, .fds = got, .nfds = 3};
    (void)!fd_send(sv[0], &out);
    tap_ok(fd_receive(sv[1], &in) == -1 && errno == EMSGSIZE,
           "a packet that does not fit is EMSGSIZE");
    tap_eq_int(entries_count("/proc/self/fd"), before, "refused packets leave no descriptor open");

    struct rlimit usual, few;
    getrlimit(RLIMIT_NOFILE, &usual);
    few = (struct rlimit){(rlim_t)sv[1] + 4, usual.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
    tap_ok(fd_spare(3) == 0 && fd_spare(4) == -1 && errno == EMFILE,
           "fd_spare finds that three more descriptors fit, and four do not");
    setrlimit(RLIMIT_NOFILE, &usual);
    tap_eq_int(entries_count("/proc/self/fd"), before, "fd_spare leaves no descriptor open");

    char small[4];
    tap_ok(fd_read_file(AT_FDCWD, "/proc/self/status", small, sizeof small) == -1 && errno == EFBIG,
           "a file that does not fit is EFBIG, not cut");
    close(sv[0]);
    in = (struct fd_packet){.data = text, .len = sizeof text, .fds = got, .nfds = 3};
    tap_eq_int(fd_receive(sv[1], &in), 0, "the end of the channel is 0");
    return tap_done();
}
