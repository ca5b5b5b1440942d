/* SPDX-License-Identifier: Apache-2.0 */
/* What the stages of the cleaning share: the compiled rules, and how a stage hands on to the next.
 *
 * Takes:   bytes of one stage.
 * Gives:   bytes to the next: known.c -> patterns.c -> the cut of clean.c.
 * Never:   is included from outside this room.
 * Runs in: the supervisor.
 */
#ifndef OUTPUT_RULES_H
#define OUTPUT_RULES_H

#include "output/clean.h"

/* A node of the automaton over all known strings (Aho and Corasick), children as a list. */
struct output_node {
    uint32_t child, sibling, fail;
    uint32_t dict;   /* nearest node on the way of `fail` at which a string ends; 0: none */
    uint32_t string; /* the string that ends here, counted from 1 */
    uint32_t secret; /* some secret that begins like this, counted from 1 */
    uint16_t depth;
    unsigned char byte;
};

struct output_string {
    uint32_t len, label, label_len; /* label: where it begins in `labels` */
    bool secret;
};

struct output_rules {
    unsigned what;
    uint32_t root[256]; /* the root's children by their byte */
    struct output_node *nodes;
    uint32_t nnodes; /* 0: no string is known; nodes[0] is the root */
    size_t node_cap;
    struct output_string *strings;
    size_t nstrings;
    struct buf labels;
};

ERR_MUST_USE int output_known_build(struct output_rules *r, const struct output_known *known,
                                    size_t count, struct err *err);
void output_known_free(struct output_rules *r);

/* Each looks at the bytes, holds back what more bytes could change, and passes the rest on. END: none
 * will come. */
void output_known_feed(struct output_clean *c, const unsigned char *data, size_t len, bool end);
void output_pattern_feed(struct output_clean *c, const unsigned char *data, size_t len, bool end);
void output_keep(struct output_clean *c, const void *data, size_t len); /* the cut */

/* Takes bytes into HELD, or gives the stream up: then nothing more of it is shown. */
bool output_hold(struct output_clean *c, struct buf *held, const void *data, size_t len);

#endif
