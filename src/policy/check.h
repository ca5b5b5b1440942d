/* SPDX-License-Identifier: Apache-2.0 */
/* A policy file looked at without being taken into force: everything that is wrong with it.
 *
 * Takes:   a file.
 * Gives:   errors and warnings with line and column, laid over the built-in policy.
 * Never:   stops at the first.
 * Runs in: `cordon policy check`.
 */
#ifndef POLICY_CHECK_H
#define POLICY_CHECK_H

#include "policy/policy.h"
#include "policy/tree.h"

/* 0 and PROBLEMS filled; an error only where the file cannot be read at all. */
ERR_MUST_USE int policy_check_file(const char *path, struct policy_problems *problems,
                                   struct err *err);
/* The same for bytes; NAME is what problems call them. ERR_MEMORY. */
ERR_MUST_USE int policy_check_bytes(const char *name, const void *data, size_t len,
                                    struct policy_problems *problems);

#endif
