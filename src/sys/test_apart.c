/* Who is woken where, and that nobody stays bound. */
#include "base/tap.h"
#include "sys/apart.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static bool as_before(pid_t pid, const cpu_set_t *all)
{
    cpu_set_t now;
    return sched_getaffinity(pid, sizeof now, &now) == 0 && CPU_EQUAL(&now, all);
}

/* Says on which processor it woke. */
static void echo(int fd)
{
    char word;
    while (read(fd, &word, 1) == 1) {
        int here = sched_getcpu();
        if (write(fd, &here, sizeof here) != sizeof here)
            _exit(1);
    }
    _exit(0);
}

int main(void)
{
    struct sys_apart a;
    cpu_set_t all, one;
    int sv[2], status, there = -1;
    if (sched_getaffinity(0, sizeof all, &all) < 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
        return 1;
    pid_t pid = fork();
    if (pid == 0) {
        close(sv[0]);
        echo(sv[1]);
    }
    close(sv[1]);
    const bool many = CPU_COUNT(&all) > 1;
    int apart = 0, back = 0;
    for (int i = 0; i < 50; i++) {
        usleep(500); /* it sleeps by then, here or there */
        sys_apart_begin(&a, pid);
        const int here = (int)a.here;
        if (write(sv[0], "x", 1) != 1)
            break;
        sys_apart_begun(&a, pid);
        sys_apart_stay(&a);
        ssize_t n = read(sv[0], &there, sizeof there);
        bool stayed = sched_getcpu() == here;
        sys_apart_stayed(&a);
        apart += a.on && n == sizeof there && there != here && stayed;
        back += as_before(0, &all) && as_before(pid, &all);
    }
    /* on a busy machine the kernel may fetch one that waits */
    tap_ok(many ? apart >= 25 : apart == 0,
           "it woke elsewhere, and we stayed; not where there is one processor");
    tap_eq_int(back, 50, "both may be where they might before");

    CPU_ZERO(&one);
    CPU_SET((unsigned)sched_getcpu(), &one);
    tap_ok(sched_setaffinity(0, sizeof one, &one) == 0, "with one processor to ourselves");
    sys_apart_begin(&a, pid);
    tap_ok(a.on == many, "the other one is placed where it may be");
    sys_apart_begun(&a, pid);
    sys_apart_stay(&a);
    sys_apart_stayed(&a);
    tap_ok(as_before(0, &one) && as_before(pid, &all), "and each has its own back");
    if (sched_setaffinity(pid, sizeof one, &one) == 0) {
        sys_apart_begin(&a, pid);
        tap_ok(!a.on && as_before(pid, &one), "one that may be only here is left alone");
        sys_apart_begun(&a, pid);
    }
    sched_setaffinity(0, sizeof all, &all);

    close(sv[0]);
    tap_ok(waitpid(pid, &status, 0) == pid && status == 0, "it ends");
    sys_apart_begin(&a, pid);
    tap_ok(!a.on, "one that is gone is not kept apart");
    sys_apart_move(pid);
    return tap_done();
}
