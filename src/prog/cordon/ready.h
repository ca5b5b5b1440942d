/* SPDX-License-Identifier: Apache-2.0 */
/* A runner of cordond: this program, started ahead, that waits for its words and its standard input.
 *
 * Takes:   one message of cordond, which is its parent: words, and a file that becomes standard input.
 * Gives:   the words as a command line; all else is as if it had been started with them.
 * Never:   keeps anything of a request for another: it has one, and ends with it.
 * Runs in: `cordon`, before its command.
 */
#ifndef PROG_CORDON_READY_H
#define PROG_CORDON_READY_H

#include <stdbool.h>

#define READY_WORD "--from-cordond" /* src/serve/runner.c says it */

/* Waits. False: there will be no request; the program is to end. */
bool ready_wait(int *argc, char ***argv);

#endif
