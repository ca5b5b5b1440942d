/* SPDX-License-Identifier: Apache-2.0 */
/* The unix socket of `cordon serve --socket`.
 *
 * Takes:   a path.
 * Gives:   a listening socket in a folder that nobody else can write in, or enter, and a lock that says that it is ours.
 * Never:   takes the place of a server that lives; follows a link into the folder.
 * Runs in: `cordon`, before it becomes cordond.
 */
#ifndef PROG_CORDON_SERVE_SOCKET_H
#define PROG_CORDON_SERVE_SOCKET_H

#include "base/err.h"

#include <stdbool.h>

/* On success descriptors SERVE_SOCKET_FD, the socket, SERVE_FOLDER_FD and SERVE_LOCK_FD are open and stay so over exec.
 * *RET_NAME lies in PATH: the socket's name in its folder. ALL_USERS: others may enter the folder and connect, and not
 * write there. */
enum { SERVE_SOCKET_FD = 3, SERVE_FOLDER_FD = 4, SERVE_LOCK_FD = 5 };
ERR_MUST_USE int serve_socket_listen(const char *path, bool all_users, const char **ret_name,
                                     struct err *err);
/* One that the service manager listens at, in its own folder and by its own rights. */
ERR_MUST_USE int serve_socket_adopt(int given, struct err *err);

#endif
