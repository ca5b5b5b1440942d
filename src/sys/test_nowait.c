/* SPDX-License-Identifier: Apache-2.0 */
/* Pipes, terminals, sockets and files whose readers do not read: a write takes what fits and comes back. */
#include "base/tap.h"
#include "sys/nowait.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static char bytes[1 << 20];

/* Writes until nothing more is taken. Returns how much was. */
static size_t fill(int fd)
{
    size_t all = 0;
    ssize_t n;
    while ((n = sys_write_now(fd, bytes, sizeof bytes)) > 0)
        all += (size_t)n;
    return n < 0 && errno == EAGAIN ? all : 0;
}

static void test_pipe(void)
{
    int p[2];
    tap_ok(pipe2(p, O_CLOEXEC) == 0, "a pipe is made");
    int size = fcntl(p[1], F_GETPIPE_SZ);
    tap_eq_int((long)fill(p[1]), size, "a pipe that nobody reads takes what it holds, then EAGAIN");
    tap_eq_int(fcntl(p[1], F_GETFL) & O_NONBLOCK, 0,
               "sys_write_now leaves the pipe's description blocking");
    tap_ok(read(p[0], bytes, 100) == 100, "a reader takes 100 bytes");
    tap_ok(sys_write_now(p[1], bytes, 200) == -1 && errno == EAGAIN,
           "less than a free page of a pipe is not waited for");
    close(p[0]);
    tap_ok(sys_write_now(p[1], bytes, 1) == -1 && errno == EPIPE,
           "a pipe without a reader is EPIPE");
    close(p[1]);
}

/* Many writers at one pipe: poll tells each that there is room, and one of them takes it. The reader stops before the
 * writers do, so that one of them that sleeps in its write sleeps for good. */
static void test_shared_pipe(void)
{
    enum { WRITERS = 8, ROUNDS = 2000, READS = 1000 };
    int p[2], status;
    bool good = true;
    tap_ok(pipe2(p, O_CLOEXEC) == 0 && fill(p[1]) > 0, "a pipe is filled");
    fcntl(p[0], F_SETFL, O_NONBLOCK);
    for (int i = 0; i < WRITERS; i++)
        if (fork() == 0) {
            for (int n = 0; n < ROUNDS; n++)
                (void)!sys_write_now(p[1], bytes, PIPE_BUF);
            _exit(0);
        }
    for (int i = 0; i < READS; i++)
        (void)!read(p[0], bytes, PIPE_BUF);
    for (int i = 0; i < WRITERS; i++)
        good = wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 && good;
    tap_ok(good, "eight writers of one pipe whose reader stops: none of them is left asleep");
    close(p[0]);
    close(p[1]);
}

/* The same for readers: the last byte is one's, and the others do not wait for the next. */
static void test_shared_input(void)
{
    enum { READERS = 8, ROUNDS = 2000, WRITES = 1000 };
    int p[2], status;
    bool good = true;
    tap_ok(pipe2(p, O_CLOEXEC) == 0, "a pipe is made");
    tap_ok(sys_read_now(p[0], bytes, 1) == -1 && errno == EAGAIN,
           "a pipe with nothing to read is EAGAIN");
    fcntl(p[1], F_SETFL, O_NONBLOCK);
    for (int i = 0; i < READERS; i++)
        if (fork() == 0) {
            for (int n = 0; n < ROUNDS; n++)
                (void)!sys_read_now(p[0], bytes, 1);
            _exit(0);
        }
    for (int i = 0; i < WRITES; i++)
        (void)!write(p[1], "x", 1);
    for (int i = 0; i < READERS; i++)
        good = wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 && good;
    tap_ok(good, "eight readers of one pipe that is seldom written: none of them is left asleep");
    fcntl(p[0], F_SETFL, O_NONBLOCK);
    while (read(p[0], bytes, sizeof bytes) > 0)
        ;
    close(p[1]);
    tap_eq_int(sys_read_now(p[0], bytes, 1), 0, "a pipe without a writer is at its end");
    close(p[0]);
}

static void test_terminal(void)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    tap_ok(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0, "a terminal is made");
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    memset(bytes, '\n', sizeof bytes); /* each becomes two */
    tap_ok(slave >= 0 && fill(slave) > 0, "a terminal that nobody reads takes some, then EAGAIN");
    char drop[4096];
    fcntl(master, F_SETFL, O_NONBLOCK);
    while (read(master, drop, sizeof drop) > 0)
        ;
    tcflow(slave, TCOOFF);
    tap_ok(sys_write_now(slave, "x", 1) == -1 && errno == EAGAIN,
           "a terminal that is stopped (^S) is EAGAIN");
    tcflow(slave, TCOON);
    tap_eq_int(sys_write_now(slave, "x", 1), 1, "a terminal that goes on (^Q) takes bytes again");
    close(slave);
    close(master);
}

static void test_others(void)
{
    int sv[2];
    char path[] = "/tmp/cordon-nowait-XXXXXX";
    tap_ok(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) == 0,
           "a pair of sockets is made");
    tap_ok(fill(sv[0]) > 0, "a socket that nobody reads takes some, then EAGAIN");
    close(sv[0]);
    close(sv[1]);
    int file = mkstemp(path);
    unlink(path);
    tap_eq_int(sys_write_now(file, bytes, sizeof bytes), sizeof bytes,
               "a file takes all that is written");
    close(file);
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    tap_ok(sys_write_now(full, "x", 1) == -1 && errno == ENOSPC,
           "a full device is ENOSPC, not EAGAIN");
    close(full);
}

int main(void)
{
    sigset_t alarm;
    signal(SIGPIPE, SIG_IGN);
    signal(SIGALRM, SIG_IGN); /* what a caller may have left us */
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    sigprocmask(SIG_BLOCK, &alarm, NULL);
    test_pipe();
    test_shared_pipe();
    test_shared_input();
    test_terminal();
    test_others();
    return tap_done();
}
