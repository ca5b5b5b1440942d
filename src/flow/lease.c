/* SPDX-License-Identifier: Apache-2.0 */
/* How a run comes to a warm child: a connection to the holder, a request for a child that fits, and its answer. Each is
 * made as early as it can be, also before there is a run; where the holder has none, the caller builds one. */
#include "flow/steps.h"

#include "base/limits.h"
#include "base/speed.h"

#include <string.h>

#define LEASE_PATIENCE_MS 50 /* a child that is made now is still cheaper than a jail */

/* A child that only computes cannot read the file of a time zone any more; one that is started for the run does so before. */
bool flow_names_zone(const struct flow_request *req)
{
    bool named = false;
    for (size_t i = 0; i < req->spec.envc; i++)
        named |= strncmp(req->spec.env[i], "TZ=", 3) == 0;
    return named && req->profile->compute_only;
}

/* Children of the pool are all alike. */
static bool fits_pool(const struct flow *f)
{
    const struct flow_request *req = f->req;
    bool plain = true; /* what is copied needs no mount */
    for (size_t i = 0; i < req->spec.nbinds; i++)
        plain = plain && req->spec.binds[i].copied;
    plain = plain && req->spec.mode == JAIL_FULL && req->memory_by != JAIL_MEMORY_CGROUP &&
            f->source_len <= LIMIT_SOURCE;
    return req->pool && plain && !req->spec.limits.processes && !req->source_too_long &&
           !f->no_program_rule && !flow_names_zone(req) &&
           policy_profile_find(req->profile->name) == req->profile;
}

int flow_environment_open(struct flow *f, struct err *err)
{
    const struct flow_context *c = f->req->context;
    return pool_environment_open(&f->environment, c->policy, c->venv, err);
}

/* What was asked for ahead, where it is of the same holder. */
static bool take_ahead(struct flow *f)
{
    struct flow_context *c = f->req->context;
    if (!c->is_ahead)
        return false;
    c->is_ahead = false;
    f->pool = c->ahead;
    if (f->pool.sock >= 0 &&
        pool_environment_mark(&c->ahead_of) == pool_environment_mark(&f->environment))
        return true;
    pool_client_close(&f->pool);
    return false;
}

static void connect_holder(struct flow *f)
{
    struct err why = ERR_INIT; /* whatever it is, it is met again when a child is asked for */
    if (f->req->kind == FLOW_EXEC || flow_in_session(f) || !fits_pool(f))
        return;
    if (flow_environment_open(f, &why) == 0 && !take_ahead(f))
        (void)!pool_client_open(&f->pool, &f->environment, POOL_RUN_ANSWER_MS, &why);
}

/* Nothing is asked for yet: the holder accepts the connection while the gate decides. `make gains GAINS="--alone
 * CONNECT_FIRST"`: a warm run with gate and audit takes 2 to 5 % longer where it comes after (2 CPUs, aarch64). */
int flow_connect(struct flow *f, struct err *err)
{
    (void)err;
    if (SPEED_CONNECT_FIRST)
        connect_holder(f);
    return FLOW_GO_ON;
}

static void plan_lease(struct flow *f)
{
    const struct flow_request *req = f->req;
    if (!req->profile->threads)
        f->spec.limits.threads = 0;
    const bool packages =
        f->language == language_default() &&
        !req->profile
             ->guards && /* whichever template it comes from, it can import what is installed */
        pool_environment_named(&f->environment, f->source, f->source_len);
    f->lease = (struct pool_lease){.language = f->language->name,
                                   .profile = req->profile->name,
                                   .packages = packages,
                                   .limits = f->spec.limits,
                                   .patience_ms = LEASE_PATIENCE_MS};
}

static bool order_anew(struct flow *f)
{
    struct err why = ERR_INIT;
    pool_client_close(&f->pool);
    if (pool_client_open(&f->pool, &f->environment, POOL_RUN_ANSWER_MS, &why) == 0 &&
        f->pool.sock >= 0 && pool_client_order(&f->pool, &f->lease, &why) == 0)
        return true;
    pool_client_close(&f->pool);
    return false;
}

void flow_lease_connect_last(struct flow *f)
{
    if (!SPEED_CONNECT_FIRST)
        connect_holder(f);
}

/* A child of the pool that only computes opens no file any more; one that is started for the run judges, and imports, before that. */
static bool imports_files(const struct flow *f)
{
    return f->language->imports && f->req->profile->compute_only && f->req->spec.nbinds > 0;
}

/* Asks the holder for a warm one, if it has one that fits; the answer is awaited later. */
bool flow_lease_order(struct flow *f)
{
    struct err why = ERR_INIT;
    if (f->pool.sock >= 0 && imports_files(f))
        pool_client_close(&f->pool);
    if (f->pool.sock < 0)
        return false;
    plan_lease(f);
    /* A holder with many clients lets those go that say nothing, and we may have stood in line for long. */
    return pool_client_order(&f->pool, &f->lease, &why) == 0 || order_anew(f);
}

void flow_ahead(const struct flow_request *req)
{
    struct flow f = {.req = req, .spec = req->spec, .language = language_default(), .source = ""};
    struct flow_context *c = req->context;
    struct err why = ERR_INIT; /* the run meets it again */
    f.pool.sock = -1;
    connect_holder(&f);
    if (f.pool.sock < 0)
        return;
    plan_lease(&f);
    if (pool_client_ahead(&f.pool, &f.lease, &why) < 0) {
        pool_client_close(&f.pool);
        return;
    }
    c->ahead = f.pool;
    c->ahead_of = f.environment;
    c->is_ahead = true;
}

bool flow_lease_take(struct flow *f, struct jail_child *ret_child)
{
    struct pool_answer answer;
    struct err why = ERR_INIT;
    const bool ahead = f->pool.ahead;
    int r = pool_client_take(&f->pool, &f->lease, ret_child, &answer, &why);
    if (r < 0 && ahead && order_anew(f)) /* that holder is gone; there may be another */
        r = pool_client_take(&f->pool, &f->lease, ret_child, &answer, &why);
    return r == 0 && !answer.declined;
}
