/* SPDX-License-Identifier: Apache-2.0 */
/* The order: bytes, then the bundle's `link`, which is asked again while it needs files of the workspace. Its answer is an object of the judge's own
 * context; of it only strings leave that context. */
#include "judge.h"

#include "base/buf.h"
#include "base/jsonw.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "check/sentence.h"
#include "engine.h"
#include "files.h"
#include "judge/bundle.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENTRY                                                                                      \
    "/workspace/main.js" /* what the program is called to the judge: imports are relative to it */

#define LINKER "cordon:link"

enum { ROUNDS = 600 }; /* of files that files need: the judge takes 500 */

static JSObjectRef link_function;

int js_judge_start(struct err *err)
{
    static const char get[] = "CordonJudge.link";
    JSGlobalContextRef ctx = js_engine_judge();
    if (link_function)
        return 0;
    if (!js_engine_evaluate(ctx, "cordon:judge", js_judge_bundle, js_judge_bundle_len, err))
        return err->code;
    JSValueRef value = js_engine_evaluate(ctx, "cordon:link", get, sizeof get - 1, err);
    if (!value || !JSValueIsObject(ctx, value))
        return err_set(err, ERR_STATE, "the judge of JavaScript is not there");
    JSValueProtect(ctx, value);
    link_function = JSValueToObject(ctx, value, NULL);
    return 0;
}

void js_judged_done(struct js_judged *judged)
{
    for (size_t i = 0; i < judged->count; i++) {
        if (judged->scripts[i].name)
            JSStringRelease(judged->scripts[i].name);
        if (judged->scripts[i].text)
            JSStringRelease(judged->scripts[i].text);
    }
    free(judged->scripts);
    *judged = (struct js_judged){0};
}

/* ---- findings ---- */

struct judging {
    const struct policy_profile *profile;
    const struct js_source *source;
    struct check_report *report;
    int bad; /* an error of ours */
};

static void find(struct judging *j, const char *rule, const char *hint, enum check_sentence what,
                 const char *operand, size_t len, unsigned line, unsigned column)
{
    const int r = check_report_say(j->report, rule, hint, what, operand, len, line, column);
    if (r < 0)
        j->bad = r;
}

/* What the bytes alone tell. False: they are no text. */
static bool read_bytes(struct judging *j)
{
    const struct js_source *s = j->source;
    const size_t good = utf8_valid_prefix(s->text, s->len);
    const char *nul = memchr(s->text, 0, s->len);
    char size[64];
    if (good < s->len) {
        find(j, CHECK_RULE_ENCODING, "save the program as UTF-8", CHECK_SAY_SYNTAX,
             "the program is not UTF-8", 24, 0, 0);
        return false;
    }
    if (nul) {
        find(j, CHECK_RULE_NUL, "take it out", CHECK_SAY_SYNTAX,
             "a character that ends the program", 33, 0, 0);
        return false;
    }
    const size_t characters = utf8_count(s->text, s->len);
    if (characters <= j->profile->source_max)
        return true;
    int n = snprintf(size, sizeof size, "%zu > %llu characters", characters,
                     (unsigned long long)j->profile->source_max);
    find(j, CHECK_RULE_SIZE, "write a shorter program", CHECK_SAY_SIZE, size, (size_t)n, 0, 0);
    return false;
}

/* A rule's second word says what it is about. */
static enum check_sentence sentence_of(const char *rule)
{
    static const struct {
        const char *begins;
        enum check_sentence what;
    } rows[] = {{"js.name.", CHECK_SAY_NAME},     {"js.attr.", CHECK_SAY_ATTRIBUTE},
                {"js.call.", CHECK_SAY_FUNCTION}, {CHECK_RULE_MISSING, CHECK_SAY_MISSING},
                {"js.module.", CHECK_SAY_IMPORT}, {"js.limit.", CHECK_SAY_SYNTAX}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strncmp(rule, rows[i].begins, strlen(rows[i].begins)) == 0)
            return rows[i].what;
    return CHECK_SAY_NAME;
}

static void add_finding(struct judging *j, JSContextRef ctx, JSValueRef one)
{
    size_t n, name_len;
    char *rule = js_text_string(ctx, one, "rule", &n), *hint = js_text_string(ctx, one, "hint", &n);
    char *name = js_text_string(ctx, one, "name", &name_len);
    if (rule && hint && name)
        find(j, rule, hint, sentence_of(rule), name, name_len,
             (unsigned)js_text_number(ctx, one, "line"),
             (unsigned)js_text_number(ctx, one, "column"));
    else
        j->bad = ERR_MEMORY;
    free(rule);
    free(hint);
    free(name);
}

static void add_syntax(struct judging *j, JSContextRef ctx, JSValueRef syntax)
{
    size_t len;
    char *said = js_text_string(ctx, syntax, "message", &len);
    if (!said)
        j->bad = ERR_MEMORY;
    else
        find(j, CHECK_RULE_SYNTAX, "write a whole program that parses", CHECK_SAY_SYNTAX, said, len,
             (unsigned)js_text_number(ctx, syntax, "line"),
             (unsigned)js_text_number(ctx, syntax, "column"));
    free(said);
}

static JSValueRef item(JSContextRef ctx, JSValueRef list, unsigned i)
{
    return JSObjectGetPropertyAtIndex(ctx, JSValueToObject(ctx, list, NULL), i, NULL);
}

static unsigned count_of(JSContextRef ctx, JSValueRef list)
{
    const double n = js_text_number(ctx, list, "length");
    return n > 0 && n < 1e6 ? (unsigned)n : 0;
}

/* A session that only computes has closed its table before its first call, or with it, whichever was sooner: no call opens a
 * file, so that none depends on that. */
static bool opens_no_file(const struct judging *j)
{
    return j->source->session && j->profile->compute_only;
}

static const char *missing_hint(const struct judging *j)
{
    return opens_no_file(j) ? "no session opens a file under this profile: write the code into the "
                              "call, give `cordon run` a folder by --in, or use --profile standard"
                            : "save the file first, or correct the path";
}

/* Whose text says `import(...)` with words that only the run knows may find at run time that there is none. */
static void add_missing(struct judging *j, JSContextRef ctx, JSValueRef one)
{
    size_t n, len;
    if (JSValueToBoolean(ctx, js_text_property(ctx, one, "dynamic")))
        return;
    char *rule = js_text_string(ctx, one, "rule", &n);
    char *name = js_text_string(ctx, one, "specifier", &len);
    const bool exports = rule && strcmp(rule, "js.module.export") == 0;
    if (rule && name)
        find(j, exports ? "js.module.export" : CHECK_RULE_MISSING,
             exports ? "correct the name" : missing_hint(j),
             exports ? CHECK_SAY_IMPORT : CHECK_SAY_MISSING, name, len,
             (unsigned)js_text_number(ctx, one, "line"),
             (unsigned)js_text_number(ctx, one, "column"));
    else
        j->bad = ERR_MEMORY;
    free(rule);
    free(name);
}

/* ---- asking ---- */

/* The kinds of a profile's rules that the bundle knows by these words. */
static const char *kind_word(enum policy_rule_kind kind)
{
    switch (kind) {
    case POLICY_NAME_DENY:
        return "name-deny";
    case POLICY_CALL_DENY:
        return "call-deny";
    case POLICY_ATTRIBUTE_DENY:
        return "attribute-deny";
    case POLICY_SUBSCRIPT_DENY:
        return "subscript-deny";
    case POLICY_MODULE_DENY:
        return "module-deny";
    case POLICY_IMPORT_ALLOW:
        return "module-allow";
    default:
        return NULL;
    }
}

/* Rules are a language's by their ids: an operator's own begin with js. */
static void write_rules(struct jsonw *w, const struct policy_profile *profile)
{
    jsonw_open(w, "deny", '[');
    for (size_t i = 0; i < profile->rule_count; i++) {
        const struct policy_rule *rule = &profile->rules[i];
        const char *kind = kind_word(rule->kind);
        if (!kind || strncmp(rule->id, "js.", 3) != 0)
            continue;
        jsonw_open(w, NULL, '{');
        jsonw_string(w, "kind", kind);
        jsonw_string(w, "name", rule->name);
        jsonw_string(w, "id", rule->id);
        jsonw_string(w, "hint", rule->hint);
        jsonw_close(w, '}');
    }
    jsonw_close(w, ']');
}

static int write_options(struct buf *to, const struct judging *j)
{
    struct jsonw w = {.out = to};
    jsonw_open(&w, NULL, '{');
    jsonw_string(&w, "language", j->source->typescript ? "typescript" : "javascript");
    jsonw_string(&w, "mode",
                 j->source->session  ? "session"
                 : j->source->module ? "module"
                                     : "script");
    jsonw_string(&w, "rules",
                 j->profile->guards                  ? "strict"
                 : policy_profile_judges(j->profile) ? "standard"
                                                     : "none");
    jsonw_bool(&w, "interrupts", j->source->session);
    write_rules(&w, j->profile);
    jsonw_close(&w, '}');
    return w.bad;
}

struct question {
    JSObjectRef files; /* path: text, or null where there is none */
    JSValueRef options;
};

static void give_file(JSContextRef ctx, const struct question *q, const char *path, JSValueRef text)
{
    JSStringRef key = js_text_new(path, strlen(path));
    JSObjectSetProperty(ctx, q->files, key, text, kJSPropertyAttributeNone, NULL);
    JSStringRelease(key);
}

static JSValueRef ask(JSContextRef ctx, const struct question *q, struct err *err)
{
    JSValueRef thrown = NULL,
               words[] = {js_text_value(ctx, ENTRY, sizeof ENTRY - 1), q->files, q->options};
    JSValueRef answer = JSObjectCallAsFunction(ctx, link_function, NULL, 3, words, &thrown);
    if (answer && !thrown && JSValueIsObject(ctx, answer))
        return answer;
    size_t len;
    char *said = thrown ? js_text_of(ctx, thrown, &len) : NULL;
    err_set(err, ERR_STATE, "the judge has no answer: %.160s", said ? said : "");
    free(said);
    return NULL;
}

/* What the answer needs of the workspace is added. False: it needs nothing. */
static bool add_files(const struct judging *j, JSContextRef ctx, JSValueRef answer,
                      const struct question *q)
{
    JSValueRef needs = js_text_property(ctx, answer, "needs");
    const unsigned count = count_of(ctx, needs);
    struct buf text;
    if (count == 0)
        return false;
    buf_init(&text, LIMIT_SOURCE + 1);
    for (unsigned i = 0; i < count; i++) {
        size_t len;
        char *path = js_text_of(ctx, item(ctx, needs, i), &len);
        if (path)
            give_file(ctx, q, path,
                      !opens_no_file(j) && js_files_read(path, &text)
                          ? js_text_value(ctx, text.data, text.len)
                          : JSValueMakeNull(ctx));
        free(path);
    }
    buf_done(&text);
    return true;
}

static void add_findings(struct judging *j, JSContextRef ctx, JSValueRef answer)
{
    JSValueRef list = js_text_property(ctx, answer, "findings"),
               missing = js_text_property(ctx, answer, "missing"),
               syntax = js_text_property(ctx, answer, "syntax");
    for (unsigned i = 0; i < count_of(ctx, list); i++)
        add_finding(j, ctx, item(ctx, list, i));
    for (unsigned i = 0; i < count_of(ctx, missing); i++)
        add_missing(j, ctx, item(ctx, missing, i));
    if (JSValueIsObject(ctx, syntax) && j->report->count == 0)
        add_syntax(j, ctx, syntax);
}

/* ---- what runs ---- */

static enum js_script_kind kind_of(const char *word)
{
    return strcmp(word, "module") == 0 ? JS_SCRIPT_MODULE
           : strcmp(word, "link") == 0 ? JS_SCRIPT_LINK
                                       : JS_SCRIPT_PROGRAM;
}

/* The name that a stack has for it: a file's path, and what the program is called to its user. */
static int take_script(const struct judging *j, JSContextRef ctx, JSValueRef one,
                       struct js_script *ret)
{
    size_t n;
    char *kind = js_text_string(ctx, one, "kind", &n), *path = js_text_string(ctx, one, "path", &n);
    if (kind && path) {
        const char *name = strcmp(path, ENTRY) == 0 ? j->source->name : path;
        ret->kind = kind_of(kind);
        ret->name = ret->kind == JS_SCRIPT_LINK ? js_text_new(LINKER, sizeof LINKER - 1)
                                                : js_text_new(name, strlen(name));
        ret->text = JSValueToStringCopy(ctx, js_text_property(ctx, one, "text"), NULL);
    }
    free(kind);
    free(path);
    return ret->name && ret->text ? 0 : ERR_MEMORY;
}

static int take_scripts(const struct judging *j, JSContextRef ctx, JSValueRef answer,
                        struct js_judged *ret)
{
    JSValueRef list = js_text_property(ctx, answer, "scripts");
    const unsigned count = count_of(ctx, list);
    ret->scripts = calloc(count + 1, sizeof *ret->scripts);
    if (!ret->scripts)
        return ERR_MEMORY;
    ret->value = JSValueToBoolean(ctx, js_text_property(ctx, answer, "value"));
    ret->async = JSValueToBoolean(ctx, js_text_property(ctx, answer, "async"));
    while (ret->count < count) {
        const size_t i = ret->count++;
        if (take_script(j, ctx, item(ctx, list, (unsigned)i), &ret->scripts[i]) < 0)
            return ERR_MEMORY;
    }
    return 0;
}

static int judge_text(struct judging *j, struct js_judged *ret, struct err *err)
{
    JSContextRef ctx = js_engine_judge();
    struct buf options;
    buf_init(&options, LIMIT_SOURCE);
    int r = write_options(&options, j);
    const struct question q = {.files = JSObjectMake(ctx, NULL, NULL),
                               .options = js_text_value(ctx, options.data, options.len)};
    give_file(ctx, &q, ENTRY, js_text_value(ctx, j->source->text, j->source->len));
    JSValueRef answer = NULL;
    for (int rounds = 0; r == 0 && rounds < ROUNDS; rounds++) {
        answer = ask(ctx, &q, err);
        if (!answer)
            r = err->code;
        else if (!add_files(j, ctx, answer, &q))
            break;
    }
    if (r == 0) {
        add_findings(j, ctx, answer);
        check_report_end(j->report);
        if (check_report_safe(j->report))
            r = take_scripts(j, ctx, answer, ret);
    }
    buf_done(&options);
    return r;
}

int js_judge_warm(const struct policy_profile *profile, bool typescript, struct err *err)
{
    static const char get[] = "CordonJudge.warm";
    JSGlobalContextRef ctx = js_engine_judge();
    const struct js_source source = {.typescript = typescript};
    const struct judging j = {.profile = profile, .source = &source};
    JSValueRef thrown = NULL,
               warm = js_engine_evaluate(ctx, "cordon:link", get, sizeof get - 1, err);
    struct buf options;
    buf_init(&options, LIMIT_SOURCE);
    if (warm && write_options(&options, &j) == 0) {
        JSValueRef words[] = {js_text_value(ctx, options.data, options.len)};
        JSObjectCallAsFunction(ctx, JSValueToObject(ctx, warm, NULL), NULL, 1, words, &thrown);
    }
    buf_done(&options);
    return warm && !thrown ? 0 : err_set(err, ERR_STATE, "the judge does not judge its own texts");
}

int js_judge(const struct policy_profile *profile, const struct js_source *source,
             struct check_report *report, struct js_judged *ret, struct err *err)
{
    struct js_source text = *source;
    if (text.len >= 3 && memcmp(text.text, "\xef\xbb\xbf", 3) == 0) {
        text.text += 3;
        text.len -= 3;
    }
    struct judging j = {.profile = profile, .source = &text, .report = report};
    int r = 0;
    *ret = (struct js_judged){0};
    if (read_bytes(&j))
        r = judge_text(&j, ret, err);
    else
        check_report_end(report);
    if (r == 0 && j.bad)
        r = j.bad;
    if (r == 0 && check_report_safe(report) && ret->count == 0)
        r = err_set(err, ERR_STATE, "a clean report on nothing");
    if (r < 0) {
        js_judged_done(ret);
        if (!err->code)
            err_set(err, r, "no memory to judge %zu bytes", text.len);
    }
    return r;
}

/* Where TEXT ends, as the parser counts. */
static void end_of(const char *text, unsigned *ret_line, unsigned *ret_column)
{
    const char *last = strrchr(text, '\n');
    *ret_line = 1;
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
        (*ret_line)++;
    last = last ? last + 1 : text;
    *ret_column = 1 + (unsigned)utf8_count(last, strlen(last));
}

/* A parser that meets the end of a text which could go on says so by the place; what is not closed has sentences of its own. */
static bool may_go_on(const struct check_finding *f, const char *text)
{
    unsigned line, column;
    end_of(text, &line, &column);
    return strcmp(f->rule, CHECK_RULE_SYNTAX) == 0 &&
           ((f->line == line && f->column >= column) ||
            strstr(f->message, "Unterminated template") ||
            strstr(f->message, "Unterminated comment"));
}

bool js_judge_incomplete(const struct policy_profile *profile, const char *text, bool typescript)
{
    struct check_report report;
    struct js_judged judged;
    struct err err = ERR_INIT;
    const struct js_source source = {
        .name = "-", .text = text, .len = strlen(text), .session = true, .typescript = typescript};
    check_report_init(&report);
    const bool part = js_judge(profile, &source, &report, &judged, &err) == 0 &&
                      report.count == 1 && may_go_on(&report.findings[0], text);
    js_judged_done(&judged);
    check_report_done(&report);
    return part;
}
