/* SPDX-License-Identifier: Apache-2.0 */
/* Why poll, small pieces and a timer. The caller's standard output is shared: its shell, its pager and other
 * programs have the same open file description, so O_NONBLOCK on it would make their reads and writes fail. The
 * other ways to write without waiting each cover a part only:
 *   - opening /proc/self/fd/N anew gives a description of our own, but needs permission on the pipe or terminal
 *     (not given after `su`, nor once root was given up), needs /proc, and does not work for sockets;
 *   - pwritev2 with RWF_NOWAIT is refused by terminals, and by pipes before Linux 6.4 (Debian 12 has 6.1);
 *   - send with MSG_DONTWAIT is for sockets alone, and is used there: a runner's output is one;
 *   - a thread or process that may block would have to be started for each run, whether it is needed or not.
 * So: poll first. A pipe that polls writable has room for PIPE_BUF bytes, and a write of at most that many does not
 * sleep. It can sleep after all if another process filled the pipe in between, or on a terminal that polls writable
 * with less room than the piece; then the interval timer interrupts it, and what was not written is written later.
 * Reading is the same: what poll saw another process may have taken.
 * Poll tells a terminal that was stopped with ^S, and a full socket, as not writable.
 *
 * With a regular file both take what the disk takes, and no signal interrupts them.
 *
 * Waits: read in sys_read_now; the other end, if another process came first; SYS_NOWAIT_MS, by the timer; EAGAIN
 *        write in write_piece; the other end, if another process came first; SYS_NOWAIT_MS, by the timer; EAGAIN
 *        write in sys_write_now; the disk; none (the kernel's own); its error */
#include "sys/nowait.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

static void interrupt(int signal)
{
    (void)signal; /* its delivery is enough: it interrupts the write */
}

/* A caller may have blocked or ignored the signal. */
static void prepare(void)
{
    static bool done;
    struct sigaction action = {.sa_handler = interrupt}; /* no SA_RESTART */
    sigset_t alarm;
    if (done)
        return;
    sigemptyset(&action.sa_mask);
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    sigaction(SIGALRM, &action, NULL);
    sigprocmask(SIG_UNBLOCK, &alarm, NULL);
    done = true;
}

/* Again and again: the first one may come before the write has begun. */
static void set_timer(bool on)
{
    const struct timeval period = {.tv_usec = on ? SYS_NOWAIT_MS * 1000 : 0};
    const struct itimerval timer = {period, period};
    int saved = errno;
    setitimer(ITIMER_REAL, &timer, NULL);
    errno = saved;
}

static ssize_t write_piece(int fd, const char *at, size_t len)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    if (poll(&p, 1, 0) <= 0) {
        errno = EAGAIN;
        return -1;
    }
    ssize_t n = write(fd, at, len < PIPE_BUF ? len : PIPE_BUF);
    if (n < 0 && errno == EINTR)
        errno = EAGAIN;
    return n;
}

/* S_IFREG and so on; a regular file has nobody at its other end. */
static mode_t kind_of(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 ? st.st_mode & S_IFMT : 0;
}

ssize_t sys_read_now(int fd, void *data, size_t len)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (kind_of(fd) == S_IFREG)
        return read(fd, data, len);
    if (poll(&p, 1, 0) <= 0) {
        errno = EAGAIN;
        return -1;
    }
    prepare();
    set_timer(true);
    ssize_t n = read(fd, data, len);
    if (n < 0 && errno == EINTR)
        errno = EAGAIN;
    set_timer(false);
    return n;
}

ssize_t sys_write_now(int fd, const void *data, size_t len)
{
    const char *at = data;
    size_t done = 0;
    ssize_t n = 0;
    const mode_t kind = kind_of(fd);
    if (kind == S_IFREG)
        return write(fd, data, len);
    if (kind == S_IFSOCK)
        return send(fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    prepare();
    set_timer(true);
    while (done < len && (n = write_piece(fd, at + done, len - done)) > 0)
        done += (size_t)n;
    set_timer(false);
    return done ? (ssize_t)done : n;
}
