/* SPDX-License-Identifier: Apache-2.0 */
/* Each part is a command of our own in a process of its own (`cordon check`, `cordon exec --workspace W@C --discard`), so
 * it is judged, gated, jailed and recorded as if a person had typed it, and what a command leaves is discarded. The
 * checkout of the clone is ours: no part of a path in it is a link, and the paths come from the store. The gate is asked
 * last, with the patch: whoever the policy asks (the judges of the arena, a person) is not asked about what fails anyway.
 *
 * Waits: sys_child_wait in run_part; a check, or a command of the policy, whose own deadline is shorter;
 *          that and twice LIMIT_WORKSPACE_LOCK_MS; it is killed, and the clone is not verified */
#include "workspace_verify.h"

#include "base/jsonw.h"
#include "base/languages.h"
#include "base/limits.h"
#include "commands.h"
#include "flow/context.h"
#include "jail_options.h"
#include "result.h"
#include "sys/child.h"
#include "sys/fd.h"
#include "sys/here.h"
#include "workspace/names.h"
#include "workspace_note.h"
#include "workspace_order.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define WHO "cordon workspace verify"

struct verifying {
    struct workspace_order order;
    const struct workspace_verify *v;
    const struct policy *policy;
    struct flow_context *context;
    char policy_file[4096]; /* absolute: a part runs in the clone's files; empty: none was named */
    char head[41], tree[41];
    int files; /* the checkout */
    struct jsonw out;
    size_t bad;
};

/* ---- one part: a command of ours ---- */

/* What it prints about the findings is for people: with --json our own output is one object. */
static _Noreturn void be_part(const struct verifying *g, const char *const *argv)
{
    if ((!g->out.out || dup2(STDERR_FILENO, STDOUT_FILENO) >= 0) && fchdir(g->files) == 0)
        execv("/proc/self/exe", (char *const *)argv);
    _exit(EXIT_FAILED);
}

/* Exit status; -1: it was killed. */
static int run_part(const struct verifying *g, const char *const *argv, struct err *err)
{
    const uint64_t most_ms = g->policy->workspaces.verify_ms + 2 * LIMIT_WORKSPACE_LOCK_MS;
    int status = 0;
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0)
        be_part(g, argv);
    if (pid < 0 || sys_child_wait(pid, most_ms, &status) < 0)
        return err_sys(err, "run a part of the verification");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void tell(struct verifying *g, const char *kind, const char *what, int status)
{
    g->bad += status != 0;
    if (!g->out.out) {
        char line[4400];
        snprintf(line, sizeof line, "%s: %s %.4000s", status ? "failed" : "passed", kind, what);
        result_note(WHO, line);
        return;
    }
    jsonw_open(&g->out, NULL, '{');
    jsonw_string(&g->out, "kind", kind);
    jsonw_string(&g->out, "what", what);
    jsonw_int(&g->out, "exit_code", status);
    jsonw_close(&g->out, '}');
}

/* ---- sources and commands ---- */

/* The language that judges it; NULL: none of ours does. */
static const struct language *language_of(const char *path)
{
    const char *name = strrchr(path, '/'), *dot = strrchr(name ? name : path, '.');
    const struct language *l = dot ? language_ending(dot) : NULL;
    return l && l->worker ? l : NULL;
}

static int check_source(struct verifying *g, const char *path, const struct language *lang,
                        struct err *err)
{
    char file[4200];
    const char *argv[12] = {"cordon", "check", "--lang", lang->name, "--intake", "source"};
    size_t n = 6;
    snprintf(file, sizeof file, "./%s", path); /* one that begins with - is no option */
    if (g->v->profile) {
        argv[n++] = "--profile";
        argv[n++] = g->v->profile;
    }
    if (*g->policy_file) {
        argv[n++] = "--policy";
        argv[n++] = g->policy_file;
    }
    argv[n] = file;
    const int status = run_part(g, argv, err);
    if (status >= 0)
        tell(g, "check", path, status);
    return status < 0 ? status : 0;
}

static int check_sources(struct verifying *g, struct err *err)
{
    struct buf paths;
    buf_init(&paths, 64 * MIB);
    g->order.verb = "changed";
    int r = workspace_order_run(&g->order, &paths, err);
    for (size_t at = 0; r == 0 && at < paths.len; at += strlen(paths.data + at) + 1) {
        const struct language *lang = language_of(paths.data + at);
        if (lang)
            r = check_source(g, paths.data + at, lang, err);
    }
    buf_done(&paths);
    return r;
}

static int run_command(struct verifying *g, const char *command, struct err *err)
{
    char time[32];
    snprintf(time, sizeof time, "%llums", (unsigned long long)g->policy->workspaces.verify_ms);
    const char *argv[20] = {"cordon",    "exec",        "--workspace", g->order.name,
                            "--discard", "--processes", "64",          "--timeout",
                            time,        "--cpu",       time};
    size_t n = 11;
    if (*g->policy_file) {
        argv[n++] = "--policy";
        argv[n++] = g->policy_file;
    }
    argv[n++] = "--";
    argv[n++] = "/bin/sh";
    argv[n++] = "-c";
    argv[n++] = command;
    const int status = run_part(g, argv, err);
    if (status >= 0)
        tell(g, "command", command, status);
    return status < 0 ? status : 0;
}

/* ---- the gate ---- */

/* 1: the patch may be merged. 0: NO says why not. */
static int decide(const struct verifying *g, const struct buf *patch, struct gate_refusal *no,
                  struct err *err)
{
    char arguments[256]; /* a yes is for this clone as it is */
    snprintf(arguments, sizeof arguments, "{\"workspace\": \"%.130s\", \"id\": \"%s\"}",
             g->order.name, g->head);
    const char *const writes[] = {"/workspace"};
    struct flow_request waits = {.context = g->context};
    result_ask(&waits, &(struct jail_options){0});
    struct gate_request ask = {.run = g->head,
                               .role = waits.role,
                               .tool = "merge",
                               .code = patch->data ? patch->data : "",
                               .code_len = patch->len,
                               .arguments = arguments,
                               .writes = writes,
                               .nwrites = 1,
                               .wait_ms = waits.wait_ms,
                               .approval_wait_ms = waits.approval_wait_ms};
    struct gate_ticket *ticket = NULL;
    struct gate_plan *plan = NULL;
    gate_client_uid(&ask.client, getuid());
    int r = gate_admit(g->context->gate, &ask, &ticket, no, err);
    if (r == 1)
        r = gate_decide(ticket, NULL, &plan, no, err);
    if (r == 1) {
        gate_plan_start(plan, "merge");
        gate_release(plan, &(struct gate_outcome){.status = "ok"});
    }
    return r;
}

static int ask_gate(struct verifying *g, struct err *err)
{
    struct gate_refusal no = {.word = "gate.state"};
    struct buf patch;
    buf_init(&patch, 64 * MIB);
    g->order.verb = "changes";
    int r = workspace_order_run(&g->order, &patch, err);
    if (r == 0)
        r = result_open_gate(g->context, g->out.out, err);
    if (r == 0)
        r = decide(g, &patch, &no, err);
    if (r == 0) {
        char why[700];
        snprintf(why, sizeof why, "%s: %s; %s", no.word, no.reason, no.hint);
        tell(g, "gate", why, EXIT_FAILED);
    } else if (r == 1) {
        tell(g, "gate", "merge", EXIT_DONE);
    }
    buf_done(&patch);
    return r < 0 ? r : 0;
}

/* ---- the clone ---- */

/* The checkout stays while we hold the lock for readers. */
static int open_clone(struct verifying *g, const char *name, struct err *err)
{
    char folder[WORKSPACE_NAME_MAX + 1], path[WORKSPACE_NAME_MAX + 64];
    struct buf text;
    if (!workspace_clone_part(name))
        return err_set(err, ERR_USAGE,
                       "%.70s is no clone: name one as W@CLONE; see cordon workspace list", name);
    int r = workspace_order_open(&g->order, "checkout", name, HOLD_READ, err);
    if (r == 0)
        r = workspace_order_hold(&g->order, HOLD_CHANGE, err);
    if (r < 0)
        return r;
    const char *boot = here_boot();
    buf_init(&text, 4096);
    g->order.words[0] = boot ? boot : "";
    r = workspace_order_run(&g->order, &text, err);
    workspace_order_release(&g->order);
    if (r == 0 &&
        sscanf(text.data ? text.data : "", "%40[0-9a-f] %40[0-9a-f]", g->head, g->tree) != 2)
        r = err_set(err, ERR_FORMAT, "cordon-workspace gave an answer that cordon does not read");
    buf_done(&text);
    workspace_base_part(name, folder);
    snprintf(path, sizeof path, "%s/trees/%s", folder, g->tree);
    if (r == 0) {
        g->files = openat(g->order.home, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        r = g->files < 0 ? err_sys(err, "open the checkout of %.70s", name) : 0;
    }
    return r;
}

static int note_verified(struct verifying *g, struct err *err)
{
    struct buf nothing;
    buf_init(&nothing, 4096);
    g->order.verb = "verified";
    g->order.words[0] = g->head;
    int r = workspace_order_hold(&g->order, HOLD_CHANGE, err);
    if (r == 0)
        r = workspace_order_run(&g->order, &nothing, err);
    workspace_order_release(&g->order);
    buf_done(&nothing);
    return r;
}

static int look(struct verifying *g, struct err *err)
{
    int r = check_sources(g, err);
    for (size_t i = 0; r == 0 && i < g->policy->workspaces.verify.count; i++)
        r = run_command(g, g->policy->workspaces.verify.items[i], err);
    if (r == 0 && g->bad == 0)
        r = ask_gate(g, err);
    return r == 0 && g->bad == 0 ? note_verified(g, err) : r;
}

static void print_verdict(struct verifying *g, struct buf *text)
{
    if (!g->out.out) {
        printf("%s %s\n", g->head, g->bad ? "not verified" : "verified");
        return;
    }
    jsonw_close(&g->out, ']');
    jsonw_string(&g->out, "workspace", g->order.name);
    jsonw_string(&g->out, "id", g->head);
    jsonw_bool(&g->out, "verified", g->bad == 0);
    jsonw_close(&g->out, '}');
    if (g->out.bad == 0)
        printf("%s\n", text->data);
    else
        result_complain(WHO, "no memory for the verdict");
}

int workspace_verify(const char *name, const struct workspace_verify *v, bool json, struct err *err)
{
    struct flow_context context = {0};
    struct verifying g = {.order = WORKSPACE_ORDER_INIT, .v = v, .context = &context, .files = -1};
    struct buf text;
    buf_init(&text, 64 * MIB);
    int r = flow_context_open(&context, v->policy, err);
    g.policy = context.policy;
    if (r == 0 && v->policy && !realpath(v->policy, g.policy_file))
        r = err_sys(err, "find %.150s", v->policy);
    if (r == 0)
        r = open_clone(&g, name, err);
    if (json) {
        g.out.out = &text;
        jsonw_open(&g.out, NULL, '{');
        jsonw_open(&g.out, "parts", '[');
    }
    if (r == 0)
        r = look(&g, err);
    g.order.verb = "verify";
    if (r == 0)
        r = workspace_note(&context, &g.order, g.bad ? EXIT_FAILED : EXIT_DONE, err);
    if (r == 0)
        print_verdict(&g, &text);
    fd_close(g.files);
    workspace_order_done(&g.order);
    flow_context_close(&context);
    buf_done(&text);
    return r < 0 ? r : g.bad ? EXIT_FAILED : EXIT_DONE;
}
