/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of a session: texts that are compiled, judged and run in one binding, so that variables stay.
 *
 * Takes:   a text, and whatever earlier calls left.
 * Gives:   the instructions that it becomes in that binding; its value, once these very instructions were judged again.
 * Never:   runs instructions that it has not walked; asks a method by a name that a guest could have defined anew.
 * Runs in: cordon-ruby, in the jail.
 */
#ifndef WORKER_RUBY_CALL_H
#define WORKER_RUBY_CALL_H

#include "judge.h"

#include <stdbool.h>

/* Before any code of a guest has run: the binding, and the methods that are asked later. */
void rb_call_open(void);

/* For rb_source.compile. What it raises is the compiler's. */
unsigned long rb_call_compile(unsigned long source);
bool rb_call_incomplete(const char *text); /* a block that may go on */

/* Runs what the text of SOURCE becomes, if the profile's rules find nothing in it: then the value. It raises what the text
 * raises; SecurityError, if it became something else than what was judged. */
unsigned long rb_call_run(const struct policy_profile *profile, const struct rb_source *source);
void rb_call_keep(unsigned long value); /* as `_` */
int rb_call_names(const char *word);    /* sends NAMES; 0, or -1 */

#endif
