/* SPDX-License-Identifier: Apache-2.0 */
/* Three functions that libruby finds here first: which process it is in, the wait for a wake-up, the end of memory.
 *
 * Takes:   calls of libruby.
 * Gives:   in a template and all that is forked from it one number; in a process that only computes, a sleep; an exception that
 *          can be caught.
 * Never:   changes what a worker of one program alone, which may have processes of its own, is told.
 * Runs in: cordon-ruby.
 */
#ifndef WORKER_RUBY_STAND_IN_H
#define WORKER_RUBY_STAND_IN_H

/* Before Ruby is started, in a template. */
void rb_stand_in_fix_pid(void);

#endif
