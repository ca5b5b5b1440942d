/* SPDX-License-Identifier: Apache-2.0 */
/* What the process that forks a session sees of the processes of a fork: in /proc, while they are held in a system
 * call or have been killed. Nothing here asks a guest.
 *
 * The new branch is the one child of the init whose user namespace is directly below the session's and has no ids
 * mapped. Nobody but the session can make such a process (its clone is let pass once, any other is refused), and the
 * ids of its earlier branches were mapped when they were forked. So a relative that is forked at the same time, or
 * that ends, is not taken for it.
 *
 * Waits: getline in maps_shared; /proc; at once; the fork is refused */
#include "jail/supervisor/branching.h"

#include "jail/supervisor/running.h"
#include "sys/entries.h"
#include "sys/fd.h"
#include "sys/pidfd.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>

/* ---- who is who in the family ---- */

int jail_branch_open(const struct jail_branching *b, pid_t pid, const char *name, int flags)
{
    char path[64];
    snprintf(path, sizeof path, "%d/%s", (int)pid, name);
    return openat(b->proc, path, flags | O_CLOEXEC);
}

static bool status_says(const char *status, const char *line)
{
    const char *at = strstr(status, line);
    return at && at[strlen(line)] == '\n';
}

static bool is_child_of_init(const struct jail_branching *b, pid_t pid)
{
    char path[32], status[8192], want[48];
    snprintf(path, sizeof path, "%d/status", (int)pid);
    snprintf(want, sizeof want, "\nPPid:\t%d", (int)sys_pidfd_pid(b->session->init));
    return fd_read_file(b->proc, path, status, sizeof status) > 0 && status_says(status, want);
}

/* Whether the user namespace of PID is directly below the session's. */
static bool is_below_session(const struct jail_branching *b, pid_t pid)
{
    struct stat above;
    FD_AUTO its = jail_branch_open(b, pid, "ns/user", O_RDONLY);
    FD_AUTO parent = its < 0 ? -1 : ioctl(its, NS_GET_PARENT);
    return parent >= 0 && fstat(parent, &above) == 0 && above.st_ino == b->user_ns.st_ino &&
           above.st_dev == b->user_ns.st_dev;
}

static bool has_no_ids(const struct jail_branching *b, pid_t pid)
{
    char path[32], map[64];
    snprintf(path, sizeof path, "%d/uid_map", (int)pid);
    return fd_read_file(b->proc, path, map, sizeof map) == 0;
}

bool jail_branch_is_new(const struct jail_branching *b, pid_t pid)
{
    return has_no_ids(b, pid) && is_below_session(b, pid) && is_child_of_init(b, pid);
}

pid_t jail_branch_find_new(const struct jail_branching *b)
{
    DIR *dir = entries_of(b->proc);
    pid_t found = 0;
    if (!dir)
        return -1;
    for (const char *name; !found && (name = entries_next(dir));) {
        pid_t pid = (pid_t)strtol(name, NULL, 10);
        if (pid > 0 && jail_branch_is_new(b, pid))
            found = pid;
    }
    closedir(dir);
    return found;
}

/* ---- looking at a process that is held ---- */

static bool alone(const struct jail_branching *b, pid_t pid)
{
    struct stat st;
    FD_AUTO dir = jail_branch_open(b, pid, "task", O_RDONLY | O_DIRECTORY);
    return dir >= 0 && fstat(dir, &st) == 0 && st.st_nlink == 3;
}

/* Whether it is on an overlay that can be written: the session's /workspace, the one that it had before its head moved,
 * or a folder of the caller's. Files of an overlay have device numbers of their own, so the kind of file system is asked
 * for. The system's own files may be on one, too, but are shown read-only. */
static bool is_on_overlay(int dir, const char *name)
{
    struct statfs fs;
    FD_AUTO fd = openat(dir, name, O_PATH | O_CLOEXEC);
    return fd < 0 || fstatfs(fd, &fs) < 0 ||
           (fs.f_type == OVERLAYFS_SUPER_MAGIC && !(fs.f_flags & ST_RDONLY));
}

/* Calls SEE for each descriptor until it says no. -1: could not look. */
static int each_fd(const struct jail_branching *b, pid_t pid,
                   bool (*see)(const struct jail_branching *b, int fd, const struct stat *st))
{
    DIR *dir = entries_take(jail_branch_open(b, pid, "fd", O_RDONLY | O_DIRECTORY));
    int r = 0;
    if (!dir)
        return -1;
    for (const char *name; r == 0 && (name = entries_next(dir));) {
        struct stat st;
        if (fstatat(dirfd(dir), name, &st, 0) < 0)
            r = -1;
        else if (b->overlay && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)) &&
                 is_on_overlay(dirfd(dir), name))
            r = 1;
        else if (!see(b, (int)strtol(name, NULL, 10), &st))
            r = 1;
    }
    closedir(dir);
    return r;
}

static bool not_of_workspace(const struct jail_branching *b, int fd, const struct stat *st)
{
    (void)fd;
    return st->st_dev != b->files;
}

/* Of a pipe, a socket or an event both would hold the ends. Files of /usr stay, though both move the same
 * place in them: libraries keep some open (matplotlib its fonts). */
static bool not_shared(const struct jail_branching *b, int fd, const struct stat *st)
{
    (void)b;
    return fd < JAIL_STREAMS || S_ISCHR(st->st_mode) || S_ISREG(st->st_mode) ||
           S_ISDIR(st->st_mode);
}

static bool not_of_session(const struct jail_branching *b, int fd, const struct stat *st)
{
    for (int i = 0; i < JAIL_STREAMS; i++)
        if (st->st_ino == b->streams[i] && (S_ISFIFO(st->st_mode) || S_ISSOCK(st->st_mode)))
            return false;
    return not_of_workspace(b, fd, st) && not_shared(b, fd, st);
}

/* FROM-END RIGHTS OFFSET MAJOR:MINOR ... 1: it is shared, or of the session's files; -1: no such line. By hand: a session
 * has a hundred maps, twice looked at while it is held, and with sscanf a fork takes 4 % longer (`make bench BENCH=python`). */
static int map_shared(const char *line, const struct jail_branching *b)
{
    const char *rights = strchr(line, ' '), *offset = rights ? strchr(rights + 1, ' ') : NULL;
    const char *device = offset ? strchr(offset + 1, ' ') : NULL;
    char *colon, *end;
    if (!device || offset - rights != 5)
        return -1;
    unsigned long major = strtoul(device + 1, &colon, 16);
    if (*colon != ':')
        return -1;
    unsigned long minor = strtoul(colon + 1, &end, 16);
    if (end == colon + 1 || *end != ' ')
        return -1;
    const dev_t of = makedev((unsigned)major, (unsigned)minor);
    return rights[4] == 's' || of == b->files || (b->overlay && of == b->overlay);
}

/* A shared map, or any of a file of the workspace, would tie the two together. 1: there is one. */
static int maps_shared(const struct jail_branching *b, pid_t pid)
{
    char buffer[4096]; /* the kernel gives a page at once; a stream's own is smaller */
    FD_AUTO fd = jail_branch_open(b, pid, "maps", O_RDONLY);
    FILE *f = fd < 0 ? NULL : fdopen(fd_take(&fd), "re");
    char *line = NULL;
    size_t cap = 0;
    int r = f && setvbuf(f, buffer, _IOFBF, sizeof buffer) == 0 ? 0 : -1;
    while (r == 0 && getline(&line, &cap, f) > 0)
        r = map_shared(line, b);
    free(line);
    if (f)
        fclose(f);
    return r;
}

/* Whether the session can be forked as it is. */
int jail_branch_may_fork(struct jail_branching *b, struct err *err)
{
    if (!alone(b, b->guest))
        return err_set(err, ERR_STATE, "the session has threads: they cannot be forked");
    int open_files = each_fd(b, b->guest, not_of_workspace);
    if (open_files > 0)
        return err_set(err, ERR_STATE,
                       "the session has files or folders of the workspace open: close them first");
    int ends = open_files < 0 ? -1 : each_fd(b, b->guest, not_shared);
    if (ends > 0)
        return err_set(err, ERR_STATE,
                       "the session has pipes, sockets or event loops that a branch would share: "
                       "close them first");
    int shared = ends < 0 ? -1 : maps_shared(b, b->guest);
    if (shared > 0)
        return err_set(err, ERR_STATE,
                       "the session has shared memory or a mapped file of the workspace");
    if (shared < 0)
        return err_sys(err, "look at the session");
    FD_AUTO fds = jail_branch_open(b, b->guest, "fd", O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < JAIL_STREAMS; i++) {
        char name[4];
        struct stat st;
        snprintf(name, sizeof name, "%d", i);
        b->streams[i] = fstatat(fds, name, &st, 0) == 0 ? st.st_ino : 0; /* closed: nobody's */
    }
    return 0;
}

/* The third hold: everything is seen, nothing is taken for granted. */
int jail_branch_released(const struct jail_branching *b, struct err *err)
{
    char path[32], status[8192];
    struct stat cwd, own;
    snprintf(path, sizeof path, "%d/status", (int)b->branch);
    if (fd_read_file(b->proc, path, status, sizeof status) < 0)
        return err_sys(err, "look at the branch");
    const char *wrong = NULL;
    snprintf(path, sizeof path, "%d/cwd", (int)b->branch);
    if (!status_says(status, "\nCapPrm:\t0000000000000000") ||
        !status_says(status, "\nCapEff:\t0000000000000000") ||
        !status_says(status, "\nCapInh:\t0000000000000000") ||
        !status_says(status, "\nCapAmb:\t0000000000000000"))
        wrong = "capabilities";
    else if (!status_says(status, "\nSeccomp:\t2") || !status_says(status, "\nNoNewPrivs:\t1"))
        wrong = "a process without its locks";
    else if (!alone(b, b->branch))
        wrong = "a thread";
    else if (fstatat(b->proc, path, &cwd, 0) < 0 || fstat(b->dir, &own) < 0 ||
             cwd.st_dev == b->files || own.st_dev == b->files ||
             (b->overlay && cwd.st_dev != b->own_overlay && is_on_overlay(b->proc, path)))
        wrong = "the session's folder";
    else if (each_fd(b, b->branch, not_of_session) != 0)
        wrong = "a descriptor of the session";
    else if (maps_shared(b, b->branch) != 0)
        wrong = "a map of the session's files";
    return wrong ? err_set(err, ERR_MISSING, "the branch kept %s", wrong) : 0;
}
