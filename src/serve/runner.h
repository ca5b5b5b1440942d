/* SPDX-License-Identifier: Apache-2.0 */
/* One runner: `cordon` itself, for one request, so that a crash or a hang is that request's alone. It is started without
 * words and waits for them.
 *
 * Takes:   its words, and the bytes of its standard input.
 * Gives:   what it printed, bounded, and how it ended.
 * Never:   reads what it printed; waits for it; lets it outlive us (the kernel kills it with us).
 * Runs in: cordond.
 */
#ifndef SERVE_RUNNER_H
#define SERVE_RUNNER_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct serve_runner {
    pid_t pid; /* 0: reaped, or never started */
    int pidfd, out, err;
    int order; /* where its words go, and where it says that everything is printed; -1: it is gone */
    struct buf text;   /* its standard output */
    char said[400];    /* the beginning of its standard error, NUL-terminated */
    uint64_t kill_ns;  /* after SIGTERM: when SIGKILL follows; 0: nobody asked it to end */
    bool flooded;      /* it printed more than LIMIT_SERVE_ANSWER and was killed */
    bool done;         /* it said that everything is printed: only its end is to come */
    bool killed;       /* a signal ended it before that: what it printed is not whole */
    bool session_over; /* and that the session that was called is over */
    int status;        /* exit status, 128 + n for a signal; once it is done or reaped */
};

/* What it says when everything is printed: its exit status, and whether the session that was called is over. */
enum { SERVE_RUNNER_SAID = 2 };

#define SERVE_RUNNER_INIT ((struct serve_runner){.pidfd = -1, .out = -1, .err = -1, .order = -1})

/* CORDON: the path of the program. */
ERR_MUST_USE int serve_runner_start(struct serve_runner *r, const char *cordon, struct err *err);
/* What it will probably be asked, so that it opens what that needs; the order may say something else. One that is gone
 * is met when it gets its order. */
void serve_runner_expect(struct serve_runner *r, const char *const *argv);
/* What it is to do, once: the words of its command line, the first being its name, and its standard input; USER: for whom.
 * An error: it ended before. */
ERR_MUST_USE int serve_runner_order(struct serve_runner *r, uid_t user, const char *const *argv,
                                    const void *input, size_t len, struct err *err);
/* Whether a signal stopped it (SIGSTOP). The kernel says so, so one that is slow is not taken for it. */
bool serve_runner_stands_still(const struct serve_runner *r);
/* Takes what it printed; reaps it where it is gone. Call after poll said so of one of its descriptors. */
void serve_runner_take(struct serve_runner *r);
/* One that is done may end: it waits for that, so that its end is in nobody's way. */
void serve_runner_release(struct serve_runner *r);
bool serve_runner_held(const struct serve_runner *r);
/* SIGTERM now, SIGKILL after LIMIT_SERVE_STOP_MS. */
void serve_runner_stop(struct serve_runner *r, uint64_t now_ns);
void serve_runner_kill(struct serve_runner *r);
/* Whether what it printed is whole; and whether there is no process any more. */
bool serve_runner_ended(const struct serve_runner *r);
bool serve_runner_over(const struct serve_runner *r);
/* Kills and reaps it where it lives. */
void serve_runner_done(struct serve_runner *r);

#endif
