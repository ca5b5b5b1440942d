/* SPDX-License-Identifier: Apache-2.0 */
/* Under root each child of a template has an id of its own on the host, so that the kernel's oldest check already keeps
 * two of them apart. A process that is nothing but such an id (no namespace, no table of system calls, no Landlock of
 * its own: every other layer is off for it) tries what a guest that broke out of all of them would.
 * Usage: test_ids CORDON-NEST */
#include "base/tap.h"
#include "jail/test_guest.h"
#include "jail/test_talk.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

struct born {
    struct jail_child c;
    struct test_talk t;
    pid_t pid;
    struct stat files; /* the owner on the host */
    int dir;           /* its file system, ours to keep */
};

/* The four ids of the line in the process's status that begins with WORD; equal, or 0. */
static unsigned long ids_of(pid_t pid, const char *word)
{
    char path[40], text[4096];
    unsigned long id[4] = {0};
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    if (fd_read_file(AT_FDCWD, path, text, sizeof text) <= 0)
        return 0;
    const char *at = strstr(text, word);
    if (!at || sscanf(at + strlen(word), "%lu %lu %lu %lu", &id[0], &id[1], &id[2], &id[3]) != 4)
        return 0;
    return id[0] == id[1] && id[1] == id[2] && id[2] == id[3] ? id[0] : 0;
}

static bool bear(struct jail_template *tpl, struct born *b)
{
    *b = (struct born){.c = JAIL_CHILD_NONE, .dir = -1};
    if (!test_fresh(tpl, "python", false, &b->c, &b->t, NULL) || test_ask(&b->t, "pid") != 2 ||
        test_ask(&b->t, "save /workspace/a") != 5)
        return false;
    b->pid = jail_run_guest(b->t.run);
    b->dir = fcntl(jail_run_files(b->t.run), F_DUPFD_CLOEXEC, 3);
    return b->dir >= 0 && fstat(b->dir, &b->files) == 0 &&
           fchmodat(b->dir, "workspace/a", 0600, 0) == 0;
}

static void end(struct born *b)
{
    fd_close(b->dir);
    jail_run_end_now(b->t.run, 0);
    test_wait_end(&b->t);
    test_talk_end(&b->t, &b->c);
}

/* Bits of what a process with ID can do to the process PID and the files below DIR. */
enum { SIGNALS = 1, TRACES = 2, READS = 4, MEMORY = 8, FILES = 16, FORKED = 32 };
static int can(unsigned long id, pid_t pid, int dir)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        char byte[1], path[40];
        struct iovec own = {byte, 1}, theirs = {(void *)can, 1};
        int did = FORKED;
        if (setgroups(0, NULL) < 0 || setresgid((gid_t)id, (gid_t)id, (gid_t)id) < 0 ||
            setresuid((uid_t)id, (uid_t)id, (uid_t)id) < 0)
            _exit(0);
        did |= kill(pid, 0) == 0 ? SIGNALS : 0;
        did |= ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0 ? TRACES : 0;
        did |= process_vm_readv(pid, &own, 1, &theirs, 1, 0) == 1 ? READS : 0;
        snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
        did |= open(path, O_RDONLY | O_CLOEXEC) >= 0 ? MEMORY : 0;
        did |= openat(dir, "workspace/a", O_RDONLY | O_CLOEXEC) >= 0 ? FILES : 0;
        _exit(did);
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status)
               ? WEXITSTATUS(status)
               : -1;
}

static void apart(struct jail_template *tpl)
{
    struct born one = {.dir = -1}, two = {.dir = -1};
    if (!tap_ok(bear(tpl, &one) && bear(tpl, &two), "two children of a template live at once"))
        return;
    const unsigned long first = ids_of(one.pid, "Uid:"), second = ids_of(two.pid, "Uid:");
    tap_ok(first >= 0x70400000 && second >= 0x70400000 && first != second,
           "each child has a user id of its own on the host (%lu, %lu)", first, second);
    tap_ok(ids_of(one.pid, "Gid:") == first && ids_of(two.pid, "Gid:") == second,
           "each child has a group id of its own on the host");
    tap_ok(one.files.st_uid == first && two.files.st_uid == second,
           "the files of a child belong to its id");
    tap_eq_int(can(first, one.pid, one.dir), FORKED | SIGNALS | FILES,
               "a process with a child's id can signal it and read its files");
    tap_eq_int(
        can(first, two.pid, two.dir), FORKED,
        "a process with a child's id alone can neither signal, trace nor read another child");
    tap_eq_int(can(second, one.pid, one.dir), FORKED,
               "a process with the other child's id alone can do none of that to the first");
    tap_eq_int(test_ask(&two.t, "uid"), 1000, "a child is user 1000 to itself whatever its id");
    end(&one);
    end(&two);
}

static void one_id(struct jail_template *tpl)
{
    struct born one;
    if (!tap_ok(bear(tpl, &one), "a child of a user's template lives"))
        return;
    tap_eq_int(ids_of(one.pid, "Uid:"), geteuid(),
               "children of an ordinary user have that user's id");
    end(&one);
}

int main(int argc, char **argv)
{
    struct jail_template *tpl = test_begin(argc, argv);
    if (!tap_ok(tpl != NULL, "a template starts"))
        return tap_done();
    if (geteuid() == 0)
        apart(tpl);
    else
        one_id(tpl);
    jail_template_free(tpl);
    return tap_done();
}
