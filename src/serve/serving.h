/* SPDX-License-Identifier: Apache-2.0 */
/* One server: its clients, and the phases of its life.
 *
 * Takes:   signals, the time.
 * Gives:   what the loop waits for, and when it is over.
 * Never:   is seen outside of the room.
 * Runs in: cordond.
 */
#ifndef SERVE_SERVING_H
#define SERVE_SERVING_H

#include "serve/holding.h"
#include "sys/notify.h"

/* SERVING -> DRAINING (nothing new is begun, what runs goes on) -> CANCELLING (what runs is ended, and answered as such)
 *         -> LEAVING (clients are left, their sessions closed). A phase with nothing to do is skipped; SIGINT and a
 * second SIGTERM go to LEAVING from anywhere. */
enum serve_phase { SERVE_SERVING, SERVE_DRAINING, SERVE_CANCELLING, SERVE_LEAVING };

#define SERVE_FRONTS 2 /* clients beside those of the socket: HTTP's, and that of figures */
struct serve_server {
    struct serve_shared all;
    int listener;       /* the unix socket; -1: none, or it is closed by now */
    uint64_t accept_ns; /* no client is accepted before: there was no descriptor for the last */
    uint64_t full_ns;   /* since when a client waits for a place; 0: none does */
    bool one;     /* a single client, which was there from the start: the server ends with it */
    int no_token; /* an empty file, for the front of figures; -1: there is none */
    struct serve_client *http;
    struct serve_client *clients[LIMIT_SERVE_CLIENTS + SERVE_FRONTS];

    enum serve_phase phase;
    uint64_t until_ns; /* of the phase; UINT64_MAX: it has no end of its own */
    int signals;
    struct sys_notify manager;
    bool reloading, again;      /* again: SIGHUP came while the policy was read */
    struct serve_runner reader; /* of the policy */
    uint64_t reader_until_ns;
};

/* life.c */
ERR_MUST_USE int serve_life_begin(struct serve_server *s, struct err *err);
void serve_life_end(struct serve_server *s);
/* After poll, which saw SIGNALS or not: what they, the reader of the policy and the time bring about; when to look again. */
void serve_life_look(struct serve_server *s, bool signals, uint64_t now_ns);
uint64_t serve_life_next(const struct serve_server *s);
bool serve_life_over(const struct serve_server *s, uint64_t now_ns);
/* Clients are left at once. */
void serve_life_leave(struct serve_server *s, uint64_t now_ns);

#endif
