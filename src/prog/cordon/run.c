/* SPDX-License-Identifier: Apache-2.0 */
/* `cordon run` and `cordon check` for programs that are judged: the source is read, the profile found, and
 * the flow does the rest.
 *
 * Waits: source_read in read_source; whoever writes the program; the time limit of the run; an error that names the file */
#include "base/limits.h"
#include "by_daemon.h"
#include "check.h"
#include "commands.h"
#include "flow/flow.h"
#include "images.h"
#include "jail_options.h"
#include "languages.h"
#include "method.h"
#include "node.h"
#include "programs.h"
#include "ready.h"
#include "result.h"
#include "source.h"
#include "tools.h"
#include "workspace_run.h"
#include "writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CODE_NAME "<string>" /* what the program of -c is called */

struct run_options {
    struct jail_options jail;
    const char *lang, *profile, *code, *intake;
    const char *method, *args, *save;
    struct tool_options tools;
    bool json, events, images, help;
};

/* An option behind FILE that is none of ours. */
static int for_the_program(struct err *err)
{
    char what[sizeof err->msg];
    snprintf(what, sizeof what, "%s", err->msg);
    what[strcspn(what, ";")] = 0;
    return err_set(err, ERR_USAGE, "%s; what is for the program comes after --", what);
}

static int parse(int argc, char **argv, struct run_options *o, struct option_list *words,
                 struct err *err)
{
    struct jail_options *p = &o->jail;
    const struct option_row rows[] = {
        {"code", OPTION_STRING, &o->code, "CODE", "the program itself, instead of a FILE"},
        {"lang", OPTION_STRING, &o->lang, "LANG", languages_help(false)},
        {"intake", OPTION_STRING, &o->intake, "HOW",
         "text: find the program in a model's answer; source: the file is the program (text, but "
         "for a FILE with a language's ending and -c)"},
        {"profile", OPTION_STRING, &o->profile, "NAME",
         "the rules: strict, locked, standard, open (strict)"},
        {"method", OPTION_STRING, &o->method, "NAME",
         "Ruby: the text is this method; it is called, and what it returns is the value"},
        {"args", OPTION_STRING, &o->args, "JSON",
         "with --method: its arguments, an array in order or an object by name ([])"},
        {"save", OPTION_STRING, &o->save, "PATH",
         "with --method: the accepted method becomes this file of /workspace; needs --workspace "
         "or --out"},
        JAIL_OPTIONS_ROWS_SEES(p),
        JAIL_OPTIONS_ROW_VENV(p),
        TOOL_OPTIONS(&o->tools),
        JAIL_OPTIONS_ROWS_LIMITS(p),
        {"processes", OPTION_COUNT, &p->limits.processes, "N",
         "further processes at once (0); in standard and open"},
        {"", OPTION_GROUP, NULL, NULL, "How:"},
        JAIL_OPTIONS_ROWS_ASKS(p),
        {"json", OPTION_FLAG, &o->json, NULL, "print one JSON object with everything"},
        {"events", OPTION_FLAG, &o->events, NULL,
         "print JSON lines while it runs; the last one is the result"},
        {"images", OPTION_FLAG, &o->images, NULL,
         "with --events: each picture that it leaves, scaled, as an event"},
        {"help", OPTION_FLAG, &o->help, NULL, "this text"},
    };
    const size_t count = sizeof rows / sizeof *rows;
    int r = options_parse_mixed(argc, argv, rows, count, words, err);
    if (r == ERR_USAGE && words->count && strncmp(err->msg, "unknown option ", 15) == 0)
        return for_the_program(err);
    o->json = o->json || o->events;
    if (o->events)
        result_as_events(true);
    if (r < 0 || !o->help)
        return r;
    puts("usage: cordon run [OPTIONS] [FILE | - | -c CODE] [ARGS... | -- ARGS...]\n\n"
         "Judges a program with the language's own parser, then runs it in the jail. It may write "
         "in\n"
         "/workspace (where it starts) and /tmp; what it leaves in /workspace is\n"
         "dropped, unless --out takes it, or --rw or --workspace keeps it. --in copies files "
         "there.\n"
         "locked has no files.\n"
         "Profiles: strict (imports by allow-list, guarded access), locked (the same guards, and\n"
         "every literal list judged before anything runs), standard (the standard library and\n"
         "installed packages), open (the kernel's layers alone).\n");
    options_print(rows, count);
    exits_print(EXITS_RUN);
    puts("\n  cordon run -c 'print(6 * 7)'\n"
         "  cordon run --profile standard --json plot.py\n"
         "  cordon run --timeout 5s --stdin data.csv summary.py");
    return 0;
}

/* What the source is called in tracebacks: the file's own name, without the host's folders. */
static const char *display_name(const char *file)
{
    const char *slash = strrchr(file, '/');
    return strcmp(file, "-") == 0 ? "<stdin>" : slash ? slash + 1 : file;
}

static int read_source(const char *file, struct flow_request *req, struct text *t, struct err *err)
{
    if (strcmp(file, "-") == 0 && isatty(STDIN_FILENO))
        result_note("cordon", "reading the program from standard input; Ctrl-D ends it");
    int r = source_read(file, LIMIT_SOURCE, req->spec.limits.wall_ms, t, err);
    req->source_too_long = r == ERR_LIMIT; /* more than any profile takes: the flow's verdict */
    req->source = r == 0 ? t->data : "";
    req->source_len = r == 0 ? t->len : 0;
    req->name = display_name(file);
    return r == ERR_LIMIT ? 0 : r;
}

static void take_code(const char *code, struct flow_request *req)
{
    req->source = code;
    req->source_len = strlen(code);
    req->source_too_long = req->source_len > LIMIT_SOURCE;
    req->name = CODE_NAME;
}

/* A policy's limits.processes is for exec: here a program starts others only where the caller says so. */
static int choose_processes(const struct jail_options *o, struct flow_request *req, struct err *err)
{
    const bool said = o->limits.processes != UINT64_MAX;
    if (said && o->limits.processes && req->profile->guards)
        return err_set(
            err, ERR_USAGE,
            "--processes: under %.40s a program starts no others; --profile standard and "
            "open let it",
            req->profile->name);
    if (!said)
        req->spec.limits.processes = 0;
    return 0;
}

static int choose_method(const struct run_options *o, struct flow_request *req, struct err *err)
{
    if (!o->method && (o->args || o->save))
        return err_set(err, ERR_USAGE, "%s is for a method; name it with --method",
                       o->args ? "--args" : "--save");
    if (o->save && !o->jail.workspace && !o->jail.out)
        return err_set(err, ERR_USAGE,
                       "--save: say where the file stays: --workspace W commits it, --out DIR "
                       "takes it");
    req->method = o->method;
    req->method_args = o->args ? o->args : "[]";
    req->save = o->save;
    int r = o->method ? method_check(o->method, req->method_args, err) : 0;
    return r == 0 && o->save ? method_check_path(o->save, err) : r;
}

static bool shows_argv(const struct policy_profile *p)
{
    for (size_t i = 0; p->guards && i < p->rule_count; i++)
        if (p->rules[i].kind == POLICY_MEMBER_ALLOW && strcmp(p->rules[i].name, "sys.argv") == 0)
            return true;
    return !p->guards;
}

/* FILE NULL: there is none. What Node runs is judged as JavaScript. */
static int choose_language(const struct run_options *o, const char *file,
                           const struct language **ret, struct err *err)
{
    *ret = language_named("javascript");
    if (node_is(o->lang) && (*ret)->worker)
        return 0;
    int r = languages_choose(o->lang, file, false, ret, err);
    if (r == 0 && !(*ret)->worker)
        return err_set(err, ERR_USAGE, "a condition is evaluated by `cordon eval`, not run");
    return r;
}

/* FILE, or the words of -c. */
static int choose_source(const struct run_options *o, const struct option_list *words,
                         struct flow_request *req, struct text *t, struct err *err)
{
    const char *file = words->count ? words->items[0] : "-";
    req->args = words->items + (o->code ? 0 : 1);
    req->nargs = words->count > (o->code ? 0 : 1) ? words->count - (o->code ? 0 : 1) : 0;
    if (req->nargs && !shows_argv(req->profile))
        return err_set(err, ERR_USAGE,
                       "'%.60s': under %.40s a program has no sys.argv; use --profile strict, or "
                       "write the value into the program",
                       req->args[0], req->profile->name);
    const struct language *l;
    int r = choose_language(o, o->code ? NULL : file, &l, err);
    if (r == 0)
        r = languages_intake(o->intake, o->code ? ".py" : file, &req->raw, err);
    req->language = o->lang ? o->lang : r == 0 && !req->raw ? l->name : NULL;
    if (r < 0 || !o->code)
        return r < 0 ? r : read_source(file, req, t, err);
    take_code(o->code, req);
    return 0;
}

/* What Node cannot have is refused by name. */
static int run_by_node(const struct run_options *o, struct flow_request *req,
                       struct node_program *node, struct arena *mem, struct err *err)
{
    const char *no =
        req->tools && req->tools[0] ? "calls no tools: --tool is for our own workers"
        : o->method                 ? "has no --method"
        : req->raw ? "takes a program, not a model's answer: give it a FILE or --intake source"
        : !req->profile->threads ? "has threads: --profile standard and open let it"
        : req->source_too_long   ? "takes no program of that length"
                                 : NULL;
    if (no)
        return err_set(err, ERR_USAGE, "--lang node: Node %s", no);
    return node_request(req, node, mem, err);
}

/* Of the request, what the policy and the options say. */
static int fill(struct run_options *o, struct flow_request *req, struct arena *mem, struct err *err)
{
    struct flow_context *context = req->context;
    int r = policy_choose_profile(context->policy, o->profile, &req->profile, err);
    if (r == 0)
        r = jail_options_venv(o->jail.venv, context->policy, mem, &context->venv, err);
    if (r == 0)
        r = jail_options_fill(&o->jail, context->policy, &req->spec, &req->memory_by, mem, err);
    req->pool = r == 0 && context->policy->pool.enabled;
    return r == 0 ? choose_processes(&o->jail, req, err) : r;
}

bool run_ahead(int argc, char **argv, struct flow_context *context, struct output_rules **ret_rules,
               char *ret_policy, size_t size)
{
    struct run_options o = {0};
    struct flow_request req = {.kind = FLOW_RUN, .context = context};
    struct option_list words = {0};
    struct err err = ERR_INIT; /* the run meets it again, and says it */
    struct arena mem;
    jail_spec_init(&req.spec);
    jail_options_init(&o.jail);
    o.jail.served = true;
    arena_init(&mem, 4 * MIB);
    const bool good = parse(argc, argv, &o, &words, &err) == 0 && !o.help && !o.jail.no_wait &&
                      flow_context_open(context, o.jail.policy, &err) == 0 &&
                      fill(&o, &req, &mem, &err) == 0 && !o.jail.venv &&
                      result_open_gate(context, true, &err) == 0 &&
                      result_rules(&req, ret_rules, &err) == 0;
    if (good)
        flow_ahead(&req);
    char path[4096]; /* found once, it is known */
    const char *const programs[] = {"cordon-nest", language_default()->worker, "cordon-tool"};
    for (size_t i = 0; good && i < sizeof programs / sizeof *programs; i++)
        (void)!programs_find(programs[i], path, sizeof path, &err);
    snprintf(ret_policy, size, "%s", o.jail.policy ? o.jail.policy : "");
    result_as_events(false);
    arena_done(&mem);
    return good;
}

/* The command line has nothing but what a client of the server can choose. */
static bool client_could_say(int argc, char **argv)
{
    struct option_list words = {0};
    struct err other = ERR_INIT;
    const char *text;
    uint64_t number;
    bool flag;
    const struct option_row rows[] = {
        {"code", OPTION_STRING, &text},      {"lang", OPTION_STRING, &text},
        {"timeout", OPTION_MILLIS, &number}, {"memory", OPTION_BYTES, &number},
        {"output", OPTION_BYTES, &number},   {"json", OPTION_FLAG, &flag},
    };
    return options_parse_mixed(argc, argv, rows, sizeof rows / sizeof *rows, &words, &other) == 0 &&
           words.count <= 1;
}

/* By the machine's server, where the policy has it and its clients can ask for the same. */
static bool by_server(int argc, char **argv, const struct run_options *o,
                      const struct flow_request *req, int *ret_status)
{
    const struct by_daemon q = {.who = "cordon run",
                                .code = req->source,
                                .len = req->source_len,
                                .language = o->lang,
                                .timeout_ms = o->jail.limits.wall_ms,
                                .memory = o->jail.limits.memory,
                                .output = o->jail.limits.output,
                                .json = o->json};
    return by_daemon_wanted(req->context->policy) && !node_is(o->lang) && !req->source_too_long &&
           !req->nargs && client_could_say(argc, argv) &&
           by_daemon_do(req->context->policy, &q, ret_status);
}

/* By a jail of our own. */
static int run_here(const struct run_options *o, struct flow_request *req, struct arena *mem,
                    struct err *err)
{
    struct workspace_run workspace = {.open = false};
    struct node_program node = NODE_PROGRAM_INIT;
    req->spec.keep_files = true;
    req->look = o->events && o->images ? images_events : NULL;
    int r = node_is(o->lang) ? run_by_node(o, req, &node, mem, err)
                             : jail_options_files(&o->jail, req->profile, err);
    if (r == 0)
        r = workspace_run_begin(&workspace, &o->jail, req, mem, err);
    if (r == 0)
        r = result_run("cordon run", req, &o->jail, o->json, err);
    node_done(&node);
    workspace_run_done(&workspace);
    return r;
}

int cmd_run(int argc, char **argv)
{
    struct run_options o = {0};
    struct flow_context own = {0}, *context = &own;
    struct flow_request req = {.kind = FLOW_RUN};
    struct tool_choice tools = {0};
    struct option_list words = {0};
    struct text source = {0};
    struct err err = ERR_INIT;
    struct arena mem;
    exits_heed_early();
    jail_spec_init(&req.spec);
    jail_options_init(&o.jail);
    o.jail.served = ready_served();
    arena_init(&mem, 4 * MIB);
    int r = parse(argc, argv, &o, &words, &err);
    if (r == 0 && !o.help) {
        struct flow_context *kept = ready_context(o.jail.policy);
        context = kept ? kept : context;
        req.context = context;
        r = kept ? 0 : flow_context_open(context, o.jail.policy, &err);
        if (r == 0)
            r = fill(&o, &req, &mem, &err);
        if (r == 0)
            r = tools_choose(&o.tools, context->policy, &tools, &err);
        if (r == 0)
            r = choose_method(&o, &req, &err);
        if (r == 0)
            r = choose_source(&o, &words, &req, &source, &err);
        tools_give(&tools, &o.tools, &req);
        if (r == 0 && !by_server(argc, argv, &o, &req, &r))
            r = run_here(&o, &req, &mem, &err);
    }
    free(source.data);
    flow_context_close(context);
    arena_done(&mem);
    return r < 0 ? result_failed("cordon run", o.json, &err) : r;
}

/* ---- check ---- */

static void print_report(void *ctx, const struct check_report *report)
{
    const struct check_options *o = ctx;
    struct buf out;
    buf_init(&out, 4 * MIB);
    int r = o->json ? check_report_print_json(report, &out)
                    : check_report_print_text(report, o->code ? CODE_NAME : display_name(o->file),
                                              &out);
    if (r == 0 && o->json)
        r = buf_str(&out, "\n");
    if (r == 0) /* its reader is waited for when the jail is gone */
        writer_take(JAIL_STDOUT, &out);
    else
        result_complain("cordon check", "no memory for the report");
    buf_done(&out);
}

/* As by_server. */
static bool check_by_server(const struct check_options *o, const struct flow_request *req,
                            int *ret_status)
{
    const struct by_daemon q = {.who = "cordon check",
                                .code = req->source,
                                .len = req->source_len,
                                .language = o->lang,
                                .check = true,
                                .json = o->json};
    return !o->profile && !o->intake && !o->policy && !o->workspace && !req->source_too_long &&
           by_daemon_wanted(req->context->policy) &&
           by_daemon_do(req->context->policy, &q, ret_status);
}

int check_program(const struct check_options *o)
{
    struct flow_context context = {0};
    struct flow_request req = {.kind = FLOW_CHECK, .context = &context};
    struct check_options copy = *o;
    struct workspace_run workspace = {.open = false};
    struct jail_options jail;
    struct text source = {0};
    struct err err = ERR_INIT;
    struct arena mem;
    jail_spec_init(&req.spec);
    jail_options_init(&jail);
    arena_init(&mem, 4 * MIB);
    req.report = print_report;
    req.report_ctx = &copy;
    int r = flow_context_open(&context, o->policy, &err);
    if (r == 0)
        r = policy_choose_profile(context.policy, o->profile, &req.profile, &err);
    if (r == 0)
        r = jail_options_fill(&jail, context.policy, &req.spec, &req.memory_by, &mem, &err);
    if (r == 0)
        r = languages_intake(o->intake, o->code ? ".py" : o->file, &req.raw, &err);
    req.language = o->lang ? o->lang : req.raw ? NULL : o->language->name;
    if (r == 0 && o->code)
        take_code(o->code, &req);
    else if (r == 0)
        r = read_source(o->file, &req, &source, &err);
    jail.workspace = o->workspace;
    const bool served = r == 0 && check_by_server(o, &req, &r);
    if (r == 0 && !served)
        r = workspace_run_begin(&workspace, &jail, &req, &mem, &err);
    req.keep = NULL; /* nothing runs: there is nothing to commit */
    if (r == 0 && !served)
        r = result_check("cordon check", &req, o->json, &err);
    free(source.data);
    workspace_run_done(&workspace);
    flow_context_close(&context);
    arena_done(&mem);
    return r < 0 ? result_unjudged("cordon check", o->json, &err) : r;
}
