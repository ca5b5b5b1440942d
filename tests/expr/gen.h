/* SPDX-License-Identifier: Apache-2.0 */
/* Random conditions and contexts for tests that compare answers.
 *
 * Takes:   a seed.
 * Gives:   source text that covers every node of the language (and some that it refuses), contexts.
 * Never:   the same stream for two seeds, another stream for the same one.
 * Runs in: tests only.
 */
#ifndef TESTS_EXPR_GEN_H
#define TESTS_EXPR_GEN_H

#include <stddef.h>
#include <stdint.h>

struct gen {
    uint64_t state;
    char *out;
    size_t len, max;
    int typed; /* only keys with one declared kind: fast code */
    int size;  /* how deep programs may nest */
};

extern const char gen_schema[]; /* JSON */

void gen_seed(struct gen *g, uint64_t seed);
uint64_t gen_random(struct gen *g);
uint32_t gen_below(struct gen *g, uint32_t n);

/* Both write to BUF (NUL-terminated) and return the length. */
size_t gen_program(struct gen *g, char *buf, size_t size);
size_t gen_context(struct gen *g, char *buf, size_t size);

#endif
