/* What goes to a pipe is for a program and stays as it is; what goes to a terminal is for eyes.
 *
 * Waits: write in write_out; the caller to read; none (NO DEADLINE YET: a stalled reader holds the run up);
 *          EPIPE ends it */
#include "reader.h"

#include "base/limits.h"

#include <errno.h>
#include <unistd.h>

void reader_init(struct reader *r, uint64_t cap, enum output_unit unit)
{
    *r = (struct reader){.tty = {isatty(1), isatty(2)}};
    for (int i = 0; i < 2; i++) {
        output_clean_init(&r->clean[i], NULL, cap, unit);
        if (unit == OUTPUT_CHARACTERS)
            output_capture_init_characters(&r->streams[i], cap);
        else
            output_capture_init(&r->streams[i], cap);
    }
}

void reader_done(struct reader *r)
{
    for (int i = 0; i < 2; i++) {
        output_clean_done(&r->clean[i]);
        output_capture_done(&r->streams[i]);
    }
}

bool reader_cleans(const struct reader *r)
{
    return r->tty[0] || r->tty[1];
}

void reader_rules(struct reader *r, const struct output_rules *rules)
{
    r->clean[0].rules = r->clean[1].rules = rules;
}

static void write_out(struct reader *r, enum jail_stream stream, const char *p, size_t len)
{
    int fd = stream == JAIL_STDOUT ? STDOUT_FILENO : STDERR_FILENO;
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

/* What has become final since the last time. */
static void show(struct reader *r, enum jail_stream stream)
{
    struct buf text;
    buf_init(&text, 16 * LIMIT_OUTPUT_MAX);
    if (output_clean_show(&r->clean[stream], OUTPUT_ESCAPE_TERMINAL, &text) == 0 && text.len)
        write_out(r, stream, text.data, text.len);
    buf_done(&text);
}

void reader_bytes(void *reader, enum jail_stream stream, const void *data, size_t len)
{
    struct reader *r = reader;
    if (r->tty[stream]) {
        output_clean_add(&r->clean[stream], data, len);
        show(r, stream);
        return;
    }
    size_t now = output_capture_add(&r->streams[stream], data, len);
    if (now)
        write_out(r, stream, data, now);
}

void reader_rest(struct reader *r)
{
    for (enum jail_stream s = JAIL_STDOUT; s <= JAIL_STDERR; s++) {
        if (r->tty[s]) {
            output_clean_end(&r->clean[s]);
            show(r, s);
            continue;
        }
        struct buf rest;
        buf_init(&rest, output_capture_rest_max(&r->streams[s]));
        if (output_capture_rest(&r->streams[s], &rest) == 0 && rest.len)
            write_out(r, s, rest.data, rest.len);
        buf_done(&rest);
    }
}
