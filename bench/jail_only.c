/* SPDX-License-Identifier: Apache-2.0 */
/* The jail of `cordon exec` without the steps around it: no policy, no gate, no record. It exists to be
 * measured beside `cordon exec`, so that both figures can be told: the jail's own, and the whole. */
#include "jail/run.h"

#include <stdio.h>
#include <string.h>

static void no_bytes(void *ctx, enum jail_stream s, const void *p, size_t n)
{
    (void)ctx;
    (void)s;
    (void)p;
    (void)n;
}

int main(int argc, char **argv)
{
    static const char *env[] = {"PATH=/usr/bin:/bin", "HOME=/tmp", "TMPDIR=/tmp", "LANG=C.UTF-8",
                                NULL};
    struct jail_spec spec;
    struct jail_run *run = NULL;
    struct err err = ERR_INIT;
    if (argc < 3) {
        fputs("usage: jail_only CORDON-NEST PROGRAM ARGS...\n", stderr);
        return 2;
    }
    jail_spec_init(&spec);
    spec.filter = "exec";
    spec.program = argv[2];
    spec.argv = (const char **)argv + 2;
    spec.argc = (size_t)argc - 2;
    spec.env = env;
    spec.envc = sizeof env / sizeof *env - 1;
    struct jail_start start = {.nest = argv[1],
                               .input = -1,
                               .channel = -1,
                               .channel_ours = -1,
                               .sink = {.bytes = no_bytes},
                               .step_down = true};
    if (jail_run_new(&spec, &start, &run, &err) < 0) {
        fprintf(stderr, "jail_only: %s\n", err.msg);
        return 5;
    }
    while (!jail_run_step(run, -1))
        ;
    int code = jail_run_outcome(run)->exit_code;
    jail_run_free(run);
    return code;
}
