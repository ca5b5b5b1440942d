/* SPDX-License-Identifier: Apache-2.0 */
/* Names that a person wrote are looked up with the person's rights and before anything of a guest's is read. The lock
 * is held by an open file description, which the process that carries the order out has too: it ends when the last of
 * them is gone, however that comes.
 *
 * Waits: lock_within in take; who changes or reads the same workspace; LIMIT_LOCK_MS; a refusal that names it
 *        poll in take; the same, for a run; LIMIT_WORKSPACE_LOCK_MS, or until somebody stops it; the same refusal
 *        sys_child_wait in workspace_order_run; cordon-workspace; the order's most_ms; it is killed, and nothing was committed
 *        write in become; a file in memory; at once; the line is lost */
#include "workspace_order.h"

#include "admin.h"
#include "base/clock.h"
#include "base/limits.h"
#include "commands.h"
#include "programs.h"
#include "sys/child.h"
#include "sys/fd.h"
#include "sys/lock.h"
#include "sys/rlimit.h"
#include "sys/state.h"
#include "workspace/names.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Signals are blocked while a run is supervised: a long wait watches the descriptor that reports them. */
static int take(const struct workspace_order *o, short type, int64_t byte, const char *what,
                struct err *err)
{
    struct pollfd stop = {.fd = o->stop, .events = POLLIN};
    for (const uint64_t until = clock_now_ns() + o->lock_ms * CLOCK_NS_PER_MS;
         o->lock_ms > LIMIT_LOCK_MS && clock_now_ns() < until;) {
        if (lock_try(o->lock, type, byte) == 0)
            return 0;
        if (errno != EAGAIN)
            break; /* which lock_within says */
        if (poll(&stop, 1, 5) > 0)
            return err_set(err, ERR_STATE, "stopped while it waited for %s", what);
    }
    return lock_within(o->lock, type, byte, LIMIT_LOCK_MS, what, err);
}

int workspace_order_hold(const struct workspace_order *o, enum workspace_hold hold, struct err *err)
{
    int r = 0;
    if (hold == HOLD_CHANGE || hold == HOLD_ALONE)
        r = take(o, F_WRLCK, workspace_lock_change(o->name), "the workspace's lock", err);
    if (r == 0 && (hold == HOLD_READ || hold == HOLD_ALONE))
        r = take(o, hold == HOLD_READ ? F_RDLCK : F_WRLCK, workspace_lock_read(o->name),
                 "the workspace's lock for readers", err);
    return r;
}

void workspace_order_release(const struct workspace_order *o)
{
    lock_release(o->lock, workspace_lock_change(o->name));
}

void workspace_order_release_reader(const struct workspace_order *o)
{
    lock_release(o->lock, workspace_lock_read(o->name));
}

/* Somebody's `git pack-refs` moves a ref into another file: then cordon-workspace is asked. */
static int ask_head(const struct workspace_order *asked, char ret[41], struct err *err)
{
    struct workspace_order o = *asked;
    struct buf text;
    buf_init(&text, 4096);
    o.verb = "head";
    int r = workspace_order_run(&o, &text, err);
    if (r == 0 && sscanf(text.data ? text.data : "", "%40[0-9a-f]", ret) != 1)
        r = err_set(err, ERR_FORMAT, "cordon-workspace gave an answer that cordon does not read");
    buf_done(&text);
    return r;
}

int workspace_order_head(const struct workspace_order *o, char ret[41], struct err *err)
{
    char path[2 * WORKSPACE_NAME_MAX + 64], folder[WORKSPACE_NAME_MAX + 1], text[64] = "";
    const char *clone = workspace_clone_part(o->name);
    workspace_base_part(o->name, folder);
    snprintf(path, sizeof path, "%s/store.git/refs/heads/%s", folder, clone ? clone : "main");
    if (fd_read_file(o->home, path, text, sizeof text) == 41 && text[40] == '\n' &&
        strspn(text, "0123456789abcdef") == 40) {
        memcpy(ret, text, 40);
        ret[40] = 0;
        return 0;
    }
    return ask_head(o, ret, err);
}

int workspace_order_open(struct workspace_order *ret, const char *verb, const char *name,
                         enum workspace_hold hold, struct err *err)
{
    char path[STATE_PATH_MAX];
    FD_AUTO state = -1;
    if (*name && !workspace_full_name_good(name))
        return err_set(
            err, ERR_USAGE,
            "'%.70s' cannot name a workspace: 1 to 64 of a-z 0-9 . _ -, beginning with a "
            "letter or digit; a clone is W@CLONE",
            name);
    ret->verb = verb;
    ret->name = name;
    int r = state_path(path, sizeof path, err);
    if (r == 0)
        r = state_open(path, true, &state, err);
    if (r == 0)
        r = state_folder(state, "workspaces", true, &ret->home, err);
    if (r == 0)
        r = state_file(ret->home, ".lock", O_RDWR | O_CREAT, &ret->lock, err);
    return r == 0 ? workspace_order_hold(ret, hold, err) : r;
}

void workspace_order_done(struct workspace_order *o)
{
    fd_close(fd_take(&o->home));
    fd_close(fd_take(&o->lock));
}

/* Onto 3, 4 and 5, which an exec leaves open; the others close by themselves. */
static int place(const struct workspace_order *o)
{
    const int from[] = {o->home, o->other, o->lock};
    int high[3];
    for (size_t i = 0; i < 3; i++) {
        high[i] = from[i] < 0 ? -1 : fcntl(from[i], F_DUPFD_CLOEXEC, 10);
        if (from[i] >= 0 && high[i] < 0)
            return -1;
    }
    for (size_t i = 0; i < 3; i++) {
        close(3 + (int)i);
        if (high[i] >= 0 && dup2(high[i], 3 + (int)i) < 0)
            return -1;
    }
    return 0;
}

int workspace_order_become(const struct workspace_order *o, struct err *err)
{
    char program[4096];
    int r = programs_find("cordon-workspace", program, sizeof program, err);
    if (r < 0)
        return r;
    char bounds[96] = "0 0 0";
    if (o->policy)
        snprintf(bounds, sizeof bounds, "%llu %llu %llu",
                 (unsigned long long)o->policy->workspaces.store,
                 (unsigned long long)o->policy->workspaces.free,
                 (unsigned long long)o->policy->workspaces.free_percent);
    const char *const argv[] = {"cordon-workspace", "--from-cordon", o->form,     o->verb, o->name,
                                o->words[0],        o->words[1],     o->words[2], bounds,  NULL};
    const char *const env[] = {NULL};
    if (place(o) < 0)
        return err_sys(err, "descriptors for cordon-workspace");
    execve(program, (char *const *)argv, (char *const *)env);
    return err_sys(err, "start cordon-workspace");
}

/* All of a file in memory, from its beginning. */
static int read_back(const struct workspace_order *o, int fd, struct buf *out, struct err *err)
{
    const int r = fd_read_back(fd, out);
    return r == ERR_SYS ? err_sys(err, "read what cordon-workspace wrote")
           : r == 0 || (r == ERR_LIMIT && o->cut)
               ? 0
               : err_set(err, r, "cordon-workspace wrote too much");
}

static int failed(const struct workspace_order *o, int status, int said, struct err *err)
{
    struct buf line;
    if (WIFSIGNALED(status)) {
        const char *name = sigabbrev_np(WTERMSIG(status));
        return err_set(err, ERR_STATE, "cordon-workspace was killed by signal %d (SIG%s)",
                       WTERMSIG(status), name ? name : "?");
    }
    buf_init(&line, 4096);
    int r = read_back(o, said, &line, err);
    if (r == 0) {
        const char *text = line.data ? line.data : "it gave no reason";
        const char *from = strncmp(text, "cordon workspace: ", 18) == 0 ? text + 18 : text;
        r = err_set(err,
                    WIFEXITED(status) && WEXITSTATUS(status) == EXIT_USAGE ? ERR_USAGE : ERR_STATE,
                    "%.*s", (int)strcspn(from, "\n"), from);
    }
    buf_done(&line);
    return r;
}

/* What nobody waits for any more is not compared: that can take hours. What changes the store is finished: the files of a run that was killed
 * are in no other place. */
_Noreturn static void become(const struct workspace_order *o, int wrote, int said, size_t most,
                             pid_t parent)
{
    struct err err = ERR_INIT;
    sigset_t none; /* the supervisor blocks the signals that end a run; this child must not */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if ((!o->looks || (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent)) &&
        (!o->cut || sys_rlimit_lower(RLIMIT_FSIZE, most, most) == 0) &&
        dup2(wrote, STDOUT_FILENO) >= 0 && dup2(said, STDERR_FILENO) >= 0)
        (void)!workspace_order_become(o, &err);
    (void)!write(STDERR_FILENO, err.msg, strlen(err.msg));
    _exit(EXIT_FAILED);
}

/* Whether it wrote so much that the kernel ended it. */
static bool overflowed(const struct workspace_order *o, int wrote, size_t most)
{
    struct stat st;
    return o->cut && fstat(wrote, &st) == 0 && (uint64_t)st.st_size >= most;
}

int workspace_order_run(const struct workspace_order *o, struct buf *out, struct err *err)
{
    int status = 0;
    const size_t most = out->max + 64 * KIB; /* it is read by pieces of less than that */
    FD_AUTO wrote = memfd_create("workspace", MFD_CLOEXEC);
    FD_AUTO said = memfd_create("workspace", MFD_CLOEXEC);
    if (wrote < 0 || said < 0)
        return err_sys(err, "memory for what cordon-workspace writes");
    const pid_t parent = getpid(), pid = fork();
    if (pid < 0)
        return err_sys(err, "fork");
    if (pid == 0)
        become(o, wrote, said, most, parent);
    if (sys_child_wait(pid, o->most_ms, &status) < 0)
        return errno == ETIMEDOUT
                   ? err_set(err, ERR_STATE, "cordon-workspace took more than %llu s and was ended",
                             (unsigned long long)o->most_ms / 1000)
                   : err_sys(err, "wait for cordon-workspace");
    if (overflowed(o, wrote, most))
        return fd_read_back(wrote, out) == ERR_SYS ? err_sys(err, "read a patch") : 0;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? read_back(o, wrote, out, err)
                                                         : failed(o, status, said, err);
}
