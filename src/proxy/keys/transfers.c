/* SPDX-License-Identifier: Apache-2.0 */
/* One easy handle a transfer. HTTP/1.1 alone: there a connection carries one answer, so taking the handle away closes it at once, which
 * is how an upstream is stopped. No redirect is followed, no proxy is asked, no encoding is undone: what comes is handed on. */
#include "proxy/keys/keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *path;
    enum policy_shape shape;
} paths[] = {[PROXY_CHAT] = {"/chat/completions", POLICY_SHAPE_OPENAI},
             [PROXY_RESPONSES] = {"/responses", POLICY_SHAPE_OPENAI},
             [PROXY_MESSAGES] = {"/v1/messages", POLICY_SHAPE_ANTHROPIC}};

static int malformed(struct err *err, const char *what)
{
    return err_set(err, ERR_FORMAT, "the front sent what is not of the table: %s", what);
}

static struct proxy_transfer **find(struct proxy_keys *k, uint64_t stream)
{
    for (size_t i = 0; i < LIMIT_PROXY_STREAMS; i++)
        if (k->transfers[i] && k->transfers[i]->stream == stream)
            return &k->transfers[i];
    return NULL;
}

static void drop(struct proxy_transfer **at)
{
    struct proxy_transfer *t = *at;
    if (t->easy) {
        curl_multi_remove_handle(t->keys->multi, t->easy);
        curl_easy_cleanup(t->easy);
    }
    curl_slist_free_all(t->headers);
    buf_done(&t->body);
    buf_done(&t->extra);
    proxy_hiding_done(&t->hiding);
    free(t);
    *at = NULL;
}

/* ---- what the front is told ---- */

static bool full(const struct proxy_keys *k)
{
    return wire_queue_waiting(&k->out) > LIMIT_PROXY_BACKLOG / 2;
}

static int tell(struct proxy_keys *k, enum wire_type type, uint64_t stream, uint64_t number)
{
    struct buf frame;
    struct wire_writer w;
    buf_init(&frame, LIMIT_FRAME);
    wire_begin(&w, &frame, type);
    wire_put_uint(&w, stream);
    wire_put_uint(&w, number);
    return wire_queue_put(&k->out, &w, &frame);
}

static int tell_status(struct proxy_transfer *t)
{
    long status = 0;
    if (t->told)
        return 0;
    curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    t->told = true;
    return tell(t->keys, WIRE_PROXY_STATUS, t->stream, (uint64_t)status);
}

static int tell_bytes(struct proxy_transfer *t, const char *data, size_t len)
{
    int r = 0;
    for (size_t at = 0; r == 0 && at < len; at += LIMIT_SERVE_PIECE) {
        struct buf frame;
        struct wire_writer w;
        buf_init(&frame, LIMIT_FRAME);
        wire_begin(&w, &frame, WIRE_PROXY_BYTES);
        wire_put_uint(&w, t->stream);
        wire_put_bytes(&w, data + at, len - at < LIMIT_SERVE_PIECE ? len - at : LIMIT_SERVE_PIECE);
        r = wire_queue_put(&t->keys->out, &w, &frame);
    }
    return r;
}

static size_t came(char *data, size_t one, size_t count, void *ctx)
{
    struct proxy_transfer *t = ctx;
    struct buf clean;
    if (t->drop_ms)
        return one * count;
    if (full(t->keys)) {
        t->paused = true;
        return CURL_WRITEFUNC_PAUSE;
    }
    t->last_ms = t->keys->now_ms;
    buf_init(&clean, one * count + PROXY_HIDE_HELD);
    const struct proxy_hidden *hidden = &t->keys->keys[t->upstream].hidden;
    int r = tell_status(t);
    if (r == 0)
        r = proxy_hide(hidden, &t->hiding, data, one * count, &clean);
    if (r == 0)
        r = tell_bytes(t, clean.data, clean.len);
    buf_done(&clean);
    return r == 0 ? one * count : 0;
}

/* ---- the request ---- */

static int add_header(struct proxy_transfer *t, const char *line)
{
    struct curl_slist *more = curl_slist_append(t->headers, line);
    t->headers = more ? more : t->headers;
    return more ? 0 : ERR_MEMORY;
}

static int set_headers(struct proxy_transfer *t)
{
    const char *key = t->keys->keys[t->upstream].header;
    int r = add_header(t, "Content-Type: application/json");
    if (r == 0)
        r = add_header(t, "Accept: text/event-stream, application/json");
    if (r == 0)
        r = add_header(t, "Expect:");
    if (r == 0 && key)
        r = add_header(t, key);
    for (const char *p = t->extra.data; r == 0 && p && *p; p += strlen(p) + 1)
        r = add_header(t, p);
    return r;
}

static bool set_numbers(CURL *e)
{
    static const struct {
        CURLoption option;
        long value;
    } rows[] = {{CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1},
                {CURLOPT_FOLLOWLOCATION, 0},
                {CURLOPT_NOSIGNAL, 1},
                {CURLOPT_SSL_VERIFYPEER, 1},
                {CURLOPT_SSL_VERIFYHOST, 2},
                {CURLOPT_CONNECTTIMEOUT_MS, LIMIT_PROXY_CONNECT_MS},
                {CURLOPT_TCP_NODELAY, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (curl_easy_setopt(e, rows[i].option, rows[i].value) != CURLE_OK)
            return false;
    return true;
}

static bool set_texts(struct proxy_transfer *t, const struct policy_upstream *u)
{
    char url[700];
    const bool own = *u->ca_file != 0;
    snprintf(url, sizeof url, "%s%s", u->url, paths[t->path].path);
    const struct {
        const char *value;
        CURLoption option;
        bool set;
    } rows[] = {{url, CURLOPT_URL, true},
                {"http,https", CURLOPT_PROTOCOLS_STR, true},
                {"", CURLOPT_PROXY, true},
                {t->body.data ? t->body.data : "", CURLOPT_POSTFIELDS, true},
                {u->ca_file, CURLOPT_CAINFO, own},
                {NULL, CURLOPT_CAPATH, own}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].set && curl_easy_setopt(t->easy, rows[i].option, rows[i].value) != CURLE_OK)
            return false;
    return true;
}

static int set_options(struct proxy_transfer *t, const struct policy_upstream *u)
{
    CURL *e = t->easy;
    const bool good =
        curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)t->body.len) == CURLE_OK &&
        set_numbers(e) && set_texts(t, u) &&
        curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, came) == CURLE_OK &&
        curl_easy_setopt(e, CURLOPT_WRITEDATA, t) == CURLE_OK &&
        curl_easy_setopt(e, CURLOPT_PRIVATE, t) == CURLE_OK &&
        curl_easy_setopt(e, CURLOPT_HTTPHEADER, t->headers) == CURLE_OK;
    return good ? 0 : ERR_MEMORY;
}

static int begin(struct proxy_transfer **at)
{
    struct proxy_transfer *t = *at;
    const struct policy_upstream *u = &t->keys->policy->upstreams[t->upstream];
    t->last_ms = t->keys->now_ms;
    t->easy = curl_easy_init();
    if (t->easy && set_headers(t) == 0 && set_options(t, u) == 0 &&
        curl_multi_add_handle(t->keys->multi, t->easy) == CURLM_OK)
        return 0;
    const int r = tell(t->keys, WIRE_PROXY_END, t->stream, PROXY_END_UNREACHABLE);
    drop(at);
    return r;
}

/* A header of the client's that an upstream needs: one of two, and nothing that ends a line. */
static bool good_header(const char *line, size_t len)
{
    static const char *const names[] = {"anthropic-version: ", "anthropic-beta: "};
    bool known = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        known = known || (len > strlen(names[i]) && memcmp(line, names[i], strlen(names[i])) == 0);
    for (size_t i = 0; i < len; i++)
        known = known && line[i] >= ' ' && line[i] <= '~';
    return known && len < 1024;
}

static int take_headers(struct proxy_transfer *t, struct wire_reader *r)
{
    int bad = 0;
    size_t len;
    for (size_t i = wire_get_list(r); i; i--) {
        const char *line = wire_next(r, &len);
        if (!good_header(line, len))
            bad = ERR_FORMAT;
        if (bad == 0)
            bad = buf_add(&t->extra, line, len);
        if (bad == 0)
            bad = buf_add(&t->extra, "", 1);
    }
    return bad;
}

int proxy_transfer_open(struct proxy_keys *k, struct wire_reader *r, struct err *err)
{
    const uint64_t call = wire_get_uint(r), stream = wire_get_uint(r), upstream = wire_get_uint(r),
                   path = wire_get_uint(r);
    struct proxy_transfer **at = NULL;
    for (size_t i = 0; i < LIMIT_PROXY_STREAMS && !at; i++)
        if (!k->transfers[i])
            at = &k->transfers[i];
    if (!stream || find(k, stream) || !at || upstream >= k->policy->nupstreams ||
        path >= PROXY_PATHS || paths[path].shape != k->policy->upstreams[upstream].shape)
        return malformed(err, "stream, upstream or path");
    if (proxy_calls_attempt(k, call) < 0)
        return malformed(err, "a call that was not let in");
    *at = calloc(1, sizeof **at);
    struct proxy_transfer *t = *at;
    if (!t)
        return err_set(err, ERR_MEMORY, "no memory");
    *t = (struct proxy_transfer){.keys = k,
                                 .call = call,
                                 .stream = stream,
                                 .upstream = (unsigned)upstream,
                                 .path = (enum proxy_path)path,
                                 .last_ms = k->now_ms};
    buf_init(&t->body, LIMIT_PROXY_BODY + LIMIT_PROXY_TEXT + 64 * KIB);
    buf_init(&t->extra, 4 * KIB);
    proxy_hiding_init(&t->hiding);
    const int bad = take_headers(t, r);
    t->wanted = wire_get_uint(r);
    if (bad < 0 || t->wanted > t->body.max) {
        drop(at);
        return malformed(err, "a header or the size of a body");
    }
    return t->wanted ? 0 : begin(at);
}

int proxy_transfer_body(struct proxy_keys *k, struct wire_reader *r, struct err *err)
{
    struct proxy_transfer **at = find(k, wire_get_uint(r));
    size_t len;
    const void *data = wire_get_bytes(r, &len);
    if (!at) /* it could not be begun; the front will hear of it */
        return 0;
    if (len > (*at)->wanted)
        return malformed(err, "more of a body than was announced");
    if (buf_add(&(*at)->body, data, len) < 0)
        return err_set(err, ERR_MEMORY, "no memory");
    (*at)->wanted -= len;
    return (*at)->wanted ? 0 : begin(at);
}

void proxy_transfer_close(struct proxy_keys *k, uint64_t stream)
{
    struct proxy_transfer **at = find(k, stream);
    if (at)
        drop(at);
}

/* ---- ends ---- */

/* Nothing of the request has left us. */
static bool not_connected(CURLcode code)
{
    static const CURLcode codes[] = {CURLE_OPERATION_TIMEDOUT,       CURLE_COULDNT_CONNECT,
                                     CURLE_COULDNT_RESOLVE_HOST,     CURLE_SSL_CONNECT_ERROR,
                                     CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i] == code)
            return true;
    return false;
}

static enum proxy_end end_of(const struct proxy_transfer *t, CURLcode code)
{
    return code == CURLE_OK                  ? PROXY_END_WHOLE
           : !t->told && not_connected(code) ? PROXY_END_UNREACHABLE
                                             : PROXY_END_BROKEN;
}

static void finish(struct proxy_transfer **at, enum proxy_end how)
{
    struct proxy_transfer *t = *at;
    struct buf rest;
    if (t->drop_ms) {
        drop(at);
        return;
    }
    buf_init(&rest, PROXY_HIDE_HELD);
    int r = how == PROXY_END_WHOLE ? tell_status(t) : 0;
    if (r == 0)
        r = proxy_hide_end(&t->keys->keys[t->upstream].hidden, &t->hiding, &rest);
    if (r == 0 && rest.len)
        r = tell_bytes(t, rest.data, rest.len);
    if (r == 0)
        (void)!tell(t->keys, WIRE_PROXY_END, t->stream, how);
    buf_done(&rest);
    drop(at);
}

void proxy_transfer_reap(struct proxy_keys *k)
{
    int left;
    for (CURLMsg *m; (m = curl_multi_info_read(k->multi, &left));) {
        struct proxy_transfer *t = NULL;
        const CURLcode code = m->data.result;
        if (m->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&t);
        finish(find(k, t->stream), end_of(t, code));
    }
    for (size_t i = 0; i < LIMIT_PROXY_STREAMS; i++) {
        const struct proxy_transfer *t = k->transfers[i];
        if (t && t->drop_ms && k->now_ms >= t->drop_ms)
            drop(&k->transfers[i]);
        else if (t && t->easy && !t->paused &&
                 k->now_ms - t->last_ms >= k->policy->proxy.silence_ms)
            finish(&k->transfers[i], PROXY_END_SILENT);
    }
}

void proxy_transfer_resume(struct proxy_keys *k)
{
    for (size_t i = 0; i < LIMIT_PROXY_STREAMS && !full(k); i++) {
        struct proxy_transfer *t = k->transfers[i];
        if (!t || !t->paused)
            continue;
        t->paused = false;
        t->last_ms = k->now_ms;
        curl_easy_pause(t->easy, CURLPAUSE_CONT);
    }
}

void proxy_transfer_detach(struct proxy_keys *k, uint64_t call)
{
    for (size_t i = 0; i < LIMIT_PROXY_STREAMS; i++)
        if (k->transfers[i] && k->transfers[i]->call == call)
            k->transfers[i]->drop_ms = k->now_ms + LIMIT_PROXY_LINGER_MS;
}

void proxy_transfer_drop_all(struct proxy_keys *k)
{
    for (size_t i = 0; i < LIMIT_PROXY_STREAMS; i++)
        if (k->transfers[i])
            drop(&k->transfers[i]);
}
