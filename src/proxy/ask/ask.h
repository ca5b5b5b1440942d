/* SPDX-License-Identifier: Apache-2.0 */
/* One question to a model of the gateway: the bytes of its request, and what the bytes of the reply say.
 *
 * Takes:   a prompt, which is a user's and nothing else; a system message of the operator's; the reply, as it came.
 * Gives:   a request of one of the two protocols; the text of the model, or how it ended instead.
 * Never:   lets the prompt become more than one message of the role `user`; takes a reply that is not whole.
 * Runs in: cordon-ask, confined; fuzz targets.
 */
#ifndef PROXY_ASK_ASK_H
#define PROXY_ASK_ASK_H

#include "base/buf.h"
#include "base/err.h"
#include "sys/gateway.h"

#include <stdbool.h>
#include <stdint.h>

struct ask_question {
    bool anthropic;
    const char *model;
    struct buf system, prompt; /* system: empty: none */
    uint64_t tokens;           /* of the answer, at most */
};
/* HOST and TOKEN are the gateway's. ERR_FORMAT: a text that is no UTF-8. */
ERR_MUST_USE int ask_request(const struct ask_question *q, const char *host, const char *token,
                             struct buf *out, struct err *err);

struct ask_answer {
    enum gateway_end end;
    struct buf text; /* of the model, at most LIMIT_ASK_TEXT; the caller's, ask_answer_done */
    bool cut;        /* there was more, or would have been */
    char why[300];   /* where there is none: printable, one line */
};
void ask_reply(const char *data, size_t len, bool anthropic, struct ask_answer *ret);
void ask_answer_done(struct ask_answer *a);

#endif
