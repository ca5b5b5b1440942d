/* SPDX-License-Identifier: Apache-2.0 */
/* Root may look after another user's runs: CORDON_STATE names that user's folder. What lies there is
 * the user's own, so root does not open it: it first takes the owner's id for good. Who answers or
 * stops is read before that: it stays root who did it.
 *
 * Stopping is for when things have gone wrong, so it depends on as little as possible: not on a policy
 * that can be read, not on a disk with room, and not on the lock of the audit, which may be held by the
 * very process that is to be stopped. It opens the gate alone, and what happened is recorded after it. */
#include "admin.h"

#include "programs.h"
#include "sys/state.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EVENTS_MAX 300 /* a stop, and every slot of the gate */

static int become_owner(struct err *err)
{
    char path[STATE_PATH_MAX];
    struct stat st;
    int r = state_path(path, sizeof path, err);
    if (r < 0 || geteuid() != 0 || lstat(path, &st) < 0 || st.st_uid == 0)
        return r;
    if (setenv("CORDON_STATE", path, 1) < 0 || unsetenv("HOME") < 0 ||
        unsetenv("XDG_CONFIG_HOME") < 0) /* root's own settings are not the owner's */
        return err_sys(err, "change the environment");
    if (setgroups(0, NULL) < 0 || setresgid(st.st_gid, st.st_gid, st.st_gid) < 0 ||
        setresuid(st.st_uid, st.st_uid, st.st_uid) < 0)
        return err_sys(err, "become uid %u, whose state folder it is", (unsigned)st.st_uid);
    return 0;
}

void admin_pin_state(void)
{
    struct policy_store *store = NULL;
    struct err why = ERR_INIT;
    if (policy_open(NULL, &store, &why) == 0) {
        const struct policy *p = policy_now(store);
        if (*p->state.folder)
            (void)!state_pin(p->state.folder, geteuid() != 0 && policy_is_final(p, "state.folder"),
                             &why);
    }
    policy_close(store);
}

static int enter(struct admin *o, struct err *err)
{
    memset(o, 0, sizeof *o);
    int r = gate_lineage_read(&o->self, getpid(), err);
    if (r < 0)
        return r;
    gate_lineage_name(&o->self, o->who, sizeof o->who);
    admin_pin_state();
    return become_owner(err);
}

static int open_context(struct admin *o, const char *policy, bool brief, struct err *err)
{
    char approvals[4096], ask[4096];
    struct err none = ERR_INIT;
    bool found = programs_find("cordon-approvals", approvals, sizeof approvals, &none) == 0;
    bool asks = programs_find("cordon-ask", ask, sizeof ask, &none) == 0;
    int r = flow_context_open(&o->context, policy, err);
    o->context.brief = brief;
    return r == 0 ? flow_context_open_gate(&o->context, found ? approvals : NULL, asks ? ask : NULL,
                                           err)
                  : r;
}

int admin_open_policy(struct admin *o, const char *policy, struct err *err)
{
    int r = enter(o, err);
    if (r == 0)
        r = open_context(o, policy, false, err);
    o->gate = o->context.gate;
    return r;
}

int admin_open(struct admin *o, struct err *err)
{
    return admin_open_policy(o, NULL, err);
}

static const char *keep(char *out, size_t size, const char *text)
{
    snprintf(out, size, "%s", text ? text : "");
    return text ? out : NULL;
}

static void take_event(void *ctx, const struct gate_event *e)
{
    struct admin *o = ctx;
    if (o->nevents == EVENTS_MAX)
        return; /* cannot be: there are fewer places */
    struct admin_event *k = &o->events[o->nevents++];
    k->event = *e;
    k->event.client = keep(k->client, sizeof k->client, e->client);
    k->event.tool = keep(k->tool, sizeof k->tool, e->tool);
    k->event.run = keep(k->run, sizeof k->run, e->run);
    k->event.subject = keep(k->subject, sizeof k->subject, e->subject);
    k->event.detail = keep(k->detail, sizeof k->detail, e->detail);
}

int admin_open_bare(struct admin *o, struct err *err)
{
    int r = enter(o, err);
    if (r < 0)
        return r;
    o->events = calloc(EVENTS_MAX, sizeof *o->events);
    if (!o->events)
        return err_set(err, ERR_MEMORY, "no memory");
    gate_config_init(&o->bare);
    o->bare.on_event = take_event;
    o->bare.ctx = o;
    r = gate_open(&o->bare, -1, &o->gate, err);
    if (r == ERR_SYS && err->sys_errno == EROFS) {
        o->bare.readonly = true;
        r = gate_open(&o->bare, -1, &o->gate, err);
    }
    return r;
}

int admin_record(struct admin *o, struct err *err)
{
    struct err why = ERR_INIT;
    int r = open_context(o, NULL, true, &why);
    if (r < 0)
        return err_set(err, r, "done, but it is not recorded: %.200s", why.msg);
    const struct gate_config *c = &o->context.gate_config;
    for (size_t i = 0; i < o->nevents && !o->context.audit_failed; i++) /* each would wait anew */
        c->on_event(c->ctx, &o->events[i].event);
    o->nevents = 0;
    return 0;
}

int admin_close(struct admin *o, struct err *err)
{
    int lost = o->context.audit_failed;
    char why[sizeof o->context.audit_why];
    memcpy(why, o->context.audit_why, sizeof why);
    if (o->gate != o->context.gate)
        gate_close(o->gate);
    flow_context_close(&o->context);
    free(o->events);
    o->events = NULL;
    o->gate = NULL;
    return lost ? err_set(err, ERR_STATE, "done, but it is not recorded, or not all of it: %.190s",
                          why)
                : 0;
}
