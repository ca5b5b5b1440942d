/* SPDX-License-Identifier: Apache-2.0 */
/* The user id alone is not enough: seen from the host, a guest has its user's. So the map of ids is compared as well: a
 * guest's user namespace has another one. */
#include "sys/peer.h"

#include "sys/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

bool sys_peer_who(int sock, uid_t *ret_uid, pid_t *ret_pid)
{
    struct ucred peer = {0};
    socklen_t len = sizeof peer;
    if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        return false;
    *ret_uid = peer.uid;
    *ret_pid = peer.pid;
    return true;
}

bool sys_peer_is_us(int sock, pid_t *ret_pid)
{
    uid_t uid = 0;
    pid_t pid = 0;
    if (!sys_peer_who(sock, &uid, &pid) || uid != geteuid())
        return false;
    if (ret_pid)
        *ret_pid = pid;
    return true;
}

/* By its map of ids, which anybody may read: the link in /proc/PID/ns is not shown of a process that is not dumpable. Our
 * own is read once: a map is written once, and those who ask never enter another namespace. */
bool sys_peer_is_outside(pid_t peer)
{
    static char ours[12288]; /* 340 lines at the most */
    char path[40], theirs[sizeof ours];
    snprintf(path, sizeof path, "/proc/%d/uid_map", (int)peer);
    if (!ours[0] && fd_read_file(AT_FDCWD, "/proc/self/uid_map", ours, sizeof ours) <= 0) {
        ours[0] = 0;
        return false;
    }
    return peer > 0 && fd_read_file(AT_FDCWD, path, theirs, sizeof theirs) > 0 &&
           strcmp(ours, theirs) == 0;
}
