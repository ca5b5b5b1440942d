/* What the holder gives up before its loop. It must go on building jails, so it keeps what that needs:
 * namespaces, mounts, programs to execute, files. Gone are: gaining rights by a program, TCP, signals and
 * abstract sockets that lead out of its own tree of processes (Landlock; no file rights: a domain with
 * those forbids mounting to all descendants), and every system call that is not in its table
 * (src/jail/filters/holder.filter). Its children inherit all of it, and the stricter of two answers wins: so what a
 * child's table reports must pass here, or a warm run would hide what a cold one shows. */
#include "pool/holder.h"

#include "jail/filter.h"
#include "sys/kernel.h"

#include <linux/filter.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static int load_table(struct err *err)
{
    const struct jail_filter *f = jail_filter_find("holder");
    base_assert(f && !jail_filter_notifies(f)); /* one listener per chain: it is the children's */
    struct sock_fprog program = {f->len, (struct sock_filter *)f->insns};
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0
               ? err_sys(err, "the holder's system call table")
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
        r = load_table(err);
    snprintf(said, size, "no-new-privs, not dumpable, seccomp (allow-list), Landlock (%s)",
             abi >= 6   ? "TCP, signals, abstract sockets"
             : abi >= 4 ? "TCP"
                        : "not on this kernel");
    return r;
}
