/* SPDX-License-Identifier: Apache-2.0 */
/* Loops whose copies differ: a fifth of the tokens may be other ones, left out or put in.
 *
 * Takes:   symbols, one by one, and whether each is a word.
 * Gives:   whether the stream is such a loop, about where it began, and about how long its cycle is.
 * Never:   takes records for one (a log, a table, a list of files): they have a slot whose content is always new.
 * Runs in: the caller.
 */
#ifndef MONITOR_DRIFT_H
#define MONITOR_DRIFT_H

#include <stdbool.h>
#include <stdint.h>

struct drift;

struct drift_found {
    bool loop;
    uint64_t tokens; /* how many tokens it has at least */
    uint64_t period; /* the mean distance of what repeats */
};

struct drift *drift_new(uint64_t key);
void drift_free(struct drift *d);
/* EXACT: so many tokens at the end, this one included, are there before in the same order: an exact loop is none of ours. */
struct drift_found drift_add(struct drift *d, uint64_t symbol, bool word, uint64_t exact);
/* So many tokens at the end may be a loop that is not certain yet: pairs come back at one distance. 0: nothing speaks for it. */
uint64_t drift_held(const struct drift *d);

#endif
