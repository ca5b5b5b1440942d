/* SPDX-License-Identifier: Apache-2.0 */
/* What the guest's process does when its session is forked. Nothing here is trusted: the guest's code
 * has run in this memory, and the supervisor looks at what came of it (branch.c). The branch calls capset
 * twice: the first call is held until its files and descriptors are there and then drops its capabilities, the
 * second is held until all of that has been seen. The session calls it, for nothing, if there is no branch. */
#include "jail/template.h"

#include "jail/branch.h"
#include "jail/compute.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static long drop_capabilities(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}};
    return syscall(SYS_capset, &head, none);
}

/* Where the kernel writes the branch's id: the C library's place for it, which does not move. */
static int *tid_address;

int jail_branch_prepare(void)
{
    return tid_address ? 0 : prctl(PR_GET_TID_ADDRESS, &tid_address);
}

int jail_branch_here(void)
{
    char cwd[4096];
    const char *where =
        NULL; /* one that only computes stands in the root, which its branches share */
    if (!jail_computes_only()) {
        if (jail_branch_prepare() < 0)
            return -errno;
        where = getcwd(cwd, sizeof cwd);
    }
    int *tid = tid_address;
#if defined(__x86_64__)
    long pid = syscall(SYS_clone, JAIL_BRANCH_FLAGS, NULL, NULL, tid, NULL);
#else /* the order of the last two is each architecture's own */
    long pid = syscall(SYS_clone, JAIL_BRANCH_FLAGS, NULL, NULL, NULL, tid);
#endif
    if (pid < 0) {
        int why = errno;
        if (why != EPERM && why != EBUSY) /* let through, and the kernel said no: it must be told */
            drop_capabilities();
        return -why;
    }
    if (pid > 0)
        return 0;
    /* The folder we stand in is the session's; the same path leads to ours. */
    if (drop_capabilities() < 0 || (where && chdir(cwd) < 0 && chdir("/workspace") < 0) ||
        drop_capabilities() < 0)
        _exit(70);
    return 1;
}
