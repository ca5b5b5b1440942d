/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as those of connections: what is answered is HTTP, and cordond is asked only what its table has. The first byte
 * of a piece of the input says what the rest is, and the next to it how long: bytes of one of three connections, the end of
 * one, cordond's answer to the last request, or an hour that passes. */
#include "serve/front/http_server.h"
#include "serve/fuzz_frames.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CONNS = 3 };
static uint64_t last;

static void answer(struct serve_front *f, const uint8_t *body, size_t len)
{
    const struct serve_answer a = {.request = last ? last : 1,
                                   .stand = len ? SERVE_DONE : SERVE_GOING,
                                   .number = 1,
                                   .body = len};
    struct err err = ERR_INIT;
    struct buf frame;
    buf_init(&frame, 2 * LIMIT_SERVE_PIECE);
    if (serve_answer_write(&a, body, &frame, &err) == 0)
        (void)!serve_front_frame(f, frame.data, frame.len, &err);
    buf_done(&frame);
}

/* What a loop does after each look. */
static void settle(struct serve_http *h, struct http_conn *conns[CONNS], bool begun[CONNS])
{
    (void)http_server_tick(&h->server);
    for (size_t i = 0; i < CONNS; i++) {
        if (conns[i] && conns[i]->out.len && !begun[i]) {
            base_assert(memcmp(conns[i]->out.data, "HTTP/1.1 ", 9) == 0);
            begun[i] = true;
        }
        if (conns[i] && !conns[i]->broken)
            http_conn_wrote(&h->server, conns[i], conns[i]->out.len - conns[i]->written);
        if (conns[i] && conns[i]->broken) {
            http_conn_left(&h->server, conns[i]);
            conns[i] = NULL;
            begun[i] = false;
        }
    }
    fuzz_check_frames(serve_front_frames(h->front), &last);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct serve_front_config config = {
        {30000, 512 * MIB, 100000}, .answer_ms = 45000, .profile = "", .version = "0"};
    const struct serve_http_config web = {.token = "", .names = "a.example"};
    struct serve_front *f = serve_front_new(&config);
    struct serve_http *h = f ? serve_http_new(f, &web) : NULL;
    struct http_conn *conns[CONNS] = {NULL};
    bool begun[CONNS] = {false};
    last = 0;
    while (h && size > 2) {
        const size_t which = data[0] % CONNS, most = size - 3,
                     asked = (size_t)data[1] << 8 | data[2], len = asked < most ? asked : most;
        if (!conns[which])
            conns[which] = http_conn_accept(&h->server);
        if (data[0] >= 0xf0) {
            h->server.now_ms += 3600000;
        } else if (data[0] >= 0xe0) {
            conns[which]->broken = true;
        } else if (data[0] >= 0xd0 && len < LIMIT_SERVE_PIECE) {
            answer(f, data + 3, len);
        } else if (http_conn_reads(conns[which])) {
            http_conn_bytes(&h->server, conns[which], (const char *)data + 3,
                            len < 32768 ? len : 32768);
        }
        settle(h, conns, begun);
        data += 3 + len;
        size -= 3 + len;
    }
    serve_http_free(h);
    serve_front_free(f);
    return 0;
}
