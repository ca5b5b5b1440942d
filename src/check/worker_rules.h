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
    X("js.attr.__proto__")                                                                         \
    X("js.attr.accessor")                                                                          \
    X("js.attr.constructor")                                                                       \
    X("js.call.document.write")                                                                    \
    X("js.call.require")                                                                           \
    X("js.call.timer-text")                                                                        \
    X("js.closed.Function")                                                                        \
    X("js.closed.eval")                                                                            \
    X("js.compute.call")                                                                           \
    X("js.form.arguments")                                                                         \
    X("js.form.callee")                                                                            \
    X("js.form.let-name")                                                                          \
    X("js.form.own-name")                                                                          \
    X("js.form.with")                                                                              \
    X("js.limit.depth")                                                                            \
    X("js.limit.steps")                                                                            \
    X("js.limit.text")                                                                             \
    X("js.module.attributes")                                                                      \
    X("js.module.count")                                                                           \
    X("js.module.export")                                                                          \
    X("js.module.missing")                                                                         \
    X("js.module.specifier")                                                                       \
    X("js.name.Function")                                                                          \
    X("js.name.eval")                                                                              \
    X("js.node.unknown")                                                                           \
    X("ts.accessor")                                                                               \
    X("ts.decorator")                                                                              \
    X("ts.export-equals")                                                                          \
    X("ts.import-equals")                                                                          \
    X("ts.namespace")                                                                              \
    X("ts.parser")                                                                                 \
    X("py.attr.private")                                                                           \
    X("py.compute.call")                                                                           \
    X("py.event.sys.addaudithook")                                                                 \
    X("py.form.bare-cr")                                                                           \
    X("py.form.encoding-cookie")                                                                   \
    X("py.form.missing-import")                                                                    \
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
    X("py.guard.files")                                                                            \
    X("py.guard.interpreter")                                                                      \
    X("py.guard.member")                                                                           \
    X("py.guard.module")                                                                           \
    X("py.guard.open")                                                                             \
    X("py.guard.private")                                                                          \
    X("py.guard.refused")                                                                          \
    X("py.guard.relative")                                                                         \
    X("py.guard.doctest")                                                                          \
    X("py.guard.type")                                                                             \
    X("py.guard.write")                                                                            \
    X("py.key.private")                                                                            \
    X("rb.call.__send__")                                                                          \
    X("rb.call.backtick")                                                                          \
    X("rb.call.class_eval")                                                                        \
    X("rb.call.const_get")                                                                         \
    X("rb.call.define_method")                                                                     \
    X("rb.call.eval")                                                                              \
    X("rb.call.instance_eval")                                                                     \
    X("rb.call.instance_variable_get")                                                             \
    X("rb.call.instance_variable_set")                                                             \
    X("rb.call.load")                                                                              \
    X("rb.call.method")                                                                            \
    X("rb.call.module_eval")                                                                       \
    X("rb.call.open")                                                                              \
    X("rb.call.percent-x")                                                                         \
    X("rb.call.process")                                                                           \
    X("rb.call.public_send")                                                                       \
    X("rb.call.remove_method")                                                                     \
    X("rb.call.require")                                                                           \
    X("rb.call.send")                                                                              \
    X("rb.call.undef_method")                                                                      \
    X("rb.compute.call")                                                                           \
    X("rb.const.BasicObject")                                                                      \
    X("rb.const.Binding")                                                                          \
    X("rb.const.File")                                                                             \
    X("rb.const.IO")                                                                               \
    X("rb.const.Kernel")                                                                           \
    X("rb.const.Open3")                                                                            \
    X("rb.const.Process")                                                                          \
    X("rb.const.interpreter")                                                                      \
    X("rb.form.encoding")                                                                          \
    X("rb.form.missing")                                                                           \
    X("rb.form.end-mark")                                                                          \
    X("rb.form.opcode")                                                                            \
    X("rb.global.load-path")                                                                       \
    X("rb.shadow.backtick")                                                                        \
    X("rb.shadow.exec")                                                                            \
    X("rb.shadow.fork")                                                                            \
    X("rb.shadow.open")                                                                            \
    X("rb.shadow.popen")                                                                           \
    X("rb.shadow.spawn")                                                                           \
    X("rb.shadow.system")

#endif
