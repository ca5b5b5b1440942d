/* SPDX-License-Identifier: Apache-2.0 */
/* Where our other programs are, and where the guest's program is seen from inside.
 *
 * Takes:   names and paths of the command line.
 * Gives:   absolute paths, or an error that names the thing and what to do.
 * Never:   runs anything.
 * Runs in: `cordon`.
 */
#ifndef PROG_CORDON_PROGRAMS_H
#define PROG_CORDON_PROGRAMS_H

#include "base/arena.h"
#include "base/err.h"
#include "jail/spec.h"

/* A program of ours: beside this one, or in ../libexec/cordon. */
ERR_MUST_USE int programs_find(const char *name, char *path, size_t size, struct err *err);

/* PATH from the current folder, without . and .. and double slashes, by the letters alone. NULL: no memory, no folder. */
const char *programs_absolute(const char *path, struct arena *mem);

/* PATH or PATH:DEST of --ro and --rw, made absolute without following links. */
ERR_MUST_USE int programs_parse_bind(const char *word, bool writable, struct arena *mem,
                                     struct jail_bind *ret, struct err *err);

/* PATH or PATH:NAME of --in: NAME is a path in /workspace; without it a file keeps its own, and what a folder holds goes
 * into /workspace itself. */
ERR_MUST_USE int programs_parse_copy(const char *word, struct arena *mem, struct jail_bind *ret,
                                     struct err *err);

/* The guest's program as an absolute path inside the jail of SPEC. */
ERR_MUST_USE int programs_resolve(const struct jail_spec *spec, const char *word, struct arena *mem,
                                  const char **ret_inside, struct err *err);

static inline int programs_find_nest(char *path, size_t size, struct err *err)
{
    return programs_find("cordon-nest", path, size, err);
}

#endif
