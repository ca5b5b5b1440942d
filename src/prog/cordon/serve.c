/* SPDX-License-Identifier: Apache-2.0 */
/* `cordon serve`: what the operator chose is looked up and judged here, with the policy's lids, before a client is listened
 * to; then this process becomes cordond, which knows no policy and starts `cordon` anew for each run, so that every run
 * passes the gate as one from the command line does. */
#include "base/limits.h"
#include "commands.h"
#include "flow/context.h"
#include "jail_options.h"
#include "options.h"
#include "programs.h"
#include "result.h"
#include "serve_activated.h"
#include "serve_config.h"
#include "serve_figures.h"
#include "serve_http.h"
#include "serve_socket.h"
#include "workspace/names.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WHO          "cordon serve"
#define FROM_CORDOND "--from-cordond" /* the policy was to be read again: src/serve/life.c */

struct serve_options {
    struct jail_options jail;
    const char *profile, *socket, *print, *metrics, *workspaces;
    struct serve_http_options http;
    uint64_t answer_ms, drain_ms;
    bool stdio, activated, all_users, conformance, help;
    bool elicits;         /* the policy's: a person may answer at the client */
    bool approves;        /* the policy's: clients may answer what others asked */
    uint64_t question_ms; /* how long the word for a question counts */
};

/* A socket and HTTP go together; all else stands alone. */
static int check_ways(const struct serve_options *o, struct err *err)
{
    const bool listens = o->socket || o->http.where, web = o->http.where != NULL || o->activated;
    if (listens + o->stdio + o->activated + (o->print != NULL) != 1)
        return err_set(err, ERR_USAGE,
                       "say where clients come from: --stdio, --socket, --http or --activated; or "
                       "--print-config");
    if (o->all_users && !o->socket && !o->activated)
        return err_set(err, ERR_USAGE, "--all-users belongs to --socket and --activated");
    if (!web && (o->http.token || o->http.names))
        return err_set(err, ERR_USAGE, "--token-file and --allow-host belong to --http");
    return 0;
}

static void help(const struct option_row *rows, size_t count)
{
    puts("usage: cordon serve --stdio | --socket PATH | --http ADDRESS | --activated |\n"
         "                    --print-config CLIENT  [OPTIONS]\n\n"
         "Serves the tools execute_code, check_code, eval_expression, session, read_file,\n"
         "write_file, list_files, search_files, snapshot and wait_job by the Model Context\n"
         "Protocol, revisions 2024-11-05 to 2026-07-28: to the one client that started it, or\n"
         "to those that connect. Every run passes policy, gate and audit as `cordon run` does.\n"
         "The runs and sessions of a client end with it.\n");
    options_print(rows, count);
    exits_print(EXITS_OTHER);
    puts("\n  {\"mcpServers\": {\"cordon\": {\"command\": \"cordon\", \"args\": [\"serve\", "
         "\"--stdio\"]}}}");
}

static int parse(int argc, char **argv, struct serve_options *o, struct err *err)
{
    struct jail_options *p = &o->jail;
    const struct option_row rows[] = {
        {"stdio", OPTION_FLAG, &o->stdio, NULL, "one client, at standard input and output"},
        {"socket", OPTION_STRING, &o->socket, "PATH",
         "clients of this user, at a unix socket in a folder of its own"},
        {"http", OPTION_STRING, &o->http.where, "ADDRESS",
         "clients of HTTP with the token, at PORT of loopback, or at ADDRESS:PORT"},
        {"activated", OPTION_FLAG, &o->activated, NULL,
         "at the sockets that systemd gives: unix as --socket, TCP as --http"},
        {"all-users", OPTION_FLAG, &o->all_users, NULL,
         "at the unix socket: clients of every user, each counted as itself"},
        {"token-file", OPTION_STRING, &o->http.token, "FILE",
         "the token of --http (made in the state folder)"},
        {"allow-host", OPTION_STRING, &o->http.names, "NAMES",
         "other names that clients of --http call it by, with commas between them"},
        {"metrics", OPTION_STRING, &o->metrics, "ADDRESS",
         "health and figures for Prometheus, at PORT of loopback or ADDRESS:PORT; no token"},
        {"conformance", OPTION_FLAG, &o->conformance, NULL,
         "tests only, with --http: the tools of the protocol's own suite, no token, no runs"},
        {"print-config", OPTION_STRING, &o->print, "CLIENT",
         "what to paste: claude, vscode, cursor, codex or zed"},
        {"profile", OPTION_STRING, &o->profile, "NAME",
         "the rules: strict, locked, standard, open (strict)"},
        {"role", OPTION_STRING, &p->role, "ROLE", "explore, analyze or execute (execute)"},
        {"policy", OPTION_STRING, &p->policy, "FILE", "a policy on top of the machine's"},
        {"workspaces", OPTION_STRING, &o->workspaces, "NAMES",
         "workspaces that clients may have sessions in, with commas between them (none)"},
        {"answer", OPTION_MILLIS, &o->answer_ms, "TIME",
         "a run that takes longer is answered with a job (45s)"},
        {"drain", OPTION_MILLIS, &o->drain_ms, "TIME",
         "after SIGTERM, what runs may go on for so long; then it is cancelled (10s)"},
        {"", OPTION_GROUP, NULL, NULL, "Limits, which a client can tighten and never widen:"},
        {"timeout", OPTION_MILLIS, &p->limits.wall_ms, "TIME", "wall clock of a run (30s)"},
        {"memory", OPTION_BYTES, &p->limits.memory, "SIZE", "memory of a run (512m)"},
        {"output", OPTION_BYTES, &p->limits.output, "SIZE",
         "output kept, each stream (100000); 10 times that ends the run"},
        {"help", OPTION_FLAG, &o->help, NULL, "this text"},
    };
    const size_t count = sizeof rows / sizeof *rows;
    int next = 0, r = options_parse(argc, argv, rows, count, &next, err);
    if (r == 0 && !o->help && next < argc)
        r = err_set(err, ERR_USAGE, "'%.60s': it takes options only; see --help", argv[next]);
    if (r == 0 && !o->help)
        r = check_ways(o, err);
    if (r == 0 && o->conformance && (!o->http.where || o->http.token || o->http.names))
        r = err_set(err, ERR_USAGE,
                    "--conformance is for --http at loopback, without token and other names");
    o->http.no_token = o->conformance;
    if (r < 0 || !o->help)
        return r;
    help(rows, count);
    return 0;
}

static const char *or_empty(const char *s)
{
    return s ? s : "";
}

/* The sockets, where cordond looks for them. WAYS gets a letter for each; *RET_NAME is the unix socket's, where it is ours
 * to remove. */
static int listen_all(const struct serve_options *o, char *ways, const char **ret_name,
                      struct err *err)
{
    struct serve_activated given = {.sock = -1, .http = -1};
    int r = o->activated ? serve_activated_take(&given, err) : 0;
    if (r == 0 && o->socket)
        r = serve_socket_listen(o->socket, o->all_users, ret_name, err);
    else if (r == 0 && given.sock >= 0)
        r = serve_socket_adopt(given.sock, err);
    if (r == 0 && (o->http.where || given.http >= 0))
        r = serve_http_listen(&o->http, given.http, err);
    if (r == 0 && o->metrics)
        r = serve_http_listen_metrics(o->metrics, err);
    snprintf(ways, 8, "%s%s%s%s%s", o->all_users ? "a" : "", o->metrics ? "m" : "",
             o->stdio ? "i" : "", o->socket || given.sock >= 0 ? "u" : "",
             o->http.where || given.http >= 0 ? "h" : "");
    return r;
}

/* What the operator said, to be said again when the policy is read again; empty where it was the policy's. */
static void said(uint64_t value, const char *unit, char out[32])
{
    out[0] = 0;
    if (value != UINT64_MAX)
        snprintf(out, 32, "%llu%s", (unsigned long long)value, unit);
}

/* Does not return where it succeeds. */
static int become_cordond(const struct serve_options *o, const struct jail_limits *l,
                          const char *self, struct err *err)
{
    char daemon[4096], ways[8], numbers[6][24], given[3][32];
    const char *name = "";
    const uint64_t limits[6] = {l->wall_ms,   l->memory,   l->output,
                                o->answer_ms, o->drain_ms, o->question_ms};
    int r = programs_find("cordond", daemon, sizeof daemon, err);
    if (r == 0)
        r = listen_all(o, ways, &name, err);
    if (r < 0)
        return r;
    for (int i = 0; i < 6; i++)
        snprintf(numbers[i], sizeof numbers[0], "%llu", (unsigned long long)limits[i]);
    said(o->jail.limits.wall_ms, "ms", given[0]);
    said(o->jail.limits.memory, "", given[1]);
    said(o->jail.limits.output, "", given[2]);
    const char *const words[] = {daemon,
                                 "--from-cordon",
                                 self,
                                 or_empty(o->profile),
                                 or_empty(o->jail.role),
                                 or_empty(o->jail.policy),
                                 given[0],
                                 given[1],
                                 given[2],
                                 numbers[0],
                                 numbers[1],
                                 numbers[2],
                                 numbers[3],
                                 numbers[4],
                                 ways,
                                 name,
                                 or_empty(o->http.names),
                                 or_empty(o->workspaces),
                                 o->elicits ? "elicits" : "",
                                 numbers[5],
                                 o->approves ? "approves" : "",
                                 NULL};
    execv(daemon, (char *const *)words);
    return err_sys(err, "start %s", daemon);
}

/* For cordond, when it reads the policy again: what of it clients can tighten. */
static int print_limits(const struct jail_limits *l)
{
    return printf("%llu %llu %llu\n", (unsigned long long)l->wall_ms, (unsigned long long)l->memory,
                  (unsigned long long)l->output) < 0
               ? ERR_SYS
               : 0;
}

static int own_path(char *self, size_t size, struct err *err)
{
    const ssize_t n = readlink("/proc/self/exe", self, size - 1);
    self[n < 0 ? 0 : n] = 0;
    return n < 0 ? err_sys(err, "/proc/self/exe") : 0;
}

/* Each is a good name: one that is not there is told when a client names it. */
static int check_workspaces(const char *names, struct err *err)
{
    char name[WORKSPACE_FULL_MAX + 2];
    for (const char *w = names; w && *w;) {
        const size_t n = strcspn(w, ",");
        snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name), w);
        if (!workspace_full_name_good(name))
            return err_set(err, ERR_USAGE, "--workspaces: '%.70s' cannot name a workspace", name);
        w += n + (w[n] == ',');
    }
    return 0;
}

static int check_values(const struct serve_options *o, struct err *err)
{
    const char *policy = o->jail.policy;
    if (check_workspaces(o->workspaces, err) < 0)
        return err->code;
    if (o->jail.limits.output > LIMIT_SERVE_OUTPUT_MAX)
        return err_set(err, ERR_USAGE,
                       "--output: at most 1m: a client has to read it in one answer");
    if (o->answer_ms < LIMIT_SERVE_ANSWER_MIN_MS || o->answer_ms > LIMIT_WALL_MS_MAX)
        return err_set(err, ERR_USAGE, "--answer: 100ms to 7d");
    if (o->drain_ms > LIMIT_WALL_MS_MAX)
        return err_set(err, ERR_USAGE, "--drain: at most 7d");
    if (o->print && policy && policy[0] != '/' && access(policy, F_OK) == 0)
        return err_set(err, ERR_USAGE,
                       "--policy: a client starts it elsewhere: give the whole path");
    return 0;
}

static bool has_role(const struct policy *p, const char *name)
{
    for (size_t i = 0; i < p->nroles; i++)
        if (strcmp(p->roles[i].name, name) == 0)
            return true;
    return false;
}

/* What was chosen, against the policy and its lids. */
static int judge(struct serve_options *o, struct jail_spec *spec, struct arena *mem,
                 struct err *err)
{
    struct flow_context context = {0};
    const struct policy_profile *profile = NULL;
    enum jail_memory_by by;
    int r = check_values(o, err);
    if (r == 0)
        r = flow_context_open(&context, o->jail.policy, err);
    if (r < 0 &&
        !err_is_host(
            err)) /* whatever is wrong with a policy, it is a mistake of whoever starts us */
        r = err->code = ERR_USAGE;
    if (r == 0)
        r = policy_choose_profile(context.policy, o->profile, &profile, err);
    if (r == 0)
        r = jail_options_fill(&o->jail, context.policy, spec, &by, mem, err);
    if (r == 0 && o->jail.role && !has_role(context.policy, o->jail.role))
        r = err_set(err, ERR_USAGE,
                    "--role: there is no role '%.40s'; see `cordon policy show` for the roles "
                    "there are",
                    o->jail.role);
    if (r == 0) {
        const uint64_t kept_ms = context.policy->approval.expiry_ms;
        o->elicits = context.policy->approval.elicitation &&
                     context.policy->approval.approvers != POLICY_OTHER_USER;
        o->approves = context.policy->approval.tool;
        o->question_ms =
            kept_ms < LIMIT_SERVE_QUESTION_MS ? kept_ms : (uint64_t)LIMIT_SERVE_QUESTION_MS;
    }
    flow_context_close(&context);
    return r;
}

int cmd_serve(int argc, char **argv)
{
    struct serve_options o = {.answer_ms = LIMIT_SERVE_ANSWER_MS, .drain_ms = LIMIT_SERVE_DRAIN_MS};
    struct jail_spec spec;
    struct err err = ERR_INIT;
    struct arena mem;
    char self[4096];
    jail_spec_init(&spec);
    jail_options_init(&o.jail);
    arena_init(&mem, 4 * MIB);
    o.jail.limits.output = LIMIT_SERVE_OUTPUT;
    const bool again = argc > 1 && strcmp(argv[1], FROM_CORDOND) == 0;
    o.stdio = again; /* it serves nobody; the rest is judged as it was */
    int r = again ? parse(argc - 1, argv + 1, &o, &err) : parse(argc, argv, &o, &err);
    if (r == 0 && o.help) {
        arena_done(&mem);
        return EXIT_DONE;
    }
    if (r == 0)
        r = judge(&o, &spec, &mem, &err);
    if (r == 0)
        r = own_path(self, sizeof self, &err);
    if (r == 0 && o.print)
        r = serve_config_print(o.print, self, argv + 1, &err);
    else if (r == 0 && again && o.metrics)
        r = serve_figures_print(o.jail.policy, &err);
    else if (r == 0 && again)
        r = print_limits(&spec.limits);
    else if (r == 0)
        r = become_cordond(&o, &spec.limits, self, &err);
    arena_done(&mem);
    if (r == 0)
        return EXIT_DONE;
    result_complain(WHO, err.msg);
    return r == ERR_USAGE ? EXIT_USAGE : EXIT_FAILED;
}
