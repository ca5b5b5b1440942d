/* SPDX-License-Identifier: Apache-2.0 */
/* A new session: planned by options and policy, ordered from the holder, filled, and heard once. What fails on the way ends
 * it: a session whose name nobody was told, or that is not on record, must not run anything. */
#include "session.h"

#include "base/languages.h"
#include "check/ruleset.h"
#include "commands.h"
#include "languages.h"
#include "naming_check.h"
#include "ready.h"
#include "result.h"
#include "session_files.h"
#include "session_shares.h"
#include "session_workspace.h"
#include "sys/fd.h"

#include <stdio.h>

/* --in of a session that nobody has spoken to. */
static int fill_workspace(struct session_context *h, int files)
{
    struct err err = ERR_INIT, later = ERR_INIT;
    struct pool_answer a;
    char warning[NAMING_WARNING];
    int r = session_files_put(h->flow.policy, &h->spec, files, warning, &err);
    if (warning[0])
        result_complain(h->who, warning);
    if (r == 0)
        return 0;
    if (pool_client_back(&h->holder, false, err.msg, "", &(struct pool_use_numbers){0}, NULL, 0, &a,
                         &later) < 0)
        result_complain(h->who, later.msg);
    return result_usage(h->who, &err);
}

/* What the options mean, for the holder. RULES: for those of a profile that is not built in. */
static int plan_session(const struct session_context *h, const struct session_new *n,
                        struct buf *rules, struct pool_session_spec *ret, struct err *err)
{
    const struct policy *p = h->flow.policy;
    const struct policy_profile *profile = NULL;
    const struct language *language;
    int r = languages_worker(n->lang, &language, err);
    if (r == 0)
        r = policy_choose_profile(p, n->profile, &profile, err);
    if (r == 0)
        r = jail_options_files(&h->jail, profile, err);
    if (r == 0)
        r = flow_shown_check(&h->spec, profile, language, err);
    if (r == 0 && n->packages && language != language_default())
        r = err_set(err, ERR_USAGE, "--packages is for Python alone");
    if (r < 0 || !profile)
        return r;
    *ret = (struct pool_session_spec){.name = n->name,
                                      .language = language->name,
                                      .profile = profile->name,
                                      .role = n->role,
                                      .packages = n->packages,
                                      .limits = h->spec.limits,
                                      .idle_ms = n->idle_ms == UINT64_MAX ? p->sessions.idle_ms
                                                                          : n->idle_ms};
    if (!profile->threads)
        ret->limits.threads = 0;
    ret->rules = (struct pool_rules_numbers){.mark = check_ruleset_mark(profile),
                                             .threads = profile->threads,
                                             .compute_only = profile->compute_only,
                                             .installed = profile->packages};
    if (ret->rules.mark) /* the policy's own: the holder does not have it */
        r = check_ruleset_encode(profile, rules, err);
    ret->rules_data = rules->data;
    ret->rules_len = rules->len;
    return r;
}

/* A session that a server made is of no use without it: nobody else knows its name. */
static int own_session(struct session_context *h, struct err *err)
{
    struct pool_answer a;
    FD_AUTO server = -1;
    int r = ready_server(&server, err);
    if (r == 0 && server >= 0)
        r = pool_client_owner(&h->holder, server, &a, err);
    return r == 0 && server >= 0 && a.declined ? err_set(err, ERR_STATE, "%s", a.reply.reason) : r;
}

/* EXIT_DONE: the holder has made it, or has declined to. */
static int order_session(struct session_context *h, const struct session_new *n,
                         struct jail_child *child, struct pool_answer *ret)
{
    struct pool_session_spec spec = {0};
    struct pool_shares *shares = NULL;
    struct buf rules;
    struct err err = ERR_INIT;
    buf_init(&rules, POOL_RULES);
    int r = plan_session(h, n, &rules, &spec, &err);
    if (r == 0)
        r = session_note_room(h, n->name, &err);
    if (r == 0)
        r = session_shares_plan(h, &shares, &err);
    const bool planned = r == 0;
    spec.shares = shares;
    if (planned)
        r = pool_client_new(&h->holder, &spec, child, ret, &err);
    pool_shares_free(shares);
    buf_done(&rules);
    if (r < 0)
        return !planned && r == ERR_USAGE ? result_usage(h->who, &err)
                                          : session_failed(h, n->name, r, &err);
    return EXIT_DONE;
}

int session_make(struct session_context *h, const struct session_new *n, char *name)
{
    struct jail_child child = JAIL_CHILD_NONE;
    struct pool_answer a = {0};
    struct err err = ERR_INIT;
    int r = order_session(h, n, &child, &a);
    if (r != EXIT_DONE)
        return r;
    if (a.declined)
        return session_declined(h, n->name, &a);
    snprintf(name, POOL_NAME + 1, "%s", a.reply.name);
    r = own_session(h, &err);
    if (r == 0 && n->workspace)
        r = session_workspace_new(n->workspace, &h->holder, &child, a.reply.note, &err);
    if (r < 0) {
        jail_child_close(&child);
        const struct err why = err;
        if (pool_client_end(&h->holder, name, &a, &err) < 0)
            result_complain(h->who, err.msg);
        return session_failed(h, n->name, r, &why);
    }
    if ((r = fill_workspace(h, child.files)) != 0) {
        jail_child_close(&child);
        return r;
    }
    /* Its first word is heard here, its variables are set, and whether it works at all is seen. */
    struct session_call c = {.session = name,
                             .name = "<new>",
                             .source = "",
                             .first = true,
                             .line = true,
                             .quiet = true,
                             .input = -1};
    r = session_call_lent(h, &c, &child, &a.reply);
    jail_child_close(&child);
    if (r == EXIT_DONE && !c.over) {
        r = session_note(h, "opened", name, NULL, n->role, &err);
        if (r == 0)
            return EXIT_DONE;
        struct err later = ERR_INIT; /* a session that is not on record must not run anything */
        if (pool_client_end(&h->holder, name, &a, &later) < 0)
            result_complain(h->who, later.msg);
        return session_failed(h, name, r, &err);
    }
    if (!c.over && pool_client_end(&h->holder, name, &a, &err) < 0) /* its name is told nobody */
        result_complain(h->who, err.msg);
    if (r != EXIT_DONE) /* session_call_lent has told why */
        return r;
    return session_refused(h, name, "SessionError", "the session ended before its first call");
}
