/* SPDX-License-Identifier: Apache-2.0 */
/* A child leads a session of its own: no terminal to type at, and its whole group can be killed at
 * once. The kernel kills it when we are killed. Input is a sealed memory file: a child that does not
 * read cannot block us, and one that does cannot change what the next one reads.
 *
 * Waits: read in take; nobody: the pipe is non-blocking; at once; comes again after poll
 *        waitpid in end; a child; none (the kernel's own: it was killed); its status
 *        poll in gate_children_wait; the children; their deadlines, from the caller; killed, and `late` */
#include "gate/child.h"

#include "base/clock.h"
#include "sys/child.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

_Noreturn static void exec_command(const char *const *argv, const char *const *env, int in, int out,
                                   int keep, pid_t parent)
{
    FD_AUTO null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    const int fds[] = {in, out, null, keep};
    if (null >= 0 && chdir("/") == 0)
        sys_child_exec(argv, env, fds, keep >= 0 ? 4 : 3, true, parent);
    _exit(127);
}

int gate_child_start(struct gate_child *c, const char *const *argv, const char *const *env,
                     const void *input, size_t input_len, int keep, size_t output_max,
                     struct err *err)
{
    int pipes[2];
    *c = (struct gate_child){.pidfd = -1, .out = -1};
    buf_init(&c->text, output_max + 1);
    FD_AUTO in = -1;
    int r = fd_sealed(input, input_len, &in, err);
    if (r < 0)
        return r;
    if (pipe2(pipes, O_CLOEXEC) < 0)
        return err_sys(err, "pipe");
    c->out = pipes[0];
    pid_t self = getpid();
    c->pid = fork();
    if (c->pid == 0)
        exec_command(argv, env, in, pipes[1], keep, self);
    fd_close(pipes[1]);
    if (c->pid < 0) {
        c->pid = 0;
        return err_sys(err, "fork");
    }
    c->pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
    if (c->pidfd < 0 || fcntl(c->out, F_SETFL, O_NONBLOCK) < 0) {
        err_sys(err, "watch %s", argv[0]);
        gate_child_done(c);
        return ERR_SYS;
    }
    return 0;
}

/* False: nothing more will come. */
static bool take(struct gate_child *c)
{
    char chunk[4096];
    for (;;) {
        ssize_t n = read(c->out, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN;
        if (n == 0)
            return false;
        if (buf_add(&c->text, chunk, (size_t)n) < 0 || c->text.len >= c->text.max) {
            c->flooded = true;
            return false;
        }
    }
}

static void end(struct gate_child *c)
{
    if (c->pid > 0) {
        kill(-c->pid, SIGKILL); /* also those that it left behind in its group */
        kill(c->pid, SIGKILL);
        while (waitpid(c->pid, &c->status, 0) < 0)
            if (errno != EINTR) {
                c->status = 0x7f00; /* somebody else reaped it: not known to be good */
                break;
            }
    }
    c->ended = true;
    c->pid = 0;
}

void gate_children_wait(struct gate_child *c, const uint64_t *deadlines, size_t count)
{
    struct pollfd p[2 * 16];
    base_assert(count <= 16);
    for (;;) {
        uint64_t now = clock_now_ns(), first = UINT64_MAX;
        for (size_t i = 0; i < count; i++) {
            if (!c[i].ended && now >= deadlines[i]) {
                c[i].late = true;
                end(&c[i]);
            }
            if (!c[i].ended && deadlines[i] < first)
                first = deadlines[i];
            p[2 * i] = (struct pollfd){c[i].ended ? -1 : c[i].out, POLLIN, 0};
            p[2 * i + 1] = (struct pollfd){c[i].ended ? -1 : c[i].pidfd, POLLIN, 0};
        }
        if (first == UINT64_MAX)
            return;
        uint64_t ms = (first - now) / CLOCK_NS_PER_MS + 1;
        if (poll(p, 2 * count, ms > 3600000 ? 3600000 : (int)ms) < 0)
            continue;
        for (size_t i = 0; i < count; i++) {
            bool dead = p[2 * i + 1].revents != 0;
            if (p[2 * i].revents && !take(&c[i])) {
                fd_close(c[i].out);
                c[i].out = -1;
            }
            if (c[i].flooded || dead) {
                if (dead && c[i].out >= 0)
                    (void)take(&c[i]); /* what it wrote last */
                end(&c[i]);
            }
        }
    }
}

void gate_child_done(struct gate_child *c)
{
    if (!c->ended)
        end(c);
    fd_close(c->pidfd);
    fd_close(c->out);
    buf_done(&c->text);
    c->pidfd = c->out = -1;
}
