/* SPDX-License-Identifier: Apache-2.0 */
/* The driver itself serves the program, on a socket pair in place of the channel, so that a rehearsal is
 * what a run is. Both messages fit the socket's buffer, and so do the answers: nobody has to read them. */
#include "rehearse.h"

#include "base/buf.h"
#include "compute.h"
#include "driver.h"
#include "interp.h"
#include "jail/template.h"
#include "wire/msg.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int send_frame(int sock, struct wire_writer *w, struct buf *b)
{
    return wire_end(w) == 0 && send(sock, b->data, b->len, MSG_NOSIGNAL) == (ssize_t)b->len ? 0
                                                                                            : -1;
}

static int play_supervisor(int sock, const char *source, size_t len)
{
    char storage[2048];
    struct buf b = {.data = storage, .cap = sizeof storage, .max = sizeof storage - 1};
    struct wire_writer w;
    wire_begin(&w, &b, WIRE_JOB);
    wire_put_uint(&w, 1); /* a run */
    wire_put_uint(&w, 0);
    wire_put_uint(&w, 0);
    wire_put_text(&w, "<rehearsal>");
    wire_put_uint(&w, len);
    wire_put_bytes(&w, source, len);
    if (send_frame(sock, &w, &b) < 0)
        return -1;
    buf_reset(&b);
    wire_begin(&w, &b, WIRE_GO);
    return send_frame(sock, &w, &b);
}

static size_t write_program(const char *imports, bool only_print, char *to, size_t storage)
{
    static const char body[] = PY_DRIVER_PROGRAM "print(x)\n", print[] = "print(1)\n";
    if (only_print) {
        memcpy(to, print, sizeof print - 1);
        return sizeof print - 1;
    }
    size_t len = 0;
    while (imports && *imports) {
        size_t n = strcspn(imports, ",");
        if (len + n + sizeof "import \n" + sizeof body > storage)
            break;
        memcpy(to + len, "import ", 7);
        memcpy(to + len + 7, imports, n);
        to[len + 7 + n] = '\n';
        len += n + 8;
        imports += n + (imports[n] == ',');
    }
    memcpy(to + len, body, sizeof body - 1);
    return len + sizeof body - 1;
}

int py_rehearse(const char *imports, bool only_print)
{
    char program[1024];
    int sv[2], out[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0 ||
        pipe2(out, O_CLOEXEC) < 0 || dup2(out[1], STDOUT_FILENO) < 0 ||
        dup2(sv[1], JAIL_FD_CHANNEL) < 0)
        return -1;
    size_t len = write_program(imports, only_print, program, sizeof program);
    struct err err = ERR_INIT;
    if (play_supervisor(sv[0], program, len) < 0)
        return -1;
    if (jail_template_confine(&err) < 0) { /* what was imported has its say from here on */
        fprintf(stderr, "cordon-python: a rehearsal could not be locked: %s\n", err.msg);
        return -1;
    }
    py_compute_rehearse();
    py_driver_ready();
    py_interp_after_fork();
    return py_driver_serve() == 0 ? 0 : -1;
}
