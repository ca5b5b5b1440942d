/* SPDX-License-Identifier: Apache-2.0 */
/* One policy: what may run, how much of it, who must be asked, what is kept. Plain data.
 *
 * Takes:   the built-in defaults (policies/default.yaml, compiled in) and the operator's YAML files.
 * Gives:   one struct with every value set, and where each came from.
 * Never:   parses anything when there is no file; reads a file that somebody else could have written;
 *          takes half a file: a broken one changes nothing and is named.
 * Runs in: the supervisor.
 *
 * Later files win, value by value: built-in, /etc/cordon/policy.yaml, $XDG_CONFIG_HOME/cordon/policy.yaml,
 * --policy. Lists are replaced whole; roles, tools, profiles and upstreams are merged by name.
 */
#ifndef POLICY_POLICY_H
#define POLICY_POLICY_H

#include "base/buf.h"
#include "base/err.h"
#include "base/naming.h"
#include "policy/profile.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct policy_words {
    const char *const *items;
    size_t count;
};

/* Where a value came from; file 0 is the built-in policy. */
struct policy_origin {
    uint16_t file, column;
    uint32_t line;
};

/* The words of each are in keys.inc, in this order. */
enum policy_language { POLICY_PYTHON };
enum policy_mode { POLICY_MODE_FULL, POLICY_MODE_LANDLOCK };
enum policy_memory_by { POLICY_MEMORY_AUTO, POLICY_MEMORY_CGROUP, POLICY_MEMORY_RLIMIT };
enum policy_risk { POLICY_RISK_LOW, POLICY_RISK_MEDIUM, POLICY_RISK_HIGH, POLICY_RISK_CRITICAL };
enum policy_approval { POLICY_AUTONOMOUS, POLICY_HITL, POLICY_EVERY_N };
enum policy_approvers { POLICY_OTHER_SESSION, POLICY_OTHER_USER };
enum policy_escape { POLICY_ESCAPE_PROFILE, POLICY_ESCAPE_HTML, POLICY_ESCAPE_NONE };
enum policy_commit { POLICY_COMMIT_NEVER, POLICY_COMMIT_OK, POLICY_COMMIT_ENDED };
enum policy_answer { POLICY_ANSWER_TEXT, POLICY_ANSWER_JSON };
enum policy_verification { POLICY_VERIFY_STRICT, POLICY_VERIFY_WARN };
enum policy_daemon { POLICY_DAEMON_NEVER, POLICY_DAEMON_PREFERRED, POLICY_DAEMON_REQUIRED };
enum policy_sync { POLICY_SYNC_OFF, POLICY_SYNC_BEGIN, POLICY_SYNC_ON };

/* Of one run. `limits` is what a run gets, `ceilings` the most that a caller may ask for. */
struct policy_limits {
    uint64_t timeout_ms, cpu_ms, memory, descriptors, disk, inodes, processes, threads, output;
};

struct policy_role {
    const char *name;
    struct policy_words tools; /* "*": all of them */
    struct policy_origin origin;
};

struct policy_tool {
    const char *name;
    enum policy_risk risk;
    bool approval; /* a person is asked about each call, whatever the mode */
    /* Of a host tool, which is a command of the operator's; none of them: a tool that is built in. */
    struct policy_words command;  /* the program by absolute path, then its arguments */
    struct policy_words env;      /* NAME=value: all that it has beside PATH and LANG */
    const char *summary, *schema; /* what it does; JSON schema of its arguments */
    enum policy_answer answer;
    uint64_t timeout_ms, memory, output; /* of one call: bytes, bytes */
    struct policy_origin origin;
};

struct policy_judge { /* of the arena: a command, or a model of the gateway */
    const char *name;
    struct policy_words command; /* the program by absolute path, then its arguments */
    const char *model;           /* empty: a command, or the first model of the gateway */
    const char
        *prompt; /* rules for a model: a name of POLICY_PROMPTS, or a file; empty: a command */
    uint64_t timeout_ms; /* 0: arena.timeout */
    struct policy_origin origin;
};

enum policy_shape { POLICY_SHAPE_OPENAI, POLICY_SHAPE_ANTHROPIC };

struct policy_upstream { /* a model's interface that `cordon proxy` asks */
    const char *name;
    const char *url;                /* https, or http to loopback; without the / at its end */
    const char *key_file, *key_env; /* where its key is; both empty: it needs none */
    const char *ca_file;            /* certificates to verify it by; empty: the system's */
    const char *tier;
    enum policy_shape shape;
    struct policy_words
        models; /* NAME=MODEL: what clients call it, what the upstream calls it; NAME: both */
    struct policy_origin origin;
};

struct policy_client { /* of `cordon proxy` */
    const char *name, *token_file;
    uint64_t budget; /* tokens in a day; 0: no limit */
    struct policy_origin origin;
};

/* Where the parts of a profile came from; `rules` has one for each rule. */
struct policy_profile_origin {
    struct policy_origin summary, imports, guards, threads, compute_only, files, packages,
        source_max;
    const struct policy_origin *rules;
};

struct policy {
    uint64_t version;
    struct policy_words final;             /* keys and sections that later files can only tighten */
    enum policy_verification verification; /* of what programs save: what a rule of `naming` does */
    const struct naming_rule *naming;
    size_t nnaming;
    struct {
        const char *folder; /* empty: by the environment */
    } state;
    struct {
        enum policy_daemon use;
        const char *socket;
    } daemon; /* the server that runs of the command line go through */
    struct {
        const char *profile, *role;
        enum policy_language language;
        struct policy_words profiles; /* those that a caller may choose */
        enum policy_mode mode;
        enum policy_memory_by memory_by;
    } run;
    struct policy_limits limits, ceilings;
    uint64_t flood_factor; /* limits.output times this ends the run */
    struct {
        uint64_t timeout_ms; /* of one call */
        uint64_t output, tool_calls, file_read,
            grep_matches; /* characters, calls, characters, lines */
        uint64_t idle_ms;
        uint64_t
            memory_percent; /* of the machine's, for idle sessions and the one that is called */
    } sessions;
    struct {
        const char *environment; /* a virtual environment; empty: Debian's packages */
        struct policy_words preload;
    } python;
    struct {
        bool enabled;
        uint64_t warm;                 /* children kept ready, each template */
        uint64_t idle_ms;              /* the holder ends when nobody asked for this long */
        uint64_t memory;               /* for children that wait */
        uint64_t renew_ms, renew_runs; /* a template is replaced: by age, by children lent */
    } pool;
    struct {
        enum policy_commit commit;
        uint64_t store;              /* bytes of one store */
        uint64_t free, free_percent; /* of the disk: with less nothing is committed */
        struct policy_words verify;  /* shell commands, for a clone */
        uint64_t verify_ms;          /* of each */
    } workspaces;
    struct {
        struct policy_words collections; /* NAME=/path */
    } search;
    const struct policy_profile *const
        *profiles; /* ended by NULL; NULL itself: the built-in ones */
    const struct policy_role *roles;
    size_t nroles;
    const struct policy_tool *tools;
    size_t ntools;
    struct {
        uint64_t executions, window_ms; /* at most so many in any window, each client */
        uint64_t concurrent;            /* on the machine */
        uint64_t concurrent_per_client; /* 0: no narrower than `concurrent` */
        uint64_t model_calls, model_window_ms, model_burst; /* token bucket of a client */
    } rates;
    struct {
        uint64_t failures, cooldown_ms;
        struct policy_words counts; /* the ways to end that count as a failure */
    } breakers;
    struct {
        enum policy_approval mode;
        uint64_t every_n, expiry_ms;
        enum policy_approvers approvers;
        uint64_t iterations; /* executions of one task; 0: no cap */
        bool elicitation;    /* the person at a client of `cordon serve` may answer there */
        bool tool;     /* clients of `cordon serve` may answer what came through another one */
        bool contents; /* an approval is bound to what lies in shared folders */
    } approval;
    struct {
        bool enabled;
        uint64_t quorum; /* 0: all judges */
        uint64_t timeout_ms;
        enum policy_risk risk;     /* this and above is judged */
        struct policy_words paths; /* writes below these are judged too */
        const struct policy_judge *judges;
        size_t njudges;
    } arena;
    struct {
        enum policy_escape escape;
        uint64_t guarded_cap; /* characters: what the print collector returns */
        bool scrub, redact;
        struct policy_words scrub_paths;  /* further internal paths */
        struct policy_words secret_names; /* further variables whose values are secrets */
    } output;
    struct {
        enum policy_sync sync;
        uint64_t retention_days;
        bool code; /* what is run is kept beside its records */
        uint64_t window_ms, failures, slow_factor, slow_records, slow_floor_ms, duplicates,
            violations;
        struct policy_words alert_to; /* stderr, syslog */
        const char *alert_file;       /* empty: none */
        struct policy_words alert_command;
    } audit;
    struct {
        uint64_t retries;
    } escalation;
    struct {
        uint64_t holdback;   /* tokens of a stream that wait until they are known to be good */
        uint64_t silence_ms; /* an upstream that says nothing for so long is given up */
        bool prompts;        /* records have what was asked */
        const struct policy_client *clients;
        size_t nclients;
    } proxy;
    struct {
        struct policy_words models; /* that may be asked; none: all of the gateway */
        uint64_t tokens, timeout_ms, budget;
        const char *system; /* a file; empty: none */
    } llm;
    const struct policy_upstream *upstreams;
    size_t nupstreams;

    const char *const *files; /* what the origins' numbers mean; files[0] is "built-in" */
    size_t nfiles;
    const struct policy_origin *origins; /* one a row of keys.inc; NULL: all built-in */
    struct policy_origin judges_origin, clients_origin;
    struct policy_origin naming_origin;
    const struct policy_profile_origin *profile_origins; /* one a profile; NULL: all built-in */
};

extern const struct policy policy_builtin;

const struct policy_profile *policy_find_profile(const struct policy *p, const char *name);
/* The profile that a caller named (NULL: run.profile). ERR_USAGE: there is none of that name, or run.profiles does
 * not let callers choose it. */
ERR_MUST_USE int policy_choose_profile(const struct policy *p, const char *name,
                                       const struct policy_profile **ret_profile, struct err *err);
const struct policy_role *policy_find_role(const struct policy *p, const char *name);
const struct policy_tool *policy_find_tool(const struct policy *p, const char *name);
/* The folder of the collection NAME; NULL: there is none. */
const char *policy_find_collection(const struct policy *p, const char *name);
#define POLICY_COLLECTION_MAX 32 /* characters of its name */
/* Whether output.escape means HTML for a run under PROFILE (NULL: a plain program). */
bool policy_escapes_html(const struct policy *p, const struct policy_profile *profile);
/* Whether the machine's policy lets later files and options only tighten the key or section PATH. */
bool policy_is_final(const struct policy *p, const char *path);
bool policy_words_have(const struct policy_words *w, const char *word);

/* ---- the policy in force ---- */

struct policy_store;

/* EXTRA is --policy: a path, or the name of a shipped policy (max-safety, production), or NULL. A file
 * that is not there is no error, except EXTRA. A broken or unsafe one is: nothing runs under a policy
 * that was not understood. Without files this costs a few stat calls. */
ERR_MUST_USE int policy_open(const char *extra, struct policy_store **ret_store, struct err *err);
/* The same with the three files named, each of them or NULL: for tests, and for who knows better. */
ERR_MUST_USE int policy_open_files(const char *system_file, const char *user, const char *asked,
                                   struct policy_store **ret_store, struct err *err);
void policy_close(struct policy_store *store);

/* Borrowed: valid until the next refresh, or as long as it is held. */
const struct policy *policy_now(const struct policy_store *store);

/* Looks at the files (stat only) and takes up what changed. 0: nothing changed; 1: a new policy is in
 * force; negative: a file is broken, the old policy stays in force, and ERR says why (once a change). */
ERR_MUST_USE int policy_refresh(struct policy_store *store, struct err *err);

/* A run that outlives a refresh holds its policy. */
const struct policy *policy_hold(struct policy_store *store);
void policy_release(struct policy_store *store, const struct policy *held);

/* Refuses (ERR_USAGE) when a file in force lies where a guest could write it: in, at, or through a link
 * in one of the WRITABLE paths (binds, workspaces) of a run. */
ERR_MUST_USE int policy_paths_safe(const struct policy_store *store, const char *const *writable,
                                   size_t count, struct err *err);
ERR_MUST_USE int policy_path_safe(const char *path, const char *const *writable, size_t count,
                                  struct err *err);

#endif
