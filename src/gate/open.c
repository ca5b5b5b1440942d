/* SPDX-License-Identifier: Apache-2.0 */
/* Opening the gate, and what all its parts say things with: refusals, events, counters, names of
 * clients. Events are noted under the lock and told after it: whoever listens writes files. */
#include "gate/inside.h"

#include "base/fit.h"
#include "gate/lineage.h"
#include "sys/fd.h"
#include "sys/state.h"

#include <fcntl.h>
#include <nettle/sha2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)GATE_COUNTER_COUNT <= (int)GATE_COUNTERS_MAX, "counters fit in the file");

/* ---- words ---- */

static const char *const rule_words[] = {
#define X(name, word, text) word,
    GATE_RULES(X)
#undef X
};
static const char *const event_names[] = {
#define X(name, word) word,
    GATE_EVENTS(X)
#undef X
};

int gate_refuse(struct gate_refusal *r, enum gate_rule rule, uint64_t retry_after_ms,
                const char *hint, const char *fmt, ...)
{
    va_list ap;
    *r = (struct gate_refusal){
        .rule = rule, .word = rule_words[rule], .retry_after_ms = retry_after_ms};
    va_start(ap, fmt);
    fit_words(r->reason, sizeof r->reason, vsnprintf(r->reason, sizeof r->reason, fmt, ap));
    va_end(ap);
    snprintf(r->hint, sizeof r->hint, "%s", hint);
    return 0;
}

struct gate_noted *gate_note(struct gate *g, enum gate_event_kind kind, const struct gate_ticket *t,
                             const char *subject, const char *detail, uint64_t seconds)
{
    if (g->nnoted == GATE_NOTED_MAX) {
        memmove(&g->noted[0], &g->noted[1], sizeof g->noted[0] * (GATE_NOTED_MAX - 1));
        g->nnoted--;
    }
    struct gate_noted *n = &g->noted[g->nnoted++];
    *n = (struct gate_noted){.kind = kind, .seconds = seconds};
    if (t) {
        snprintf(n->client, sizeof n->client, "%s", t->request.client.id);
        snprintf(n->tool, sizeof n->tool, "%s", t->request.tool);
        snprintf(n->run, sizeof n->run, "%s", t->request.run ? t->request.run : "");
    }
    snprintf(n->subject, sizeof n->subject, "%s", subject ? subject : "");
    snprintf(n->detail, sizeof n->detail, "%s", detail ? detail : "");
    return n;
}

static const char *or_null(const char *s)
{
    return *s ? s : NULL;
}

void gate_tell(struct gate *g)
{
    base_assert(!g->map.locked);
    for (size_t i = 0; i < g->nnoted && g->config->on_event; i++) {
        const struct gate_noted *n = &g->noted[i];
        struct gate_event e = {.kind = n->kind,
                               .name = event_names[n->kind],
                               .client = or_null(n->client),
                               .tool = or_null(n->tool),
                               .run = or_null(n->run),
                               .subject = n->subject,
                               .detail = n->detail,
                               .seconds = n->seconds,
                               .code = n->code,
                               .language = n->language,
                               .code_len = n->code_len};
        g->config->on_event(g->config->ctx, &e);
    }
    g->nnoted = 0;
}

uint64_t gate_now(const struct gate *g)
{
    return g->config->now_ns ? g->config->now_ns(g->config->ctx) : gate_boot_ns();
}

void gate_count(struct gate *g, enum gate_counter counter)
{
    g->map.at->counters[counter]++;
}

void gate_counters_read(const struct gate *g, struct gate_counters *ret)
{
    const uint64_t *c = g->map.at->counters;
#define X(name, text) ret->name = gate_load(&c[GATE_COUNTER_##name]);
    GATE_COUNTERS(X)
#undef X
}

void gate_sha256_hex(const void *data, size_t len, char out[65])
{
    struct sha256_ctx h;
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_init(&h);
    sha256_update(&h, len, data);
    sha256_digest(&h, sizeof digest, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(out + 2 * i, 3, "%02x", digest[i]);
}

/* ---- clients ---- */

void gate_client_uid(struct gate_client *c, uid_t uid)
{
    *c = (struct gate_client){0};
    snprintf(c->id, sizeof c->id, "uid:%u", (unsigned)uid);
}

/* ---- opening ---- */

int gate_open(const struct gate_config *config, int state, struct gate **ret_gate, struct err *err)
{
    int r = gate_config_check(config, err);
    if (r < 0)
        return r;
    struct gate *g = calloc(1, sizeof *g);
    if (!g)
        return err_set(err, ERR_MEMORY, "no memory");
    g->config = config;
    g->own_dir = -1;
    g->map = (struct gate_map){.fd = -1, .stop_fd = -1};
    if (state < 0) {
        char path[STATE_PATH_MAX];
        r = state_path(path, sizeof path, err);
        if (r == 0)
            r = state_open(path, !config->readonly, &g->own_dir, err);
        state = g->own_dir;
    }
    if (r == 0)
        r = gate_map_open(&g->map, state, config->readonly, config->lock_ms, err);
    if (r < 0) {
        fd_close(g->own_dir);
        free(g);
        return r;
    }
    *ret_gate = g;
    return 0;
}

bool gate_is_current(const struct gate *g)
{
    char path[STATE_PATH_MAX];
    struct err err = ERR_INIT;
    return g->own_dir >= 0 && state_path(path, sizeof path, &err) == 0 &&
           state_is_same(AT_FDCWD, path, g->own_dir) && gate_map_is_current(&g->map);
}

void gate_close(struct gate *g)
{
    if (!g)
        return;
    for (size_t i = 0; i < GATE_ROWS; i++)
        base_assert(!g->map.mine[i]); /* a ticket or plan outlived the gate */
    gate_map_close(&g->map);
    fd_close(g->own_dir);
    free(g);
}
