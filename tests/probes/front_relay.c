/* SPDX-License-Identifier: Apache-2.0 */
/* TEST ONLY: cordon-front that asks cordond what its client tells it to, in the client's own numbers: what whoever has taken a front over
 * could ask. It is linked from the product's own objects, its main and what that gives up among them; only the loop that
 * serves a client of lines is replaced (ld --wrap).
 *
 * Takes:   lines of the client: ask NUMBER VERB HANDLE TIMEOUT MEMORY OUTPUT BYTES (`-`: no handle), piece NUMBER TEXT, cancel NUMBER
 *          ENDS, says (a frame that is for fronts), noise (bytes that are no frame).
 * Gives:   lines of cordond's frames: says NUMBER STAND HANDLE NUMBER BYTES, piece NUMBER HEX (each of a body, the one in the packet of its head, too); `end` when cordond has hung up.
 * Never:   is installed.
 * Runs in: the place of cordon-front, in the test serve-table.
 */
#include "serve/front/front.h"

#include "base/buf.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CORDOND 3

static uint64_t verb_named(const char *name)
{
    static const char *const names[] = {
#define X(verb, handle, body, takes, kind, text) [SERVE_##verb] = #verb,
        SERVE_VERBS(X)
#undef X
    };
    for (size_t i = 0; i < SERVE_VERB_COUNT; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return SERVE_VERB_COUNT; /* one that nobody has */
}

static void put(const struct buf *frame)
{
    struct iovec iov = {frame->data, frame->len};
    const struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    if (sendmsg(CORDOND, &m, MSG_NOSIGNAL) < 0)
        return; /* the end of the socket is seen when it is read */
}

static void write_ask(struct wire_writer *w, char *rest)
{
    char *words[8] = {0};
    for (size_t i = 0; i < 8; i++)
        words[i] = strsep(&rest, " ");
    if (!words[7])
        _exit(4);
    const uint64_t limits[3] = {strtoull(words[3], NULL, 10), strtoull(words[4], NULL, 10),
                                strtoull(words[5], NULL, 10)};
    wire_put_uint(w, strtoull(words[0], NULL, 10));
    wire_put_uint(w, verb_named(words[1]));
    wire_put_text(w, strcmp(words[2], "-") == 0 ? "" : words[2]);
    wire_put_uints(w, limits, 3);
    wire_put_uint(w, strtoull(words[6], NULL, 10));
    wire_put_uint(w, strtoull(words[7], NULL, 10));
    wire_put_bytes(w, "", 0); /* all of the body comes in pieces of its own */
}

static void obey(char *line)
{
    const struct serve_answer answer = {.request = 1, .stand = SERVE_DONE};
    struct wire_writer w = {0};
    struct buf frame;
    struct err err = ERR_INIT;
    buf_init(&frame, 1 * MIB);
    char *rest = line, *what = strsep(&rest, " ");
    if (strcmp(what, "ask") == 0 && rest) {
        wire_begin(&w, &frame, WIRE_SERVE_ASK);
        write_ask(&w, rest);
    } else if (strcmp(what, "piece") == 0 && rest) {
        wire_begin(&w, &frame, WIRE_SERVE_PIECE);
        wire_put_uint(&w, strtoull(rest, &rest, 10));
        wire_put_bytes(&w, rest + 1, strlen(rest + 1));
    } else if (strcmp(what, "cancel") == 0 && rest) {
        wire_begin(&w, &frame, WIRE_SERVE_CANCEL);
        wire_put_uint(&w, strtoull(rest, &rest, 10));
        wire_put_uint(&w, strtoull(rest, NULL, 10));
    } else if (strcmp(what, "says") == 0) {
        if (serve_answer_write(&answer, NULL, &frame, &err) < 0)
            _exit(4);
    } else if (buf_str(&frame, "noise") < 0) {
        _exit(4);
    }
    put(&frame);
    buf_done(&frame);
}

static void tell_piece(struct wire_reader *r, uint64_t request)
{
    size_t n = 0;
    const unsigned char *bytes = wire_get_bytes(r, &n);
    printf("piece %llu ", (unsigned long long)request);
    for (size_t i = 0; i < n; i++)
        printf("%02x", bytes[i]);
    printf("\n");
}

/* As lines for the client. */
static int tell(const void *frame, size_t len, struct err *err)
{
    struct wire_reader r;
    struct serve_answer a;
    int k = wire_open(&r, frame, len, err);
    if (k == 0 && r.type == WIRE_SERVE_SAYS) {
        k = serve_answer_read(&r, &a, err);
        if (k == 0)
            printf("says %llu %d %s %llu %llu\n", (unsigned long long)a.request, (int)a.stand,
                   a.handle[0] ? a.handle : "-", (unsigned long long)a.number,
                   (unsigned long long)a.body);
        if (k == 0 && a.body)
            tell_piece(&r, a.request);
    } else if (k == 0 && r.type == WIRE_SERVE_PIECE) {
        tell_piece(&r, wire_get_uint(&r));
    }
    fflush(stdout);
    return k;
}

/* What the client has written, line by line. False: it is gone. */
static bool read_client(struct buf *lines, struct err *err)
{
    char chunk[4096];
    const ssize_t n = read(STDIN_FILENO, chunk, sizeof chunk);
    if (n <= 0 || buf_add(lines, chunk, (size_t)n) < 0)
        return err_set(err, ERR_STATE, "the client has left") == 0;
    for (;;) {
        char *end = memchr(lines->data, '\n', lines->len);
        if (!end)
            return true;
        *end = 0;
        obey(lines->data);
        lines->len -= (size_t)(end + 1 - lines->data);
        memmove(lines->data, end + 1, lines->len);
    }
}

int __wrap_serve_front_run(const struct serve_front_config *config, struct err *err);

int __wrap_serve_front_run(const struct serve_front_config *config, struct err *err)
{
    static char frame[LIMIT_FRAME];
    struct pollfd p[2] = {{.fd = STDIN_FILENO, .events = POLLIN},
                          {.fd = CORDOND, .events = POLLIN}};
    struct buf lines;
    (void)config;
    buf_init(&lines, 1 * MIB);
    int k = 0;
    while (k == 0 && poll(p, 2, -1) > 0) {
        struct iovec iov = {frame, sizeof frame};
        struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
        const ssize_t n = p[1].revents ? recvmsg(CORDOND, &m, 0) : 1;
        if (n <= 0)
            break;
        if (p[1].revents)
            k = tell(frame, (size_t)n, err);
        if (k == 0 && p[0].revents && !read_client(&lines, err))
            k = err->code;
    }
    puts("end");
    fflush(stdout);
    buf_done(&lines);
    return k;
}
