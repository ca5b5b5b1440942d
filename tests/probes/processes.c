/* SPDX-License-Identifier: Apache-2.0 */
/* Other processes: the init above the guest, the supervisor, a sibling of the same user outside;
 * and processes of the guest's own that must not be, or must not stay. */
#include "probe.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define IOPRIO_TO_INIT 1 /* IOPRIO_WHO_PROCESS; glibc has no header for ioprio_set */

static void ptrace_attach(int argc, char **argv)
{
    (void)argc, (void)argv;
    tried("ATTACH parent", ptrace(PTRACE_ATTACH, getppid(), 0, 0));
    tried("SEIZE parent", ptrace(PTRACE_SEIZE, getppid(), 0, 0));
    tried("ATTACH 1", ptrace(PTRACE_ATTACH, 1, 0, 0));
    none_may_have_succeeded();
}

static void ptrace_sibling(int argc, char **argv)
{
    must_fail("ATTACH to a process outside",
              ptrace(PTRACE_SEIZE, (pid_t)number(need(argc, argv, 0)), 0, 0));
}

static void vm_writev(int argc, char **argv)
{
    (void)argc, (void)argv;
    char word[8] = "written";
    struct iovec here = {word, sizeof word}, there = {word, sizeof word};
    for (pid_t pid = 1; pid >= 0; pid = pid == 1 && getppid() != 1 ? getppid() : -1) {
        tried("process_vm_readv", process_vm_readv(pid, &here, 1, &there, 1, 0));
        tried("process_vm_writev", process_vm_writev(pid, &here, 1, &there, 1, 0));
        if (errno == EFAULT) /* allowed, and only our guess of an address was wrong */
            reached("the memory of %d, but for the right address", pid);
    }
    none_may_have_succeeded();
}

static void pidfd_getfd_(int argc, char **argv)
{
    (void)argc, (void)argv;
    int stolen = -1;
    for (pid_t pid = 1; pid < 4; pid++) {
        if (pid == getpid())
            continue;
        int target = (int)syscall(SYS_pidfd_open, pid, 0);
        if (target < 0) {
            tried("pidfd_open", -1);
            target = 0; /* the call behind it is tried all the same */
        }
        for (int fd = 0; fd < 32 && stolen < 0; fd++)
            stolen = (int)syscall(SYS_pidfd_getfd, target, fd, 0);
        tried("pidfd_getfd", stolen);
    }
    none_may_have_succeeded();
}

static void kill_parent(int argc, char **argv)
{
    (void)argc, (void)argv;
    static const int signals[] = {SIGKILL, SIGSTOP, SIGTERM, SIGSEGV, SIGINT};
    pid_t above = getppid();
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        kill(above, signals[i]);
        kill(1, signals[i]);
        syscall(SYS_tgkill, 1, 1, signals[i]);
        siginfo_t info = {.si_signo = signals[i], .si_code = SI_QUEUE};
        syscall(SYS_rt_sigqueueinfo, 1, signals[i], &info);
    }
    usleep(100000); /* were pid 1 dead or stopped, this run would not end with a verdict in time */
    if (getppid() != above)
        reached("the parent is gone");
    contained("pid %d is still there after five signals by four ways", above);
}

static void kill_all(int argc, char **argv)
{
    (void)argc, (void)argv;
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    const pid_t above = getppid();
    kill(-1, SIGKILL); /* everyone but the caller; pid 1 of a namespace is spared */
    kill(0, SIGTERM);
    kill(0, SIGHUP);
    usleep(100000);
    if (getppid() != above)
        reached("the parent is gone: ppid %d", getppid());
    contained("kill(-1, 9) and kill(0, …) reached nobody else");
}

static void kill_group(int argc, char **argv)
{
    (void)argc, (void)argv;
    kill(0, SIGKILL); /* takes this process with it: `crashed 9` is declared in the table */
    broken("kill(0, 9) came back");
}

static void kill_sibling(int argc, char **argv)
{
    pid_t pid = (pid_t)number(need(argc, argv, 0));
    tried("kill", kill(pid, SIGKILL));
    tried("kill group", kill(-pid, SIGKILL));
    tried("tgkill", syscall(SYS_tgkill, pid, pid, SIGKILL));
    none_may_have_succeeded();
}

/* Everything else that one process may do to another of the same user. Past the filter even the
 * init of this very run must be out of reach; the kernel itself only protects those outside. */
static void tamper(int argc, char **argv)
{
    const pid_t sibling = (pid_t)number(need(argc, argv, 0));
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    struct rlimit none = {0, 0};
    void *head;
    size_t size;
    int nobody = 0;
    const pid_t targets[] = {sibling, 1};
    for (size_t i = 0; i < (filtered() ? 2 : 1); i++) {
        const pid_t pid = targets[i];
        tried("prlimit", prlimit(pid, RLIMIT_NOFILE, &none, NULL));
        tried("prlimit CPU", prlimit(pid, RLIMIT_CPU, &none, NULL));
        tried("sched_setaffinity", sched_setaffinity(pid, sizeof one, &one));
        tried("sched_setscheduler", sched_setscheduler(pid, SCHED_IDLE, &(struct sched_param){0}));
        tried("setpriority", setpriority(PRIO_PROCESS, (id_t)pid, 19));
        tried("ioprio_set", syscall(SYS_ioprio_set, IOPRIO_TO_INIT, pid, 3 << 13));
        tried("get_robust_list", syscall(SYS_get_robust_list, pid, &head, &size));
        tried("migrate_pages", syscall(SYS_migrate_pages, pid, 8, &nobody, &nobody));
        tried("kcmp", syscall(SYS_kcmp, pid, getpid(), 2, 0, 0));
        tried("setpgid", setpgid(pid, pid));
    }
    none_may_have_succeeded();
}

static void fork_(int argc, char **argv)
{
    (void)argc, (void)argv;
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    must_fail("fork", pid);
}

static void vfork_(int argc, char **argv)
{
    (void)argc, (void)argv;
    pid_t pid = vfork();
    if (pid == 0)
        _exit(0);
    must_fail("vfork", pid);
}

static char stack[65536] __attribute__((aligned(16)));

static int child_exits(void *code)
{
    _exit((int)(intptr_t)code);
}

/* A process that shares everything with us but is none of our threads: a filter that only asks
 * for CLONE_VM would take it for a thread. */
static void clone_(int argc, char **argv)
{
    (void)argc, (void)argv;
    tried("clone VM",
          clone(child_exits, stack + sizeof stack, CLONE_VM | CLONE_FS | CLONE_FILES | SIGCHLD, 0));
    tried("clone VM|SIGHAND", clone(child_exits, stack + sizeof stack,
                                    CLONE_VM | CLONE_SIGHAND | CLONE_FILES | SIGCHLD, 0));
    tried("clone UNTRACED", clone(child_exits, stack + sizeof stack, CLONE_UNTRACED | SIGCHLD, 0));
    none_may_have_succeeded();
}

static void clone3_(int argc, char **argv)
{
    (void)argc, (void)argv;
    struct clone_args a = {.flags = CLONE_NEWUSER | CLONE_NEWNS, .exit_signal = SIGCHLD};
    long pid = syscall(SYS_clone3, &a, sizeof a);
    if (pid == 0)
        _exit(0);
    if (pid > 0)
        reached("a child in a new user namespace by clone3");
    if (errno != ENOSYS) /* any other answer and libc does not fall back to clone */
        reached("clone3 answers %s, not ENOSYS", error_name(errno));
    contained("clone3: ENOSYS");
}

/* A child of our parent: its exit may be taken for the guest's own. The test sees the exit code. */
static void clone_parent(int argc, char **argv)
{
    (void)argc, (void)argv;
    pid_t pid =
        clone(child_exits, stack + sizeof stack, CLONE_PARENT | SIGCHLD, (void *)(intptr_t)77);
    if (pid < 0)
        contained("clone(CLONE_PARENT): %s", error_name(errno));
    usleep(200000);
    contained("a child of pid 1 exited with 77; ours must be the code that is reported");
}

static void daemonize(int argc, char **argv)
{
    (void)argc, (void)argv;
    pid_t pid = fork();
    if (pid < 0)
        broken("fork: %s", error_name(errno));
    if (pid == 0) {
        setsid();
        signal(SIGTERM, SIG_IGN);
        signal(SIGHUP, SIG_IGN);
        prctl(PR_SET_PDEATHSIG, 0);
        if (fork() == 0) {
            setsid();
            prctl(PR_SET_NAME, "cordon-daemon");
            for (;;)
                pause(); /* holds stdout open, too: the run must not wait for its end */
        }
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    contained("a daemon was left behind; the test looks for it");
}

static void zombies(int argc, char **argv)
{
    (void)argc, (void)argv;
    int made = 0;
    for (; made < 1000; made++) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(0);
        if (pid < 0)
            break;
    }
    if (made >= 1000)
        reached("%d zombies under a limit of 8", made);
    if (made == 0)
        broken("not one fork: %s", error_name(errno));
    contained("%d zombies, then %s", made, error_name(errno));
}

static void fork_bomb(int argc, char **argv)
{
    (void)argc, (void)argv;
    keep_stdout();
    int made = 0;
    for (; made < 2000; made++) {
        pid_t pid = fork();
        if (pid == 0) {
            for (;;)
                if (fork() < 0)
                    pause();
        }
        if (pid < 0 && made > 0)
            break;
        if (pid < 0)
            broken("not one fork: %s", error_name(errno));
    }
    if (made > 8)
        reached("%d children under a limit of 8", made);
    contained("the bomb stopped at %d: %s", made, error_name(errno));
}

static void *thread_waits(void *arg)
{
    pause();
    return arg;
}

static void thread_bomb(int argc, char **argv)
{
    (void)argc, (void)argv;
    int made = 0, error = 0;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    for (; made < 2000; made++) {
        pthread_t t;
        error = pthread_create(&t, &small, thread_waits, NULL);
        if (error)
            break;
    }
    if (made > 128) /* that 16 are 16 is for the test of limits to say */
        reached("%d threads under a limit of 16", made);
    contained("%d threads, then %s", made, error_name(error));
}

static void stopped(int argc, char **argv)
{
    (void)argc, (void)argv;
    for (int s = 1; s < 32; s++)
        signal(s, SIG_IGN);
    for (;;)
        raise(SIGSTOP);
}

static void ignores_term(int argc, char **argv)
{
    (void)argc, (void)argv;
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    for (;;)
        pause();
}

/* The leader ends and leaves a thread: the process is a zombie that still runs. */
static void *thread_lives_on(void *arg)
{
    for (;;)
        pause();
    return arg;
}

static void leader_exits(int argc, char **argv)
{
    (void)argc, (void)argv;
    pthread_t t;
    if (pthread_create(&t, NULL, thread_lives_on, NULL))
        broken("pthread_create");
    syscall(SYS_exit, 0);
}

static void kill_self(int argc, char **argv)
{
    (void)argc, (void)argv;
    kill(getpid(), SIGKILL);
    broken("kill -9 of itself came back");
}

static void abort_(int argc, char **argv)
{
    (void)argc, (void)argv;
    abort();
}

static void segfault(int argc, char **argv)
{
    (void)argc, (void)argv;
    volatile int *nowhere = NULL;
    *nowhere = 1;
}

static void sigpipe(int argc, char **argv)
{
    (void)argc, (void)argv;
    int p[2];
    if (pipe2(p, O_CLOEXEC) < 0)
        broken("pipe2");
    close(p[0]);
    if (write(p[1], "x", 1) < 0)
        broken("SIGPIPE is ignored in the guest: %s", error_name(errno));
}

/* Time that is burnt by children nobody waits for is in no rusage. */
static void cpu_children(int argc, char **argv)
{
    (void)argc, (void)argv;
    signal(SIGCHLD, SIG_IGN);
    for (;;) {
        if (fork() == 0) {
            struct rusage u;
            do
                getrusage(RUSAGE_SELF, &u);
            while (u.ru_utime.tv_sec * 1000000 + u.ru_utime.tv_usec + u.ru_stime.tv_usec < 300000);
            _exit(0);
        }
        usleep(10000);
    }
}

static void timer_storm(int argc, char **argv)
{
    (void)argc, (void)argv;
    enum { MANY = 100000 };
    int made = 0;
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    for (; made < MANY; made++) {
        timer_t t;
        struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
        if (timer_create(CLOCK_MONOTONIC, &e, &t) < 0)
            break;
        struct itimerspec often = {{0, 100000}, {0, 100000}};
        timer_settime(t, 0, &often, NULL);
    }
    if (made >= MANY)
        reached("%d timers", made);
    contained("%d timers, then %s", made, error_name(errno));
}

static void signal_queue(int argc, char **argv)
{
    (void)argc, (void)argv;
    enum { MANY = 200000 };
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    int queued = 0;
    for (; queued < MANY; queued++)
        if (sigqueue(getpid(), SIGRTMIN, (union sigval){0}) < 0)
            break;
    if (queued >= MANY)
        reached("%d signals queued", queued);
    contained("%d signals queued, then %s", queued, error_name(errno));
}

static void spin(int argc, char **argv)
{
    (void)argc, (void)argv;
    for (volatile unsigned long i = 0;; i++)
        ;
}

const struct probe probes_processes[] = {
    {"ptrace-parent", "attach to the process above", "5", 1, "process", "benign-signals",
     ptrace_attach, .rule = "ptrace"},
    {"ptrace-sibling", "attach to a process outside", "5", 1, "process", "benign-signals",
     ptrace_sibling, .args = "{pid}", .rule = "ptrace"},
    {"vm-writev", "write the memory of the process above", "5", 1, "process", "benign-memory",
     vm_writev, .rule = "process_vm"},
    {"pidfd-getfd", "steal a descriptor of another process", "6", 6, "process", "benign-pipes",
     pidfd_getfd_, .rule = "pidfd"},
    {"kill-parent", "five signals to the process above", "31", 1, "process", "benign-signals",
     kill_parent},
    {"kill-all", "kill(-1) and the process group", "31", 1, "process", "benign-signals", kill_all},
    {"kill-group", "kill(0, 9), the caller's group if it were shared", "31", 1, "process",
     "benign-signals", kill_group, .ends = "crashed 9"},
    {"kill-sibling", "kill a process of the same user outside", "31", 1, "process",
     "benign-signals", kill_sibling, .args = "{pid}"},
    {"tamper", "limits, affinity, priority and secrets of other processes", "45", 1, "process",
     "benign-signals", tamper, .args = "{pid}"},
    {"fork", "a child process with --processes 0", "35", 3, "process", "benign-fork", fork_,
     .options = "--threads 0", .rule = "fork|clone"},
    {"vfork", "a borrowed child with --processes 0", "35", 3, "process", "benign-fork", vfork_,
     .options = "--threads 0", .rule = "vfork|clone"},
    {"clone", "a process dressed as a thread", "35", 3, "process", "benign-threads", clone_,
     .options = "--threads 0", .rule = "clone"},
    {"clone3", "flags that a filter cannot read", "9,10", 1, "syscalls", "benign-threads", clone3_},
    {"clone-parent", "a sibling whose exit is taken for ours", "33", 1, "process", "benign-fork",
     clone_parent, .options = "--processes 8"},
    {"daemonize", "double fork and setsid outlive the run", "33", 3, "process", "benign-fork",
     daemonize, .options = "--processes 8"},
    {"zombies", "children nobody waits for", "34", 3, "resources", "benign-fork", zombies,
     .options = "--processes 8", .rule = "process"},
    {"fork-bomb", "a fork bomb", "35", 3, "resources", "benign-fork", fork_bomb,
     .options = "--processes 8", .rule = "process"},
    {"thread-bomb", "a thread bomb", "35", 3, "resources", "benign-threads", thread_bomb,
     .options = "--threads 16", .rule = "thread|process"},
    {"stopped", "SIGSTOP of itself defeats a polite time-out", "32", 3, "resources",
     "benign-signals", stopped, .options = "--timeout 1s", .ends = "timeout"},
    {"ignores-term", "every signal blocked", "32,37", 3, "resources", "benign-signals",
     ignores_term, .options = "--timeout 1s", .ends = "timeout"},
    {"leader-exits", "the main thread ends, another stays", "32,37", 3, "resources",
     "benign-threads", leader_exits, .options = "--timeout 1s", .ends = "timeout"},
    {"kill-self", "kill -9 of itself", "31", 1, "process", "benign-signals", kill_self,
     .ends = "crashed 9"},
    {"abort", "abort", "30", 1, "process", "benign-signals", abort_, .ends = "crashed 6"},
    {"segfault", "a null pointer", "30", 1, "process", "benign-memory", segfault,
     .ends = "crashed 11"},
    {"sigpipe", "a broken pipe", "31", 1, "process", "benign-pipes", sigpipe, .ends = "crashed 13"},
    {"cpu-children", "CPU time of children that no rusage counts", "36", 3, "resources",
     "benign-fork", cpu_children, .options = "--processes 8 --cpu 1s --timeout 6s",
     .ends = "timeout"},
    {"cpu-spin", "an endless loop", "36", 3, "resources", "benign-time", spin,
     .options = "--cpu 1s --timeout 10s", .ends = "timeout"},
    {"timer-storm", "timers without end", "36", 3, "resources", "benign-time", timer_storm},
    {"signal-queue", "a queue of signals in kernel memory", "36", 3, "resources", "benign-signals",
     signal_queue},
    {0},
};
