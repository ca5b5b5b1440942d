/* SPDX-License-Identifier: Apache-2.0 */
/* The walker's inside, for verify.
 *
 * Takes:   nothing from outside the room.
 * Gives:   the moment that was looked at: head, anchor, files.
 * Never:   is included by another room.
 * Runs in: `cordon audit`.
 */
#ifndef AUDIT_WALK_H
#define AUDIT_WALK_H

#include "audit/inside.h"
#include "audit/read.h"

struct audit_walk {
    int dir, seal, head_fd;
    struct hmac_sha256_ctx key;
    uint8_t sets[AUDIT_HEAD_SETS * AUDIT_HEAD_SET];
    struct audit_anchor anchor;
    bool anchor_bad;
    struct audit_files files;
    struct audit_file *file, *torn_file;
    struct audit_lines lines;
    uint64_t line, nfiles, torn;
    uint64_t line_at; /* the offset of the line that was stepped to last */
    uint64_t from;    /* where to begin in the next file */
    bool by_parts;    /* not file by file, but these */
    struct audit_parts parts;
    size_t part; /* the next one */
    uint32_t at_day;
    uint64_t at;  /* how far that day's file was read */
    uint64_t seq; /* the number that comes next */
    uint8_t prev[AUDIT_HASH];
    bool loose; /* the next record follows on nothing that was seen */
};

#endif
