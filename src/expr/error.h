/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of the language: class, CPython's words, a place, a hint.
 *
 * Takes:   a status, a format, a place in the source.
 * Gives:   a filled struct cordon_error; text that is safe on a terminal.
 * Never:   allocates; cuts a UTF-8 sequence in two.
 * Runs in: `cordon`, cordon-tool, and every program that links libcordon.
 */
#ifndef EXPR_ERROR_H
#define EXPR_ERROR_H

#include "cordon.h"

/* Text under construction in a caller's buffer, counted like snprintf: len may pass size. */
struct expr_text {
    char *out;
    size_t size, len;
};
void expr_text_add(struct expr_text *t, const char *s, size_t len);
void expr_text_str(struct expr_text *t, const char *s);
void expr_text_repr(struct expr_text *t, const char *s, size_t len);  /* as Python's repr() */
void expr_text_quote(struct expr_text *t, const char *s, size_t len); /* as JSON */
size_t expr_text_end(struct expr_text *t); /* terminates, clipping whole characters; returns len */
/* The most of LEN bytes, at most MAX, that does not end inside a character. */
size_t expr_text_clip(const char *s, size_t len, size_t max);
void expr_text_trim(char *s); /* takes away half a character that a cut left at the end */

/* Where characters that repr() shows begin and end, by turns: printable.py. */
extern const uint32_t expr_printable_edges[];
extern const size_t expr_printable_count;

/* ERR may be NULL. */
void expr_fail_with(struct cordon_error *err, enum cordon_status status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static inline int expr_status(enum cordon_status status)
{
    return (int)status;
}
/* Its value is STATUS, where it is used: the analyzer sees that a failure is not 0, so that a caller
 * who was told of none has his result. */
#define expr_fail(err, status, ...)                                                                \
    (expr_fail_with((err), (status), __VA_ARGS__), expr_status(status))
/* Gives ERR its place; line and column are counted in SOURCE. */
void expr_place(struct cordon_error *err, const char *source, size_t len, size_t offset,
                size_t end);

#endif
