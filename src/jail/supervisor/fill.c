/* SPDX-License-Identifier: Apache-2.0 */
/* A session's /workspace gets other files. They are written by a process with the guest's own id, because the file system
 * is the guest's and has no other ids; it holds the two folders and opens everything below them by one name, through no
 * link. Threads of the guest may run meanwhile: the worst that they reach is a file of their own in another place of
 * their own file system.
 *
 * Waits: sys_child_wait in jail_child_fill; the process that copies; LIMIT_WORKSPACE_RUN_MS; it is killed, and the session
 *          has some of the files */
#include "jail/child.h"

#include "base/limits.h"
#include "jail/copy.h"
#include "jail/outside.h"
#include "sys/child.h"
#include "sys/entries.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

static int take_identity(int files)
{
    struct stat st;
    if (fstat(files, &st) < 0)
        return -1;
    if (geteuid() != 0)
        return 0;
    return setgroups(0, NULL) < 0 || setresgid(st.st_gid, st.st_gid, st.st_gid) < 0 ||
                   setresuid(st.st_uid, st.st_uid, st.st_uid) < 0
               ? -1
               : 0;
}

static bool is_empty(int dir)
{
    DIR *d = entries_of(dir);
    if (!d)
        return false;
    const bool empty = !entries_next(d) && errno == 0;
    closedir(d);
    return empty;
}

/* A guest may have shut the two folders: they are its own. */
static int fill(int files, int from, struct err *err)
{
    if (take_identity(files) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_sys(err, "take the id of the session");
    if (fchmod(files, 0755) < 0)
        return err_sys(err, "open the session's files");
    FD_AUTO shut = openat(files, "workspace", O_PATH | O_NOFOLLOW | O_CLOEXEC);
    char self[40];
    snprintf(self, sizeof self, "/proc/self/fd/%d", shut);
    struct stat st;
    if (shut < 0 || fstat(shut, &st) < 0 || !S_ISDIR(st.st_mode) || chmod(self, 0755) < 0)
        return err_set(err, ERR_STATE, "the session has no folder /workspace any more");
    FD_AUTO to = openat(files, "workspace", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (to < 0)
        return err_sys(err, "open the session's /workspace");
    jail_scratch_empty(to, LIMIT_SCRATCH_MS);
    if (!is_empty(to))
        return err_set(err, ERR_STATE, "what the session has in /workspace cannot be removed");
    return jail_copy_tree(from, to, err);
}

int jail_child_fill(int files, int from, struct err *err)
{
    int status = 0;
    struct err *told =
        mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (told == MAP_FAILED)
        return err_sys(err, "memory for an error");
    *told = (struct err)ERR_INIT;
    const pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(fill(files, from, told) < 0);
    }
    if (pid < 0)
        err_sys(told, "fork");
    else if (sys_child_wait(pid, LIMIT_WORKSPACE_RUN_MS, &status) < 0)
        err_sys(told, "wait for the process that fills a session's /workspace");
    else if (status && told->code == 0)
        err_set(told, ERR_SYS, "the process that fills a session's /workspace died");
    const int r = told->code;
    if (r < 0)
        *err = *told;
    munmap(told, sizeof *told);
    return r;
}
