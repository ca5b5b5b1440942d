/* SPDX-License-Identifier: Apache-2.0 */
/* The tools that guest code may call as functions: one table, for programs in a jail now and for other clients of it.
 *
 * Takes:   names.
 * Gives:   what each tool does, and the JSON schema of its arguments, whose properties are in the order of positional ones.
 * Never:   decides who may call what: category and risk are the gate's table, roles the policy's.
 * Runs in: `cordon`, cordon-tool.
 */
#ifndef TOOLS_TOOLS_H
#define TOOLS_TOOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tools_row {
    const char *name, *summary;
    const char *schema; /* NULL: whatever is given */
};

extern const struct tools_row tools_table[];
extern const size_t tools_count;

const struct tools_row *tools_find(const char *name); /* NULL: there is none */

/* How a call ended. */
enum tools_end {
    TOOLS_FAILED,  /* the tool itself: it died, was late, could not read; its breaker counts that */
    TOOLS_OK,      /* the answer is JSON */
    TOOLS_REFUSED, /* the arguments: a path outside, a file that is not there */
};

/* What a call may take at most, and what it stands on; they travel as a list of numbers. */
enum tools_limit {
    TOOLS_FILE_READ,    /* characters of one file read */
    TOOLS_GREP_MATCHES, /* matches of one search */
    TOOLS_MADE,  /* 1: it is a tool that guest code made, and is found in the guest's files */
    TOOLS_NAMES, /* 1: the arguments are said by name before they are checked, for the record */
    TOOLS_NAMING_WARNS, /* 1: a file that breaks a rule for names is written, and its answer says so */
    TOOLS_LIMITS
};

#define TOOLS_LLM "llm"

/* Where tools that guest code made are, and how long their names may be. */
#define TOOLS_MADE_FOLDER "/workspace/tools"
#define TOOLS_MADE_NAME   40

/* What came of bringing an index up to date; it travels as a list of numbers. */
struct tools_indexed {
    uint64_t documents, read, removed; /* in it; read for it this time; gone from it */
    bool current; /* false: that was not finished, and goes on at the next call */
    bool full;    /* ... because the index takes as much room as it may */
    bool written; /* it differs from what it was */
};
enum { TOOLS_INDEXED_NUMBERS = 6 };
void tools_indexed_pack(const struct tools_indexed *from, uint64_t to[TOOLS_INDEXED_NUMBERS]);
void tools_indexed_unpack(const uint64_t from[TOOLS_INDEXED_NUMBERS], struct tools_indexed *to);

#define TOOLS_COLLECTION 32 /* bytes of the name of a collection */

/* What the bytes are that the command of a host tool wrote. */
enum tools_wrote {
    TOOLS_WROTE_TEXT,
    TOOLS_WROTE_PART, /* of a text that is longer than it may be */
    TOOLS_WROTE_JSON,
    TOOLS_WROTE_WRONG, /* the arguments are, it says; the bytes say why */
    TOOLS_WROTE_WHY,   /* it failed; the same */
    TOOLS_WROTE_MODEL, /* no command: what a model of the gateway answered, as cordon-ask tells it in JSON */
    TOOLS_WROTE_GOALS, /* no command: how many goals the session had, then the records of the last ones, a line each */
    TOOLS_WROTE_COUNT
};

/* Flags of what a program gave that a call started. */
enum tools_ran {
    TOOLS_RAN_FINAL = 1, /* it called FINAL */
    TOOLS_RAN_VALUE = 2, /* its last line has a value */
    TOOLS_RAN_CUT = 4,   /* some of it was too long */
};

/* The descriptors of cordon-tool: its end of the socket, the file system that the guest writes in, the index of Search that it may write, its
 * own program until that is executed, and what the guest sees of the host, one after the other. */
enum { TOOLS_SOCKET = 3, TOOLS_FILES = 4, TOOLS_INDEX = 5, TOOLS_PROGRAM = 6, TOOLS_SHARES = 7 };

/* A folder or file of the host that a guest sees by the name DEST. */
struct tools_share {
    int fd;
    bool writable;
    const char *dest;
};

/* The first descriptor of a file that the command of a host tool is given. */
#define TOOLS_COMMAND_FILES 3

#endif
