/* SPDX-License-Identifier: Apache-2.0 */
/* Exhaustion: memory by every road, disk, inodes, descriptors, sleep. The limits are small so that
 * a probe that gets through does no harm. */
#include "probe.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { MB = 1 << 20 };

static void touch_until(size_t limit, int flags)
{
    for (size_t got = 0; got < limit; got += 4 * MB) {
        char *p = mmap(NULL, 4 * MB, PROT_READ | PROT_WRITE, flags, -1, 0);
        if (p == MAP_FAILED) {
            if (got < 8 * MB)
                broken("not even %zu MB: %s", got / MB, error_name(errno));
            contained("%zu MB touched, then %s", got / MB, error_name(errno));
        }
        memset(p, 1, 4 * MB);
    }
    reached("%zu MB under a limit of 64", limit / MB);
}

static void memory(int argc, char **argv)
{
    (void)argc, (void)argv;
    touch_until(512u * MB, MAP_PRIVATE | MAP_ANONYMOUS);
}

static void shared_memory(int argc, char **argv)
{
    (void)argc, (void)argv;
    touch_until(512u * MB, MAP_SHARED | MAP_ANONYMOUS);
}

static void memfd(int argc, char **argv)
{
    (void)argc, (void)argv;
    static char block[MB];
    memset(block, 1, sizeof block);
    size_t got = 0;
    signal(SIGXFSZ, SIG_IGN);
    for (int files = 0; files < 40; files++) {
        int fd = (int)syscall(SYS_memfd_create, "bomb", 0);
        if (fd < 0)
            contained("memfd_create: %s (%zu MB held)", error_name(errno), got / MB);
        for (int i = 0; i < 16; i++) {
            if (write(fd, block, MB) != MB)
                break;
            got += MB;
        }
        if (got > 256u * MB)
            reached("%zu MB in memfds under a limit of 64", got / MB);
    }
    contained("%zu MB in memfds, then %s", got / MB, error_name(errno));
}

/* Children share a cgroup; without one each has the whole limit, and the number is the limit. */
static void memory_children(int argc, char **argv)
{
    (void)argc, (void)argv;
    atomic_int *full =
        mmap(NULL, sizeof *full, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (full == MAP_FAILED)
        broken("mmap: %s", error_name(errno));
    for (int i = 0; i < 3; i++) {
        pid_t pid = fork();
        if (pid < 0)
            broken("fork: %s", error_name(errno));
        if (pid == 0) {
            for (size_t got = 0; got < 100u * MB; got += MB) {
                char *p =
                    mmap(NULL, MB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                if (p == MAP_FAILED)
                    _exit(1);
                memset(p, 1, MB);
            }
            atomic_fetch_add(full, 1);
            for (;;)
                pause();
        }
    }
    /* until one has ended or all have what they want, however slow the machine is */
    int status, killed = 0;
    while (!killed && atomic_load(full) < 3) {
        usleep(100000);
        while (waitpid(-1, &status, WNOHANG) > 0)
            killed++;
    }
    if (!killed)
        reached("three children hold 300 MB under a limit of 64");
    contained("%d of three children of 100 MB ended under a limit of 64", killed);
}

static void pipes(int argc, char **argv)
{
    (void)argc, (void)argv;
    static char block[65536];
    size_t held = 0;
    int p[2];
    while (pipe2(p, O_CLOEXEC | O_NONBLOCK) == 0) {
        fcntl(p[1], F_SETPIPE_SZ, MB);
        for (ssize_t n; (n = write(p[1], block, sizeof block)) > 0;)
            held += (size_t)n;
    }
    if (held > 128u * MB)
        reached("%zu MB of kernel memory in pipes", held / MB);
    contained("%zu MB in pipes, then %s", held / MB, error_name(errno));
}

/* Segments stay when they are detached: no address space, no descriptor, no file. */
static void shm_bomb(int argc, char **argv)
{
    (void)argc, (void)argv;
    size_t got = 0;
    while (got < 256u * MB) {
        int id = shmget(IPC_PRIVATE, 16 * MB, IPC_CREAT | 0600);
        void *p = id < 0 ? (void *)-1 : shmat(id, NULL, 0);
        if (p == (void *)-1)
            contained("%zu MB in segments, then %s", got / MB, error_name(errno));
        memset(p, 1, 16 * MB);
        shmdt(p);
        got += 16 * MB;
    }
    reached("%zu MB in segments under a limit of 64", got / MB);
}

/* Extended attributes lie in kernel memory, beside the quota of bytes. */
static void xattr_bomb(int argc, char **argv)
{
    (void)argc, (void)argv;
    static char value[60000];
    char path[64], name[64];
    size_t got = 0;
    for (int file = 0; file < 900; file++) {
        snprintf(path, sizeof path, "/tmp/x%d", file);
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0)
            break;
        for (int i = 0; i < 64; i++) {
            snprintf(name, sizeof name, "user.x%d", i);
            if (fsetxattr(fd, name, value, sizeof value, 0) < 0)
                break;
            got += sizeof value;
        }
        int error = errno;
        close(fd);
        errno = error;
        if (got > 64u * MB)
            reached("%zu MB of attributes under a quota of 8", got / MB);
    }
    contained("%zu KB of attributes, then %s", got / 1024, error_name(errno));
}

static void mlock_(int argc, char **argv)
{
    (void)argc, (void)argv;
    static char block[16 * MB];
    tried("mlockall", mlockall(MCL_CURRENT | MCL_FUTURE));
    tried("mlock 16 MB", mlock(block, sizeof block));
    none_may_have_succeeded();
}

static void fill(int argc, char **argv)
{
    const char *folder = need(argc, argv, 0);
    static char block[65536];
    char path[256];
    size_t got = 0;
    signal(SIGXFSZ, SIG_IGN);
    for (int i = 0; i < 100; i++) {
        snprintf(path, sizeof path, "%s/fill%d", folder, i);
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0)
            break;
        for (ssize_t n; (n = write(fd, block, sizeof block)) > 0;) {
            got += (size_t)n;
            if (got > 200u * MB) /* that 8 MB are 8 MB is for the test of limits to say */
                reached("%zu MB under a quota of 8", got / MB);
        }
        int error = errno;
        close(fd);
        errno = error;
        if (errno == ENOSPC || errno == EDQUOT)
            break;
    }
    if (got < MB)
        broken("only %zu bytes: %s", got, error_name(errno));
    contained("%zu KB, then %s", got / 1024, error_name(errno));
}

/* Both writable places are one quota, not one each. */
static void fill_both(int argc, char **argv)
{
    (void)argc, (void)argv;
    static char block[65536];
    size_t got = 0;
    signal(SIGXFSZ, SIG_IGN);
    static const char *const places[] = {"/tmp/a",          "/workspace/b",
                                         "/live/own/tmp/c", "/live/own/workspace/d",
                                         "/dev/shm/e",      "/live/own/f"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        int fd = open(places[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        for (ssize_t n; fd >= 0 && (n = write(fd, block, sizeof block)) > 0 && got < 200u * MB;)
            got += (size_t)n;
    }
    if (got >= 200u * MB)
        reached("%zu MB in all places together under a quota of 8", got / MB);
    contained("%zu KB in all places together", got / 1024);
}

static void inodes(int argc, char **argv)
{
    (void)argc, (void)argv;
    char path[64];
    int made = 0;
    for (; made < 200000; made++) {
        snprintf(path, sizeof path, "/workspace/%d", made);
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0)
            break;
        close(fd);
    }
    if (made >= 200000)
        reached("%d files under a quota of 1000", made);
    if (made < 500)
        broken("only %d files: %s", made, error_name(errno));
    contained("%d files, then %s", made, error_name(errno));
}

/* A folder so deep that a recursive delete would run out of stack or of path. */
static void deep(int argc, char **argv)
{
    (void)argc, (void)argv;
    int depth = 0;
    char name[256];
    memset(name, 'd', 255);
    name[255] = 0;
    if (chdir("/workspace") < 0)
        broken("/workspace: %s", error_name(errno));
    for (; depth < 100000; depth++)
        if (mkdir(depth & 1 ? name : "d", 0700) < 0 || chdir(depth & 1 ? name : "d") < 0)
            break;
    if (depth >= 100000)
        reached("a folder 100000 deep");
    contained("%d levels, then %s; the test sees that the run ends clean", depth,
              error_name(errno));
}

static void sparse(int argc, char **argv)
{
    (void)argc, (void)argv;
    signal(SIGXFSZ, SIG_IGN);
    int fd = open("/tmp/sparse", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        broken("/tmp/sparse: %s", error_name(errno));
    tried("fallocate 1 GB", fallocate(fd, 0, 0, 1L << 30));
    tried("fallocate keep size", fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 1L << 30));
    struct rlimit size;
    if (getrlimit(RLIMIT_FSIZE, &size) == 0 && size.rlim_max != RLIM_INFINITY) {
        tried("ftruncate 1 TB", ftruncate(fd, 1L << 40));
        tried("pwrite at 1 TB", pwrite(fd, "x", 1, 1L << 40));
    } else { /* no such limit: then at least no more than the quota may be held */
        ftruncate(fd, 1L << 40);
        for (long at = 0; at < 1L << 40; at += 1L << 32)
            pwrite(fd, "x", 1, at);
        struct stat st;
        fstat(fd, &st);
        if (st.st_blocks * 512 > 9 * MB)
            reached("%lld bytes held under a quota of 8 MB", (long long)st.st_blocks * 512);
    }
    none_may_have_succeeded();
}

static void dup_(int argc, char **argv)
{
    (void)argc, (void)argv;
    int got = 0;
    while (got < 5000 && dup(0) >= 0)
        got++;
    if (got >= 5000)
        reached("5000 descriptors under a limit of 64");
    contained("%d descriptors, then %s", got, error_name(errno));
}

static void watchers(int argc, char **argv)
{
    (void)argc, (void)argv;
    int got = 0;
    while (got < 5000 && inotify_init1(IN_CLOEXEC) >= 0)
        got++;
    int inner = epoll_create1(EPOLL_CLOEXEC), chain = 0;
    for (; inner >= 0 && chain < 5000; chain++) {
        int outer = epoll_create1(EPOLL_CLOEXEC);
        struct epoll_event e = {.events = EPOLLIN};
        if (outer < 0 || epoll_ctl(outer, EPOLL_CTL_ADD, inner, &e) < 0)
            break;
        inner = outer;
    }
    if (got + chain >= 5000)
        reached("%d watchers and an epoll chain of %d", got, chain);
    contained("%d watchers, an epoll chain of %d, then %s", got, chain, error_name(errno));
}

static void raise_limits(int argc, char **argv)
{
    (void)argc, (void)argv;
    static const int which[] = {RLIMIT_NOFILE, RLIMIT_NPROC, RLIMIT_FSIZE,
                                RLIMIT_CORE,   RLIMIT_CPU,   RLIMIT_MEMLOCK};
    static const char *const names[] = {"NOFILE", "NPROC", "FSIZE", "CORE", "CPU", "MEMLOCK"};
    for (size_t i = 0; i < sizeof which / sizeof *which; i++) {
        struct rlimit old, more;
        if (getrlimit(which[i], &old) < 0)
            broken("getrlimit: %s", error_name(errno));
        more = old;
        if (old.rlim_max == RLIM_INFINITY)
            reached("%s has no limit", names[i]);
        more.rlim_cur = more.rlim_max = old.rlim_max + 1;
        tried(names[i], setrlimit(which[i], &more));
    }
    none_may_have_succeeded();
}

static void forever(int argc, char **argv)
{
    (void)argc, (void)argv;
    for (;;)
        pause();
}

static volatile unsigned depth_left = 1u << 30;

static void recursion_step(volatile char *above)
{
    volatile char frame[4096];
    frame[0] = above ? above[0] : 0;
    if (--depth_left)
        recursion_step(frame);
    frame[1] = 0;
}

static void recursion(int argc, char **argv)
{
    (void)argc, (void)argv;
    recursion_step(NULL);
    reached("a stack of 4 TB");
}

const struct probe probes_limits[] = {
    {"memory-bomb", "touch memory without end", "43", 3, "resources", "benign-memory", memory,
     .options = "--memory 64m", .ends = "memory|ok"},
    {"memory-shared", "shared anonymous memory", "42,43", 3, "resources", "benign-memory",
     shared_memory, .options = "--memory 64m", .ends = "memory|ok"},
    {"memory-rlimit", "the same where the limit is an rlimit", "43", 3, "resources",
     "benign-memory", memory, .options = "--memory 64m --memory-by rlimit", .ends = "memory|ok"},
    {"memory-children", "memory spread over children", "43", 3, "resources", "benign-fork",
     memory_children, .options = "--memory 64m --processes 8 --memory-by cgroup",
     .ends = "memory|ok|refused"},
    {"memfd-bomb", "memory that no rlimit counts", "42", 3, "resources", "benign-memory", memfd,
     .options = "--memory 64m", .ends = "memory|ok"},
    {"memfd-bomb-rlimit", "the same without a cgroup", "42", 3, "resources", "benign-memory", memfd,
     .options = "--memory 64m --memory-by rlimit"},
    {"pipe-bomb", "memory in pipes", "42", 3, "resources", "benign-pipes", pipes,
     .options = "--memory 64m --descriptors 256", .ends = "memory|ok"},
    {"shm-bomb", "memory in System V segments", "26,42", 3, "resources", "benign-memory", shm_bomb,
     .options = "--memory 64m --memory-by rlimit"},
    {"xattr-bomb", "memory in extended attributes", "42", 3, "resources", "benign-files",
     xattr_bomb, .options = "--disk 8m --inodes 1000"},
    {"mlock", "memory that cannot be swapped", "42", 3, "resources", "benign-memory", mlock_},
    {"disk-tmp", "fill /tmp", "41,42", 3, "resources", "benign-files", fill,
     .options = "--disk 8m --memory 64m", .args = "/tmp", .rule = "disk"},
    {"disk-workspace", "fill /workspace", "41,42", 3, "resources", "benign-files", fill,
     .options = "--disk 8m --memory 64m", .args = "/workspace", .rule = "disk"},
    {"disk-both", "fill every writable place", "41,42", 3, "resources", "benign-files", fill_both,
     .options = "--disk 8m --memory 64m", .rule = "disk"},
    {"inodes", "files without end", "40", 3, "resources", "benign-files", inodes,
     .options = "--inodes 1000 --memory 64m", .rule = "inode"},
    {"deep-folders", "a folder of bottomless depth", "40", 3, "resources", "benign-files", deep,
     .options = "--inodes 3000"},
    {"sparse", "a terabyte that is not there", "41", 3, "resources", "benign-files", sparse,
     .options = "--disk 8m --memory 64m"},
    {"descriptors", "descriptors without end", "44", 3, "resources", "benign-pipes", dup_,
     .rule = "descriptor"},
    {"watchers", "inotify and epoll chains", "44", 3, "resources", "benign-pipes", watchers},
    {"raise-limits", "raise its own hard limits", "35,44", 3, "resources", "benign-memory",
     raise_limits},
    {"sleep-forever", "no CPU time at all", "37", 3, "resources", "benign-time", forever,
     .options = "--timeout 1s", .ends = "timeout"},
    {"recursion", "a stack without end", "43", 3, "resources", "benign-memory", recursion,
     .ends = "crashed 11|memory"},
    {0},
};
