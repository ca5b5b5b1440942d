/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that no guest has business with: each is a piece of kernel that need not be trusted.
 * `REFUSE` rows are strict: an answer that shows the kernel looked at the arguments is a failure.
 */
#include "probe.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <linux/reboot.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static int ring_fd;
static struct io_uring_params ring;
static char *sq, *cq;
static struct io_uring_sqe *sqes;

static int ring_do(struct io_uring_sqe what)
{
    unsigned tail = *(unsigned *)(sq + ring.sq_off.tail),
             mask = *(unsigned *)(sq + ring.sq_off.ring_mask);
    sqes[tail & mask] = what;
    ((unsigned *)(sq + ring.sq_off.array))[tail & mask] = tail & mask;
    __atomic_store_n((unsigned *)(sq + ring.sq_off.tail), tail + 1, __ATOMIC_RELEASE);
    if (syscall(SYS_io_uring_enter, ring_fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0)
        return -errno;
    unsigned head = *(unsigned *)(cq + ring.cq_off.head);
    struct io_uring_cqe *c = (struct io_uring_cqe *)(cq + ring.cq_off.cqes) +
                             (head & *(unsigned *)(cq + ring.cq_off.ring_mask));
    int result = c->res;
    __atomic_store_n((unsigned *)(cq + ring.cq_off.head), head + 1, __ATOMIC_RELEASE);
    return result;
}

/* System calls that no filter sees: open the secret and dial out by ring. */
static void uring(int argc, char **argv)
{
    const char *secret = need(argc, argv, 0);
    long port = number(need(argc, argv, 1));
    ring_fd = (int)syscall(SYS_io_uring_setup, 8, &ring);
    if (ring_fd < 0)
        contained("io_uring_setup: %s", error_name(errno));
    size_t size = ring.sq_off.array + ring.sq_entries * sizeof(unsigned);
    sq = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, ring_fd, IORING_OFF_SQ_RING);
    cq = mmap(NULL, ring.cq_off.cqes + ring.cq_entries * sizeof(struct io_uring_cqe),
              PROT_READ | PROT_WRITE, MAP_SHARED, ring_fd, IORING_OFF_CQ_RING);
    sqes = mmap(NULL, ring.sq_entries * sizeof *sqes, PROT_READ | PROT_WRITE, MAP_SHARED, ring_fd,
                IORING_OFF_SQES);
    if (sq == MAP_FAILED || cq == MAP_FAILED || sqes == MAP_FAILED)
        contained("the ring cannot be mapped: %s", error_name(errno));
    int r = ring_do((struct io_uring_sqe){.opcode = IORING_OP_OPENAT,
                                          .fd = AT_FDCWD,
                                          .addr = (uint64_t)(uintptr_t)secret,
                                          .open_flags = O_RDONLY});
    if (r >= 0)
        reached("the secret, opened by io_uring");
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int s = ring_do((struct io_uring_sqe){
        .opcode = 45 /* IORING_OP_SOCKET */, .fd = AF_INET, .off = SOCK_STREAM});
    int c = s < 0 ? s
                  : ring_do((struct io_uring_sqe){.opcode = IORING_OP_CONNECT,
                                                  .fd = s,
                                                  .addr = (uint64_t)(uintptr_t)&to,
                                                  .off = sizeof to});
    if (c >= 0)
        reached("the network, by io_uring");
    contained("a ring, but the secret is %s and connect %s", error_name(-r), error_name(-c));
}

static void bpf_(int argc, char **argv)
{
    (void)argc, (void)argv;
    union bpf_attr a;
    memset(&a, 0, sizeof a);
    struct bpf_insn code[] = {{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0},
                              {.code = BPF_JMP | BPF_EXIT}};
    a.prog_type = BPF_PROG_TYPE_KPROBE;
    a.insn_cnt = 2;
    a.insns = (uint64_t)(uintptr_t)code;
    a.license = (uint64_t)(uintptr_t) "GPL";
    tried("PROG_LOAD kprobe", syscall(SYS_bpf, BPF_PROG_LOAD, &a, sizeof a));
    a.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
    tried("PROG_LOAD socket", syscall(SYS_bpf, BPF_PROG_LOAD, &a, sizeof a));
    memset(&a, 0, sizeof a);
    tried("MAP_GET_NEXT_ID", syscall(SYS_bpf, BPF_MAP_GET_NEXT_ID, &a, sizeof a));
    none_may_have_succeeded();
}

static void perf(int argc, char **argv)
{
    (void)argc, (void)argv;
    struct perf_event_attr a = {
        .type = PERF_TYPE_SOFTWARE, .size = sizeof a, .config = PERF_COUNT_SW_CPU_CLOCK};
    tried("the whole CPU", syscall(SYS_perf_event_open, &a, -1, 0, -1, 0));
    tried("the kernel", syscall(SYS_perf_event_open, &a, 0, -1, -1, 0));
    tried("pid 1", syscall(SYS_perf_event_open, &a, 1, -1, -1, 0));
    none_may_have_succeeded();
}

static void uffd(int argc, char **argv)
{
    (void)argc, (void)argv;
    /* without USER_MODE_ONLY: faults of the kernel itself could be held up */
    tried("userfaultfd", syscall(SYS_userfaultfd, O_CLOEXEC));
    tried("/dev/userfaultfd", open("/dev/userfaultfd", O_RDWR | O_CLOEXEC));
    none_may_have_succeeded();
}

static void reboot_(int argc, char **argv)
{
    (void)argc, (void)argv;
    /* CAD_OFF only says what Ctrl-Alt-Del does; where it works, so does the rest */
    must_fail("reboot", syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2,
                                LINUX_REBOOT_CMD_CAD_OFF, 0));
}

static void kexec(int argc, char **argv)
{
    (void)argc, (void)argv;
    tried("kexec_load", syscall(SYS_kexec_load, 0, 0, NULL, 0));
#ifdef SYS_kexec_file_load
    tried("kexec_file_load", syscall(SYS_kexec_file_load, -1, -1, 0, NULL, 0));
#endif
    none_may_have_succeeded();
}

static void module(int argc, char **argv)
{
    (void)argc, (void)argv;
    tried("init_module", syscall(SYS_init_module, "x", 1, ""));
    tried("finit_module", syscall(SYS_finit_module, 0, "", 0));
    tried("delete_module", syscall(SYS_delete_module, "x", 0));
    none_may_have_succeeded();
}

static void dmesg(int argc, char **argv)
{
    (void)argc, (void)argv;
    char text[64];
    tried("read the kernel's log", syscall(SYS_syslog, 3, text, sizeof text));
    tried("clear it", syscall(SYS_syslog, 5, NULL, 0));
    none_may_have_succeeded();
}

static void machine(int argc, char **argv)
{
    (void)argc, (void)argv;
    tried("swapon", syscall(SYS_swapon, "/tmp/x", 0));
    tried("swapoff", syscall(SYS_swapoff, "/tmp/x"));
    tried("acct", syscall(SYS_acct, NULL));
    tried("quotactl", syscall(SYS_quotactl, 0x800005 << 8 /* Q_GETINFO */, "/dev/vda", 0, NULL));
    tried("vhangup", syscall(SYS_vhangup));
    tried("fanotify_init", syscall(SYS_fanotify_init, 0, O_RDONLY));
#ifdef SYS_iopl
    tried("iopl", syscall(SYS_iopl, 3));
    tried("ioperm", syscall(SYS_ioperm, 0, 1, 1));
#endif
    none_may_have_succeeded();
}

/* A second filter with a listener of its own would let the guest answer for itself. */
static void second_listener(int argc, char **argv)
{
    (void)argc, (void)argv;
    struct sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog prog = {1, allow};
    long fd =
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog);
    if (fd >= 0)
        reached("a listener of its own: %ld", fd);
    if (errno != EBUSY && !is_refusal(errno))
        reached("seccomp says %s", error_name(errno));
    contained("a second listener: %s", error_name(errno));
}

/* Filters may only tighten; a guest that adds hundreds makes every call slow, for itself alone. */
static void strict_mode(int argc, char **argv)
{
    (void)argc, (void)argv;
    tried("strict mode over the filter", prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0));
    none_may_have_succeeded();
}

#define REFUSE(fn, ...)                                                                            \
    static void refuse_##fn(int argc, char **argv)                                                 \
    {                                                                                              \
        (void)argc, (void)argv;                                                                    \
        must_be_refused(#fn, syscall(SYS_##fn, __VA_ARGS__));                                      \
    }
REFUSE(io_uring_enter, -1, 0, 0, 0, NULL, 0)
REFUSE(io_uring_register, -1, 0, NULL, 0)
REFUSE(process_madvise, -1, NULL, 0, 0, 0)
REFUSE(lookup_dcookie, 0, NULL, 0)
REFUSE(move_pages, 1, 0, NULL, NULL, NULL, 0)
REFUSE(mbind, NULL, 0, 0, NULL, 0, 0)
REFUSE(remap_file_pages, NULL, 0, 0, 0, 0)
REFUSE(open_by_handle_at, -1, NULL, 0)
REFUSE(pidfd_send_signal, -1, 0, NULL, 0)

#define STRICT(name, item)                                                                         \
    {                                                                                              \
        "refuse-" #name, "the call " #name " itself", item, 1, "syscalls", "benign-files",         \
            refuse_##name                                                                          \
    }

const struct probe probes_kernel[] = {
    {"io-uring", "system calls by ring, past the filter", "7", 1, "syscalls", "benign-files", uring,
     .args = "{secret} {port}", .rule = "io_uring"},
    {"bpf", "programs in the kernel", "28", 1, "syscalls", "benign-files", bpf_, .rule = "bpf"},
    {"perf", "measure the kernel and others", "28", 1, "syscalls", "benign-time", perf,
     .rule = "perf"},
    {"userfaultfd", "hold up the kernel's own faults", "28", 1, "syscalls", "benign-memory", uffd,
     .rule = "userfaultfd"},
    {"reboot", "reboot", "28,45", 1, "syscalls", "benign-time", reboot_, .rule = "reboot"},
    {"kexec-load", "another kernel", "28", 1, "syscalls", "benign-time", kexec,
     .rule = "kexec_load"},
    {"module", "kernel modules", "28", 2, "syscalls", "benign-time", module},
    {"dmesg", "the kernel's log", "28", 5, "syscalls", "benign-time", dmesg},
    {"machine", "swap, accounting, quotas, terminals", "28,45", 1, "syscalls", "benign-time",
     machine},
    {"second-listener", "a listener of its own", "8", 1, "syscalls", "benign-time",
     second_listener},
    {"strict-mode", "another seccomp mode", "8", 1, "syscalls", "benign-time", strict_mode},
    STRICT(io_uring_enter, "7"),
    STRICT(io_uring_register, "7"),
    STRICT(process_madvise, "5"),
    STRICT(lookup_dcookie, "28"),
    STRICT(move_pages, "5"),
    STRICT(mbind, "42"),
    STRICT(remap_file_pages, "28"),
    STRICT(open_by_handle_at, "2"),
    STRICT(pidfd_send_signal, "31"),
    {0},
};
