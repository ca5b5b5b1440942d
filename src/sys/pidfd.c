/* SPDX-License-Identifier: Apache-2.0 */
/* An ioctl where the kernel has it (6.13), else the text of fdinfo: a file of /proc costs ten microseconds. */
#include "sys/pidfd.h"

#include "sys/fd.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

/* linux/pidfd.h of 6.13, first version; Debian 12's headers are older. */
struct pidfd_info_v0 {
    uint64_t mask, cgroup;
    uint32_t pid, rest[11];
};
#define PIDFD_GET_INFO_V0 _IOWR(0xFF, 11, struct pidfd_info_v0)

pid_t sys_pidfd_pid(int pidfd)
{
    char path[48], text[512];
    struct pidfd_info_v0 info = {.mask = 1};
    if (pidfd >= 0 && ioctl(pidfd, PIDFD_GET_INFO_V0, &info) == 0 && info.pid > 0)
        return (pid_t)info.pid; /* an older kernel writes it as text */
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", pidfd);
    const char *at = pidfd >= 0 && fd_read_file(AT_FDCWD, path, text, sizeof text) > 0
                         ? strstr(text, "Pid:")
                         : NULL;
    long pid = at ? strtol(at + 4, NULL, 10) : 0;
    return pid > 0 ? (pid_t)pid : 0;
}
