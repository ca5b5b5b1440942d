/* The subcommands of `cordon`, one function each.
 *
 * Takes:   argc and argv; argv[0] is the subcommand's name.
 * Gives:   the exit status: 0 done, 1 the program failed, 2 usage, 3 blocked or denied.
 * Never:   calls exit, so that a test can call it.
 * Runs in: cordon.
 */
#ifndef PROG_CORDON_COMMANDS_H
#define PROG_CORDON_COMMANDS_H

int cmd_eval(int argc, char **argv);
int cmd_check(int argc, char **argv);

#endif
