/* SPDX-License-Identifier: Apache-2.0 */
/* A request is checked against its row before anybody acts on it, so that cordond's loop never meets a verb with a handle
 * of the wrong kind, a limit where there is none, or a body that nobody reads. */
#include "serve/table.h"

#include "base/languages.h"

#include <string.h>

enum { NOTHING, LIMITS = 1, LANGUAGE = 2 }; /* a set: what may be given beside a request */

static const struct {
    uint64_t body;
    enum serve_handle handle;
    unsigned takes;
    enum { WORK, SETTLES } kind;
} rows[] = {
#define X(verb, handle, body, takes, kind, text)                                                   \
    [SERVE_##verb] = {body, SERVE_HANDLE_##handle, takes, kind},
    SERVE_VERBS(X)
#undef X
};

#define LIMIT_COUNT (sizeof(struct serve_limits) / sizeof(uint64_t))

enum serve_handle serve_verb_handle(enum serve_verb verb)
{
    return rows[verb].handle;
}

const char *serve_verb_files(enum serve_verb verb)
{
    static const char *const words[SERVE_VERB_COUNT] = {
        [SERVE_FILE_READ] = "read",           [SERVE_FILE_WRITE] = "write",
        [SERVE_FILE_LIST] = "list",           [SERVE_FILE_SEARCH] = "search",
        [SERVE_SNAPSHOT_CREATE] = "snapshot", [SERVE_SNAPSHOT_LIST] = "log",
        [SERVE_SNAPSHOT_DIFF] = "diff",       [SERVE_SNAPSHOT_RESTORE] = "restore"};
    return words[verb];
}

uint64_t serve_verb_body(enum serve_verb verb)
{
    return rows[verb].body;
}

const char *serve_language(uint64_t number)
{
    const struct language *l = NULL;
    while (number && (l = language_next(l)))
        number -= l->worker != NULL;
    return number || !l ? NULL : l->name;
}

bool serve_verb_settles(enum serve_verb verb)
{
    return rows[verb].kind == SETTLES;
}

struct serve_places serve_verb_places(enum serve_verb verb)
{
    return serve_verb_settles(verb) ? (struct serve_places){LIMIT_SERVE_REQUESTS, SERVE_PLACES}
                                    : (struct serve_places){0, LIMIT_SERVE_REQUESTS};
}

bool serve_handle_good(enum serve_handle kind, const char *handle)
{
    static const char *const prefixes[] = {
        [SERVE_HANDLE_NONE] = "", [SERVE_HANDLE_SESSION] = "mcp-", [SERVE_HANDLE_JOB] = "job-"};
    if (kind == SERVE_HANDLE_NONE)
        return handle[0] == 0;
    return strlen(handle) == SERVE_HANDLE && strncmp(handle, prefixes[kind], 4) == 0 &&
           strspn(handle + 4, "abcdefghijklmnopqrstuvwxyz234567") == SERVE_HANDLE - 4;
}

static int malformed(struct err *err, const char *what)
{
    return err_set(err, ERR_FORMAT, "a request that is not of the table: %s", what);
}

int serve_request_write(const struct serve_request *q, const void *body, struct buf *out,
                        struct err *err)
{
    const uint64_t limits[LIMIT_COUNT] = {q->limits.timeout_ms, q->limits.memory, q->limits.output};
    struct wire_writer w;
    wire_begin(&w, out, WIRE_SERVE_ASK);
    wire_put_uint(&w, q->number);
    wire_put_uint(&w, q->verb);
    wire_put_text(&w, q->handle);
    wire_put_uints(&w, limits, LIMIT_COUNT);
    wire_put_uint(&w, q->language);
    wire_put_uint(&w, q->body);
    wire_put_bytes(&w, body, serve_piece_length(q->body));
    return wire_end(&w) < 0 ? err_set(err, ERR_MEMORY, "no memory") : 0;
}

/* A text that fits, or nothing: what was cut is no handle. */
static void get_handle(struct wire_reader *r, char out[SERVE_HANDLE + 1])
{
    char text[SERVE_HANDLE + 2];
    wire_get_text(r, text, sizeof text);
    memcpy(out, text, SERVE_HANDLE + 1);
    out[SERVE_HANDLE] = 0;
    if (strlen(text) > SERVE_HANDLE)
        out[0] = '?'; /* no handle begins so */
}

int serve_request_read(struct wire_reader *r, struct serve_request *ret, struct err *err)
{
    struct serve_request q = {0};
    uint64_t limits[LIMIT_COUNT] = {0};
    if (r->type != WIRE_SERVE_ASK)
        return malformed(err, wire_name(r->type));
    q.number = wire_get_uint(r);
    const uint64_t verb = wire_get_uint(r);
    get_handle(r, q.handle);
    const size_t count = wire_get_uints(r, limits, LIMIT_COUNT);
    q.language = wire_get_uint(r);
    q.body = wire_get_uint(r);
    if (q.number == 0 || verb >= SERVE_VERB_COUNT || count != LIMIT_COUNT)
        return malformed(err, "its number, its verb or its limits");
    q.verb = (enum serve_verb)verb;
    q.limits = (struct serve_limits){limits[0], limits[1], limits[2]};
    if (!serve_handle_good(rows[verb].handle, q.handle))
        return malformed(err, "its handle");
    if (!(rows[verb].takes & LIMITS) && (limits[0] || limits[1] || limits[2]))
        return malformed(err, "limits where there are none");
    if (q.language && (!(rows[verb].takes & LANGUAGE) || !serve_language(q.language)))
        return malformed(err, "its language");
    if (q.body > rows[verb].body)
        return malformed(err, "the size of its body");
    *ret = q;
    return 0;
}

int serve_answer_write(const struct serve_answer *a, const void *body, struct buf *out,
                       struct err *err)
{
    struct wire_writer w;
    wire_begin(&w, out, WIRE_SERVE_SAYS);
    wire_put_uint(&w, a->request);
    wire_put_uint(&w, a->stand);
    wire_put_text(&w, a->handle);
    wire_put_uint(&w, a->number);
    wire_put_uint(&w, a->body);
    wire_put_bytes(&w, body, serve_piece_length(a->body));
    return wire_end(&w) < 0 ? err_set(err, ERR_MEMORY, "no memory") : 0;
}

int serve_answer_read(struct wire_reader *r, struct serve_answer *ret, struct err *err)
{
    struct serve_answer a = {0};
    if (r->type != WIRE_SERVE_SAYS)
        return malformed(err, wire_name(r->type));
    a.request = wire_get_uint(r);
    const uint64_t stand = wire_get_uint(r);
    get_handle(r, a.handle);
    a.number = wire_get_uint(r);
    a.body = wire_get_uint(r);
    if (a.request == 0 || stand >= SERVE_STANDS || a.body > LIMIT_SERVE_ANSWER)
        return malformed(err, "an answer");
    a.stand = (enum serve_stand)stand;
    *ret = a;
    return 0;
}

int serve_limits_write(const struct serve_limits *l, struct buf *out, struct err *err)
{
    const uint64_t limits[LIMIT_COUNT] = {l->timeout_ms, l->memory, l->output};
    struct wire_writer w;
    wire_begin(&w, out, WIRE_SERVE_LIMITS);
    wire_put_uints(&w, limits, LIMIT_COUNT);
    return wire_end(&w) < 0 ? err_set(err, ERR_MEMORY, "no memory") : 0;
}

int serve_limits_read(struct wire_reader *r, struct serve_limits *ret, struct err *err)
{
    uint64_t limits[LIMIT_COUNT] = {0};
    if (wire_get_uints(r, limits, LIMIT_COUNT) != LIMIT_COUNT)
        return malformed(err, "limits");
    *ret = (struct serve_limits){limits[0], limits[1], limits[2]};
    return 0;
}

int serve_piece_write(uint64_t request, const void *data, size_t len, struct buf *out,
                      struct err *err)
{
    struct wire_writer w;
    base_assert(len <= LIMIT_SERVE_PIECE);
    wire_begin(&w, out, WIRE_SERVE_PIECE);
    wire_put_uint(&w, request);
    wire_put_bytes(&w, data, len);
    return wire_end(&w) < 0 ? err_set(err, ERR_MEMORY, "no memory") : 0;
}
