/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks on the one who listens: floods of denied calls, pointers that lead nowhere or change
 * while they are read, and bytes that would spoil the report. The answer is always a refusal. */
#include "probe.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static long refused_connect(const void *address, socklen_t size)
{
    return syscall(SYS_connect, 0, address, size);
}

#define FLOOD_SECONDS 12 /* an emulated machine has not done all by then, and need not */

static void flood(int argc, char **argv)
{
    (void)argc, (void)argv;
    enum { CALLS = 100000 };
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(53), .sin_addr.s_addr = htonl(0x08080808)};
    double start = now();
    int i = 0;
    for (; i < CALLS && now() - start < FLOOD_SECONDS; i++)
        if (refused_connect(&a, sizeof a) == 0)
            reached("connect worked at call %d", i);
    contained("%d denied calls in %.1f s", i, now() - start);
}

static void *flooder(void *arg)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    double start = now();
    for (int i = 0; i < 5000 && now() - start < FLOOD_SECONDS; i++)
        if (refused_connect(&a, sizeof a) == 0)
            *(volatile int *)arg = 1;
    return NULL;
}

static void flood_threads(int argc, char **argv)
{
    (void)argc, (void)argv;
    static volatile int worked;
    pthread_t t[12];
    for (int i = 0; i < 12; i++)
        if (pthread_create(&t[i], NULL, flooder, (void *)(uintptr_t)&worked))
            broken("thread %d", i);
    for (int i = 0; i < 12; i++)
        pthread_join(t[i], NULL);
    if (worked)
        reached("one of the calls worked");
    contained("twelve threads, up to 60000 denied calls");
}

/* Dies with a dozen calls under way: the listener must not wait for the dead. */
static void *flood_forever(void *arg)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    for (;;)
        refused_connect(&a, sizeof a);
    return arg;
}

static void flood_die(int argc, char **argv)
{
    (void)argc, (void)argv;
    pthread_t t;
    for (int i = 0; i < 12; i++)
        if (pthread_create(&t, NULL, flood_forever, NULL))
            broken("thread %d", i);
    usleep(200000);
    contained("ends with twelve calls under way");
}

static void bad_pointers(int argc, char **argv)
{
    (void)argc, (void)argv;
    char *two = mmap(NULL, 2 * 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (two == MAP_FAILED || munmap(two + 65536, 65536) < 0)
        broken("mmap: %s", error_name(errno));
    memset(two, 'A', 65536); /* no terminating NUL before the hole */
    const void *const addresses[] = {NULL,
                                     (void *)1,
                                     (void *)(uintptr_t)0xffff800000000000u,
                                     (void *)UINTPTR_MAX,
                                     two + 65536,
                                     two + 65535,
                                     two + 65530,
                                     two + 65534};
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        tried("connect", refused_connect(addresses[i], sizeof(struct sockaddr_in)));
        if (errno != EPERM && errno != ENOSYS && errno != EACCES)
            reached("connect with pointer %zu got %s", i, error_name(errno));
        tried("connect long", refused_connect(addresses[i], 1 << 30));
        tried("execve", syscall(SYS_execve, addresses[i], NULL, NULL));
        tried("mount", syscall(SYS_mount, addresses[i], addresses[i], addresses[i], 0, NULL));
    }
    none_may_have_succeeded();
}

/* Another thread rewrites the address all the time: allowed one moment, forbidden the next. */
static struct sockaddr_in racing;
static volatile bool race_over;

static void *racer(void *arg)
{
    while (!race_over) {
        racing.sin_addr.s_addr ^= 0x01010101u;
        racing.sin_family = racing.sin_family == AF_INET ? AF_UNIX : AF_INET;
    }
    return arg;
}

static void race(int argc, char **argv)
{
    racing = (struct sockaddr_in){.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)number(need(argc, argv, 0))),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    pthread_t t;
    if (pthread_create(&t, NULL, racer, NULL))
        broken("pthread_create");
    for (int i = 0; i < 5000; i++) {
        int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(s < 0 ? 0 : s, (struct sockaddr *)&racing, sizeof racing) == 0)
            reached("connect won the race at try %d", i);
        if (s >= 0)
            close(s);
    }
    race_over = true;
    pthread_join(t, NULL);
    contained("5000 races lost");
}

/* The path of a denied call is text of the guest's in the operator's report. */
static void spoil(int argc, char **argv)
{
    (void)argc, (void)argv;
    static char endless[1 << 20];
    memset(endless, 'A', sizeof endless - 1);
    static const char *const paths[] = {"\"},{\"layer\":\"gate\",\"rule\":\"forged\"},{\"x\":\"",
                                        "\n\r\x1b[2J\x1b]0;owned\a",
                                        "\xff\xfe\xc0\x80\xed\xa0\x80",
                                        "</script><script>alert(1)</script>",
                                        "%s%n%1000000d",
                                        "\xe2\x80\xae\xef\xbb\xbf\xe2\x80\xa8",
                                        "",
                                        endless};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        tried("execve", syscall(SYS_execve, paths[i], NULL, NULL));
        struct sockaddr_un a = {.sun_family = AF_UNIX};
        memcpy(a.sun_path, paths[i], strnlen(paths[i], sizeof a.sun_path));
        tried("connect", refused_connect(&a, sizeof a));
        tried("mount", syscall(SYS_mount, paths[i], paths[i], paths[i], 0, NULL));
    }
    none_may_have_succeeded();
}

/* Thousands of different violations: the list has an end. */
static void many_kinds(int argc, char **argv)
{
    (void)argc, (void)argv;
    for (unsigned i = 0; i < 5000; i++) {
        struct sockaddr_in a = {.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)i),
                                .sin_addr.s_addr = htonl(0x0a000000u + i)};
        if (refused_connect(&a, sizeof a) == 0)
            reached("connect worked");
    }
    contained("5000 different addresses refused");
}

static volatile sig_atomic_t signals;

static void count_signal(int nr)
{
    (void)nr;
    signals++;
}

/* Each signal may take a denied call back while it is judged; asked again, it is denied again. */
static void interrupted(int argc, char **argv)
{
    (void)argc, (void)argv;
    enum { SIGNALS = 500 };
    struct sockaddr_in a = {.sin_family = AF_INET};
    struct sigaction act = {.sa_handler = count_signal};
    struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    double start = now();
    int calls = 0;
    sigaction(SIGALRM, &act, NULL);
    if (setitimer(ITIMER_REAL, &often, NULL) < 0)
        broken("setitimer: %s", error_name(errno));
    for (; signals < SIGNALS && now() - start < FLOOD_SECONDS; calls++) {
        if (refused_connect(&a, sizeof a) == 0)
            reached("connect worked at call %d", calls);
        if (errno != EPERM && errno != EINTR)
            reached("connect got into the kernel: %s", error_name(errno));
    }
    setitimer(ITIMER_REAL, &never, NULL);
    contained("%d denied calls, %d signals", calls, (int)signals);
}

const struct probe probes_notify[] = {
    {"notify-flood", "a flood of denied calls", "24", 3, "syscalls", "benign-time", flood,
     .rule = "connect"},
    {"notify-threads", "the same from twelve threads", "24", 3, "syscalls", "benign-threads",
     flood_threads, .rule = "connect"},
    {"notify-die", "death with denied calls under way", "24,31", 3, "syscalls", "benign-threads",
     flood_die, .rule = "connect"},
    {"notify-pointers", "pointers that lead nowhere", "24", 1, "syscalls", "benign-memory",
     bad_pointers, .rule = "connect"},
    {"notify-race", "an address that changes while it is read", "24", 4, "network",
     "benign-threads", race, .args = "{port}", .rule = "connect"},
    {"notify-spoil", "text that would spoil the report", "21", 7, "output", "benign-output", spoil,
     .rule = "execve"},
    {"notify-kinds", "thousands of different violations", "24", 3, "syscalls", "benign-output",
     many_kinds, .rule = "connect"},
    {"notify-signals", "signals in the midst of denied calls", "24", 1, "syscalls", "benign-time",
     interrupted, .rule = "connect"},
    {0},
};
