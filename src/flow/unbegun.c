/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of a run whose program did not begin, or that `cordon stop` ended: who or what did it, and that it was not the
 * program where it was not. */
#include "flow/steps.h"

#include "base/units.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define START_MS                                                                                   \
    100 /* a start and a verdict may take so long: less may be over before the program begins */

bool flow_was_stopped(const struct flow *f)
{
    return f->run && jail_run_outcome(f->run)->end == JAIL_END_STOPPED;
}

/* `cordon stop` ended it: who did it, when, and what to do. False: it was something else. */
bool flow_say_who_stopped(struct flow *f)
{
    struct gate_stop_info info = {0};
    struct tm tm;
    char text[380], when[32] = "?";
    if (!flow_was_stopped(f) || !f->req->context->gate)
        return false;
    gate_stop_read(f->req->context->gate, &info);
    if (!info.stopped)
        return false;
    time_t since = (time_t)info.since;
    if (gmtime_r(&since, &tm))
        strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &tm);
    snprintf(text, sizeof text,
             "stopped by %.100s at %s%s%.160s; runs begin again after `cordon resume`", info.who,
             when, info.why[0] ? ": " : "", info.why);
    flow_result_say(f->result, FLOW_ERROR, GATE_LAYER, "EARLY_ABORT", "Stopped", text);
    return true;
}

/* It ended before it could be told to go, and the host did not do it (retry.c): the judge died of the
 * program, or the caller stopped it. */
int flow_unbegun_died(struct flow *f)
{
    struct flow_result *r = f->result;
    const struct jail_outcome *o = jail_run_outcome(f->run);
    char text[300];
    if (f->worker.state == FLOW_WORKER_BROKEN || (o->end == JAIL_END_STOPPED && !f->late)) {
        flow_result_outcome(r, o, &f->spec.limits);
        if (o->end == JAIL_END_STOPPED && f->worker.state != FLOW_WORKER_BROKEN)
            (void)flow_say_who_stopped(f);
        else /* left over from the call before */
            flow_worker_explain(&f->worker, &f->spec.limits);
        r->ran = false;
        return FLOW_STOP;
    }
    if (f->little_space) {
        flow_result_say(r, FLOW_REFUSED, "resources", "CODE", "WorkerLost",
                        "resources: nothing was run: the judge died, and had less memory than was "
                        "asked for; raise `ulimit -v`");
        return FLOW_STOP;
    }
    snprintf(text, sizeof text, "the judge %s; nothing was run",
             o->end == JAIL_END_SIGNAL || o->end == JAIL_END_EXIT ? "died" : "exceeded its limits");
    struct flow_violation v = {.layer = "input", .rule = "judge.died"};
    snprintf(v.detail, sizeof v.detail, "%s", text);
    snprintf(v.hint, sizeof v.hint, "write a smaller or simpler program");
    flow_result_violation(r, &v);
    flow_result_say(r, FLOW_BLOCKED, "input", "CODE", "ValidationError", text);
    return FLOW_STOP;
}

/* Whoever allows so little is told that the time was over: neither host nor judge are to blame. */
bool flow_unbegun_too_short(const struct flow *f)
{
    return !flow_in_session(f) && f->spec.limits.wall_ms < START_MS &&
           jail_run_outcome(f->run)->end == JAIL_END_WALL;
}

/* The caller's limit was over before the program began, which says nothing of the program: a judge has a limit of its own. */
int flow_unbegun_over(struct flow *f)
{
    flow_result_outcome(f->result, jail_run_outcome(f->run), &f->spec.limits);
    f->result->ran = false;
    return FLOW_STOP;
}

/* It would die or not come to an end before its first word, each time in another way: the caller is told the one reason. */
bool flow_unbegun_lacks_memory(const struct flow *f)
{
    return !flow_in_session(f) && f->run && f->spec.limits.memory < f->language->least &&
           strncmp(jail_run_outcome(f->run)->memory_enforced_by, "rlimit", 6) == 0;
}

int flow_unbegun_refuse_memory(struct flow *f, struct err *err)
{
    char has[UNITS_TEXT], least[UNITS_TEXT];
    jail_run_stop(f->run);
    units_bytes_text(f->spec.limits.memory, has);
    units_bytes_text(f->language->least, least);
    err_set(err, ERR_LIMIT,
            "the interpreter of %s does not start within a memory of %s, where no cgroup bounds it "
            "(memory_by: rlimit); the least is %s%s",
            f->language->title, has, least,
            f->little_space ? "; raise `ulimit -v`, which is lower than what was asked for" : "");
    err_layer(err, "resources");
    return ERR_LIMIT;
}
