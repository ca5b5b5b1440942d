/* SPDX-License-Identifier: Apache-2.0 */
/* Two rooms ask, and a file of /proc costs ten microseconds: the first answer is kept. Neither can change
 * while the process lives; a child that is born into another pid namespace keeps no state. */
#include "sys/here.h"

#include "base/units.h"
#include "sys/fd.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int here_proc(struct err *err)
{
    if (access("/proc/self/fd", F_OK) == 0)
        return 0;
    err_set(err, ERR_MISSING, "/proc is not mounted here; mount it: mount -t proc proc /proc");
    return err_layer(err, "process");
}

const char *here_boot(void)
{
    static char boot[HERE_BOOT_MAX];
    if (!boot[0] &&
        fd_read_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id", boot, sizeof boot) <= 0)
        boot[0] = 0;
    return boot[0] ? boot : NULL;
}

uint64_t here_pid_space(void)
{
    static uint64_t space;
    struct stat st;
    if (!space && stat("/proc/self/ns/pid", &st) == 0)
        space = st.st_ino;
    return space;
}

static bool user_said;
static uid_t user;

uid_t here_user(void)
{
    return user_said ? user : getuid();
}

void here_user_is(uid_t uid)
{
    user_said = true;
    user = uid;
}

bool here_is_served(void)
{
    return user_said;
}

bool here_owns(uid_t owner)
{
    char text[64];
    uint64_t nobody = 0;
    if (owner != geteuid())
        return false;
    if (fd_read_file(AT_FDCWD, "/proc/self/uid_map", text, sizeof text) > 0 &&
        strstr(text, "4294967295"))
        return true; /* every user has a number of its own here */
    if (fd_read_file(AT_FDCWD, "/proc/sys/fs/overflowuid", text, sizeof text) <= 0)
        return false;
    text[strcspn(text, "\n")] = 0;
    return units_count(text, &nobody) == 0 && nobody != owner;
}
