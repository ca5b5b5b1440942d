/* SPDX-License-Identifier: Apache-2.0 */
/* The state folder: where it is, and what is refused in it. */
#include "base/tap.h"
#include "sys/fd.h"
#include "sys/state.h"
#include "sys/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void names(void)
{
    char path[STATE_PATH_MAX];
    struct err err = ERR_INIT;
    setenv("CORDON_STATE", "/a/b", 1);
    setenv("XDG_STATE_HOME", "/x", 1);
    setenv("HOME", "/h", 1);
    tap_ok(state_path(path, sizeof path, &err) == 0 && strcmp(path, "/a/b") == 0,
           "the state folder is CORDON_STATE first");
    unsetenv("CORDON_STATE");
    tap_ok(state_path(path, sizeof path, &err) == 0 && strcmp(path, "/x/cordon") == 0,
           "the state folder is in XDG_STATE_HOME without CORDON_STATE");
    setenv("XDG_STATE_HOME", "", 1);
    tap_ok(state_path(path, sizeof path, &err) == 0 &&
               strcmp(path, geteuid() == 0 ? "/var/lib/cordon" : "/h/.local/state/cordon") == 0,
           "the state folder is the user's or root's own without both variables");
    setenv("CORDON_STATE", "relative", 1);
    tap_eq_int(state_path(path, sizeof path, &err), ERR_USAGE, "a relative path is refused");
    tap_eq_int(state_path(path, 3, &err), ERR_USAGE, "a path that does not fit is refused");
}

static void folders(const char *top)
{
    char path[300];
    struct err err = ERR_INIT;
    int fd = -1, sub = -1, file = -1;
    struct stat st;
    snprintf(path, sizeof path, "%s/deep/state", top);
    tap_ok(state_open(path, false, &fd, &err) == ERR_SYS && err.sys_errno == ENOENT,
           "a reader makes no folder");
    tap_ok(state_open(path, true, &fd, &err) == 0, "a writer makes the state folder: %s", err.msg);
    umask(0777);
    tap_ok(state_folder(fd, "audit", true, &sub, &err) == 0 && fstat(sub, &st) == 0 &&
               (st.st_mode & 07777) == 0700,
           "a folder has mode 0700 whatever the umask: %s", err.msg);
    umask(0);
    tap_ok(state_file(sub, "log", O_RDWR | O_CREAT, &file, &err) == 0 && fstat(file, &st) == 0 &&
               (st.st_mode & 07777) == 0600,
           "a file has mode 0600: %s", err.msg);
    fd_close(file);

    tap_ok(fchmodat(sub, "log", 0640, 0) == 0 &&
               state_file(sub, "log", O_RDWR, &file, &err) == ERR_STATE,
           "a file that others can read is refused: %s", err.msg);
    tap_ok(fchmodat(sub, "log", 0600, 0) == 0 && linkat(sub, "log", sub, "twin", 0) == 0 &&
               state_file(sub, "log", O_RDWR, &file, &err) == ERR_STATE,
           "a file with a second name is refused: %s", err.msg);
    tap_ok(unlinkat(sub, "twin", 0) == 0 && symlinkat("log", sub, "link") == 0 &&
               state_file(sub, "link", O_RDWR, &file, &err) == ERR_SYS && err.sys_errno == ELOOP,
           "a link is refused");
    tap_ok(mkfifoat(sub, "pipe", 0600) == 0 &&
               state_file(sub, "pipe", O_RDONLY, &file, &err) == ERR_STATE,
           "a pipe is refused and does not block");
    tap_ok(fchmodat(fd, "audit", 0750, 0) == 0 &&
               state_folder(fd, "audit", true, &file, &err) == ERR_STATE,
           "a folder that others can enter is refused: %s", err.msg);
    tap_ok(symlinkat("audit", fd, "alias") == 0 &&
               state_folder(fd, "alias", true, &file, &err) == ERR_SYS,
           "a link to a folder is refused");
    if (geteuid() == 0)
        tap_ok(fchownat(sub, "log", 12345, 12345, 0) == 0 &&
                   state_file(sub, "log", O_RDWR, &file, &err) == ERR_STATE,
               "a file of another user is refused: %s", err.msg);
    else
        tap_skip("a file of another user is refused", "needs root");
    fd_close(sub);
    tap_ok(chmod(path, 0777) == 0 && state_open(path, false, &sub, &err) == ERR_STATE,
           "a state folder that others can write in is refused: %s", err.msg);
    fd_close(fd);
}

static int apart_from(const char *state, const char *writable)
{
    struct err err = ERR_INIT;
    const struct walk_rules rules = {"the state folder", &writable, 1, false};
    return walk_apart(&rules, state, true, &err);
}

/* What a program may write, against the folder that it must not. */
static void apart(const char *top)
{
    char state[128], above[128], below[128], beside[128], file[128], link[128], missing[128];
    snprintf(above, sizeof above, "%s/above", top);
    snprintf(state, sizeof state, "%s/above/state", top);
    snprintf(below, sizeof below, "%s/above/state/audit", top);
    snprintf(beside, sizeof beside, "%s/above/stately", top);
    snprintf(file, sizeof file, "%s/above/state/gate.live", top);
    snprintf(link, sizeof link, "%s/link", top);
    snprintf(missing, sizeof missing, "%s/missing", top);
    const struct {
        const char *path;
        bool safe;
    } rows[] = {{state, false},  {above, false},    {top, false},  {"/", false},
                {below, false},  {file, false},     {link, false}, {beside, true},
                {missing, true}, {"/usr/bin", true}};
    int fd = -1;
    tap_ok(mkdir(above, 0700) == 0 && mkdir(state, 0700) == 0 && mkdir(below, 0700) == 0 &&
               mkdir(beside, 0700) == 0 && symlink(state, link) == 0 &&
               (fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)) >= 0,
           "a state folder in a tree");
    fd_close(fd);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        tap_eq_int(apart_from(state, rows[i].path), rows[i].safe ? 0 : ERR_USAGE,
                   "sharing %s for writing is %s", rows[i].path, rows[i].safe ? "safe" : "refused");
    tap_eq_int(apart_from(missing, state), 0, "a state folder elsewhere that is not there is safe");
    tap_eq_int(apart_from(missing, top), ERR_USAGE,
               "a state folder that a guest could make is refused");
}

int main(void)
{
    char top[] = "/tmp/cordon-state-XXXXXX";
    int status = 1;
    names();
    if (!tap_ok(mkdtemp(top) != NULL, "a folder for the test is made"))
        return tap_done();
    folders(top);
    apart(top);
    pid_t child = fork();
    if (child == 0) {
        execl("/bin/rm", "rm", "-rf", top, (char *)NULL);
        _exit(127);
    }
    tap_ok(child > 0 && waitpid(child, &status, 0) == child && status == 0,
           "the folder of the test is removed");
    return tap_done();
}
