/* SPDX-License-Identifier: Apache-2.0 */
/* `cordon run --lang node`: a JavaScript program that needs Node's own modules, judged by our judge and run by Debian's Node.
 *
 * Takes:   a request whose source is the program, and the profile that judges it.
 * Gives:   the same request as one of `exec`: the program is a file of /workspace, the command line starts Node with it.
 * Never:   runs a text that was not judged: the bytes of the file are those that the judge read.
 * Runs in: `cordon`.
 */
#ifndef CORDON_NODE_H
#define CORDON_NODE_H

#include "base/arena.h"
#include "flow/flow.h"

struct node_program {
    struct policy_profile
        profile; /* that judges: the caller's, and a rule that says who runs the program */
    int file;
};
#define NODE_PROGRAM_INIT                                                                          \
    {                                                                                              \
        .file = -1                                                                                 \
    }

bool node_is(const char *language);
/* REQ has its source, its name, its words, its profile and the jail's options. P lives as long as REQ. */
ERR_MUST_USE int node_request(struct flow_request *req, struct node_program *p, struct arena *mem,
                              struct err *err);
void node_done(struct node_program *p);

#endif
