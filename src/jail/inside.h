/* The facilities as cordon-nest and the launcher apply them, one file each; apply.c has the order.
 *
 * Takes:   a decoded plan.
 * Gives:   a locked process, or a record that names the facility and the step that failed.
 * Never:   runs a guest's byte; goes on after a step failed.
 * Runs in: cordon-nest (trusted) and its launcher child, before the program is run.
 */
#ifndef JAIL_INSIDE_H
#define JAIL_INSIDE_H

#include "base/err.h"
#include "jail/spec.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ns.c */
struct jail_namespace {
    const char *name; /* as in /proc/PID/ns */
    uint64_t flag;
    enum jail_switch off;
};
extern const struct jail_namespace jail_namespaces[];
extern const size_t jail_namespace_count;
uint64_t jail_ns_outer_flags(const struct jail_spec *spec); /* cordon-nest's own */
uint64_t jail_ns_inner_flags(const struct jail_spec *spec); /* the launcher's, on top */
/* Gives setgroups up, for this namespace and all below: only then is a gid map taken from a process
 * without CAP_SETGID outside. */
int jail_ns_no_setgroups(int proc);
/* Writes the one-line maps INSIDE -> OUTSIDE of the calling process. PROC is a descriptor of /proc.
 * Async-signal-safe: it is called between clone and exec. Returns 0, or -1 with errno. */
int jail_ns_map_self(int proc, unsigned long inside_uid, unsigned long outside_uid,
                     unsigned long inside_gid, unsigned long outside_gid);

/* The network namespace, made by a process of its own beside other work, since it takes as long as all
 * the rest together. It is cloned where cordon-nest will be, before that is exec'd, and hands the
 * namespace over by a socket. */
struct jail_net_maker {
    int proc, out;
};
int jail_net_make(void *maker); /* the body of that process */
ERR_MUST_USE int jail_net_enter(int in, struct err *err);

/* root.c: builds the private root from descriptors and enters it. *ret_quota: the file system that
 * counts the guest's bytes and inodes. */
ERR_MUST_USE int jail_root_build(const struct jail_spec *spec, const int *bind_fds, int *ret_quota,
                                 struct err *err);

/* fds.c: stdio from FDS, everything else from FIRST on closed. */
ERR_MUST_USE int jail_fds_stdio(const int fds[3], struct err *err);
ERR_MUST_USE int jail_fds_close_from(unsigned first, struct err *err);

ERR_MUST_USE int jail_caps_drop(const struct jail_spec *spec, struct err *err);
ERR_MUST_USE int jail_rlimits_apply(const struct jail_spec *spec, struct err *err);
ERR_MUST_USE int jail_landlock_apply(const struct jail_spec *spec, struct err *err);

/* seccomp.c: loads the table named in the plan; *ret_listener is the notification descriptor. */
ERR_MUST_USE int jail_seccomp_apply(const struct jail_spec *spec, int *ret_listener,
                                    struct err *err);

/* apply.c: the launcher, from the clone to the exec. Never returns. */
struct jail_launch {
    const struct jail_spec *spec;
    int control; /* to the supervisor */
    int proc;    /* /proc of the supervisor's world, from before the pivot */
    int stdio[3];
};
_Noreturn void jail_launch(const struct jail_launch *l);

/* report.c: one FAILED message; then the caller gives up. */
void jail_report_failure(int control, const struct err *err, const char *step);

/* init.c: cordon-nest's life. CONTROL: the supervisor; NET: where its network comes from. Returns the
 * exit status. */
int jail_nest_main(int control, int net);

#endif
