/* SPDX-License-Identifier: Apache-2.0 */
/* The order: bytes, then the patterns where they hold for the whole text, then the compiler, then its instructions. A text
 * that does not compile is judged by the patterns alone, whatever the profile: dangerous and broken is dangerous. */
#include "ruby_first.h"

#include "judge_inside.h"
#include "rules.h"

#include <string.h>

const struct rb_rule rb_rules[] = {
#define RULE(id, pattern, methods, constants, hint) {id, pattern, methods, constants, hint},
    RB_RULES(RULE)
#undef RULE
        {0}};

void rb_judge_find(struct rb_judge *j, const char *rule, const char *hint, enum check_sentence what,
                   const char *operand, size_t len, unsigned line, unsigned column)
{
    for (size_t i = 0; i < j->report->count; i++)
        if (column == 0 && j->report->findings[i].line == line &&
            strcmp(j->report->findings[i].rule, rule) == 0)
            return;
    const int r = check_report_say(j->report, rule, hint, what, operand, len, line, column);
    if (r < 0)
        j->bad = r;
}

/* ---- the compiler ---- */

static VALUE compile(VALUE from)
{
    const struct rb_source *s = (const struct rb_source *)from;
    VALUE class = rb_path2class("RubyVM::InstructionSequence");
    VALUE text = rb_utf8_str_new(s->text, (long)s->len), path = rb_utf8_str_new_cstr(s->path);
    return rb_funcall(class, rb_intern("compile"), 3, text, path, path);
}

/* The text inside the block of a new module; its lines keep their numbers. */
static VALUE compile_module(VALUE from)
{
    const struct rb_source *s = (const struct rb_source *)from;
    VALUE class = rb_path2class("RubyVM::InstructionSequence");
    VALUE text = rb_utf8_str_new_cstr("Module.new do\n"), path = rb_utf8_str_new_cstr(s->path);
    rb_str_cat(text, s->text, (long)s->len);
    rb_str_cat_cstr(text, "\nend\n");
    return rb_funcall(class, rb_intern("compile"), 4, text, path, path, INT2FIX(0));
}

/* The method as it was before any code of a guest: a session's next call asks for it again. */
static VALUE instructions(VALUE code)
{
    static VALUE unbound;
    static ID bind_call;
    if (!unbound) {
        rb_gc_register_address(&unbound);
        unbound = rb_funcall(rb_path2class("RubyVM::InstructionSequence"),
                             rb_intern("instance_method"), 1, ID2SYM(rb_intern("to_a")));
        bind_call = rb_intern("bind_call");
    }
    return rb_funcall(unbound, bind_call, 1, code);
}

static VALUE message_of(VALUE exception)
{
    return rb_obj_as_string(rb_funcall(exception, rb_intern("message"), 0));
}

/* `PATH:LINE: what` over several lines; the first one is the finding. No code of a program has run: the exception is
 * Ruby's. */
static void not_compiled(struct rb_judge *j, const char *path)
{
    int state = 0;
    VALUE exception = rb_errinfo();
    rb_set_errinfo(Qnil);
    VALUE text = rb_protect(message_of, exception, &state);
    const char *said = state ? "" : RSTRING_PTR(text);
    size_t len = state ? 0 : (size_t)RSTRING_LEN(text), at = strlen(path);
    unsigned line = 0;
    rb_set_errinfo(Qnil);
    if (len > at && strncmp(said, path, at) == 0 && said[at] == ':') {
        for (at++; at < len && said[at] >= '0' && said[at] <= '9'; at++)
            line = line < 1000000 ? 10 * line + (unsigned)(said[at] - '0') : line;
        while (at < len && (said[at] == ':' || said[at] == ' '))
            at++;
        said += at;
        len -= at;
    }
    const char *end = memchr(said, '\n', len);
    rb_judge_find(j, CHECK_RULE_SYNTAX, "write a whole program that Ruby can compile",
                  CHECK_SAY_SYNTAX,
                  len ? said : "the program is nested too deeply for the compiler",
                  len ? (end ? (size_t)(end - said) : len) : 49, line, 0);
}

/* A text that compiles by itself ends no block but its own, so the module's is what the text stands in. That code is what
 * runs: it is judged, too. */
static void judge_method(struct rb_judge *j, const struct rb_source *source)
{
    int state = 0;
    VALUE code = rb_protect(compile_module, (VALUE)source, &state);
    VALUE rows = state ? 0 : rb_protect(instructions, code, &state);
    if (state) {
        not_compiled(j, source->path);
        return;
    }
    rb_judge_code(j, rows);
    j->ret->code = code;
    if (!j->defines && j->report->count == 0)
        rb_judge_find(j, CHECK_RULE_STRUCTURE, "write the method that is called: def NAME ... end",
                      CHECK_SAY_MISSING_METHOD, source->method, strlen(source->method), 0, 0);
}

static void judge_text(struct rb_judge *j, const struct rb_source *source)
{
    int state = 0;
    if (j->plain)
        rb_judge_patterns(j);
    VALUE code = rb_protect(source->compile ? source->compile : compile, (VALUE)source, &state);
    VALUE rows = state ? 0 : rb_protect(instructions, code, &state);
    if (!state) {
        rb_judge_code(j, rows);
        j->ret->code = code;
        if (source->method)
            judge_method(j, source);
        return;
    }
    if (!j->plain)
        rb_judge_patterns(j);
    const bool dangerous = j->report->count > 0;
    if (dangerous)
        rb_set_errinfo(Qnil);
    else
        not_compiled(j, source->path);
}

int rb_judge(const struct policy_profile *profile, const struct rb_source *source,
             struct check_report *report, struct rb_judged *ret, struct err *err)
{
    struct rb_source text = *source;
    if (text.len >= 3 && memcmp(text.text, "\xef\xbb\xbf", 3) == 0) {
        text.text += 3;
        text.len -= 3;
    }
    struct rb_judge j = {.profile = profile,
                         .text = text.text,
                         .len = text.len,
                         .method = text.method,
                         .report = report,
                         .ret = ret,
                         .ruled = policy_profile_judges(profile),
                         .plain = profile->guards};
    *ret = (struct rb_judged){0};
    if (rb_judge_bytes(&j))
        judge_text(&j, &text);
    check_report_end(report);
    if (!check_report_safe(report))
        ret->code = 0;
    return j.bad ? err_set(err, j.bad, "no memory to judge %zu bytes", text.len) : 0;
}

bool rb_judge_again(const struct policy_profile *profile, const struct rb_source *source,
                    unsigned long code)
{
    struct check_report report;
    struct rb_judged judged = {0};
    struct rb_judge j = {.profile = profile,
                         .text = source->text,
                         .len = source->len,
                         .report = &report,
                         .ret = &judged,
                         .ruled = policy_profile_judges(profile),
                         .plain = profile->guards};
    check_report_init(&report);
    rb_judge_code(&j, instructions(code));
    check_report_end(&report);
    const bool clean = !j.bad && check_report_safe(&report);
    check_report_done(&report);
    return clean;
}
