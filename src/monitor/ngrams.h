/* SPDX-License-Identifier: Apache-2.0 */
/* The share of n-grams in the last tokens that are repeated there.
 *
 * Takes:   symbols, one by one.
 * Gives:   the share of the n-grams of the last MONITOR_WINDOW symbols that are not their own first occurrence there.
 * Never:   takes two different n-grams for one.
 * Runs in: the caller.
 */
#ifndef MONITOR_NGRAMS_H
#define MONITOR_NGRAMS_H

#include <stdint.h>

#define MONITOR_WINDOW    256
#define MONITOR_NGRAM_MAX 8

struct ngrams;
struct ngrams *ngrams_new(unsigned size, uint64_t key);
void ngrams_free(struct ngrams *g);
double ngrams_add(struct ngrams *g, uint64_t symbol);

#endif
