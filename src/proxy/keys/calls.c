/* SPDX-License-Identifier: Apache-2.0 */
/* Who may call is decided here and not in the front, which reads hostile bytes: by the gate's token bucket (rates.model_calls, one bucket
 * a client) and by the client's budget of tokens for a day (UTC). What was spent is kept in the state folder, so that starting the gateway
 * anew gives nobody a second budget. A call whose record could not be written is the last one until a record can be written again.
 *
 * Waits: pread in *; the file of what was spent; none (the kernel's own); nothing was
 *        pwrite in *; the same; none (the kernel's own); no other call is let in */
#include "proxy/keys/keys.h"

#include "sys/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SPENT_FILE "proxy-spent"

static struct proxy_admitted *find(struct proxy_keys *k, uint64_t call)
{
    for (size_t i = 0; i < LIMIT_PROXY_STREAMS; i++)
        if (k->calls[i].call == call)
            return &k->calls[i];
    return NULL;
}

/* ---- budgets ---- */

static uint64_t today(void)
{
    return (uint64_t)time(NULL) / 86400;
}

void proxy_calls_load(struct proxy_keys *k)
{
    char text[8192], name[64];
    unsigned long long day, tokens;
    const int fd = openat(k->state, SPENT_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    const ssize_t n = fd < 0 ? 0 : pread(fd, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = 0;
    for (const char *line = text; *line;) {
        if (sscanf(line, "%63s %llu %llu", name, &day, &tokens) == 3)
            for (size_t i = 0; i < k->nclients; i++)
                if (strcmp(k->clients[i], name) == 0)
                    k->spent[i] = (struct proxy_spent){day, tokens};
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    if (fd >= 0)
        close(fd);
}

/* False: it could not be written. */
static bool save(const struct proxy_keys *k)
{
    struct buf text;
    struct err err = ERR_INIT;
    int fd = -1, r = 0;
    buf_init(&text, 16 * KIB);
    for (size_t i = 0; r == 0 && i < k->nclients; i++)
        if (k->spent[i].tokens)
            r = buf_printf(&text, "%s %llu %llu\n", k->clients[i],
                           (unsigned long long)k->spent[i].day,
                           (unsigned long long)k->spent[i].tokens);
    if (r == 0)
        r = state_file(k->state, SPENT_FILE, O_RDWR | O_CREAT, &fd, &err);
    const bool good = r == 0 && pwrite(fd, text.data, text.len, 0) == (ssize_t)text.len &&
                      ftruncate(fd, (off_t)text.len) == 0;
    if (fd >= 0)
        close(fd);
    buf_done(&text);
    return good;
}

static bool spent_all(struct proxy_keys *k, unsigned client)
{
    struct proxy_spent *s = &k->spent[client];
    if (s->day != today())
        *s = (struct proxy_spent){.day = today()};
    return k->budgets[client] && s->tokens >= k->budgets[client];
}

/* ---- asking ---- */

static int say(struct proxy_keys *k, uint64_t call, uint64_t status, uint64_t seconds,
               const char *why)
{
    struct buf frame;
    struct wire_writer w;
    buf_init(&frame, LIMIT_FRAME);
    wire_begin(&w, &frame, WIRE_PROXY_MAY);
    wire_put_uint(&w, call);
    wire_put_uint(&w, status);
    wire_put_uint(&w, seconds);
    wire_put_text(&w, why);
    return wire_queue_put(&k->out, &w, &frame);
}

/* 0, or the status that refuses it; *RET_SECONDS: when to come again. */
static uint64_t judge(struct proxy_keys *k, unsigned client, uint64_t *ret_seconds,
                      const char **ret_why)
{
    char bucket[64];
    uint64_t wait = 0;
    struct err err = ERR_INIT;
    *ret_seconds = 1;
    if (k->unrecorded) {
        *ret_why = "the gateway cannot write its record of calls; see its standard error";
        return 503;
    }
    if (spent_all(k, client)) {
        *ret_seconds = (today() + 1) * 86400 - (uint64_t)time(NULL);
        *ret_why = "the budget of this client for today is spent (proxy.clients: budget)";
        return 429;
    }
    snprintf(bucket, sizeof bucket, "proxy:%s", k->clients[client]);
    if (gate_bucket_take(k->gate, bucket, 1, &wait, &err) < 0) {
        *ret_why = "the gate cannot be asked";
        return 503;
    }
    if (wait) {
        *ret_seconds = wait / 1000000000ULL + 1;
        *ret_why = "too many calls of this client (rates.model_calls, rates.model_burst)";
        return 429;
    }
    return 0;
}

int proxy_calls_ask(struct proxy_keys *k, struct wire_reader *r, struct err *err)
{
    const uint64_t call = wire_get_uint(r), client = wire_get_uint(r);
    struct proxy_admitted *free = find(k, 0);
    const char *why = "";
    uint64_t seconds = 0;
    if (!call || find(k, call) || client >= k->nclients)
        return err_set(err, ERR_FORMAT, "the front sent what is not of the table: a call");
    if (!free)
        return say(k, call, 503, 1, "as many calls as the gateway carries at once");
    const uint64_t status = judge(k, (unsigned)client, &seconds, &why);
    if (status == 0) {
        *free = (struct proxy_admitted){.call = call, .client = (unsigned)client};
        wire_get_text(r, free->model, sizeof free->model);
    }
    return say(k, call, status, seconds, why);
}

int proxy_calls_attempt(struct proxy_keys *k, uint64_t call)
{
    struct proxy_admitted *c = call ? find(k, call) : NULL;
    return c && c->attempts++ < LIMIT_PROXY_ATTEMPTS ? (int)c->client : -1;
}

/* ---- the end ---- */

static int record(struct proxy_keys *k, const struct proxy_admitted *c, const char *status,
                  const char *why, const char *asked, const struct proxy_over *n,
                  const void *prompt, size_t len, struct err *err)
{
    char client[128];
    const struct audit_arg args[] = {
        {.name = "model", .kind = AUDIT_ARG_TEXT, .text = c->model},
        {.name = "upstreams", .kind = AUDIT_ARG_TEXT, .text = asked},
        {.name = "attempts", .kind = AUDIT_ARG_NUMBER, .number = (int64_t)n->attempts},
        {.name = "tokens_in", .kind = AUDIT_ARG_NUMBER, .number = (int64_t)n->tokens_in},
        {.name = "tokens_out", .kind = AUDIT_ARG_NUMBER, .number = (int64_t)n->tokens_out},
        {.name = "tokens_cut", .kind = AUDIT_ARG_NUMBER, .number = (int64_t)n->tokens_cut},
        {.name = "onset", .kind = AUDIT_ARG_NUMBER, .number = (int64_t)n->onset},
        {.name = "prompt", .kind = AUDIT_ARG_TEXT, .text = prompt, .len = len},
    };
    const struct audit_outcome outcome = {
        .status = status, .reason = *why ? why : NULL, .wall_us = n->ms * 1000};
    const struct audit_facts facts = {.client_id = client,
                                      .tool = "proxy",
                                      .args = args,
                                      .nargs = sizeof args / sizeof *args - (len ? 0 : 1),
                                      .outcome = &outcome};
    snprintf(client, sizeof client, "proxy:%s", k->clients[c->client]);
    return audit_event(k->audit, AUDIT_MODEL, &facts, err);
}

int proxy_calls_over(struct proxy_keys *k, struct wire_reader *r, uint64_t *ret_call,
                     struct err *err)
{
    char status[32], why[200], asked[400];
    uint64_t numbers[PROXY_OVER_NUMBERS] = {0};
    struct err bad = ERR_INIT;
    size_t len;
    struct proxy_admitted *c = find(k, wire_get_uint(r));
    wire_get_text(r, status, sizeof status);
    wire_get_text(r, why, sizeof why);
    wire_get_text(r, asked, sizeof asked);
    const size_t count = wire_get_uints(r, numbers, PROXY_OVER_NUMBERS);
    const void *prompt = wire_get_bytes(r, &len);
    if (!c || !c->call || count != PROXY_OVER_NUMBERS)
        return err_set(err, ERR_FORMAT, "the front sent what is not of the table: an end");
    const struct proxy_over n = {numbers[0], numbers[1], numbers[2],
                                 numbers[3], numbers[4], numbers[5]};
    if (!k->policy->proxy.prompts || len > LIMIT_PROXY_PROMPT)
        len = 0;
    (void)spent_all(k, c->client); /* a new day begins with nothing */
    k->spent[c->client].tokens += n.tokens_in + n.tokens_out + n.tokens_cut;
    const bool was = k->unrecorded;
    k->unrecorded = !save(k) || record(k, c, status, why, asked, &n, prompt, len, &bad) < 0;
    if (k->unrecorded && !was)
        fprintf(stderr, "cordon proxy: a call could not be recorded (%s): no other is let in\n",
                bad.code ? bad.msg : "what was spent cannot be kept");
    *ret_call = c->call;
    *c = (struct proxy_admitted){0};
    return 0;
}
