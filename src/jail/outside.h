/* SPDX-License-Identifier: Apache-2.0 */
/* What the supervisor's files of this room share: the run's state and the facilities seen from
 * outside.
 *
 * Takes:   a specification and the parts of a run in the making.
 * Gives:   started processes, opened binds, cgroups, recorded violations.
 * Never:   is included outside src/jail.
 * Runs in: the supervisor.
 */
#ifndef JAIL_OUTSIDE_H
#define JAIL_OUTSIDE_H

#include "base/limits.h"
#include "jail/run.h"

#include <sys/types.h>

struct jail_family;
struct jail_filter;

/* Who the guest is on the host. Real root never is the guest: it gets an id of its own for each
 * run, from a range that no system hands out. */
struct jail_identity {
    bool change;        /* we are root and must become uid, gid first */
    bool mapped_mounts; /* and may map mounts to that id */
    uid_t uid;
    gid_t gid;
    /* Of a leased child: its own, which its files have. UID owns the namespaces that it is in. */
    uid_t files_uid;
    gid_t files_gid;
    uint64_t user_ns; /* the user namespace that we are in */
};
ERR_MUST_USE int jail_identity_choose(struct jail_identity *ret, struct err *err);
/* Makes it the identity of a template, and says how many ids it has: JAIL_TEMPLATE_IDS, or 0 where only one is to be
 * had (an ordinary user, a container's root). Two templates that live at the same time have different ones. */
uint64_t jail_identity_of_template(struct jail_identity *id);
/* The id that owns the namespaces of whoever has ID: the template's, if a child of one has it; else ID itself. */
unsigned jail_identity_owner(unsigned id);

/* binds.c: opens each source of the specification into fds[]; the specification says whether they are detached
 * mounts. */
ERR_MUST_USE int jail_binds_open(struct jail_spec *spec, const struct jail_identity *id, int *fds,
                                 struct err *err);

/* A detached mount of the folder SOURCE, which nobody writes; mapped to the id where that is to be had. For root. */
ERR_MUST_USE int jail_bind_map_lower(int source, uid_t uid, gid_t gid, struct err *err);

/* shared.c: the modes of what the guest may write in, as they were before it. */
struct jail_shared {
    size_t count;
    int fd[LIMIT_BINDS];
    mode_t mode[LIMIT_BINDS];
    const char *source[LIMIT_BINDS]; /* the specification's */
};
ERR_MUST_USE int jail_shared_open(struct jail_shared *shared, const struct jail_spec *spec,
                                  const int *fds, struct err *err);
/* When the last process of the guest is dead. Once; what was changed is told to OUT. */
void jail_shared_restore(struct jail_shared *shared, struct jail_outcome *out);

/* cgroup.c */
enum { JAIL_CGROUP_MEMORY, JAIL_CGROUP_PIDS, JAIL_CGROUP_CPU, JAIL_CGROUP_PARTS };
struct jail_cgroup {
    int version; /* 0: none; 1: a folder in each hierarchy; 2: one folder, in slot MEMORY */
    char name[64];
    int parent[JAIL_CGROUP_PARTS], dir[JAIL_CGROUP_PARTS]; /* -1 where there is none */
};
#define JAIL_CGROUP_NONE                                                                           \
    {                                                                                              \
        .parent = {-1, -1, -1}, .dir = { -1, -1, -1 }                                              \
    }
/* 2, 1 or 0: what this machine mounts a memory controller as; and whether that is 2, in one call. */
int jail_cgroup_version(void);
bool jail_cgroup_unified(void);
struct jail_janitor;
/* Whatever is made was told to the janitor first. */
ERR_MUST_USE int jail_cgroup_make(const struct jail_limits *limits, struct jail_janitor *janitor,
                                  struct jail_cgroup *ret, struct err *err);
void jail_cgroup_remove(int parent, const char *name); /* ends what is in it */
ERR_MUST_USE int jail_cgroup_move_in(const struct jail_cgroup *cg, pid_t pid,
                                     struct err *err); /* 0: us */
bool jail_cgroup_oom_killed(const struct jail_cgroup *cg);
uint64_t jail_cgroup_refused(const struct jail_cgroup *cg); /* new tasks, so far */
uint64_t jail_cgroup_cpu_us(const struct jail_cgroup *cg);  /* 0 if not counted */
uint64_t jail_cgroup_peak(const struct jail_cgroup *cg);
void jail_cgroup_close(struct jail_cgroup *cg); /* closes its descriptors; the janitor removes it */

/* janitor.c: a small process that outlives the supervisor's death by any signal, and removes what the
 * kernel does not remove by itself. It does so also in the ordinary case: one way, always tested. */
struct jail_janitor {
    pid_t pid; /* 0: none */
    int leash; /* closing it (or dying) sets the janitor to work */
    bool doubled;
};
ERR_MUST_USE int jail_janitor_start(struct jail_janitor *j, struct err *err);
/* Before it is made: a cgroup NAME below PARENT, or (PARENT -1) a folder with this path. */
ERR_MUST_USE int jail_janitor_tell(struct jail_janitor *j, int parent, const char *name,
                                   struct err *err);
/* A second janitor, for whoever gives up root now and could not do its work if somebody killed or stopped it. */
ERR_MUST_USE int jail_janitor_double(struct jail_janitor *j, struct err *err);
bool jail_janitor_finish(
    struct jail_janitor *j); /* waits; false: it was killed, and left things there */

/* scratch.c: the folder of a run without namespaces. */
ERR_MUST_USE int jail_scratch_make(const struct jail_identity *id, struct jail_janitor *j,
                                   char *path, size_t size, struct err *err);
void jail_scratch_remove(const char *path);
/* All that lies in the folder TOP, as far as it can be removed within MOST_MS. */
void jail_scratch_empty(int top, uint64_t most_ms);

/* spawn.c: builds the jail and starts the program in it. When it returns 0 the program runs, and
 * the pid is that of the init above it. */
struct jail_spawn {
    const struct jail_spec *spec;
    const struct jail_identity *id;
    const struct jail_cgroup *cgroup; /* NULL: none */
    int nest;                         /* cordon-nest, executable */
    int control[2];                   /* ours, theirs */
    int stdio[3];
    int channel; /* -1: none */
    int worker;  /* what locks itself, executable; -1: the program is executed locked */
    const int *binds;
    const int *stops; /* readable: the jail is not built */
    size_t nstops;    /* at most JAIL_STOPS */
};
/* What the builder left: all of it stands only if it did its work. */
struct jail_spawned {
    pid_t nest;
    struct jail_layers layers;
    uint64_t refused; /* tasks that the cgroup had no room for while the jail was built */
    void *memory;     /* the builder's, for jail_spawn_done */
};
/* 1: one of STOPS said no; nothing is left of it. */
ERR_MUST_USE int jail_spawn(const struct jail_spawn *s, struct jail_spawned *ret, struct err *err);
/* The builder stood in this memory. For when the init above the guest has been waited for; takes NULL. */
void jail_spawn_done(void *memory);

/* feed.c: the guest's input, from a descriptor that stays ours. */
struct jail_feed {
    int from, to, epoll; /* to: -1 when there is nothing (more) to feed */
    uint32_t tag;
    bool always_ready;
    bool by_line;   /* nothing is read unless a line is wanted */
    unsigned lines; /* that are wanted */
    size_t at, len;
    char *data;
};
ERR_MUST_USE int jail_feed_start(struct jail_feed *f, int from, int epoll, uint32_t tag,
                                 int *ret_theirs, struct err *err);
/* The same into a pipe that is there, whose end TO is the feed's then. */
ERR_MUST_USE int jail_feed_join(struct jail_feed *f, int from, int to, int epoll, uint32_t tag,
                                struct err *err);
/* From now on nothing is read from the caller's descriptor but what jail_feed_line asks for. */
void jail_feed_by_line(struct jail_feed *f);
void jail_feed_line(struct jail_feed *f);
void jail_feed_step(struct jail_feed *f);
void jail_feed_stop(struct jail_feed *f);

/* notify.c */
struct jail_watch {
    int listener;
    const struct jail_filter *filter;
    const struct jail_limits *limits;
    struct jail_family *family; /* of a session: its branches have the same listener; else NULL */
    pid_t only;                 /* of a session: the process whose calls are ours */
    /* A cgroup bounds memory, and not the address space of each process; and it tells when it refused a task: no need to guess at
     * the end. */
    bool in_group;
    struct jail_outcome *out;
};
void jail_notify_handle(struct jail_watch *w); /* one pending notification, if there is one */
/* The first look at a process in /proc is the slow one: the supervisor takes it here, while nobody waits for it. */
void jail_notify_expect(pid_t pid);
/* What a process that ends holds at its end. */
void jail_notify_last_look(struct jail_watch *w, pid_t pid);
/* locks.c: whether the process PID, which asks for a POSIX lock, may take one more; records it if not. */
bool jail_locks_may_take(struct jail_watch *w, pid_t pid);
/* How much address space a process that fails had. */
void jail_notify_look_at_memory(struct jail_watch *w, pid_t pid);
/* violations.c: what the kernel or the supervisor saw, and what the worker told. */
void jail_violation_add(struct jail_outcome *out, const char *layer, const char *rule,
                        const char *detail, const char *hint);
void jail_violation_told(struct jail_outcome *out, const char *layer, const char *rule,
                         const char *detail, const char *hint, uint64_t line);
bool jail_violation_known(const struct jail_outcome *out, const char *rule);
void jail_violation_quota(struct jail_outcome *out, const struct jail_limits *limits, bool bytes,
                          bool inodes);
void jail_violation_processes(struct jail_outcome *out, uint64_t used,
                              uint64_t most); /* told once */

#endif
