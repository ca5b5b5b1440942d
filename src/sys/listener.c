/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel refuses a structure that is not zero in fields it does not know, and may give a larger one than our
 * headers have. Both are handled here, so that no caller has to know the size.
 *
 * Waits: SECCOMP_IOCTL_NOTIF_RECV in sys_listener_receive; a call of the guest's; the caller's: it polls
 *          first; ENOENT */
#include "sys/listener.h"

#include <string.h>
#include <sys/ioctl.h>

int sys_listener_receive(int listener, union sys_notice *ret)
{
    memset(ret, 0, sizeof *ret);
    return ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &ret->notif) < 0 ? -1 : 0;
}

int sys_listener_answer(int listener, uint64_t id, int error, uint32_t flags)
{
    union {
        struct seccomp_notif_resp resp;
        char storage[512];
    } out;
    memset(&out, 0, sizeof out);
    out.resp.id = id;
    out.resp.error = -error;
    out.resp.flags = flags;
    return ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &out.resp) < 0 ? -1 : 0;
}

bool sys_listener_holds(int listener, uint64_t id)
{
    return ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}
