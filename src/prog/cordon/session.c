/* SPDX-License-Identifier: Apache-2.0 */
/* `cordon session`: processes that stay, with their variables and files, kept by the holder. One function a
 * verb.
 *
 * Waits: read in copy_out; memory; at once; the end
 *        source_read in read_program; whoever writes the program; the time limit of the call; an error that names the file */
#include "session.h"

#include "base/jsonw.h"
#include "base/limits.h"
#include "base/units.h"
#include "commands.h"
#include "languages.h"
#include "result.h"
#include "session_files.h"
#include "session_request.h"
#include "session_workspace.h"
#include "source.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WHO "cordon session"

struct session_options {
    struct session_context context;
    struct session_new make;
    struct tool_options tools;
    struct option_list words; /* words: the verb first */
    const char *code;
    bool help;
};

static void help(const struct option_row *rows, size_t count)
{
    puts("usage: cordon session new [NAME] | list | run NAME [FILE | - | -c CODE] |\n"
         "                      put NAME PATH[:DEST] | get NAME PATH [DEST | -] |\n"
         "                      fork NAME [NEW] | export NAME | interrupt NAME | close NAME   "
         "[OPTIONS]\n\n"
         "An interpreter that stays: variables and files live on between calls. new prints its\n"
         "name; run runs a program in it, and the value of its last expression is its `value`; "
         "fork\n"
         "makes a second one of it that goes on by itself; export prints what it saw and did;\n"
         "interrupt raises KeyboardInterrupt in its call, as Ctrl-C does, and it lives on. put "
         "copies a\n"
         "file or a folder into its /workspace, get copies a file from there.");
    options_print(rows, count);
    exits_print(EXITS_SESSION);
    puts("\n  s=$(cordon session new --profile standard)\n"
         "  echo 'x = 6 * 7' | cordon session run $s\n"
         "  echo 'x' | cordon session run --json $s");
}

static int parse(int argc, char **argv, struct session_options *o, struct err *err)
{
    struct jail_options *p = &o->context.jail;
    const struct option_row rows[] = {
        {"", OPTION_GROUP, NULL, NULL, "For new:"},
        {"lang", OPTION_STRING, &o->make.lang, "LANG", languages_workers_help()},
        {"profile", OPTION_STRING, &o->make.profile, "NAME",
         "the rules: strict, locked, standard, open (strict)"},
        {"packages", OPTION_FLAG, &o->make.packages, NULL,
         "with numpy, pandas and matplotlib loaded ahead"},
        {"workspace", OPTION_STRING, &o->make.workspace, "W",
         "its /workspace is this workspace's; what a call changes is committed"},
        {"memory", OPTION_BYTES, &p->limits.memory, "SIZE", "memory (512m)"},
        {"descriptors", OPTION_COUNT, &p->limits.descriptors, "N", "open files at once (64)"},
        {"disk", OPTION_BYTES, &p->limits.disk, "SIZE", "bytes held in /workspace and /tmp (100m)"},
        {"inodes", OPTION_COUNT, &p->limits.inodes, "N", "files and folders there (10000)"},
        SESSION_OPTIONS_ROWS_SHARES(p),
        {"in", OPTION_LIST, &p->in, "PATH[:NAME]",
         "copy a file, or what a folder holds, into its /workspace"},
        {"idle", OPTION_MILLIS, &o->make.idle_ms, "TIME",
         "without a call for so long it ends (30m)"},
        {"", OPTION_GROUP, NULL, NULL, "For run:"},
        {"code", OPTION_STRING, &o->code, "CODE", "the program itself, instead of a FILE"},
        {"timeout", OPTION_MILLIS, &p->limits.wall_ms, "TIME", "wall clock of the call (120s)"},
        {"cpu", OPTION_MILLIS, &p->limits.cpu_ms, "TIME", "CPU time of the call (120s)"},
        {"output", OPTION_BYTES, &p->limits.output, "SIZE",
         "characters of output kept, each stream (100000)"},
        {"stdin", OPTION_STRING, &p->input, "FILE", "its input during the call (default: nothing)"},
        TOOL_OPTIONS(&o->tools),
        {"events", OPTION_FLAG, &o->context.events, NULL,
         "print JSON lines while it runs; the last one is the result"},
        {"images", OPTION_FLAG, &o->context.images, NULL,
         "with --events: each picture that it leaves, scaled, as an event"},
        {"", OPTION_GROUP, NULL, NULL, "For get:"},
        {"replace", OPTION_FLAG, &p->replace, NULL, "overwrite a file that is there"},
        {"", OPTION_GROUP, NULL, NULL, "For both:"},
        JAIL_OPTIONS_ROW_VENV(p),
        {"env", OPTION_LIST, &p->env, "K=V",
         "set an environment variable, from now on (repeatable)"},
        {"role", OPTION_STRING, &p->role, "ROLE", "explore, analyze or execute (execute)"},
        {"policy", OPTION_STRING, &p->policy, "FILE", "a policy on top of the machine's"},
        {"no-wait", OPTION_FLAG, &p->no_wait, NULL,
         "refuse at once instead of waiting for a slot or a person"},
        {"escape", OPTION_STRING, &p->escape, "HOW",
         "text in --json: none, or html for who puts it into a page (none)"},
        {"json", OPTION_FLAG, &o->context.json, NULL, "print one JSON object"},
        {"help", OPTION_FLAG, &o->help, NULL, "this text"},
        SESSION_OPTIONS_NOT_HERE,
    };
    const size_t count = sizeof rows / sizeof *rows;
    int r = options_parse_mixed(argc, argv, rows, count, &o->words, err);
    o->context.json = o->context.json || o->context.events;
    if (o->context.events)
        result_as_events(true);
    if (r < 0 || !o->help)
        return r;
    help(rows, count);
    return 0;
}

static const char *word(const struct session_options *o, size_t i)
{
    return i < o->words.count ? o->words.items[i] : NULL;
}

/* ---- new, run, close ---- */

static int on_new(struct session_options *o)
{
    char name[POOL_NAME + 1];
    o->make.name = word(o, 1);
    o->make.role = o->context.jail.role;
    int r = session_make(&o->context, &o->make, name);
    if (r == EXIT_DONE && o->context.json)
        printf("{\"session\": \"%s\"}\n", name);
    else if (r == EXIT_DONE)
        puts(name);
    return r;
}

/* Without the host's folders: it is shown to the program. */
static const char *base_name(const char *file)
{
    const char *slash = strrchr(file, '/');
    return slash ? slash + 1 : file;
}

/* The program of -c, or of FILE. */
static int read_program(const struct session_options *o, const char *file, struct text *t,
                        bool *ret_raw, struct err *err)
{
    if (!o->code) {
        int r = source_read(file, LIMIT_SOURCE, o->context.spec.limits.wall_ms, t, err);
        return r < 0 ? r : languages_intake(NULL, file, ret_raw, err);
    }
    t->len = strlen(o->code);
    if (t->len > LIMIT_SOURCE)
        return ERR_LIMIT;
    t->data = strdup(o->code);
    return t->data ? 0 : err_set(err, ERR_MEMORY, "no memory");
}

static int on_run(struct session_options *o)
{
    struct err err = ERR_INIT;
    struct text source = {0};
    FD_AUTO in = -1;
    const char *file = word(o, 2) ? word(o, 2) : "-";
    bool raw = false;
    int r = jail_options_open_input(o->context.jail.input, &in, &err);
    if (r == 0)
        r = read_program(o, file, &source, &raw, &err);
    if (r < 0 && r != ERR_LIMIT)
        return result_usage(WHO, &err);
    struct session_call c = {.session = word(o, 1),
                             .name = o->code                  ? "<string>"
                                     : strcmp(file, "-") == 0 ? "<session>"
                                                              : base_name(file),
                             .source = source.data ? source.data : "",
                             .len = r == ERR_LIMIT ? LIMIT_SOURCE + 1 : source.len,
                             .raw = raw,
                             .role = o->context.jail.role,
                             .last = true,
                             .input = in};
    if (r == ERR_LIMIT) /* more than any profile takes: the flow says so, without looking at it */
        c.source = NULL;
    r = session_call(&o->context, &c);
    free(source.data);
    return r;
}

static int on_close(struct session_options *o)
{
    struct pool_answer a;
    struct err err = ERR_INIT;
    int r = pool_client_end(&o->context.holder, word(o, 1), &a, &err);
    if (r < 0)
        return result_usage(WHO, &err);
    if (a.declined)
        return session_declined(&o->context, word(o, 1), &a);
    if (session_note(&o->context, "closed", word(o, 1), NULL, NULL, &err) == 0)
        return EXIT_DONE;
    result_complain(WHO, err.msg);
    return EXIT_FAILED;
}

static int on_interrupt(struct session_options *o)
{
    struct pool_answer a;
    struct err err = ERR_INIT;
    int r = pool_client_interrupt(&o->context.holder, word(o, 1), &a, &err);
    if (r < 0)
        return result_usage(WHO, &err);
    return a.declined ? session_declined(&o->context, word(o, 1), &a) : EXIT_DONE;
}

static int on_put(struct session_options *o)
{
    return session_files_in(&o->context, word(o, 1), word(o, 2));
}

static int on_get(struct session_options *o)
{
    return session_files_out(&o->context, word(o, 1), word(o, 2), word(o, 3),
                             o->context.jail.replace);
}

static int on_files(struct session_options *o)
{
    return session_request(&o->context, word(o, 1), word(o, 2));
}

static int on_fork(struct session_options *o)
{
    return session_fork(&o->context, word(o, 1), word(o, 2) ? word(o, 2) : "");
}

/* ---- export ---- */

static int copy_out(int fd)
{
    char chunk[65536];
    for (ssize_t n; (n = read(fd, chunk, sizeof chunk)) != 0;) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 || fwrite(chunk, 1, (size_t)n, stdout) != (size_t)n)
            return EXIT_FAILED;
    }
    return fflush(stdout) == 0 ? EXIT_DONE : EXIT_FAILED;
}

static int on_export(struct session_options *o)
{
    struct pool_answer a;
    struct err err = ERR_INIT;
    FD_AUTO fd = -1;
    int r = pool_client_export(&o->context.holder, word(o, 1), &fd, &a, &err);
    if (r < 0)
        return result_usage(WHO, &err);
    if (a.declined)
        return session_declined(&o->context, word(o, 1), &a);
    printf("{\"session\": \"%s\", \"records\": %llu, \"dropped\": %llu}\n", word(o, 1),
           (unsigned long long)a.reply.log.records, (unsigned long long)a.reply.log.dropped);
    return copy_out(fd);
}

/* ---- list ---- */

/* What the process holds, its share of what it shares with its template counted in part; kB to bytes. */
static uint64_t memory_of(uint64_t pid)
{
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/%llu/smaps_rollup", (unsigned long long)pid);
    const char *at =
        pid && fd_read_file(AT_FDCWD, path, text, sizeof text) > 0 ? strstr(text, "\nPss:") : NULL;
    return at ? strtoull(at + 5, NULL, 10) * KIB : 0;
}

static void put_row(struct jsonw *j, const struct pool_reply *p, uint64_t memory)
{
    char workspace[WORKSPACE_FULL_MAX + 1];
    session_workspace_name(p->note, workspace);
    jsonw_open(j, NULL, '{');
    jsonw_string(j, "session", p->name);
    jsonw_string(j, "language", p->language);
    jsonw_string(j, "profile", p->profile);
    jsonw_string(j, "role", p->role[0] ? p->role : NULL);
    jsonw_string(j, "state", p->state);
    jsonw_string(j, "reason", p->reason[0] ? p->reason : NULL);
    jsonw_string(j, "workspace", workspace[0] ? workspace : NULL);
    jsonw_int(j, "calls", (int64_t)p->session.calls);
    jsonw_int(j, "host_calls", (int64_t)p->session.host_calls);
    jsonw_int(j, "generation", (int64_t)p->session.generation);
    jsonw_decimal(j, "age_s", (double)p->session.age_ms / 1e3);
    jsonw_decimal(j, "idle_s", (double)p->session.idle_ms / 1e3);
    jsonw_decimal(j, "idle_limit_s", (double)p->session.idle_end_ms / 1e3);
    jsonw_decimal(j, "wall_ms", (double)p->session.wall_us / 1e3);
    jsonw_decimal(j, "cpu_ms", (double)p->session.cpu_us / 1e3);
    jsonw_decimal(j, "memory_mb", (double)memory / MIB);
    jsonw_decimal(j, "memory_limit_mb", (double)p->session.memory / MIB);
    jsonw_int(j, "files_bytes", (int64_t)p->session.files);
    jsonw_decimal(j, "idle_memory_mb", (double)p->session.held / MIB);
    jsonw_int(j, "records", (int64_t)p->session.records);
    jsonw_int(j, "records_dropped", (int64_t)p->session.dropped);
    jsonw_close(j, '}');
}

static void print_row(const struct pool_reply *p, uint64_t memory)
{
    char workspace[WORKSPACE_FULL_MAX + 1];
    session_workspace_name(p->note, workspace);
    printf("%-20s %-7s %-9s %-5s %4llu call%s %8.1f MB  %6llu KB in files  idle %llu s%s%s%s%s\n",
           p->name, p->language, p->profile, p->state, (unsigned long long)p->session.calls,
           p->session.calls == 1 ? "  " : "s ", (double)memory / MIB,
           (unsigned long long)(p->session.files / KIB),
           (unsigned long long)(p->session.idle_ms / 1000), workspace[0] ? "  in " : "", workspace,
           p->reason[0] ? "  " : "", p->reason);
}

static void print_held(uint64_t held, uint64_t budget)
{
    char all[UNITS_TEXT], most[UNITS_TEXT];
    units_bytes_text(held, all);
    units_bytes_text(budget, most);
    printf("idle sessions hold %s together; a call that could bring them over %s "
           "(sessions.memory_percent) is refused\n",
           all, most);
}

static int on_list(struct session_options *o)
{
    struct pool_answer a;
    struct err err = ERR_INIT;
    struct buf out;
    buf_init(&out, MIB);
    struct jsonw j = {.out = &out};
    uint64_t held = 0;
    size_t count = 0;
    int r = 0;
    jsonw_open(&j, NULL, '[');
    for (uint64_t serial = 0; o->context.holder.sock >= 0; serial = a.reply.session.serial) {
        r = pool_client_next(&o->context.holder, serial, &a, &err);
        if (r < 0 || a.reply.type != WIRE_SESSION_IS)
            break;
        uint64_t memory = memory_of(a.reply.session.pid);
        held += a.reply.session.held;
        count++;
        if (o->context.json)
            put_row(&j, &a.reply, memory);
        else
            print_row(&a.reply, memory);
    }
    jsonw_close(&j, ']');
    if (r == 0 && o->context.json)
        puts(out.data);
    else if (r == 0 && !count)
        result_note(WHO, "no sessions");
    else if (r == 0 && held)
        print_held(held, o->context.holder.budget);
    buf_done(&out);
    return r < 0 ? result_usage(WHO, &err) : EXIT_DONE;
}

/* ---- the verbs ---- */

static const struct {
    const char *name;
    int (*run)(struct session_options *o);
    size_t least, most; /* words, the verb too */
    bool start;         /* a holder is started where there is none */
} verbs[] = {
    {"new", on_new, 1, 2, true},        {"list", on_list, 1, 1, false},
    {"run", on_run, 2, 3, false},       {"fork", on_fork, 2, 3, false},
    {"export", on_export, 2, 2, false}, {"interrupt", on_interrupt, 2, 2, false},
    {"close", on_close, 2, 2, false},   {"put", on_put, 3, 3, false},
    {"get", on_get, 3, 4, false},       {"files", on_files, 3, 3, false},
};

static int no_verb(const struct session_options *o, struct err *err)
{
    enum { COUNT = sizeof verbs / sizeof *verbs };
    const char *names[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        names[i] = verbs[i].name;
    return options_no_verb(word(o, 0), names, COUNT, err);
}

/* Which of the verbs the words ask for, and whether they are as many as it takes. */
static int find_verb(const struct session_options *o, size_t *ret_verb, struct err *err)
{
    const size_t count = sizeof verbs / sizeof *verbs, words = o->words.count;
    size_t verb = 0;
    while (verb < count && (!words || strcmp(o->words.items[0], verbs[verb].name) != 0))
        verb++;
    if (verb == count)
        return no_verb(o, err);
    if (words < verbs[verb].least || words > verbs[verb].most)
        return err_set(err, ERR_USAGE, "%s: %s; see --help", verbs[verb].name,
                       words < verbs[verb].least ? "a name is missing" : "too many arguments");
    if (o->context.events && verbs[verb].run != on_run)
        return err_set(err, ERR_USAGE, "--events is for run; see --help");
    if (o->make.workspace && verbs[verb].run != on_new)
        return err_set(err, ERR_USAGE, "--workspace is for new: a session keeps its workspace");
    const struct jail_options *p = &o->context.jail;
    if ((p->ro.count || p->rw.count) && verbs[verb].run != on_new)
        return err_set(err, ERR_USAGE, "--%s is for new: a session keeps the folders that it sees",
                       p->ro.count ? "ro" : "rw");
    if (o->code && (verbs[verb].run != on_run || words > 2))
        return err_set(err, ERR_USAGE, "--code is for run, instead of a FILE; see --help");
    *ret_verb = verb;
    return 0;
}

int cmd_session(int argc, char **argv)
{
    struct session_options *o = calloc(1, sizeof *o);
    struct err err = ERR_INIT;
    size_t verb = 0;
    if (!o)
        return EXIT_FAILED;
    session_context_init(&o->context, WHO);
    o->make.idle_ms = UINT64_MAX;
    int r = parse(argc, argv, o, &err);
    if (r == 0 && !o->help)
        r = find_verb(o, &verb, &err);
    if (r == 0 && !o->help) {
        r = session_context_open(&o->context, &o->tools, verbs[verb].start, &err);
        if (r == 0)
            r = verbs[verb].run(o);
        else if (r != ERR_USAGE)
            r = result_refused(WHO, o->context.json, &err);
    }
    if (r < 0)
        r = result_usage(WHO, &err);
    session_context_close(&o->context);
    free(o);
    return r;
}
