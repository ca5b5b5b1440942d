/* SPDX-License-Identifier: Apache-2.0 */
/* One supervisor, many runs: its descriptors and its memory must be as flat at the end as at the
 * start. Ends of every kind take turns: by itself, failed, killed by a signal, timed out, stopped
 * by us, never started, with violations. Usage: supervise_many CORDON-NEST ROUNDS */
#include "jail/run.h"
#include "sys/entries.h"
#include "sys/fd.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned long status_kb(const char *key)
{
    char line[256];
    unsigned long kb = 0;
    FILE *f = fopen("/proc/self/status", "re");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, key, strlen(key)) == 0)
            kb = strtoul(line + strlen(key), NULL, 10);
    if (f)
        fclose(f);
    return kb;
}

static uint64_t bytes_seen;

static void take(void *ctx, enum jail_stream stream, const void *data, size_t len)
{
    (void)ctx, (void)stream, (void)data;
    bytes_seen += len;
}

enum kind { GOOD, FAILS, TALKS, DIES, TIMES_OUT, STOPPED, NOT_THERE, VIOLATES, KINDS };

static int one(const char *nest, enum kind kind)
{
    static const char *const script[KINDS] = {
        [GOOD] = "exit 0",
        [FAILS] = "exit 3",
        [TALKS] = "i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done",
        [DIES] = "kill -9 $$",
        [TIMES_OUT] = "while :; do :; done",
        [STOPPED] = "while :; do :; done",
        [NOT_THERE] = "",
        [VIOLATES] = "/bin/true; /bin/true; exit 0"};
    static const enum jail_end want[KINDS] = {JAIL_END_EXIT,   JAIL_END_EXIT, JAIL_END_EXIT,
                                              JAIL_END_SIGNAL, JAIL_END_WALL, JAIL_END_STOPPED,
                                              JAIL_END_NONE,   JAIL_END_EXIT};
    const char *argv[] = {"sh", "-c", script[kind], NULL}, *env[] = {"PATH=/usr/bin:/bin", NULL};
    struct jail_spec spec;
    struct err err = ERR_INIT;
    struct jail_run *run = NULL;
    jail_spec_init(&spec);
    spec.filter = "exec";
    spec.program = kind == NOT_THERE ? "/no/such/program" : "/bin/sh";
    spec.argv = argv;
    spec.argc = 3;
    spec.env = env;
    spec.envc = 1;
    spec.limits.flood = spec.limits.output * 10;
    if (kind == TIMES_OUT)
        spec.limits.wall_ms = 10;
    struct jail_start start = {.nest = nest,
                               .memory_by = JAIL_MEMORY_RLIMIT,
                               .input = -1,
                               .channel = -1,
                               .channel_ours = -1,
                               .sink = {.bytes = take}};
    int r = jail_run_new(&spec, &start, &run, &err);
    if (r < 0 && kind == NOT_THERE)
        return 0; /* refused before it ran, as it should be */
    if (r < 0) {
        printf("no jail: %s\n", err.msg);
        return -1;
    }
    for (int steps = 0; !jail_run_step(run, kind == STOPPED ? 5 : 10000);)
        if (kind == STOPPED && ++steps == 2)
            jail_run_stop(run);
    enum jail_end end = jail_run_outcome(run)->end;
    jail_run_free(run);
    if (end != want[kind]) {
        printf("kind %d ended as %d, not %d\n", kind, end, want[kind]);
        return -1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    enum { WARM = 80 };
    long rounds = strtol(argv[2], NULL, 10);
    unsigned fds = 0;
    unsigned long rss = 0;
    signal(SIGPIPE, SIG_IGN);
    for (long i = 0; i < WARM + rounds; i++) {
        if (i == WARM) {
            fds = entries_count("/proc/self/fd");
            rss = status_kb("VmRSS:");
        }
        if (one(argv[1], (enum kind)(i % KINDS)) < 0)
            return 1;
    }
    unsigned fds_after = entries_count("/proc/self/fd");
    unsigned long rss_after = status_kb("VmRSS:");
    int zombie = waitpid(-1, NULL, WNOHANG) >= 0 || errno != ECHILD;
    printf("one supervisor, %ld runs: descriptors %u -> %u, memory %lu -> %lu KB, %s\n", rounds,
           fds, fds_after, rss, rss_after, zombie ? "a child is left" : "no child left");
    return fds == fds_after && rss_after <= rss + 256 && !zombie ? 0 : 1;
}
