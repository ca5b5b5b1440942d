/* SPDX-License-Identifier: Apache-2.0 */
/* What a holder keeps with a session, for its live test: layers, and the process that it ends with.
 *
 * Takes:   a holder that runs.
 * Gives:   cases.
 * Never:   is part of the product.
 * Runs in: the test.
 */
#ifndef POOL_TESTING_KEPT_H
#define POOL_TESTING_KEPT_H

#include "pool/testing.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static bool is_folder(int fd, const char *path)
{
    struct stat a, b;
    return fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_ino == b.st_ino;
}

static void layers_are_kept(void)
{
    struct pool_client c = client();
    struct jail_child x = JAIL_CHILD_NONE, y = JAIL_CHILD_NONE, none = JAIL_CHILD_NONE;
    struct pool_answer a;
    struct err err = ERR_INIT;
    none.laid = open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    none.lower = open("/usr", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    tap_ok(pool_client_layers(&c, &none, &a, &err) == 0 && a.declined,
           "layers of a session that is not lent are declined");
    tap_ok(new_session(&c, "laid", 60000, &x, &a) && x.laid < 0 && x.lower < 0 &&
               pool_client_layers(&c, &none, &a, &err) == 0 && !a.declined &&
               back(&c, true, "", NULL, &x),
           "the layers of a new session that is lent are taken");
    tap_ok(call(&c, "laid", false, &y, &a) && is_folder(y.laid, "/etc") &&
               is_folder(y.lower, "/usr"),
           "the next client of a session gets its layers");
    dup2(none.lower, none.laid);
    tap_ok(pool_client_layers(&c, &none, &a, &err) == 0 && back(&c, true, "", NULL, &y) &&
               call(&c, "laid", false, &y, &a) && is_folder(y.laid, "/usr"),
           "layers that are made anew take the place of those before");
    jail_child_close(&none);
    pool_client_close(&c);
}

/* Whether it is over, and why, once it is. */
static bool ends_with(struct pool_client *c, const char *name, const char *reason)
{
    struct jail_child x = JAIL_CHILD_NONE;
    struct pool_answer a;
    while (call(c, name, false, &x, &a)) {
        (void)back(c, true, "", NULL, &x); /* it may be over by then */
        usleep(1000);
    }
    return strcmp(a.reply.state, POOL_WHY_ENDED) == 0 && strstr(a.reply.reason, reason);
}

static void owners_take_along(void)
{
    struct pool_client c = client();
    struct jail_child x = JAIL_CHILD_NONE;
    struct pool_answer a;
    struct err err = ERR_INIT;
    int others[2] = {-1, -1};
    const pid_t pid = fork();
    if (pid == 0)
        for (;;)
            pause();
    const int owner = (int)syscall(SYS_pidfd_open, pid, 0);
    FD_AUTO file = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
    tap_ok(owner >= 0 && pipe2(others, O_CLOEXEC) == 0 &&
               pool_client_owner(&c, owner, &a, &err) == 0 && a.declined,
           "the owner of a session that is not lent is declined");
    tap_ok(new_session(&c, "owned", 60000, &x, &a) && pool_client_owner(&c, file, &a, &err) == 0 &&
               a.declined && pool_client_owner(&c, owner, &a, &err) == 0 && !a.declined,
           "a session that is lent gets an owner, which is a process and no file");
    tap_ok(pool_client_owner(&c, others[0], &a, &err) == 0 && a.declined &&
               back(&c, true, "", NULL, &x),
           "the owner of a session is not changed");
    tap_ok(new_session(&c, "free", 60000, &x, &a) && back(&c, true, "", NULL, &x) &&
               call(&c, "owned", false, &x, &a) && back(&c, true, "", NULL, &x),
           "a session serves while its owner lives");
    kill(pid, SIGKILL);
    tap_ok(ends_with(&c, "owned", "the server that made it ended"),
           "a session ends with its owner");
    tap_ok(waitpid(pid, NULL, 0) == pid && call(&c, "free", false, &x, &a) &&
               back(&c, false, "", NULL, &x),
           "a session without an owner stays");
    fd_close(owner);
    fd_close(others[0]);
    fd_close(others[1]);
    pool_client_close(&c);
}

#endif
