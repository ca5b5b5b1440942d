/* SPDX-License-Identifier: Apache-2.0 */
/* One call of a tool in a process of its own, cordon-tool, from the side that trusts it with nothing.
 *
 * Takes:   the program, the descriptor of the guest's files, a tool, its schema, the guest's arguments as bytes.
 * Gives:   first the checked arguments, then, once told to go, the answer; each within LIMIT_TOOL_MS.
 * Never:   parses what the guest sent; lets the process live longer than the call, or keep a descriptor or right of ours.
 * Runs in: the broker.
 */
#ifndef TOOLS_PROCESS_H
#define TOOLS_PROCESS_H

#include "base/buf.h"
#include "base/err.h"
#include "base/limits.h"
#include "tools/tools.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct tools_process {
    pid_t pid; /* 0: none */
    int sock;
    int stop;                    /* readable: nobody waits any more; the caller's, -1: none */
    int files[LIMIT_TOOL_FILES]; /* of the guest's, for a host tool; ours until the end */
    size_t nfiles;
    char word
        [64]; /* of a tool that starts a program, the word about it; of a search, its collection .. */
    struct buf source; /* .. and its source, as the guest wrote it */
};

/* What a program gave that a call started: texts of a guest's, cut to what fits. */
struct tools_text {
    const char *data;
    size_t len;
};
struct tools_run {
    const char *which, *status, *why; /* why: empty where there is nothing to say */
    uint64_t flags;                   /* enum tools_ran */
    struct tools_text final, value, streams[2];
};

/* The index that a search begins with. */
struct tools_base {
    int fd; /* open for reading; -1: none */
    struct tools_indexed state;
    char reason
        [208]; /* why it was not brought up to date; empty: it was, as far as the state says */
};

enum tools_right {
    TOOLS_READS,
    TOOLS_WRITES,  /* the tool changes files */
    TOOLS_INDEXES, /* it is no tool: it reads a folder, for an index that outlives the run */
    TOOLS_SERVES, /* it is no tool: it serves the files of the guest, request by request (wire/files.h) */
};
/* PROGRAM: its file, open. FILES -1: the run has none. STOP: tools_process.stop. As root it becomes the owner of the files. */
ERR_MUST_USE int tools_process_start(struct tools_process *p, int program, int files, int stop,
                                     enum tools_right right, struct err *err);

/* SCHEMA NULL: none. NAMED: the arguments for the record, by name, whether or not they pass; empty where they cannot be read;
 * NULL: not wanted. NAMING: rules for the names of files, packed; NULL: none. TOOLS_OK: the arguments by name are in TEXT, and the files that a host tool is given in P. Otherwise
 * TEXT says why, as JSON. An error is TOOLS_FAILED, and in ERR. */
enum tools_end tools_process_check(struct tools_process *p, const char *tool, const char *schema,
                                   const void *args, size_t len,
                                   const uint64_t limits[TOOLS_LIMITS], const struct buf *naming,
                                   struct buf *named, struct buf *text, struct err *err);
/* Carries it out: TEXT is the answer, or why there is none, as JSON. BASE NULL: the call is no search. */
enum tools_end tools_process_go(struct tools_process *p, const struct tools_base *base,
                                struct buf *text, struct err *err);
/* Of a process that TOOLS_INDEXES: what it was given as its files is read, as SHOWN/..., into what it was given as its index. BASE: the index so
 * far, open for reading, or -1. */
ERR_MUST_USE int tools_process_index(struct tools_process *p, const char *shown, int base,
                                     struct tools_indexed *ret, struct err *err);
/* Instead, of a host tool: BYTES are what its command wrote, or why it wrote nothing. TEXT is the same. */
enum tools_end tools_process_wrote(struct tools_process *p, enum tools_wrote kind,
                                   const void *bytes, size_t len, struct buf *text,
                                   struct err *err);

/* The same of a tool that started a program, which gave RUN. */
enum tools_end tools_process_ran(struct tools_process *p, const struct tools_run *run,
                                 struct buf *text, struct err *err);

/* A descriptor that the next process has as TOOLS_INDEX; it stays the caller's. -1, as at first: none. */
void tools_process_give_index(int fd);

/* What the next process that TOOLS_SERVES serves beside the guest's own files; SHARES and their descriptors stay the caller's, and are
 * there until it is started. At most LIMIT_BINDS. */
void tools_process_give_shares(const struct tools_share *shares, size_t count);

/* Whatever it is at. Gives its wait status, as waitpid has it; 0 where there was none. Of one that had ended before, that is how. */
int tools_process_end(struct tools_process *p);

#endif
