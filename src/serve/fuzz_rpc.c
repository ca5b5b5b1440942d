/* SPDX-License-Identifier: Apache-2.0 */
/* Any lines as a client's: each is answered by lines of JSON, and cordond is asked only what its table has. A line that begins
 * with 1, 2 or 3 as a byte is cordond's answer to the last request (done, running, refused) with the rest as its body; with
 * 4 it is a whole frame of cordond's. */
#include "serve/front/front.h"
#include "serve/fuzz_frames.h"

#include <jansson.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t last; /* request that was asked */

static void check_out(struct buf *out)
{
    for (size_t at = 0; at < out->len;) {
        json_error_t where;
        const char *line = out->data + at, *end = memchr(line, '\n', out->len - at);
        base_assert(end != NULL);
        /* integers of any size go out as they came in, and this reader has 64 bits for them */
        json_t *v = json_loadb(line, (size_t)(end - line), JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL,
                               &where);
        base_assert(v || strstr(where.text, "overflow"));
        json_decref(v);
        at += (size_t)(end - line) + 1;
    }
    buf_reset(out);
}

static int answer(struct serve_front *f, unsigned char kind, const uint8_t *body, size_t len)
{
    static const enum serve_stand stands[] = {SERVE_DONE, SERVE_RUNNING, SERVE_REFUSED};
    const struct serve_answer a = {.request = last ? last : 1,
                                   .stand = stands[kind - 1],
                                   .handle = "job-aaaaaaaaaaaaaaaaaaaaaaaaaa",
                                   .number = 1,
                                   .body = len};
    struct err err = ERR_INIT;
    struct buf frame;
    buf_init(&frame, 2 * LIMIT_SERVE_PIECE);
    int r = serve_answer_write(&a, body, &frame, &err);
    if (r == 0)
        r = serve_front_frame(f, frame.data, frame.len, &err);
    buf_done(&frame);
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct serve_front_config config = {
        {30000, 512 * MIB, 100000}, .answer_ms = 45000, .profile = "", .version = "0"};
    struct serve_front *f = serve_front_new(&config);
    struct err err = ERR_INIT;
    last = 0;
    for (int r = f ? 0 : -1; size && r == 0;) {
        const uint8_t *end = memchr(data, '\n', size);
        const size_t len = end ? (size_t)(end - data) : size;
        if (len && data[0] >= 1 && data[0] <= 3 && len < LIMIT_SERVE_PIECE)
            r = answer(f, data[0], data + 1, len - 1);
        else if (len && data[0] == 4)
            r = serve_front_frame(f, data + 1, len - 1, &err);
        else
            r = serve_front_message(f, (const char *)data, len, &err);
        check_out(serve_front_out(f));
        fuzz_check_frames(serve_front_frames(f), &last);
        data += len + (end != NULL);
        size -= len + (end != NULL);
    }
    serve_front_free(f);
    return 0;
}
