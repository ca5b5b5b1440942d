/* SPDX-License-Identifier: Apache-2.0 */
/* The facilities as the builder and the launcher apply them, one file each. build.c has the order
 * in which root and namespaces are made, apply.c that of the locks.
 *
 *   supervisor --clone--> builder (pid 1 of the jail) --clone--> launcher --exec--> the program
 *                            `--exec--> cordon-nest, once the program runs
 *
 * Takes:   a specification and descriptors.
 * Gives:   a running program behind its locks, or a record that names the facility that failed.
 * Never:   runs a guest's byte; goes on after a step failed.
 * Runs in: the builder and the launcher: trusted, in the supervisor's memory, before the program
 * runs.
 */
#ifndef JAIL_INSIDE_H
#define JAIL_INSIDE_H

#include "base/err.h"
#include "jail/attest.h"
#include "jail/spec.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What the three share. The supervisor waits while the builder works, and the builder while the
 * launcher does: at any time one of them touches this, and one of them uses errno. */
struct jail_stage {
    const struct jail_spec *spec;
    const struct jail_proof *own; /* who and where the supervisor is */
    struct jail_proof *own_rest;  /* the same, for what the builder has to add */
    uid_t uid;                    /* the id on the host that is root of the jail's namespace */
    gid_t gid;
    int mapped[2];             /* a template's: readable when its block of ids is mapped */
    int proc;                  /* /proc of the supervisor's world */
    int own_proc;              /* a template's: a procfs of its own pid namespace */
    int user_limits;           /* a template's and a child's: /proc/sys/user */
    int nest;                  /* cordon-nest, to be executed */
    int control[2];            /* supervisor's end, cordon-nest's end */
    int net;                   /* set by its maker: the empty network; -1: there is none yet */
    int net_busy;              /* not 0 while its maker is in our memory */
    pid_t net_maker;           /* 0 when it was waited for */
    uint64_t refused;          /* times that the cgroup had no room yet for a process of ours */
    int stdio[3];              /* the guest's streams */
    int channel;               /* and what it finds as descriptor 3; -1: none */
    int worker;                /* what locks itself, to be executed early; -1: nothing does */
    int orders[2];             /* builder's end, worker's end */
    pid_t early;               /* the worker, while its root is built */
    pid_t launcher;            /* set by the kernel when it is cloned; 0 when it was waited for */
    const int *binds;          /* one for each of the specification's */
    int quota;                 /* set by the builder: the file system that counts; -1: none */
    int ruleset;               /* the Landlock rules, made ahead; a template's makes them itself */
    int listener;              /* set by the launcher; -1: none */
    int started[2];            /* from the builder to the supervisor: the program runs */
    int ready[2];              /* from the launcher to the builder */
    struct jail_layers layers; /* set by the launcher */
    struct err err;            /* set by whoever fails */
};

/* How a message explains that a wait of FD_PATIENCE_MS timed out. */
#define JAIL_TOO_LATE "within 10 seconds; it was stopped, or the machine is overloaded"

/* ns.c */
struct jail_namespace {
    const char *name; /* as in /proc/PID/ns */
    uint64_t flag;
    enum jail_switch off;
};
extern const struct jail_namespace jail_namespaces[];
extern const size_t jail_namespace_count;
uint64_t jail_ns_outer_flags(const struct jail_spec *spec); /* the builder is cloned with these */
uint64_t jail_ns_later_flags(const struct jail_spec *spec); /* and makes these itself */
uint64_t jail_ns_inner_flags(const struct jail_spec *spec); /* the launcher's, on top */
/* Gives setgroups up, for this namespace and all below: only then is a gid map taken from a process
 * without CAP_SETGID outside. */
int jail_ns_no_setgroups(int proc);
/* Writes the one-line maps INSIDE -> OUTSIDE of the process WHO (its folder in /proc), or of the calling one. PROC is a descriptor of /proc.
 * Returns 0, or -1 with errno. */
int jail_ns_map(int proc, const char *who, unsigned long inside_uid, unsigned long outside_uid,
                unsigned long inside_gid, unsigned long outside_gid);
/* The ids from 0 on of WHO's namespace are COUNT ids of ours from UID and GID on; setgroups is given up there. Needs
 * CAP_SETUID and CAP_SETGID here. */
int jail_ns_map_block(int proc, const char *who, unsigned long uid, unsigned long gid,
                      unsigned long count);
int jail_ns_map_self(int proc, unsigned long inside_uid, unsigned long outside_uid,
                     unsigned long inside_gid, unsigned long outside_gid);

/* build.c: a process beside the builder, with this number if there is one to give. A negative errno. */
struct sys_clone_args;
pid_t jail_build_clone(struct jail_stage *st, struct sys_clone_args *args, pid_t number,
                       int (*run)(void *));

/* net.c: the network namespace, made by a process of its own beside other work. */
ERR_MUST_USE int jail_net_start(struct jail_stage *st, struct err *err);
ERR_MUST_USE int jail_net_enter(struct jail_stage *st, struct err *err);
ERR_MUST_USE int jail_net_here(struct jail_stage *st, struct err *err); /* by the builder itself */
void jail_net_done(struct jail_stage *st); /* its maker is waited for; touches nothing of libc */

/* root.c: builds the private root from descriptors and enters it. *ret_quota: the file system that
 * counts the guest's bytes and inodes. The host's root is gone only after the second call (0, or a
 * negative errno; it touches no memory), which must be over before the guest runs. */
ERR_MUST_USE int jail_root_build(const struct jail_spec *spec, const int *bind_fds, int *ret_quota,
                                 struct err *err);
ERR_MUST_USE int jail_root_leave_old(const struct jail_spec *spec);

/* procfs.c: what a template holds of /proc, while the supervisor's is still seen. */
ERR_MUST_USE int jail_procfs_of_template(struct jail_stage *st, struct err *err);

ERR_MUST_USE int jail_caps_drop(const struct jail_spec *spec, struct err *err);
/* What a template keeps: ids of its own let it give each child another one. */
uint64_t jail_caps_template_has(const struct jail_spec *spec);
ERR_MUST_USE int jail_caps_of_template(const struct jail_spec *spec, struct err *err);
ERR_MUST_USE int jail_caps_of_reader(bool reads, struct err *err);
/* rlimit.c: those that a builder sets for the launcher to inherit; the number of tasks, which counts
 * from the guest's own namespace on; the number of descriptors, the last. */
ERR_MUST_USE int jail_rlimits_apply(const struct jail_spec *spec, struct err *err);
ERR_MUST_USE int jail_rlimit_tasks(const struct jail_spec *spec, struct err *err);
ERR_MUST_USE int jail_rlimit_descriptors(const struct jail_spec *spec, struct err *err);

/* landlock.c. The rules are made by the builder, or once by a template; a launcher only enters them. */
ERR_MUST_USE int jail_landlock_make(const struct jail_spec *spec, const int *bind_fds,
                                    int *ret_ruleset, struct err *err);
ERR_MUST_USE int jail_landlock_enter(int ruleset, struct err *err);
/* The rules of a process of ours that needs a few folders and no more (jail/confine.h). */
struct jail_folder;
ERR_MUST_USE int jail_landlock_folders(const struct jail_folder *folders, size_t count,
                                       int *ret_ruleset, struct err *err);

/* fds.c: FDS onto FIRST, FIRST + 1, ..., without close-on-exec. KEEP are descriptors still needed: they
 * move if they stand there. jail_fds_leave_behind: a descriptor table of its own, in which nothing from 3 on survives an
 * exec. */
#define JAIL_FDS_PLACES 12
ERR_MUST_USE int jail_fds_place(int first, const int *fds, size_t count, int *const *keep,
                                size_t keeps, struct err *err);
ERR_MUST_USE int jail_fds_leave_behind(const struct jail_spec *spec, struct err *err);

/* seccomp.c: loads the table named in the specification; *ret_listener is the notification descriptor, or -1 if
 * the table notifies nothing. */
ERR_MUST_USE int jail_seccomp_apply(const struct jail_spec *spec, int *ret_listener,
                                    struct err *err);
/* Lets the caller's one exec, which is pending on LISTENER, continue. */
ERR_MUST_USE int jail_seccomp_let_exec(int listener, struct err *err);
bool jail_seccomp_notifies_exec(const struct jail_spec *spec);

/* apply.c: what a guest inherits: keys, session, umask, signals. */
void jail_apply_session(const struct jail_spec *spec);

/* early.c, the builder's side: the worker is executed before there is a root, and closes its locks when
 * there is one; meanwhile CLOSE_DOORS is called, once nothing looks up a path in the old root any more. */
ERR_MUST_USE int jail_early_start(struct jail_stage *st);
ERR_MUST_USE int jail_early_finish(struct jail_stage *st,
                                   int (*close_doors)(const struct jail_stage *st), pid_t *ret_pid);

int jail_build(void *stage);  /* build.c: the builder's body; returns only when it failed */
int jail_launch(void *stage); /* apply.c: the launcher's body; returns only when it failed */

/* The steps of apply.c that a child of a template takes too. */
void jail_apply_signals(void); /* default actions for all, as an exec of ours would find them */
ERR_MUST_USE int jail_apply_identity(struct jail_stage *st, struct jail_proof *proof,
                                     int *ret_status);
ERR_MUST_USE int jail_apply_locks(struct jail_stage *st, struct jail_proof *proof);
ERR_MUST_USE int jail_apply_last(struct jail_stage *st, struct jail_proof *proof);
ERR_MUST_USE int jail_apply_tell(int control, const struct jail_proof *proof); /* STARTED */
ERR_MUST_USE int jail_apply_say(int to, const struct jail_stage *st); /* LOCKED, or why not */

#endif
