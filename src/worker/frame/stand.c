/* SPDX-License-Identifier: Apache-2.0 */
/* /workspace of a session may be laid upon other files between two calls (jail_child_layer). A process that stands in the
 * folder of before would read and write by relative names what nobody else sees. getcwd() tells two ways of having been left
 * behind: a mount that was taken away is "unreachable", with the path in it; one that was covered has a path that leads to
 * another folder by now. Nothing depends on it but the program itself: a guest may stand where it likes. */
#include "worker/frame/stand.h"

#include "jail/compute.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WORKSPACE "/workspace"

void worker_stand_anew(void)
{
    static const char lost[] = "(unreachable)";
    char path[4096] = "", again[4096 + sizeof WORKSPACE];
    struct stat here, there;
    if (jail_computes_only()) /* it stands in the root */
        return;
    /* the C library takes a path that cannot be reached for none */
    const long n = syscall(SYS_getcwd, path, sizeof path);
    if (n > 0 && path[0] == '/' && stat(".", &here) == 0 && stat(path, &there) == 0 &&
        here.st_dev == there.st_dev && here.st_ino == there.st_ino)
        return;
    if (n > 0 && strncmp(path, lost, strlen(lost)) == 0)
        snprintf(again, sizeof again, WORKSPACE "%s", path + strlen(lost));
    else
        snprintf(again, sizeof again, "%s", n > 0 && path[0] == '/' ? path : WORKSPACE);
    if (chdir(again) < 0 && chdir(WORKSPACE) < 0)
        return; /* a session without files: it stands where it stood */
}
