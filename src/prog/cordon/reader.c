/* SPDX-License-Identifier: Apache-2.0 */
/* What goes to a pipe is for a program and stays as it is; what goes to a terminal is for eyes. What our own reader
 * has not taken yet is held by the writer, up to the cap. A guest that has written more than the cap waits until the
 * head has arrived, as it would for any slow reader; `yes | head` so ends when `head` has its lines, and not because
 * of too much output. */
#include "reader.h"

#include "base/limits.h"
#include "writer.h"

#include <unistd.h>

#define BEYOND_CAP                                                                                 \
    (8 * MIB) /* what a dead guest's pipes still held, made visible; and complaints */

void reader_init(struct reader *r, uint64_t cap, enum output_unit unit)
{
    *r = (struct reader){.cap = cap, .tty = {isatty(1), isatty(2)}};
    writer_ceiling((unit == OUTPUT_CHARACTERS ? 4 * cap : cap) + BEYOND_CAP);
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
    writer_put(stream, p, len);
    r->gone = r->gone || writer_gone(stream);
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

enum jail_held reader_pass_on(void *reader, enum jail_stream stream)
{
    struct reader *r = reader;
    const struct output_capture *kept =
        r->tty[stream] ? &r->clean[stream].kept : &r->streams[stream];
    writer_push(stream);
    r->gone = r->gone || writer_gone(stream);
    size_t held = writer_held(stream);
    return !held ? JAIL_HELD_NONE : kept->closed || held > r->cap ? JAIL_HELD_FULL : JAIL_HELD_SOME;
}

struct jail_sink reader_sink(struct reader *r)
{
    return (struct jail_sink){.ctx = r,
                              .bytes = reader_bytes,
                              .pass_on = reader_pass_on,
                              .onward = {STDOUT_FILENO, STDERR_FILENO}};
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
