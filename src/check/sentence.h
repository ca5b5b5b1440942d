/* SPDX-License-Identifier: Apache-2.0 */
/* The sentences of findings.
 *
 * Takes:   what was found and the word it is about.
 * Gives:   one line of text.
 * Never:   allocates; lets control characters of the program through.
 * Runs in: the workers, `cordon`.
 */
#ifndef CHECK_SENTENCE_H
#define CHECK_SENTENCE_H

#include "check/report.h"

#include <stddef.h>

/* Name, what stands before the operand, what behind it (NULL: the operand is not said).
 * Callers match the text of FUNCTION, IMPORT, METACLASS, METHOD, SIZE and SYNTAX: do not change it. */
#define CHECK_SENTENCES(X)                                                                         \
    X(FUNCTION, "Blocked function: ", "")                                                          \
    X(REFERENCE, "Blocked reference: ", "")                                                        \
    X(IMPORT, "Blocked import: ", "")                                                              \
    X(MEMBER, "Blocked member: ", "")                                                              \
    X(NAME, "Blocked name: ", "")                                                                  \
    X(ATTRIBUTE, "Blocked attribute: ", "")                                                        \
    X(KEY, "Blocked key: ", "")                                                                    \
    X(METHOD, "Blocked descriptor method: ", "")                                                   \
    X(METACLASS, "Blocked: metaclass usage", NULL)                                                 \
    X(STAR_IMPORT, "Blocked: star import from ", "")                                               \
    X(RELATIVE_IMPORT, "Blocked: relative import of ", "")                                         \
    X(FORMAT_FIELD, "Blocked format field: ", "")                                                  \
    X(ANNOTATION, "Blocked string annotation: ", "")                                               \
    X(COOKIE, "Blocked encoding declaration: ", "")                                                \
    X(BARE_CR, "Blocked: carriage return inside a line", NULL)                                     \
    X(SIZE, "Code exceeds size limit (", ")")                                                      \
    X(SYNTAX, "Syntax error: ", "")                                                                \
    X(TAMPERED, "Blocked: the parser's types were changed (", ")")                                 \
    X(EXCEPT_STAR, "Blocked: except*", NULL)                                                       \
    X(MISSING, "No such module: ", "")                                                             \
    X(MISSING_METHOD, "The text does not define the method ", "")

enum check_sentence {
#define CHECK_SENTENCE_ENUM(name, before, behind) CHECK_SAY_##name,
    CHECK_SENTENCES(CHECK_SENTENCE_ENUM)
#undef CHECK_SENTENCE_ENUM
};

/* Writes the sentence, cut to SIZE at a whole character; control characters become spaces. */
void check_sentence(enum check_sentence what, const char *operand, char *out, size_t size);

/* Copies LEN bytes of the program as an operand: cut to SIZE with `...`, control characters as spaces,
 * what is no UTF-8 as `?`. */
void check_operand(const char *text, size_t len, char *out, size_t size);

/* A finding of a judge about the LEN bytes OPERAND of a program, with the sentence WHAT, is added to REPORT. */
ERR_MUST_USE int check_report_say(struct check_report *report, const char *rule, const char *hint,
                                  enum check_sentence what, const char *operand, size_t len,
                                  unsigned line, unsigned column);

#endif
