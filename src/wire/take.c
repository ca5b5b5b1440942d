/* SPDX-License-Identifier: Apache-2.0 */
/* Apart from msg.c, which touches no descriptor: who reads packets in a loop that must not wait treats a closed socket, a packet
 * that is too long and garbage in one way. */
#include "wire/msg.h"

#include "base/limits.h"

#include <errno.h>
#include <sys/socket.h>

int wire_take(int sock, char *storage, struct wire_reader *r, size_t *ret_len)
{
    const ssize_t n = recv(sock, storage, LIMIT_FRAME, MSG_DONTWAIT | MSG_TRUNC);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    if (n <= 0 || wire_open(r, storage, (size_t)n, NULL) < 0)
        return ERR_FORMAT;
    *ret_len = (size_t)n;
    return 1;
}
