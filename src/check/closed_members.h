/* SPDX-License-Identifier: Apache-2.0 */
/* Members of modules that are ways round the guards, whatever a profile says of them.
 *
 * Takes:   a module and a member.
 * Gives:   what to do instead, where the member is closed. One table for the judge and the guards: what one refuses, so
 *          does the other.
 * Never:   says anything about a profile without guards: who asks knows.
 * Runs in: cordon-python, in the jail.
 */
#ifndef CHECK_CLOSED_MEMBERS_H
#define CHECK_CLOSED_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>

#define CHECK_RULE_CLOSED_MEMBER "py.guard.member"

const char *check_closed_member(const char *module, size_t module_len, const char *member,
                                size_t len); /* the hint; NULL: it is not closed */
bool check_has_closed_members(const char *module, size_t len);

#endif
