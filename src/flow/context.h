/* SPDX-License-Identifier: Apache-2.0 */
/* What stands behind every run of a process: the policy in force, the gate and the audit.
 *
 * Takes:   --policy, or nothing.
 * Gives:   the three, opened once; the gate's events end up in the audit.
 * Never:   lets anything run while one of them cannot be had.
 * Runs in: the supervisor.
 */
#ifndef FLOW_CONTEXT_H
#define FLOW_CONTEXT_H

#include "audit/audit.h"
#include "gate/gate.h"
#include "jail/spec.h"
#include "output/clean.h"
#include "policy/policy.h"
#include "pool/pool_client.h"

#define FLOW_SECRETS 32

struct flow_context {
    struct policy_store *store;
    const struct policy *policy; /* in force, borrowed from the store */
    const char *venv;  /* --venv: the environment in place of the policy's; NULL: the policy's */
    struct gate *gate; /* NULL until flow_context_open_gate */
    struct audit *audit;
    struct gate_config gate_config;
    struct gate_role *roles;
    struct gate_tool_rule *tools;
    struct gate_tool *host; /* those of the policy that are commands */
    size_t nhost;
    struct gate_judge *judges; /* the policy's, or our own where it names none */
    size_t njudges;
    const char **judge_words; /* the commands of judges that are models */
    char approvals[4096];     /* path of cordon-approvals */
    char ask[4096];           /* path of cordon-ask; empty: no model can be asked */
    char state[4096];         /* the state folder, as cordon-ask is told it */
    int audit_failed;         /* an event of the gate could not be recorded: the error .. */
    char audit_why[240];      /* .. and its words */
    void (*notice)(const struct gate_event *event); /* for a person who waits; may be NULL */
    void (*announce)(const char *alert);            /* the same for alerts of the audit */
    struct output_known
        secrets[FLOW_SECRETS]; /* values of our environment that no record may hold */
    size_t nsecrets;
    bool brief; /* set between open and staff: nobody waits, so locks are tried for a moment only */
    bool changed;             /* a new policy was taken up, and the audit has not heard of it */
    bool was_brief;           /* as it was when gate and audit were opened */
    bool is_ahead;            /* flow_ahead: the next run finds the two below */
    struct pool_client ahead; /* a connection to the holder, over which a child was asked for */
    struct pool_environment ahead_of;
};

/* Opens the policy and nothing else: enough to fill in a specification. ERR_USAGE: the policy is broken, and ERR says where. */
ERR_MUST_USE int flow_context_open(struct flow_context *h, const char *policy, struct err *err);

/* Where the machine's policy names the state folder, this process uses that one. */
ERR_MUST_USE int flow_pin_state(const struct policy *policy, struct err *err);

/* guarded.c: ERR_USAGE when the program of SPEC could write (or have copied to OUT; NULL: nowhere) something that trusted code opens or executes later:
 * the state folder, a policy file (also one that is not there yet), Cordon's programs, what the policy names. */
ERR_MUST_USE int flow_guard_shared(const struct flow_context *h, const struct jail_spec *spec,
                                   const char *out, struct err *err);

/* shown.c: ERR_USAGE where SPEC shows a folder (--ro, --rw) to a program of LANGUAGE that can open no file and is served none. */
struct language;
ERR_MUST_USE int flow_shown_check(const struct jail_spec *spec,
                                  const struct policy_profile *profile,
                                  const struct language *language, struct err *err);

/* Gate and audit too, unless they are open. APPROVALS, ASK: paths of cordon-approvals and cordon-ask, or NULL. */
ERR_MUST_USE int flow_context_open_gate(struct flow_context *h, const char *approvals,
                                        const char *ask, struct err *err);
/* Looks whether a policy file changed; for who lives on between runs, and only between them. 0: none did. 1: the
 * new policy is in force, and gate and audit of the old one are closed: staff it again. Negative: a file is
 * broken, ERR says where, and the old policy stays in force; that is on record too. */
ERR_MUST_USE int flow_context_refresh(struct flow_context *h, struct err *err);
/* For who opened all three long before its one run: whether opening them now would find the same, and nobody said stop
 * since. False: close it and open another. */
bool flow_context_is_current(struct flow_context *h);
void flow_context_close(struct flow_context *h);

#endif
