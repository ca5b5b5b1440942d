/* SPDX-License-Identifier: Apache-2.0 */
/* What cordond counts of the requests that pass it, and their text for Prometheus.
 *
 * Takes:   requests as they begin and end.
 * Gives:   counters and histograms in Prometheus' text format, version 0.0.4.
 * Never:   has a word of a client in it: labels are names of our own tables.
 * Runs in: cordond.
 */
#ifndef SERVE_FIGURES_H
#define SERVE_FIGURES_H

#include "serve/table.h"

/* How a request ended. */
#define SERVE_ENDS(X)                                                                              \
    X(OK, "ok")                                                                                    \
    X(ERROR, "error")         /* the program's own exit status */                                  \
    X(LIMIT, "limit")         /* 124: a limit ended it */                                          \
    X(NEVER_RAN, "never_ran") /* 125: the judge, the gate or the jail refused it */                \
    X(CANCELLED, "cancelled") /* nobody wanted it any more, or the server ended */                 \
    X(CRASHED, "crashed")     /* its runner was killed, or printed too much */
enum serve_end {
#define X(name, word) SERVE_END_##name,
    SERVE_ENDS(X)
#undef X
        SERVE_END_COUNT
};

#define SERVE_BUCKETS 16
struct serve_times {
    uint64_t buckets[SERVE_BUCKETS + 1]; /* the last: all that took longer */
    uint64_t count, sum_ns;
};

struct serve_figures {
    uint64_t begun_s; /* of the server, seconds since 1970 */
    uint64_t asked[SERVE_VERB_COUNT], ended[SERVE_VERB_COUNT][SERVE_END_COUNT];
    uint64_t
        refused; /* by cordond itself: a handle that is nobody's, no place left, the server ends */
    uint64_t clients, turned_away,
        fronts; /* connections, those that were not let in, fronts that ended */
    struct serve_times times[SERVE_VERB_COUNT];
};

/* What is so at this moment. */
struct serve_moment {
    uint64_t clients, asks, running, kept, sessions;
    bool draining;
};

void serve_figures_end(struct serve_figures *f, enum serve_verb verb, enum serve_end end,
                       uint64_t took_ns);
ERR_MUST_USE int serve_figures_write(const struct serve_figures *f, const struct serve_moment *m,
                                     struct buf *out);

#endif
