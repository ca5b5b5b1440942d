/* SPDX-License-Identifier: Apache-2.0 */
/* The table of languages: what each is called, how it is recognised, and by which worker it runs.
 *
 * Takes:   a name, a file's ending, or the tag of a code block.
 * Gives:   the row of that language; also of languages that no worker runs, so that they can be named.
 * Never:   looks into a program.
 * Runs in: every process that chooses a language.
 */
#ifndef BASE_LANGUAGES_H
#define BASE_LANGUAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct language {
    const char
        *name; /* as --lang, results and records have it; NULL: one that is only told apart */
    const char *title;   /* as sentences have it */
    const char *endings; /* of its files, a blank between two */
    const char *tags;    /* of code blocks and of #! lines, the same; NULL: none */
    const char *worker;  /* the program that runs it in the jail; NULL: none does */
    const char *place;   /* where that program is mounted */
    const char *filter;  /* how the names of its worker's filters begin */
    bool dialect;   /* the worker runs another language, too, and is told that it is this one */
    bool imports;   /* its judge reads files of /workspace that a program imports */
    bool methods;   /* a text may be one method, which is called (--method) */
    uint64_t space; /* addresses that its interpreter has from the start and does not fill */
    uint64_t least; /* memory that it needs to start where addresses are counted; 0: any does */
};

/* NULL: there is none. An ending begins with its dot; tags are compared without regard to case. */
const struct language *language_named(const char *name);
const struct language *language_ending(const char *ending);
const struct language *language_tagged(const char *tag);
/* The languages that have a name, one after the other: the first one behind NULL, NULL behind the last one. */
const struct language *language_next(const struct language *l);

const struct language *language_default(void); /* what a program is taken for if nothing tells */

/* The filter of a child that computes only, may have threads, and has a root of its own or is kept by Landlock alone. */
const char *language_filter(const struct language *l, bool compute, bool threads, bool own_root,
                            char *to, size_t size);
/* Of a worker whose program may start others. */
const char *language_filter_procs(const struct language *l, char *to, size_t size);

#endif
