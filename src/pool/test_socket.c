/* SPDX-License-Identifier: Apache-2.0 */
/* The folder, the lock and the socket, with real processes: who may hold, who is refused, what a dead
 * holder leaves. */
#include "base/tap.h"
#include "pool/pool.h"
#include "pool/socket.h"
#include "sys/fd.h"
#include "sys/peer.h"
#include "wire/msg.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char top[64];

static void set(const char *variable, const char *below)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", top, below);
    setenv(variable, path, 1);
}

static void unset_all(void)
{
    static const char *const names[] = {"CORDON_STATE", "XDG_RUNTIME_DIR", "XDG_STATE_HOME",
                                        "HOME"};
    for (size_t i = 0; i < 4; i++)
        unsetenv(names[i]);
}

static bool ends_in(const char *path, const char *end)
{
    size_t a = strlen(path), b = strlen(end);
    return a >= b && strcmp(path + a - b, end) == 0;
}

static void where(void)
{
    struct pool_socket p = {.dir = -1};
    struct err err = ERR_INIT;
    unset_all();
    if (geteuid() != 0)
        tap_eq_int(pool_socket_open(&p, false, &err), ERR_USAGE,
                   "without any folder there is no place for the socket: %s", err.msg);
    set("HOME", "home");
    set("XDG_STATE_HOME", "state");
    tap_ok(pool_socket_open(&p, false, &err) == 0 && p.dir < 0 &&
               ends_in(p.path, "/state/cordon/run"),
           "the state folder is the last choice, and a missing one is no error");
    set("XDG_RUNTIME_DIR", "runtime");
    tap_ok(pool_socket_open(&p, false, &err) == 0 && ends_in(p.path, "/runtime/cordon"),
           "the runtime folder comes before the state folder");
    set("CORDON_STATE", "own");
    tap_ok(pool_socket_open(&p, true, &err) == 0 && p.dir >= 0 && ends_in(p.path, "/own/run"),
           "the folder that CORDON_STATE names comes before all");
    struct stat st;
    tap_ok(fstat(p.dir, &st) == 0 && (st.st_mode & 0777) == 0700,
           "the folder of the socket is made, for us alone");
    pool_socket_done(&p);
    char path[128];
    snprintf(path, sizeof path, "%s/own/run", top);
    chmod(path, 0755);
    tap_ok(pool_socket_open(&p, true, &err) == ERR_STATE && strstr(err.msg, "chmod 700"),
           "a folder of the socket that is open to others is refused: %s", err.msg);
    chmod(path, 0700);
    if (geteuid() == 0) {
        (void)!chown(path, 12345, 12345);
        tap_ok(pool_socket_open(&p, true, &err) == ERR_STATE && strstr(err.msg, "another user"),
               "another user's folder of the socket is refused");
        (void)!chown(path, 0, 0);
    }
    rename(path, "/tmp/cordon-test-socket-moved");
    (void)!symlink("/tmp/cordon-test-socket-moved", path);
    tap_ok(pool_socket_open(&p, true, &err) < 0,
           "a link in the place of the folder of the socket is refused: %s", err.msg);
    unlink(path);
    rename("/tmp/cordon-test-socket-moved", path);
    setenv("CORDON_STATE", "relative", 1);
    tap_eq_int(pool_socket_open(&p, true, &err), ERR_USAGE,
               "a relative path of the socket is refused");
    set("CORDON_STATE", "own");
}

/* A holder that lives until it is killed. Returns its pid once it has written a byte; *ret_said is that
 * byte. */
static pid_t holder(const struct pool_socket *p, bool listens, char *ret_said)
{
    int pipes[2];
    if (pipe2(pipes, O_CLOEXEC) < 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        int lock = -1, sock = -1;
        struct err err = ERR_INIT;
        int r = pool_socket_listen(p->dir, p->mark, &lock, &sock, &err);
        if (r == 0 && sock >= 0 && listens)
            pool_socket_listening(lock);
        (void)!write(pipes[1], r < 0 ? "E" : sock < 0 ? "L" : "H", 1);
        for (;;)
            pause();
    }
    fd_close(pipes[1]);
    *ret_said = 0;
    (void)!read(pipes[0], ret_said, 1);
    fd_close(pipes[0]);
    return pid;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void holders(void)
{
    struct pool_socket p = {.dir = -1};
    struct err err = ERR_INIT;
    int sock = 0;
    char said = 0;
    pid_t pids[4] = {0}, first, second;
    tap_ok(pool_socket_open(&p, true, &err) == 0, "the folder of the socket is opened");
    tap_ok(pool_socket_connect(&p, POOL_ANSWER_MS, &sock, &err) == 0 && sock < 0,
           "no holder at the socket is no error");
    first = holder(&p, true, &said);
    tap_eq_int(said, 'H', "the first holder gets the lock");
    second = holder(&p, true, &said);
    tap_eq_int(said, 'L', "a second holder does not get the lock");
    tap_ok(pool_socket_holders(&p, pids, 4) == 1 && pids[0] == first,
           "the kernel names the holder");
    pid_t peer = 0;
    tap_ok(pool_socket_connect(&p, POOL_ANSWER_MS, &sock, &err) == 0 && sock >= 0 &&
               sys_peer_is_us(sock, &peer) && peer == first,
           "a client reaches the holder, and knows its pid");
    fd_close(sock);
    end(second);
    end(first);
    tap_ok(pool_socket_connect(&p, POOL_ANSWER_MS, &sock, &err) == 0 && sock < 0,
           "nobody connects to the socket of a dead holder");
    tap_eq_int(pool_socket_holders(&p, pids, 4), 0, "nobody holds the lock of a dead holder");
    first = holder(&p, false, &said);
    tap_eq_int(said, 'H', "the next holder gets the lock of a dead one");

    /* one that has the lock and does not listen yet */
    pid_t waiter = fork();
    if (waiter == 0) {
        (void)pool_socket_wait(&p);
        _exit(0);
    }
    usleep(50000);
    tap_eq_int(waitpid(waiter, NULL, WNOHANG), 0, "a client that waits for a silent holder sleeps");
    end(first);
    tap_eq_int(waitpid(waiter, NULL, 0), waiter,
               "a client that waits for a holder wakes when the holder dies");
    pool_socket_done(&p);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    (void)st, (void)kind, (void)where;
    return remove(path);
}

/* As a guest: the same user on the host, in a user namespace of its own. */
static void namespaces(void)
{
    int hold[2];
    if (!tap_ok(pipe2(hold, O_CLOEXEC) == 0, "a pipe for the child is made"))
        return;
    pid_t guest = fork();
    if (guest == 0) {
        char c;
        close(hold[1]);
        _exit(unshare(CLONE_NEWUSER) == 0 && read(hold[0], &c, 1) == 0 ? 0 : 1);
    }
    close(hold[0]);
    char path[40], before[64] = "", now[64] = "";
    snprintf(path, sizeof path, "/proc/%d/uid_map", (int)guest);
    (void)!fd_read_file(AT_FDCWD, "/proc/self/uid_map", before, sizeof before);
    for (int i = 0; i < 5000;
         i++) { /* until it is in its own namespace, where nothing is mapped yet */
        if (fd_read_file(AT_FDCWD, path, now, sizeof now) >= 0 && strcmp(before, now) != 0)
            break;
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    tap_ok(!sys_peer_is_outside(guest),
           "a process of the same user in another user namespace is not served");
    tap_ok(sys_peer_is_outside(getpid()), "a process of our own user namespace is served");
    close(hold[1]);
    int status = -1;
    waitpid(guest, &status, 0);
    tap_eq_int(status, 0, "the process in its own namespace waited for the test");
}

int main(void)
{
    snprintf(top, sizeof top, "/tmp/cordon-test-socket-XXXXXX");
    if (!mkdtemp(top))
        return 1;
    where();
    holders();
    namespaces();
    if (nftw(top, remove_one, 8, FTW_DEPTH | FTW_PHYS) != 0)
        return 1;
    return tap_done();
}
