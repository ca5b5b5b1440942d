/* SPDX-License-Identifier: Apache-2.0 */
/* Thresholds of the monitor: defaults, those of a tier, those of a task, single ones; each stands above the one before.
 *
 * Takes:   names of tiers, tasks, modes and settings.
 * Gives:   one set of thresholds, and where each comes from.
 * Never:   takes a number that makes no sense: it says which may be taken.
 * Runs in: the caller.
 */
#ifndef MONITOR_CONFIG_H
#define MONITOR_CONFIG_H

#include "base/err.h"

#include <stdint.h>

enum monitor_mode {
    MONITOR_DEFAULT, /* aborts on certain detectors; the thresholds are reported beside them */
    MONITOR_LITERAL  /* aborts on each threshold by itself, and on their weighted sum */
};

/* name, default, least, most */
#define MONITOR_SETTINGS(X)                                                                        \
    X(min_tokens_before_abort, 50, 0, 1e9)                                                         \
    X(entropy_threshold, 4.0, 0.01, 100)                                                           \
    X(entropy_spike_threshold, 2.0, 0.01, 100)                                                     \
    X(repetition_threshold, 0.3, 0.01, 1)                                                          \
    X(perplexity_window, 20, 2, 256)                                                               \
    X(max_length_multiplier, 2.0, 1, 1000)                                                         \
    X(entropy_sustained_count, 10, 1, 256)                                                         \
    X(ngram_size, 3, 1, 8)                                                                         \
    X(combined_threshold, 0.7, 0.01, 1)

enum monitor_setting {
#define NUMBER(name, value, least, most) MONITOR_SET_##name,
    MONITOR_SETTINGS(NUMBER)
#undef NUMBER
        MONITOR_SETTING_COUNT
};

enum monitor_source {
    MONITOR_FROM_DEFAULT,
    MONITOR_FROM_TIER,
    MONITOR_FROM_TASK,
    MONITOR_FROM_OPTION
};

struct monitor_config {
    enum monitor_mode mode;
    double values[MONITOR_SETTING_COUNT];
    enum monitor_source from[MONITOR_SETTING_COUNT];
    uint64_t expected; /* length in tokens; 0: not known */
};

void monitor_config_init(struct monitor_config *c);
/* By name; NULL: none. The order of the calls does not matter: default, tier, task, option. */
ERR_MUST_USE int monitor_config_tier(struct monitor_config *c, const char *tier, struct err *err);
ERR_MUST_USE int monitor_config_task(struct monitor_config *c, const char *task, struct err *err);
ERR_MUST_USE int monitor_config_mode(struct monitor_config *c, const char *mode, struct err *err);
/* `entropy_threshold=5` */
ERR_MUST_USE int monitor_config_set(struct monitor_config *c, const char *assignment,
                                    struct err *err);

const char *monitor_setting_name(enum monitor_setting setting);
const char *monitor_source_name(enum monitor_source source);

#endif
