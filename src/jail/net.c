/* An empty network namespace takes the kernel as long as all the rest of the jail together, so it
 * is made by a process of its own while the builder builds the root. That process shares our memory
 * but runs at the same time, so it keeps its hands off it: plain system calls, no errno. Failure is
 * silence: the builder sees the end of the socket. */
#include "jail/inside.h"

#include "sys/fd.h"
#include "sys/raw.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct maker {
    int proc, out;
};

static int make_net(void *p)
{
    const struct maker *m = p;
    if (raw_syscall(SYS_unshare, CLONE_NEWNET, 0, 0, 0, 0) < 0)
        return 1;
    long fd = raw_syscall(SYS_openat, m->proc, (long)"self/ns/net", O_RDONLY | O_CLOEXEC, 0, 0);
    if (fd < 0)
        return 1;
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    char word = 'n';
    struct iovec iov = {&word, 1};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = &control,
                         .msg_controllen = sizeof control};
    control.head.cmsg_level = SOL_SOCKET;
    control.head.cmsg_type = SCM_RIGHTS;
    control.head.cmsg_len = CMSG_LEN(sizeof(int));
    int number = (int)fd;
    memcpy(CMSG_DATA(&control.head), &number, sizeof number);
    return raw_syscall(SYS_sendmsg, m->out, (long)&msg, MSG_NOSIGNAL, 0, 0) != 1;
}

/* A new process starts on the processor of its parent, and would wait there until the root is built.
 * Moved to another one it runs at once. A hint: where there is no other nothing is lost. */
static void start_elsewhere(pid_t pid)
{
    cpu_set_t all, others;
    unsigned here;
    if (sched_getaffinity(0, sizeof all, &all) < 0 || getcpu(&here, NULL) < 0)
        return;
    others = all;
    CPU_CLR(here, &others);
    if (CPU_COUNT(&others) > 0 && sched_setaffinity(pid, sizeof others, &others) == 0)
        (void)sched_setaffinity(pid, sizeof all, &all); /* it was moved; it is not bound */
}

int jail_net_start(struct jail_stage *st, struct err *err)
{
    static char stack[16 * 1024] __attribute__((aligned(16)));
    static struct maker maker; /* read while we go on: nobody else's */
    int sv[2];
    if (jail_off(st->spec, net))
        return 0;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
        return err_sys(err, "socketpair");
    maker = (struct maker){.proc = st->proc, .out = sv[1]};
    /* The tightest limit on tasks is two, and until the supervisor has waited for it the helper that
     * gave up root is one of them: its place is free in a moment. */
    pid_t pid = -1;
    for (int tries = 0; tries < 1000 && pid < 0; tries++) {
        pid = clone(make_net, stack + sizeof stack, CLONE_VM | SIGCHLD, &maker);
        if (pid < 0 && errno != EAGAIN)
            break;
        if (pid < 0)
            nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
    if (pid > 0)
        start_elsewhere(pid);
    fd_close(sv[1]); /* its own copy is all that keeps the socket open */
    st->net = sv[0];
    return pid < 0 ? err_sys(err, "a process that makes the network") : 0;
}

int jail_net_enter(struct jail_stage *st, struct err *err)
{
    char word;
    int fd = -1;
    struct fd_packet packet = {.data = &word, .len = 1, .fds = &fd, .nfds = 1};
    if (jail_off(st->spec, net))
        return 0;
    struct pollfd p = {.fd = st->net, .events = POLLIN};
    if (poll(&p, 1, FD_PATIENCE_MS) != 1 || fd_receive(st->net, &packet) != 1 || packet.nfds != 1)
        return err_set(err, ERR_MISSING, "no empty network namespace can be made");
    int r = setns(fd, CLONE_NEWNET) < 0 ? err_sys(err, "enter the network namespace") : 0;
    fd_close(fd);
    while (waitpid(-1, NULL, 0) < 0 && errno == EINTR) /* its maker, our only child */
        ;
    return r;
}
