/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that a program finds beside its own: FINAL, and one for each tool of the run.
 *
 * Takes:   the tools of worker/frame/host.h; calls by the program.
 * Gives:   private methods of every object, as `puts` is one.
 * Never:   decides anything: whether a call is allowed, and how often, is the supervisor's to say.
 * Runs in: cordon-ruby, called by the program.
 */
#ifndef WORKER_RUBY_HOST_H
#define WORKER_RUBY_HOST_H

void rb_host_load(void); /* what calls need, while files can still be opened */
void rb_host_define(void);
void rb_host_ask(void); /* `gets` asks who sits at the prompt */

#endif
