/* SPDX-License-Identifier: Apache-2.0 */
/* The rehearsal of a child: the whole way of one small program, with the other end of the channel played too.
 *
 * Takes:   a fork of a template.
 * Gives:   an interpreter that has done what every run does, and that is then thrown away.
 * Never:   says anything to the template's holder.
 * Runs in: a worker: a fork of the template that nobody is ever given.
 */
#ifndef WORKER_FRAME_REHEARSE_H
#define WORKER_FRAME_REHEARSE_H

#include <stdbool.h>

/* IMPORTS: libraries that were loaded ahead, separated by commas; NULL: none. Or a program that does no more than
 * print. 0: it went as it should. */
int worker_rehearse(const char *imports, bool only_print);

#endif
