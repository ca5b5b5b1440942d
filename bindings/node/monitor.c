/* SPDX-License-Identifier: Apache-2.0 */
/* The monitor of libcordon as WebAssembly, for monitor.js: functions of numbers and addresses alone, since JavaScript has no structs.
 * The rest of libcordon is not in it, and it imports nothing but random bytes. */
#include "cordon.h"

#define EXPORTED __attribute__((visibility("default"), used))

EXPORTED struct cordon_monitor *node_monitor_new(const char *tier, const char *task,
                                                 const char *mode, const char *const *settings,
                                                 double expected, double vocabulary, char *why);
EXPORTED int node_monitor_token(struct cordon_monitor *m, const char *text, size_t len, double id,
                                const float *logits, size_t logit_count, const double *top,
                                size_t top_count);

struct cordon_monitor *node_monitor_new(const char *tier, const char *task, const char *mode,
                                        const char *const *settings, double expected,
                                        double vocabulary, char *why)
{
    const struct cordon_monitor_options o = {.tier = tier,
                                             .task = task,
                                             .mode = mode,
                                             .settings = settings,
                                             .expected = (uint64_t)expected,
                                             .vocabulary = (uint64_t)vocabulary};
    struct cordon_monitor *m = NULL;
    (void)cordon_monitor_new(&o, &m, why);
    return m;
}

int node_monitor_token(struct cordon_monitor *m, const char *text, size_t len, double id,
                       const float *logits, size_t logit_count, const double *top, size_t top_count)
{
    const struct cordon_token t = {.text = text,
                                   .len = len,
                                   .id = (uint64_t)id,
                                   .logits = logits,
                                   .logit_count = logit_count,
                                   .top_logprobs = top,
                                   .top_count = top_count};
    return cordon_monitor_token(m, &t);
}
