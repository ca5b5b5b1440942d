/* SPDX-License-Identifier: Apache-2.0 */
/* Whose packages programs get: Debian's, or those of a virtual environment that the policy names.
 *
 * Takes:   python.environment and python.preload of the policy.
 * Gives:   the folder of its packages, what is loaded ahead, and the words that tell cordon-python both.
 * Never:   lets two environments share a holder: a child has what its template has loaded.
 * Runs in: `cordon`, cordon-holder.
 */
#ifndef POOL_ENVIRONMENT_H
#define POOL_ENVIRONMENT_H

#include "base/err.h"
#include "jail/spec.h"
#include "policy/policy.h"

#include <stdbool.h>
#include <stdint.h>

#define POOL_ENVIRONMENT_WORDS 5

struct pool_environment {
    char site[512]; /* its site-packages on the host; empty: Debian's packages */
    char preload
        [768];   /* modules, by commas; empty: numpy, pandas, matplotlib where they are there */
    bool system; /* Debian's packages behind them, as its pyvenv.cfg says */
};

/* VENV: the caller's own word, an absolute path; NULL: the policy's.
 * ERR_USAGE: it is no environment of the Python that we run, or somebody else than root and the caller could change
 * it, or a folder on the way to its packages. */
ERR_MUST_USE int pool_environment_open(struct pool_environment *ret, const struct policy *policy,
                                       const char *venv, struct err *err);
/* The same of every file and folder of its packages: a system call for each of them, so only before they are imported,
 * in a template or in a jail that is built for one run. */
ERR_MUST_USE int pool_environment_check(const struct pool_environment *e, struct err *err);
/* The same from the words that a holder was started with: a folder, a list, 1 or 0. */
ERR_MUST_USE int pool_environment_words(struct pool_environment *ret, const char *site,
                                        const char *preload, const char *system, struct err *err);
/* 0 is Debian's with nothing said; NULL is that, too. */
uint32_t pool_environment_mark(const struct pool_environment *e);

/* For cordon-python: words of its command line, and the folder as a bind. AHEAD: load modules ahead, too. Both return
 * how many. TEXT has room for the list of modules, and outlives the words. */
size_t pool_environment_argv(const struct pool_environment *e, bool ahead, char *text, size_t size,
                             const char *out[POOL_ENVIRONMENT_WORDS]);
size_t pool_environment_bind(const struct pool_environment *e, struct jail_bind *out);

/* Whether SOURCE names something that would be loaded ahead: a hint, not a judgement. */
bool pool_environment_named(const struct pool_environment *e, const void *source, size_t len);

#endif
