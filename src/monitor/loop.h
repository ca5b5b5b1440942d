/* SPDX-License-Identifier: Apache-2.0 */
/* Exact repetition of any period: how long the end of a stream has been there before, and how far back.
 *
 * Takes:   symbols, one by one.
 * Gives:   after each one the longest end that occurred before, and the distance to its first occurrence.
 * Never:   looks back further than LOOP_KEPT symbols for certain; takes more than constant time a symbol, on average.
 * Runs in: the caller.
 */
#ifndef MONITOR_LOOP_H
#define MONITOR_LOOP_H

#include <stdint.h>

#define LOOP_SYMBOLS 16384 /* when there are so many, the older half is forgotten */
#define LOOP_KEPT    (LOOP_SYMBOLS / 2)

struct loop;

struct loop_tail {
    uint64_t length; /* symbols at the end that were there before in the same order */
    uint64_t lag;    /* how many symbols back; 0: length is 0 */
};

struct loop *loop_new(uint64_t key);
void loop_free(struct loop *l);
struct loop_tail loop_add(struct loop *l, uint64_t symbol);

#endif
