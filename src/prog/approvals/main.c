/* SPDX-License-Identifier: Apache-2.0 */
/* cordon-approvals: the keeper of the approval queue. One request on its input, one reply on its
 * output, the state folder as descriptor 3, then it ends. Started by the gate where a person is asked
 * or answers; nobody else needs SQLite. A complaint is one line and exit status 1.
 *
 * Waits: read in read_all; a sealed file in memory; at once; an error
 *        fd_write_all in main; the gate to read; none (the gate kills us after LIMIT_APPROVALS_MS); ends */
#include "base/sanitized.h"
#include "gate/record.h"
#include "gate/store.h"
#include "sys/fd.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define STATE_FD 3

NO_SEARCH_FOR_LEAKS

static int read_all(struct buf *in)
{
    char chunk[65536];
    for (;;) {
        ssize_t n = read(STDIN_FILENO, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? ERR_SYS : 0;
        int r = buf_add(in, chunk, (size_t)n);
        if (r < 0)
            return r;
    }
}

int main(void)
{
    struct err err = ERR_INIT;
    struct buf in, out;
    struct gate_store *store = NULL;
    struct timespec now;
    buf_init(&in, GATE_RECORD_MAX + 4096);
    buf_init(&out, GATE_RECORD_MAX);
    clock_gettime(CLOCK_REALTIME, &now);
    umask(077);
    int r = read_all(&in);
    if (r < 0)
        err_set(&err, r, "the request cannot be read, or is too long");
    else if (fchdir(STATE_FD) < 0)
        r = err_sys(&err, "descriptor 3 is to be the state folder");
    if (r == 0)
        r = gate_store_open(GATE_STORE_FILE, &store, &err);
    if (r == 0)
        r = gate_store_handle(store, in.data, in.len,
                              (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000, &out,
                              &err);
    gate_store_close(store); /* durable before it is said */
    if (r == 0)
        r = fd_write_all(STDOUT_FILENO, out.data, out.len);
    else
        printf("%s\n", err.msg);
    buf_done(&in);
    buf_done(&out);
    return r < 0;
}
