/* SPDX-License-Identifier: Apache-2.0 */
/* The approvals: questions to people, durable, answered once, used once.
 *
 * Takes:   a question with the exact code and arguments; an answer with who and why.
 * Gives:   the approvals for `cordon approve`, and to the gate the one yes that fits.
 * Never:   lets the asker's own process tree answer; lets an answer be used twice, for other code,
 *          by another client, or after its time.
 * Runs in: the supervisor, `cordon approve`; the database lies in cordon-approvals.
 */
#ifndef GATE_APPROVAL_H
#define GATE_APPROVAL_H

#include "base/arena.h"
#include "gate/gate.h"
#include "gate/lineage.h"

enum gate_approval_state {
    GATE_ASKED,
    GATE_APPROVED, /* and not yet used */
    GATE_DENIED,
    GATE_EXPIRED, /* nobody answered in time, or the yes was not used in time: both mean no */
    GATE_USED,
};
const char *gate_approval_state_name(enum gate_approval_state s);

struct gate_approval {
    char id[24];
    enum gate_approval_state state;
    char client[64], tool[32], run[40], because[160]; /* because: the mode that asked */
    char hash[65];                                    /* SHA-256 of the code, hex */
    uint64_t asked, expires, answered, used;          /* seconds since 1970; 0: not yet */
    const char *arguments;                            /* in the arena */
    const char *code;
    size_t code_len;
    char by[96], why[240]; /* of the answer */
};

/* All of them (or only those that wait), newest last; strings in MEM. */
ERR_MUST_USE int gate_approvals_list(struct gate *g, bool waiting_only, struct arena *mem,
                                     struct gate_approval **ret_items, size_t *ret_count,
                                     struct err *err);
/* ID may be cut short as long as it names one. 1, or 0 when there is none. */
ERR_MUST_USE int gate_approval_show(struct gate *g, const char *id, struct arena *mem,
                                    struct gate_approval *ret_approval, struct err *err);

/* SELF is the answering process and its ancestors, read before it changed its user. 1: recorded. 0:
 * REFUSAL says why it may not, or why it is too late. A no is anybody's to say. */
ERR_MUST_USE int gate_approval_answer(struct gate *g, const char *id,
                                      const struct gate_lineage *self, bool yes, const char *why,
                                      struct gate_refusal *ret_refusal, struct err *err);
/* The same of the person at a client of `cordon serve`, whose cordond is the parent of SELF and of the process ASKER that
 * asked: only where the policy has approval.elicitation, and wants no other user. */
ERR_MUST_USE int gate_approval_elicited(struct gate *g, const char *id,
                                        const struct gate_lineage *self, pid_t asker, bool yes,
                                        struct gate_refusal *ret_refusal, struct err *err);
/* The same of a client of `cordon serve` by its tool, whose runner is SELF: only where the policy has approval.tool. A yes
 * counts where SELF and who asked have no process in common that counts; SELF needs no terminal. */
ERR_MUST_USE int gate_approval_by_tool(struct gate *g, const char *id,
                                       const struct gate_lineage *self, bool yes, const char *why,
                                       struct gate_refusal *ret_refusal, struct err *err);

#endif
