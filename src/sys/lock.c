/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's blocking form, F_OFD_SETLKW, has no deadline, and a signal that would end it belongs to
 * the program, not to a room. So a lock that is taken is asked for again, at first after 10 us and then
 * less and less often: all locks of ours are held for microseconds, unless their holder was stopped.
 *
 * Who holds such a lock is not to be had from F_OFD_GETLK, which answers -1, nor from /proc/locks, which
 * does the same. A pid that holders write beside the lock would be wrong whenever a holder was killed
 * before or after its store, readers could not write it, and it would be one more thing in a file to
 * believe. The kernel says it in one place: /proc/PID/fdinfo/FD lists the locks of that descriptor. So
 * the processes are looked through, which takes milliseconds, and only when the deadline has passed.
 *
 * Waits: nanosleep in lock_within; another holder of the lock; the caller's deadline; ERR_STATE with
 *        the holder's pid */
#include "sys/lock.h"
#include "sys/entries.h"

#include "base/clock.h"
#include "sys/fd.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PAUSE_FIRST_NS 10000L
#define PAUSE_MOST_NS  1000000L
#define STOP_LEAST_NS  (20 * CLOCK_NS_PER_MS)
#define STOPS                                                                                      \
    8 /* that move a deadline: on a machine that starves us for ever it comes all the same */
#define SEARCH_MS                                                                                  \
    1000 /* for the holder, on a busy machine; a message without its name is better than none */

static int set(int fd, short type, off_t byte)
{
    struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    int r;
    do
        r = fcntl(fd, F_OFD_SETLK, &l);
    while (r < 0 && errno == EINTR);
    return r;
}

int lock_try(int fd, short type, off_t byte)
{
    int r = set(fd, type, byte);
    if (r < 0 && errno == EACCES) /* POSIX allows both */
        errno = EAGAIN;
    return r;
}

void lock_release(int fd, off_t byte)
{
    if (set(fd, F_UNLCK, byte) < 0)
        err_assert_failed("an unlock cannot fail", __FILE__, __LINE__);
}

/* What a pause of TOOK says of ourselves: no pause is so long, so we were stopped, or got no processor. Whoever has the lock when
 * we go on may have had it for a moment. */
static uint64_t own_stop(uint64_t took, uint64_t ms)
{
    return took > STOP_LEAST_NS && took > ms * CLOCK_NS_PER_MS / 4 ? took : 0;
}

int lock_within(int fd, short type, off_t byte, uint64_t ms, const char *what, struct err *err)
{
    long pause = PAUSE_FIRST_NS;
    int stops = 0;
    for (uint64_t until = 0;;) {
        if (lock_try(fd, type, byte) == 0)
            return 0;
        if (errno != EAGAIN)
            return err_sys(err, "take %s", what);
        uint64_t now = clock_now_ns();
        if (until == 0) {
            until = now + ms * CLOCK_NS_PER_MS;
        } else if (now >= until) {
            char holder[160];
            lock_describe(lock_holder(fd, byte), holder, sizeof holder);
            return err_set(err, ERR_STATE, "%s is held for more than %llu ms by %s", what,
                           (unsigned long long)ms, holder);
        }
        nanosleep(&(struct timespec){0, pause}, NULL);
        const uint64_t stop = own_stop(clock_now_ns() - now, ms);
        if (stop && stops++ < STOPS)
            until += stop;
        pause = pause + pause / 2 < PAUSE_MOST_NS ? pause + pause / 2 : PAUSE_MOST_NS;
    }
}

/* ---- who holds it ---- */

/* Name and state of a process. The name may hold anything, brackets and newlines included. */
static char look_at(pid_t pid, char *name, size_t size)
{
    char path[40], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (fd_read_file(AT_FDCWD, path, text, sizeof text) < 0)
        return 0;
    char *from = strchr(text, '('), *to = strrchr(text, ')');
    if (!from || !to || to[1] != ' ')
        return 0;
    *to = 0;
    snprintf(name, size, "%s", from + 1);
    for (char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("-_.:/+", *c))
            *c = '?';
    return to[2];
}

char lock_process_state(pid_t pid)
{
    char name[32];
    return look_at(pid, name, sizeof name);
}

/* Whether a line "lock: 1: OFDLCK ADVISORY WRITE -1 fe:01:77 0 0" speaks of BYTE. */
static bool covers(const char *line, off_t byte)
{
    char kind[16], forced[16], mode[16], last[24];
    long number, pid;
    unsigned major, minor;
    unsigned long long inode, first;
    if (sscanf(line, "lock: %ld: %15s %15s %15s %ld %x:%x:%llu %llu %23s", &number, kind, forced,
               mode, &pid, &major, &minor, &inode, &first, last) != 10)
        return false;
    unsigned long long end = strcmp(last, "EOF") == 0 ? ~0ULL : strtoull(last, NULL, 10);
    return strcmp(kind, "FLOCK") != 0 && (unsigned long long)byte >= first &&
           (unsigned long long)byte <= end;
}

static bool descriptor_holds(int process, const char *name, const struct stat *file, off_t byte)
{
    char path[64], text[4096], *save = NULL;
    struct stat st;
    snprintf(path, sizeof path, "fd/%.20s", name);
    if (fstatat(process, path, &st, 0) < 0 || st.st_dev != file->st_dev ||
        st.st_ino != file->st_ino)
        return false;
    snprintf(path, sizeof path, "fdinfo/%.20s", name);
    if (fd_read_file(process, path, text, sizeof text) < 0)
        return false;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        if (covers(line, byte))
            return true;
    return false;
}

static bool process_holds(int process, const struct stat *file, off_t byte)
{
    DIR *d = entries_take(openat(process, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    bool holds = false;
    if (!d)
        return false;
    for (const char *name; !holds && (name = entries_next(d));)
        holds = descriptor_holds(process, name, file, byte);
    closedir(d);
    return holds;
}

/* One of those that are stopped, or of all others. */
static pid_t search(DIR *proc, bool stopped, const struct stat *file, off_t byte, uint64_t until)
{
    rewinddir(proc);
    for (struct dirent *e; clock_now_ns() < until && (e = readdir(proc));) {
        pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);
        char state = pid > 0 ? lock_process_state(pid) : 0;
        if (!state || (state == 'T' || state == 't') != stopped)
            continue;
        FD_AUTO process =
            openat(dirfd(proc), e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (process >= 0 && process_holds(process, file, byte))
            return pid;
    }
    return 0;
}

pid_t lock_holder(int fd, off_t byte)
{
    struct stat file;
    uint64_t until = clock_now_ns() + SEARCH_MS * CLOCK_NS_PER_MS;
    DIR *proc = fstat(fd, &file) < 0 ? NULL : opendir("/proc");
    if (!proc)
        return 0;
    /* Stopped ones first: they are few, they are what is looked for, and a process that was forked from one shows the
     * same lock. */
    pid_t found = search(proc, true, &file, byte, until);
    if (!found)
        found = search(proc, false, &file, byte, until);
    closedir(proc);
    return found;
}

void lock_describe(pid_t pid, char *out, size_t size)
{
    char name[32] = "";
    char state = pid > 0 ? look_at(pid, name, sizeof name) : 0;
    if (!state)
        snprintf(
            out, size, "%s",
            "a process that cannot be seen from here (it has just ended, or belongs to another "
            "user or container)");
    else if (state == 'T' || state == 't')
        snprintf(out, size,
                 "pid %d (%s, stopped): `kill -CONT %d` lets it go on, `kill -KILL %d` ends it",
                 (int)pid, name, (int)pid, (int)pid);
    else
        snprintf(out, size, "pid %d (%s%s): wait, or end it with `kill %d`", (int)pid, name,
                 state == 'D' ? ", waits for the disk" : "", (int)pid);
}
