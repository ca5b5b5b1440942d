/* SPDX-License-Identifier: Apache-2.0 */
/* `cordon pool`: the holder of warm children as its user sees it. What the holder tells is printed as it is:
 * one table of numbers makes the JSON and the text. */
#include "base/jsonw.h"
#include "base/limits.h"
#include "commands.h"
#include "flow/context.h"
#include "jail_options.h"
#include "languages.h"
#include "options.h"
#include "pool/pool_client.h"
#include "programs.h"
#include "result.h"
#include "session.h"
#include "sys/lock.h"
#include "sys/peer.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WHO "cordon pool"

struct pool_options {
    struct option_list profiles;
    const char *venv, *lang;
    bool packages, force, json, help;
    struct pool_set_numbers set;
};

static int parse(int argc, char **argv, struct pool_options *o, struct option_list *words,
                 struct err *err)
{
    const struct option_row rows[] = {
        {"", OPTION_GROUP, NULL, NULL, "For start:"},
        {"profile", OPTION_LIST, &o->profiles, "NAME",
         "strict, locked, standard or open; repeatable (strict)"},
        {"lang", OPTION_STRING, &o->lang, "LANG", languages_workers_help()},
        {"packages", OPTION_FLAG, &o->packages, NULL,
         "with numpy, pandas and matplotlib loaded ahead"},
        {"size", OPTION_COUNT, &o->set.warm, "N", "children that wait, for each profile (4)"},
        {"memory", OPTION_BYTES, &o->set.budget, "SIZE", "for all that wait (512m)"},
        {"idle", OPTION_MILLIS, &o->set.idle_exit_ms, "TIME",
         "without a request for so long, the holder ends (10m)"},
        JAIL_OPTIONS_ROW_VENV(o),
        {"", OPTION_GROUP, NULL, NULL, "For stop:"},
        {"force", OPTION_FLAG, &o->force, NULL, "though sessions live"},
        {"", OPTION_GROUP, NULL, NULL, "For status:"},
        {"json", OPTION_FLAG, &o->json, NULL, "print one JSON object"},
        {"help", OPTION_FLAG, &o->help, NULL, "this text"},
    };
    const size_t count = sizeof rows / sizeof *rows;
    int r = options_parse_mixed(argc, argv, rows, count, words, err);
    if (r < 0 || !o->help)
        return r;
    puts("usage: cordon pool start|status|stop [OPTIONS]\n\n"
         "Keeps locked interpreters ready, so that `cordon run` only has to hand over the source.\n"
         "start: starts the holder if there is none, and the templates that are named.\n"
         "status: what it holds. stop: ends it and all that it holds.");
    options_print(rows, count);
    exits_print(EXITS_OTHER);
    puts("\n  cordon pool start --profile strict --profile standard --size 8\n"
         "  cordon pool status --json");
    return 0;
}

static int declined(const struct pool_answer *a)
{
    result_complain(WHO, a->reply.reason);
    return EXIT_FAILED;
}

/* ---- start ---- */

/* What was not said is the policy's. */
void pool_numbers(const struct policy *policy, struct pool_set_numbers *set)
{
    if (set->warm == UINT64_MAX)
        set->warm = policy->pool.warm < POOL_WARM ? policy->pool.warm : POOL_WARM;
    if (set->budget == UINT64_MAX)
        set->budget = policy->pool.memory;
    if (set->idle_exit_ms == UINT64_MAX)
        set->idle_exit_ms = policy->pool.idle_ms;
    set->renew_ms = policy->pool.renew_ms;
    set->renew_runs = policy->pool.renew_runs;
}

static int by_policy(const char *venv, struct pool_set_numbers *set, struct pool_environment *ret,
                     struct err *err)
{
    struct flow_context context = {0};
    struct arena mem;
    arena_init(&mem, MIB);
    int r = flow_context_open(&context, NULL, err);
    if (r == 0)
        r = jail_options_venv(venv, context.policy, &mem, &context.venv, err);
    if (r == 0)
        r = pool_environment_open(ret, context.policy, context.venv, err);
    if (r == 0)
        pool_numbers(context.policy, set);
    flow_context_close(&context);
    arena_done(&mem);
    return r;
}

/* The holder of the policy's environment. Who looks or ends something is not kept from it by a broken policy. */
static int find_holder(const struct pool_options *o, struct pool_client *ret,
                       struct pool_environment *e, struct err *err)
{
    struct pool_set_numbers unused = {0};
    struct err broken = ERR_INIT;
    if (by_policy(o->venv, &unused, e, &broken) < 0) {
        result_complain(WHO, broken.msg);
        *e = (struct pool_environment){0};
    }
    return pool_client_open(ret, e, POOL_ANSWER_MS, err);
}

/* They are made ready behind our back, which nobody would see. */
static void say_started(const char *language, const char *const *names, size_t count)
{
    char line[320];
    size_t n = (size_t)snprintf(line, sizeof line, "%s:", language);
    for (size_t i = 0; i < count && n < sizeof line - 200; i++)
        n += (size_t)snprintf(line + n, sizeof line - n, "%s %.20s", i ? "," : "", names[i]);
    snprintf(
        line + n, sizeof line - n,
        ": children are made ready in the background, and runs and sessions take them. `cordon "
        "pool status` tells how many there are, `cordon pool stop` ends it");
    result_note("pool", line);
}

static int start(const struct pool_options *o, struct err *err)
{
    char holder[4096];
    struct pool_client c = {.sock = -1};
    struct pool_answer a;
    const char *strict = "strict";
    const char *const *names = o->profiles.count ? o->profiles.items : &strict;
    const size_t count = o->profiles.count ? o->profiles.count : 1;
    struct pool_set_numbers set = o->set;
    struct pool_environment environment;
    int r = programs_find("cordon-holder", holder, sizeof holder, err);
    if (o->set.warm != UINT64_MAX && o->set.warm > POOL_WARM)
        return err_set(err, ERR_USAGE, "--size: at most %d", POOL_WARM);
    for (size_t i = 0; i < count; i++)
        if (!pool_profile_good(names[i]))
            return err_set(err, ERR_USAGE,
                           "--profile: '%.40s' is none of: strict, locked, standard, open",
                           names[i]);
    const struct language *language = NULL;
    if (r == 0)
        r = languages_worker(o->lang, &language, err);
    if (r == 0 && o->packages && language != language_default())
        r = err_set(err, ERR_USAGE, "--packages is for Python alone");
    if (r == 0)
        r = by_policy(o->venv, &set, &environment, err);
    if (r == 0)
        r = pool_client_start(&c, &environment, holder, NULL, err);
    for (size_t i = 0; i < count && r == 0; i++) {
        const struct pool_kind kind = {language->name, names[i], o->packages};
        r = pool_client_set(&c, &kind, &set, &a, err);
        if (r == 0 && a.declined)
            r = declined(&a);
    }
    pool_client_close(&c);
    if (r == 0)
        say_started(language->name, names, count);
    return r;
}

/* ---- status ---- */

static void put_numbers(struct jsonw *j, const struct pool_template_numbers *n)
{
#define X(name) jsonw_int(j, #name, (int64_t)n->name);
    POOL_TEMPLATE_NUMBERS(X)
#undef X
}

static void put_holder(struct jsonw *j, const struct pool_reply *p)
{
    jsonw_string(j, "version", p->state);
    jsonw_string(j, "locks", p->reason);
#define X(name)                                                                                    \
    if (strcmp(#name, "serial") != 0)                                                              \
        jsonw_int(j, #name, (int64_t)p->holder.name);
    POOL_HOLDER_NUMBERS(X)
#undef X
}

/* Holders of other versions of cordon: they cannot be asked, but they are there. */
static size_t others(int sock, pid_t *pids, size_t cap)
{
    struct pool_socket at = {.dir = -1};
    struct err err = ERR_INIT;
    pid_t ours = 0;
    size_t count = 0;
    if (sock >= 0)
        (void)sys_peer_is_us(sock, &ours);
    if (pool_socket_open(&at, false, &err) == 0)
        count = pool_socket_holders(&at, pids, cap);
    pool_socket_done(&at);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (pids[i] != ours)
            pids[kept++] = pids[i];
    return kept;
}

/* What /proc says about a holder that does not answer, and what to do about it. */
static const struct silent {
    char letter; /* of its state there; 0: any other */
    const char *state, *remedy;
} silent_states[] = {{'T', "stopped", "continue it (kill -CONT)"},
                     {'t', "traced", "let its debugger go"},
                     {'Z', "dead", "wait for its parent"},
                     {0, "busy or stuck", "wait"}};

static const struct silent *silent_state(pid_t pid)
{
    const struct silent *s = silent_states;
    const char letter = lock_process_state(pid);
    while (s->letter && s->letter != letter)
        s++;
    return s;
}

/* R is what asking it gave. Nobody has to guess which process is at fault. */
static int name_silent(int r, int sock, bool json, struct err *err)
{
    pid_t pid = 0;
    if (r != ERR_STATE || !sys_peer_is_us(sock, &pid) || pid <= 0)
        return r;
    const struct silent *s = silent_state(pid);
    if (json)
        printf("{\"running\": true, \"answers\": false, \"pid\": %d, \"process\": \"%s\", "
               "\"templates\": [], \"other_versions\": []}\n",
               (int)pid, s->state);
    return err_set(
        err, ERR_STATE,
        "the holder, pid %d, is %s and does not answer; runs go without it: %s, or end it "
        "with `cordon pool stop --force`",
        (int)pid, s->state, s->remedy);
}

static int status_json(struct pool_client *c, struct err *err)
{
    struct pool_answer a;
    struct buf out;
    pid_t pids[16];
    buf_init(&out, MIB);
    struct jsonw j = {.out = &out};
    int r = 0;
    jsonw_open(&j, NULL, '{');
    jsonw_bool(&j, "running", c->sock >= 0);
    jsonw_bool(&j, "answers", c->sock >= 0);
    if (c->sock >= 0) {
        r = pool_client_look(c, 0, &a, err);
        if (r == 0)
            put_holder(&j, &a.reply);
    }
    jsonw_open(&j, "templates", '[');
    for (uint64_t from = 1; r == 0 && c->sock >= 0; from = a.reply.template.serial + 1) {
        r = pool_client_look(c, from, &a, err);
        if (r < 0 || a.reply.type == WIRE_POOL_END)
            break;
        jsonw_open(&j, NULL, '{');
        jsonw_string(&j, "name", a.reply.name);
        jsonw_string(&j, "state", a.reply.state);
        jsonw_string(&j, "error", a.reply.reason[0] ? a.reply.reason : NULL);
        put_numbers(&j, &a.reply.template);
        jsonw_close(&j, '}');
    }
    jsonw_close(&j, ']');
    jsonw_open(&j, "other_versions", '[');
    for (size_t i = 0, n = others(c->sock, pids, 16); i < n; i++)
        jsonw_int(&j, NULL, pids[i]);
    jsonw_close(&j, ']');
    jsonw_close(&j, '}');
    if (r == 0 && j.bad == 0)
        puts(out.data);
    buf_done(&out);
    return r;
}

static int status_text(struct pool_client *c, struct err *err)
{
    struct pool_answer a;
    pid_t pids[16];
    const size_t more = others(c->sock, pids, 16);
    int r = c->sock < 0 ? 0 : pool_client_look(c, 0, &a, err);
    if (r < 0)
        return r;
    if (c->sock < 0)
        puts("no holder runs");
    else
        printf("holder %s, pid %llu, up %llu s, %llu sessions, %llu leases (%llu declined)\n"
               "  %s\n",
               a.reply.state, (unsigned long long)a.reply.holder.pid,
               (unsigned long long)a.reply.holder.age_ms / 1000,
               (unsigned long long)a.reply.holder.sessions,
               (unsigned long long)a.reply.holder.leases,
               (unsigned long long)a.reply.holder.declined, a.reply.reason);
    for (uint64_t from = 1; c->sock >= 0; from = a.reply.template.serial + 1) {
        r = pool_client_look(c, from, &a, err);
        if (r < 0 || a.reply.type == WIRE_POOL_END)
            break;
        const struct pool_template_numbers *n = &a.reply.template;
        printf("%-20s %-8s %llu of %llu ready, %llu lent, %llu sessions, %llu made, %llu "
               "crashes%s%s\n",
               a.reply.name, a.reply.state, (unsigned long long)n->ready,
               (unsigned long long)n->warm, (unsigned long long)n->lent,
               (unsigned long long)n->sessions, (unsigned long long)n->made,
               (unsigned long long)n->crashes, a.reply.reason[0] ? "; last: " : "", a.reply.reason);
    }
    for (size_t i = 0; i < more; i++)
        printf("holder of another version or environment, pid %d (cordon pool stop ends it too)\n",
               (int)pids[i]);
    return r;
}

static int status(const struct pool_options *o, struct err *err)
{
    struct pool_client c;
    struct pool_environment e;
    int r = find_holder(o, &c, &e, err);
    if (r == 0)
        r = name_silent(o->json ? status_json(&c, err) : status_text(&c, err), c.sock, o->json,
                        err);
    if (r == 0 && c.sock < 0)
        r = EXIT_FAILED;
    pool_client_close(&c);
    return r;
}

/* ---- stop ---- */

/* The lock says that they are holders, and the folder that they are ours. */
static void signal_all(int sock, const struct pool_environment *e, int sig, bool also_ours)
{
    struct pool_socket at = {.dir = -1};
    struct err err = ERR_INIT;
    pid_t pids[16];
    size_t count = also_ours ? 0 : others(sock, pids, 16);
    if (also_ours && pool_socket_open(&at, false, &err) == 0)
        count = pool_socket_holders(&at, pids, 16);
    for (size_t i = 0; i < count; i++)
        (void)kill(pids[i], sig);
    at.mark = pool_environment_mark(e);
    if (also_ours && at.dir >= 0)
        (void)pool_socket_gone(&at);
    pool_socket_done(&at);
}

static int stop(const struct pool_options *o, struct err *err)
{
    struct pool_client c;
    struct pool_answer a = {0};
    struct pool_socket at = {.dir = -1};
    struct pool_environment e;
    int r = find_holder(o, &c, &e, err);
    if (r < 0)
        return r;
    signal_all(c.sock, &e, SIGTERM, false); /* those of other versions cannot be asked */
    if (c.sock >= 0) {
        r = pool_client_stop(&c, o->force, &a, err);
        if (r == 0 && a.declined)
            r = declined(&a);
        else if (r == 0 && pool_socket_open(&at, false, err) == 0 && at.dir >= 0) {
            at.mark = pool_environment_mark(&e);
            if (!pool_socket_gone(&at)) /* then all that it held is gone */
                r = err_set(err, ERR_STATE, "the holder did not end within 10 s; --force ends it");
        } else if (r < 0 && o->force) { /* it does not answer: what it holds dies with it */
            signal_all(c.sock, &e, SIGKILL, true);
            r = 0;
        }
    }
    pool_socket_done(&at);
    pool_client_close(&c);
    return r;
}

int cmd_pool(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(const struct pool_options *o, struct err *err);
    } verbs[] = {{"start", start}, {"status", status}, {"stop", stop}};
    struct pool_options o = {.set = {UINT64_MAX, UINT64_MAX, UINT64_MAX}};
    struct option_list words = {0};
    struct err err = ERR_INIT;
    int r = parse(argc, argv, &o, &words, &err);
    if (r == 0 && o.help)
        return EXIT_DONE;
    const char *verb = words.count ? words.items[0] : "";
    size_t which = 0, count = sizeof verbs / sizeof *verbs;
    while (which < count && strcmp(verb, verbs[which].name) != 0)
        which++;
    if (r == 0 && which == count) {
        const char *names[] = {verbs[0].name, verbs[1].name, verbs[2].name};
        r = options_no_verb(words.count ? verb : NULL, names, count, &err);
    } else if (r == 0 && words.count > 1) {
        r = err_set(&err, ERR_USAGE, "%s: too many arguments; see --help", verb);
    } else if (r == 0) {
        r = verbs[which].run(&o, &err);
    }
    if (r >= 0)
        return r;
    result_complain(WHO, err.msg);
    return r == ERR_USAGE ? EXIT_USAGE : EXIT_FAILED;
}
