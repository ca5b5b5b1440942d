/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the gate share, and nobody else sees.
 *
 * Takes:   an open gate.
 * Gives:   its parts: line, rates, breakers, people, arena; each says what it does under the lock.
 * Never:   calls back under the lock: what happened is noted, and told when the lock is free.
 * Runs in: the supervisor.
 */
#ifndef GATE_INSIDE_H
#define GATE_INSIDE_H

#include "gate/gate.h"
#include "gate/map.h"

enum gate_counter {
#define X(name, text) GATE_COUNTER_##name,
    GATE_COUNTERS(X)
#undef X
        GATE_COUNTER_COUNT
};

struct gate_noted {
    enum gate_event_kind kind;
    char client[64], tool[32], run[40], subject[64], detail[320];
    uint64_t seconds;
    const char *code, *language; /* the request's, which outlives the note */
    size_t code_len;
};

enum { GATE_NOTED_MAX = 8 };

struct gate {
    const struct gate_config *config;
    struct gate_map map;
    int own_dir; /* the state folder, where we opened it */
    struct gate_noted noted[GATE_NOTED_MAX];
    size_t nnoted;
};

struct gate_ticket {
    struct gate *g;
    struct gate_request request;
    const struct gate_tool *tool;
    uint32_t row, client;
    uint64_t number, admitted_ns;
    uint64_t tool_key, request_key; /* of the breakers */
};

uint64_t gate_now(const struct gate *g);
void gate_count(struct gate *g, enum gate_counter counter); /* under the lock */

/* ---- events ---- */

/* Kept until gate_tell, which is called without the lock. Past GATE_NOTED_MAX the oldest goes. The note
 * may be filled in further until then. */
struct gate_noted *gate_note(struct gate *g, enum gate_event_kind kind, const struct gate_ticket *t,
                             const char *subject, const char *detail, uint64_t seconds);
void gate_tell(struct gate *g);

/* Fills in a refusal; returns 0, so that `return gate_refuse(...)` reads well. */
int gate_refuse(struct gate_refusal *r, enum gate_rule rule, uint64_t retry_after_ms,
                const char *hint, const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* ---- rates (under the lock) ---- */

ERR_MUST_USE int gate_client_find(struct gate *g, const char *id, uint64_t now,
                                  uint32_t *ret_client, struct err *err);
/* Nanoseconds until the client may have another turn, beside WAITING that are in the queue; 0: now. */
uint64_t gate_window_wait(const struct gate *g, uint32_t client, uint64_t waiting, uint64_t now);
void gate_window_stamp(struct gate *g, uint32_t client, uint64_t now);
/* The task's row, or NULL when the table is full of busy ones. */
struct gate_task_row *gate_task_find(struct gate *g, const char *client, const char *task,
                                     uint64_t now);

/* refusals.c: a window that is over is told, and the next begins. */
void gate_refusals_flush(struct gate *g, const struct gate_client *client,
                         struct gate_client_row *row, uint64_t now);

/* ---- the queue (under the lock) ---- */

/* How long the one in ROW sleeps before it looks whether a slot was lost: 0.1 s for each in the queue up to it, at most
 * 1 s. What it reads of others may be old, and is a hint. */
uint64_t gate_queue_look_ms(const struct gate *g, uint32_t row);
uint64_t gate_queue_waiting(const struct gate *g, uint32_t client);
/* Gives free slots to those whose turn it is. */
void gate_queue_serve(struct gate *g, uint64_t now);

/* ---- breakers (under the lock) ---- */

enum gate_breaker_state { GATE_BREAKER_CLOSED = 0, GATE_BREAKER_OPEN = 1, GATE_BREAKER_HALF = 2 };
struct gate_breaker_word {
    bool refuse;
    bool of_tool;      /* any program is refused; else only this request */
    uint32_t probe[2]; /* breakers that let this one through as their probe; UINT32_MAX: none */
    uint64_t wait_ns;
    char text[96]; /* the error that opened it */
};
void gate_breaker_ask(struct gate *g, const struct gate_ticket *t, uint64_t now,
                      struct gate_breaker_word *ret_word);
void gate_breaker_probe(struct gate *g, const struct gate_ticket *t,
                        const struct gate_breaker_word *word);
void gate_breaker_feed(struct gate *g, const struct gate_ticket *t,
                       const struct gate_outcome *outcome, uint64_t now);
void gate_breaker_keys(struct gate_ticket *t);
/* Numbers, quoted words, paths and addresses out: the same fault gives the same text. */
void gate_breaker_normalise(const char *type, const char *message, char *out, size_t size);

/* ---- admission ---- */

int gate_refuse_stopped(const struct gate *g, struct gate_refusal *r);
/* Counts and tells a refusal; returns 0. */
int gate_refused(struct gate *g, const struct gate_ticket *t, const struct gate_refusal *r);
/* The client that asked has left (Ctrl-C): no wait goes on for it. */
bool gate_unwanted(const struct gate_request *q);
void gate_leave(struct gate_ticket *t, uint64_t now); /* under the lock: the slot is free */
/* The lock cannot be had: the row stays taken until this process ends. The ticket is gone. */
void gate_lose(struct gate_ticket *t);
/* Waits for a slot, and says once that it waits. As gate_admit; the ticket is gone unless it is 1. */
ERR_MUST_USE int gate_wait_for_slot(struct gate_ticket *t, uint64_t wait_ms, struct gate_refusal *r,
                                    struct err *err);

/* ---- people and judges (without the lock) ---- */

/* 1: go on; 0: refused. HASH is of the code. */
ERR_MUST_USE int gate_people_ask(struct gate_ticket *t, const char *because, const char hash[65],
                                 char used_id[24], struct gate_refusal *ret_refusal,
                                 struct err *err);
/* One request to cordon-approvals; it is ended here. On 0 REPLY holds a valid record; the caller frees
 * it always. */
struct buf;
ERR_MUST_USE int gate_keeper_ask(struct gate *g, struct buf *request, struct buf *reply,
                                 struct err *err);
ERR_MUST_USE int gate_arena_ask(struct gate_ticket *t, const char hash[65],
                                struct gate_refusal *ret_refusal, struct err *err);
bool gate_arena_covers(const struct gate *g, const struct gate_ticket *t);

#endif
