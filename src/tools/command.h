/* SPDX-License-Identifier: Apache-2.0 */
/* The operator's command behind a host tool, run once: outside the jail, and within limits of its own.
 *
 * Takes:   the words of the command and its environment as the policy has them, its input, files as open descriptors, limits.
 * Gives:   what it wrote, within the limit, and how it ended.
 * Never:   puts anything that a guest sent into a command line, a name or the environment; starts a shell; lets the command,
 *          or what it left behind, live longer than its time or than whoever waits for it; leaves it a descriptor of ours.
 * Runs in: the broker; orphans come back to it meanwhile (PR_SET_CHILD_SUBREAPER).
 */
#ifndef TOOLS_COMMAND_H
#define TOOLS_COMMAND_H

#include "base/buf.h"
#include "base/err.h"
#include "tools/tools.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct tools_command {
    const char *const *argv; /* ended by NULL; argv[0] absolute */
    const char *const *env;  /* NAME=value, beside PATH and LANG */
    size_t nenv;
    uint64_t timeout_ms, memory; /* memory: of each process of it */
    size_t output;
    const void *input;
    size_t input_len;
    const int *files; /* become TOOLS_COMMAND_FILES and what follows, sealed copies; the caller's */
    size_t nfiles;
    int stop;   /* readable: nobody waits any more; -1: none */
    pid_t keep; /* the caller's child that is not the command's; 0: none */
};

enum tools_command_end {
    TOOLS_COMMAND_EXITED, /* STATUS is its exit status */
    TOOLS_COMMAND_SIGNAL, /* STATUS is the signal */
    TOOLS_COMMAND_LATE,
    TOOLS_COMMAND_CUT,     /* ended because it wrote more than it may */
    TOOLS_COMMAND_STOPPED, /* ended because nobody waits any more */
};

/* OUT: what it wrote; SAID: what it wrote to stderr, the first LIMIT_TOOL_SAID bytes. Both are initialised here, the caller's. */
ERR_MUST_USE int tools_command_run(const struct tools_command *c, struct buf *out, struct buf *said,
                                   enum tools_command_end *ret_end, int *ret_status,
                                   struct err *err);

#endif
