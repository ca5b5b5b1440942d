/* SPDX-License-Identifier: Apache-2.0 */
/* The driver itself serves the program, on a socket pair in place of the channel, so that a rehearsal is
 * what a run is. Both messages fit the socket's buffer, and so do the answers: nobody has to read them. */
#include "worker/frame/rehearse.h"

#include "base/buf.h"
#include "jail/template.h"
#include "wire/msg.h"
#include "worker/frame/compute.h"
#include "worker/frame/driver.h"
#include "worker/frame/language.h"
#include "worker/frame/stack.h"

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

/* The sample, with a line before it for each of IMPORTS (separated by commas; NULL: none), as many as there is room for. */
static size_t write_sample(const char *imports, bool only_print, char *to, size_t size)
{
    const char *body = only_print ? worker_language->sample_print : worker_language->sample,
               *word = only_print ? NULL : worker_language->sample_import;
    const size_t end = strlen(body);
    size_t len = 0;
    while (word && imports && *imports) {
        const size_t n = strcspn(imports, ",");
        if (len + strlen(word) + n + 1 + end > size)
            break;
        len += (size_t)snprintf(to + len, size - len, "%s%.*s\n", word, (int)n, imports);
        imports += n + (imports[n] == ',');
    }
    memcpy(to + len, body, end);
    return len + end;
}

int worker_rehearse(const char *imports, bool only_print)
{
    char program[1024];
    int sv[2], out[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0 ||
        pipe2(out, O_CLOEXEC) < 0 || dup2(out[1], STDOUT_FILENO) < 0 ||
        dup2(sv[1], JAIL_FD_CHANNEL) < 0)
        return -1;
    size_t len = write_sample(imports, only_print, program, sizeof program - 1);
    struct err err = ERR_INIT;
    if (play_supervisor(sv[0], program, len) < 0)
        return -1;
    if (jail_template_confine(&err) < 0) { /* code of imported packages may run from here on */
        fprintf(stderr, "%s: a rehearsal could not be locked: %s\n", worker_language->program,
                err.msg);
        return -1;
    }
    worker_compute_rehearse();
    worker_driver_ready();
    worker_language->after_fork();
    worker_stack_watch();
    return worker_driver_serve() == 0 ? 0 : -1;
}
