/* SPDX-License-Identifier: Apache-2.0 */
/* What the actions of `cordon audit` share: which records are asked for, and how one is shown.
 *
 * Takes:   options, steps through the log.
 * Gives:   a yes or no for a record; lines in which nothing acts on a terminal.
 * Never:   shows a line that is not a record of ours as if it were one.
 * Runs in: `cordon`.
 */
#ifndef PROG_CORDON_AUDIT_COMMON_H
#define PROG_CORDON_AUDIT_COMMON_H

#include "audit/read.h"

#include <jansson.h>

struct audit_filter {
    uint64_t since, until; /* milliseconds; 0: open */
    const char *client, *status, *kind, *id;
};

/* 1h, 30m, 2d (ago), 2026-11-15, 2026-11-15T10:30, 2026-11-15T10:30:05 (UTC). */
ERR_MUST_USE int audit_when(const char *text, uint64_t now_ms, uint64_t *ret, struct err *err);

/* Whether a record is asked for; *ret_json is set where one had to be parsed (NULL otherwise) and is the caller's. */
bool audit_wanted(const struct audit_filter *f, const struct audit_step *s, json_t **ret_json);

/* A line a record: time, number, who, what, file, verdict, run, why. */
void audit_print_head(void);
void audit_print_line(const struct audit_step *s, const json_t *record);
void audit_print_sheet(const struct audit_step *s,
                       const json_t *record);         /* every member that is not null */
void audit_print_raw(const struct audit_step *s);     /* the JSON, as it stands */
void audit_complain_step(const struct audit_step *s); /* what is wrong with it, to stderr */

/* `cordon audit anomalies`: by the thresholds of the policy, and over its window where the filter names no time. */
int audit_anomalies(struct audit_filter *f, uint64_t now_ms, bool json);

#endif
