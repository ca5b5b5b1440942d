/* What goes to a pipe is for a program and stays as it is; what goes to a terminal is for eyes. */
#include "reader.h"

#include <errno.h>
#include <unistd.h>

void reader_init(struct reader *r, uint64_t cap)
{
    *r = (struct reader){.tty = {isatty(1), isatty(2)}};
    for (int i = 0; i < 2; i++)
        output_capture_init(&r->streams[i], cap);
}

void reader_done(struct reader *r)
{
    for (int i = 0; i < 2; i++)
        output_capture_done(&r->streams[i]);
}

static void write_out(struct reader *r, int fd, const char *p, size_t len)
{
    while (len) {
        ssize_t n = write(fd, p, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            r->gone = r->gone || errno == EPIPE;
            return;
        }
        p += n;
        len -= (size_t)n;
    }
}

static void show(struct reader *r, enum jail_stream stream, const char *p, size_t len)
{
    int fd = stream == JAIL_STDOUT ? STDOUT_FILENO : STDERR_FILENO;
    if (!r->tty[stream]) {
        write_out(r, fd, p, len);
        return;
    }
    struct buf text;
    buf_init(&text, len * 8 + 16);
    if (output_visible_add(&r->visible[stream], p, len, &text) == 0 && text.len)
        write_out(r, fd, text.data, text.len);
    buf_done(&text);
}

void reader_bytes(void *reader, enum jail_stream stream, const void *data, size_t len)
{
    struct reader *r = reader;
    size_t now = output_capture_add(&r->streams[stream], data, len);
    if (now)
        show(r, stream, data, now);
}

void reader_rest(struct reader *r)
{
    for (enum jail_stream s = JAIL_STDOUT; s <= JAIL_STDERR; s++) {
        struct buf rest;
        buf_init(&rest, r->streams[s].tail_room + sizeof OUTPUT_MARKER + 64);
        if (output_capture_rest(&r->streams[s], &rest) == 0 && rest.len)
            show(r, s, rest.data, rest.len);
        buf_reset(&rest);
        if (r->tty[s] && output_visible_end(&r->visible[s], &rest) == 0 && rest.len)
            write_out(r, s == JAIL_STDOUT ? STDOUT_FILENO : STDERR_FILENO, rest.data, rest.len);
        buf_done(&rest);
    }
}
