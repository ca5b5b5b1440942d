/* SPDX-License-Identifier: Apache-2.0 */
/* The options that every way of running shares, and the jail specification that they make.
 *
 * Takes:   words of the command line.
 * Gives:   a jail's specification: limits, binds, environment, mode; an opened input.
 * Never:   guesses: what is not understood is named, with what would be.
 * Runs in: `cordon`.
 */
#ifndef PROG_CORDON_JAIL_OPTIONS_H
#define PROG_CORDON_JAIL_OPTIONS_H

#include "base/arena.h"
#include "jail/run.h"
#include "options.h"
#include "policy/policy.h"

struct jail_options {
    bool proc, run_written;
    const char *net, *mode, *memory_by, *input;
    struct option_list ro, rw, in, env;
    struct jail_limits limits; /* UINT64_MAX: not said, the policy's */
    bool served;               /* by a server, which may have read them in an earlier policy */
    const char *policy, *role, *task, *escape;
    const char *venv;      /* a virtual environment, in place of the policy's */
    const char *workspace; /* of run and exec; NULL: none */
    const char *out;       /* of run and exec: the folder that takes what the program leaves */
    bool replace;          /* with OUT: files of the same name */
    bool no_wait, discard;
};

/* Nothing was said yet. */
void jail_options_init(struct jail_options *o);

#define JAIL_OPTIONS_ROWS_SEES(o)                                                                  \
    {"", OPTION_GROUP, NULL, NULL, "What the program sees:"},                                      \
        {"ro", OPTION_LIST, &(o)->ro, "PATH[:DEST]",                                               \
         "show a folder or file, read-only; no symbolic link on the way"},                         \
        {"rw", OPTION_LIST, &(o)->rw, "PATH[:DEST]",                                               \
         "show it writable; --disk bounds each file there, not the sum"},                          \
        {"in", OPTION_LIST, &(o)->in, "PATH[:NAME]",                                               \
         "copy a file, or what a folder holds, into /workspace; yours stays as it is"},            \
        {"out", OPTION_STRING, &(o)->out, "DIR",                                                   \
         "take the files that it leaves in /workspace; none there is overwritten"},                \
        {"replace", OPTION_FLAG, &(o)->replace, NULL,                                              \
         "with --out: files of the same name in DIR are replaced"},                                \
        {"env", OPTION_LIST, &(o)->env, "K=V", "set an environment variable (repeatable)"},        \
        {"workspace", OPTION_STRING, &(o)->workspace, "W",                                         \
         "its /workspace is this workspace's; what it changes is committed"},                      \
        {"discard", OPTION_FLAG, &(o)->discard, NULL,                                              \
         "with --workspace: what it changes is not committed"},                                    \
    {                                                                                              \
        "stdin", OPTION_STRING, &(o)->input, "FILE|-",                                             \
            "its input; - is our own (default: nothing)"                                           \
    }

#define JAIL_OPTIONS_ROWS_LIMITS(o)                                                                \
    {"", OPTION_GROUP, NULL, NULL, "Limits:"},                                                     \
        {"timeout", OPTION_MILLIS, &(o)->limits.wall_ms, "TIME", "wall clock (30s)"},              \
        {"cpu", OPTION_MILLIS, &(o)->limits.cpu_ms, "TIME", "CPU time (30s)"},                     \
        {"memory", OPTION_BYTES, &(o)->limits.memory, "SIZE", "memory (512m)"},                    \
        {"memory-by", OPTION_STRING, &(o)->memory_by, "WHAT",                                      \
         "auto, cgroup or rlimit: what enforces it (auto)"},                                       \
        {"descriptors", OPTION_COUNT, &(o)->limits.descriptors, "N", "open files at once (64)"},   \
        {"disk", OPTION_BYTES, &(o)->limits.disk, "SIZE",                                          \
         "bytes held in /workspace and /tmp (100m)"},                                              \
        {"inodes", OPTION_COUNT, &(o)->limits.inodes, "N", "files and folders there (10000)"},     \
    {                                                                                              \
        "output", OPTION_BYTES, &(o)->limits.output, "SIZE",                                       \
            "output kept, each stream (10m); 10 times that ends the run"                           \
    }

#define JAIL_OPTIONS_ROWS_ASKS(o)                                                                  \
    {"policy", OPTION_STRING, &(o)->policy, "FILE", "a policy on top of the machine's"},           \
        {"role", OPTION_STRING, &(o)->role, "ROLE", "explore, analyze or execute (execute)"},      \
        {"task", OPTION_STRING, &(o)->task, "NAME",                                                \
         "what it is a step of: approval.iterations bounds its steps (none)"},                     \
        {"escape", OPTION_STRING, &(o)->escape, "HOW",                                             \
         "text in --json: none, or html for who puts it into a page (none)"},                      \
    {                                                                                              \
        "no-wait", OPTION_FLAG, &(o)->no_wait, NULL,                                               \
            "refuse at once instead of waiting for a slot or a person"                             \
    }

/* Fills SPEC but for program and filter. Strings live in MEM or argv. */
ERR_MUST_USE int jail_options_fill(const struct jail_options *o, const struct policy *policy,
                                   struct jail_spec *spec, enum jail_memory_by *ret_by,
                                   struct arena *mem, struct err *err);

#define JAIL_OPTIONS_ROW_VENV(o)                                                                   \
    {                                                                                              \
        "venv", OPTION_STRING, &(o)->venv, "DIR",                                                  \
            "programs get the packages of this virtual environment, read-only"                     \
    }

/* --venv as an absolute path into *RET_VENV; NULL: none was named. ERR_USAGE: the machine's policy does not leave it open. */
ERR_MUST_USE int jail_options_venv(const char *venv, const struct policy *policy, struct arena *mem,
                                   const char **ret_venv, struct err *err);

/* ERR_USAGE: --in, --out or --venv for a program that has no files and no packages. */
ERR_MUST_USE int jail_options_files(const struct jail_options *o,
                                    const struct policy_profile *profile, struct err *err);

/* The folder of --out, made if it is not there. *ret_fd is -1 when there is none. */
ERR_MUST_USE int jail_options_open_out(const struct jail_options *o, const struct jail_spec *spec,
                                       const struct policy *policy, int *ret_fd, struct err *err);

/* *ret_fd is -1 when there is no input. */
ERR_MUST_USE int jail_options_open_input(const char *input, int *ret_fd, struct err *err);

/* The index of WORD in NAMES (ended by NULL), or ERR_USAGE that lists them. */
ERR_MUST_USE int jail_options_choose(const char *option, const char *word, const char *const *names,
                                     struct err *err);

/* A descriptor that becomes readable when somebody wants us to stop. From then on SIGINT, SIGTERM and
 * SIGHUP do nothing else. */
int jail_options_stop_fd(void);

#endif
