/* SPDX-License-Identifier: Apache-2.0 */
/* The start of a process, its libraries, policy, gate and audit, the connection to the holder and the child there are paid
 * before there is a request. What was opened is used only where it is still what a new look would find (a policy that
 * changed, a state folder that was replaced, a stop): otherwise it is closed, and opened anew as by hand.
 *
 * Waits: recvmsg in take; cordond; none (for as long as the server lives, which takes it along); a child of the pool is
 *          held, which nobody else waits for
 *        poll in ready_done; cordond to answer the client; LIMIT_SERVE_PASS_MS; nothing is held */
#include "ready.h"

#include "base/limits.h"
#include "base/units.h"
#include "serve/runner.h"
#include "sys/fd.h"
#include "sys/here.h"
#include "sys/pages.h"
#include "writer.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { HEAP = 160 * KIB };

static char words[LIMIT_SERVE_WORDS];
static char *list[LIMIT_SERVE_WORDS / 2];
static int to_cordond = -1;
static bool session_over;
static struct {
    struct flow_context context;
    char policy[LIMIT_SERVE_WORDS];
    struct output_rules *rules;
    char words[LIMIT_SERVE_WORDS]; /* that were expected, and how long they are */
    size_t len;
    bool good, same; /* same: those are the words of the request */
} kept;

/* The length of the words; 0: there are none. *RET_INPUT: the file that came along; -1: none did. */
static size_t take(int *ret_input)
{
    union {
        char space[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec iov = {words, sizeof words};
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.space,
                       .msg_controllen = sizeof control.space};
    ssize_t n;
    while ((n = recvmsg(STDIN_FILENO, &m, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
        ;
    const struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
    if (n <= 0 || (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
        return 0;
    if (c && c->cmsg_type == SCM_RIGHTS)
        memcpy(ret_input, CMSG_DATA(c), sizeof *ret_input);
    return words[n - 1] ? 0 : (size_t)n;
}

static int split(size_t at, size_t len)
{
    int count = 0;
    for (; at < len; at += strlen(words + at) + 1)
        list[count++] = words + at;
    list[count] = NULL;
    return count;
}

/* What the request will probably be. */
static void prepare(size_t len)
{
    memcpy(kept.words, words, len);
    kept.len = len;
    const int count = split(0, len);
    if (count > 2 && strcmp(list[1], "run") == 0)
        kept.good = run_ahead(count - 1, list + 1, &kept.context, &kept.rules, kept.policy,
                              sizeof kept.policy);
    if (!kept.good)
        flow_context_close(&kept.context);
}

/* The source, the names of files and the answer are held on the heap: it is as long as they need before there is a request. */
static void grow_heap(void)
{
    volatile char *room = malloc(HEAP);
    for (size_t i = 0; room && i < HEAP; i += 4096)
        room[i] = 0;
    free((void *)room);
}

bool ready_wait(int *argc, char ***argv)
{
    FD_AUTO input = -1;
    prctl(PR_SET_NAME, "cordon-ready");
    mallopt(M_MMAP_THRESHOLD,
            32 * MIB); /* what a run frees it uses again, and then the process ends */
    mallopt(M_TRIM_THRESHOLD, 64 * MIB);
    size_t len = take(&input);
    if (len && input < 0) {
        prepare(len);
        grow_heap();
        sys_pages_fetch();
        len = take(&input);
    }
    to_cordond = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    if (len == 0 || to_cordond < 0 || input < 0 || dup2(input, STDIN_FILENO) < 0)
        return false;
    prctl(PR_SET_NAME, "cordon-runner");
    const size_t head = strlen(words) + 1;
    uint64_t user;
    if (head >= len || units_count(words, &user) < 0)
        return false;
    here_user_is((uid_t)user);
    kept.same = len - head == kept.len && memcmp(words + head, kept.words, kept.len) == 0;
    *argc = split(head, len);
    *argv = list;
    return true;
}

struct flow_context *ready_context(const char *policy)
{
    if (!kept.good)
        return NULL;
    kept.good = false;
    if (strcmp(kept.policy, policy ? policy : "") == 0 && flow_context_is_current(&kept.context))
        return &kept.context;
    kept.same = false;
    flow_context_close(&kept.context);
    return NULL;
}

struct output_rules *ready_rules(const struct flow_context *context)
{
    struct output_rules *rules = context == &kept.context && kept.same ? kept.rules : NULL;
    kept.rules = rules ? NULL : kept.rules;
    return rules;
}

bool ready_served(void)
{
    return to_cordond >= 0;
}

int ready_server(int *ret, struct err *err)
{
    *ret = to_cordond < 0 ? -1 : (int)syscall(SYS_pidfd_open, getppid(), 0);
    return to_cordond >= 0 && *ret < 0 ? err_sys(err, "the server's process") : 0;
}

void ready_session_over(void)
{
    session_over = true;
}

void ready_done(int status)
{
    const unsigned char said[SERVE_RUNNER_SAID] = {(unsigned char)status, session_over};
    struct pollfd passed_on = {.fd = to_cordond}; /* cordond hangs up */
    if (to_cordond < 0 || fflush(stdout) != 0 || writer_held(JAIL_STDOUT) ||
        writer_held(JAIL_STDERR) || writer_gone(JAIL_STDOUT))
        return;
    (void)!send(to_cordond, said, sizeof said, MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)poll(&passed_on, 1, LIMIT_SERVE_PASS_MS); /* its answer has the machine for itself */
    fd_close(fd_take(&to_cordond));                 /* it is said once */
}
