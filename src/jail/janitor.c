/* Namespaces vanish with their last process; a cgroup and a folder do not. The janitor holds one
 * end of a socket; when the other end closes, because the run is over or the supervisor was killed,
 * it removes them. It has left the supervisor's session, so a signal to the terminal's group does
 * not reach it, and it is forked before the guest exists, so it shares nothing with it. */
#include "jail/outside.h"

#include "sys/fd.h"

#include <errno.h>
#include <linux/close_range.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Keeps only LEASH and the cgroup's descriptors: an inherited pipe end would keep the pipe alive.
 */
static void keep_only(int leash, const struct jail_cgroup *cg)
{
    unsigned from = 0;
    for (;;) {
        unsigned next = ~0U;
        int keep[1 + 2 * JAIL_CGROUP_PARTS] = {leash};
        for (int i = 0; i < JAIL_CGROUP_PARTS; i++) {
            keep[1 + 2 * i] = cg->parent[i];
            keep[2 + 2 * i] = cg->dir[i];
        }
        for (size_t i = 0; i < sizeof keep / sizeof *keep; i++)
            if (keep[i] >= 0 && (unsigned)keep[i] >= from && (unsigned)keep[i] < next)
                next = (unsigned)keep[i];
        if (next == ~0U) {
            close_range(from, ~0U, 0);
            return;
        }
        if (next > from)
            close_range(from, next - 1, 0);
        from = next + 1;
    }
}

int jail_janitor_start(const struct jail_cgroup *cg, const char *folder, struct jail_janitor *ret,
                       struct err *err)
{
    int leash[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, leash) < 0)
        return err_sys(err, "socketpair");
    pid_t pid = fork();
    if (pid < 0) {
        fd_close(leash[0]);
        fd_close(leash[1]);
        return err_sys(err, "fork the janitor");
    }
    if (pid == 0) {
        struct jail_cgroup own = *cg;
        sigset_t all;
        char c;
        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, NULL);
        setsid();
        prctl(PR_SET_NAME, "cordon-janitor");
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
        keep_only(leash[1], cg);
        while (read(leash[1], &c, 1) < 0 && errno == EINTR)
            ;
        jail_cgroup_destroy(&own);
        if (folder && *folder)
            jail_scratch_remove(folder);
        _exit(0);
    }
    fd_close(leash[1]);
    *ret = (struct jail_janitor){.pid = pid, .leash = leash[0]};
    return 0;
}

void jail_janitor_finish(struct jail_janitor *j)
{
    if (j->pid <= 0)
        return;
    fd_close(j->leash);
    while (waitpid(j->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    j->pid = 0;
}
