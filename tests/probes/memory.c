/* SPDX-License-Identifier: Apache-2.0 */
/* Memory: our own through /proc, that of others, and pages that should not be executable. */
#include "probe.h"

#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Patches read-only memory of this process through /proc/self/mem. That alone is no escape: code
 * that runs here may be anything anyhow. What counts is that nothing is gained by it. */
static void self_mem(int argc, char **argv)
{
    long port = number(need(argc, argv, 0));
    char *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        broken("mmap: %s", error_name(errno));
    int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
    if (fd < 0)
        contained("/proc/self/mem: %s", error_name(errno));
    ssize_t n = pwrite(fd, "patched", 8, (off_t)(uintptr_t)page);
    int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (s >= 0 && connect(s, (struct sockaddr *)&to, sizeof to) == 0)
        reached("patched %zd bytes and the network answers", n);
    contained("own memory patched (%zd bytes), and the kernel's layers hold as before", n);
}

static void proc_others(int argc, char **argv)
{
    (void)argc, (void)argv;
    static const char *const files[] = {"environ", "mem", "maps", "auxv", "stack", "syscall", "io"};
    static const char *const links[] = {"root", "cwd", "exe", "fd/0", "fd/1", "fd/3", "ns/mnt"};
    char path[64], text[4096];
    DIR *proc = opendir("/proc");
    if (!proc)
        contained("/proc: %s", error_name(errno));
    for (struct dirent *d; (d = readdir(proc));) {
        long pid = strtol(d->d_name, NULL, 10);
        if (pid <= 0 || pid == getpid())
            continue;
        for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
            snprintf(path, sizeof path, "/proc/%ld/%s", pid, files[i]);
            int fd = open(path, O_RDONLY | O_CLOEXEC);
            if (fd >= 0 && read(fd, text, sizeof text) > 0)
                reached("%s can be read", path);
            if (fd >= 0)
                close(fd);
        }
        for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
            snprintf(path, sizeof path, "/proc/%ld/%s", pid, links[i]);
            if (readlink(path, text, sizeof text) > 0)
                reached("%s can be followed", path);
        }
        snprintf(path, sizeof path, "/proc/%ld/mem", pid);
        if (open(path, O_RDWR | O_CLOEXEC) >= 0)
            reached("%s can be written", path);
        snprintf(path, sizeof path, "/proc/%ld/oom_score_adj", pid);
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd >= 0 && write(fd, "1000", 4) == 4)
            reached("pid %ld was offered to the OOM killer", pid);
        snprintf(path, sizeof path, "/proc/%ld/timerslack_ns", pid);
        fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd >= 0 && write(fd, "1", 1) == 1)
            reached("%s can be written", path);
    }
    contained("no other process's memory, environment, root or descriptors");
}

/* Processes outside the namespace have no number here. */
static void proc_list(int argc, char **argv)
{
    pid_t sibling = (pid_t)number(need(argc, argv, 0));
    const char *word = need(argc, argv, 1);
    char path[64];
    int seen = 0;
    /* the first numbers and those around the sibling: an emulated machine is a hundred times slower */
    for (pid_t pid = 1; pid < sibling + 2000;
         pid = pid == 5000 && sibling > 8000 ? sibling - 2000 : pid + 1) {
        snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
        int holds = file_holds(path, word);
        seen += holds >= 0;
        if (holds > 0 && pid != getpid())
            reached("process %d carries the secret word", pid);
    }
    snprintf(path, sizeof path, "/proc/%d/stat", sibling);
    if (sibling > 3 && file_holds(path, "") >= 0)
        reached("the sibling %d is visible", sibling);
    if (seen > 3)
        reached("%d processes are visible", seen);
    contained("%d processes visible", seen);
}

static void proc_machine(int argc, char **argv)
{
    (void)argc, (void)argv;
    static const char *const secrets[] = {"/proc/kcore",
                                          "/proc/kmsg",
                                          "/proc/keys",
                                          "/proc/timer_list",
                                          "/proc/vmallocinfo",
                                          "/proc/sched_debug",
                                          "/proc/kpagemap",
                                          "/proc/1/root/etc/shadow",
                                          "/proc/sys/kernel/core_pattern",
                                          "/proc/config.gz",
                                          "/proc/cmdline",
                                          "/proc/bus/pci/devices",
                                          "/proc/fs",
                                          "/proc/scsi/scsi",
                                          "/sys/kernel/notes",
                                          "/sys/class/dmi/id"};
    static const char *const writable[] = {"/proc/sys/kernel/core_pattern",
                                           "/proc/sysrq-trigger",
                                           "/proc/sys/vm/drop_caches",
                                           "/proc/sys/kernel/hostname",
                                           "/proc/sys/kernel/modprobe",
                                           "/proc/sys/user/max_user_namespaces",
                                           "/proc/sys/fs/binfmt_misc/register",
                                           "/proc/self/oom_score_adj",
                                           "/proc/self/uid_map",
                                           "/proc/self/setgroups",
                                           "/proc/self/coredump_filter",
                                           "/proc/self/attr/current",
                                           "/proc/self/sched",
                                           "/proc/irq/default_smp_affinity",
                                           "/sys/kernel/uevent_helper"};
    for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++) {
        char text[64];
        int fd = open(secrets[i], O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        if (fd >= 0 && read(fd, text, sizeof text) > 0)
            reached("%s can be read", secrets[i]);
    }
    for (size_t i = 0; i < sizeof writable / sizeof *writable; i++) {
        int fd = open(writable[i], O_WRONLY | O_CLOEXEC);
        if (fd >= 0 && strstr(writable[i], "oom_score") && write(fd, "-1000", 5) != 5)
            continue; /* raising one's own chances to be killed is everybody's right */
        if (fd >= 0 &&
            (strstr(writable[i], "_map") || strstr(writable[i], "setgroups") ||
             strstr(writable[i], "coredump") || strstr(writable[i], "attr")) &&
            write(fd, "0 0 1", 5) != 5)
            continue;
        if (fd >= 0 && strstr(writable[i], "self/sched"))
            continue;
        if (fd >= 0)
            reached("%s can be written", writable[i]);
    }
    contained("nothing of the machine in /proc or /sys");
}

/* As runc's CVE-2019-5736: write the program that started us, or the one above. */
static void own_exe(int argc, char **argv)
{
    (void)argc, (void)argv;
    static const char *const exes[] = {"/proc/self/exe", "/proc/1/exe"};
    for (size_t i = 0; i < 2; i++) {
        tried(exes[i], open(exes[i], O_WRONLY | O_CLOEXEC));
        int path = open(exes[i], O_PATH | O_CLOEXEC);
        if (path < 0)
            continue;
        char again[64];
        snprintf(again, sizeof again, "/proc/self/fd/%d", path);
        tried("again by O_PATH", open(again, O_WRONLY | O_CLOEXEC));
        tried("chmod", chmod(again, 0777));
        tried("truncate", truncate(again, 0));
        close(path);
    }
    none_may_have_succeeded();
}

/* A system call instruction that is not ours: in the vDSO. Some filters trusted its address. */
typedef long (*gadget_fn)(long, long, long);

#if defined(__aarch64__)
static const uint32_t gadget_code[] = {0xd4000001u, 0xd65f03c0u}; /* svc #0; ret */

static long through(gadget_fn gadget, long nr, long a, long b, long c)
{
    register long x8 __asm__("x8") = nr;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    __asm__ volatile("blr %[to]"
                     : "+r"(x0)
                     : [to] "r"(gadget), "r"(x8), "r"(x1), "r"(x2)
                     : "x30", "memory", "cc", "x3", "x4", "x5", "x6", "x7", "x9", "x10", "x11",
                       "x12", "x13", "x14", "x15", "x16", "x17");
    return x0;
}

static gadget_fn find_gadget(const unsigned char *code, size_t size)
{
    for (size_t i = 0; i + 8 <= size; i += 4) {
        if (memcmp(code + i, gadget_code, 8) == 0)
            return (gadget_fn)(uintptr_t)(code + i);
    }
    return NULL;
}
#else
static const unsigned char gadget_code[] = {0x0f, 0x05, 0xc3}; /* syscall; ret */

static long through(gadget_fn gadget, long nr, long a, long b, long c)
{
    long result;
    __asm__ volatile("call *%[to]"
                     : "=a"(result)
                     : [to] "r"(gadget), "a"(nr), "D"(a), "S"(b), "d"(c)
                     : "rcx", "r11", "memory", "cc");
    return result;
}

static gadget_fn find_gadget(const unsigned char *code, size_t size)
{
    for (size_t i = 0; i + 3 <= size; i++)
        if (memcmp(code + i, gadget_code, 3) == 0)
            return (gadget_fn)(uintptr_t)(code + i);
    return NULL;
}
#endif

static void vdso(int argc, char **argv)
{
    long port = number(need(argc, argv, 0));
    const unsigned char *base = (const unsigned char *)getauxval(AT_SYSINFO_EHDR);
    if (!base)
        contained("there is no vDSO");
    struct timespec a, b;
    if (clock_gettime(CLOCK_REALTIME, &a) || syscall(SYS_clock_gettime, CLOCK_REALTIME, &b))
        broken("time is blocked; nothing should rely on that: %s", error_name(errno));
    Elf64_Ehdr eh;
    memcpy(&eh, base, sizeof eh);
    size_t page_size = (size_t)sysconf(_SC_PAGESIZE);
    size_t size =
        eh.e_shoff + (size_t)eh.e_shnum * eh.e_shentsize; /* the section headers come last */
    size = (size + page_size - 1) & ~(page_size - 1);
    if (size > 16 * page_size)
        broken("a vDSO of %zu bytes", size);
    gadget_fn gadget = find_gadget(base, size);
    const char *how = "vDSO";
    if (!gadget) { /* none to borrow here: put one into its own page */
        how = "vDSO, written to";
        unsigned char *page = (unsigned char *)(uintptr_t)base;
        if (mprotect(page, size, PROT_READ | PROT_WRITE | PROT_EXEC) < 0)
            contained("no system call to borrow in the vDSO, and it cannot be written: %s",
                      error_name(errno));
        memcpy(page + 2048, gadget_code, sizeof gadget_code);
        __builtin___clear_cache((char *)page + 2048, (char *)page + 2048 + sizeof gadget_code);
        gadget = (gadget_fn)(uintptr_t)(page + 2048);
    }
    long s = through(gadget, SYS_socket, AF_INET, SOCK_STREAM, 0);
    if (s < 0)
        contained("socket from the %s: %s", how, error_name((int)-s));
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    long c = through(gadget, SYS_connect, s, (long)(uintptr_t)&to, sizeof to);
    if (c == 0)
        reached("the network, by a system call in the %s", how);
    contained("connect from the %s: %s", how, error_name((int)-c));
}

static void personality_(int argc, char **argv)
{
    (void)argc, (void)argv;
    int before = personality(0xffffffff);
    int set = personality(ADDR_NO_RANDOMIZE | READ_IMPLIES_EXEC);
    int after = personality(0xffffffff);
    if (set != -1 && after != before)
        reached("personality is now %x", after);
    contained("personality(ADDR_NO_RANDOMIZE): %s", error_name(errno));
}

static void null_page(int argc, char **argv)
{
    (void)argc, (void)argv;
    void *p =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (p == NULL)
        reached("page zero is ours");
    contained("page zero: %s", error_name(errno));
}

static void set_mm(int argc, char **argv)
{
    (void)argc, (void)argv;
    tried("SET_MM", prctl(PR_SET_MM, PR_SET_MM_ARG_START, (unsigned long)(uintptr_t)argv, 0, 0));
    tried("SET_MM_EXE_FILE", prctl(PR_SET_MM, PR_SET_MM_EXE_FILE, 0, 0, 0));
    none_may_have_succeeded();
}

/* A file we wrote, mapped executable: what the dynamic loader would do with it. */
static void map_exec(int argc, char **argv)
{
    (void)argc, (void)argv;
    char page[4096] = {0};
    int fd = open("/tmp/code", O_RDWR | O_CREAT | O_CLOEXEC, 0700);
    if (fd < 0 || write(fd, page, sizeof page) != sizeof page)
        broken("/tmp/code: %s", error_name(errno));
    void *x = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    tried("mmap EXEC", x == MAP_FAILED ? -1 : 1);
    void *later = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    if (later == MAP_FAILED)
        broken("mmap: %s", error_name(errno));
    tried("mprotect EXEC", mprotect(later, 4096, PROT_READ | PROT_EXEC));
    none_may_have_succeeded();
}

/* At the exit of a thread the kernel writes where these two point. */
static void robust_list(int argc, char **argv)
{
    (void)argc, (void)argv;
    struct {
        void *next;
        long offset;
        void *pending;
    } head = {(void *)(uintptr_t)0xffff000000001000u, -8, (void *)(uintptr_t)0xffff800000000000u};
    long r = syscall(SYS_set_robust_list, &head, 24);
    syscall(SYS_set_tid_address, (void *)(uintptr_t)0xffff000000002000u);
    contained("set_robust_list at kernel addresses: %s; the test sees whether the exit is clean",
              r ? error_name(errno) : "taken, to be followed at exit");
}

const struct probe probes_memory[] = {
    {"self-mem", "own code patched through /proc/self/mem", "3", 1, "process", "benign-memory",
     self_mem, .options = "--proc", .args = "{port}"},
    {"self-mem-no-proc", "the same where there is no /proc", "3", 1, "filesystem", "benign-memory",
     self_mem, .args = "{port}"},
    {"proc-others", "environment, memory, root and descriptors of others", "4", 5, "process",
     "benign-files", proc_others, .options = "--proc"},
    {"proc-others-no-proc", "the same where there is no /proc", "4", 5, "filesystem",
     "benign-files", proc_others},
    {"proc-list", "processes outside, by number", "4", 5, "process", "benign-files", proc_list,
     .options = "--proc", .args = "{pid} {word}"},
    {"proc-machine", "the machine's knobs and secrets in /proc and /sys", "4,28,29", 5,
     "filesystem", "benign-files", proc_machine, .options = "--proc"},
    {"own-exe", "overwrite the program that started us", "3,19", 5, "filesystem", "benign-files",
     own_exe, .options = "--proc"},
    {"vdso", "a system call borrowed from the vDSO", "12", 1, "syscalls", "benign-time", vdso,
     .args = "{port}"},
    {"personality", "address randomisation off", "47", 1, "syscalls", "benign-memory", personality_,
     .rule = "personality"},
    {"null-page", "memory at address zero", "47", 1, "process", "benign-memory", null_page},
    {"set-mm", "the memory map rewritten by prctl", "3,45", 1, "process", "benign-memory", set_mm},
    {"map-exec", "a written file mapped executable", "15", 2, "filesystem", "benign-exec",
     map_exec},
    {"robust-list", "the kernel made to write at our exit", "3", 1, "process", "benign-threads",
     robust_list},
    {0},
};
