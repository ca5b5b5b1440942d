/* SPDX-License-Identifier: Apache-2.0 */
/* The gate's side of the approvals. The database is reached through cordon-approvals, one
 * question a start (gate/store.c says why). Waiting is a futex in the mapped file that every answer
 * changes: nobody polls the database.
 *
 * Waits: gate_bell_sleep in wait_for_answer; a person; the request's approval_wait_ms and the question's
 *          expiry; refused: gate.approval */
#include "gate/approval.h"

#include "gate/child.h"
#include "gate/inside.h"
#include "gate/lineage.h"
#include "gate/record.h"

#include "base/clock.h"
#include "base/limits.h"
#include "sys/child.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* One request to the keeper of the approvals. On 0 REPLY holds a valid record; the caller frees it
 * always. */
int gate_keeper_ask(struct gate *g, struct buf *request, struct buf *reply, struct err *err)
{
    const char *program = g->config->approvals_program;
    buf_init(reply, GATE_RECORD_MAX);
    if (!program)
        return err_set(
            err, ERR_MISSING,
            "cordon-approvals is not installed, so no person can be asked; reinstall Cordon");
    if (gate_record_end(request) < 0)
        return err_set(err, ERR_LIMIT, "the question is too long");
    char path[PATH_MAX]; /* it starts in the root folder */
    if (!realpath(program, path))
        return err_sys(err, "find %.120s", program);
    const char *const argv[] = {path, NULL}, *const env[] = {"LANG=C.UTF-8", NULL};
    struct gate_child c;
    uint64_t deadline = clock_now_ns() + LIMIT_APPROVALS_MS * CLOCK_NS_PER_MS;
    int r = gate_child_start(&c, argv, env, request->data, request->len, g->map.dir,
                             GATE_RECORD_MAX, err);
    if (r < 0) {
        gate_child_done(&c);
        return r;
    }
    gate_children_wait(&c, &deadline, 1);
    char how[SYS_CHILD_TOLD];
    sys_child_tell(c.status, how);
    if (c.late)
        r = err_set(
            err, ERR_STATE,
            "cordon-approvals did not answer within %llu ms and was ended; look whether the disk "
            "of the state folder is full, slow or broken",
            LIMIT_APPROVALS_MS);
    else if (c.status != 0 && c.text.len) /* its one line of complaint */
        r = err_set(err, ERR_STATE, "%.*s", c.text.len > 200 ? 200 : (int)c.text.len - 1,
                    c.text.data);
    else if (c.status != 0)
        r = err_set(err, ERR_STATE, "cordon-approvals (%.120s) %s", program, how);
    else if (!gate_record_valid(c.text.data, c.text.len))
        r = err_set(err, ERR_STATE, "cordon-approvals (%.120s) gave no answer that can be read",
                    program);
    else
        r = buf_add(reply, c.text.data, c.text.len);
    gate_child_done(&c);
    return r;
}

/* ---- asking ---- */

/* A yes is for this client, role, tool, code, arguments and paths, and for nothing else. */
static int binding(const struct gate_ticket *t, const char hash[65], char out[65])
{
    const struct gate_request *q = &t->request;
    struct buf all;
    buf_init(&all, GATE_RECORD_MAX);
    int r = gate_record_text(&all, "client", q->client.id);
    if (r == 0)
        r = gate_record_text(&all, "role", q->role ? q->role : t->g->config->role);
    if (r == 0)
        r = gate_record_text(&all, "tool", q->tool);
    if (r == 0)
        r = gate_record_text(&all, "code", hash);
    if (r == 0)
        r = gate_record_text(&all, "arguments", q->arguments);
    for (size_t i = 0; i < q->nwrites && r == 0; i++)
        r = gate_record_text(&all, "write", q->writes[i]);
    if (r == 0)
        gate_sha256_hex(all.data, all.len, out);
    buf_done(&all);
    return r;
}

/* AGAIN: it was asked, and is looked for; the keeper makes no new one of it. */
static int build_question(struct gate_ticket *t, const char *because, const char hash[65],
                          bool again, struct buf *out, struct err *err)
{
    const struct gate_request *q = &t->request;
    struct gate_lineage lineage;
    struct buf chain;
    char bound[65];
    int r = gate_lineage_read(&lineage, q->asker ? q->asker : getpid(), err);
    if (r < 0)
        return r;
    buf_init(&chain, 16384);
    r = binding(t, hash, bound);
    if (r == 0)
        r = gate_lineage_write(&lineage, &chain);
    if (r == 0)
        r = gate_record_text(out, "op", "ask");
    if (r == 0)
        r = gate_record_text(out, "client", q->client.id);
    if (r == 0)
        r = gate_record_text(out, "tool", q->tool);
    if (r == 0)
        r = gate_record_text(out, "run", q->run);
    if (r == 0)
        r = gate_record_text(out, "because", because);
    if (r == 0)
        r = gate_record_text(out, "binding", bound);
    if (r == 0)
        r = gate_record_text(out, "hash", hash);
    if (r == 0)
        r = gate_record_text(out, "arguments", q->arguments);
    if (r == 0)
        r = gate_record_bytes(out, "code", q->code ? q->code : "", q->code_len);
    if (r == 0)
        r = gate_record_bytes(out, "lineage", chain.data, chain.len);
    if (r == 0)
        r = gate_record_number(out, "expiry", t->g->config->approval.expiry_ms);
    if (r == 0 && again)
        r = gate_record_number(out, "again", 1);
    buf_done(&chain);
    return r < 0 ? err_set(err, r, "the code is too long to show to a person") : 0;
}

static int count_locked(struct gate *g, enum gate_counter counter, struct err *err)
{
    int r = gate_map_lock(&g->map, err);
    if (r < 0)
        return r;
    gate_count(g, counter);
    gate_map_unlock(&g->map);
    return 0;
}

enum { WAITS = 2, EXPIRED = 3 };

/* What the keeper said: 1 yes, 0 no (REFUSAL), WAITS: nobody has answered yet, until *RET_EXPIRES, EXPIRED: nobody has by now. */
static int understand(struct gate_ticket *t, const struct buf *reply, char used_id[24],
                      uint64_t *ret_expires, struct gate_refusal *r, struct err *err)
{
    struct gate *g = t->g;
    char result[16], id[24], by[96], why[240], detail[360];
    gate_record_copy(reply->data, reply->len, "result", result, sizeof result);
    gate_record_copy(reply->data, reply->len, "id", id, sizeof id);
    gate_record_copy(reply->data, reply->len, "by", by, sizeof by);
    gate_record_copy(reply->data, reply->len, "why", why, sizeof why);
    snprintf(detail, sizeof detail, "%s: %s", by, why);
    *ret_expires = gate_record_count(reply->data, reply->len, "expires");
    int e = 0;
    if (strcmp(result, "granted") == 0) {
        snprintf(used_id, 24, "%s", id);
        e = count_locked(g, GATE_COUNTER_approved, err);
        gate_note(g, GATE_EVENT_APPROVAL_USED, t, id, detail, 0);
        gate_tell(g);
        return e < 0 ? e : 1;
    }
    if (strcmp(result, "denied") == 0) {
        e = count_locked(g, GATE_COUNTER_denied, err);
        gate_note(g, GATE_EVENT_APPROVAL_DENIED, t, id, detail, 0);
        gate_tell(g);
        gate_refuse(r, GATE_RULE_DENIED, 0, "do something else: a person has said no",
                    "denied by %.90s: %.200s", by, why);
        snprintf(r->approval, sizeof r->approval, "%s", id);
        return e;
    }
    if (strcmp(result, "expired") == 0)
        return EXPIRED;
    if (strcmp(result, "full") == 0)
        return gate_refuse(r, GATE_RULE_APPROVAL, 60000, "wait until people have answered",
                           "too many unanswered questions of this client");
    if (gate_record_count(reply->data, reply->len, "new") == 1) {
        e = count_locked(g, GATE_COUNTER_asked, err);
        if (e < 0)
            return e;
        struct gate_noted *n =
            gate_note(g, GATE_EVENT_APPROVAL_ASKED, t, id, "", t->request.approval_wait_ms / 1000);
        n->code = t->request.code;
        n->code_len = t->request.code_len;
        n->language = t->request.language;
        gate_tell(g);
    }
    char hint[240];
    snprintf(hint, sizeof hint,
             "a person looks at it with `cordon approve show %s` and says `cordon approve yes %s`; "
             "then ask for the same again",
             id, id);
    gate_refuse(r, GATE_RULE_APPROVAL, 0, hint, "waits for a person: approval %s", id);
    snprintf(r->approval, sizeof r->approval, "%s", id);
    return WAITS;
}

static uint64_t wall_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static int expired(struct gate_ticket *t, struct gate_refusal *r, struct err *err)
{
    struct gate *g = t->g;
    char id[24];
    memcpy(id, r->approval, sizeof id);
    int e = count_locked(g, GATE_COUNTER_denied, err);
    gate_note(g, GATE_EVENT_APPROVAL_DENIED, t, id, "nobody answered in time", 0);
    gate_tell(g);
    gate_refuse(r, GATE_RULE_DENIED, 0, "find somebody who answers, then ask again",
                "nobody answered approval %s in time", id);
    memcpy(r->approval, id, sizeof id);
    return e;
}

#define LOOKS_AGAIN 4   /* that failed, after the first */
#define LOOK_MS     100 /* whether whoever asked still waits */

static void wait_for_answer(const struct gate_ticket *t, uint32_t bell, uint64_t ms)
{
    uint32_t *answers = &t->g->map.at->answers;
    const uint64_t end = clock_now_ns() + ms * CLOCK_NS_PER_MS;
    for (uint64_t now = clock_now_ns(); now < end && gate_load(answers) == bell;
         now = clock_now_ns()) {
        const uint64_t left = (end - now) / CLOCK_NS_PER_MS + 1;
        if (gate_unwanted(&t->request))
            return;
        gate_bell_sleep(answers, bell, left < LOOK_MS ? left : LOOK_MS);
    }
}

/* Whoever waits as long as the question is valid waits for its end, which is a no: it is asked a little later than the wait begins. */
static uint64_t last_instant(const struct gate_ticket *t)
{
    const uint64_t ms = t->request.approval_wait_ms;
    return ms && ms >= t->g->config->approval.expiry_ms ? UINT64_MAX
                                                        : clock_now_ns() + ms * CLOCK_NS_PER_MS;
}

static int ask_once(struct gate_ticket *t, const char *because, const char hash[65], bool again,
                    char used_id[24], uint64_t *ret_expires, struct gate_refusal *r,
                    struct err *err)
{
    struct buf question, reply;
    buf_init(&question, GATE_RECORD_MAX);
    int e = build_question(t, because, hash, again, &question, err);
    if (e == 0) {
        e = gate_keeper_ask(t->g, &question, &reply, err);
        if (e == 0)
            e = understand(t, &reply, used_id, ret_expires, r, err);
        buf_done(&reply);
    }
    buf_done(&question);
    return e;
}

/* An answer has all who wait look at the same time, and the lock of the database keeps no order among them: who has a question
 * there, and may have a yes to it by now, does not end because it came last. */
int gate_people_ask(struct gate_ticket *t, const char *because, const char hash[65],
                    char used_id[24], struct gate_refusal *r, struct err *err)
{
    struct gate *g = t->g;
    uint64_t end = last_instant(t), expires = 0;
    char first[24] = "";
    for (int failed = 0;;) {
        struct err own = ERR_INIT;
        uint32_t bell = gate_load(&g->map.at->answers);
        int e = ask_once(t, because, hash, first[0] != 0, used_id, &expires, r, &own);
        if (e < 0 && first[0] && failed++ < LOOKS_AGAIN && !gate_unwanted(&t->request))
            continue;
        *err = e < 0 ? own : *err;
        if (e != WAITS && e != EXPIRED)
            return e;
        /* ours has expired, too, where the keeper has one of somebody else who asks the same */
        if (first[0] && (e == EXPIRED || strcmp(first, r->approval) != 0)) {
            memcpy(r->approval, first, sizeof first);
            return expired(t, r, err);
        }
        memcpy(first, r->approval, sizeof first);
        uint64_t now = clock_now_ns(), wall = wall_ms();
        if (now >= end || gate_load(&g->map.at->stopped))
            return 0;
        if (expires <= wall)
            return expired(t, r, err);
        uint64_t ms = (end - now) / CLOCK_NS_PER_MS + 1;
        wait_for_answer(t, bell, expires - wall < ms ? expires - wall : ms);
        if (gate_unwanted(&t->request))
            return 0;
        if (expires <= wall_ms())
            return expired(t, r, err);
    }
}
