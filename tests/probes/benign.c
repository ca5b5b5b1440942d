/* SPDX-License-Identifier: Apache-2.0 */
/* The twins: what honest programs do on the ground where the attacks are. A jail that refuses
 * these is no use; each must end well and leave no violation. */
#include "probe.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MUST(cond)                                                                                 \
    do {                                                                                           \
        if (!(cond))                                                                               \
            broken("%s: %s", #cond, error_name(errno));                                            \
    } while (0)

static void files_in(const char *folder)
{
    char a[512], b[512], text[32];
    struct stat st;
    snprintf(a, sizeof a, "%s/a-file", folder);
    snprintf(b, sizeof b, "%s/b-file", folder);
    int fd = open(a, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    MUST(fd >= 0);
    MUST(write(fd, "hello", 5) == 5 && fsync(fd) == 0 && lseek(fd, 0, SEEK_SET) == 0);
    MUST(read(fd, text, sizeof text) == 5 && memcmp(text, "hello", 5) == 0);
    MUST(fchmod(fd, 0600) == 0 && chmod(a, 0644) == 0 && fstat(fd, &st) == 0 &&
         (st.st_mode & 0777) == 0644);
    MUST(ftruncate(fd, 3) == 0 && rename(a, b) == 0 && access(b, R_OK | W_OK) == 0 &&
         access(a, F_OK) < 0);
    MUST(symlink("b-file", a) == 0 && readlink(a, text, sizeof text) == 6 && unlink(a) == 0);
    MUST(link(b, a) == 0 && unlink(a) == 0);
    MUST(flock(fd, LOCK_EX) == 0);
    for (int i = 0; i < 300;
         i++) { /* as a database does, and more than the supervisor's count takes in turns */
        struct flock l = {.l_type = i & 1 ? F_UNLCK : F_WRLCK,
                          .l_whence = SEEK_SET,
                          .l_start = i / 2,
                          .l_len = 1};
        MUST(fcntl(fd, F_SETLK, &l) == 0);
    }
    MUST(utimensat(AT_FDCWD, b, NULL, 0) == 0);
    MUST(mkdir(a, 0755) == 0 && rmdir(a) == 0);
    DIR *d = opendir(folder);
    int seen = 0;
    MUST(d);
    for (struct dirent *e; (e = readdir(d));)
        seen += strcmp(e->d_name, "b-file") == 0;
    MUST(seen == 1 && closedir(d) == 0 && close(fd) == 0 && unlink(b) == 0);
}

static void files(int argc, char **argv)
{
    (void)argc, (void)argv;
    files_in("/tmp");
    files_in("/workspace");
    char cwd[256], text[4096];
    MUST(getcwd(cwd, sizeof cwd));
    int fd = open("relative", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    MUST(fd >= 0 && close(fd) == 0 && unlink("relative") == 0);
    fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
    MUST(fd >= 0 && read(fd, text, sizeof text) > 0);
    MUST(access("/usr/bin/env", X_OK) == 0);
    MUST(open("/does/not/exist", O_RDONLY | O_CLOEXEC) < 0 && errno == ENOENT);
    contained("files, links, folders, times and locks work");
}

static void shared(int argc, char **argv)
{
    files_in(need(argc, argv, 0));
    contained("the shared folder is writable");
}

static void memory(int argc, char **argv)
{
    (void)argc, (void)argv;
    enum { SIZE = 100 << 20 };
    char *p = malloc(SIZE);
    MUST(p);
    memset(p, 1, SIZE);
    p = realloc(p, SIZE + 4096);
    MUST(p);
    free(p);
    void *m = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    MUST(m != MAP_FAILED && madvise(m, 1 << 20, MADV_DONTNEED) == 0 &&
         mprotect(m, 1 << 20, PROT_READ) == 0 && munmap(m, 1 << 20) == 0);
    char random[16];
    MUST(getrandom(random, sizeof random, 0) == sizeof random);
    contained("100 MB, shared maps, advice and random numbers");
}

static void *adds(void *arg)
{
    for (int i = 0; i < 1000; i++)
        __atomic_add_fetch((int *)arg, 1, __ATOMIC_RELAXED);
    return arg;
}

static void threads(int argc, char **argv)
{
    (void)argc, (void)argv;
    int sum = 0;
    pthread_t t[8];
    for (int i = 0; i < 8; i++)
        MUST((errno = pthread_create(&t[i], NULL, adds, &sum)) == 0);
    for (int i = 0; i < 8; i++)
        pthread_join(t[i], NULL);
    MUST(sum == 8000);
    for (int i = 0; i < 100; i++) { /* one after the other: ended threads count no more */
        MUST((errno = pthread_create(&t[0], NULL, adds, &sum)) == 0);
        pthread_join(t[0], NULL);
    }
    cpu_set_t cpus;
    MUST(sched_getaffinity(0, sizeof cpus, &cpus) == 0 && sched_yield() == 0);
    contained("eight threads at once, a hundred in a row");
}

/* For 5 s where no place is free: the init above may get no processor for a while. */
static pid_t fork_soon(void)
{
    pid_t pid = fork();
    for (int i = 0; i < 5000 && pid < 0; i++) {
        usleep(1000);
        pid = fork();
    }
    return pid;
}

static void fork_(int argc, char **argv)
{
    (void)argc, (void)argv;
    for (int i = 0; i < 100; i++) {
        pid_t pid = fork();
        MUST(pid >= 0);
        if (pid == 0)
            _exit(7);
        int status;
        MUST(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7);
    }
    for (int i = 0; i < 100; i++) { /* orphans: only the init above can free their places */
        int gone[2];
        char c;
        MUST(pipe2(gone, O_CLOEXEC) == 0);
        pid_t pid = fork_soon();
        MUST(pid >= 0);
        if (pid == 0)
            _exit(fork_soon() < 0 ? 1 : 0);
        int status;
        close(gone[1]);
        MUST(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 0);
        MUST(read(gone[0], &c, 1) == 0); /* the orphan is dead; its reaping may lag a little */
        close(gone[0]);
    }
    contained("a hundred children and a hundred orphans, one after the other");
}

static void exec_(int argc, char **argv)
{
    (void)argc, (void)argv;
    pid_t pid = fork();
    MUST(pid >= 0);
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", "test \"$(echo a b | /usr/bin/env cat)\" = 'a b'",
              (char *)NULL);
        _exit(99);
    }
    int status;
    MUST(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    contained("a shell with a pipeline");
}

static void pipes(int argc, char **argv)
{
    (void)argc, (void)argv;
    int p[2], e = epoll_create1(EPOLL_CLOEXEC);
    char c;
    MUST(e >= 0 && pipe2(p, O_CLOEXEC | O_NONBLOCK) == 0);
    struct epoll_event ev = {.events = EPOLLIN};
    MUST(epoll_ctl(e, EPOLL_CTL_ADD, p[0], &ev) == 0);
    MUST(write(p[1], "x", 1) == 1 && epoll_wait(e, &ev, 1, 1000) == 1 && read(p[0], &c, 1) == 1);
    struct pollfd f = {.fd = p[1], .events = POLLOUT};
    MUST(poll(&f, 1, 1000) == 1);
    int v = eventfd(0, EFD_CLOEXEC);
    MUST(v >= 0 && eventfd_write(v, 1) == 0);
    int d = dup(p[0]);
    MUST(d >= 0 && dup2(p[0], 40) == 40 && fcntl(d, F_GETFL) >= 0);
    MUST(read(0, &c, 1) == 0); /* stdin is there, and empty */
    contained("pipes, epoll, poll, eventfd, dup");
}

static volatile sig_atomic_t got;

static void on_signal(int s)
{
    got = s;
}

static void signals(int argc, char **argv)
{
    (void)argc, (void)argv;
    struct sigaction sa = {.sa_handler = on_signal};
    MUST(sigaction(SIGUSR1, &sa, NULL) == 0 && raise(SIGUSR1) == 0 && got == SIGUSR1);
    MUST(sigaction(SIGALRM, &sa, NULL) == 0);
    struct itimerval soon = {.it_value = {0, 20000}};
    MUST(setitimer(ITIMER_REAL, &soon, NULL) == 0);
    while (got != SIGALRM)
        pause();
    MUST(kill(getpid(), SIGUSR1) == 0 && got == SIGUSR1);
    stack_t alt = {.ss_sp = malloc(65536), .ss_size = 65536};
    MUST(sigaltstack(&alt, NULL) == 0);
    contained("handlers, alarms, its own pid, another stack");
}

static void time_(int argc, char **argv)
{
    (void)argc, (void)argv;
    struct timespec a, b, nap = {0, 10000000};
    MUST(clock_gettime(CLOCK_MONOTONIC, &a) == 0 && nanosleep(&nap, NULL) == 0 &&
         clock_gettime(CLOCK_MONOTONIC, &b) == 0);
    MUST(b.tv_sec > a.tv_sec || b.tv_nsec - a.tv_nsec >= 10000000);
    int t = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    struct itimerspec soon = {.it_value = {0, 1000000}};
    uint64_t n;
    MUST(t >= 0 && timerfd_settime(t, 0, &soon, NULL) == 0 && read(t, &n, sizeof n) == sizeof n);
    struct utsname u;
    struct rusage r;
    struct rlimit l;
    MUST(uname(&u) == 0 && getrusage(RUSAGE_SELF, &r) == 0 && getrlimit(RLIMIT_NOFILE, &l) == 0);
    MUST(getuid() != 0 && time(NULL) > 1000000000 && sysconf(_SC_NPROCESSORS_ONLN) > 0);
    contained("clocks, naps, timers, names and usage");
}

static void output(int argc, char **argv)
{
    (void)argc, (void)argv;
    for (int i = 0; i < 10000; i++)
        if (printf("line %d of honest output, with \xc3\xbc and \xe2\x82\xac\n", i) < 0)
            broken("printf");
    fprintf(stderr, "and a word on stderr\n");
    fflush(stdout);
    contained("ten thousand lines");
}

const struct probe probes_benign[] = {
    {"benign-files", "files in /tmp and /workspace", "", 0, "", "", files},
    {"benign-shared", "files in a shared folder", "", 0, "", "", shared, .options = "--rw {rw}",
     .args = "{rw}"},
    {"benign-memory", "memory", "", 0, "", "", memory},
    {"benign-threads", "threads", "", 0, "", "", threads},
    {"benign-fork", "children and orphans", "", 0, "", "", fork_, .options = "--processes 32"},
    {"benign-exec", "a shell pipeline", "", 0, "", "", exec_, .options = "--processes 8"},
    {"benign-pipes", "pipes and polls", "", 0, "", "", pipes},
    {"benign-signals", "signals", "", 0, "", "", signals},
    {"benign-time", "time", "", 0, "", "", time_},
    {"benign-output", "output", "", 0, "", "", output},
    {0},
};
