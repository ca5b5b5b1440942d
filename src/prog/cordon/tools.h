/* SPDX-License-Identifier: Apache-2.0 */
/* The tools that a program is given, by the options of the command.
 *
 * Takes:   names, the type of a worker.
 * Gives:   the names that the flow binds for guest code; the program that carries calls out.
 * Never:   decides whether a call is made: that is the gate's to say, each time.
 * Runs in: `cordon`.
 */
#ifndef PROG_CORDON_TOOLS_H
#define PROG_CORDON_TOOLS_H

#include "base/limits.h"
#include "flow/flow.h"
#include "options.h"

struct tool_options {
    struct option_list names;
    const char *worker; /* NULL: none */
};

#define TOOL_OPTIONS(o)                                                                            \
    {"tool", OPTION_LIST, &(o)->names, "NAME", "a tool that it may call: echo, ReadFile, ..."},    \
    {                                                                                              \
        "worker", OPTION_STRING, &(o)->worker, "TYPE",                                             \
            "a worker of this type, with its tools: explore, analyze, execute"                     \
    }

struct tool_choice {
    const char *names[LIMIT_HOST_TOOLS + 1]; /* ended by NULL */
    char program[4096];                      /* cordon-tool */
};

/* With the type of a worker every tool is there, and those that are not its own are refused when they are called. */
ERR_MUST_USE int tools_choose(const struct tool_options *o, const struct policy *policy,
                              struct tool_choice *ret, struct err *err);
void tools_give(const struct tool_choice *c, const struct tool_options *o,
                struct flow_request *req);

#endif
