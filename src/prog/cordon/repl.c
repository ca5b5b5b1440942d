/* SPDX-License-Identifier: Apache-2.0 */
/* `cordon repl`: a session of its own, or one that is there, block by block. Whether a block is whole is for the
 * session's own parser to say; a block that is, is a call like any other. At a terminal a line editor reads it
 * (prompt.c); from a pipe, and on terminals that cannot be edited on, it is lines.
 *
 * Waits: poll in more; a person to type; none (a person sits there: a signal ends it); the session's idle
 *          time ends it
 *        read in *; nobody: poll said that it is there, or it is non-blocking; at once; comes again */
#include "session.h"

#include "base/limits.h"
#include "commands.h"
#include "images.h"
#include "languages.h"
#include "prompt.h"
#include "result.h"
#include "sys/fd.h"
#include "sys/state.h"
#include "writer.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define WHO "cordon repl"

struct repl_options {
    struct session_context context;
    struct session_new make;
    struct tool_options tools;
    struct option_list words;
    const char *session, *images;
    enum images pictures;
    bool help, no_history;
};

/* Whether the options agree with each other. */
static int agrees(struct repl_options *o, struct err *err)
{
    if (o->words.count)
        return err_set(err, ERR_USAGE, "cordon repl takes no arguments but options; see --help");
    if (o->session && o->context.jail.in.count)
        return err_set(err, ERR_USAGE,
                       "--in is for a new session; `cordon session put %.40s PATH` copies into one "
                       "that is there",
                       o->session);
    const struct jail_options *p = &o->context.jail;
    if (o->session && (p->ro.count || p->rw.count))
        return err_set(err, ERR_USAGE,
                       "--%s is for a new session: the one that --session names keeps the folders "
                       "that it sees",
                       p->ro.count ? "ro" : "rw");
    if (o->make.workspace && o->session)
        return err_set(
            err, ERR_USAGE,
            "--workspace is for a new session: the one that --session names keeps its own");
    const struct language *language;
    if (o->make.lang && o->session)
        return err_set(err, ERR_USAGE,
                       "--lang is for a new session: the one that --session names keeps its own");
    if (languages_worker(o->make.lang, &language, err) < 0)
        return ERR_USAGE;
    return images_choose(o->images, &o->pictures, err);
}

static int parse(int argc, char **argv, struct repl_options *o, struct err *err)
{
    struct jail_options *p = &o->context.jail;
    const struct option_row rows[] = {
        {"lang", OPTION_STRING, &o->make.lang, "LANG", languages_workers_help()},
        {"profile", OPTION_STRING, &o->make.profile, "NAME",
         "the rules: strict, locked, standard, open (strict)"},
        {"packages", OPTION_FLAG, &o->make.packages, NULL,
         "with numpy, pandas and matplotlib loaded ahead"},
        {"session", OPTION_STRING, &o->session, "NAME", "go on in a session that is there"},
        JAIL_OPTIONS_ROW_VENV(p),
        {"workspace", OPTION_STRING, &o->make.workspace, "W",
         "its /workspace is this workspace's; what a block changes is committed"},
        {"env", OPTION_LIST, &p->env, "K=V", "set an environment variable (repeatable)"},
        SESSION_OPTIONS_ROWS_SHARES(p),
        {"in", OPTION_LIST, &p->in, "PATH[:NAME]",
         "copy a file, or what a folder holds, into its /workspace"},
        {"stdin", OPTION_STRING, &p->input, "FILE", "what the program reads (default: nothing)"},
        TOOL_OPTIONS(&o->tools),
        {"", OPTION_GROUP, NULL, NULL, "Limits:"},
        {"timeout", OPTION_MILLIS, &p->limits.wall_ms, "TIME", "wall clock of a block (120s)"},
        {"cpu", OPTION_MILLIS, &p->limits.cpu_ms, "TIME", "CPU time of a block (120s)"},
        {"memory", OPTION_BYTES, &p->limits.memory, "SIZE", "memory (512m)"},
        {"output", OPTION_BYTES, &p->limits.output, "SIZE",
         "characters of output kept, each stream (100000)"},
        {"", OPTION_GROUP, NULL, NULL, "How:"},
        {"role", OPTION_STRING, &p->role, "ROLE", "explore, analyze or execute (execute)"},
        {"policy", OPTION_STRING, &p->policy, "FILE", "a policy on top of the machine's"},
        {"no-wait", OPTION_FLAG, &p->no_wait, NULL,
         "refuse at once instead of waiting for a slot or a person"},
        {"escape", OPTION_STRING, &p->escape, "HOW",
         "text in --json: none, or html for who puts it into a page (none)"},
        {"images", OPTION_STRING, &o->images, "HOW",
         "show pictures that a block leaves: auto, kitty, iterm, sixel, none (auto)"},
        {"no-history", OPTION_FLAG, &o->no_history, NULL, "keep nothing of what is typed"},
        {"json", OPTION_FLAG, &o->context.json, NULL, "print one JSON object a block"},
        {"help", OPTION_FLAG, &o->help, NULL, "this text"},
        SESSION_OPTIONS_NOT_HERE,
    };
    const size_t count = sizeof rows / sizeof *rows;
    int r = options_parse_mixed(argc, argv, rows, count, &o->words, err);
    if (r == 0 && o->help) {
        puts("usage: cordon repl [OPTIONS]\n\n"
             "Reads a program line by line and runs each block in one session. A block goes on "
             "until\n"
             "the parser says that it is whole; an empty line ends an indented one. It ends with\n"
             "exit(), Ctrl-D or the end of the input, with FINAL(x), or when a limit ends the "
             "session.\n"
             "Ctrl-C interrupts a block, and a second one within 2 s ends the session.");
        options_print(rows, count);
        exits_print(EXITS_SESSION);
        puts("\n  cordon repl --profile standard\n"
             "  printf 'x = 6\\nx * 7\\n' | cordon repl");
        return 0;
    }
    return r == 0 ? agrees(o, err) : r;
}

/* Lines of standard input, read by ourselves: while one is waited for, a signal must be heard, too. */
struct lines {
    struct buf held; /* read, not yet given out */
    size_t at;
    bool ended;
    int why; /* errno of a read that failed; 0: none did */
};

enum line { LINE_READ, LINE_END, LINE_INTERRUPT, LINE_TOO_LONG };

/* What came over STOP: true for SIGINT, which ends what is typed; the others end us. */
static bool only_interrupt(int stop)
{
    struct signalfd_siginfo info;
    bool interrupt = true;
    while (read(stop, &info, sizeof info) == sizeof info)
        interrupt = interrupt && info.ssi_signo == SIGINT;
    return interrupt;
}

static enum line more(struct lines *l, int stop)
{
    char chunk[4096];
    struct pollfd p[2] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = stop, .events = POLLIN}};
    if (poll(p, 2, -1) < 0 && errno != EINTR)
        return LINE_END;
    if (p[1].revents)
        return only_interrupt(stop) ? LINE_INTERRUPT : LINE_END;
    if (!p[0].revents)
        return LINE_READ;
    ssize_t n = read(STDIN_FILENO, chunk, sizeof chunk);
    if (n < 0 && errno != EINTR && errno != EAGAIN) { /* a folder, a terminal that is gone */
        l->why = errno;
        return LINE_END;
    }
    l->ended = n == 0;
    return n > 0 && buf_add(&l->held, chunk, (size_t)n) < 0 ? LINE_TOO_LONG : LINE_READ;
}

/* One more line into TEXT, without its line end. */
static enum line read_line(struct lines *l, struct buf *text, int stop)
{
    const char *end;
    while (!(end = l->held.len > l->at ? memchr(l->held.data + l->at, '\n', l->held.len - l->at)
                                       : NULL) &&
           !l->ended) {
        enum line got = more(l, stop);
        if (got != LINE_READ)
            return got;
    }
    if (!end && l->at == l->held.len)
        return LINE_END;
    size_t len = end ? (size_t)(end - l->held.data) - l->at : l->held.len - l->at;
    bool fits =
        buf_str(text, text->len ? "\n" : "") == 0 && buf_add(text, l->held.data + l->at, len) == 0;
    l->at += len + (end != NULL);
    if (l->at == l->held.len) {
        buf_reset(&l->held);
        l->at = 0;
    }
    return fits ? LINE_READ : LINE_TOO_LONG;
}

static bool blank(const struct buf *text)
{
    return !text->len || strspn(text->data, " \t\r\n\f") == text->len;
}

/* ---- blocks ---- */

struct repl {
    struct repl_options *o;
    struct session_call call;
    int input; /* what --stdin named; -1: none, or the first block has it */
    bool terminal;
    int status;
};

static void look(struct repl *r, const char *text, size_t len)
{
    r->call.source = text;
    r->call.len = len;
    r->call.line = r->call.quiet = true;
    r->call.asks = false;
    r->call.input = -1;
    (void)session_call(&r->o->context, &r->call);
    r->call.line = r->call.quiet = false;
}

static enum prompt_block whole(void *ctx, const char *text, size_t len)
{
    struct repl *r = ctx;
    look(r, text, len);
    return r->call.over ? PROMPT_OVER : r->call.incomplete ? PROMPT_PART : PROMPT_WHOLE;
}

static void offer(void *ctx, const char *name, size_t len)
{
    struct prompt_names *n = ctx;
    if (n->count == PROMPT_NAMES || len >= PROMPT_NAME)
        return;
    memcpy(n->name[n->count], name, len);
    n->name[n->count++][len] = 0;
}

static void names(void *ctx, const char *word, size_t len, struct prompt_names *ret)
{
    struct repl *r = ctx;
    r->call.offer = offer;
    r->call.offer_ctx = ret;
    look(r, word, len);
    r->call.offer = NULL;
    r->call.declined = r->call.declined && r->call.over; /* else Tab has nothing to offer */
}

static void tell_declined(struct repl *r)
{
    r->call.declined = false;
    r->status = session_declined(&r->o->context, r->call.session, &r->call.answer);
}

static bool is_word(const struct buf *text, const char *const *words, size_t count)
{
    const char *at = text->data + strspn(text->data, " \t");
    size_t len = strlen(at);
    while (len && strchr(" \t\r\n", at[len - 1]))
        len--;
    for (size_t i = 0; i < count; i++)
        if (strlen(words[i]) == len && strncmp(at, words[i], len) == 0)
            return true;
    return false;
}

/* As at python3's prompt, where `exit` is a word, too. */
static bool says_goodbye(const struct buf *text)
{
    static const char *const words[] = {"exit", "exit()", "quit", "quit()"};
    return is_word(text, words, sizeof words / sizeof *words);
}

static bool asks_for_help(const struct repl *r, const struct buf *text)
{
    static const char *const words[] = {"help", "help()", "?"};
    static const char said[] =
        "Each block runs in the session's jail, by the rules of its profile; variables and the "
        "files\n"
        "in /workspace stay until you leave. The value of the last one is _.\n\n"
        "  exit(), Ctrl-D   leave            Tab       names, attributes\n"
        "  Ctrl-C           interrupt        Up, Down  earlier blocks, Ctrl-R searches them\n"
        "  Ctrl-C twice     end the session  help(x)   about x (profiles standard and open)\n\n"
        "Installed packages are in the profiles standard and open: cordon repl --profile standard\n"
        "From another terminal `cordon session put %s FILE` brings a file in, and `session get`\n"
        "takes one out.\n";
    if (!r->terminal || !is_word(text, words, sizeof words / sizeof *words))
        return false;
    char line[sizeof said + POOL_NAME];
    int n = snprintf(line, sizeof line, said, r->call.session);
    writer_put(JAIL_STDOUT, line, (size_t)n);
    return true;
}

/* What is typed out of habit, and is no Python: elsewhere both letters begin an expression. */
static bool is_of_ipython(const struct repl *r, const struct buf *text)
{
    if (!r->terminal || !text->len || (text->data[0] != '!' && text->data[0] != '%') ||
        strcmp(r->o->context.language->name, "python") != 0)
        return false;
    result_complain(WHO, "there is no shell here, and no commands of IPython: os.listdir() lists "
                         "the files, help() says what there is");
    return true;
}

static void show_left(void *repl, int files, const struct flow_result *result)
{
    const struct repl *r = repl;
    images_show(r->o->pictures, files, r->call.session, result);
}

static void run_block(struct repl *r, const struct buf *text)
{
    struct err err = ERR_INIT;
    struct session_call *c = &r->call;
    if (c->declined) { /* already when its parser was asked: whether the block is whole nobody knows */
        tell_declined(r);
        return;
    }
    if (session_context_refresh(&r->o->context, &err) < 0) {
        r->status = result_usage(WHO, &err);
        return;
    }
    c->source = text->data;
    c->len = text->len;
    c->input = r->input;
    c->asks = false;
    if (r->input < 0 && r->terminal) {
        c->input = STDIN_FILENO;
        c->asks = true;
    }
    r->status = session_call(&r->o->context, c);
    if (c->declined) {
        c->declined = false; /* and told */
        return;
    }
    r->input = -1; /* the first block has it, and the others go on with what that one leaves */
    c->same_input = !c->asks;
}

/* True: nothing is read any more. */
static bool take_block(struct repl *r, const struct buf *text)
{
    if (says_goodbye(text)) {
        r->status = EXIT_DONE;
        return true;
    }
    if (!asks_for_help(r, text) && !is_of_ipython(r, text))
        run_block(r, text);
    return r->call.over || r->call.is_final || r->call.left;
}

/* ---- a terminal with a line editor ---- */

static void edit(struct repl *r, struct prompt *p)
{
    struct buf text;
    bool over = false;
    buf_init(&text, LIMIT_SOURCE);
    while (!over && writer_wait(r->o->context.stop)) {
        enum prompt_got got = prompt_read(p, &text);
        over = got == PROMPT_END || got == PROMPT_STOP || r->call.over ||
               (got == PROMPT_BLOCK && !blank(&text) && take_block(r, &text));
    }
    buf_done(&text);
}

/* -1: nothing is kept. */
static int history_folder(const struct repl_options *o)
{
    char path[STATE_PATH_MAX];
    struct err err = ERR_INIT;
    int fd = -1;
    if (o->no_history)
        return -1;
    if (state_path(path, sizeof path, &err) < 0 || state_open(path, true, &fd, &err) < 0)
        result_complain(WHO, err.msg);
    return fd;
}

/* False: there is no editor for this terminal. */
static bool served_by_editor(struct repl *r)
{
    struct prompt *p = NULL;
    struct err err = ERR_INIT;
    FD_AUTO history = history_folder(r->o);
    const char *no_colour = getenv("NO_COLOR");
    const struct prompt_start start = {.ctx = r,
                                       .whole = whole,
                                       .names = names,
                                       .stop = r->o->context.stop,
                                       .history = history,
                                       .colour = !no_colour || !*no_colour};
    int e = prompt_new(&start, &p, &err);
    if (e < 0 && e != ERR_MISSING)
        result_complain(WHO, err.msg);
    if (e == 0)
        edit(r, p);
    prompt_free(p);
    return e == 0;
}

/* ---- lines ---- */

static void read_lines(struct repl *r)
{
    struct buf text;
    struct lines lines = {0};
    enum line got = LINE_READ;
    bool over = false;
    buf_init(&text, LIMIT_SOURCE);
    buf_init(&lines.held, LIMIT_SOURCE);
    while (got != LINE_END && !over) {
        if (r->terminal)
            writer_put(JAIL_STDOUT, text.len ? "... " : ">>> ", 4);
        if (!writer_wait(r->o->context.stop)) /* who does not read is not read either */
            break;
        got = read_line(&lines, &text, r->o->context.stop);
        if (got == LINE_TOO_LONG)
            result_complain(WHO, "the block is too long and was dropped; send it in parts");
        if (got == LINE_INTERRUPT && r->terminal)
            writer_put(JAIL_STDOUT, "\n", 1);
        bool done = got == LINE_TOO_LONG || got == LINE_INTERRUPT || blank(&text);
        if (!done) {
            enum prompt_block is = whole(r, text.data, text.len);
            done = is != PROMPT_PART || got == LINE_END;
            over = is == PROMPT_OVER || (done && take_block(r, &text));
        }
        if (done)
            buf_reset(&text);
    }
    if (r->terminal && got == LINE_END)
        writer_put(JAIL_STDOUT, "\n", 1);
    if (lines.why) {
        struct err err = ERR_INIT;
        errno = lines.why;
        (void)err_sys(&err, "standard input");
        r->status = result_usage(WHO, &err);
    }
    buf_done(&text);
    buf_done(&lines.held);
}

static void greet(const struct repl *r)
{
    char text[400];
    const struct jail_limits *l = &r->o->context.spec.limits;
    int n = snprintf(
        text, sizeof text,
        "Cordon " CORDON_VERSION ", %s in profile %s; a block may take %llu s and %llu MB; "
        "no network\n"
        "exit() or Ctrl-D leaves, Ctrl-C interrupts, Tab completes, help() says more\n",
        r->o->context.language->title, r->o->context.profile,
        (unsigned long long)(l->wall_ms / 1000), (unsigned long long)(l->memory / MIB));
    writer_put(JAIL_STDOUT, text, (size_t)n);
}

static int serve(struct repl_options *o, const char *session, int input)
{
    struct repl r = {
        .o = o,
        .call = {.session = session, .name = "<repl>", .role = o->context.jail.role, .typed = true},
        .input = input,
        .terminal = isatty(STDIN_FILENO) && !o->context.json,
        .status = EXIT_DONE};
    o->context.stop = jail_options_stop_fd();
    if (r.terminal) {
        r.call.left_files = show_left;
        r.call.left_ctx = &r;
        greet(&r);
    }
    if (!r.terminal || !served_by_editor(&r))
        read_lines(&r);
    if (r.call.declined)
        tell_declined(&r);
    return r.call.over && r.status == EXIT_DONE ? EXIT_NEVER_RAN : r.status;
}

/* Whether there is such a session, before anything is typed for it. */
static int find_session(struct repl_options *o)
{
    struct session_call c = {.session = o->session,
                             .name = "<repl>",
                             .source = "",
                             .line = true,
                             .quiet = true,
                             .input = -1};
    return session_call(&o->context, &c);
}

static int run(struct repl_options *o)
{
    char name[POOL_NAME + 1] = "";
    struct pool_answer a;
    struct err err = ERR_INIT;
    FD_AUTO in = -1;
    int r = jail_options_open_input(o->context.jail.input, &in, &err);
    if (r < 0)
        return result_usage(WHO, &err);
    o->make.role = o->context.jail.role;
    r = o->session ? find_session(o) : session_make(&o->context, &o->make, name);
    if (r != EXIT_DONE)
        return r;
    r = serve(o, o->session ? o->session : name, in);
    if (!o->session && pool_client_end(&o->context.holder, name, &a, &err) < 0)
        result_complain(WHO, err.msg);
    return r;
}

int cmd_repl(int argc, char **argv)
{
    struct repl_options *o = calloc(1, sizeof *o);
    struct err err = ERR_INIT;
    if (!o)
        return EXIT_FAILED;
    session_context_init(&o->context, WHO);
    o->make.idle_ms = UINT64_MAX;
    int r = parse(argc, argv, o, &err);
    if (r == 0 && !o->help) {
        r = session_context_open(&o->context, &o->tools, true, &err);
        if (r == 0)
            r = run(o);
        else if (r != ERR_USAGE)
            r = result_refused(WHO, o->context.json, &err);
    }
    if (r < 0)
        r = result_usage(WHO, &err);
    session_context_close(&o->context);
    free(o);
    return r;
}
