/* SPDX-License-Identifier: Apache-2.0 */
/* The words of JSON Schema that a schema of a tool's arguments may have: whoever reads one and whoever checks by one know the same.
 *
 * Takes:   nothing.
 * Gives:   lists of words, as macros.
 * Never:   has a word that src/tools/schema.c does not act on: a bound that nobody checks is no bound.
 * Runs in: the supervisor, cordon-tool.
 */
#ifndef BASE_ARGWORDS_H
#define BASE_ARGWORDS_H

/* WORD, whether it is a lower bound */
#define ARGWORDS_BOUNDS(X)                                                                         \
    X("minimum", true)                                                                             \
    X("maximum", false)                                                                            \
    X("minLength", true)                                                                           \
    X("maxLength", false)                                                                          \
    X("minItems", true)                                                                            \
    X("maxItems", false)

/* Said to people, or looked at where they are needed. */
#define ARGWORDS_PLAIN(X)                                                                          \
    X("description")                                                                               \
    X("title")                                                                                     \
    X("required")                                                                                  \
    X("default")                                                                                   \
    X("$schema")

#define ARGWORDS_TYPES(X)                                                                          \
    X("string")                                                                                    \
    X("integer")                                                                                   \
    X("number")                                                                                    \
    X("boolean")                                                                                   \
    X("object")                                                                                    \
    X("array")                                                                                     \
    X("null")

/* The one `format`: a property of a host tool that names a file of the program's. */
#define ARGWORDS_FILE "file"

#endif
