/* SPDX-License-Identifier: Apache-2.0 */
/* The subcommands of `cordon`: one file each, one function each.
 *
 * Takes:   argv, with argv[0] the subcommand's own name.
 * Gives:   the exit status, by the table of exits.c.
 * Never:   prints an error in more than one line.
 * Runs in: `cordon`.
 */
#ifndef PROG_CORDON_COMMANDS_H
#define PROG_CORDON_COMMANDS_H

#include "exits.h"

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
int cmd_monitor(int argc, char **argv);
int cmd_escalate(int argc, char **argv);
int cmd_proxy(int argc, char **argv);
int cmd_pool(int argc, char **argv);
int cmd_repl(int argc, char **argv);
int cmd_serve(int argc, char **argv);
int cmd_session(int argc, char **argv);
int cmd_workspace(int argc, char **argv);

#endif
