/* SPDX-License-Identifier: Apache-2.0 */
/* The fenced blocks of a text, and the reasoning in front of them.
 *
 * Fences are those of CommonMark, but that an opening may be indented as deep as a list goes: at least three backticks
 * or tildes, closed by at least as many of the same kind. What stands between reasoning tags is no part of the text.
 *
 * Takes:   correct UTF-8.
 * Gives:   blocks in their order, with their info string's first word; notes about what is none.
 * Never:   keeps a pointer beyond the text's life; takes more than linear time.
 * Runs in: `cordon`.
 */
#ifndef INTAKE_BLOCKS_H
#define INTAKE_BLOCKS_H

#include "intake/intake.h"

struct intake_block {
    size_t begin, end; /* of its content, in bytes */
    size_t line;       /* of its first line of content */
    size_t indent;     /* of its fence, which its lines may have too */
    char tag[INTAKE_LANGUAGE + 1];
    bool unclosed;
};

struct intake_blocks {
    const char *text;
    size_t len;
    size_t prose;          /* where the text begins that is not reasoning */
    size_t prose_line;     /* of it */
    bool prose_words;      /* there are words outside of the blocks */
    bool fences;           /* there are fences, if only around nothing */
    bool reasoning_inside; /* reasoning comes after such words */
    bool
        strings_lost; /* a string seemed to go on to the end: fences in strings are no longer looked for */
    struct intake_block block[INTAKE_BLOCKS];
    size_t count;
};

/* ERR_FORMAT: the reasoning never ends. ERR_LIMIT: too many blocks. */
ERR_MUST_USE int intake_blocks_find(struct intake_blocks *b, struct intake_source *notes,
                                    struct err *err);

#endif
