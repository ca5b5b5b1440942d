/* SPDX-License-Identifier: Apache-2.0 */
/* Does what it is told, word by word, and answers with a number: negative errno, or what came of it. */
#include "jail/test_guest.h"

#include "jail/branch.h"
#include "jail/template.h"
#include "sys/fd.h"
#include "wire/msg.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int kept = 1; /* a variable of the session */
static int last_branch;
static long loaded = -1, confined = -1; /* what was found, see look_around */
static char cheat[16];                  /* how a hostile guest forks */

static long result(long r)
{
    return r < 0 ? -errno : r;
}

static void *in_thread(void *p)
{
    *(pid_t *)p = gettid();
    return NULL;
}

static void *asleep(void *p)
{
    for (;;)
        pause();
    return p;
}

static long open_fds(void)
{
    long mask = 0;
    for (int fd = 0; fd < 256; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            mask |= 1L << (fd < 62 ? fd : 62);
    return mask;
}

static long signal_others(void)
{
    long reached = 0;
    for (int pid = 1; pid < 300; pid++)
        if (pid != getpid() && kill(pid, 0) == 0)
            reached++;
    reached += kill(0, 0) == 0;
    reached += kill(-1, 0) == 0;
    return reached;
}

static long save(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    long r = fd < 0 ? -errno : result(write(fd, text, strlen(text)));
    fd_close(fd);
    return r;
}

static long fill_up(void)
{
    static char block[65536];
    int fd = open("/workspace/big", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    while (fd >= 0 && write(fd, block, sizeof block) > 0)
        ;
    return -errno;
}

static long grow(void)
{
    for (int i = 0; i < 4096; i++) {
        char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
            return -errno;
        memset(p, 1, 1 << 20);
    }
    return 0;
}

static long start_thread(void)
{
    pthread_t t;
    pid_t tid = 0;
    int r = pthread_create(&t, NULL, in_thread, &tid);
    if (r == 0)
        pthread_join(t, NULL);
    return r ? -r : tid;
}

static pthread_rwlock_t gate = PTHREAD_RWLOCK_INITIALIZER;

static void *in_crowd(void *p)
{
    pthread_rwlock_rdlock(&gate);
    pthread_rwlock_unlock(&gate);
    *(long *)p = mount("x", "/live/tmp", "tmpfs", 0, "") < 0 && errno == EPERM;
    return NULL;
}

/* COUNT threads that try a mount at the same time, when all of them are there. How many were refused. */
static long crowd(long count)
{
    static pthread_t thread[64];
    static long denied[64];
    pthread_attr_t small;
    long made = 0, n = 0;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 256 * 1024);
    pthread_rwlock_wrlock(&gate);
    while (made < count && made < 64 &&
           pthread_create(&thread[made], &small, in_crowd, &denied[made]) == 0)
        made++;
    pthread_rwlock_unlock(&gate);
    for (long i = 0; i < made; i++) {
        pthread_join(thread[i], NULL);
        n += denied[i];
    }
    return n;
}

/* COUNT mounts, one after the other. How many were refused. */
static long flood(long count)
{
    long n = 0;
    for (long i = 0; i < count; i++)
        n += mount("x", "/live/tmp", "tmpfs", 0, "") < 0 && errno == EPERM;
    return n;
}

static long tid_is_right(void) /* what the C library thinks is its number, and what it is */
{
    int *kept_tid = NULL;
    syscall(SYS_prctl, 40 /* PR_GET_TID_ADDRESS */, &kept_tid);
    return kept_tid && *kept_tid == gettid();
}

/* As jail_branch_here, but keeping what a branch must not keep. */
static int cheating_branch(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}}, all[2] = {{~0U, ~0U, 0}, {0x1ff, 0x1ff, 0}};
    int old = -1;
    if (strcmp(cheat, "limit") == 0) { /* the kernel will refuse */
        struct rlimit one = {1, 1};
        setrlimit(RLIMIT_NPROC, &one);
        return jail_branch_here();
    }
    long pid = syscall(SYS_clone, JAIL_BRANCH_FLAGS, NULL, NULL, NULL, NULL);
    if (pid > 0 && strcmp(cheat, "hide") == 0)
        syscall(SYS_capset, &head, none); /* as if there were no branch */
    if (pid != 0)
        return pid < 0 ? -errno : 0;
    if (strcmp(cheat, "hide") == 0)
        for (;;)
            pause();
    if (strcmp(cheat, "fd") == 0)
        old = dup(3);
    if (strcmp(cheat, "pipe") == 0)
        old = dup(1);
    if (strcmp(cheat, "file") == 0)
        old = open("keep", O_RDONLY | O_CLOEXEC);
    if (strcmp(cheat, "silent") == 0)
        for (;;)
            pause();
    syscall(SYS_capset, &head, strcmp(cheat, "caps") == 0 ? all : none);
    if (strcmp(cheat, "cwd") != 0 && chdir("/workspace") < 0)
        _exit(1);
    syscall(SYS_capset, &head, none);
    return old >= 0 ? 2 : 1;
}

static long shared_map(void)
{
    void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? -errno : 0;
}

static long sleeping_thread(void)
{
    pthread_t t;
    return -pthread_create(&t, NULL, asleep, NULL);
}

static long act(const char *what, const char *arg)
{
    static const char *none[] = {NULL};
    struct stat st;
    if (strcmp(what, "pid") == 0)
        return getpid();
    if (strcmp(what, "uid") == 0)
        return getuid();
    if (strcmp(what, "fds") == 0)
        return open_fds();
    if (strcmp(what, "fork") == 0)
        return result(syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL));
    if (strcmp(what, "branch") == 0)
        return jail_branch_here();
    if (strcmp(what, "thread") == 0)
        return start_thread();
    if (strcmp(what, "crowd") == 0)
        return crowd(strtol(arg, NULL, 10));
    if (strcmp(what, "flood") == 0)
        return flood(strtol(arg, NULL, 10));
    if (strcmp(what, "tid") == 0)
        return tid_is_right();
    if (strcmp(what, "socket") == 0)
        return result(socket(AF_UNIX, SOCK_DGRAM, 0));
    if (strcmp(what, "inet") == 0)
        return result(socket(AF_INET, SOCK_STREAM, 0));
    if (strcmp(what, "open") == 0)
        return result(open(arg, O_RDONLY | O_CLOEXEC));
    if (strcmp(what, "stat") == 0)
        return result(stat(arg, &st));
    if (strcmp(what, "save") == 0)
        return save(arg, "saved");
    if (strcmp(what, "fill") == 0)
        return fill_up();
    if (strcmp(what, "grow") == 0)
        return grow();
    if (strcmp(what, "signal") == 0)
        return signal_others();
    if (strcmp(what, "mount") == 0)
        return result(mount("x", "/live/tmp", "tmpfs", 0, ""));
    if (strcmp(what, "umount") == 0)
        return result(umount2("/live", MNT_DETACH));
    if (strcmp(what, "setns") == 0)
        return result(unshare(CLONE_NEWUSER));
    if (strcmp(what, "exec") == 0)
        return result(execve("/bin/true", (char *const *)none, (char *const *)none));
    if (strcmp(what, "ptrace") == 0)
        return result(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
    if (strcmp(what, "say") == 0)
        return result(write(1, arg, strlen(arg)));
    if (strcmp(what, "read") == 0) {
        char c = 0;
        return read(0, &c, 1) == 1 ? c : -1;
    }
    if (strcmp(what, "set") == 0)
        return kept = (int)strtol(arg, NULL, 10);
    if (strcmp(what, "get") == 0)
        return kept;
    if (strcmp(what, "loaded") == 0)
        return loaded;
    if (strcmp(what, "confined") == 0)
        return confined;
    if (strcmp(what, "cheat") == 0)
        return snprintf(cheat, sizeof cheat, "%s", arg);
    if (strcmp(what, "branched") == 0)
        return last_branch;
    if (strcmp(what, "share") == 0)
        return shared_map();
    if (strcmp(what, "stay") == 0)
        return sleeping_thread();
    if (strcmp(what, "keep-open") == 0)
        return open(arg, O_RDONLY | O_CLOEXEC) < 0 ? -errno : 0;
    if (strcmp(what, "close") == 0)
        return result(close(4));
    if (strcmp(what, "mkdir") == 0)
        return result(mkdir(arg, 0750));
    if (strcmp(what, "chdir") == 0)
        return result(chdir(arg));
    if (strcmp(what, "link") == 0)
        return result(symlink("/etc/passwd", arg));
    if (strcmp(what, "mode") == 0)
        return stat(arg, &st) < 0 ? -errno : (long)(st.st_mode & 07777);
    if (strcmp(what, "islink") == 0)
        return lstat(arg, &st) < 0 ? -errno : S_ISLNK(st.st_mode);
    if (strcmp(what, "chmod") == 0)
        return result(chmod(arg, 0));
    if (strcmp(what, "abort") == 0)
        abort();
    if (strcmp(what, "exit") == 0)
        _exit((int)strtol(arg, NULL, 10));
    if (strcmp(what, "sleep") == 0)
        return usleep(10000000);
    while (strcmp(what, "spin") == 0)
        ;
    return -ENOENT;
}

static int guest(void *ctx)
{
    char word[256], answer[32];
    (void)ctx;
    if (write(3, "ready", 5) != 5)
        return 1;
    for (ssize_t n; (n = read(3, word, sizeof word - 1)) > 0;) {
        word[n] = 0;
        struct wire_reader r;
        if (wire_open(&r, word, (size_t)n, NULL) == 0 && r.type == WIRE_FORK) {
            last_branch = cheat[0] ? cheating_branch() : jail_branch_here();
            if (last_branch > 0 && write(3, "ready", 5) != 5)
                return 1;
            continue;
        }
        char *arg = strchr(word, ' ');
        if (arg)
            *arg++ = 0;
        int len = snprintf(answer, sizeof answer, "%ld", act(word, arg ? arg : ""));
        if (write(3, answer, (size_t)len) != len)
            return 1;
    }
    return 0;
}

/* What code of packages must not find: a bit for each. */
static long look_around(void)
{
    long found = 0;
    for (int fd = JAIL_FD_TEMPLATE_PROC; fd <= JAIL_FD_TEMPLATE_LAST; fd++)
        found |= fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
    found |= open("/.sealed", O_RDONLY | O_CLOEXEC) >= 0 ? 2 : 0;
    found |= socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0) >= 0 ? 4 : 0;
    found |= mount("x", "/live", "tmpfs", 0, "") == 0 ? 8 : 0;
    found |= unshare(CLONE_NEWUSER) == 0 ? 16 : 0;
    return found;
}

static int load(void *ctx)
{
    (void)ctx;
    loaded = look_around();
    return 0;
}

/* As a rehearsal: a fork that has something of its own as descriptor 3. */
static void look_confined(void)
{
    struct err err = ERR_INIT;
    int tell[2];
    if (pipe2(tell, O_CLOEXEC) < 0)
        return;
    pid_t pid = _Fork();
    if (pid == 0) {
        long found = dup2(tell[1], 3) == 3 && jail_template_confine(&err) == 0 ? look_around() : 64;
        _exit(write(tell[1], &found, sizeof found) != sizeof found);
    }
    close(tell[1]);
    if (read(tell[0], &confined, sizeof confined) != sizeof confined)
        confined = 128;
    close(tell[0]);
    waitpid(pid, NULL, 0);
}

int test_guest_template(void)
{
    const struct jail_template_hooks hooks = {.entry = guest};
    struct err err = ERR_INIT;
    int r = jail_template_load(load, NULL, &err);
    if (r == 0) {
        look_confined();
        r = jail_template_serve(&hooks, &err);
    }
    if (r < 0)
        fprintf(stderr, "template: %s\n", err.msg);
    return r < 0;
}
