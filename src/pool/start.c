/* SPDX-License-Identifier: Apache-2.0 */
/* Starting the holder: two forks, so that it is nobody's child and has no terminal, then a program of its
 * own with a clean environment and two descriptors: the folder, and a pipe on which it says that it
 * listens. Two clients that start one at the same time both go on with the one that got the lock.
 *
 * Waits: pool_socket_connect in pool_client_start; the holder's queue; POOL_ANSWER_MS, three times; an error
 *        sys_child_wait in spawn; a child that forks and ends; FD_PATIENCE_MS; it did not start
 *        poll in spawn; the holder to listen; FD_PATIENCE_MS; it did not start
 *        read in spawn; nobody: poll said that it is there; at once; its word */
#include "pool/pool_client.h"

#include "sys/child.h"
#include "sys/fd.h"
#include "sys/here.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HOLDER_DIR = 3, HOLDER_READY = 4 }; /* see prog/holder/main.c */

/* Where cgroups may be made is the user's to say, and the one thing of the environment that a jail asks for. */
static void exec_holder(const char *holder, const struct pool_environment *e, int dir, int ready)
{
    static char name[] = "cordon-holder", word[] = "--from-cordon", yes[] = "1", no[] = "0";
    struct pool_environment own = e ? *e : (struct pool_environment){0};
    char *const argv[] = {name, word, own.site, own.preload, own.system ? yes : no, NULL};
    char cgroup[1024] = "", *env[] = {NULL, NULL};
    const char *group = getenv("CORDON_CGROUP");
    sigset_t none;
    if (group && snprintf(cgroup, sizeof cgroup, "CORDON_CGROUP=%s", group) < (int)sizeof cgroup)
        env[0] = cgroup;
    int high_dir = fcntl(dir, F_DUPFD_CLOEXEC, 16), high_ready = fcntl(ready, F_DUPFD_CLOEXEC, 16);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (high_dir < 0 || high_ready < 0 || null < 0 || chdir("/") < 0)
        _exit(1);
    for (int i = 0; i < 3; i++)
        if (dup2(null, i) < 0)
            _exit(1);
    if (dup2(high_dir, HOLDER_DIR) < 0 || dup2(high_ready, HOLDER_READY) < 0)
        _exit(1);
    close_range(HOLDER_READY + 1, ~0U, CLOSE_RANGE_CLOEXEC);
    umask(022); /* folders of a jail are made as for a run of its own; our own files say who may */
    for (int s = 1; s < 32; s++)
        signal(s, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(holder, argv, env);
    _exit(1);
}

/* *ret_ours: it is the one that listens. */
static int spawn(const char *holder, const struct pool_environment *e, int dir, bool *ret_ours,
                 struct err *err)
{
    int pipes[2];
    if (pipe2(pipes, O_CLOEXEC) < 0)
        return err_sys(err, "pipe");
    pid_t pid = fork();
    if (pid == 0) {
        setsid();
        pid_t second = fork(); /* no leader of a session: it can never get a terminal */
        if (second == 0)
            exec_holder(holder, e, dir, pipes[1]);
        _exit(second < 0);
    }
    FD_AUTO said = pipes[0];
    fd_close(pipes[1]);
    int status = 1;
    if (pid < 0)
        return err_sys(err, "start the holder");
    int r = sys_child_wait(pid, FD_PATIENCE_MS, &status);
    char word[240] =
        ""; /* R: it listens; L: another one does, or will; E and a sentence: neither */
    struct pollfd p = {.fd = said, .events = POLLIN};
    if (r < 0 || status != 0 || poll(&p, 1, FD_PATIENCE_MS) != 1 ||
        read(said, word, sizeof word - 1) < 1)
        return err_set(err, ERR_MISSING, "the holder (%.120s) did not start", holder);
    *ret_ours = word[0] == 'R';
    return word[0] == 'E' ? err_set(err, ERR_MISSING, "the holder: %s", word + 1) : 0;
}

int pool_client_start(struct pool_client *ret, const struct pool_environment *e, const char *holder,
                      bool *ret_fresh, struct err *err)
{
    struct pool_socket at = {.dir = -1};
    char path[PATH_MAX]; /* whole: it is executed in another folder */
    bool ours = false;
    *ret = (struct pool_client){.sock = -1, .answer_ms = POOL_ANSWER_MS};
    if (!realpath(holder, path))
        return err_sys(err, "%.160s", holder);
    int r = here_proc(err); /* its socket is bound by a path below /proc/self/fd */
    if (r == 0)
        r = pool_socket_open(&at, true, err);
    at.mark = pool_environment_mark(e);
    for (int tries = 0; tries < 3 && r == 0 && ret->sock < 0; tries++) {
        r = pool_socket_connect(&at, POOL_ANSWER_MS, &ret->sock, err);
        if (r < 0 || ret->sock >= 0)
            break;
        r = spawn(path, e, at.dir, &ours, err);
        if (r < 0)
            break;
        (void)pool_socket_wait(&at);
        r = pool_socket_connect(&at, POOL_ANSWER_MS, &ret->sock, err);
        if (r == 0 && ret->sock < 0) /* the one that has the lock is about to end */
            (void)pool_socket_gone(&at);
    }
    if (r == 0 && ret->sock < 0)
        r = err_set(err, ERR_MISSING, "the holder ended as soon as it was started");
    pool_socket_done(&at);
    if (ret_fresh)
        *ret_fresh = ours;
    return r;
}
