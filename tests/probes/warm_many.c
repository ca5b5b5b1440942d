/* SPDX-License-Identifier: Apache-2.0 */
/* One client, many warm runs through the whole flow: judge, gate, audit, output. Its descriptors and its memory
 * must be as flat at the end as at the start; the time of every run is written to the file that is named, in
 * microseconds. Ends of every kind take turns. Usage: warm_many BUILD ROUNDS TIMES */
#include "base/clock.h"
#include "flow/flow.h"
#include "pool/pool.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned open_descriptors(void)
{
    unsigned n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

static unsigned long memory_kb(void)
{
    char line[256];
    unsigned long kb = 0;
    FILE *f = fopen("/proc/self/status", "re");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "VmRSS:", 6) == 0)
            kb = strtoul(line + 6, NULL, 10);
    if (f)
        fclose(f);
    return kb;
}

static const struct kind {
    const char *source;
    enum flow_status want;
    const char *out;
    uint64_t wall_ms;
} kinds[] = {
    {"print(6 * 7)\n", FLOW_OK, "42\n", 30000},
    {"x = [i * i for i in range(100)]\nsum(x)\n", FLOW_OK, "", 30000},
    {"print(6 * 7)\n", FLOW_OK, "42\n", 30000},
    {"import math\nprint(math.pi)\n", FLOW_OK, "3.141592653589793\n", 30000},
    {"1 / 0\n", FLOW_ERROR, "", 30000},
    {"import subprocess\n", FLOW_BLOCKED, "", 30000},
    {"print(6 * 7)\n", FLOW_OK, "42\n", 30000},
    {"while True: pass\n", FLOW_TIMEOUT, "", 300},
};
enum { KINDS = sizeof kinds / sizeof *kinds, WARM_UP = 200, OFTEN = 500 };

/* Microseconds; 0: it was not warm; negative: it went wrong. */
static long one(struct flow_context *context, const char *nest, const char *python,
                const struct kind *k)
{
    static const char *env[POOL_ENV + 1];
    struct err err = ERR_INIT;
    struct flow_result result;
    struct flow_request req = {.kind = FLOW_RUN,
                               .context = context,
                               .profile = policy_find_profile(context->policy, "strict"),
                               .name = "many.py",
                               .source = k->source,
                               .source_len = strlen(k->source),
                               .input = -1,
                               .nest = nest,
                               .python = python,
                               .stop = -1,
                               .pool = true};
    memcpy(env, pool_env, sizeof env);
    jail_spec_init(&req.spec);
    req.spec.env = env;
    req.spec.envc = POOL_ENV;
    req.spec.limits.wall_ms = k->wall_ms;
    uint64_t before = clock_now_ns();
    int r = flow_run(&req, &result, &err);
    long us = (long)((clock_now_ns() - before) / 1000);
    if (r < 0 || result.status != k->want || result.streams[0].len != strlen(k->out) ||
        memcmp(result.streams[0].len ? result.streams[0].data : "", k->out, strlen(k->out)) != 0) {
        printf("%s ended as %s: %s\n", k->source, flow_status_name(result.status),
               r < 0 ? err.msg : result.reason);
        us = -1;
    } else if (!result.warm) {
        us = 0;
    }
    flow_result_done(&result);
    return us;
}

int main(int argc, char **argv)
{
    char nest[4096], python[4096];
    struct flow_context context = {0};
    struct err err = ERR_INIT;
    if (argc != 4)
        return 2;
    long rounds = strtol(argv[2], NULL, 10), cold = 0;
    FILE *times = fopen(argv[3], "we");
    snprintf(nest, sizeof nest, "%s/cordon-nest", argv[1]);
    snprintf(python, sizeof python, "%s/cordon-python", argv[1]);
    signal(SIGPIPE, SIG_IGN);
    if (!times || flow_context_open(&context, NULL, &err) < 0 ||
        flow_context_open_gate(&context, NULL, NULL, &err) < 0) {
        printf("no context: %s\n", err.msg);
        return 1;
    }
    unsigned fds = 0;
    unsigned long rss = 0;
    for (long i = 0; i < WARM_UP + rounds; i++) {
        if (i == WARM_UP) {
            fds = open_descriptors();
            rss = memory_kb();
        }
        /* time-outs are slow: one in many */
        const struct kind *k = &kinds[i % OFTEN == 0 ? KINDS - 1 : i % (KINDS - 1)];
        long us = one(&context, nest, python, k);
        if (us < 0)
            return 1;
        if (us == 0) {
            cold++;
            i--; /* a machine that is busy with something else: it does not count, but is told */
            if (cold > 1000 + rounds / 10) {
                printf("%ld runs found no warm child\n", cold);
                return 1;
            }
        } else if (i >= WARM_UP && k->want != FLOW_TIMEOUT) {
            fprintf(times, "%ld\n", us);
        }
    }
    unsigned fds_after = open_descriptors();
    unsigned long rss_after = memory_kb();
    fclose(times);
    flow_context_close(&context);
    printf(
        "one client, %ld warm runs: descriptors %u -> %u, memory %lu -> %lu KB, %ld found no warm "
        "child\n",
        rounds, fds, fds_after, rss, rss_after, cold);
    return fds == fds_after && rss_after <= rss + 512 ? 0 : 1;
}
