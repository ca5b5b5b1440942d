/* SPDX-License-Identifier: Apache-2.0 */
/* What can be said of a Python source as text, before and beside its tree. Pure: no Python in it.
 *
 * Takes:   strict UTF-8.
 * Gives:   places and pieces of it.
 * Never:   allocates; reads past the length it is told.
 * Runs in: cordon-python; its tests.
 */
#ifndef WORKER_PYTHON_JUDGE_TEXT_H
#define WORKER_PYTHON_JUDGE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text_place {
    uint32_t line, column; /* from 1; columns in characters */
};

struct text_piece {
    const char *at;
    size_t len;
};

/* Where byte OFFSET lies. Lines end as CPython's do: LF, CR LF, and CR alone. */
struct text_place py_text_place(const char *text, size_t len, size_t offset);

/* The same for the lines and byte columns that the tree's nodes have. It remembers where it was: asked in
 * the order of the source, all questions together go through the text once. */
struct text_cursor {
    const char *text;
    size_t len;
    uint32_t line;              /* 0 at first */
    size_t start;               /* where that line begins */
    uint32_t bytes, characters; /* how far into it, both ways */
};
/* COLUMN in bytes from 0. *ret_offset: the byte itself, cut to the end of the text; may be NULL. */
struct text_place py_text_node_place(struct text_cursor *c, uint32_t line, uint32_t column,
                                     size_t *ret_offset);

/* The first carriage return without a line feed behind it; LEN if there is none. */
size_t py_text_bare_cr(const char *text, size_t len);

/* PEP 263: an encoding declared in the first two lines that is not UTF-8. */
bool py_text_cookie(const char *text, size_t len, struct text_piece *ret_name);

/* Goes through the replacement fields of a format string: each call gives the next attribute or item
 * that a field reads ('{0.a[b]}': a, then b), and the whole field up to there. Doubled braces count as
 * fields too: what one format() leaves behind, the next one reads. */
struct text_fields {
    const char *at, *end;
    const char *field; /* of the field that is being read, or NULL */
};
enum text_field { TEXT_FIELD_NONE, TEXT_FIELD_ATTRIBUTE, TEXT_FIELD_ITEM };
enum text_field py_text_next_field(struct text_fields *f, struct text_piece *ret_name,
                                   struct text_piece *ret_field);

/* The next run of identifier characters. */
bool py_text_next_word(struct text_piece *rest, struct text_piece *ret_word);

#endif
