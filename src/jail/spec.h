/* SPDX-License-Identifier: Apache-2.0 */
/* The specification of one run's jail as data: complete before the first system call is made.
 *
 * Takes:   what the caller decided (program, files, limits, mode).
 * Gives:   one struct that the builder and the launcher act on, verb by verb.
 * Never:   holds a decision that is taken later, or a path that a guest chose.
 * Runs in: the supervisor, the builder and the launcher.
 */
#ifndef JAIL_SPEC_H
#define JAIL_SPEC_H

#include "base/err.h"
#include "base/limits.h"

#include <stdbool.h>
#include <stdint.h>

enum jail_mode {
    JAIL_FULL,     /* namespaces, private root, Landlock, seccomp, rlimits, cgroup */
    JAIL_LANDLOCK, /* the weaker mode: no namespaces; chosen by name, never by itself */
};

enum jail_kind {
    JAIL_KIND_PROGRAM,  /* the guest: every lock closed before its first instruction */
    JAIL_KIND_TEMPLATE, /* ours: same root, but it may make the namespaces of its children */
    JAIL_KIND_CHILD, /* a guest forked from a template: no exec, and the root is the template's */
};

enum jail_memory_by { JAIL_MEMORY_AUTO, JAIL_MEMORY_CGROUP, JAIL_MEMORY_RLIMIT };

/* A folder or file of the host that the guest sees. */
struct jail_bind {
    const char *source, *dest;
    bool writable;
    bool moved;  /* DEST was named */
    bool ours;   /* a program of ours, which everybody may read: nobody's files are in it */
    bool out;    /* not shown: files that the guest leaves are taken there */
    bool copied; /* not shown: its copy is put into /workspace, and is the guest's own */
    bool lower;  /* the lower layer of /workspace: not shown itself, and never changed */
    bool links;  /* the operator named SOURCE, not the caller: links on the way are followed */
    uint64_t device, inode; /* of what SOURCE must be; inode 0: whatever is there */
    bool given; /* SOURCE is only a word for it: the file is open as FD, which stays the caller's */
    int fd;
};
/* Whether the guest sees it as /workspace, or below that. */
bool jail_bind_in_workspace(const struct jail_bind *b);

#define JAIL_LIMITS(X)                                                                             \
    X(wall_ms)                                                                                     \
    X(cpu_ms)                                                                                      \
    X(memory) X(space) X(descriptors) X(disk) X(inodes) X(processes) X(threads) X(output) X(flood)

/* space: addresses beside the memory, which an interpreter has and does not fill (base/languages.h); only RLIMIT_AS knows of it. */
struct jail_limits {
#define X(name) uint64_t name;
    JAIL_LIMITS(X)
#undef X
};

#define JAIL_LIMIT_COUNT (sizeof(struct jail_limits) / sizeof(uint64_t))

/* Whether a failed process that had MAPPED bytes of address space may have met RLIMIT_AS: a request for at most
 * 1/JAIL_MEMORY_SEEN of its memory passes the filter unseen, so one that was refused unseen finds less than that free.
 * Larger ones are seen, and refused, by the supervisor (JAIL_RULE_MEMORY). */
enum { JAIL_MEMORY_SEEN = 8 };

static inline bool jail_memory_was_short(uint64_t mapped, const struct jail_limits *l)
{
    return mapped > l->memory + l->space - l->memory / JAIL_MEMORY_SEEN;
}

/* Layers that a TEST-ONLY build can turn off one at a time, to show that another one holds. */
#define JAIL_SWITCHES(X)                                                                           \
    X(user)                                                                                        \
    X(mount)                                                                                       \
    X(pid)                                                                                         \
    X(net)                                                                                         \
    X(ipc)                                                                                         \
    X(uts) X(cgroupns) X(fds) X(caps) X(nnp) X(rlimits) X(cgroup) X(landlock) X(seccomp) X(quota)

enum jail_switch {
#define X(name) JAIL_OFF_##name,
    JAIL_SWITCHES(X)
#undef X
        JAIL_SWITCH_COUNT
};

/* Ids on the host that a template of root's has: the first is its own, each child that lives has another one. */
#define JAIL_TEMPLATE_IDS 4096

#define JAIL_OWN "/live/own" /* where what the guest may write is mounted */
/* Where in that file system the layers of /workspace are while it has some, and what the guest changed. */
#define JAIL_LAYERS       ".layers"
#define JAIL_UPPER_IN     "upper"
#define JAIL_UPPER        JAIL_LAYERS "/" JAIL_UPPER_IN
#define JAIL_WORKSPACE_IN "workspace"
/* Of a session's file system, beside what the guest may have: its root, two folders and the layers. */
#define JAIL_LAYER_INODES 9
#define JAIL_BRANCH_ROOM  32 /* branches of a session that live at the same time */

struct jail_spec {
    enum jail_kind kind;
    enum jail_mode mode;
    bool proc;             /* mount a masked /proc */
    bool memory_by_rlimit; /* address space is what bounds memory */
    bool run_written;      /* files that the guest wrote may be executed */
    bool keep_files;       /* what it leaves in /workspace can be read after the end */
    bool binds_detached;   /* bind descriptors are detached mounts, made by real root */
    bool branches;         /* a child that may be forked while it lives */
    bool foreign;          /* a template that imports code which is not the system's */
    bool alone;            /* a template of one child, which has the template's own id */
    bool locks_itself;     /* ours: executed while its root is built, where that can be (early.c) */
    uint64_t switches;     /* bits of enum jail_switch; always 0 in the product */
    uint64_t before_ms;    /* at most until jail_run_clock; 0: it is never called */
    uint64_t inner_id;     /* the uid and gid the guest sees as its own */
    uint64_t ids;        /* of a template: JAIL_TEMPLATE_IDS, or 0: its children have its own id */
    const char *filter;  /* name of the system call table */
    const char *program; /* absolute path inside */
    const char *cwd;
    const char **argv, **env; /* NULL-terminated */
    size_t argc, envc;
    struct jail_bind *binds;
    size_t nbinds;
    struct jail_limits limits;
    uint64_t stack; /* RLIMIT_STACK, set before the program is executed; 0: as the caller has it */
};

/* Whether a layer is off. In the product this is the constant false and costs nothing. */
#ifdef CORDON_LAYER_SWITCHES
#define jail_off(spec, name) ((spec)->switches >> JAIL_OFF_##name & 1)
#else
#define jail_off(spec, name) ((void)(spec), false)
#endif

/* Whether /workspace has a layer below it. */
static inline bool jail_spec_layered(const struct jail_spec *spec)
{
    for (size_t i = 0; i < spec->nbinds; i++)
        if (spec->binds[i].lower)
            return true;
    return false;
}

/* Whether the guest finds its descriptors by name (/dev/fd) without a /proc: any program, no worker of ours. */
static inline bool jail_spec_names_descriptors(const struct jail_spec *spec)
{
    return spec->kind == JAIL_KIND_PROGRAM && spec->mode == JAIL_FULL && !spec->locks_itself &&
           !spec->proc;
}

/* TEST-ONLY build: reads CORDON_TEST_OFF=layer. In the product it does nothing. */
ERR_MUST_USE int jail_switches_from_env(struct jail_spec *spec, struct err *err);

/* Fills in the defaults of base/limits.h. */
void jail_spec_init(struct jail_spec *spec);

/* Every limit within what makes sense, or ERR_USAGE naming the one that is not. */
ERR_MUST_USE int jail_spec_check(const struct jail_spec *spec, struct err *err);

#endif
