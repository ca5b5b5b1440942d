/* SPDX-License-Identifier: Apache-2.0 */
/* A runner of cordond: this program, started ahead, that waits for its words and its standard input.
 *
 * Takes:   messages of cordond, which is its parent: words that are expected, then its words, and a file that becomes
 *          standard input.
 * Gives:   the words as a command line; all else is as if it had been started with them.
 * Never:   keeps anything of a request for another: it has one, and ends with it; uses what it opened ahead where opening
 *          it now would find something else.
 * Runs in: `cordon`, before its command.
 */
#ifndef PROG_CORDON_READY_H
#define PROG_CORDON_READY_H

#include "flow/context.h"

#include <stdbool.h>
#include <stddef.h>

#define READY_WORD "--from-cordond" /* src/serve/runner.c says it */

/* Waits. False: there will be no request; the program is to end. */
bool ready_wait(int *argc, char ***argv);
/* Policy, gate and audit that were opened ahead, with the same --policy (NULL: none): the caller's, to close. NULL: there
 * are none, or they are not what opening them now would find. */
struct flow_context *ready_context(const char *policy);
/* What of the output is scrubbed and redacted, for CONTEXT from above and exactly the words that were expected: the
 * caller's, to free. NULL: it is not known. */
struct output_rules *ready_rules(const struct flow_context *context);
/* Whether this is the runner of a server. */
bool ready_served(void);
/* *RET: a pidfd of the server whose runner this is, the caller's to close; -1: it is nobody's. */
ERR_MUST_USE int ready_server(int *ret, struct err *err);
/* The session that was called is over: cordond hears so with the status. */
void ready_session_over(void);
/* The exit status is known: where everything is printed and taken, cordond hears so, and need not wait for our end. */
void ready_done(int status);

/* run.c: opens what a run with these words needs, and leaves it in CONTEXT, which the caller closes in any case.
 * RET_POLICY is what --policy said. False: not all of it is there. */
bool run_ahead(int argc, char **argv, struct flow_context *context, struct output_rules **ret_rules,
               char *ret_policy, size_t size);

#endif
