/* SPDX-License-Identifier: Apache-2.0 */
/* `cordon exec`: any program in the jail. The words of the command line become a request; the flow runs
 * it. */
#include "base/limits.h"
#include "commands.h"
#include "flow/flow.h"
#include "jail_options.h"
#include "programs.h"
#include "reader.h"
#include "result.h"
#include "sys/fd.h"
#include "workspace_run.h"

#include <stdio.h>
#include <string.h>

struct exec_options {
    struct jail_options jail;
    bool json, events, help;
};

static int parse(int argc, char **argv, struct exec_options *o, int *ret_next, struct err *err)
{
    struct jail_options *p = &o->jail;
    const struct option_row rows[] = {
        JAIL_OPTIONS_ROWS_SEES(p),
        {"proc", OPTION_FLAG, &p->proc, NULL, "mount a /proc with its own processes only"},
        {"exec-files", OPTION_FLAG, &p->run_written, NULL, "let it run files that it wrote itself"},
        {"net", OPTION_STRING, &p->net, "none", "the network: there is none (the only value)"},
        JAIL_OPTIONS_ROWS_LIMITS(p),
        {"processes", OPTION_COUNT, &p->limits.processes, "N", "further processes at once (0)"},
        {"threads", OPTION_COUNT, &p->limits.threads, "N",
         "further threads (16; 0 with --processes)"},
        {"", OPTION_GROUP, NULL, NULL, "How:"},
        {"mode", OPTION_STRING, &p->mode, "MODE",
         "full, or landlock: weaker, no namespaces, for containers (full)"},
        JAIL_OPTIONS_ROWS_ASKS(p),
        {"json", OPTION_FLAG, &o->json, NULL, "print one JSON object with everything"},
        {"events", OPTION_FLAG, &o->events, NULL,
         "print JSON lines while it runs; the last one is the result"},
        {"help", OPTION_FLAG, &o->help, NULL, "this text"},
    };
    const size_t count = sizeof rows / sizeof *rows;
    int r = options_parse(argc, argv, rows, count, ret_next, err);
    o->json = o->json || o->events;
    if (o->events)
        result_as_events(true);
    if (r < 0 || !o->help)
        return r;
    puts("usage: cordon exec [OPTIONS] -- PROGRAM ARGS...\n\n"
         "Runs PROGRAM in a jail: own namespaces, read-only root, no network, no new "
         "processes,\n"
         "system calls by allow-list. It may write in /workspace (where it starts) and /tmp.");
    options_print(rows, count);
    exits_print(EXITS_RUN);
    puts("\n  cordon exec -- python3 -c 'print(6 * 7)'\n"
         "  cordon exec --json --rw ./out:/workspace -- sh -c 'echo hello > note'\n"
         "  cordon exec --processes 8 --timeout 2m --ro .:/workspace -- make -n");
    return 0;
}

static int make_spec(const struct exec_options *o, int argc, char **argv, struct flow_request *req,
                     struct arena *mem, struct err *err)
{
    struct jail_spec *spec = &req->spec;
    int r = jail_options_fill(&o->jail, req->context->policy, spec, &req->memory_by, mem, err);
    if (r < 0)
        return r;
    spec->filter = spec->mode == JAIL_LANDLOCK ? "exec-landlock"
                   : spec->limits.processes    ? "exec-procs"
                                               : "exec";
    if (argc == 0)
        return err_set(err, ERR_USAGE,
                       "no program given; usage: cordon exec [OPTIONS] -- PROGRAM ARGS");
    if (argc > LIMIT_ARGS)
        return err_set(err, ERR_USAGE, "more than %d arguments", LIMIT_ARGS);
    r = programs_resolve(spec, argv[0], mem, &spec->program, err);
    spec->keep_files = spec->mode == JAIL_FULL;
    spec->argv = (const char **)argv;
    spec->argc = (size_t)argc;
    return r;
}

int cmd_exec(int argc, char **argv)
{
    struct exec_options o = {0};
    struct flow_context context = {0};
    struct flow_request req = {.kind = FLOW_EXEC, .context = &context};
    struct workspace_run workspace = {.open = false};
    struct err err = ERR_INIT;
    struct arena mem;
    int next = 0;
    exits_heed_early();
    jail_spec_init(&req.spec);
    jail_options_init(&o.jail);
    arena_init(&mem, 4 * MIB);
    int r = parse(argc, argv, &o, &next, &err);
    if (r == 0 && !o.help) {
        r = flow_context_open(&context, o.jail.policy, &err);
        if (r == 0)
            r = make_spec(&o, argc - next, argv + next, &req, &mem, &err);
        if (r == 0)
            r = workspace_run_begin(&workspace, &o.jail, &req, &mem, &err);
        if (r == 0)
            r = result_run("cordon exec", &req, &o.jail, o.json, &err);
    }
    workspace_run_done(&workspace);
    flow_context_close(&context);
    arena_done(&mem);
    return r < 0 ? result_failed("cordon exec", o.json, &err) : r;
}
