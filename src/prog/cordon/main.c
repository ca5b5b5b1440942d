/* SPDX-License-Identifier: Apache-2.0 */
/* One table of subcommands, and the one way out: what they wrote has arrived, or the exit status says that it did not. */
#include "commands.h"
#include "options.h"
#include "ready.h"
#include "result.h"
#include "writer.h"

#include "base/near.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} commands[] = {
    {"run", cmd_run, "judge a program, then run it in the jail"},
    {"session", cmd_session, "interpreters that stay: new, list, run, put, get, fork, close"},
    {"repl", cmd_repl, "a session, line by line"},
    {"pool", cmd_pool, "keep locked interpreters ready: start, status, stop"},
    {"workspace", cmd_workspace,
     "files that outlive runs, every state a commit: create, log, restore"},
    {"exec", cmd_exec, "run any program in the jail"},
    {"eval", cmd_eval, "evaluate a condition over a context"},
    {"check", cmd_check, "judge code without running it"},
    {"serve", cmd_serve,
     "the tools of an agent, by MCP: over standard input and output, or a socket"},
    {"proxy", cmd_proxy, "a gateway to models that cuts a generation when it goes bad"},
    {"policy", cmd_policy, "show what is in force, check a policy file"},
    {"approve", cmd_approve, "answer what waits for a person: list, show, yes, no"},
    {"stop", cmd_stop, "end every running execution and refuse new ones"},
    {"resume", cmd_resume, "let executions begin again"},
    {"monitor", cmd_monitor, "whether a generation has gone bad, while it is written"},
    {"escalate", cmd_escalate, "what to do after a failure, and why"},
    {"audit", cmd_audit, "what ran and what was refused; whether the log is as it was written"},
    {"doctor", cmd_doctor, "try every layer on this machine and name what is missing"},
};

static void help(void)
{
    puts("usage: cordon COMMAND [OPTIONS]\n\n"
         "Runs code that a language model wrote, in a jail of kernel layers.\n");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        printf("  %-10s %s\n", commands[i].name, commands[i].summary);
    puts(
        "\n`cordon COMMAND --help` tells the options of one; `man cordon-COMMAND` tells the rest.\n"
        "Try: cordon exec -- python3 -c 'print(6 * 7)'");
}

static bool is(const char *word, const char *letter, const char *option, const char *name)
{
    return strcmp(word, letter) == 0 || strcmp(word, option) == 0 || strcmp(word, name) == 0;
}

/* What other programs have a command for, and who comes from them types first. */
static const char *known_elsewhere(const char *name)
{
    static const struct {
        const char *words, *here;
    } rows[] = {
        {" ps top jobs ", "`cordon stop --list` lists what runs"},
        {" kill ", "`cordon stop` ends every run; SIGTERM to one `cordon` ends its own"},
        {" log logs history events ", "`cordon audit tail` shows what ran"},
        {" ls list sessions ", "`cordon session list` lists the sessions"},
        {" status info health ", "`cordon doctor` tells what this machine enforces"},
        {" shell console sh bash ", "`cordon repl` is a prompt, `cordon exec -- sh` any program"},
        {" python python3 ruby node ipython ", "`cordon run FILE` runs a program, `cordon repl` "
                                               "is a prompt"},
        {" config settings ", "`cordon policy show` prints what is in force"},
        {" lint ", "`cordon check FILE` judges without running"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (options_among(rows[i].words, name))
            return rows[i].here;
    return NULL;
}

static int unknown(const char *name)
{
    enum { COUNT = sizeof commands / sizeof *commands };
    const char *names[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        names[i] = commands[i].name;
    const char *here = known_elsewhere(name), *near = near_word(name, names, COUNT);
    char line[160];
    if (here)
        snprintf(line, sizeof line, "there is no command '%.40s'; %s", name, here);
    else if (near)
        snprintf(line, sizeof line, "there is no command '%.40s'; did you mean '%s'?", name, near);
    else
        snprintf(line, sizeof line, "there is no command '%.40s'; see cordon --help", name);
    result_complain("cordon", line);
    return EXIT_USAGE;
}

static int command(int argc, char **argv)
{
    static char help_option[] = "--help";
    const char *name = argc > 1 ? argv[1] : "";
    if (is(name, "-V", "--version", "version")) {
        puts("cordon " CORDON_VERSION);
        return EXIT_DONE;
    }
    if (is(name, "-h", "--help", "help") && argc < 3) {
        help();
        return EXIT_DONE;
    }
    if (argc < 2) { /* who types `cordon` alone wants to know what there is */
        help();
        return EXIT_USAGE;
    }
    /* `help run` is `run --help` */
    char *about[] = {argv[argc > 2 ? 2 : 0], help_option, NULL};
    const bool asked = strcmp(name, "help") == 0;
    if (asked)
        name = about[0];
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(name, commands[i].name) == 0)
            return asked ? commands[i].run(2, about) : commands[i].run(argc - 1, argv + 1);
    return unknown(name);
}

/* A caller may have closed one: no file of ours goes there, and none of a program that we become or start. */
static void fill_streams(void)
{
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 &&
            (open("/dev/null", O_RDWR | O_CLOEXEC) != fd || fcntl(fd, F_SETFD, 0) < 0))
            break;
}

int main(int argc, char **argv)
{
    fill_streams();
    close_range(3, ~0U,
                CLOSE_RANGE_CLOEXEC); /* no program that we start gets what the caller left open */
    signal(SIGPIPE, SIG_IGN); /* a reader that went away is an error to report, not a death */
    signal(SIGXFSZ, SIG_IGN); /* and so is a file that would grow past `ulimit -f` */
    int r = writer_init() < 0 ? EXIT_FAILED : EXIT_DONE;
    const bool runner = argc == 2 && strcmp(argv[1], READY_WORD) == 0;
    if (r == EXIT_DONE && (!runner || ready_wait(&argc, &argv)))
        r = command(argc, argv);
    r = writer_finish(r);
    ready_done(r);
    return r;
}
