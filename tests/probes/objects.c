/* SPDX-License-Identifier: Apache-2.0 */
/* Makes one kind of kernel object without end, from inside the jail, and holds what it got, so that the test can
 * look at the machine's kernel memory meanwhile (tests/system/kernel_objects.py).
 *
 *   objects NAME
 *
 * It prints `made N NAME, then ERROR`, closes its standard output and waits until its standard input ends. A probe
 * stops by itself at ENOUGH objects: a jail that bounds nothing still does no harm. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/prctl.h>
#include <mqueue.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define ENOUGH 300000L /* objects of 200 bytes and more: 60 MB, which no test overlooks */

static int file(const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/%s", name);
    return open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

/* Every second byte of one file: neighbours would become one lock. */
static long lock_bytes(int command)
{
    int fd = file("locks");
    long n = 0;
    for (; n < ENOUGH; n++) {
        struct flock f = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = n * 2, .l_len = 1};
        if (fcntl(fd, command, &f) < 0)
            break;
    }
    return n;
}

static long posix_locks(void)
{
    return lock_bytes(F_SETLK);
}

/* The mapping keeps the open file, and with it the locks, when the descriptor is closed. */
static long ofd_locks(void)
{
    int fd = file("ofd");
    if (ftruncate(fd, 4096) < 0 || mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED)
        return -1;
    return lock_bytes(F_OFD_SETLK);
}

static long flocks_of_mapped_files(void)
{
    long n = 0;
    for (; n < ENOUGH; n++) {
        int fd = file("flock");
        if (fd < 0)
            break;
        if (flock(fd, LOCK_SH) < 0 || ftruncate(fd, 4096) < 0 ||
            mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED)
            break;
        close(fd);
    }
    return n;
}

static long landlock_rules(void)
{
    const uint64_t handled[2] = {1 /* execute */, 3 /* both rights on ports */};
    long n = 0;
    int set = (int)syscall(SYS_landlock_create_ruleset, handled, sizeof handled, 0);
    for (uint64_t port = 0; set >= 0 && n < ENOUGH; n++) {
        struct {
            uint64_t access, port;
        } rule = {1, port++};
        if (port > 65535) {
            port = 0;
            set = (int)syscall(SYS_landlock_create_ruleset, handled, sizeof handled, 0);
        }
        if (syscall(SYS_landlock_add_rule, set, 2 /* a port */, &rule, 0) < 0)
            break;
    }
    return n;
}

/* Pipes as large as they may be, all full. Counted in pages. */
static long pipe_pages(void)
{
    static char block[65536];
    long bytes = 0;
    int p[2];
    while (bytes / 4096 < ENOUGH && pipe2(p, O_CLOEXEC | O_NONBLOCK) == 0) {
        for (int size = 1 << 20; size > 65536 && fcntl(p[1], F_SETPIPE_SZ, size) < 0; size /= 2)
            ;
        for (ssize_t n; (n = write(p[1], block, sizeof block)) > 0;)
            bytes += n;
    }
    return bytes / 4096;
}

/* Each pair of file and descriptor number is an item of an epoll instance. */
static long epoll_items(void)
{
    int sets[4096], count = 0, n_fds = 0, fds[4096];
    long n = 0;
    while (count < 24 && (sets[count] = epoll_create1(EPOLL_CLOEXEC)) >= 0)
        count++;
    while (n_fds < 4096 && (fds[n_fds] = eventfd(0, EFD_CLOEXEC)) >= 0)
        n_fds++;
    for (int s = 0; s < count; s++)
        for (int i = 0; i < n_fds && n < ENOUGH; i++) {
            struct epoll_event e = {.events = EPOLLIN};
            n += epoll_ctl(sets[s], EPOLL_CTL_ADD, fds[i], &e) == 0;
        }
    return n;
}

static long timers(void)
{
    long n = 0;
    struct sigevent quiet = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    timer_t t;
    while (n < ENOUGH && timer_create(CLOCK_MONOTONIC, &quiet, &t) == 0)
        n++;
    return n;
}

static long pending_signals(void)
{
    sigset_t all;
    long n = 0;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    while (n < ENOUGH && syscall(SYS_tgkill, getpid(), gettid(), SIGRTMIN + 1) == 0)
        n++;
    return n;
}

static long timer_descriptors(void)
{
    long n = 0;
    while (n < ENOUGH && timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC) >= 0)
        n++;
    return n;
}

static long inotify_watches(void)
{
    int fd = inotify_init1(IN_CLOEXEC);
    long n = 0;
    char path[64];
    for (; fd >= 0 && n < ENOUGH; n++) {
        snprintf(path, sizeof path, "/tmp/w%ld", n % 5000);
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
            break;
        if (inotify_add_watch(fd, path, IN_ALL_EVENTS) < 0)
            break;
    }
    return n;
}

static long semaphores(void)
{
    long n = 0;
    while (n < ENOUGH && semget(IPC_PRIVATE, 250, IPC_CREAT | 0600) >= 0)
        n += 250;
    return n;
}

static long messages(void)
{
    static char block[8192];
    long n = 0;
    int q = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
    *(long *)(void *)block = 1;
    for (; q >= 0 && n < ENOUGH; n++)
        if (msgsnd(q, block, 1024, IPC_NOWAIT) < 0 &&
            (q = msgget(IPC_PRIVATE, IPC_CREAT | 0600)) < 0)
            break;
    return n;
}

static long message_queues(void)
{
    long n = 0;
    char name[32];
    for (; n < ENOUGH; n++) {
        snprintf(name, sizeof name, "/cordon-%ld", n);
        if (mq_open(name, O_RDWR | O_CREAT, 0600, NULL) < 0)
            break;
    }
    return n;
}

static long shared_segments(void)
{
    long n = 0;
    while (n < ENOUGH && shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600) >= 0)
        n++;
    return n;
}

/* Counted in pages. */
static long socket_buffers(void)
{
    static char block[65536];
    long bytes = 0;
    int p[2], size = 16 << 20;
    while (bytes / 4096 < ENOUGH &&
           socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, p) == 0) {
        setsockopt(p[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
        for (ssize_t n; (n = write(p[0], block, sizeof block)) > 0;)
            bytes += n;
    }
    return bytes / 4096;
}

/* One page in each GB: a page table and a directory of page tables for each. */
static long page_tables(void)
{
    long n = 0;
    char *at = (char *)(1UL << 34);
    for (; n < 100000; n++, at += 1L << 30) {
        char *p = mmap(at, 4096, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (p == MAP_FAILED)
            break;
        *p = 1;
    }
    return n;
}

/* Names that are not there, each remembered by the kernel. */
static long negative_dentries(void)
{
    char path[64];
    struct stat st;
    long n = 0;
    for (; n < ENOUGH; n++) {
        snprintf(path, sizeof path, "/usr/lib/none-%d-%ld", getpid(), n);
        if (stat(path, &st) == 0 || errno != ENOENT)
            break;
    }
    return n;
}

static long attributes(void)
{
    static char value[1000];
    int fd = file("attributes");
    char name[32];
    long n = 0;
    for (; n < ENOUGH; n++) {
        snprintf(name, sizeof name, "user.a%ld", n);
        if (fsetxattr(fd, name, value, sizeof value, 0) < 0)
            break;
    }
    return n;
}

static long mappings(void)
{
    long n = 0;
    for (; n < ENOUGH; n++) /* two kinds in turn: neighbours of one kind would become one */
        if (mmap(NULL, 4096, n & 1 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
            MAP_FAILED)
            break;
    return n;
}

static long file_names(void)
{
    char path[300];
    long n = 0;
    int fd = file("names");
    if (fd < 0)
        return -1;
    for (; n < ENOUGH; n++) {
        snprintf(path, sizeof path, "/tmp/%0200ld", n);
        if (link("/tmp/names", path) < 0)
            break;
    }
    return n;
}

/* The target of a short link is kept beside the inode, in memory of the kernel's own. */
static long short_links(void)
{
    static char target[121];
    char path[64];
    long n = 0;
    memset(target, 'x', sizeof target - 1);
    for (; n < ENOUGH; n++) {
        snprintf(path, sizeof path, "/tmp/link-%ld", n);
        if (symlink(target, path) < 0)
            break;
    }
    return n;
}

static long event_descriptors(void)
{
    sigset_t one;
    long n = 0;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR2);
    while (n < ENOUGH && (n % 2 ? eventfd(0, EFD_CLOEXEC) : signalfd(-1, &one, SFD_CLOEXEC)) >= 0)
        n++;
    return n;
}

/* A name for every second page, each its own: neighbours of one name would become one mapping. */
static long mapping_names(void)
{
    char name[80];
    long n = 0;
    const size_t size = 24 << 20; /* the limit of the test has room for it */
    char *area = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED)
        return -1;
    for (; n < ENOUGH && (size_t)(n + 1) * 8192 <= size; n++) {
        snprintf(name, sizeof name, "%070ld", n);
        if (prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, area + n * 8192, 4096, name) < 0)
            break;
    }
    return n;
}

static void *rest(void *arg)
{
    for (;;)
        pause();
    return arg;
}

static long threads(void)
{
    pthread_attr_t small;
    pthread_t t;
    long n = 0;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 16384);
    for (int e = 0; n < ENOUGH; n++)
        if ((e = pthread_create(&t, &small, rest, NULL)) != 0) {
            errno = e;
            break;
        }
    return n;
}

static const struct {
    const char *name;
    long (*make)(void);
} objects[] = {
    {"posix-locks", posix_locks},
    {"ofd-locks", ofd_locks},
    {"flocks", flocks_of_mapped_files},
    {"landlock-rules", landlock_rules},
    {"pipe-pages", pipe_pages},
    {"epoll-items", epoll_items},
    {"timers", timers},
    {"pending-signals", pending_signals},
    {"timer-descriptors", timer_descriptors},
    {"inotify-watches", inotify_watches},
    {"semaphores", semaphores},
    {"messages", messages},
    {"message-queues", message_queues},
    {"shared-segments", shared_segments},
    {"socket-buffers", socket_buffers},
    {"page-tables", page_tables},
    {"negative-dentries", negative_dentries},
    {"attributes", attributes},
    {"mappings", mappings},
    {"file-names", file_names},
    {"short-links", short_links},
    {"event-descriptors", event_descriptors},
    {"mapping-names", mapping_names},
    {"threads", threads},
};

int main(int argc, char **argv)
{
    char c;
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (size_t i = 0; i < sizeof objects / sizeof *objects; i++)
            puts(objects[i].name);
        return 0;
    }
    for (size_t i = 0; argc == 2 && i < sizeof objects / sizeof *objects; i++) {
        if (strcmp(objects[i].name, argv[1]) != 0)
            continue;
        errno = 0;
        long n = objects[i].make();
        printf("made %ld %s, then %s\n", n, argv[1], errno ? strerrorname_np(errno) : "enough");
        fflush(stdout);
        while (read(0, &c, 1) > 0)
            ;
        return 0;
    }
    fprintf(stderr, "usage: objects NAME\n");
    return 2;
}
