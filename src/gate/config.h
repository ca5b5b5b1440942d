/* SPDX-License-Identifier: Apache-2.0 */
/* What the gate is told: roles, tools, rates, breakers, approval, arena. Plain data.
 *
 * Takes:   the policy's values, copied or pointed at; they outlive the gate.
 * Gives:   the defaults, and the tables of worker types, tool categories and tools.
 * Never:   reads a file.
 * Runs in: the supervisor.
 */
#ifndef GATE_CONFIG_H
#define GATE_CONFIG_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gate_risk { GATE_RISK_LOW, GATE_RISK_MEDIUM, GATE_RISK_HIGH, GATE_RISK_CRITICAL };
const char *gate_risk_name(enum gate_risk risk); /* low, medium, high, critical */

/* Tool categories and the risk that each carries. */
#define GATE_CATEGORIES(X)                                                                         \
    X(READ, "read-only", GATE_RISK_LOW, "ReadFile, ListFiles, Grep")                               \
    X(WRITE, "write", GATE_RISK_MEDIUM, "WriteFile, CreateTool, Edit")                             \
    X(META, "meta", GATE_RISK_HIGH, "LoadModule, ModifyGoal; new code that is run")                \
    X(HOST, "host", GATE_RISK_HIGH, "commands and models of the operator: each has its own risk")  \
    X(SYSTEM, "system", GATE_RISK_CRITICAL, "none is open to a client: the gate refuses them all")

enum gate_category_kind {
#define X(name, word, risk, examples) GATE_CATEGORY_##name,
    GATE_CATEGORIES(X)
#undef X
        GATE_CATEGORY_COUNT
};

/* What a tool is, as the code that implements it says. */
enum gate_tool_kind {
    GATE_TOOL_EXECUTION, /* takes a slot and a turn of the rates */
    GATE_TOOL_CALL,      /* made by code that already runs: takes neither */
};

struct gate_tool {
    const char *name;
    enum gate_tool_kind kind;
    enum gate_category_kind category;
    bool unjudged; /* there is nothing that a judge could read: a plan needs no report */
};

/* A role is a set of tools; "*" stands for all of them. The worker types are roles. */
struct gate_role {
    const char *name;
    const char *const *tools;
    size_t ntools;
};

/* What policy says about a tool: it may move a tool to another risk. */
struct gate_tool_rule {
    const char *name;
    enum gate_risk risk;
    bool approval; /* a person is asked about each use, whatever the mode */
};

enum gate_mode { GATE_AUTONOMOUS, GATE_HITL, GATE_EVERY_N };
enum gate_approvers {
    GATE_OTHER_SESSION, /* nobody from the process tree that asked; a terminal is needed */
    GATE_OTHER_USER,    /* another user (root included), and the rule above */
};

/* A model's program is ours: where it fails, what it wrote says why. */
enum gate_judge_kind { GATE_JUDGE_COMMAND, GATE_JUDGE_MODEL };
struct gate_judge {
    const char *name;
    enum gate_judge_kind kind;
    const char *const
        *argv; /* NULL-terminated, argv[0] absolute; of a model: the program that asks it */
    uint64_t timeout_ms; /* 0: the arena's */
};

/* Result statuses that a breaker can count. All count for the tool as this client sees it; those of key
 * REQUEST also for the same code and arguments, ending in the same normalised error. No breaker is shared
 * between clients: one could open it for another. gate/breaker.c has the few
 * error types that are keyed otherwise. */
#define GATE_FAILURES(X)                                                                           \
    X(ERROR, "error", REQUEST, "raised, or exited non-zero (never for exec: its status is data)")  \
    X(TIMEOUT, "timeout", REQUEST, "ran into its time limit")                                      \
    X(MEMORY, "memory", REQUEST, "ran into its memory limit")                                      \
    X(OUTPUT, "output", REQUEST, "flooded its output")                                             \
    X(CRASHED, "crashed", REQUEST, "killed by a signal")                                           \
    X(REFUSED, "refused", REQUEST, "no jail could be built for it")                                \
    X(LOST, "lost", TOOL, "the jail or the worker was lost: nothing the program did")              \
    X(TOOL, "tool", TOOL, "a tool that was called failed by itself")

enum gate_failure {
#define X(name, word, key, text) GATE_FAILURE_##name,
    GATE_FAILURES(X)
#undef X
        GATE_FAILURE_COUNT
};
int gate_failure_find(const char *word); /* -1 when WORD is none */

#define GATE_JUDGES_MAX 9
#define GATE_RATE_MAX   1000 /* executions a window */
#define GATE_PLACES_MAX 200  /* executions at once */

struct gate_event;

struct gate_config {
    const char *role; /* of a request that names none */
    const struct gate_role *roles;
    size_t nroles;
    const struct gate_tool_rule *tools;
    size_t ntools;
    const struct gate_tool *host; /* tools that the operator declared */
    size_t nhost;

    struct {
        uint64_t executions, window_ms; /* at most so many in any window, each client */
        uint64_t concurrent;            /* of this state folder */
        uint64_t concurrent_per_client; /* 0: no narrower */
        uint64_t model_calls, model_window_ms, model_burst; /* token buckets */
    } rates;

    struct {
        uint64_t failures, cooldown_ms;
        uint64_t counts; /* bits of enum gate_failure: which of them count at all */
    } breaker;

    struct {
        enum gate_mode mode;
        uint64_t every_n, expiry_ms;
        enum gate_approvers approvers;
        bool elicitation; /* the person at a client of `cordon serve` may answer there */
        bool tool;        /* clients of `cordon serve` may answer what came through another one */
    } approval;
    uint64_t iterations; /* executions of one task; 0: no cap */

    struct {
        bool on;
        const struct gate_judge *judges;
        size_t njudges;
        uint64_t quorum; /* 0: all of them */
        uint64_t timeout_ms;
        enum gate_risk risk;      /* this and above is judged */
        const char *const *paths; /* writes below these are judged too */
        size_t npaths;
    } arena;

    uint64_t lock_ms; /* how long to wait for the lock of the state; LIMIT_LOCK_MS */
    bool
        readonly; /* for `cordon stop` where the state folder is: gate_stop and gate_running, nothing else */

    const char *approvals_program; /* path of cordon-approvals; NULL: no approval possible */

    void (*on_event)(void *ctx, const struct gate_event *event); /* for the audit; may be NULL */
    void *ctx;
    uint64_t (*now_ns)(void *ctx); /* NULL: the machine's; tests bring their own */
};

/* The defaults: AUTONOMOUS, N = 5, 50 iterations, arena off, role execute, 100 in 60 s, 10 at
 * once, 3 failures, 60 s. */
void gate_config_init(struct gate_config *config);

/* Values that make no sense are ERR_USAGE and named. */
ERR_MUST_USE int gate_config_check(const struct gate_config *config, struct err *err);

/* Every tool that the gate knows: the built-in ones, then the operator's. NULL when there is none of that name. */
const struct gate_tool *gate_tool_find(const struct gate_config *config, const char *name);
extern const struct gate_tool gate_tools[];
extern const size_t gate_ntools;

/* The worker types explore, analyze and execute. */
extern const struct gate_role gate_worker_types[];
extern const size_t gate_nworker_types;
const struct gate_role *gate_role_find(const struct gate_config *config, const char *name);
bool gate_role_may(const struct gate_role *role, const char *tool);
bool gate_tool_asks(const struct gate_config *config, const char *tool);
enum gate_risk gate_tool_risk(const struct gate_config *config, const struct gate_tool *tool);

#endif
