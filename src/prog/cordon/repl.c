/* SPDX-License-Identifier: Apache-2.0 */
/* `cordon repl`: a session of its own, or one that is there, line by line. Whether a block is whole is for the
 * session's own parser to say; a block that is, is a call like any other. Lines are read, not edited:
 * rlwrap does that better.
 *
 * Waits: poll in more; a person to type; none (a person sits there: a signal ends it); the session's idle
 *          time ends it
 *        read in *; nobody: poll said that it is there, or it is non-blocking; at once; comes again */
#include "session.h"

#include "base/limits.h"
#include "commands.h"
#include "result.h"
#include "sys/fd.h"
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
    struct option_list tools, words;
    const char *session, *lang;
    bool help;
};

static int parse(int argc, char **argv, struct repl_options *o, struct err *err)
{
    struct jail_options *p = &o->context.jail;
    const struct option_row rows[] = {
        {"lang", OPTION_STRING, &o->lang, "LANG", "python (the only one so far)"},
        {"profile", OPTION_STRING, &o->make.profile, "NAME",
         "the rules: strict, standard, open (strict)"},
        {"packages", OPTION_FLAG, &o->make.packages, NULL,
         "with numpy, pandas and matplotlib loaded ahead"},
        {"session", OPTION_STRING, &o->session, "NAME", "go on in a session that is there"},
        {"env", OPTION_LIST, &p->env, "K=V", "set an environment variable (repeatable)"},
        {"stdin", OPTION_STRING, &p->input, "FILE", "what the program reads (default: nothing)"},
        {"tool", OPTION_LIST, &o->tools, "NAME", "a host function that it may call: echo"},
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
        {"json", OPTION_FLAG, &o->context.json, NULL, "print one JSON object a block"},
        {"help", OPTION_FLAG, &o->help, NULL, "this text"},
    };
    const size_t count = sizeof rows / sizeof *rows;
    int r = options_parse_mixed(argc, argv, rows, count, &o->words, err);
    if (r == 0 && o->help) {
        puts("usage: cordon repl [OPTIONS]\n\n"
             "Reads Python line by line and runs each block in one session. A block goes on until\n"
             "the parser says that it is whole; an empty line ends an indented one. It ends with\n"
             "the input, with FINAL(x), or when a limit ends the session.");
        options_print(rows, count);
        exits_print(EXITS_SESSION);
        puts("\n  cordon repl --profile standard\n"
             "  printf 'x = 6\\nx * 7\\n' | cordon repl");
        return 0;
    }
    if (r == 0 && o->words.count)
        r = err_set(err, ERR_USAGE, "no words are taken; see --help");
    if (r == 0 && o->lang && strcmp(o->lang, "python") != 0)
        r = err_set(err, ERR_USAGE, "--lang: '%.40s' is none of: python", o->lang);
    return r;
}

/* Lines of standard input, read by ourselves: while one is waited for, a signal must be heard, too. */
struct lines {
    struct buf held; /* read, not yet given out */
    size_t at;
    bool ended;
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
    ssize_t n = p[0].revents ? read(STDIN_FILENO, chunk, sizeof chunk) : -1;
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

/* The lines in TEXT, if they are whole, or if there will be no more. True: they are done with. */
static bool run_block(struct repl_options *o, struct session_call *c, const struct buf *text,
                      bool last, int *input, int *ret_status)
{
    c->source = text->data;
    c->len = text->len;
    c->line = c->quiet = true;
    c->input = -1;
    (void)session_call(&o->context, c);
    if (c->over || (c->incomplete && !last))
        return c->over;
    struct err err = ERR_INIT;
    if (session_context_refresh(&o->context, &err) < 0) {
        *ret_status = result_usage(WHO, &err);
        return true;
    }
    c->line = c->quiet = false;
    c->input = *input;
    *ret_status = session_call(&o->context, c);
    *input = -1; /* the first block has it, and the others go on with what that one leaves */
    c->same_input = true;
    return true;
}

static int serve(struct repl_options *o, const char *session, int input)
{
    struct buf text;
    struct lines lines = {0};
    const bool prompts = isatty(STDIN_FILENO) && !o->context.json;
    struct session_call c = {.session = session, .name = "<repl>", .role = o->context.jail.role};
    int status = EXIT_DONE;
    enum line got = LINE_READ;
    buf_init(&text, LIMIT_SOURCE);
    buf_init(&lines.held, LIMIT_SOURCE);
    o->context.stop = jail_options_stop_fd();
    while (got != LINE_END && !c.over && !c.is_final) {
        if (prompts)
            writer_put(JAIL_STDOUT, text.len ? "... " : ">>> ", 4);
        if (!writer_wait(o->context.stop)) /* who does not read is not read either */
            break;
        got = read_line(&lines, &text, o->context.stop);
        if (got == LINE_TOO_LONG)
            result_complain(WHO, "the block is too long, and forgotten");
        if (got == LINE_INTERRUPT && prompts)
            writer_put(JAIL_STDOUT, "\n", 1);
        if (got == LINE_TOO_LONG || got == LINE_INTERRUPT || blank(&text) ||
            run_block(o, &c, &text, got == LINE_END, &input, &status))
            buf_reset(&text);
    }
    if (prompts && got == LINE_END)
        writer_put(JAIL_STDOUT, "\n", 1);
    buf_done(&text);
    buf_done(&lines.held);
    return c.over && status == EXIT_DONE ? EXIT_NEVER_RAN : status;
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
    r = o->session ? EXIT_DONE : session_make(&o->context, &o->make, name);
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
