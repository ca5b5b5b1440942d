/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreter: libruby, started without gems, with nothing of the caller's environment.
 *
 * Takes:   the process behind all its locks; in a template, the one that loads.
 * Gives:   a started Ruby with one thread; libraries by name; the same one in a forked process; its end.
 * Never:   reads RUBYOPT, RUBYLIB, a folder of gems or the caller's locale.
 * Runs in: cordon-ruby, in the jail: template and child.
 */
#ifndef WORKER_RUBY_INTERP_H
#define WORKER_RUBY_INTERP_H

#include "worker/frame/language.h"

/* Once; a second call does nothing. */
ERR_MUST_USE int rb_interp_start(struct err *err);

/* `require NAME`. What it raises is left to the program, which asks for the library again. */
void rb_interp_load(const char *name);

/* In a template, last of all: garbage is gone, what is left is old. What the process itself has, and no fork will have, is
 * noted. */
ERR_MUST_USE int rb_interp_settle(struct err *err);
/* In a forked process, before its first guest byte: descriptors and signal handlers of its own, Ruby's own work after a
 * fork, fresh random numbers. */
void rb_interp_after_fork(void);

/* Runs what Ruby runs at the end of a program: exit blocks, other threads' end, streams. Nothing of Ruby may be used
 * afterwards. */
void rb_interp_finish(void);
void rb_interp_flush(void); /* its streams alone */

/* Ruby's own handler of SIGINT; an interrupt that it has noted and not raised is forgotten. */
int rb_interp_set_interrupt(void);
void rb_interp_drop_interrupt(void);

/* What its reader of descriptor 0 holds is read away. */
void rb_interp_empty_input(void);

/* Around a branch of a session: the descriptors by which Ruby is woken are not shared. */
void rb_interp_before_branch(void);

#endif
