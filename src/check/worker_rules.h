/* SPDX-License-Identifier: Apache-2.0 */
/* Rules that a worker applies by itself, whatever the profile says: the guards', and those that a profile may name
 * but that hold where it does not.
 *
 * Takes:   nothing.
 * Gives:   their names, for whoever reads a worker's reports and believes no other.
 * Never:   has a rule of the kernel's layers, the gate or the audit: these speak for themselves.
 * Runs in: the supervisor. tests/lint/worker_rules.py holds it against the sources of the workers.
 */
#ifndef CHECK_WORKER_RULES_H
#define CHECK_WORKER_RULES_H

#define CHECK_WORKER_RULES(X)                                                                      \
    X("py.attr.private")                                                                           \
    X("py.compute.call")                                                                           \
    X("py.event.sys.addaudithook")                                                                 \
    X("py.form.bare-cr")                                                                           \
    X("py.form.encoding-cookie")                                                                   \
    X("py.form.relative-import")                                                                   \
    X("py.form.star-import")                                                                       \
    X("py.form.string-annotation")                                                                 \
    X("py.form.unlisted-import")                                                                   \
    X("py.guard.builtins")                                                                         \
    X("py.guard.class")                                                                            \
    X("py.guard.closed")                                                                           \
    X("py.guard.code")                                                                             \
    X("py.guard.compile")                                                                          \
    X("py.guard.copy")                                                                             \
    X("py.guard.exec")                                                                             \
    X("py.guard.interpreter")                                                                      \
    X("py.guard.member")                                                                           \
    X("py.guard.module")                                                                           \
    X("py.guard.open")                                                                             \
    X("py.guard.private")                                                                          \
    X("py.guard.refused")                                                                          \
    X("py.guard.relative")                                                                         \
    X("py.guard.type")                                                                             \
    X("py.guard.write")                                                                            \
    X("py.key.private")

#endif
