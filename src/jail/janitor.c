/* SPDX-License-Identifier: Apache-2.0 */
/* Namespaces vanish with their last process; a cgroup and a folder do not. The janitor holds one end of
 * a socket; it is told of each thing before the thing is made, and when the other end closes, because
 * the run is over or the supervisor was killed, it removes them all. It has left the supervisor's
 * session before anything is made, so a signal to the terminal's group does not reach it, and it is
 * forked before the guest exists, so it shares nothing with it.
 *
 * A janitor that is stopped is killed, and its supervisor does its work. One that may not be killed, because the
 * supervisor has given up root since, has a second one, made before that: it takes over from a janitor that was killed, and
 * kills one that is stopped. Of a janitor without a second one the rest stays until it is continued.
 *
 * Waits: poll in answered; the janitor; LIMIT_JANITOR_MS; it is killed: an error
 *        read in answered; nobody: poll said that it is there; at once; an error
 *        sys_child_wait in jail_janitor_finish; the janitor to clean up; LIMIT_JANITOR_MS; it is killed, and the
 *          supervisor cleans up itself
 *        poll in jail_janitor_finish; the second janitor to clean up; LIMIT_JANITOR_MS; the supervisor cleans up itself
 *        poll in stand_by; the end of the first janitor or of the supervisor, in the second; none (it waits for that
 *          end by design), then SECOND_MS for the first to do its work; kills it, and cleans up
 *        sys_child_wait in listen_and_clean; the second janitor, which was killed; LIMIT_JANITOR_MS; ends
 *        write in *; one byte that fits; at once; ends
 *        fd_receive in listen_and_clean; its supervisor to say more or to end, in the janitor; none (it
 *          waits for that end by design); cleans up
 *        fd_send in jail_janitor_tell; the janitor: a packet that fits; at once; an error */
#include "jail/outside.h"

#include "base/limits.h"
#include "sys/child.h"
#include "sys/fd.h"

#include <errno.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { THINGS = 8, NAME = 512, SECOND_MS = (int)LIMIT_JANITOR_MS / 2 };

#define DOUBLE "+" /* no name of a thing */

struct thing {
    int parent; /* of a cgroup; -1: a folder, by its path */
    char name[NAME];
};

static void remove_all(const struct thing *things, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (things[i].parent >= 0)
            jail_cgroup_remove(things[i].parent, things[i].name);
        else
            jail_scratch_remove(things[i].name);
    }
}

/* In the second janitor, until it has to do the work: the first was killed, or does not do it. */
static void stand_by(int leash, int first)
{
    struct pollfd p[2] = {{.fd = first, .events = POLLIN}, {.fd = leash, .events = POLLRDHUP}};
    while (poll(p, 2, -1) < 0 && errno == EINTR)
        ;
    while (!p[0].revents && poll(p, 1, SECOND_MS) < 0 && errno == EINTR)
        ;
    if (!p[0].revents)
        (void)syscall(SYS_pidfd_send_signal, first, SIGKILL, NULL, 0);
}

/* It knows what the first has been told by now. Returns its pid; in the second itself, when its turn has come, 0. */
static pid_t second(int leash)
{
    FD_AUTO first = (int)syscall(SYS_pidfd_open, getpid(), 0);
    pid_t pid = first < 0 ? -1 : fork();
    if (pid == 0)
        stand_by(leash, first);
    return pid;
}

/* Listens until the supervisor's end of the socket is closed. Every message is answered, so that the supervisor makes
 * nothing that the janitor has not noted. */
static void listen_and_clean(int leash)
{
    static struct thing things[THINGS];
    size_t n = 0;
    pid_t other = 0;
    for (;;) {
        struct thing *t = &things[n];
        struct fd_packet p = {.data = t->name, .len = NAME - 1, .fds = &t->parent, .nfds = 1};
        t->parent = -1;
        if (fd_receive(leash, &p) <= 0 || p.len >= NAME)
            break;
        t->name[p.len] = 0;
        if (strcmp(t->name, DOUBLE) == 0) {
            other = second(leash);
            if (other == 0)
                continue; /* in the second, whose first is gone: it listens to the end */
            if (other < 0)
                break;
        } else if (n + 1 < THINGS) {
            n++;
        }
        if (write(leash, "", 1) != 1)
            break;
    }
    remove_all(things, n);
    if (other > 0) {
        kill(other, SIGKILL);
        (void)!sys_child_wait(other, LIMIT_JANITOR_MS, NULL);
    }
}

/* One that does not answer will not clean up either. */
static int answered(const struct jail_janitor *j, struct err *err)
{
    char word;
    struct pollfd p = {.fd = j->leash, .events = POLLIN};
    int n = poll(&p, 1, (int)LIMIT_JANITOR_MS);
    if (n == 1 && read(j->leash, &word, 1) == 1)
        return 0;
    kill(j->pid, SIGKILL);
    return err_set(err, ERR_SYS, "the janitor of the run %s",
                   n == 0 ? "did not answer within 2 seconds; is it stopped?" : "was killed");
}

int jail_janitor_start(struct jail_janitor *j, struct err *err)
{
    int leash[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, leash) < 0)
        return err_sys(err, "socketpair");
    pid_t pid = fork();
    if (pid == 0) {
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, NULL);
        setsid();
        prctl(PR_SET_NAME, "cordon-janitor");
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
        int own = dup2(leash[1], 0); /* an inherited pipe end would keep the pipe alive */
        close_range(1, ~0U, 0);
        if (own == 0 && write(own, "", 1) == 1)
            listen_and_clean(own);
        _exit(0);
    }
    fd_close(leash[1]);
    *j = (struct jail_janitor){.pid = pid > 0 ? pid : 0, .leash = leash[0]};
    if (pid < 0) {
        err_sys(err, "start the janitor");
        fd_close(leash[0]);
        return ERR_SYS;
    }
    int r = answered(j, err);
    if (r < 0)
        jail_janitor_finish(j);
    return r;
}

int jail_janitor_tell(struct jail_janitor *j, int parent, const char *name, struct err *err)
{
    char word[NAME];
    struct fd_packet p = {.data = word, .len = strlen(name), .fds = &parent, .nfds = parent >= 0};
    if (p.len >= sizeof word)
        return err_set(err, ERR_LIMIT, "%.60s... is too long a name", name);
    memcpy(word, name, p.len);
    return fd_send(j->leash, &p) < 0 ? err_sys(err, "tell the janitor") : answered(j, err);
}

int jail_janitor_double(struct jail_janitor *j, struct err *err)
{
    int r = jail_janitor_tell(j, -1, DOUBLE, err);
    j->doubled = r == 0;
    return r;
}

bool jail_janitor_finish(struct jail_janitor *j)
{
    int status = 0;
    if (j->pid <= 0)
        return true;
    shutdown(j->leash, SHUT_WR);
    bool done = sys_child_wait(j->pid, LIMIT_JANITOR_MS, &status) == 0 && status == 0;
    struct pollfd gone = {.fd = j->leash};
    if (!done && j->doubled) /* the last that has the other end is the second */
        done = poll(&gone, 1, (int)LIMIT_JANITOR_MS) == 1;
    fd_close(j->leash);
    j->pid = 0;
    return done;
}
