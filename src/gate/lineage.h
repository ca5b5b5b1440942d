/* SPDX-License-Identifier: Apache-2.0 */
/* Who stands behind a process: its ancestors, as the kernel knows them.
 *
 * Takes:   a pid.
 * Gives:   the chain up to pid 1, in a text that can be kept; whether two chains belong together.
 * Never:   asks the process itself: a name or a variable is what somebody says.
 * Runs in: the supervisor, `cordon approve`.
 */
#ifndef GATE_LINEAGE_H
#define GATE_LINEAGE_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define GATE_LINEAGE_MAX 64

struct gate_process {
    pid_t pid, sid;
    int tty;
    unsigned long long start; /* ticks since boot: with the pid it is one process */
    uid_t uid;
    bool server; /* it starts the sessions of people: a login, a terminal, a multiplexer */
};

struct gate_lineage {
    struct gate_process items[GATE_LINEAGE_MAX]; /* the process itself first */
    size_t count;
};

/* ERR_SYS when the process is gone. */
ERR_MUST_USE int gate_lineage_read(struct gate_lineage *l, pid_t pid, struct err *err);
ERR_MUST_USE int gate_lineage_write(const struct gate_lineage *l, struct buf *out);
ERR_MUST_USE int gate_lineage_parse(struct gate_lineage *l, const char *text, size_t len);

/* Whether the two have nothing in common that starts both: no process, no session, with OTHER_USER no uid. False: WHY says
 * what they have. */
bool gate_lineage_apart(const struct gate_lineage *asker, const struct gate_lineage *answerer,
                        bool other_user, char *why, size_t size);
/* Whether ANSWERER may answer what ASKER asked. OTHER_USER: only somebody else may. False: WHY says
 * what stands in the way. */
bool gate_lineage_may_answer(const struct gate_lineage *asker, const struct gate_lineage *answerer,
                             bool other_user, char *why, size_t size);

/* Whether ASKER has the process PID in it, and PID and ANSWERER are children of one process. */
bool gate_lineage_siblings(const struct gate_lineage *asker, pid_t pid,
                           const struct gate_lineage *answerer);

/* The process in words: uid 1000, pid 4242, terminal 136:3. */
void gate_lineage_name(const struct gate_lineage *l, char *out, size_t size);

/* Ticks since boot at which PID started; 0: it is gone. */
unsigned long long gate_process_start(pid_t pid);

#endif
