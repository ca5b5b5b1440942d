/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the log: record by record, with a verdict on each, and the verdict on the whole.
 *
 * Takes:   a state folder.
 * Gives:   lines in the order of their numbers, each checked against the one before and the key; what is
 *          wrong, with the number of the record and its position.
 * Never:   writes, or waits for anything but the lock while it looks at the head.
 * Runs in: `cordon audit`.
 */
#ifndef AUDIT_READ_H
#define AUDIT_READ_H

#include "audit/audit.h"

#define AUDIT_FILE_MAX 24

struct audit_step {
    const char *text; /* the line, without its newline; valid until the next step */
    size_t len;
    uint64_t seq; /* its number, or the one that should be here */
    uint64_t ts;  /* milliseconds; 0 where it cannot be read */
    char file[AUDIT_FILE_MAX];
    uint64_t line; /* 1 is the first */
    enum audit_kind kind;
    const char *wrong; /* NULL: this is the record that belongs here, signed by our key */
};

struct audit_walk;

/* What the log was at this moment: later records are not seen. STATE may be NULL (sys/state.h). No log at all is ERR_SYS
 * with ENOENT. */
ERR_MUST_USE int audit_walk_new(const char *state, struct audit_walk **ret, struct err *err);
void audit_walk_free(struct audit_walk *w);

/* Leaves out what is older than MS, as far as the index says so; the first record then follows on nothing. */
void audit_walk_since(struct audit_walk *w, uint64_t ms);
/* Leaves out what is not of the execution ID, as far as the index says so: others may still come. Each record is then
 * checked by itself, not against the one before it. */
void audit_walk_find(struct audit_walk *w, const char *id);
/* Begins so far from the end that about COUNT records are left. Whether that is all of them. */
bool audit_walk_last(struct audit_walk *w, uint64_t count);

/* 1 with a step, 0 at the end. */
ERR_MUST_USE int audit_walk_next(struct audit_walk *w, struct audit_step *ret, struct err *err);

/* Looks again: what was appended since will be stepped through next. */
ERR_MUST_USE int audit_walk_again(struct audit_walk *w, struct err *err);

struct audit_verdict {
    bool good;
    uint64_t records, files;
    uint64_t first_seq, last_seq;
    uint64_t removed;    /* retention removed all up to here; 0: none */
    uint64_t open_runs;  /* begun, and neither ended nor lost */
    uint64_t ahead;      /* signed records that the head does not know yet: a writer was killed */
    uint64_t torn_bytes; /* the beginning of a record at the end of the log: likewise */
    uint64_t unsynced;   /* records that a power cut took before they were acknowledged */
    char head[65];       /* the hash of the last record */

    /* The index, a hint that the verdict does not depend on: how many records have no entry, how many entries are wrong,
     * and the first of those, by file, number (1 is the first) and fault. */
    uint64_t index_missing, index_wrong, index_entry;
    char index_file[40], index_why[80];

    /* Where it is broken first. */
    uint64_t bad_seq, bad_line;
    char bad_file[AUDIT_FILE_MAX];
    char why[240];
};

/* A head that was noted elsewhere: whoever can put the whole state folder back to an earlier day cannot change that. */
struct audit_noted {
    uint64_t seq;
    char hash[65];
};
/* NOTED may be NULL. */
ERR_MUST_USE int audit_verify(const char *state, const struct audit_noted *noted,
                              struct audit_verdict *ret, struct err *err);

#endif
