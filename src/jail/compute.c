/* SPDX-License-Identifier: Apache-2.0 */
/* Why a trap and not a notification: a process has one listener, the first table's, and a notification of another filter
 * finds nobody (ENOSYS). The kernel gives a trapped call to the handler as a signal; where the handler is gone,
 * or the signal is blocked, it kills. So a guest that owns the process can at most keep a refused call secret: the call
 * itself never happens. */
#include "jail/compute.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

/* SYS_SECCOMP of <asm/siginfo.h>, which cannot be included beside <signal.h> */
enum { FROM_SECCOMP = 1 };

static const struct jail_filter *table; /* once it is closed */
static jail_compute_refused *tell;
static volatile sig_atomic_t refused;

static void set_result(ucontext_t *u, int result)
{
#if defined(__x86_64__)
    u->uc_mcontext.gregs[REG_RAX] = result;
#elif defined(__aarch64__)
    u->uc_mcontext.regs[0] = (unsigned long long)(long long)result;
#else
#error "where does a system call leave its result?"
#endif
}

static void on_refused(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    if (info->si_code != FROM_SECCOMP) /* somebody sent it; only the process itself could */
        return;
    refused = 1;
    const struct jail_call *call = jail_filter_call(table, info->si_syscall);
    if (call && tell)
        tell(table, call);
    set_result(context, -EPERM);
}

int jail_compute_only(jail_compute_refused *told, struct err *err)
{
    struct sigaction a = {.sa_sigaction = on_refused, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    const struct jail_filter *f = jail_filter_find("compute");
    if (!f)
        return err_set(err, ERR_STATE, "there is no system call table 'compute'");
    const struct sock_fprog prog = {f->len, (struct sock_filter *)f->insns};
    sigemptyset(&a.sa_mask);
    table = f;
    /* nothing of a guest's files is held: a branch of a session need not leave them */
    if (chdir("/") < 0 || sigaction(SIGSYS, &a, NULL) < 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0) {
        table = NULL;
        return err_sys(err, "load the system call table 'compute'");
    }
    errno = 0;
    long answer = syscall(SYS_getppid);
    if (answer != -1 || errno != EPERM || !refused)
        return err_set(err, ERR_STATE, "the system call table 'compute' refuses nothing");
    tell = told;
    return 0;
}

bool jail_computes_only(void)
{
    return table != NULL;
}
