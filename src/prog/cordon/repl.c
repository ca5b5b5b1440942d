/* `cordon repl`: a session of its own, or one that is there, line by line. Whether a block is whole is for the
 * session's own parser to say; a block that is, is a call like any other. Lines are read, not edited:
 * rlwrap does that better. */
#include "session.h"

#include "base/limits.h"
#include "commands.h"
#include "result.h"
#include "sys/fd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WHO "cordon repl"

struct repl_options {
    struct session_house house;
    struct session_new make;
    struct option_list tools, words;
    const char *session, *lang;
    bool help;
};

static int parse(int argc, char **argv, struct repl_options *o, struct err *err)
{
    struct plan_options *p = &o->house.plan;
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
         "refuse at once where a place or a person must be waited for"},
        {"json", OPTION_FLAG, &o->house.json, NULL, "print one JSON object a block"},
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
        puts("\nExit status: of the last block, or 5 if there is no session.\n\n"
             "  cordon repl --profile standard\n"
             "  printf 'x = 6\\nx * 7\\n' | cordon repl");
        return 0;
    }
    if (r == 0 && o->words.count)
        r = err_set(err, ERR_USAGE, "no words are taken; see --help");
    if (r == 0 && o->lang && strcmp(o->lang, "python") != 0)
        r = err_set(err, ERR_USAGE, "--lang: '%.40s' is none of: python", o->lang);
    return r;
}

/* One more line into TEXT, without its line end. False at the end of the input. */
static bool read_line(struct buf *text, bool prompts)
{
    char *line = NULL;
    size_t room = 0;
    if (prompts) {
        fputs(text->len ? "... " : ">>> ", stdout);
        fflush(stdout);
    }
    ssize_t n = getline(&line, &room, stdin);
    bool got = n > 0;
    if (got && line[n - 1] == '\n')
        n--;
    if (got && (buf_str(text, text->len ? "\n" : "") < 0 || buf_add(text, line, (size_t)n) < 0))
        got = false;
    free(line);
    return got;
}

static bool blank(const struct buf *text)
{
    return !text->len || strspn(text->data, " \t\r\n\f") == text->len;
}

static int serve(struct repl_options *o, const char *session, int input)
{
    struct buf text;
    const bool prompts = isatty(STDIN_FILENO) && !o->house.json;
    struct session_call c = {
        .session = session, .name = "<repl>", .role = o->house.plan.role, .input = -1};
    int status = EXIT_DONE;
    bool more = true;
    buf_init(&text, LIMIT_SOURCE);
    while (more && !c.over && !c.is_final) {
        more = read_line(&text, prompts);
        if (blank(&text)) {
            buf_reset(&text);
            continue;
        }
        c.source = text.data;
        c.len = text.len;
        c.line = c.quiet = true;
        c.input = -1;
        (void)session_call(&o->house, &c);
        if (c.over || (c.incomplete && more))
            continue;
        c.line = c.quiet = false;
        c.input = input;
        status = session_call(&o->house, &c);
        input = -1; /* it was taken by the first block */
        buf_reset(&text);
    }
    if (prompts && !more)
        putchar('\n');
    buf_done(&text);
    return c.over && status == EXIT_DONE ? EXIT_JAIL : status;
}

static int run(struct repl_options *o)
{
    char name[POOL_NAME + 1] = "";
    struct pool_answer a;
    struct err err = ERR_INIT;
    FD_AUTO in = -1;
    int r = plan_open_input(o->house.plan.input, &in, &err);
    if (r < 0)
        return result_usage(WHO, &err);
    o->make.role = o->house.plan.role;
    r = o->session ? EXIT_DONE : session_make(&o->house, &o->make, name);
    if (r != EXIT_DONE)
        return r;
    r = serve(o, o->session ? o->session : name, in);
    if (!o->session && pool_client_end(&o->house.holder, name, &a, &err) < 0)
        result_complain(WHO, err.msg);
    return r;
}

int cmd_repl(int argc, char **argv)
{
    struct repl_options *o = calloc(1, sizeof *o);
    struct err err = ERR_INIT;
    if (!o)
        return EXIT_FAILED;
    session_house_init(&o->house, WHO);
    o->make.idle_ms = UINT64_MAX;
    int r = parse(argc, argv, o, &err);
    if (r == 0 && !o->help) {
        r = session_house_open(&o->house, &o->tools, true, &err);
        if (r == 0)
            r = run(o);
        else if (r != ERR_USAGE) {
            result_complain(WHO, err.msg);
            r = EXIT_JAIL;
        }
    }
    if (r < 0)
        r = result_usage(WHO, &err);
    session_house_close(&o->house);
    free(o);
    return r;
}
