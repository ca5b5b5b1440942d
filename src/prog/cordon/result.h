/* SPDX-License-Identifier: Apache-2.0 */
/* A request carried out and its result as people and programs get it.
 *
 * Takes:   a request of the flow.
 * Gives:   the streams or the one JSON object, one line about what went wrong, the exit status.
 * Never:   prints a guest's byte to a terminal unchanged.
 * Runs in: `cordon`.
 */
#ifndef PROG_CORDON_RESULT_H
#define PROG_CORDON_RESULT_H

#include "flow/flow.h"

struct jail_options;

/* Runs REQ with our own descriptors and prints its result. Returns the exit status, or
 * ERR_USAGE. */
int result_run(const char *who, struct flow_request *req, const struct jail_options *o, bool json,
               struct err *err);

/* The parts of result_run, for a command that keeps one context for several requests: opens gate and audit, once; sets the
 * client and how long it waits; makes the rules of what is scrubbed and redacted; chooses how text is escaped. */
ERR_MUST_USE int result_open_gate(struct flow_context *context, bool json, struct err *err);
void result_ask(struct flow_request *req, const struct jail_options *o);
ERR_MUST_USE int result_rules(struct flow_request *req, struct output_rules **ret, struct err *err);
enum output_escape result_escape(const struct flow_request *req, const struct jail_options *o);

/* The same where nothing is run: prints nothing unless there is no verdict. */
int result_check(const char *who, struct flow_request *req, bool json, struct err *err);

/* From now on a result is the last event of a stream: --events. */
void result_as_events(bool yes);
ERR_MUST_USE int result_print_json(const struct flow_result *r); /* ERR_MEMORY: none for it */
void result_print_text(const struct flow_result *r);             /* to stderr */
void result_print_value(const struct flow_result *r); /* to stdout: FINAL, or the last expression */

/* Whether what goes there may have colour: a terminal, and nobody said NO_COLOR. */
bool result_colour(int fd);

/* One line on stderr, in which nothing of TEXT acts on a terminal. */
void result_complain(const char *who, const char *text);

/* The same about what is no error: without its colour. */
void result_note(const char *who, const char *text);

/* Complains and gives the exit status of a wrong command line, where it would have run a program. */
int result_usage(const char *who, const struct err *err);

/* The same before there was a run: a fault of the machine is a refusal, with its JSON where that was
 * asked for, and not the caller's mistake. */
int result_failed(const char *who, bool json, const struct err *err);
int result_refused(const char *who, bool json, const struct err *err);
int result_unjudged(const char *who, bool json, const struct err *err); /* of `cordon check` */

#endif
