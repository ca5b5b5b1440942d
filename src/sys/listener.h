/* SPDX-License-Identifier: Apache-2.0 */
/* The listener of a seccomp filter: calls that wait for an answer.
 *
 * Takes:   a listener's descriptor.
 * Gives:   the next call that waits, and the way to answer it.
 * Never:   reads the caller's memory; decides what the answer is.
 * Runs in: the supervisor, the builder, the holder.
 */
#ifndef SYS_LISTENER_H
#define SYS_LISTENER_H

#include "sys/kernel.h"

#include <stdbool.h>

/* The kernel's structures may be larger than our headers': room, not sizes. */
union sys_notice {
    struct seccomp_notif notif;
    char storage[512];
};

/* 0, or -1 with errno: ENOENT when the caller was killed meanwhile. Waits where nothing is pending. */
int sys_listener_receive(int listener, union sys_notice *ret);
/* The call fails with the errno ERROR, or (0) does what FLAGS say. */
int sys_listener_answer(int listener, uint64_t id, int error, uint32_t flags);
bool sys_listener_holds(int listener, uint64_t id); /* the caller is still that one, and waits */

#endif
