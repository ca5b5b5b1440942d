/* SPDX-License-Identifier: Apache-2.0 */
/* Exit statuses: one table for every command, printed by --help and repeated in docs/exec.md.
 *
 * Takes:   a result, and the signal that reached us meanwhile.
 * Gives:   the exit status; the lines of --help.
 * Never:   hides that a program did not run: that is 125, whatever the reason.
 * Runs in: `cordon`.
 */
#ifndef PROG_CORDON_EXITS_H
#define PROG_CORDON_EXITS_H

#include "flow/result.h"

enum {
    EXIT_DONE = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,      /* of a command that runs no program */
    EXIT_UNSAFE = 3,     /* of `eval` */
    EXIT_BUSY = 75,      /* of a session that is in another call: EX_TEMPFAIL of sysexits.h */
    EXIT_LIMIT = 124,    /* as timeout(1) has it */
    EXIT_NEVER_RAN = 125 /* as timeout(1) and docker have it */
};
#define EXIT_SIGNAL 128 /* and its number, as a shell has it */

/* Whose lines of the table --help prints. */
enum exits_of {
    EXITS_RUN = 1,     /* exec, run */
    EXITS_SESSION = 2, /* session, repl */
    EXITS_CHECK = 4,
    EXITS_EVAL = 8,
    EXITS_OTHER = 16,
    EXITS_ADVICE = 32, /* escalate */
    EXITS_MONITOR = 64,
    EXITS_ALL = 127,
};
void exits_print(enum exits_of of);

/* SIGNAL: what reached us during the run; 0: nothing did. */
int exits_status(const struct flow_result *r, int signal);
/* Of `check`, for which a refusal is the answer, and everything else no answer. */
int exits_verdict(enum flow_status status);

/* The signal that waits in STOP (jail_options_stop_fd), which is then read; 0: none. */
int exits_signal(int stop);
/* Says in R that this signal ended it, where it did: a run that came to its end is as it was, and false. */
bool exits_say_signal(struct flow_result *r, int signal);

/* Until jail_options_stop_fd takes signals: a Ctrl-C while the program is read, or its jail prepared, ends us with its line
 * and its status. A caller that ignores SIGINT is left alone. */
void exits_heed_early(void);

#endif
