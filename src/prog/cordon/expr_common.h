/* SPDX-License-Identifier: Apache-2.0 */
/* What `cordon eval` and `cordon check --lang expr` share: files, schemas, reports.
 *
 * Takes:   paths, conditions, errors of the engine.
 * Gives:   texts in memory; reports for people and as JSON.
 * Never:   reads more of a file than the engine's limits allow.
 * Runs in: cordon.
 */
#ifndef PROG_CORDON_EXPR_COMMON_H
#define PROG_CORDON_EXPR_COMMON_H

#include "cordon.h"

#include "source.h"

#include <stdio.h>

/* A file, or standard input for "-". 0, or 2 after saying why. The text is the caller's to free. */
int expr_read_file(const char *command, const char *path, size_t max, struct text *ret);
/* A schema from FILE; without one the shipped example, and the keys that CONTEXT (or NULL) has. The
 * memory is the caller's to free; NULL after saying why. */
struct cordon_schema *expr_open_schema(const char *command, const char *file, const char *context,
                                       size_t context_len, void **ret_mem);
void expr_print_error(FILE *to, const char *name, const struct cordon_error *err,
                      const char *source, size_t len);
void expr_json_string(FILE *to, const char *s, size_t len);
void expr_json_value(FILE *to, const struct cordon_value *v); /* null if V is NULL */
void expr_print_value(FILE *to, const struct cordon_value *v);
void expr_json_error(FILE *to, const struct cordon_error *err);
const char *expr_type_word(enum cordon_type t); /* "int", "float", "str", "bool", "None" */
/* One line on standard error for each refusal when CORDON_LOG names expr. */
void expr_log_refusal(const struct cordon_error *err, const char *source, size_t len);

/* Lines of a file of conditions: the next that is neither blank nor begins with '#'. */
bool expr_next_line(const struct text *t, size_t *at, unsigned *line, const char **ret,
                    size_t *ret_len);

#endif
