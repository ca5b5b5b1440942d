/* SPDX-License-Identifier: Apache-2.0 */
/* cordond knows neither gate nor pool, so a runner reads them. They are of the state folder: runs from the command line are
 * in them, too. */
#include "serve_figures.h"

#include "admin.h"
#include "pool/pool_client.h"

#include <stdio.h>
#include <string.h>

static void head(const char *name, const char *type, const char *text)
{
    printf("# HELP %s %s\n# TYPE %s %s\n", name, text, name, type);
}

static void one(const char *name, const char *type, const char *text, uint64_t n)
{
    head(name, type, text);
    printf("%s %llu\n", name, (unsigned long long)n);
}

static void print_gate(const struct gate *g, uint64_t slots)
{
    struct gate_counters n;
    struct gate_standing s;
    gate_counters_read(g, &n);
    gate_standing(g, &s);
    one("cordon_gate_slots", "gauge", "Executions that may run at once.", slots);
    one("cordon_gate_running", "gauge", "Executions that have a slot.", s.running);
    one("cordon_gate_queue", "gauge", "Executions that wait for a slot.", s.waiting);
    one("cordon_gate_parked", "gauge", "Executions that wait for a person or the arena.", s.parked);
    one("cordon_gate_stopped", "gauge", "1: cordon stop is in force.", s.stopped);
    head("cordon_gate_breakers", "gauge",
         "Breakers: open ones refuse, half_open ones let a probe through.");
    printf("cordon_gate_breakers{state=\"open\"} %llu\n"
           "cordon_gate_breakers{state=\"half_open\"} %llu\n",
           (unsigned long long)s.breakers_open, (unsigned long long)s.breakers_half_open);
#define X(name, text)                                                                              \
    one("cordon_gate_" #name "_total", "counter", "Since boot: " text ".", n.name);
    GATE_COUNTERS(X)
#undef X
}

/* Names of templates are the operator's: profiles, and a word for their packages. */
static void print_template(const char *name, const char *what, uint64_t n)
{
    char shown[POOL_PROFILE + 1];
    size_t i = 0;
    for (; name[i] && i + 1 < sizeof shown; i++)
        shown[i] = (char)(strchr("\"\\\n", name[i]) ? '?' : name[i]);
    shown[i] = 0;
    printf("cordon_pool_children{template=\"%s\",state=\"%s\"} %llu\n", shown, what,
           (unsigned long long)n);
}

static int print_pool(const struct flow_context *context, struct err *err)
{
    struct pool_environment e;
    struct pool_client c = {.sock = -1};
    struct pool_answer a = {.declined = false};
    int r = pool_environment_open(&e, context->policy, NULL, err);
    if (r == 0)
        r = pool_client_open(&c, &e, POOL_ANSWER_MS, err);
    if (r == 0 && c.sock >= 0)
        r = pool_client_look(&c, 0, &a, err);
    const bool there = r == 0 && c.sock >= 0;
    one("cordon_pool_up", "gauge", "1: a holder of warm interpreters answers.", there);
    if (there) {
        const struct pool_holder_numbers n = a.reply.holder;
        one("cordon_pool_sessions", "gauge", "Sessions that the holder has.", n.sessions);
        one("cordon_pool_leases_total", "counter", "Warm children that were lent.", n.leases);
        one("cordon_pool_declined_total", "counter", "Requests for one that got none.", n.declined);
        one("cordon_pool_waiting_memory_bytes", "gauge", "What those that wait cost.",
            n.waiting_memory);
        head("cordon_pool_children", "gauge", "Children, by template and state.");
    }
    for (uint64_t from = 1; there; from = a.reply.template.serial + 1) {
        r = pool_client_look(&c, from, &a, err);
        if (r < 0 || a.reply.type == WIRE_POOL_END)
            break;
        print_template(a.reply.name, "ready", a.reply.template.ready);
        print_template(a.reply.name, "lent", a.reply.template.lent);
    }
    pool_client_close(&c);
    return 0; /* a holder that does not answer is a figure, not an error */
}

int serve_figures_print(const char *policy, struct err *err)
{
    struct admin admin = {0};
    struct flow_context context = {0};
    struct err broken = ERR_INIT;
    int r = flow_context_open(&context, policy, err);
    if (r == 0)
        r = admin_open_bare(&admin, err);
    if (r == 0) {
        admin.bare.breaker.cooldown_ms = context.policy->breakers.cooldown_ms;
        print_gate(admin.gate, context.policy->rates.concurrent);
        r = print_pool(&context, &broken);
        const int closed = admin_close(&admin, err);
        r = r < 0 ? r : closed;
    }
    flow_context_close(&context);
    return r;
}
