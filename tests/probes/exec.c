/* SPDX-License-Identifier: Apache-2.0 */
/* Running something that is not the program: other binaries, other loaders, other privileges,
 * other architectures; and acting before the jail is closed. */
#include "probe.h"

#include <elf.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char *no_env[] = {NULL};

static void copy_to(const char *from, int to)
{
    int in = open(from, O_RDONLY | O_CLOEXEC);
    if (in < 0)
        broken("%s: %s", from, error_name(errno));
    char block[65536];
    for (ssize_t n; (n = read(in, block, sizeof block)) > 0;)
        if (write(to, block, (size_t)n) != n)
            broken("copy of %s: %s", from, error_name(errno));
    close(in);
}

static int copy_as(const char *from, const char *to, mode_t mode)
{
    int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    if (out < 0)
        broken("%s: %s", to, error_name(errno));
    copy_to(from, out);
    fchmod(out, mode);
    return close(out);
}

/* Runs argv in a child. 0 to 255: its exit status; -1: errno says why execve failed; -2: a signal.
 */
static int run(const char *path, char **args, char **env)
{
    int said[2];
    if (pipe2(said, O_CLOEXEC) < 0)
        broken("pipe2: %s", error_name(errno));
    pid_t pid = fork();
    if (pid < 0)
        broken("fork: %s", error_name(errno));
    if (pid == 0) {
        execve(path, args, env);
        int error = errno;
        if (write(said[1], &error, sizeof error) != sizeof error)
            _exit(126);
        _exit(127);
    }
    close(said[1]);
    int error = 0, status = 0;
    ssize_t n = read(said[0], &error, sizeof error);
    close(said[0]);
    waitpid(pid, &status, 0);
    if (n == sizeof error) {
        errno = error;
        return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -2;
}

static void execve_(int argc, char **argv)
{
    (void)argc, (void)argv;
    char *args[] = {(char *)"sh", (char *)"-c", (char *)"echo REACHED a shell; exit 10", NULL};
    must_fail("execve /bin/sh", execve("/bin/sh", args, no_env));
}

static void execve_again(int argc, char **argv)
{
    const char *self = need(argc, argv, 0);
    char *args[] = {(char *)self, (char *)"is-root", NULL};
    tried("execveat", syscall(SYS_execveat, AT_FDCWD, self, args, no_env, 0));
    tried("execve", execve(self, args, no_env));
    none_may_have_succeeded();
}

static void memfd_exec(int argc, char **argv)
{
    const char *self = need(argc, argv, 0);
    int fd = (int)syscall(SYS_memfd_create, "x", 0);
    if (fd < 0)
        contained("memfd_create: %s", error_name(errno));
    copy_to(self, fd);
    char *args[] = {(char *)"is-root", (char *)"ran-anyway", NULL};
    must_fail("execveat of a memfd", syscall(SYS_execveat, fd, "", args, no_env, AT_EMPTY_PATH));
}

/* The payload of the ones above and below: it says that it ran. */
static void ran_anyway(int argc, char **argv)
{
    (void)argc, (void)argv;
    reached("code that was written here ran");
}

static void written_exec(int argc, char **argv)
{
    const char *self = need(argc, argv, 0);
    static const char *const places[] = {"/tmp/tool", "/workspace/tool"};
    char *args[] = {(char *)"tool", (char *)"ran-anyway", NULL};
    for (size_t i = 0; i < 2; i++) {
        copy_as(self, places[i], 0755);
        int got = run(places[i], args, no_env);
        tried(places[i], got == EXIT_REACHED ? got : -1);
    }
    none_may_have_succeeded();
}

static const char *loader(void)
{
    static const char *const names[] = {"/lib/ld-linux-aarch64.so.1",
                                        "/lib64/ld-linux-x86-64.so.2"};
    for (size_t i = 0; i < 2; i++)
        if (access(names[i], F_OK) == 0)
            return names[i];
    broken("no dynamic loader in the jail");
}

static void ld_so(int argc, char **argv)
{
    (void)argc, (void)argv;
    copy_as("/usr/bin/env", "/tmp/payload", 0644);
    char *args[] = {(char *)"ld.so", (char *)"/tmp/payload", (char *)"sh",
                    (char *)"-c",    (char *)"exit 10",      NULL};
    int got = run(loader(), args, no_env);
    if (got == EXIT_REACHED)
        reached("a file of mode 644 on a noexec mount ran");
    contained("ld.so /tmp/payload: %s", got == -1   ? error_name(errno)
                                        : got == -2 ? "a signal"
                                                    : "it refused");
}

static void preload(int argc, char **argv)
{
    const char *evil = need(argc, argv, 0);
    copy_as(evil, "/tmp/evil.so", 0755);
    char *args[] = {(char *)"true", NULL};
    char *env[] = {(char *)"LD_PRELOAD=/tmp/evil.so", NULL};
    int got = run("/bin/true", args, env);
    if (got == EXIT_REACHED)
        reached("a library written in /tmp was loaded");
    if (got != 0)
        contained("LD_PRELOAD: %s", got == -1 ? error_name(errno) : "the program ended otherwise");
    contained("LD_PRELOAD of a library on a noexec mount had no effect");
}

static void environment(int argc, char **argv)
{
    const char *word = need(argc, argv, 0);
    static const char *const allowed[] = {"PATH=/usr/bin:/bin",
                                          "PWD=/workspace",
                                          "HOME=/tmp",
                                          "TMPDIR=/tmp",
                                          "LANG=C.UTF-8",
                                          "XDG_CACHE_HOME=/tmp/.cache",
                                          "MPLCONFIGDIR=/tmp/.cache/matplotlib",
                                          "HF_HOME=/tmp/.cache/huggingface",
                                          "PYTHONDONTWRITEBYTECODE=1",
                                          "MALLOC_ARENA_MAX=1"};
    size_t found = 0;
    for (char **e = environ; *e; e++) {
        bool good = false;
        for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
            good |= strcmp(*e, allowed[i]) == 0;
        if (!good)
            reached("%s%s", strstr(*e, word) ? "the secret in " : "", *e);
        found++;
    }
    if (found != sizeof allowed / sizeof *allowed)
        reached("%zu variables, not %zu", found, sizeof allowed / sizeof *allowed);
    contained("exactly the variables that are promised");
}

static void set_id(int argc, char **argv)
{
    char *args[] = {(char *)"set-id", (char *)"is-root", NULL};
    for (int i = 0; i < argc; i++) {
        int got = run(argv[i], args, no_env);
        tried(argv[i], got == EXIT_REACHED ? got : -1);
    }
    char *su[] = {(char *)"su", (char *)"-c", (char *)"exit 10", NULL};
    int got = run("/usr/bin/su", su, no_env);
    tried("su", got == EXIT_REACHED ? got : -1);
    none_may_have_succeeded();
}

/* Payload: is this process more than it was? */
static void is_root(int argc, char **argv)
{
    (void)argc, (void)argv;
    struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct has[2] = {{0}};
    if (geteuid() != getuid() || getegid() != getgid())
        reached("euid %d, egid %d", geteuid(), getegid());
    if (syscall(SYS_capget, &h, has) < 0)
        broken("capget: %s", error_name(errno));
    if (has[0].permitted | has[1].permitted | has[0].effective | has[1].effective)
        reached("capabilities %x %x", has[1].permitted, has[0].permitted);
    contained("uid %d, nothing gained", getuid());
}

/* Another architecture's entry, where numbers mean other calls. The entry is the filter's to close
 * and no other layer's: where there is a filter it must not answer at all. What lies behind it is
 * every layer's: whoever gets in must not reach the network. A test build without a filter is judged
 * by that alone. */
enum { EXIT_ANSWERED = 7 };

static void judge_entry(const char *what, int got)
{
    if (got == EXIT_REACHED)
        reached("the network, by %s", what);
    if (got == EXIT_ANSWERED && filtered())
        reached("%s passed the filter", what);
}

static const char *entry_story(int got)
{
    return got == -1              ? error_name(errno)
           : got == -2            ? "killed"
           : got == EXIT_ANSWERED ? "answered, and reached nothing"
                                  : "no answer";
}

#if defined(__aarch64__)
/* 64-bit code has no such entry, so the test plants a whole 32-bit program; it exits with
 * EXIT_REACHED if it could dial out, else with EXIT_ANSWERED. */
static void foreign(int argc, char **argv)
{
    const char *path = need(argc, argv, 0);
    char *args[] = {(char *)"arm", NULL};
    if (access(path, F_OK) < 0)
        broken("%s: %s", path, error_name(errno));
    int got = run(path, args, no_env);
    judge_entry("a 32-bit program", got);
    contained("a 32-bit program: %s", entry_story(got));
}
#else
static long by_i386(long nr, long a, long b, long c)
{
    long r;
    __asm__ volatile("int $0x80"
                     : "=a"(r)
                     : "a"(nr), "b"(a), "c"(b), "d"(c)
                     : "memory", "r8", "r9", "r10", "r11");
    return (int)r;
}

static long by_x32(long nr, long a, long b, long c)
{
    long r;
    __asm__ volatile("syscall"
                     : "=a"(r)
                     : "a"(0x40000000L | nr), "D"(a), "S"(b), "d"(c)
                     : "memory", "rcx", "r11");
    return r;
}

static const struct entry {
    const char *name;
    long (*call)(long nr, long a, long b, long c);
    long getpid, socket, connect;
} entries[] = {{"int 0x80", by_i386, 20, 359, 362}, /* i386's numbers have no names here */
               {"x32", by_x32, SYS_getpid, SYS_socket, SYS_connect}};

/* In a child, since the filter kills. As run() above, and 0: the entry gave no answer. */
static int enter(const struct entry *e, const struct sockaddr_in *to)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        if (e->call(e->getpid, 0, 0, 0) <= 0)
            _exit(0);
        long s = e->call(e->socket, AF_INET, SOCK_STREAM, 0);
        bool dialled = s >= 0 && e->call(e->connect, s, (long)to, sizeof *to) == 0;
        _exit(dialled ? EXIT_REACHED : EXIT_ANSWERED);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        broken("no child for %s: %s", e->name, error_name(errno));
    return WIFEXITED(status) ? WEXITSTATUS(status) : -2;
}

static void foreign(int argc, char **argv)
{
    long port = number(need(argc, argv, 1));
    /* i386's calls take addresses of 32 bits */
    struct sockaddr_in *to = mmap(NULL, sizeof *to, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    if (to == MAP_FAILED)
        broken("no memory below 4 GB: %s", error_name(errno));
    *to = (struct sockaddr_in){.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)port),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int got[2];
    for (int i = 0; i < 2; i++)
        judge_entry(entries[i].name, got[i] = enter(&entries[i], to));
    contained("%s: %s; %s: %s", entries[0].name, entry_story(got[0]), entries[1].name,
              entry_story(got[1]));
}
#endif

/* Acts before main and before any constructor: were the jail closed late, it would be open here. */
static struct {
    int seccomp, socket_error;
    bool capable;
} at_start;

static void first_of_all(int argc, char **argv, char **env)
{
    (void)env;
    if (argc < 2 || strcmp(argv[1], "early") != 0)
        return;
    struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct has[2] = {{0}};
    at_start.seccomp = prctl(PR_GET_SECCOMP, 0, 0, 0, 0);
    at_start.capable = syscall(SYS_capget, &h, has) < 0 || has[0].effective || has[0].permitted;
    int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    at_start.socket_error = s < 0 ? errno : 0;
}

__attribute__((section(".preinit_array"),
               used)) static void (*const preinit)(int, char **, char **) = first_of_all;

static void early(int argc, char **argv)
{
    long port = number(need(argc, argv, 0));
    if (at_start.capable)
        reached("the first instruction ran with capabilities");
    if (at_start.seccomp != 2 && filtered())
        reached("the filter came after the first instruction");
    if (at_start.socket_error == 0) {
        int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct sockaddr_in to = {.sin_family = AF_INET,
                                 .sin_port = htons((uint16_t)port),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        if (connect(s, (struct sockaddr *)&to, sizeof to) == 0)
            reached("the network answered");
    }
    contained("before main: no capabilities, and socket says %s",
              at_start.socket_error ? error_name(at_start.socket_error) : "yes, to nowhere");
}

const struct probe probes_exec[] = {
    {"execve", "another program with --processes 0", "13", 1, "syscalls", "benign-exec", execve_,
     .rule = "execve"},
    {"execve-again", "its own program once more", "13", 1, "syscalls", "benign-exec", execve_again,
     .args = "{ro}/probe", .rule = "execve"},
    {"memfd-exec", "a program that is in no file", "13", 1, "syscalls", "benign-exec", memfd_exec,
     .options = "--processes 8", .args = "{ro}/probe"},
    {"written-exec", "a program written by the guest", "13,15", 1, "filesystem", "benign-exec",
     written_exec, .options = "--processes 8", .args = "{ro}/probe"},
    {"ld-so", "the dynamic loader as interpreter", "15", 2, "filesystem", "benign-exec", ld_so,
     .options = "--processes 8"},
    {"ld-preload", "a library of its own in every child", "16", 2, "filesystem", "benign-exec",
     preload, .options = "--processes 8", .args = "{ro}/evil.so"},
    {"environment", "the caller's secrets and loader variables", "16", 2, "process", "benign-exec",
     environment, .args = "{word}"},
    {"set-id-exec", "set-user-id, set-group-id and file-capability programs", "14", 1, "process",
     "benign-exec", set_id, .options = "--processes 8", .args = "{ro}/suid {ro}/sgid {ro}/fcap"},
    {"foreign-arch", "another architecture's system calls", "8", 1, "syscalls", "benign-exec",
     foreign, .options = "--processes 8", .args = "{ro}/arm {port}"},
    {"early", "act before the jail is closed", "46", 1, "syscalls", "benign-time", early,
     .args = "{port}"},
    {"is-root", "identity and capabilities of the guest", "14", 1, "process", "benign-files",
     is_root},
    {"ran-anyway", "payload of others", "", 0, "", "", ran_anyway},
    {0},
};
