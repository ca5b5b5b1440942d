/* SPDX-License-Identifier: Apache-2.0 */
/* `cordon doctor`: tries every layer, then a whole jail, and says what to do about what is missing.
 */
#include "jail/doctor.h"
#include "base/jsonw.h"
#include "base/languages.h"
#include "commands.h"
#include "doctor_context.h"
#include "jail/run.h"
#include "options.h"
#include "programs.h"
#include "result.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

struct verdict {
    bool full, landlock; /* every facility that the mode needs is there */
    bool ran;            /* and a program ran in it, all layers proved */
    struct err why;
    struct jail_layers layers;
    const char *memory_by;
    struct doctor_context context;
};

/* What must be there for a run to begin: the jail, and what it is asked and recorded by. */
static bool works(const struct verdict *v)
{
    return v->ran && !v->context.part;
}

static void ignore(void *ctx, enum jail_stream stream, const void *data, size_t len)
{
    (void)ctx, (void)stream, (void)data, (void)len;
}

/* The proof of the pudding: a program that ends well, in the mode of the default policy. */
static void run_a_jail(struct verdict *v, enum jail_mode mode)
{
    static const char *argv[] = {"/bin/true", NULL}, *env[] = {NULL};
    char nest[4096];
    struct jail_spec spec;
    struct jail_run *run = NULL;
    struct jail_start start = {
        .nest = nest, .input = -1, .channel = -1, .channel_ours = -1, .sink = {.bytes = ignore}};
    jail_spec_init(&spec);
    spec.mode = mode;
    spec.filter = "exec";
    spec.program = argv[0];
    spec.argv = argv;
    spec.argc = 1;
    spec.env = env;
    if (programs_find("cordon-nest", nest, sizeof nest, &v->why) < 0 ||
        jail_run_new(&spec, &start, &run, &v->why) < 0)
        return;
    while (!jail_run_step(run, -1))
        ;
    const struct jail_outcome *o = jail_run_outcome(run);
    v->ran = o->end == JAIL_END_EXIT && o->exit_code == 0;
    v->layers = o->layers;
    v->memory_by = o->memory_enforced_by;
    if (!v->ran)
        err_set(&v->why, ERR_MISSING, "/bin/true failed in the jail");
    jail_run_free(run);
}

static void judge(struct verdict *v, const struct jail_check *c, size_t n)
{
    v->full = v->landlock = true;
    for (size_t i = 0; i < n; i++)
        if (!c[i].enforced && c[i].need != JAIL_NEED_SOME) {
            v->full = false;
            v->landlock = v->landlock && c[i].need == JAIL_NEED_FULL;
        }
}

/* A worker may be a package of its own. */
static void print_languages(void)
{
    char path[4096];
    struct err none = ERR_INIT;
    fputs("Languages:", stdout);
    for (const struct language *l = language_next(NULL); l; l = language_next(l))
        if (l->worker)
            printf(" %s%s", l->name,
                   programs_find(l->worker, path, sizeof path, &none) == 0 ? ""
                                                                           : " (not installed)");
    putchar('\n');
}

static void print_text(const struct verdict *v, const struct jail_check *c, size_t n,
                       const char *mode)
{
    struct utsname u;
    if (uname(&u) == 0)
        printf("%s %s, %s, as %s\n\n", u.sysname, u.release, u.machine,
               geteuid() == 0 ? "root" : "an ordinary user");
    for (size_t i = 0; i < n; i++) {
        printf("%-9s %-11s %-33s %s\n", c[i].enforced ? "enforced" : "missing", c[i].layer,
               c[i].name, c[i].detail);
        if (!c[i].enforced)
            printf("          fix: %s\n", c[i].fix);
    }
    if (v->ran)
        printf(
            "\nA program ran in mode %s, and every layer %swas seen from inside; memory by %s.\n",
            mode, strcmp(mode, "full") == 0 ? "" : "that it has ", v->memory_by);
    else
        printf("\nNo program can be run in mode %s: %s%s%s\n", mode, v->why.layer,
               v->why.layer[0] ? ": " : "", v->why.msg);
    print_languages();
    if (v->context.part)
        printf("%sNothing would run: %s: %s\n", v->ran ? "" : "\n", v->context.part,
               v->context.why.msg);
    if (!v->ran && v->landlock && strcmp(mode, "full") == 0)
        puts("The weaker --mode landlock may work here; `cordon doctor --mode landlock` tells.");
}

static int print_json(const struct verdict *v, const struct jail_check *c, size_t n,
                      const char *mode)
{
    static const char *const needs[] = {"full", "full, landlock", "some"};
    struct buf out;
    buf_init(&out, 65536);
    struct jsonw j = {.out = &out};
    jsonw_open(&j, NULL, '{');
    jsonw_string(&j, "mode", mode);
    jsonw_bool(&j, "ok", works(v));
    jsonw_string(&j, "reason", !v->ran ? v->why.msg : v->context.part ? v->context.why.msg : NULL);
    jsonw_string(&j, "part", !v->ran ? "jail" : v->context.part);
    jsonw_string(&j, "layer", v->ran || !v->why.layer[0] ? NULL : v->why.layer);
    jsonw_open(&j, "checks", '[');
    for (size_t i = 0; i < n; i++) {
        jsonw_open(&j, NULL, '{');
        jsonw_string(&j, "name", c[i].name);
        jsonw_string(&j, "layer", c[i].layer);
        jsonw_string(&j, "state", c[i].enforced ? "enforced" : "missing");
        jsonw_string(&j, "needed_by", needs[c[i].need]);
        jsonw_string(&j, "detail", c[i].detail);
        jsonw_string(&j, "fix", c[i].enforced ? NULL : c[i].fix);
        jsonw_close(&j, '}');
    }
    jsonw_close(&j, ']');
    jsonw_close(&j, '}');
    int bad = j.bad;
    if (!bad)
        puts(out.data);
    buf_done(&out);
    return bad;
}

int cmd_doctor(int argc, char **argv)
{
    bool json = false, checklist = false, help = false;
    const char *mode = "full";
    const struct option_row rows[] = {
        {"mode", OPTION_STRING, &mode, "MODE", "full, or landlock: which one must work (full)"},
        {"checklist", OPTION_FLAG, &checklist, NULL,
         "the operator's list, ticked as far as a machine can"},
        {"json", OPTION_FLAG, &json, NULL, "one JSON object"},
        {"help", OPTION_FLAG, &help, NULL, "this text"},
    };
    struct err err = ERR_INIT;
    int next = 0, r = options_parse(argc, argv, rows, sizeof rows / sizeof *rows, &next, &err);
    if (r == 0 && next < argc)
        r = err_set(&err, ERR_USAGE, "unexpected argument '%.40s'; see --help", argv[next]);
    if (r == 0 && strcmp(mode, "full") != 0 && strcmp(mode, "landlock") != 0)
        r = err_set(&err, ERR_USAGE, "--mode: '%.40s' is none of: full, landlock", mode);
    if (r < 0) {
        result_complain("cordon doctor", err.msg);
        return EXIT_USAGE;
    }
    if (help) {
        puts(
            "usage: cordon doctor [OPTIONS]\n\n"
            "Tries every layer on this machine, live, runs a program behind all of them, and "
            "opens\n"
            "policy, state folder, gate and audit as a run does: would a run begin in the mode?\n");
        options_print(rows, sizeof rows / sizeof *rows);
        exits_print(EXITS_OTHER);
        return EXIT_DONE;
    }
    struct jail_check checks[JAIL_CHECKS_MAX];
    struct verdict v = {0};
    size_t n = jail_doctor_look(checks);
    judge(&v, checks, n);
    run_a_jail(&v, strcmp(mode, "full") == 0 ? JAIL_FULL : JAIL_LANDLOCK);
    doctor_context_open(&v.context);
    bool cgroup = false;
    for (size_t i = 0; i < n; i++)
        cgroup = cgroup || (strcmp(checks[i].name, "cgroup") == 0 && checks[i].enforced);
    int status = works(&v) ? EXIT_DONE : EXIT_FAILED;
    if (checklist)
        doctor_checklist(&v.context, v.ran, cgroup);
    else if (!json)
        print_text(&v, checks, n, mode);
    else if (print_json(&v, checks, n, mode) < 0)
        status = EXIT_FAILED;
    doctor_context_close(&v.context);
    return status;
}
