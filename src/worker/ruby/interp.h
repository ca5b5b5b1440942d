/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreter: libruby, started without gems, with nothing of the caller's environment.
 *
 * Takes:   the process behind all its locks.
 * Gives:   a started Ruby with one thread; libraries by name; its end.
 * Never:   reads RUBYOPT, RUBYLIB, a folder of gems or the caller's locale.
 * Runs in: cordon-ruby, in the jail.
 */
#ifndef WORKER_RUBY_INTERP_H
#define WORKER_RUBY_INTERP_H

#include "worker/frame/language.h"

ERR_MUST_USE int rb_interp_start(const struct worker_start *start, struct err *err);

/* `require NAME`. What it raises is left to the program, which asks for the library again. */
void rb_interp_load(const char *name);

/* Runs what Ruby runs at the end of a program: exit blocks, other threads' end, streams. Nothing of Ruby may be used
 * afterwards. */
void rb_interp_finish(void);

#endif
