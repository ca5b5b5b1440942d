/* SPDX-License-Identifier: Apache-2.0 */
/* What a service manager is told: sd_notify(3)'s protocol, one datagram a message, and the sockets that it gives.
 *
 * Takes:   NOTIFY_SOCKET, WATCHDOG_USEC, WATCHDOG_PID, LISTEN_FDS, LISTEN_PID, LISTEN_FDNAMES, as systemd sets them.
 * Gives:   nothing where nobody started us as a service: then every call does nothing.
 * Never:   waits for the manager; leaves a word of it in the environment for whoever we start.
 * Runs in: `cordon`, cordond.
 */
#ifndef SYS_NOTIFY_H
#define SYS_NOTIFY_H

#include <stddef.h>
#include <stdint.h>

struct sys_notify {
    int sock;          /* -1: nobody wants to know */
    uint64_t every_ns; /* how often it wants to hear that we live; 0: it does not ask */
    uint64_t next_ns;  /* when it is told again */
};

/* Takes them out of the environment. */
void sys_notify_open(struct sys_notify *n);
/* LINES: `READY=1` and the like, with newlines between them. One that does not fit is lost. */
void sys_notify_send(const struct sys_notify *n, const char *lines);
/* Says that we live where it is time to; when it is to be called again, UINT64_MAX: never. */
uint64_t sys_notify_alive(struct sys_notify *n, uint64_t now_ns);

/* How many sockets this process was given, from descriptor SYS_NOTIFY_FD on; 0: none. NAMES, where it is not NULL, gets
 * their names with colons between them, empty where there are none. Only the first call finds them. */
enum { SYS_NOTIFY_FD = 3 };
unsigned sys_notify_sockets(char *names, size_t size);

#endif
