/* SPDX-License-Identifier: Apache-2.0 */
/* The state of one run, and how it ends: what run.c and its neighbours share.
 *
 * Takes:   events of the run's descriptors, the caller's wish to end it.
 * Gives:   an outcome that is judged once, when the last process is dead or surely dying.
 * Never:   is included outside src/jail.
 * Runs in: the supervisor.
 */
#ifndef JAIL_RUNNING_H
#define JAIL_RUNNING_H

#include "jail/outside.h"
#include "jail/supervisor/family.h"

/* What the run's epoll watches. The first ones are the run's own descriptors; the others belong to the caller. */
enum source {
    CONTROL,
    OUT,
    ERR,
    LISTENER,
    WAKE, /* of a session: a relative's supervisor received a call of ours */
    TIMER,
    SOURCES,
    FEED = SOURCES,
    CHANNEL,
    WORD,
    KEYS,
    ONWARD_OUT,
    ONWARD_ERR,
    ALSO, /* a descriptor of the caller's (jail_run_also) */
    ALSO_LAST = ALSO + JAIL_RUN_ALSO - 1
};

/* Where a run is. run_state.c says what may follow what. */
enum jail_run_state {
    JAIL_RUN_STARTING, /* its jail is built; there is no guest yet */
    JAIL_RUN_LEASED,   /* another process's child, of which only the channel is watched yet */
    JAIL_RUN_RUNNING,  /* every descriptor is watched, and the clock runs */
    JAIL_RUN_EXITED,   /* cordon-nest has waited for the guest and said how it ended */
    JAIL_RUN_KILLED,   /* we killed it and waited for it; a leased one is reaped by its template */
    JAIL_RUN_DYING,    /* we killed it; jail_run_free waits for it */
    JAIL_RUN_RELEASED, /* a session whose call is over: it lives on, and is not ours any more */
    JAIL_RUN_CLOSED,   /* judged and drained; what is left are descriptors */
};

struct jail_child;

#define JAIL_SCRATCH_ENV 6 /* variables that name the scratch folder */

struct jail_run {
    enum jail_run_state state;
    struct jail_spec spec; /* the caller's strings; they outlive the run */
    struct jail_identity id;
    struct jail_sink sink;
    struct jail_cgroup cgroup;
    struct jail_janitor janitor;
    struct jail_watch watch;
    struct jail_family family;
    struct jail_feed feed;
    struct jail_outcome out;
    struct jail_shared shared;
    char scratch[512];
    char scratch_cwd[544];
    char scratch_env[JAIL_SCRATCH_ENV][576];
    const char **env;
    int epoll, fd[SOURCES];
    int files; /* the file system that the guest may write, if the specification keeps it; -1 */
    int body;  /* pidfd of the guest, of our own or of a leased child that is no session; -1 */
    int leased; /* pidfd of what is to be killed at the end of another process's child; -1: none, or not any more */
    int keys;                /* the caller's signalfd; -1: none */
    uint64_t interrupted_ns; /* when SIGINT was last sent to the guest; 0: never */
    int channel;             /* the caller's; -1: none */
    int lease_guest,
        lease_rest; /* of a leased child, until RUNNING: the guest's pidfd, and a descriptor that is then closed */
    int status; /* /proc/PID/status of a leased guest, opened while there was time; -1 */
    pid_t nest, guest;
    void *spawn_memory;
    uint64_t go_ns, end_ns;
    uint64_t paused_ns; /* since when the guest stands still; 0: it does not */
    struct {
        int fd; /* the caller's */
        bool (*ready)(void *ctx);
        void *ctx;
    } also[JAIL_RUN_ALSO]; /* ready NULL: free */
    uint64_t
        deadline_ns; /* the deadline that the init above a leased guest was told; 0: nothing yet */
    uint64_t cpu_built_us; /* what building the jail cost its cgroup, or earlier runs their
                              process: not this program's time */
    uint64_t
        refused_built;    /* tasks that the cgroup had no room for while the jail was built: ours */
    bool cpu_by_group;    /* CPU time of all processes is counted by the cgroup */
    enum jail_end forced; /* why we killed it */
    enum jail_held held[2]; /* by stream: what the sink still has to pass on */
};

/* run_state.c: NEXT must be among what may follow. */
void jail_run_enter(struct jail_run *run, enum jail_run_state next);
bool jail_run_ended(
    const struct jail_run *run); /* nothing of the guest is to come but what is in the pipes */

/* Whether another process made its child: a template forked it, and waits for it. */
static inline bool jail_run_is_leased(const struct jail_run *run)
{
    return run->spec.kind == JAIL_KIND_CHILD;
}

/* run.c */
void jail_run_empty(struct jail_run *run); /* as a run that has nothing yet */

/* watch.c */
ERR_MUST_USE int jail_run_watch(struct jail_run *run, enum source s, int fd, struct err *err);
void jail_run_arm(struct jail_run *run, uint64_t ns);
void jail_run_set_timer(struct jail_run *run, uint64_t now,
                        uint64_t used_us); /* to the next limit */

/* lease.c: LEASED to RUNNING. Watches all of it; ends the run if that fails. TIME: there is some, for what the end will ask. */
void jail_run_watch_lease(struct jail_run *run, bool time);

/* end.c */
void jail_run_forget(struct jail_run *run, enum source s);   /* closes it, and so unwatches it */
void jail_run_reap(struct jail_run *run);                    /* all of it is dead when this returns,
                                                              or dying if it was leased */
void jail_run_note_end(struct jail_run *run, int exit_code); /* by the caller's word */
void jail_run_force(struct jail_run *run, enum jail_end why);
uint64_t jail_run_cpu_us(const struct jail_run *run);
uint64_t
jail_run_peak_memory(const struct jail_run *run); /* of the guest while it lives; 0: not known */
bool jail_run_output(struct jail_run *run, enum source s); /* one read; true: there may be more */
void jail_run_finish(struct jail_run *run);                /* once, when it has ended */
void jail_run_clean_up(struct jail_run *run);

/* child.c: the next packet of a template or holder; an error is negative. */
enum jail_got { JAIL_GOT_CHILD = 1, JAIL_GOT_REFUSAL = 2, JAIL_GOT_NOTHING = 3, JAIL_GOT_END = 4 };
ERR_MUST_USE int jail_child_next(int sock, struct jail_child *ret, struct err *err);

/* keys.c: the caller's signalfd is readable. */
void jail_run_on_keys(struct jail_run *run);

/* pause.c: the caller's other descriptor is readable. */
void jail_run_on_also(struct jail_run *run, unsigned which);

/* onward.c: lets the sink pass on what it holds of STREAM, and watches the reader's descriptor as long as some is left. */
void jail_run_pass_on(struct jail_run *run, enum jail_stream stream);

#endif
