/* The result of a run as people and programs get it.
 *
 * Takes:   an outcome of the jail and the captured streams.
 * Gives:   status, reason, exit status, and the one JSON object of the contract.
 * Never:   prints a guest's byte to a terminal unchanged.
 * Runs in: `cordon`.
 */
#ifndef PROG_CORDON_RESULT_H
#define PROG_CORDON_RESULT_H

#include "jail/run.h"
#include "output/capture.h"

struct result {
    char id[40];
    const char *status; /* ok, error, timeout, memory, output, crashed, refused */
    const char *layer;  /* the one that ended it, or NULL */
    char reason[320];   /* empty when it ran to its end */
    const char *category, *type;
    char message[320];
    int exit_status;
};

void result_judge(struct result *r, const struct jail_outcome *o, const struct jail_limits *limits);

/* A run that never began because the jail could not be built. */
void result_refuse(struct result *r, const struct err *why);

/* STREAMS: stdout and stderr, or NULL when nothing ran. 0, or ERR_SYS when stdout cannot take it.
 */
ERR_MUST_USE int result_print_json(const struct result *r, const struct jail_outcome *o,
                                   const struct output_capture *streams);
void result_print_text(const struct result *r, const struct jail_outcome *o); /* to stderr */

/* One line on stderr, in which nothing acts on a terminal. */
void result_complain(const char *who, const char *text);

#endif
