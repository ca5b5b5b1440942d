/* SPDX-License-Identifier: Apache-2.0 */
/* What a Ruby program may not do, one table: the pattern of the plain text, and what the same thing is in compiled code.
 *
 * Takes:   nothing.
 * Gives:   each rule with its id, its pattern, the methods and the constants that it refuses, and what to do instead.
 * Never:   holds in the profile `open`, which has no rules of the language.
 * Runs in: cordon-ruby: the judge reads it.
 */
#ifndef WORKER_RUBY_RULES_H
#define WORKER_RUBY_RULES_H

#define RB_JAILED "there is no other program in the jail; compute it in Ruby"
#define RB_FILES  "give the program its data as text or on standard input"
#define RB_DIRECT "call the method by its name"
#define RB_CODE   "write the code out; text is not run as code here"

/* X(id, pattern or NULL, methods, constants, hint). Words have a blank between two. Patterns are Ruby's own and hold in `strict`
 * for the whole text, and in every profile for a text that is no program. Methods and constants hold where rules do, in
 * the instructions: a word in a comment or in a string is none. */
#define RB_RULES(X)                                                                                \
    X("rb.call.process", "\\b(system|exec|spawn|fork|abort|exit)\\b", "system exec spawn fork",    \
      "", RB_JAILED)                                                                               \
    X("rb.call.backtick", "`[^`]*`", "`", "", RB_JAILED)                                           \
    X("rb.call.percent-x", "%x\\{|%x\\[|%x\\(", "", "", RB_JAILED)                                 \
    X("rb.const.File", "\\bFile\\.\\b", "", "File FileTest FileUtils Dir Pathname Tempfile",       \
      RB_FILES)                                                                                    \
    X("rb.const.IO", "\\bIO\\.\\b", "", "IO ARGF", RB_FILES)                                       \
    X("rb.const.Kernel", "\\bKernel\\.\\b", "", "Kernel", RB_DIRECT)                               \
    X("rb.const.Open3", "\\bOpen3\\.\\b", "", "Open3 PTY", RB_JAILED)                              \
    X("rb.const.Process", "\\bProcess\\.\\b", "", "Process Signal", RB_JAILED)                     \
    X("rb.call.require", "\\brequire\\b", "require_relative autoload", "",                         \
      "use what Ruby has without it, or another profile")                                          \
    X("rb.call.load", "\\bload\\b", "load", "", "put everything into one program")                 \
    X("rb.call.__send__", "\\b__send__\\b", "__send__", "", RB_DIRECT)                             \
    X("rb.call.eval", "\\beval\\b", "eval", "", RB_CODE)                                           \
    X("rb.call.send", "\\bsend\\b", "send", "", RB_DIRECT)                                         \
    X("rb.call.public_send", "\\bpublic_send\\b", "public_send", "", RB_DIRECT)                    \
    X("rb.call.method", "\\bmethod\\s*\\(", "method public_method instance_method", "", RB_DIRECT) \
    X("rb.call.const_get", "\\bconst_get\\b", "const_get", "", "name the constant itself")         \
    X("rb.call.class_eval", "\\bclass_eval\\b", "class_eval class_exec", "",                       \
      "open the class with `class`")                                                               \
    X("rb.call.module_eval", "\\bmodule_eval\\b", "module_eval module_exec", "",                   \
      "open the module with `module`")                                                             \
    X("rb.call.instance_eval", "\\binstance_eval\\b", "instance_eval", "",                         \
      "call the object's methods")                                                                 \
    X("rb.call.instance_variable_set", "\\binstance_variable_set\\b", "instance_variable_set", "", \
      "use attr_writer")                                                                           \
    X("rb.call.instance_variable_get", "\\binstance_variable_get\\b", "instance_variable_get", "", \
      "use attr_reader")                                                                           \
    X("rb.call.define_method", "\\bdefine_method\\b", "define_method define_singleton_method", "", \
      "write `def`")                                                                               \
    X("rb.const.Binding", "\\bBinding\\b", "binding", "Binding TOPLEVEL_BINDING",                  \
      "pass what is needed as an argument")                                                        \
    X("rb.const.BasicObject", "\\bBasicObject\\b", "", "BasicObject", "derive from Object")        \
    X("rb.call.remove_method", "\\bremove_method\\b", "remove_method", "",                         \
      "define the class without it")                                                               \
    X("rb.call.undef_method", "\\bundef_method\\b", "undef_method", "",                            \
      "define the class without it")                                                               \
    X("rb.call.open", NULL, "open syscall trap", "", RB_FILES)                                     \
    X("rb.const.interpreter", NULL, "set_trace_func",                                              \
      "ObjectSpace TracePoint RubyVM Fiddle Ractor", "compute with the program's own objects")

/* Libraries that `require` finds where its pattern does not hold: each computes on what the program has. */
#define RB_LIBRARIES(X)                                                                            \
    X("English")                                                                                   \
    X("abbrev")                                                                                    \
    X("base64")                                                                                    \
    X("benchmark")                                                                                 \
    X("bigdecimal")                                                                                \
    X("bigdecimal/math")                                                                           \
    X("bigdecimal/util")                                                                           \
    X("csv")                                                                                       \
    X("date")                                                                                      \
    X("delegate")                                                                                  \
    X("digest")                                                                                    \
    X("digest/md5")                                                                                \
    X("digest/sha1")                                                                               \
    X("digest/sha2")                                                                               \
    X("forwardable")                                                                               \
    X("json")                                                                                      \
    X("logger")                                                                                    \
    X("monitor")                                                                                   \
    X("observer")                                                                                  \
    X("ostruct")                                                                                   \
    X("pp")                                                                                        \
    X("prettyprint")                                                                               \
    X("securerandom")                                                                              \
    X("set")                                                                                       \
    X("shellwords")                                                                                \
    X("singleton")                                                                                 \
    X("stringio")                                                                                  \
    X("strscan")                                                                                   \
    X("time")                                                                                      \
    X("timeout")                                                                                   \
    X("tsort")                                                                                     \
    X("weakref")                                                                                   \
    X("zlib")

#endif
