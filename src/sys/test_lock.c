/* SPDX-License-Identifier: Apache-2.0 */
/* Real processes hold the lock: stopped, at work, as a reader, by the older kind of lock. */
#include "base/clock.h"
#include "base/tap.h"
#include "sys/lock.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char path[] = "/tmp/cordon-lock-XXXXXX";

/* The search for a holder ends after a second, found or not; an emulated machine with much to do was seen to need more. */
enum { TRIES = 20, WAITER_MS = 4000 };

enum how { WRITER, READER, POSIX_WRITER };

/* A child that holds BYTE, and is stopped if it is to be; it holds the lock when this returns. */
static pid_t holder(off_t byte, enum how how, bool stopped)
{
    int ready[2];
    char done;
    if (pipe2(ready, O_CLOEXEC) < 0)
        exit(1);
    pid_t pid = fork();
    if (pid == 0) {
        int fd = open(path, O_RDWR | O_CLOEXEC);
        struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
        int r = how == POSIX_WRITER ? fcntl(fd, F_SETLK, &l)
                                    : lock_try(fd, how == READER ? F_RDLCK : F_WRLCK, byte);
        if (r < 0 || write(ready[1], "", 1) != 1)
            _exit(1);
        if (stopped)
            raise(SIGSTOP);
        else
            pause();
        _exit(0);
    }
    close(ready[1]);
    if (read(ready[0], &done, 1) != 1)
        printf("# the holder failed\n");
    close(ready[0]);
    int status;
    if (stopped)
        waitpid(pid, &status, WUNTRACED);
    return pid;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void test_stopped(int fd)
{
    struct err err = ERR_INIT;
    char want[160];
    pid_t pid = holder(3, WRITER, true);
    uint64_t before = clock_now_ns();
    int r = lock_within(fd, F_WRLCK, 3, 50, "the test's lock", &err);
    uint64_t took = (clock_now_ns() - before) / CLOCK_NS_PER_MS;
    tap_eq_int(r, ERR_STATE, "a lock that a stopped process holds is given up");
    tap_ok(took >= 50, "a lock is not given up before the deadline (%llu ms)",
           (unsigned long long)took);
    snprintf(want, sizeof want, "the test's lock is held for more than 50 ms by pid %d (",
             (int)pid);
    tap_ok(strncmp(err.msg, want, strlen(want)) == 0, "the refusal names the holder: %s", err.msg);
    snprintf(want, sizeof want,
             ", stopped): `kill -CONT %d` lets it go on, `kill -KILL %d` ends it", (int)pid,
             (int)pid);
    tap_ok(strstr(err.msg, want), "the refusal says that the holder is stopped, and what to do");
    tap_eq_int(lock_within(fd, F_WRLCK, 4, 0, "another lock", &err), 0,
               "another byte of the file is free");
    lock_release(fd, 4);
    kill(pid, SIGCONT);
    tap_eq_int(lock_within(fd, F_WRLCK, 3, 60000, "the test's lock", &err), 0,
               "after SIGCONT the holder goes on and the lock is free");
    lock_release(fd, 3);
    end(pid);
}

static void test_kinds(int fd)
{
    struct err err = ERR_INIT;
    char want[64];
    pid_t pid = holder(0, READER, false);
    tap_eq_int(lock_try(fd, F_RDLCK, 0), 0, "two readers share a lock");
    lock_release(fd, 0);
    snprintf(want, sizeof want, "`kill %d`", (int)pid);
    int got = ERR_STATE;
    for (int i = 0; i < TRIES && got == ERR_STATE && !strstr(err.msg, want); i++) {
        err = (struct err)ERR_INIT;
        got = lock_within(fd, F_WRLCK, 0, 20, "the lock", &err);
    }
    tap_eq_int(got, ERR_STATE, "a writer waits for two readers");
    tap_ok(strstr(err.msg, want) && !strstr(err.msg, "stopped"),
           "a reader that is at work is named, too: %s", err.msg);
    end(pid);
    tap_eq_int(lock_within(fd, F_WRLCK, 0, 60000, "the lock", &err), 0,
               "the lock of a killed process is free");
    lock_release(fd, 0);
    tap_eq_int(lock_holder(fd, 0), 0, "a lock that was released has no holder");
    pid = holder(7, POSIX_WRITER, false);
    pid_t found = 0;
    for (int i = 0; i < TRIES && !found; i++)
        found = lock_holder(fd, 7);
    tap_eq_int(found, pid, "the holder of a POSIX lock is found");
    tap_eq_int(lock_holder(fd, 8), 0, "the holder of a POSIX lock is found on its own byte only");
    end(pid);
    lock_describe(0, err.msg, sizeof err.msg);
    tap_ok(strstr(err.msg, "cannot be seen"), "a holder in another container is said to be unseen");
}

/* Who waits is stopped for longer than its deadline, and finds the lock taken once more when it goes on. */
static void test_waiter(int fd)
{
    struct err err = ERR_INIT;
    int ready[2], status = -1;
    char done;
    if (lock_try(fd, F_WRLCK, 9) < 0 || pipe2(ready, O_CLOEXEC) < 0)
        exit(1);
    pid_t pid = fork();
    if (pid == 0) {
        int own = open(path, O_RDWR | O_CLOEXEC);
        if (write(ready[1], "", 1) != 1)
            _exit(1);
        _exit(lock_within(own, F_WRLCK, 9, WAITER_MS, "the lock", &err) == 0 ? 0 : 1);
    }
    if (read(ready[0], &done, 1) != 1)
        printf("# the waiter failed\n");
    usleep(
        100000); /* it has asked for the first time; if not, it begins later, and shows nothing */
    kill(pid, SIGSTOP);
    usleep((WAITER_MS + 200) * 1000);
    kill(pid, SIGCONT);
    usleep(100000); /* it asks again; if not, it gets the lock at once */
    lock_release(fd, 9);
    waitpid(pid, &status, 0);
    tap_eq_int(status, 0, "the time in which a waiter was stopped itself is not its deadline's");
    close(ready[0]);
    close(ready[1]);
}

int main(void)
{
    int fd = mkostemp(path, O_CLOEXEC);
    if (!tap_ok(fd >= 0, "a file to lock is made"))
        return tap_done();
    test_stopped(fd);
    test_kinds(fd);
    test_waiter(fd);
    unlink(path);
    return tap_done();
}
