/* SPDX-License-Identifier: Apache-2.0 */
/* What the holder gives up before its loop. It must go on building jails, so it keeps what that needs:
 * namespaces, mounts, programs to execute, files. Gone are: gaining rights by a program, being looked into, and every
 * system call that is not in its table (src/jail/filters/holder.filter). Its children inherit all of it, and the
 * stricter of two answers wins: so what a child's table reports must pass here, or a warm run would hide what a
 * cold one shows. For the same reason it has no Landlock domain, not even one for TCP and signals: below a domain
 * that cannot allow it no file changes its folder, and one with rights on files forbids mounting. */
#include "pool/holder.h"

#include "jail/filter.h"
#include "sys/kernel.h"

#include <linux/filter.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int pool_holder_narrow(char *said, size_t size, struct err *err)
{
    const struct jail_filter *f = jail_filter_find("holder");
    base_assert(f && !jail_filter_notifies(f)); /* one listener per chain: it is the children's */
    struct sock_fprog program = {f->len, (struct sock_filter *)f->insns};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_sys(err, "no_new_privs");
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
        return err_sys(err, "the holder's system call table");
    snprintf(said, size, "no-new-privs, not dumpable, seccomp (allow-list)");
    return 0;
}
