/* SPDX-License-Identifier: Apache-2.0 */
/* The gate's tables: worker types and their tools, tool
 * categories and their risk, and the defaults. A tool exists by having a line in `tools`. */
#include "gate/config.h"

#include "base/limits.h"

#include <string.h>

/* Running code that was not there before is of the category meta, risk high, as LoadModule is.
 * `exec` has nothing that a judge could read; `merge` (of a clone of a workspace) is about sources that were judged one by
 * one, and is shown as a patch. Tools that guest code calls stand here as well. */
const struct gate_tool gate_tools[] = {
    {"run", GATE_TOOL_EXECUTION, GATE_CATEGORY_META, false},
    {"exec", GATE_TOOL_EXECUTION, GATE_CATEGORY_META, true},
    {"session", GATE_TOOL_EXECUTION, GATE_CATEGORY_META, false},
    {"merge", GATE_TOOL_CALL, GATE_CATEGORY_META, true},
    {"echo", GATE_TOOL_CALL, GATE_CATEGORY_READ, true},
    {"ReadFile", GATE_TOOL_CALL, GATE_CATEGORY_READ, true},
    {"ListFiles", GATE_TOOL_CALL, GATE_CATEGORY_READ, true},
    {"FileInfo", GATE_TOOL_CALL, GATE_CATEGORY_READ, true},
    {"Find", GATE_TOOL_CALL, GATE_CATEGORY_READ, true},
    {"Grep", GATE_TOOL_CALL, GATE_CATEGORY_READ, true},
    {"Jq", GATE_TOOL_CALL, GATE_CATEGORY_READ, true},
    {"Goal", GATE_TOOL_CALL, GATE_CATEGORY_READ, true},
    {"ModifyGoal", GATE_TOOL_CALL, GATE_CATEGORY_META, true},
    {"CreateTool", GATE_TOOL_CALL, GATE_CATEGORY_WRITE, true},
    {"LoadModule", GATE_TOOL_CALL, GATE_CATEGORY_META, true},
    {"SpawnWorker", GATE_TOOL_CALL, GATE_CATEGORY_META, true},
    {"WorkerResult", GATE_TOOL_CALL, GATE_CATEGORY_READ, true},
    {"llm", GATE_TOOL_CALL, GATE_CATEGORY_HOST, true},
    {"WriteFile", GATE_TOOL_CALL, GATE_CATEGORY_WRITE, true},
    {"Edit", GATE_TOOL_CALL, GATE_CATEGORY_WRITE, true},
    {"Search", GATE_TOOL_CALL, GATE_CATEGORY_READ, true},
    {"Filter", GATE_TOOL_CALL, GATE_CATEGORY_READ, true},
    {"Fuse", GATE_TOOL_CALL, GATE_CATEGORY_READ, true},
    {"Diversify", GATE_TOOL_CALL, GATE_CATEGORY_READ, true},
    {"Rescore", GATE_TOOL_CALL, GATE_CATEGORY_READ, true},
};
const size_t gate_ntools = sizeof gate_tools / sizeof *gate_tools;

#define WORDS(...)                                                                                 \
    (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)
const struct gate_role gate_worker_types[] = {
    {"explore", WORDS("ReadFile", "ListFiles", "Grep", "Find")},
    {"analyze", WORDS("ReadFile", "ListFiles", "Grep", "Jq")},
    {"execute", WORDS("*")},
};
const size_t gate_nworker_types = sizeof gate_worker_types / sizeof *gate_worker_types;

static const char *const default_paths[] = {"/core/", "/tools/"};

static const enum gate_risk category_risks[] = {
#define X(name, word, risk, examples) risk,
    GATE_CATEGORIES(X)
#undef X
};

static const char *const failure_words[] = {
#define X(name, word, key, text) word,
    GATE_FAILURES(X)
#undef X
};

const char *gate_risk_name(enum gate_risk risk)
{
    static const char *const names[] = {"low", "medium", "high", "critical"};
    return names[risk];
}

int gate_failure_find(const char *word)
{
    for (int i = 0; i < GATE_FAILURE_COUNT; i++)
        if (strcmp(failure_words[i], word) == 0)
            return i;
    return -1;
}

void gate_config_init(struct gate_config *c)
{
    *c = (struct gate_config){
        .role = "execute",
        .lock_ms = LIMIT_LOCK_MS,
        .roles = gate_worker_types,
        .nroles = gate_nworker_types,
        .rates = {.executions = 100,
                  .window_ms = 60000,
                  .concurrent = 10,
                  .model_calls = 60,
                  .model_window_ms = 60000,
                  .model_burst = 10},
        .breaker = {.failures = 3, .cooldown_ms = 60000, .counts = (1U << GATE_FAILURE_COUNT) - 1},
        .approval = {.mode = GATE_AUTONOMOUS, .every_n = 5, .expiry_ms = 15 * 60 * 1000ULL},
        .iterations = 50,
        .arena = {.timeout_ms = 30000,
                  .risk = GATE_RISK_HIGH,
                  .paths = default_paths,
                  .npaths = sizeof default_paths / sizeof *default_paths},
    };
}

static int bounded(const char *name, uint64_t value, uint64_t least, uint64_t most, struct err *err)
{
    return value >= least && value <= most
               ? 0
               : err_set(err, ERR_USAGE, "%s is %llu; it may be %llu to %llu", name,
                         (unsigned long long)value, (unsigned long long)least,
                         (unsigned long long)most);
}

int gate_config_check(const struct gate_config *c, struct err *err)
{
    const struct {
        const char *name;
        uint64_t value, least, most;
    } rows[] = {
        {"rates.executions", c->rates.executions, 1, GATE_RATE_MAX},
        {"rates.window (ms)", c->rates.window_ms, 1, 86400000},
        {"rates.concurrent", c->rates.concurrent, 1, GATE_PLACES_MAX},
        {"rates.concurrent_per_client", c->rates.concurrent_per_client, 0, GATE_PLACES_MAX},
        {"rates.model_calls", c->rates.model_calls, 1, 1000000},
        {"rates.model_window (ms)", c->rates.model_window_ms, 1, 86400000},
        {"rates.model_burst", c->rates.model_burst, 1, 1000000},
        {"breakers.failures", c->breaker.failures, 1, 1000},
        {"breakers.cooldown (ms)", c->breaker.cooldown_ms, 1, 86400000},
        {"approval.every_n", c->approval.every_n, 1, 1000000},
        {"arena.timeout (ms)", c->arena.timeout_ms, 1, 3600000},
        {"approval.expiry (ms)", c->approval.expiry_ms, 1, 30ULL * 86400000},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int r = bounded(rows[i].name, rows[i].value, rows[i].least, rows[i].most, err);
        if (r < 0)
            return r;
    }
    if (!gate_role_find(c, c->role))
        return err_set(err, ERR_USAGE, "there is no role '%.40s'", c->role);
    return 0;
}

const struct gate_tool *gate_tool_find(const struct gate_config *c, const char *name)
{
    for (size_t i = 0; i < gate_ntools; i++)
        if (strcmp(gate_tools[i].name, name) == 0)
            return &gate_tools[i];
    for (size_t i = 0; i < c->nhost; i++)
        if (strcmp(c->host[i].name, name) == 0)
            return &c->host[i];
    return NULL;
}

const struct gate_role *gate_role_find(const struct gate_config *c, const char *name)
{
    for (size_t i = 0; i < c->nroles; i++)
        if (strcmp(c->roles[i].name, name) == 0)
            return &c->roles[i];
    return NULL;
}

bool gate_role_may(const struct gate_role *role, const char *tool)
{
    for (size_t i = 0; i < role->ntools; i++)
        if (strcmp(role->tools[i], "*") == 0 || strcmp(role->tools[i], tool) == 0)
            return true;
    return false;
}

bool gate_tool_asks(const struct gate_config *c, const char *tool)
{
    for (size_t i = 0; i < c->ntools; i++)
        if (strcmp(c->tools[i].name, tool) == 0)
            return c->tools[i].approval;
    return false;
}

enum gate_risk gate_tool_risk(const struct gate_config *c, const struct gate_tool *tool)
{
    for (size_t i = 0; i < c->ntools; i++)
        if (strcmp(c->tools[i].name, tool->name) == 0)
            return c->tools[i].risk;
    return category_risks[tool->category];
}
