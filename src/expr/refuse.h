/* SPDX-License-Identifier: Apache-2.0 */
/* Names for what the language does not have.
 *
 * Takes:   the lexer, standing behind the token that does not belong.
 * Gives:   UnsafeExpressionError (docs/expr.md, "Values and errors"), with its place and what to write instead.
 * Never:   accepts anything; its reading ahead is only to find the right name.
 * Runs in: `cordon`, cordon-tool, and every program that links libcordon.
 */
#ifndef EXPR_REFUSE_H
#define EXPR_REFUSE_H

#include "expr/lex.h"
#include "expr/schema.h"

/* "Disallowed AST node type: NODE. Only comparisons, ..." */
int refuse_node(struct lex *lx, const char *node, uint32_t start, uint32_t end, const char *hint);
int refuse_constant(struct lex *lx, const struct lex_token *t);
int refuse_key(struct lex *lx, const struct cordon_schema *s, const struct lex_token *t,
               const struct expr_value *key);
/* T cannot begin an operand. */
int refuse_operand(struct lex *lx, const struct lex_token *t);
/* A name that is not ctx['...']; NEXT follows it. */
int refuse_name(struct lex *lx, const struct lex_token *name, const struct lex_token *next);
/* NEXT, a `(`, `[` or `.`, follows an operand that began at START. */
int refuse_trailer(struct lex *lx, uint32_t start, const struct lex_token *next);
/* Something was refused inside the COUNT parentheses that opened at the places OPEN, outermost first:
 * if one of them is a tuple, a generator expression or the operand of a trailer, that is the node to
 * name. Changes the error only. */
void refuse_enclosing(struct lex *lx, const uint32_t *open, uint32_t count);
/* T stands where an operator belongs. */
int refuse_operator(struct lex *lx, const struct lex_token *t, unsigned parens);

static inline bool refuse_is_trailer(enum lex_kind k)
{
    return k == T_OPEN || k == T_OPEN_SQUARE || k == T_DOT;
}

#endif
