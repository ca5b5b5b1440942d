/* SPDX-License-Identifier: Apache-2.0 */
/* The start of a process, its libraries and the pages that every run touches are paid before there is a request. Nothing is
 * kept of what was looked at: a policy that changed meanwhile is read when the request comes.
 *
 * Waits: recvmsg in take; cordond; none (for as long as the server lives, which takes it along); nothing is held */
#include "ready.h"

#include "base/limits.h"
#include "flow/context.h"
#include "sys/fd.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

static char words[LIMIT_SERVE_WORDS];
static char *list[LIMIT_SERVE_WORDS / 2];

/* The length of the words; 0: there are none, or no file with them. */
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
    if (!c || c->cmsg_type != SCM_RIGHTS || (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
        return 0;
    memcpy(ret_input, CMSG_DATA(c), sizeof *ret_input);
    return words[n - 1] ? 0 : (size_t)n;
}

/* What every run does first, for nobody. */
static void rehearse(void)
{
    struct flow_context context = {0};
    struct err ignored = ERR_INIT;
    if (flow_context_open(&context, NULL, &ignored) == 0)
        flow_context_close(&context);
}

bool ready_wait(int *argc, char ***argv)
{
    FD_AUTO input = -1;
    int count = 0;
    prctl(PR_SET_NAME, "cordon-ready");
    rehearse();
    const size_t len = take(&input);
    if (len == 0 || dup2(input, STDIN_FILENO) < 0)
        return false;
    for (size_t at = 0; at < len; at += strlen(words + at) + 1)
        list[count++] = words + at;
    prctl(PR_SET_NAME, "cordon-runner");
    *argc = count;
    *argv = list;
    return true;
}
