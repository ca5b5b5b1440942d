/* What the holder gives up before its loop. It must go on building jails, so it keeps what that needs:
 * namespaces, mounts, programs to execute, files. Gone are: gaining rights by a program, TCP, signals and
 * abstract sockets that lead out of its own tree of processes (Landlock; no file rights: a domain with
 * those forbids mounting to all descendants), and the system calls below, which neither it nor any
 * template or child ever needs. Its children inherit all of it. */
#include "pool/holder.h"

#include "sys/kernel.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#if defined(__aarch64__)
#define NATIVE AUDIT_ARCH_AARCH64
#else
#define NATIVE AUDIT_ARCH_X86_64
#endif

/* Each would be a way to more than a user has, or to other processes of the same user. */
static const int never[] = {
    SYS_bpf,
    SYS_perf_event_open,
    SYS_ptrace,
    SYS_kexec_load,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_acct,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_clock_adjtime,
    SYS_adjtimex,
    SYS_syslog,
    SYS_quotactl,
    SYS_add_key,
    SYS_request_key,
    SYS_open_by_handle_at,
    SYS_userfaultfd,
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_process_vm_writev,
    SYS_move_pages,
    SYS_vhangup,
    SYS_fanotify_init,
    SYS_setdomainname,
    SYS_lookup_dcookie,
    SYS_mq_open,
    SYS_personality,
};
enum { CALLS = sizeof never / sizeof *never };

/* The answers are the same for every argument, so the kernel remembers them by number, and allowed calls
 * do not run it at all. */
static int deny_calls(struct err *err)
{
    struct sock_filter f[CALLS + 6];
    unsigned short n = 0;
    f[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE, 1, 0);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    f[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < CALLS; i++)
        f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)never[i],
                                              (unsigned char)(CALLS - i), 0);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    struct sock_fprog program = {n, f};
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0
               ? err_sys(err, "the holder's system call filter")
               : 0;
}

/* What the running kernel has of it. *ret_abi: 0 when it has nothing of what is wanted here. */
static int landlock(int *ret_abi, struct err *err)
{
    struct sys_landlock_attr attr = {0};
    int abi = sys_landlock_abi();
    *ret_abi = abi < 4 ? 0 : abi;
    if (abi >= 4)
        attr.net = LANDLOCK_ACCESS_NET_BIND_TCP | LANDLOCK_ACCESS_NET_CONNECT_TCP;
    if (abi >= 6)
        attr.scoped = LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | LANDLOCK_SCOPE_SIGNAL;
    if (!*ret_abi)
        return 0;
    int rules = sys_landlock_create(&attr, abi >= 6 ? sizeof attr
                                                    : offsetof(struct sys_landlock_attr, scoped));
    int r = rules < 0 || sys_landlock_restrict(rules) < 0
                ? err_sys(err, "the holder's Landlock rules")
                : 0;
    if (rules >= 0)
        close(rules);
    return r;
}

int pool_holder_narrow(char *said, size_t size, struct err *err)
{
    int abi = 0;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_sys(err, "no_new_privs");
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    int r = landlock(&abi, err);
    if (r == 0)
        r = deny_calls(err);
    snprintf(said, size, "no-new-privs, not dumpable, seccomp (%d calls), Landlock (%s)",
             (int)CALLS,
             abi >= 6   ? "TCP, signals, abstract sockets"
             : abi >= 4 ? "TCP"
                        : "not on this kernel");
    return r;
}
