/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of thresholds. A value remembers which table it comes from, so that a task's is never overwritten by a tier's
 * whatever the order of the calls. */
#include "monitor/config.h"

#include <stdbool.h>
#include <string.h>

static const struct {
    const char *name;
    double value, least, most;
} settings[] = {
#define ROW(name, value, least, most) {#name, value, least, most},
    MONITOR_SETTINGS(ROW)
#undef ROW
};

struct preset {
    const char *name;
    struct {
        enum monitor_setting setting;
        double value;
    } rows[4];
};

/* Higher tiers are allowed more: an architect's text is more varied and comes back to what it said. Code that repeats is wrong. */
static const struct preset tiers[] = {
    {"worker",
     {{MONITOR_SET_entropy_threshold, 4.5},
      {MONITOR_SET_entropy_spike_threshold, 2.5},
      {MONITOR_SET_repetition_threshold, 0.3},
      {MONITOR_SET_min_tokens_before_abort, 50}}},
    {"coder",
     {{MONITOR_SET_entropy_threshold, 5.0},
      {MONITOR_SET_entropy_spike_threshold, 3.0},
      {MONITOR_SET_repetition_threshold, 0.2},
      {MONITOR_SET_min_tokens_before_abort, 100}}},
    {"architect",
     {{MONITOR_SET_entropy_threshold, 6.0},
      {MONITOR_SET_entropy_spike_threshold, 4.0},
      {MONITOR_SET_repetition_threshold, 0.4},
      {MONITOR_SET_min_tokens_before_abort, 200}}},
    {"ingest",
     {{MONITOR_SET_entropy_threshold, 5.5},
      {MONITOR_SET_entropy_spike_threshold, 3.5},
      {MONITOR_SET_repetition_threshold, 0.3},
      {MONITOR_SET_min_tokens_before_abort, 100}}},
};

/* Reasoning that fails is seen early; code repeats in runs of four tokens without being wrong. */
static const struct preset tasks[] = {
    {"reasoning",
     {{MONITOR_SET_entropy_threshold, 4.5},
      {MONITOR_SET_min_tokens_before_abort, 30},
      {MONITOR_SET_ngram_size, 3},
      {MONITOR_SET_perplexity_window, 15}}},
    {"code",
     {{MONITOR_SET_entropy_threshold, 4.0},
      {MONITOR_SET_min_tokens_before_abort, 100},
      {MONITOR_SET_ngram_size, 4},
      {MONITOR_SET_perplexity_window, 20}}},
    {"general",
     {{MONITOR_SET_entropy_threshold, 4.0},
      {MONITOR_SET_min_tokens_before_abort, 50},
      {MONITOR_SET_ngram_size, 3},
      {MONITOR_SET_perplexity_window, 20}}},
};

void monitor_config_init(struct monitor_config *c)
{
    *c = (struct monitor_config){.mode = MONITOR_DEFAULT};
    for (int i = 0; i < MONITOR_SETTING_COUNT; i++)
        c->values[i] = settings[i].value;
}

static void put(struct monitor_config *c, enum monitor_setting setting, double value,
                enum monitor_source from)
{
    if (c->from[setting] > from)
        return;
    c->values[setting] = value;
    c->from[setting] = from;
}

static int apply(struct monitor_config *c, const struct preset *table, size_t count,
                 const char *name, enum monitor_source from)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(table[i].name, name) == 0) {
            for (size_t k = 0; k < sizeof table->rows / sizeof *table->rows; k++)
                put(c, table[i].rows[k].setting, table[i].rows[k].value, from);
            return 0;
        }
    return -1;
}

int monitor_config_tier(struct monitor_config *c, const char *tier, struct err *err)
{
    if (tier && apply(c, tiers, sizeof tiers / sizeof *tiers, tier, MONITOR_FROM_TIER) < 0)
        return err_set(err, ERR_USAGE, "tier '%.40s' is none of: worker, coder, architect, ingest",
                       tier);
    return 0;
}

int monitor_config_task(struct monitor_config *c, const char *task, struct err *err)
{
    if (task && apply(c, tasks, sizeof tasks / sizeof *tasks, task, MONITOR_FROM_TASK) < 0)
        return err_set(err, ERR_USAGE, "task '%.40s' is none of: reasoning, code, general", task);
    return 0;
}

int monitor_config_mode(struct monitor_config *c, const char *mode, struct err *err)
{
    if (mode && strcmp(mode, "default") != 0 && strcmp(mode, "literal") != 0)
        return err_set(err, ERR_USAGE, "mode '%.40s' is none of: default, literal", mode);
    if (mode)
        c->mode = strcmp(mode, "literal") == 0 ? MONITOR_LITERAL : MONITOR_DEFAULT;
    return 0;
}

/* A decimal number without sign and exponent, of at most 15 digits, so that the quotient is the nearest double; strtod would ask
 * the locale of whoever links this for the point. */
static bool read_number(const char *text, double *ret)
{
    double number = 0, scale = 1;
    unsigned digits = 0;
    bool point = false;
    for (; *text; text++) {
        if (*text == '.' && !point) {
            point = true;
        } else if (*text >= '0' && *text <= '9' && digits < 15) {
            number = number * 10 + (*text - '0');
            scale *= point ? 10 : 1;
            digits++;
        } else {
            return false;
        }
    }
    *ret = number / scale;
    return digits > 0;
}

int monitor_config_set(struct monitor_config *c, const char *assignment, struct err *err)
{
    const char *sign = strchr(assignment, '=');
    size_t len = sign ? (size_t)(sign - assignment) : 0;
    for (int i = 0; sign && i < MONITOR_SETTING_COUNT; i++) {
        if (strncmp(settings[i].name, assignment, len) != 0 || settings[i].name[len])
            continue;
        double value = 0;
        if (!read_number(sign + 1, &value) || value < settings[i].least || value > settings[i].most)
            return err_set(err, ERR_USAGE, "%s: '%.40s' is no number from %g to %g",
                           settings[i].name, sign + 1, settings[i].least, settings[i].most);
        put(c, (enum monitor_setting)i, value, MONITOR_FROM_OPTION);
        return 0;
    }
    return err_set(err, ERR_USAGE,
                   "'%.60s' is no NAME=NUMBER with the name of a setting; --help has them",
                   assignment);
}

const char *monitor_setting_name(enum monitor_setting setting)
{
    return settings[setting].name;
}

const char *monitor_source_name(enum monitor_source source)
{
    static const char *const names[] = {"default", "tier", "task", "option"};
    return names[source];
}
