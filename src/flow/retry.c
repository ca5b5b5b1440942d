/* SPDX-License-Identifier: Apache-2.0 */
/* A child that the host ended before it was told to go: its template, its init or itself was killed, by a
 * person, by a stopping pool or for want of memory. Nothing of the program has run, so that another child may
 * take its slot, once; and if that one is lost too, the result names what died, and does not blame the program.
 *
 * What tells the host from the program is the kernel's word about the end, not the child's:
 *   - the init above the judge is gone without a word of how the judge ended. No guest reaches its init: it has
 *     another user namespace, and a signal from below does not count for pid 1;
 *   - a signal that no fault of a process raises. A parser that breaks dies of SIGSEGV, SIGABRT and the like, and of
 *     SIGXCPU where it takes too long; for more than its memory it has an rlimit, which is no signal, or a cgroup
 *     of its own, whose count of killed processes jail/supervisor/end.c has looked at;
 *   - the clock ran out, and the judge had little of the time: it was stopped, or starved.
 * Everything else was the program's doing, and stays blocked. */
#include "flow/steps.h"

#include "base/limits.h"
#include "sys/fd.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a process brings on itself. */
static bool raised_by_fault(int sig)
{
    static const int faults[] = {SIGSEGV, SIGABRT, SIGBUS,  SIGFPE, SIGILL,
                                 SIGTRAP, SIGSYS,  SIGXCPU, SIGXFSZ};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        if (faults[i] == sig)
            return true;
    return false;
}

/* Less than half of the time that the clock gave it. */
static bool starved(const struct flow *f, const struct jail_outcome *o)
{
    bool clock = o->end == JAIL_END_WALL || (o->end == JAIL_END_STOPPED && f->late);
    return clock && f->worker.state != FLOW_WORKER_GONE && o->cpu_us < o->wall_us / 2;
}

bool flow_lost(struct flow *f, bool whatever)
{
    const struct jail_outcome *o = jail_run_outcome(f->run);
    const char *who = flow_in_session(f) ? "the session's process"
                      : f->result->warm  ? "the judge, a child of the pool,"
                                         : "the judge";
    if (f->worker.state == FLOW_WORKER_BROKEN || (o->end == JAIL_END_STOPPED && !f->late))
        return false;
    if (o->end == JAIL_END_LOST)
        snprintf(f->lost, sizeof f->lost, "%s was killed",
                 f->result->warm || flow_in_session(f)
                     ? "the init above a child of the pool, or its template,"
                     : "cordon-nest, the init above the judge,");
    else if (o->end == JAIL_END_SIGNAL && (whatever || !raised_by_fault(o->signal)))
        snprintf(f->lost, sizeof f->lost, "%s was killed by signal %d (SIG%s)", who, o->signal,
                 sigabbrev_np(o->signal) ? sigabbrev_np(o->signal) : "?");
    else if (starved(f, o))
        snprintf(
            f->lost, sizeof f->lost,
            "%s had %llu ms of CPU time in %llu ms: it was stopped, or the machine is overloaded",
            who, (unsigned long long)o->cpu_us / 1000, (unsigned long long)o->wall_us / 1000);
    else if (whatever)
        snprintf(f->lost, sizeof f->lost, "%s ended with status %d", who, o->exit_code);
    return f->lost[0] != 0;
}

/* How many processes the kernel has killed for want of memory since it started; 0: it does not tell. */
static uint64_t memory_kills(void)
{
    static char text[32 * KIB];
    const char *at = fd_read_file(AT_FDCWD, "/proc/vmstat", text, sizeof text) > 0
                         ? strstr(text, "\noom_kill ")
                         : NULL;
    return at ? strtoull(at + 10, NULL, 10) : 0;
}

static int refuse(struct flow *f, const char *before, uint64_t kills)
{
    char text[400];
    snprintf(text, sizeof text, "process: nothing was run: %.130s%s%.130s%s", before,
             before[0] ? "; then, in a second try without the pool, " : "", f->lost,
             kills ? "; meanwhile the kernel killed processes for want of memory"
                   : "; try again, or see `cordon doctor` and the kernel's log");
    f->lost[0] = 0;
    flow_result_say(f->result, FLOW_REFUSED, "process", "CODE", "WorkerLost", text);
    return FLOW_STOP;
}

int flow_retry(struct flow *f, struct err *err)
{
    char before[sizeof f->lost];
    if (!f->lost[0])
        return FLOW_GO_ON;
    if (f->again || flow_in_session(f)) /* the variables of a session are gone with its process */
        return refuse(f, "", 0);
    const uint64_t kills = memory_kills();
    memcpy(before, f->lost, sizeof before);
    f->lost[0] = 0;
    f->again = true;
    flow_child_close(f);
    f->result->warm = false;
    int r = flow_child_build(f, err);
    if (r == 0)
        r = flow_child_judge(f, err);
    return f->lost[0] ? refuse(f, before, memory_kills() - kills) : r;
}
