/* SPDX-License-Identifier: Apache-2.0 */
/* The way into and out of a program without a C library.
 *
 * Takes:   what the kernel left on the stack.
 * Gives:   a call of main, and its result as the exit status.
 * Never:   allocates; runs anything before main or after it.
 * Runs in: cordon-nest.
 */
#ifndef PROG_NEST_START_H
#define PROG_NEST_START_H

int main(int argc, char **argv);
_Noreturn void start_exit(int status);

#endif
