/* SPDX-License-Identifier: Apache-2.0 */
/* An entry of the index, and how a day's index is read: for the readers (index.c) and for verify (index_check.c).
 *
 * Takes:   the folder seal/ and a day.
 * Gives:   the entries of that day's index whose check is right, with their positions.
 * Never:   believes an entry: what it points to is looked at by whoever asked; is included by another room.
 * Runs in: `cordon audit`; every process that writes records.
 */
#ifndef AUDIT_INDEX_H
#define AUDIT_INDEX_H

#include "audit/inside.h"

struct audit_entry {
    uint64_t seq;
    uint32_t key;   /* of the execution id; 0: none. Two ids may share one: a reader compares */
    uint32_t check; /* of the other fields: one that was damaged is a gap, as one that is missing */
    uint64_t offset, newest_ms;
};

_Static_assert(sizeof(struct audit_entry) == sizeof(((struct audit_advice *)0)->index_waiting[0]),
               "an entry waits in its place");

#define AUDIT_INDEX_AT_ONCE 2048 /* entries */

struct audit_index_reader {
    int fd;
    uint64_t count, at; /* entries in the file; the next to be read */
    uint64_t row;       /* of the entry that was read last, from 0 */
    size_t have, used;
    struct audit_entry chunk[AUDIT_INDEX_AT_ONCE];
};

uint32_t audit_index_key(const char *text,
                         size_t len); /* of an id as it stands in a line, between its quotes */
uint32_t audit_index_key_of_line(const char *line, size_t len);
uint32_t audit_index_entry_check(const struct audit_entry *e);

/* False: there is no such index, or it is empty. R->fd is to be closed in any case. */
bool audit_index_open(struct audit_index_reader *r, int seal, uint32_t day);
/* The next entry, damaged or not. False: there is none. */
bool audit_index_next_any(struct audit_index_reader *r, struct audit_entry *ret);

#endif
