/* SPDX-License-Identifier: Apache-2.0 */
/* Node is no worker of ours: nothing in it asks us, and what a program tries is known by the kernel's layers alone. So it is a run of `exec` whose
 * program is judged first (flow/precheck.c), in a process that ends with its verdict. What Node loads besides is not judged. The program is copied
 * into /workspace from our own memory: between the judge and Node nobody can change it.
 *
 * Waits: fd_write_all in keep_source; our own memory; none (the kernel's own); an error */
#include "node.h"

#include "base/limits.h"
#include "programs.h"
#include "sys/fd.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

bool node_is(const char *language)
{
    return language && strcmp(language, "node") == 0;
}

static int keep_source(const struct flow_request *req, struct node_program *p, struct err *err)
{
    p->file = memfd_create("cordon-program", MFD_CLOEXEC);
    if (p->file < 0 || fchmod(p->file, 0644) < 0 ||
        fd_write_all(p->file, req->source, req->source_len) < 0)
        return err_sys(err, "copy the program");
    return 0;
}

/* The profile that judges: what it has, and that Node's own modules are there. */
static int choose_rules(struct flow_request *req, struct node_program *p, struct arena *mem,
                        struct err *err)
{
    static const struct policy_rule node = {.kind = POLICY_IMPORT_ALLOW,
                                            .name = "node",
                                            .id = "js.import.node",
                                            .reason = "Node runs the program",
                                            .hint = ""};
    const size_t count = req->profile->rule_count;
    struct policy_rule *rules = arena_alloc(mem, (count + 1) * sizeof *rules);
    if (!rules)
        return err_set(err, ERR_MEMORY, "no memory");
    memcpy(rules, req->profile->rules, count * sizeof *rules);
    rules[count] = node;
    p->profile = *req->profile;
    p->profile.rules = rules;
    p->profile.rule_count = count + 1;
    req->judged_by = &p->profile;
    req->language = "javascript";
    return 0;
}

/* /workspace/NAME, with an ending that Node knows. */
static const char *place_of(const char *name, struct arena *mem)
{
    const char *dot = strrchr(name, '.');
    const bool known =
        dot && (strcmp(dot, ".js") == 0 || strcmp(dot, ".mjs") == 0 || strcmp(dot, ".cjs") == 0);
    char *path = arena_alloc(mem, strlen(name) + 32);
    if (path)
        snprintf(path, strlen(name) + 32, "/workspace/%s", known ? name : "main.js");
    return path;
}

int node_request(struct flow_request *req, struct node_program *p, struct arena *mem,
                 struct err *err)
{
    struct jail_spec *spec = &req->spec;
    const char *place = place_of(req->name, mem);
    const char **argv = arena_alloc(mem, (req->nargs + 5) * sizeof *argv);
    struct jail_bind *binds = arena_alloc(mem, (spec->nbinds + 1) * sizeof *binds);
    if (!place || !argv || !binds)
        return err_set(err, ERR_MEMORY, "no memory");
    if (spec->nbinds >= LIMIT_BINDS)
        return err_set(err, ERR_USAGE, "--ro, --rw and --in are given more than %d times together",
                       LIMIT_BINDS - 1);
    for (size_t i = 0; i < spec->nbinds; i++) {
        if (strcmp(spec->binds[i].dest, "/workspace") == 0 && !spec->binds[i].copied)
            return err_set(
                err, ERR_USAGE,
                "--lang node: the program is copied into /workspace, so nothing else "
                "can be shown there; give it another place, such as %.80s:/workspace/data",
                spec->binds[i].source);
        binds[i] = spec->binds[i];
    }
    if (programs_resolve(spec, "node", mem, &spec->program, err) < 0)
        return err_set(err, ERR_USAGE,
                       "--lang node: there is no node in /usr/bin; install the package nodejs");
    int r = keep_source(req, p, err);
    if (r == 0 && policy_profile_judges(req->profile))
        r = choose_rules(req, p, mem, err);
    if (r < 0)
        return r;
    binds[spec->nbinds] = (struct jail_bind){.source = req->name,
                                             .dest = place,
                                             .copied = true,
                                             .moved = true,
                                             .given = true,
                                             .fd = p->file};
    spec->binds = binds;
    spec->nbinds++;
    argv[0] = "node";
    argv[1] = "--preserve-symlinks"; /* /workspace is a link: files are called by that name */
    argv[2] = "--preserve-symlinks-main";
    argv[3] = place;
    for (size_t i = 0; i < req->nargs; i++)
        argv[4 + i] = req->args[i];
    spec->argv = argv;
    spec->argc = 4 + req->nargs;
    spec->filter = spec->limits.processes ? "exec-procs" : "exec";
    spec->limits.space = LIMIT_NODE_SPACE;
    req->kind = FLOW_EXEC;
    req->profile = NULL;
    req->nargs = 0;
    req->pool = false;
    return 0;
}

void node_done(struct node_program *p)
{
    fd_close(p->file);
    p->file = -1;
}
