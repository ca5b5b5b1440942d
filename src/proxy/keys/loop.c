/* SPDX-License-Identifier: Apache-2.0 */
/* One loop, no thread of our own (libcurl resolves names in one): the front's frames first, because one of them may say that a connection is to be closed, then what upstreams sent.
 *
 * Waits: curl_multi_poll in proxy_keys_run; upstreams, the front, a signal; POLL_MS; looks who is silent */
#include "proxy/keys/keys.h"

#include "base/clock.h"

#define POLL_MS 200

static int take(struct proxy_keys *k, struct wire_reader *r, struct err *err)
{
    uint64_t call;
    int bad;
    switch (r->type) {
    case WIRE_PROXY_ASK:
        return proxy_calls_ask(k, r, err);
    case WIRE_PROXY_OPEN:
        return proxy_transfer_open(k, r, err);
    case WIRE_PROXY_BODY:
        return proxy_transfer_body(k, r, err);
    case WIRE_PROXY_CLOSE:
        proxy_transfer_close(k, wire_get_uint(r));
        return 0;
    case WIRE_PROXY_OVER:
        bad = proxy_calls_over(k, r, &call, err);
        if (bad == 0)
            proxy_transfer_detach(k, call);
        return bad;
    default:
        return err_set(err, ERR_FORMAT, "the front sent what is not of the table: %s",
                       wire_name(r->type));
    }
}

static int take_frames(struct proxy_keys *k, struct err *err)
{
    static char storage[LIMIT_FRAME];
    struct wire_reader r;
    size_t len;
    int got = 1, bad = 0;
    for (int i = 0; i < 4096 && got > 0 && bad == 0; i++) {
        got = wire_take(k->sock, storage, &r, &len);
        if (got > 0)
            bad = take(k, &r, err);
    }
    return got < 0 ? err_set(err, ERR_STATE, "the front has ended") : bad;
}

int proxy_keys_run(struct proxy_keys *k, int stop, struct err *err)
{
    int r = 0, running = 0;
    bool stopped = false;
    while (r == 0 && !stopped) {
        struct curl_waitfd fds[2] = {
            {k->sock,
             (short)(CURL_WAIT_POLLIN | (wire_queue_waiting(&k->out) ? CURL_WAIT_POLLOUT : 0)), 0},
            {stop, CURL_WAIT_POLLIN, 0}};
        if (curl_multi_poll(k->multi, fds, 2, POLL_MS, NULL) != CURLM_OK)
            return err_set(err, ERR_MEMORY, "libcurl cannot wait");
        k->now_ms = clock_now_ns() / CLOCK_NS_PER_MS;
        stopped = fds[1].revents != 0;
        r = take_frames(k, err);
        if (r == 0 && curl_multi_perform(k->multi, &running) != CURLM_OK)
            r = err_set(err, ERR_MEMORY, "libcurl cannot go on");
        if (r == 0) {
            proxy_transfer_reap(k);
            if (wire_queue_send(&k->out, k->sock) < 0)
                r = err_set(err, ERR_STATE, "the front has ended");
        }
        if (r == 0)
            proxy_transfer_resume(k);
    }
    proxy_transfer_drop_all(k);
    return r;
}
