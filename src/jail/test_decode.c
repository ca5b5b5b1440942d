/* SPDX-License-Identifier: Apache-2.0 */
/* What people read when a call is denied, from guest memory that is right, short, missing or
 * hostile.
 *
 *   test_decode SEEDS     also replays the fuzzer's seeds */
#include "base/tap.h"
#include "jail/decode.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/un.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BASE 0x7f0000001000u

static unsigned char memory[4096]; /* the guest's only page */
static size_t memory_size = sizeof memory;

static ssize_t read_memory(void *ctx, uint64_t addr, void *buf, size_t len)
{
    (void)ctx;
    if (addr < BASE || addr >= BASE + memory_size)
        return -1;
    size_t n = BASE + memory_size - addr < len ? BASE + memory_size - addr : len;
    memcpy(buf, memory + (addr - BASE), n);
    return (ssize_t)n;
}

static jail_decode_reader reader = {read_memory, NULL};

static uint64_t at(size_t offset, const void *data, size_t len)
{
    memcpy(memory + offset, data, len);
    return BASE + offset;
}

static uint64_t text_at(size_t offset, const char *s)
{
    return at(offset, s, strlen(s) + 1);
}

#define A(...)                                                                                     \
    (const uint64_t[6])                                                                            \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static void expect(const char *name, const uint64_t *args, const char *want)
{
    char out[JAIL_DECODE_LINE];
    struct seccomp_data d = {0};
    memcpy(d.args, args, sizeof d.args);
    jail_decode(&d, name, &reader, out, sizeof out);
    tap_eq_str(out, want, "%s", want);
}

static void network(void)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(53)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(443)};
    struct sockaddr_un un = {.sun_family = AF_UNIX, .sun_path = "/run/docker.sock"};
    inet_pton(AF_INET, "8.8.8.8", &in.sin_addr);
    inet_pton(AF_INET6, "2001:db8::1", &in6.sin6_addr);

    uint64_t p = at(0, &in, sizeof in);
    expect("connect", A(3, p, sizeof in), "connect AF_INET 8.8.8.8:53");
    expect("bind", A(3, p, sizeof in), "bind AF_INET 8.8.8.8:53");
    expect("sendto", A(3, 0, 0, 0, p, sizeof in), "sendto AF_INET 8.8.8.8:53");
    expect("connect", A(3, p, 0xffffffffffffffff), "connect AF_INET 8.8.8.8:53");
    expect("connect", A(3, p, 4), "connect AF_INET ?");
    expect("connect", A(3, p, 1), "connect ?");
    expect("connect", A(3, p, 0), "connect ?");
    expect("connect", A(3, 0, 16), "connect NULL");
    expect("connect", A(3, 0xdead, 16), "connect ?");
    expect("connect", A(3, 0xffffffffffffffff, 16), "connect ?");
    struct {
        uint64_t name;
        uint32_t len, pad;
    } msg = {p, sizeof in, 0};
    uint64_t m = at(512, &msg, sizeof msg);
    expect("sendmsg", A(3, m), "sendmsg AF_INET 8.8.8.8:53");
    expect("sendmmsg", A(3, m), "sendmmsg AF_INET 8.8.8.8:53");
    msg.name = 0;
    at(512, &msg, sizeof msg);
    expect("sendmsg", A(3, m), "sendmsg fd 3");
    expect("sendmsg", A(3, 1), "sendmsg ?");
    p = at(0, &in6, sizeof in6);
    expect("connect", A(3, p, sizeof in6), "connect AF_INET6 [2001:db8::1]:443");
    expect("connect", A(3, p, 8), "connect AF_INET6 ?");
    p = at(0, &un, sizeof un);
    expect("connect", A(3, p, sizeof un), "connect AF_UNIX /run/docker.sock");
    expect("connect", A(3, p, 2), "connect AF_UNIX (unnamed)");
    memcpy(un.sun_path, "\0abs\ntract", 10);
    p = at(0, &un, sizeof un);
    expect("connect", A(3, p, 2 + 10), "connect AF_UNIX @abs\\x0atract");
    memcpy(un.sun_path, "\0abstract", 9);
    p = at(0, &un, sizeof un);
    expect("connect", A(3, p, 2 + 9), "connect AF_UNIX @abstract");
    struct sockaddr_un nscd = {.sun_family = AF_UNIX, .sun_path = "/var/run/nscd/socket"};
    p = at(0, &nscd, sizeof nscd);
    expect("connect", A(3, p, sizeof nscd), "connect AF_UNIX /var/run/nscd/socket");
    tap_ok(jail_decode_routine("connect AF_UNIX /var/run/nscd/socket") &&
               !jail_decode_routine("connect AF_UNIX /var/run/nscd/socket2") &&
               !jail_decode_routine("socket AF_UNIX SOCK_STREAM"),
           "asking nscd, and only that, is routine");
    uint16_t odd = 999;
    p = at(0, &odd, sizeof odd);
    expect("connect", A(3, p, 16), "connect 0x3e7");

    expect("socket", A(AF_INET, SOCK_STREAM | SOCK_CLOEXEC), "socket AF_INET SOCK_STREAM");
    expect("socket", A(AF_NETLINK, SOCK_RAW), "socket AF_NETLINK SOCK_RAW");
    expect("socket", A(AF_PACKET, SOCK_DGRAM), "socket AF_PACKET SOCK_DGRAM");
    expect("socket", A(0xfffffff0, 15), "socket 0xfffffff0 0xf");
    expect("listen", A(5), "listen fd 5");
    expect("setsockopt", A(5, SOL_SOCKET, SO_ATTACH_FILTER), "setsockopt SO_ATTACH_FILTER");
}

static void processes(void)
{
    uint64_t p = text_at(0, "/bin/sh");
    expect("execve", A(p), "execve /bin/sh");
    expect("execveat", A(3, p), "execveat /bin/sh");
    expect("execve", A(0), "execve NULL");
    expect("execve", A(1), "execve ?");
    expect("execve", A(text_at(0, "")), "execve \"\"");
    expect("execveat", A(7, text_at(0, ""), 0, 0, 0x1000), "execveat fd 7");
    expect("fork", A(0), "fork");
    expect("vfork", A(0), "vfork");
    expect("clone", A(17), "clone process");
    expect("clone", A(CLONE_NEWUSER | CLONE_NEWNS | 17), "clone NEWUSER|NEWNS");
    expect("clone", A(CLONE_THREAD | CLONE_PTRACE), "clone PTRACE");
    expect("clone", A(0xffffffff00000000u | CLONE_NEWNET), "clone NEWNET");
    expect("unshare", A(CLONE_NEWUSER | 0x80), "unshare NEWUSER|0x80");
    expect("unshare", A(0), "unshare 0x0");
    expect("setns", A(4, 0), "setns fd 4");
    expect("setns", A(4, CLONE_NEWNS), "setns fd 4 NEWNS");
    expect("ptrace", A(PTRACE_ATTACH, 1), "ptrace ATTACH 1");
    expect("ptrace", A(PTRACE_TRACEME), "ptrace TRACEME");
    expect("ptrace", A(0x9999, 5), "ptrace 0x9999 5");
    expect("process_vm_writev", A(1), "process_vm_writev 1");
    expect("pidfd_getfd", A(3, 4), "pidfd_getfd pidfd 3 fd 4");
    expect("kill", A(0xffffffff, 9), "kill -1 signal 9");
    expect("rt_sigqueueinfo", A(1, 9), "rt_sigqueueinfo 1 signal 9");
    expect("rt_tgsigqueueinfo", A(1, 2, 9), "rt_tgsigqueueinfo 2 signal 9");
    expect("prctl", A(PR_SET_SECCOMP, 2), "prctl SET_SECCOMP 2");
    expect("prctl", A(PR_SET_PTRACER, -1ull), "prctl SET_PTRACER -1");
    expect("prctl", A(0x1234), "prctl 0x1234");
    expect("personality", A(0x40000), "personality 0x40000");
    expect("seccomp", A(1), "seccomp operation 1");
    expect("setpriority", A(2, 0, (uint64_t)-20), "setpriority PRIO_USER 0 to -20");
    expect("sched_setscheduler", A(0, SCHED_FIFO | 0x40000000), "sched_setscheduler SCHED_FIFO");
    expect("prlimit64", A(1, 7), "prlimit64 1 resource 7");
    expect("bpf", A(5), "bpf PROG_LOAD");
    expect("bpf", A(77), "bpf 0x4d");
    expect("ioctl", A(0, TIOCSTI), "ioctl TIOCSTI");
    expect("ioctl", A(0, 0xffffffff00000000u | TIOCLINUX), "ioctl TIOCLINUX");
    expect("fcntl", A(0, 8), "fcntl F_SETOWN");
    expect("io_uring_setup", A(8), "io_uring_setup");
    expect("no_such_call", A(0), "no_such_call");
}

static void files(void)
{
    uint64_t p = text_at(0, "/workspace/a"), q = text_at(100, "/x"), t = text_at(200, "proc");
    expect("mount", A(t, q, t), "mount proc /x type proc");
    expect("mount", A(0, q, 0), "mount NULL /x");
    expect("umount2", A(q), "umount2 /x");
    expect("chroot", A(q), "chroot /x");
    expect("pivot_root", A(q, p), "pivot_root /x /workspace/a");
    expect("move_mount", A(3, p, 4, q), "move_mount /workspace/a /x");
    expect("fsopen", A(t), "fsopen proc");
    expect("chmod", A(p, 04755), "chmod /workspace/a 04755");
    expect("fchmod", A(3, 06777), "fchmod fd 3 06777");
    expect("fchmodat", A(0, p, 02755), "fchmodat /workspace/a 02755");
    expect("mkdirat", A(0, p, 02755), "mkdirat /workspace/a 02755");
    expect("mknodat", A(0, p, 020600), "mknodat /workspace/a 20600");
    expect("open", A(p, 0101, 04755), "open /workspace/a mode 04755");
    expect("openat", A(0, p, 0101, 04755), "openat /workspace/a mode 04755");
    expect("openat", A(0, 0xdead, 0101, 04755), "openat ? mode 04755");
    expect("memfd_create", A(t), "memfd_create proc");
    expect("sethostname", A(t, 4), "sethostname proc");
    expect("sethostname", A(t, 0xffffffffffffffff), "sethostname proc");
    expect("sethostname", A(t, 0), "sethostname ?");
    expect("reboot", A(0, 0, 0x1234567), "reboot 0x1234567");
    expect("shmget", A(0x1234), "shmget key 0x1234");
}

static void hostile(void)
{
    expect("execve", A(text_at(0, "/a\033[31m\r\n\x7f")), "execve /a\\x1b[31m\\x0d\\x0a\\x7f");
    expect("execve", A(text_at(0, "/\xff\xc3\xa9")), "execve /\\xff\\xc3\\xa9");
    expect("execve", A(text_at(0, "\\x41")), "execve \\\\x41");

    /* ends with the page, no NUL: what was readable, and dots */
    memset(memory + 4090, 'z', 6);
    expect("execve", A(BASE + 4090), "execve zzzzzz...");

    char want[JAIL_DECODE_LINE] = "execve ";
    memset(memory, 'a', 1000);
    memset(want + 7, 'a', JAIL_DECODE_PATH);
    memcpy(want + 7 + JAIL_DECODE_PATH, "...", 4);
    expect("execve", A(BASE), want);

    struct seccomp_data d = {.args = {BASE}};
    bool good = true;
    memset(memory, 1, 1000);
    for (size_t size = 1; size < 64; size++) {
        char out[80];
        memset(out, 'X', sizeof out);
        jail_decode(&d, "execve", &reader, out, size);
        good &= strnlen(out, size) < size && out[size] == 'X';
        if (size > 8)
            good &= strcmp(out + strlen(out) - 3, "...") == 0;
    }
    tap_ok(good, "a small buffer is never overrun, and the cut is visible");
    char one = 'X';
    jail_decode(&d, "execve", &reader, &one, 0);
    tap_ok(one == 'X', "no buffer, no byte");
}

static void replay(const char *folder)
{
    struct dirent **list;
    int n = scandir(folder, &list, NULL, alphasort), seeds = 0;
    for (int i = 0; i < n; i++) {
        char path[1024];
        static uint8_t data[65536];
        snprintf(path, sizeof path, "%s/%s", folder, list[i]->d_name);
        FILE *f = list[i]->d_name[0] == '.' ? NULL : fopen(path, "re");
        if (f) {
            size_t len = fread(data, 1, sizeof data, f);
            fclose(f);
            LLVMFuzzerTestOneInput(data, len);
            seeds++;
        }
        free(list[i]);
    }
    if (n >= 0)
        free(list);
    tap_ok(seeds > 0, "%d seeds of the fuzzer replayed", seeds);
}

int main(int argc, char **argv)
{
    network();
    processes();
    files();
    hostile();
    if (argc > 1)
        replay(argv[1]);
    return tap_done();
}
