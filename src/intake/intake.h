/* SPDX-License-Identifier: Apache-2.0 */
/* Raw model output becomes the source of one program.
 *
 * What a model writes is prose, reasoning and fenced blocks around a program. The rules that find it are in
 * docs/run.md, "From raw text to a program"; they are about lines, fences and tags only, so that the same text always
 * gives the same source. No byte of the program is changed but the indentation that its fence has.
 *
 * Takes:   text as it came, and the language that the caller named.
 * Gives:   the source, its language, and a list of what was left out.
 * Never:   guesses between two languages; recurses; takes more than linear time; reads past the text.
 * Runs in: `cordon`.
 */
#ifndef INTAKE_INTAKE_H
#define INTAKE_INTAKE_H

#include "base/buf.h"

#include <stdbool.h>

enum {
    INTAKE_NOTES = 16,    /* notes that are kept; all are counted */
    INTAKE_BLOCKS = 1024, /* fenced blocks of one text */
    INTAKE_LANGUAGE = 23, /* characters of a language's name */
};

enum intake_kind {
    INTAKE_MARK,      /* a byte order mark at the beginning */
    INTAKE_REASONING, /* <think> and its like */
    INTAKE_PROSE,     /* text outside of the blocks */
    INTAKE_BLOCK,     /* a block that is not part of the program */
    INTAKE_UNCLOSED,  /* a fence without its end: the block goes to the end of the text */
    INTAKE_INVISIBLE, /* bidi and zero-width characters: kept, and told */
};

struct intake_note {
    enum intake_kind kind;
    size_t line, lines; /* where it begins, from 1; how many */
    char detail[INTAKE_LANGUAGE +
                1]; /* of a block: its language; of an invisible character: U+XXXX */
};

struct intake_text {
    const char *data;
    size_t len;
    const char *language; /* NULL: whatever the text says */
    bool plain;           /* it is a source already, as a file is that has a language's ending */
};

struct intake_source {
    struct buf code;
    char language[INTAKE_LANGUAGE + 1]; /* "": nothing says it */
    size_t line;                        /* of the text, where the program begins */
    size_t blocks;          /* that the program was joined from; 0: the text is the program */
    bool not_utf8, has_nul; /* what an error is about, where it is not about the text */
    struct intake_note notes[INTAKE_NOTES];
    size_t note_count;
};

void intake_source_init(struct intake_source *s, size_t max);
void intake_source_done(struct intake_source *s);

/* ERR_FORMAT: there is no program in it, or more than one could be meant; the message says what to do. ERR_LIMIT: it is
 * longer than the ceiling of RET. */
ERR_MUST_USE int intake_read(const struct intake_text *text, struct intake_source *ret,
                             struct err *err);

/* Of a text that is to be one method: what of a method of LANGUAGE it lacks, by its words alone, whatever else it is; NULL:
 * nothing. */
const char *intake_lacks(const char *language, const char *text, size_t len);

const char *intake_kind_name(enum intake_kind kind);

#endif
