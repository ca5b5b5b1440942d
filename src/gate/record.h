/* SPDX-License-Identifier: Apache-2.0 */
/* Named fields of any bytes, one after the other: how the gate and cordon-approvals talk.
 *
 * Takes:   names and bytes.
 * Gives:   lines `name LENGTH`, each followed by that many bytes and a line feed; `.` at the end.
 * Never:   reads past the end it is told; takes a record that is cut, or that has more behind it.
 * Runs in: the supervisor, cordon-approvals.
 */
#ifndef GATE_RECORD_H
#define GATE_RECORD_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

#define GATE_RECORD_MAX (8 << 20)

struct gate_field {
    const char *name; /* not terminated: NAME_LEN bytes */
    size_t name_len;
    const char *data; /* inside the record */
    size_t len;
};

ERR_MUST_USE int gate_record_bytes(struct buf *out, const char *name, const void *data, size_t len);
ERR_MUST_USE int gate_record_text(struct buf *out, const char *name, const char *text);
ERR_MUST_USE int gate_record_number(struct buf *out, const char *name, uint64_t n);
ERR_MUST_USE int gate_record_end(struct buf *out);

struct gate_record {
    const char *at, *end;
};
/* 1: *ret_field is the next one; 0: that was all, and it ended as it should; ERR_FORMAT. */
ERR_MUST_USE int gate_record_next(struct gate_record *r, struct gate_field *ret_field);

/* Whether the whole record is well-formed. */
bool gate_record_valid(const void *data, size_t len);
/* The first field NAME of a valid record; empty when there is none. */
struct gate_field gate_record_find(const void *data, size_t len, const char *name);
/* The same copied (cut to SIZE, terminated), and as a number (0 when it is none). */
void gate_record_copy(const void *data, size_t len, const char *name, char *out, size_t size);
uint64_t gate_record_count(const void *data, size_t len, const char *name);

#endif
