/* One table: a subcommand is a row. Nothing else is decided here. */
#include "commands.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} commands[] = {
    {"eval", cmd_eval, "evaluate a condition over a context"},
    {"check", cmd_check, "judge code without running it"},
};

static int usage(FILE *to)
{
    fprintf(to, "usage: cordon COMMAND [OPTION...]\n\n");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].summary);
    return to == stdout ? 0 : 2;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return usage(stderr);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0)
        return usage(stdout);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(commands[i].name, argv[1]) == 0)
            return commands[i].run(argc - 1, argv + 1);
    fprintf(stderr, "cordon: no command '%s'\n", argv[1]);
    return usage(stderr);
}
