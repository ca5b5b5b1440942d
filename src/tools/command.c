/* SPDX-License-Identifier: Apache-2.0 */
/* The command is the operator's and trusted as far as that; its input is a guest's. So the input is a sealed file, which cannot
 * block us and cannot change under it, files of the guest are copied for the same reason, and nothing of what the guest sent
 * is a word of a command line. What it leaves running is found among our own children, where the kernel puts orphans, and
 * killed: a process group can be left, this cannot.
 *
 * Waits: poll in follow; the command; its timeout; killed, and told as late
 *        read in take; nobody: the pipes are non-blocking; at once; comes again after poll
 *        sendfile in copy_file; the guest's memory file system; none (the kernel's own); an error
 *        waitpid in end_all; a child; none (the kernel's own: it was killed); reaped */
#include "tools/command.h"

#include "base/clock.h"
#include "base/limits.h"
#include "sys/fd.h"
#include "sys/rlimit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ENV_MAX     66
#define DESCRIPTORS 256
#define SWEEPS      1000 /* what forks faster than we kill is left after so many */

struct running {
    pid_t pid;
    int pidfd, out, said;
    bool ended;
    int status;
};

/* ---- the start ---- */

static int limit_it(const struct tools_command *c)
{
    const rlim_t seconds = c->timeout_ms / 1000 + 1;
    return sys_rlimit_lower(RLIMIT_AS, c->memory, c->memory) < 0 ||
                   sys_rlimit_lower(RLIMIT_CORE, 0, 0) < 0 ||
                   sys_rlimit_lower(RLIMIT_NOFILE, DESCRIPTORS, DESCRIPTORS) < 0 ||
                   sys_rlimit_lower(RLIMIT_CPU, seconds, seconds + 1) < 0
               ? -1
               : 0;
}

static void place(const int *from, size_t count)
{
    int high[TOOLS_COMMAND_FILES + LIMIT_TOOL_FILES];
    /* first above what they are to become: none may lie in the way of another */
    for (size_t i = 0; i < count; i++)
        high[i] = fcntl(from[i], F_DUPFD_CLOEXEC, (int)sizeof high / (int)sizeof *high + 3);
    for (size_t i = 0; i < count; i++)
        if (high[i] < 0 || dup2(high[i], (int)i) < 0)
            _exit(127);
    syscall(SYS_close_range, (unsigned)count, ~0U, 0U);
}

_Noreturn static void become(const struct tools_command *c, const int *fds, size_t nfds,
                             pid_t parent)
{
    const char *env[ENV_MAX + 1] = {"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8"};
    sigset_t none;
    sigemptyset(&none);
    for (size_t i = 0; i < c->nenv && i + 2 < ENV_MAX; i++)
        env[i + 2] = c->env[i];
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127);
    place(fds, nfds);
    for (int s = 1; s < 32; s++)
        signal(s, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    umask(077);
    if (limit_it(c) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && chdir("/") == 0)
        execve(c->argv[0], (char *const *)c->argv, (char *const *)env);
    _exit(127);
}

/* The bytes as they are now: the guest may go on writing its own. */
static int copy_file(int from, int *ret_fd, struct err *err)
{
    FD_AUTO fd = (int)syscall(SYS_memfd_create, "file", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    off_t at = 0;
    if (fd < 0)
        return err_sys(err, "memfd_create");
    while (at < (off_t)LIMIT_TOOL_FILE) {
        const ssize_t n = sendfile(fd, from, &at, LIMIT_TOOL_FILE - (size_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(err, "copy a file of the program");
        if (n == 0)
            break;
    }
    if (lseek(fd, 0, SEEK_SET) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
        return err_sys(err, "seal a copy");
    *ret_fd = fd_take(&fd);
    return 0;
}

static int start(const struct tools_command *c, struct running *r, const int *inputs, size_t nfds,
                 struct err *err)
{
    int fds[TOOLS_COMMAND_FILES + LIMIT_TOOL_FILES], out[2], said[2];
    const pid_t self = getpid();
    memcpy(fds, inputs, nfds * sizeof *fds);
    if (pipe2(out, O_CLOEXEC) < 0)
        return err_sys(err, "pipe");
    r->out = out[0];
    fds[1] = out[1];
    if (pipe2(said, O_CLOEXEC) < 0) {
        fd_close(out[1]);
        return err_sys(err, "pipe");
    }
    r->said = said[0];
    fds[2] = said[1];
    r->pid = fork();
    if (r->pid == 0)
        become(c, fds, nfds, self);
    fd_close(out[1]);
    fd_close(said[1]);
    if (r->pid < 0)
        return err_sys(err, "fork");
    r->pidfd = (int)syscall(SYS_pidfd_open, r->pid, 0);
    return r->pidfd < 0 || fcntl(r->out, F_SETFL, O_NONBLOCK) < 0 ||
                   fcntl(r->said, F_SETFL, O_NONBLOCK) < 0
               ? err_sys(err, "watch %s", c->argv[0])
               : 0;
}

/* ---- the end ---- */

/* One child of ours that is not KEEP; 0: there is none, or nobody tells. */
static pid_t next_child(pid_t keep)
{
    char path[64], text[16384], *save = NULL;
    snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
    if (fd_read_file(-1, path, text, sizeof text) < 0)
        return 0;
    for (char *at = strtok_r(text, " ", &save); at; at = strtok_r(NULL, " ", &save)) {
        const pid_t pid = (pid_t)strtol(at, NULL, 10);
        if (pid > 0 && pid != keep)
            return pid;
    }
    return 0;
}

static void end_all(struct running *r, pid_t keep)
{
    if (r->pid > 0) {
        kill(-r->pid, SIGKILL);
        kill(r->pid, SIGKILL);
        while (waitpid(r->pid, &r->status, 0) < 0 && errno == EINTR)
            ;
    }
    r->pid = 0;
    for (int i = 0; i < SWEEPS; i++) {
        const pid_t left = next_child(keep);
        if (left <= 0)
            break;
        kill(left, SIGKILL);
        while (waitpid(left, NULL, 0) < 0 && errno == EINTR)
            ;
    }
}

/* False: nothing more will come, or nothing more is taken. */
static bool take(int fd, struct buf *to, size_t most, bool *full)
{
    char chunk[4096];
    for (;;) {
        const ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 && errno == EAGAIN;
        const size_t room = most - to->len, got = (size_t)n < room ? (size_t)n : room;
        *full = *full || got < (size_t)n;
        if (buf_add(to, chunk, got) < 0)
            return false;
    }
}

static enum tools_command_end follow(const struct tools_command *c, struct running *r,
                                     struct buf *out, struct buf *said)
{
    const uint64_t until = clock_now_ns() + c->timeout_ms * CLOCK_NS_PER_MS;
    bool full = false, ignored = false;
    for (uint64_t now = clock_now_ns(); now < until; now = clock_now_ns()) {
        struct pollfd p[] = {
            {r->out, POLLIN, 0}, {r->said, POLLIN, 0}, {r->pidfd, POLLIN, 0}, {c->stop, POLLIN, 0}};
        const uint64_t ms = (until - now) / CLOCK_NS_PER_MS + 1;
        if (poll(p, 4, ms > 3600000 ? 3600000 : (int)ms) < 0)
            continue;
        if (p[3].revents)
            return TOOLS_COMMAND_STOPPED;
        if (p[0].revents && !take(r->out, out, c->output, &full))
            fd_close(fd_take(&r->out));
        if (p[1].revents && !take(r->said, said, LIMIT_TOOL_SAID, &ignored))
            fd_close(fd_take(&r->said));
        if (full)
            return TOOLS_COMMAND_CUT;
        if (!p[2].revents)
            continue;
        if (r->out >= 0) /* what it wrote last */
            (void)take(r->out, out, c->output, &full);
        if (r->said >= 0)
            (void)take(r->said, said, LIMIT_TOOL_SAID, &ignored);
        return full ? TOOLS_COMMAND_CUT : TOOLS_COMMAND_EXITED;
    }
    return TOOLS_COMMAND_LATE;
}

int tools_command_run(const struct tools_command *c, struct buf *out, struct buf *said,
                      enum tools_command_end *ret_end, int *ret_status, struct err *err)
{
    struct running r = {.pidfd = -1, .out = -1, .said = -1};
    int fds[TOOLS_COMMAND_FILES + LIMIT_TOOL_FILES] = {-1, -1, -1};
    size_t n = TOOLS_COMMAND_FILES;
    buf_init(out, c->output + 1);
    buf_init(said, LIMIT_TOOL_SAID + 1);
    base_assert(c->nfiles <= LIMIT_TOOL_FILES);
    /* only meanwhile: what others of this process start and leave, an alert command, is not the command's */
    int e = prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0 ? err_sys(err, "prctl") : 0;
    if (e == 0)
        e = fd_sealed(c->input, c->input_len, &fds[0], err);
    for (size_t i = 0; i < c->nfiles && e == 0; i++, n += e == 0)
        e = copy_file(c->files[i], &fds[n], err);
    if (e == 0)
        e = start(c, &r, fds, n, err);
    if (e == 0)
        *ret_end = follow(c, &r, out, said);
    end_all(&r, c->keep);
    prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
    if (e == 0 && *ret_end == TOOLS_COMMAND_EXITED && WIFSIGNALED(r.status))
        *ret_end = TOOLS_COMMAND_SIGNAL;
    *ret_status = WIFSIGNALED(r.status) ? WTERMSIG(r.status) : WEXITSTATUS(r.status);
    for (size_t i = 0; i < n; i++)
        fd_close(fds[i]);
    fd_close(r.pidfd);
    fd_close(r.out);
    fd_close(r.said);
    return e;
}
