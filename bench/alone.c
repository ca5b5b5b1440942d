/* The jail without the house around it: no policy, no gate, no audit, no output rules. What `cordon exec`
 * takes longer than this is what those cost. Usage: jail_alone NEST PROGRAM [ARGS...] */
#include "jail/run.h"

#include <errno.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static void take_bytes(void *ctx, enum jail_stream stream, const void *data, size_t len)
{
    (void)ctx;
    if (write(stream == JAIL_STDOUT ? STDOUT_FILENO : STDERR_FILENO, data, len) < 0)
        return; /* nobody reads it */
}

int main(int argc, char **argv)
{
    static const char *env[] = {"PATH=/usr/bin:/bin", "HOME=/tmp", "TMPDIR=/tmp", "LANG=C.UTF-8",
                                NULL};
    struct jail_spec spec;
    struct jail_run *run = NULL;
    struct err err = ERR_INIT;
    if (argc < 3) {
        fputs("usage: jail_alone NEST PROGRAM [ARGS...]\n", stderr);
        return 2;
    }
    close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
    signal(SIGPIPE, SIG_IGN);
    jail_spec_init(&spec);
    spec.filter = "exec";
    spec.program = argv[2];
    spec.argv = (const char **)argv + 2;
    spec.argc = (size_t)argc - 2;
    spec.env = env;
    spec.envc = 4;
    struct jail_start start = {.nest = argv[1],
                               .memory_by = JAIL_MEMORY_AUTO,
                               .input = -1,
                               .channel = -1,
                               .channel_ours = -1,
                               .sink = {.bytes = take_bytes},
                               .step_down = true};
    if (jail_run_new(&spec, &start, &run, &err) < 0) {
        fprintf(stderr, "jail_alone: %s\n", err.msg);
        return 5;
    }
    while (!jail_run_step(run, -1))
        ;
    const struct jail_outcome *o = jail_run_outcome(run);
    int status = o->end == JAIL_END_EXIT ? o->exit_code : 1;
    jail_run_free(run);
    return status;
}
