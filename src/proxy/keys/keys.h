/* SPDX-License-Identifier: Apache-2.0 */
/* The process that has the keys: connections to upstreams by libcurl, who may call, records.
 *
 * Takes:   upstreams with their keys, clients with their budgets, frames of the front.
 * Gives:   bytes of upstreams to the front; a record of each call.
 * Never:   parses what a client or an upstream wrote (libcurl reads the framing of HTTP and TLS); lets a key out but to its own
 *          upstream: not to the front, a log, a record or a core.
 * Runs in: cordon-proxy.
 */
#ifndef PROXY_KEYS_KEYS_H
#define PROXY_KEYS_KEYS_H

#include "audit/audit.h"
#include "gate/gate.h"
#include "policy/policy.h"
#include "policy/schema.h"
#include "proxy/keys/hide.h"
#include "proxy/table.h"
#include "wire/queue.h"

#include <curl/curl.h>

#define PROXY_CLIENTS (POLICY_CLIENTS_MAX + 2) /* the policy's, llm() and the judges */

struct proxy_key {
    char *header; /* the whole line; NULL: there is none */
    struct proxy_hidden hidden;
};

/* A call that was let in and is not over. */
struct proxy_admitted {
    uint64_t call, attempts;
    unsigned client;
    char model[256];
};

struct proxy_keys;

/* An answer that comes in, or is asked for. */
struct proxy_transfer {
    struct proxy_keys *keys;
    uint64_t call, stream, wanted; /* wanted: bytes of the body that are still to come */
    unsigned upstream;
    enum proxy_path path;
    CURL *easy;
    struct curl_slist *headers;
    struct buf body, extra; /* extra: headers of the client's that are handed on, a line each */
    struct proxy_hiding hiding;
    bool told, paused;
    uint64_t last_ms,
        drop_ms; /* drop_ms: its call is over; what it still says goes nowhere; 0: it is not */
};

struct proxy_spent {
    uint64_t day, tokens;
};

struct proxy_keys {
    const struct policy *policy;
    struct gate *gate;
    struct audit *audit;
    struct proxy_key *keys;     /* one an upstream */
    const char *const *clients; /* their names */
    const uint64_t *budgets;
    size_t nclients;
    int state; /* the state folder, for what was spent; -1: none is kept */
    int sock;  /* to the front */
    CURLM *multi;
    struct proxy_transfer *transfers[LIMIT_PROXY_STREAMS];
    struct proxy_admitted calls[LIMIT_PROXY_STREAMS];
    struct proxy_spent spent[PROXY_CLIENTS];
    struct wire_queue out; /* to the front */
    bool unrecorded; /* the last record could not be written: nobody is let in until one can be */
    uint64_t now_ms;
};

/* keys.c: the key of each upstream, out of its file or variable; the variable is wiped. */
ERR_MUST_USE int proxy_keys_read(struct proxy_keys *k, struct err *err);
void proxy_keys_wipe(struct proxy_keys *k);

/* transfers.c */
ERR_MUST_USE int proxy_transfer_open(struct proxy_keys *k, struct wire_reader *r, struct err *err);
ERR_MUST_USE int proxy_transfer_body(struct proxy_keys *k, struct wire_reader *r, struct err *err);
void proxy_transfer_close(struct proxy_keys *k, uint64_t stream);
/* What libcurl finished, and who was silent for too long. */
void proxy_transfer_reap(struct proxy_keys *k);
void proxy_transfer_resume(struct proxy_keys *k);
/* The answer of CALL was whole: its connection may come to its end by itself, and so serve another call. */
void proxy_transfer_detach(struct proxy_keys *k, uint64_t call);
void proxy_transfer_drop_all(struct proxy_keys *k);

/* calls.c: who may call, and what it took. */
ERR_MUST_USE int proxy_calls_ask(struct proxy_keys *k, struct wire_reader *r, struct err *err);
ERR_MUST_USE int proxy_calls_over(struct proxy_keys *k, struct wire_reader *r, uint64_t *ret_call,
                                  struct err *err);
/* The client whose call it is, for one more attempt; -1: nobody let it in. */
int proxy_calls_attempt(struct proxy_keys *k, uint64_t call);
void proxy_calls_load(struct proxy_keys *k);

/* loop.c: until the front ends or a signal comes. STOP: a signalfd. */
ERR_MUST_USE int proxy_keys_run(struct proxy_keys *k, int stop, struct err *err);

#endif
