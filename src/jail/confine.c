/* SPDX-License-Identifier: Apache-2.0 */
/* The same facilities as a guest's, by the same files; but for a process that is ours and stays in the host's root, because
 * what it needs there (a folder of the state) is named by descriptors. Landlock comes before seccomp, whose table does
 * not have the calls for it. */
#include "jail/confine.h"

#include "jail/filter.h"
#include "jail/inside.h"
#include "sys/fd.h"
#include "sys/kernel.h"

#include <linux/filter.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static int confine(const struct jail_folder *folders, size_t count, bool reads_all,
                   const char *filter, struct err *err)
{
    const struct jail_filter *f = jail_filter_find(filter);
    base_assert(f && !jail_filter_notifies(
                         f)); /* a notified call would wait for ever: there is no listener */
    struct sock_fprog program = {f->len, (struct sock_filter *)f->insns};
    const struct rlimit none = {0, 0};
    FD_AUTO ruleset = -1;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
        setrlimit(RLIMIT_CORE, &none) < 0)
        return err_sys(err, "no new privileges, no core");
    int r = jail_landlock_folders(folders, count, &ruleset, err);
    if (r == 0)
        r = jail_caps_of_reader(reads_all, err);
    if (r == 0)
        r = jail_landlock_enter(ruleset, err);
    if (r < 0)
        return r;
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
        return err_sys(err, "the system call table %s", filter);
    return 0;
}

int jail_confine(int writable, int readable, const char *filter, struct err *err)
{
    struct jail_folder folders[2];
    size_t count = 0;
    if (writable >= 0)
        folders[count++] = (struct jail_folder){writable, true};
    if (readable >= 0)
        folders[count++] = (struct jail_folder){readable, false};
    return confine(folders, count, readable >= 0, filter, err);
}

int jail_confine_folders(const struct jail_folder *folders, size_t count, const char *filter,
                         struct err *err)
{
    return confine(folders, count, false, filter, err);
}
