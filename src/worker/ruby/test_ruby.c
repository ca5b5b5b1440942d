/* SPDX-License-Identifier: Apache-2.0 */
/* The judge of Ruby and the shadows, in an interpreter without a jail: nothing that is judged here runs, and what runs here is
 * refused by the shadows alone, since no judge has seen it. */
#include "ruby_first.h"

#include "base/sanitized.h"
#include "base/tap.h"
#include "interp.h"
#include "judge_inside.h"
#include "shadow.h"

#include <string.h>

NO_SEARCH_FOR_LEAKS

static const char *method; /* that the texts are to define; NULL: they are programs */

/* The first rule that is found, or "" for none; OTHERS counts all findings. */
static const char *rule_of(const char *profile, const char *source, size_t len, size_t *ret_count)
{
    static char rule[64];
    struct check_report report;
    struct rb_judged judged;
    struct err err = ERR_INIT;
    check_report_init(&report);
    const struct rb_source text = {.path = "t.rb", .text = source, .len = len, .method = method};
    int r = rb_judge(policy_profile_find(profile), &text, &report, &judged, &err);
    snprintf(rule, sizeof rule, "%s",
             r < 0          ? err.msg
             : report.count ? report.findings[0].rule
                            : "");
    if (ret_count)
        *ret_count = report.count;
    if (r == 0 && (report.count == 0) != (judged.code != 0))
        snprintf(rule, sizeof rule, "the code and the report differ");
    check_report_done(&report);
    return rule;
}

static void judged(const char *profile, const char *source, const char *rule, const char *what)
{
    tap_eq_str(rule_of(profile, source, strlen(source), NULL), rule, "%s: %s", profile, what);
}

/* ---- the table ---- */

/* One program for each row of the table, and whether `standard` sees it in the instructions. */
static const struct {
    const char *rule, *source;
    bool standard;
} rows[] = {
    {"rb.call.process", "def hack\n  system('ls')\nend", true},
    {"rb.call.process", "exec 'ls'", true},
    {"rb.call.process", "spawn('ls')", true},
    {"rb.call.process", "fork { 1 }", true},
    {"rb.call.process", "abort 'x'", false},
    {"rb.call.process", "exit 1", false},
    {"rb.call.backtick", "x = `ls`", true},
    {"rb.const.File", "def hack\n  File.read('/etc/passwd')\nend", true},
    {"rb.const.IO", "IO.read('x')", true},
    {"rb.const.Kernel", "Kernel.puts 1", true},
    {"rb.const.Open3", "Open3.capture2('ls')", true},
    {"rb.const.Process", "Process.pid", true},
    {"rb.call.require", "def hack\n  require 'socket'\nend", true},
    {"rb.call.load", "load 'x.rb'", true},
    {"rb.call.__send__", "1.__send__(:+, 2)", true},
    {"rb.call.eval", "def hack\n  eval('1+1')\nend", true},
    {"rb.call.send", "1.send(:+, 2)", true},
    {"rb.call.public_send", "1.public_send(:+, 2)", true},
    {"rb.call.method", "method(:puts)", true},
    {"rb.call.const_get", "Object.const_get(:String)", true},
    {"rb.call.class_eval", "String.class_eval { 1 }", true},
    {"rb.call.module_eval", "Comparable.module_eval { 1 }", true},
    {"rb.call.instance_eval", "1.instance_eval { self }", true},
    {"rb.call.instance_variable_set", "self.instance_variable_set(:@a, 1)", true},
    {"rb.call.instance_variable_get", "self.instance_variable_get(:@a)", true},
    {"rb.call.define_method", "class A; define_method(:a) { 1 }; end", true},
    {"rb.const.Binding", "Binding", true},
    {"rb.const.BasicObject", "class A < BasicObject; end", true},
    {"rb.call.remove_method", "class A; def a; end; remove_method :a; end", true},
    {"rb.call.undef_method", "class A; undef_method :to_s; end", true},
};

static void table(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tap_eq_str(rule_of("strict", rows[i].source, strlen(rows[i].source), NULL), rows[i].rule,
                   "strict refuses `%.40s` by its rule", rows[i].source);
        tap_eq_str(rule_of("standard", rows[i].source, strlen(rows[i].source), NULL),
                   rows[i].standard ? rows[i].rule : "", "standard judges `%.40s` by its code",
                   rows[i].source);
        tap_eq_str(rule_of("open", rows[i].source, strlen(rows[i].source), NULL), "",
                   "open has no rule against `%.40s`", rows[i].source);
    }
    /* in a comment there are no instructions: what is found there, the pattern alone has found */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char comment[200];
        snprintf(comment, sizeof comment, "=begin\n%s\n=end\np 1", rows[i].source);
        judged("strict", comment, rows[i].rule, "the pattern finds it in a comment");
        judged("standard", comment, "", "in a comment it is nothing");
    }
    judged("strict", "p 1 # %x{ls}", "rb.call.percent-x", "the pattern of %x with braces");
    judged("strict", "p 1 # %x[ls]", "rb.call.percent-x", "the pattern of %x with brackets");
    judged("strict", "p 1 # %x(ls)", "rb.call.percent-x", "the pattern of %x with parentheses");
    judged("strict", "%x{ls}", "rb.call.backtick", "%x with braces is what backticks are");
    judged("standard", "%x(ls)", "rb.call.backtick", "%x with parentheses is what backticks are");
    judged("standard", "x = <<`E`\nls\nE\n", "rb.call.backtick", "a heredoc of backticks is one");
}

/* Every word that a rule refuses in instructions. They stand here once more, so that none leaves the table unseen. */
static const struct {
    const char *rule, *methods, *constants;
} words[] = {
    {"rb.call.process", "system exec spawn fork", ""},
    {"rb.const.File", "", "File FileTest FileUtils Dir Pathname Tempfile"},
    {"rb.const.IO", "", "IO ARGF"},
    {"rb.const.Kernel", "", "Kernel"},
    {"rb.const.Open3", "", "Open3 PTY"},
    {"rb.const.Process", "", "Process Signal"},
    {"rb.call.require", "require_relative autoload", ""},
    {"rb.call.load", "load", ""},
    {"rb.call.__send__", "__send__", ""},
    {"rb.call.eval", "eval", ""},
    {"rb.call.send", "send", ""},
    {"rb.call.public_send", "public_send", ""},
    {"rb.call.method", "method public_method instance_method", ""},
    {"rb.call.const_get", "const_get", ""},
    {"rb.call.class_eval", "class_eval class_exec", ""},
    {"rb.call.module_eval", "module_eval module_exec", ""},
    {"rb.call.instance_eval", "instance_eval", ""},
    {"rb.call.instance_variable_set", "instance_variable_set", ""},
    {"rb.call.instance_variable_get", "instance_variable_get", ""},
    {"rb.call.define_method", "define_method define_singleton_method", ""},
    {"rb.const.Binding", "binding", "Binding TOPLEVEL_BINDING"},
    {"rb.const.BasicObject", "", "BasicObject"},
    {"rb.call.remove_method", "remove_method", ""},
    {"rb.call.undef_method", "undef_method", ""},
    {"rb.call.open", "open syscall trap", ""},
    {"rb.const.interpreter", "set_trace_func", "ObjectSpace TracePoint RubyVM Fiddle Ractor"},
};

/* A program for each word of LIST: FORM with the word in it. */
static void each_word(const char *rule, const char *list, const char *form, const char *what)
{
    char copy[200], source[100], *save = NULL;
    snprintf(copy, sizeof copy, "%s", list);
    for (const char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        snprintf(source, sizeof source, "%s%s\n", form, word);
        tap_eq_str(rule_of("standard", source, strlen(source), NULL), rule,
                   "standard refuses %s %s", what, word);
    }
}

static void every_word(void)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        each_word(words[i].rule, words[i].methods, "x = 1\nx.", "a call of");
        each_word(words[i].rule, words[i].methods, "x = 1\n[x].each &:", "a reference to");
        each_word(words[i].rule, words[i].constants, "x = ", "the constant");
    }
    for (const struct rb_rule *rule = rb_rules; rule->id; rule++) {
        size_t i = 0;
        while (i < sizeof words / sizeof *words && strcmp(words[i].rule, rule->id) != 0)
            i++;
        const bool listed = i < sizeof words / sizeof *words;
        tap_ok(listed ? strcmp(words[i].methods, rule->methods) == 0 &&
                            strcmp(words[i].constants, rule->constants) == 0
                      : strcmp(rule->methods, "`") == 0 || (!*rule->methods && !*rule->constants),
               "every word of %s is tried", rule->id);
    }
}

/* ---- code against text ---- */

static void code(void)
{
    judged("standard", "puts 'system' # eval", "", "a word in a string or a comment is no call");
    judged("strict", "puts 'system'", "rb.call.process",
           "the plain text decides, strings and comments too");
    judged("strict", "ecosystem = 1\nsystems = 2\nevaluate = 3", "",
           "a part of a word is not the word");
    judged("standard", "[1].each(&:system)", "rb.call.process",
           "a symbol that can be called is a reference");
    judged("standard", "x = [:a, [:eval]]", "rb.call.eval", "a symbol in a literal is found");
    judged("standard", "x = {a: :send}", "rb.call.send", "a symbol in a hash is found");
    judged("standard", "BEGIN { system 'x' }", "rb.call.process", "a BEGIN block is judged");
    judged("standard", "begin\n 1\nrescue => e\n exec 'x'\nend", "rb.call.process",
           "a handler is judged");
    judged("standard", "/#{`ls`}/o", "rb.call.backtick", "code inside a pattern is judged");
    judged("standard", "def a(b = eval('1'))\nend", "rb.call.eval",
           "a default of a parameter is judged");
    judged("standard", "class A\n def b\n  ->(x) { [x].map { |y| fork } }\n end\nend",
           "rb.call.process", "the innermost block is judged");
    judged("standard", "alias new_name system", "rb.call.process",
           "a second name for a method is found");
    judged("standard", "TOPLEVEL_BINDING", "rb.const.Binding",
           "a constant that leads to all variables is refused");
    judged("standard", "ObjectSpace.each_object(Class) { }", "rb.const.interpreter",
           "the list of all objects is refused");
    judged("standard", "$: << '.'", "rb.global.load-path",
           "the list of library folders is refused");
    static const char *const lists[] = {"$LOAD_PATH", "$-I", "$\"", "$LOADED_FEATURES"};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        char source[40];
        snprintf(source, sizeof source, "%s << '.'", lists[i]);
        judged("standard", source, "rb.global.load-path", lists[i]);
    }
    judged("standard", "class File\nend", "rb.const.File", "a class that is opened again is found");
    judged("standard", "Process = 1", "rb.const.Process", "a constant that is set is found");
    judged("strict", "class A; def self.const_missing(n) = n; end", "rb.form.missing",
           "answers to unknown constants are refused");
    judged("standard", "class A; def method_missing(*a) = a; end", "",
           "answers to unknown names pass");
    judged("strict", "class A; def method_missing(*a) = a; end", "rb.form.missing",
           "answers to unknown names are refused");
    /* differentials of the parser: what looks like one thing and is another */
    judged("standard", "x = 6; y = 2; z = 1\np x / y; `ls` # / z", "rb.call.backtick",
           "a division is no pattern that hides the rest");
    judged("standard", "a = [1]\na <<FOO\n`x`\nFOO\n", "rb.call.backtick",
           "a shift is no heredoc that hides the rest");
    judged("standard", "p <<FOO\n`x`\nFOO\n", "", "a heredoc is text");
}

/* What loads a library when it is called: it is loaded before the guest's code, which may load nothing. */
static void late(const char *source, const char *library)
{
    struct check_report report;
    struct rb_judged ret = {0};
    struct err err = ERR_INIT;
    const struct rb_source text = {.path = "t.rb", .text = source, .len = strlen(source)};
    check_report_init(&report);
    const int r = rb_judge(policy_profile_find("standard"), &text, &report, &ret, &err);
    tap_eq_str(r == 0 && ret.library_count == 1 ? ret.libraries[0] : "", library,
               "`%s` asks for its library ahead", source);
    check_report_done(&report);
}

static void libraries(void)
{
    judged("standard", "require 'set'", "", "a library of the list is loaded");
    judged("strict", "require 'set'", "rb.call.require", "the plain text has no exception");
    judged("standard", "require 'fiddle'", "rb.call.require",
           "a library that is not listed is refused");
    judged("standard", "require 'set' + 'x'", "rb.call.require",
           "a name that is put together is refused");
    judged("standard", "require(rand > 1 ? 'socket' : 'set')", "rb.call.require",
           "one name of two is refused");
    judged("standard", "%w[socket].each(&method(:require))", "rb.call.method",
           "a method object is refused");
    judged("standard", "%w[socket].each(&:require)", "rb.call.require",
           "require as a symbol is refused");
    judged("standard", "require_relative 'x'", "rb.call.require",
           "a file beside the program is refused");
    judged("open", "require 'socket'", "", "any library may be asked for");
    late("pp 1", "pp");
    late("puts 1.pretty_inspect", "pp");
    late("'a'.unicode_normalize", "unicode_normalize/normalize");
    late("require 'set'", "set");
}

/* ---- bytes ---- */

static void bytes(void)
{
    size_t count;
    judged("open", "# coding: Shift_JIS\np 1", "rb.form.encoding",
           "another encoding is refused in every profile");
    judged("standard", "#!/usr/bin/ruby\n# -*- Encoding : EUC-JP -*-\np 1", "rb.form.encoding",
           "so it is on the second line, as editors write it");
    judged("standard", "# vim: fileencoding=EUC-JP\np 1", "rb.form.encoding",
           "an encoding behind an equals sign is refused");
    judged("strict", "# coding: utf-8\np 1", "", "UTF-8 may be said");
    judged("standard", "p 1\n# coding: latin-1", "", "a comment below code declares nothing");
    judged("standard", "# Text.\n# Huffman coding: builds a tree.\n\n# encoding: a word\np 1", "",
           "a comment below the first line declares nothing either");
    judged("standard", "\n# coding: latin-1\np 1", "", "nor does one below an empty line");
    judged("standard", "#!/usr/bin/ruby\n\n# coding: latin-1\np 1", "",
           "nor one below the second line");
    judged("standard", "#!/usr/bin/ruby\np 1 # coding: latin-1", "",
           "nor one beside code in the second line");
    judged("standard", "p 1 # coding: latin-1", "", "nor one beside code in the first line");
    judged("standard", "# coding latin-1 and a colon: none\np 1", "",
           "a word that no colon follows declares nothing");
    static const char *const others[] = {"  # coding:x\np 1",
                                         "# coding\t=\t\"EUC-JP\"\np 1",
                                         "# codings, coding: EUC-JP",
                                         "# coding: utf-8-mac\np 1",
                                         "# coding: UTF-7\np 1",
                                         "# coding: utf_8\np 1",
                                         "# -*- mode: ruby; coding: EUC-JP -*-\np 1",
                                         "#!/usr/bin/ruby\n  # cODinG == EUC-JP\np 1"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        judged("open", others[i], "rb.form.encoding", others[i]);
    judged("strict", "# coding:\tutf-8\np 1", "", "UTF-8 may be said behind a tab");
    judged("strict", "#!/usr/bin/ruby\n# Coding: \"UTF-8\"\np 1", "",
           "UTF-8 may be said in capitals, in quotes, behind #!");
    judged("standard", "p 1\x04p 2", "rb.form.end-mark", "a ^D does not hide the rest");
    judged("standard", "p 1\x1ap 2", "rb.form.end-mark", "a ^Z does not hide the rest");
    tap_eq_str(rule_of("standard", "p 1\0p 2", 7, NULL), CHECK_RULE_NUL,
               "a NUL does not hide the rest");
    tap_eq_str(rule_of("open", "p '\xff'", 5, NULL), CHECK_RULE_ENCODING,
               "what is no UTF-8 is refused");
    judged("standard", "def a", CHECK_RULE_SYNTAX, "half a program is no program");
    judged("open", "def a; system('x')", "rb.call.process",
           "dangerous and broken is dangerous, in every profile");
    judged("standard", "p 1 # \xe2\x80\xa8 eval", "",
           "a line separator of Unicode ends no comment");
    static char deep[60000];
    memset(deep, '(', sizeof deep - 1);
    tap_eq_str(rule_of("standard", deep, 40000, &count), CHECK_RULE_SYNTAX,
               "a nest too deep for the parser is refused");
    static char long_one[60000];
    memset(long_one, ' ', sizeof long_one);
    tap_eq_str(rule_of("strict", long_one, sizeof long_one, NULL), CHECK_RULE_SIZE,
               "a program over the size of its profile is refused");
    static char many[49000];
    for (size_t i = 0; i + 7 < sizeof many; i += 7)
        memcpy(many + i, "system\n", 7);
    (void)rule_of("strict", many, strlen(many), &count);
    tap_eq_int((long)count, CHECK_FINDINGS_MAX, "thousands of findings are told up to the ceiling");
}

/* ---- instructions that nobody knows ---- */

static void unknown(const char *change, const char *rule, const char *what)
{
    char source[300];
    struct check_report report;
    struct rb_judged ret = {0};
    struct rb_judge j = {.profile = policy_profile_find("open"), .report = &report, .ret = &ret};
    snprintf(source, sizeof source,
             "c = RubyVM::InstructionSequence.compile('[1].each { |x| x + 2 }').to_a; "
             "row = c[13].find { |r| Array === r && r[0] == :send }; %s; c",
             change);
    check_report_init(&report);
    rb_judge_code(&j, rb_eval_string(source));
    check_report_end(&report);
    tap_eq_str(report.count ? report.findings[0].rule : "", rule, "%s", what);
    check_report_done(&report);
}

static void opcodes(void)
{
    unknown("1", "", "the instructions of a small program are known, in open, too");
    unknown("row[0] = :opt_newer", "rb.form.opcode", "an opcode of another Ruby is refused");
    unknown("row[0] = :invokebuiltin", "rb.form.opcode",
            "an opcode of the interpreter's own is refused");
    unknown("row[2][13].find { |r| Array === r }[0] = :opt_newer", "rb.form.opcode",
            "an unknown opcode in a block is refused");
    unknown("c[13] << 1.5", "rb.form.opcode", "a row of another shape is refused");
    unknown("c[0] = 'Other'", "rb.form.opcode", "another format is refused");
}

/* ---- shadows ---- */

static void shadowed(const char *source, const char *text)
{
    int state = 0;
    rb_eval_string_protect(source, &state);
    VALUE error = rb_errinfo();
    rb_set_errinfo(Qnil);
    VALUE said =
        state ? rb_funcall(error, rb_intern("message"), 0) : rb_str_new_cstr("nothing was raised");
    tap_eq_str(StringValueCStr(said), text, "`%s` is blocked when it is called", source);
    tap_ok(state && rb_obj_class(error) == rb_eSecurityError, "`%s` raises ::SecurityError",
           source);
}

/* The programs that are asked for fail: an exec that is not blocked would end this test with their status. */
static void shadows(void)
{
    static const char *const six[][2] = {{"system", "system() blocked by Cordon sandbox"},
                                         {"exec", "exec() blocked by Cordon sandbox"},
                                         {"spawn", "spawn() blocked by Cordon sandbox"},
                                         {"fork", "fork() blocked by Cordon sandbox"},
                                         {"open", "open() blocked by Cordon sandbox"},
                                         {"`", "backtick execution blocked by Cordon sandbox"}};
    char source[200];
    rb_shadow_install();
    for (size_t i = 0; i < sizeof six / sizeof *six; i++) {
        snprintf(source, sizeof source, "send(:%s, 'false')", six[i][0]);
        shadowed(source, six[i][1]);
        snprintf(source, sizeof source, "Kernel.send(:%s, 'false')", six[i][0]);
        shadowed(source, six[i][1]);
        snprintf(source, sizeof source, "Object.new.instance_eval { __send__(:%s, 'false') }",
                 six[i][0]);
        shadowed(source, six[i][1]);
        snprintf(source, sizeof source, "Kernel.instance_method(:%s).bind(1).call('false')",
                 six[i][0]);
        shadowed(source, six[i][1]);
    }
    shadowed("`false`", six[5][1]);
    shadowed("%x(false)", six[5][1]);
    shadowed("system('false')", six[0][1]);
    shadowed("Kernel.system('false')", six[0][1]);
    shadowed("Kernel.open('|false')", six[4][1]);
    shadowed("Process.spawn('false')", six[2][1]);
    shadowed("Process.exec('false')", six[1][1]);
    shadowed("Process.fork", six[3][1]);
    shadowed("IO.popen('false')", "popen() blocked by Cordon sandbox");
    tap_ok(!rb_respond_to(rb_path2class("Process"), rb_intern("daemon")),
           "there is no Process.daemon");
}

/* ---- a method ---- */

static void methods(void)
{
    method = "hack";
    judged("strict", "def hack\n  1\nend", "", "a method that is asked for is clean");
    judged("strict", "def other\n  1\nend", "structure", "another one is not the method");
    judged("strict", "def self.hack\n  1\nend", "structure", "nor is one of the module itself");
    judged("strict", "def other\n  system('ls')\nend", "rb.call.process",
           "what is dangerous is told before what is missing");
    judged("standard", "def hack\n  system('ls')\nend", "rb.call.process", "a method is judged");
    judged("standard", "end\ndef hack\n  1\nend\nif true", "syntax",
           "a text that ends the module's block does not compile");
    judged("standard", "def hack\nend\n__END__\n", "syntax",
           "a text that hides the end of the module's block does not compile");
    judged("open", "BEGIN { 1 }\ndef hack\nend", "syntax", "nor does one that runs outside of it");
    method = NULL;
}

int main(void)
{
    struct err err = ERR_INIT;
    if (rb_interp_start(&err) < 0) {
        tap_ok(false, "Ruby starts: %s", err.msg);
        return tap_done();
    }
    table();
    every_word();
    code();
    libraries();
    bytes();
    opcodes();
    methods();
    shadows();
    return tap_done();
}
