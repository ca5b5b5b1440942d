/* SPDX-License-Identifier: Apache-2.0 */
/* What the exception that ended a program says about its result, and what its author can do about it. The
 * guest could have said so itself: the words are about its own end, and nothing is decided by them. */
#include "base/limits.h"
#include "flow/worker.h"
#include "jail/spec.h"
#include "tools/tools.h"
#include "wire/msg.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static void explain_stack(struct flow_result *r)
{
    char text[200];
    snprintf(
        text, sizeof text,
        "killed by signal %d (SEGV): stack exhausted (limit %llu MB); nest objects less deeply",
        r->signal, (unsigned long long)(LIMIT_STACK / MIB));
    flow_result_say(r, FLOW_CRASHED, "resources", "CODE", WIRE_FAULT_STACK, text);
}

/* `No module named 'a.b'`: how to get the package that `a` is. */
static void explain_module(const struct flow_worker *w)
{
    static const char said[] = "No module named '";
    char name[64];
    const char *at =
        strncmp(w->fault, said, sizeof said - 1) == 0 ? w->fault + sizeof said - 1 : "";
    const size_t len =
        strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    if (!len || len >= sizeof name || at[len] != '\'')
        return; /* a part of a package that is there: nobody has to get that */
    snprintf(name, sizeof name, "%.*s", (int)len, at);
    if (w->job && w->job->served)
        snprintf(w->result->hint, sizeof w->result->hint,
                 "there is no module '%s' here, and none can be installed: use the standard "
                 "library, or write what you need of it into the program",
                 name);
    else if (w->job && w->job->profile && !w->job->profile->packages)
        snprintf(w->result->hint, sizeof w->result->hint,
                 "profile %.40s has no package '%s'; --profile standard has those that are "
                 "installed",
                 w->job->profile->name, name);
    else
        snprintf(w->result->hint, sizeof w->result->hint,
                 "there is no module '%s' here: if it is a file of yours, --in FOLDER copies it "
                 "beside the program; if it is a package, `apt install python3-%s`, or --venv DIR "
                 "names a virtual environment that has it; `cordon pool start --packages` loads "
                 "large ones ahead",
                 name, name);
}

/* `[Errno 2] No such file or directory: 'NAME'`: how a file of the caller's comes to the program. */
static void explain_file(const struct flow_worker *w)
{
    static const char said[] = "[Errno 2] No such file or directory: '";
    if (strncmp(w->fault, said, sizeof said - 1) != 0)
        return;
    const char *name = w->fault + sizeof said - 1;
    if (*name == '/' && strncmp(name, "/workspace/", strlen("/workspace/")) != 0)
        return;
    if (w->job && w->job->served)
        snprintf(w->result->hint, sizeof w->result->hint,
                 "the program sees only the files of its session, below /workspace: list_files "
                 "tells which, write_file brings one there; a run without session_id has none");
    else
        snprintf(w->result->hint, sizeof w->result->hint,
                 "the program sees only the files that it was given: --in FILE copies one into its "
                 "/workspace, `run --ro FILE:/workspace/NAME` shows it there, and `cordon session "
                 "put` copies it into a session");
}

static bool was_given(const struct flow_job *job, const char *tool)
{
    for (size_t i = 0; job && job->tools && job->tools[i]; i++)
        if (strcmp(job->tools[i], tool) == 0)
            return true;
    return false;
}

/* A name that nobody defined and that a tool has: the program expects what this run was not given. */
static void explain_tool(const struct flow_worker *w)
{
    static const char *const said[] = {
        "name '", "undefined method `", "undefined local variable or method `", /* Python, Ruby */
        "Can't find variable: ",                                                /* JavaScript */
    };
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        char name[40];
        if (strncmp(w->fault, said[i], strlen(said[i])) != 0 ||
            sscanf(w->fault + strlen(said[i]), "%39[A-Za-z0-9_]", name) != 1 || !tools_find(name) ||
            was_given(w->job, name))
            continue;
        snprintf(w->result->hint, sizeof w->result->hint,
                 w->job && w->job->served
                     ? "%s is a tool, and programs are given none here: do it in the program%.0s"
                     : "%s is a tool, and this run was not given it: --tool %s gives it",
                 name, name);
        return;
    }
}

/* What its author can do about it, where that is known. */
static void explain_hint(const struct flow_worker *w)
{
    static const struct {
        const char *type;
        void (*explain)(const struct flow_worker *w);
    } rows[] = {
        {"ModuleNotFoundError", explain_module},
        {"FileNotFoundError", explain_file},
        {"NameError", explain_tool},
        {"NoMethodError", explain_tool},
        {"ReferenceError", explain_tool},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(w->fault_type, rows[i].type) == 0)
            rows[i].explain(w);
}

/* What an interpreter raises that was refused memory; Ruby ends by `fatal` where it has none for the exception itself, or for its words. */
static bool tells_of_memory(const struct flow_worker *w)
{
    static const struct {
        const char *type, *text; /* the text begins so; NULL: there is none */
    } rows[] = {
        {"MemoryError", ""},
        {"SystemError", "error return without exception set"}, /* of re, where it gets too little */
        {"RangeError", "Out of memory"},
        {"NoMemoryError", ""},
        {"RegexpError", "failed to allocate memory"},
        {"FiberError", "can't alloc machine stack to fiber"},
        {"fatal", "exception reentered"},
        {"fatal", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(w->fault_type, rows[i].type) == 0 &&
            (rows[i].text ? strncmp(w->fault, rows[i].text, strlen(rows[i].text)) == 0
                          : !w->fault[0]))
            return true;
    return false;
}

void flow_worker_explain(const struct flow_worker *w, const struct jail_limits *limits)
{
    struct flow_result *r = w->result;
    char text[400];
    if (w->state == FLOW_WORKER_BROKEN) {
        flow_result_say(r, FLOW_ERROR, "process", "CODE", "ProtocolError",
                        "the program wrote into Cordon's own channel, a descriptor that is not its "
                        "own, and was stopped");
        return;
    }
    if (r->status == FLOW_CRASHED && r->signal == SIGSEGV &&
        strcmp(w->fault_type, WIRE_FAULT_STACK) == 0) {
        explain_stack(r);
        return;
    }
    const bool memory = tells_of_memory(w);
    /* it went on after the refusal, and failed for something else */
    const bool went_on = r->status == FLOW_MEMORY && r->signal == 0 && !memory;
    if ((r->status != FLOW_ERROR && !went_on) || !w->fault_type[0] || r->category[0] == 'E')
        return;
    if (memory && jail_memory_was_short(r->mapped, limits)) {
        snprintf(text, sizeof text, "memory limit of %llu MB (%s)",
                 (unsigned long long)(limits->memory / MIB), r->memory_by);
        flow_result_say(r, FLOW_MEMORY, "resources", "CODE", w->fault_type, text);
    } else {
        snprintf(text, sizeof text, "%s%s%.300s", w->fault_type, w->fault[0] ? ": " : "", w->fault);
        flow_result_say(r, FLOW_ERROR, NULL, "CODE", w->fault_type, text);
        snprintf(r->message, sizeof r->message, "%s", w->fault);
        explain_hint(w);
    }
    r->line = w->fault_line;
}
