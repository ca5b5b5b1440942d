/* SPDX-License-Identifier: Apache-2.0 */
/* What a program is given beside its source: variables of the environment, and the words of its command line.
 *
 * Takes:   ENVIRON and ARGV of the supervisor.
 * Gives:   a changed environment, the C library's and the language's; the words, for the language to show.
 * Never:   keeps more than the limits say.
 * Runs in: a worker, in the jail, between two programs.
 */
#ifndef WORKER_FRAME_GIVEN_H
#define WORKER_FRAME_GIVEN_H

#include "wire/msg.h"

#include <stddef.h>

/* 0, or -1: the supervisor lost its way. */
int worker_given_variables(struct wire_reader *r);
int worker_given_words(struct wire_reader *r);

size_t worker_given_count(void);
const char *worker_given_word(size_t i);

/* METHOD: the next program defines a method that is called. NULL: it is run as it is. */
int worker_given_method(struct wire_reader *r); /* 0, or -1 */
const char *worker_given_method_name(void);
const char *worker_given_method_json(size_t *ret_len); /* its arguments: an array or an object */

#endif
