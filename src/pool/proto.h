/* SPDX-License-Identifier: Apache-2.0 */
/* What a client asks and what the holder answers, as structs; the frames are the wire's.
 *
 * Takes:   structs, or a frame from the other side.
 * Gives:   a frame, or a struct in which every field was checked: names are names, limits make
 *          sense, nothing was cut.
 * Never:   hands on a field that it did not look at.
 * Runs in: `cordon`, cordon-holder.
 */
#ifndef POOL_PROTO_H
#define POOL_PROTO_H

#include "base/buf.h"
#include "pool/pool.h"
#include "wire/msg.h"

/* The numbers of LENT. */
#define POOL_LENT_NUMBERS(X)                                                                       \
    X(call)       /* how many came before this one in the session */                               \
    X(host_calls) /* of tools, that the session has used up */                                     \
    X(generation) /* branches between it and a session that was made */                            \
    X(ran)        /* how many of its calls ran; others were refused, and changed nothing */        \
    X(changed_ns) /* the last change in its files, in the time of files; 0: none */                \
    X(rules)      /* the mark of the rules that it was made by; 0: its profile is built in */

/* The numbers of BACK. */
#define POOL_USE_NUMBERS(X)                                                                        \
    X(host_calls) /* in this call */                                                               \
    X(wall_us)                                                                                     \
    X(cpu_us)                                                                                      \
    X(memory)                                                                                      \
    X(ran)        /* 1: a guest byte ran */                                                        \
    X(changed_ns) /* the last change in the session's files, in the time of files; 0: unknown */

/* The rules of a profile that the policy made or changed: its sessions have a template of their own, which is told them. */
#define POOL_RULES_NUMBERS(X)                                                                      \
    X(mark) /* what tells them from others; 0: the profile is built in, and nothing rides along */ \
    X(threads)                                                                                     \
    X(compute_only)                                                                                \
    X(installed) /* installed packages are on its path */

/* The numbers of SESSION_IS. */
#define POOL_SESSION_NUMBERS(X)                                                                    \
    X(serial)                                                                                      \
    X(pid) /* of the guest, on the host; 0: over */                                                \
    X(age_ms)                                                                                      \
    X(idle_ms)     /* since the last call ended */                                                 \
    X(idle_end_ms) /* after so long it ends */                                                     \
    X(calls)                                                                                       \
    X(host_calls)                                                                                  \
    X(generation)                                                                                  \
    X(wall_us) /* of all calls */                                                                  \
    X(cpu_us)                                                                                      \
    X(memory) /* the limit */                                                                      \
    X(files)  /* bytes that it holds in files */                                                   \
    X(held)   /* bytes of memory, files too; of an idle one, else 0 */                             \
    X(records)                                                                                     \
    X(dropped)

/* The numbers of SESSION_LOG. */
#define POOL_LOG_NUMBERS(X)                                                                        \
    X(records)                                                                                     \
    X(dropped) /* the oldest, for want of room */                                                  \
    X(bytes)

/* The numbers of POOL_SET; UINT64_MAX: as it is. */
#define POOL_SET_NUMBERS(X)                                                                        \
    X(warm)                                                                                        \
    X(budget)                                                                                      \
    X(idle_exit_ms)                                                                                \
    X(renew_ms)   /* how old a template gets */                                                    \
    X(renew_runs) /* how many of its children are lent */

/* The numbers of POOL_IS, for the holder itself ... */
#define POOL_HOLDER_NUMBERS(X)                                                                     \
    X(serial) /* 0 */                                                                              \
    X(pid)                                                                                         \
    X(age_ms)                                                                                      \
    X(idle_exit_ms)                                                                                \
    X(budget)                                                                                      \
    X(waiting_memory) /* what the waiting children are taken to cost */                            \
    X(available)      /* memory of the machine */                                                  \
    X(clients)                                                                                     \
    X(sessions)                                                                                    \
    X(leases)                                                                                      \
    X(declined)                                                                                    \
    X(refused_peers)                                                                               \
    X(bad_frames)

/* ... and for a template. */
#define POOL_TEMPLATE_NUMBERS(X)                                                                   \
    X(serial)                                                                                      \
    X(age_ms)                                                                                      \
    X(warm)    /* how many are to wait */                                                          \
    X(ready)   /* how many do */                                                                   \
    X(asked)   /* on their way */                                                                  \
    X(waiters) /* clients that wait for one */                                                     \
    X(lent)    /* out with a client */                                                             \
    X(sessions)                                                                                    \
    X(made)     /* children since the holder began */                                              \
    X(starts)   /* of the template */                                                              \
    X(crashes)  /* of the template */                                                              \
    X(retry_ms) /* until the next try; 0: none is due */                                           \
    X(last_use_ms)

#define X(name) uint64_t name;
struct pool_lent_numbers {
    POOL_LENT_NUMBERS(X)
};
struct pool_use_numbers {
    POOL_USE_NUMBERS(X)
};
struct pool_rules_numbers {
    POOL_RULES_NUMBERS(X)
};
struct pool_session_numbers {
    POOL_SESSION_NUMBERS(X)
};
struct pool_log_numbers {
    POOL_LOG_NUMBERS(X)
};
struct pool_set_numbers {
    POOL_SET_NUMBERS(X)
};
struct pool_holder_numbers {
    POOL_HOLDER_NUMBERS(X)
};
struct pool_template_numbers {
    POOL_TEMPLATE_NUMBERS(X)
};
#undef X

/* One struct for all requests; which fields are set, the table of messages says. */
struct pool_request {
    enum wire_type type;
    char name[POOL_NAME + 1];
    char language[POOL_LANGUAGE + 1]; /* empty: the default one */
    char profile[POOL_PROFILE + 1];
    char role[POOL_ROLE + 1];
    char reason[POOL_REASON + 1];
    char note[POOL_NOTE + 1];
    bool packages;
    bool yes;        /* the message's one truth value: for a fork; alive; by force */
    uint64_t number; /* its one number: patience, idle time, serial */
    uint64_t budget; /* bytes that idle sessions may hold, with what is asked; 0: nobody says */
    struct jail_limits limits;
    struct pool_use_numbers use;
    struct pool_set_numbers set;
    struct pool_rules_numbers rules;
};

ERR_MUST_USE int pool_request_write(const struct pool_request *q, struct buf *out, struct err *err);
/* ERR_FORMAT for what is no request or has a field that makes no sense. */
ERR_MUST_USE int pool_request_read(const void *frame, size_t len, struct pool_request *ret,
                                   struct err *err);
size_t pool_request_descriptors(enum wire_type type); /* how many may ride along */
enum { POOL_REQUEST_RIDE = 2 };                       /* the most of them */

/* And one for all replies. */
struct pool_reply {
    enum wire_type type;
    char name[POOL_NAME + 1];
    char language[POOL_LANGUAGE + 1];
    char profile[POOL_PROFILE + 1];
    char role[POOL_ROLE + 1];
    char state[16]; /* of DECLINED: the word */
    char reason[POOL_REASON + 1];
    char note[POOL_NOTE + 1];
    union {
        struct pool_lent_numbers lent;
        struct pool_session_numbers session;
        struct pool_log_numbers log;
        struct pool_holder_numbers holder;
        struct pool_template_numbers template;
        uint64_t numbers[16];
    };
};

ERR_MUST_USE int pool_reply_write(const struct pool_reply *p, struct buf *out, struct err *err);
ERR_MUST_USE int pool_reply_read(const void *frame, size_t len, struct pool_reply *ret,
                                 struct err *err);

#endif
