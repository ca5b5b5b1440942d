/* SPDX-License-Identifier: Apache-2.0 */
/* The subcommands of `cordon`: one file each, one function each.
 *
 * Takes:   argv, with argv[0] the subcommand's own name.
 * Gives:   the exit status: 0 done, 1 the program failed, 2 usage, 3 blocked or denied, 4 a limit,
 *          5 the jail could not be built.
 * Never:   prints an error in more than one line.
 * Runs in: `cordon`.
 */
#ifndef PROG_CORDON_COMMANDS_H
#define PROG_CORDON_COMMANDS_H

enum {
    EXIT_DONE = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_BLOCKED = 3,
    EXIT_LIMIT = 4,
    EXIT_JAIL = 5,
    EXIT_BUSY = 6 /* a session that is in another call */
};

int cmd_exec(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_eval(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_audit(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_policy(int argc, char **argv);
int cmd_approve(int argc, char **argv);
int cmd_stop(int argc, char **argv);
int cmd_resume(int argc, char **argv);
int cmd_escalate(int argc, char **argv);
int cmd_pool(int argc, char **argv);
int cmd_repl(int argc, char **argv);
int cmd_session(int argc, char **argv);

#endif
