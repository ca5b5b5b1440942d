/* SPDX-License-Identifier: Apache-2.0 */
/* Texts between C and the engine, and the judge as C calls it, in an engine without a jail: nothing that is judged here runs. What the judge says in words
 * is shown by judge/test, under Node; here it runs in the engine that it is for. */
#include "base/sanitized.h"
#include "base/tap.h"
#include "engine.h"
#include "judge.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>

NO_SEARCH_FOR_LEAKS

/* ---- texts ---- */

static void comes_back(const char *text, size_t len, const char *wanted, size_t wanted_len,
                       size_t units, const char *what)
{
    size_t n = 0;
    JSStringRef made = js_text_new(text, len);
    char *back = made ? js_text_utf8(made, &n) : NULL;
    tap_ok(back && n == wanted_len && memcmp(back, wanted, n) == 0, "%s comes back", what);
    tap_eq_int((long long)(made ? JSStringGetLength(made) : 0), (long long)units,
               "%s has %zu units in the engine", what, units);
    free(back);
    if (made)
        JSStringRelease(made);
}

static void texts(void)
{
    static const char ascii[] = "let a = 1;", nul[] = "a\0b", wide[] = "\xc3\xa4\xe2\x82\xac",
                      astral[] = "x\xf0\x9f\x98\x80y", bad[] = "a\xff\xc3",
                      fixed[] = "a\xef\xbf\xbd\xef\xbf\xbd";
    comes_back(ascii, sizeof ascii - 1, ascii, sizeof ascii - 1, 10, "plain text");
    comes_back("", 0, "", 0, 0, "an empty text");
    comes_back(nul, 3, nul, 3, 3, "a text with a NUL");
    comes_back(wide, 5, wide, 5, 2, "a text of two and three bytes a character");
    comes_back(astral, 6, astral, 6, 4, "a character outside of the basic plane");
    comes_back(bad, 3, fixed, 7, 3, "what is not UTF-8, as U+FFFD,");
    const JSChar half[] = {'a', 0xd83d, 'b'};
    size_t n;
    JSStringRef made = JSStringCreateWithCharacters(half, 3);
    char *text = js_text_utf8(made, &n);
    tap_ok(text && n == 5 &&
               memcmp(text,
                      "a\xef\xbf\xbd"
                      "b",
                      5) == 0,
           "half of a surrogate pair is U+FFFD");
    free(text);
    JSStringRelease(made);
}

/* ---- the judge ---- */

struct verdict {
    char rule[64];
    unsigned line, column;
    struct js_judged judged;
};

static void judge(const char *text, const char *profile, bool session, struct verdict *ret)
{
    struct check_report report;
    struct err err = ERR_INIT;
    const struct js_source source = {
        .name = "own.js", .text = text, .len = strlen(text), .session = session};
    *ret = (struct verdict){0};
    check_report_init(&report);
    if (js_judge(policy_profile_find(profile), &source, &report, &ret->judged, &err) < 0)
        snprintf(ret->rule, sizeof ret->rule, "%.60s", err.msg);
    else if (report.count > 0) {
        snprintf(ret->rule, sizeof ret->rule, "%s", report.findings[0].rule);
        ret->line = report.findings[0].line;
        ret->column = report.findings[0].column;
    }
    check_report_done(&report);
}

static void refuses(const char *text, const char *rule, unsigned line, unsigned column)
{
    struct verdict v;
    judge(text, "standard", false, &v);
    tap_ok(strcmp(v.rule, rule) == 0 && v.line == line && v.column == column && v.judged.count == 0,
           "%s is refused at %u:%u, and nothing is made of it (%s %u:%u)", rule, line, column,
           v.rule, v.line, v.column);
    js_judged_done(&v.judged);
}

/* The text of script I, each line on its own as in TEXT: the first letters of each are looked at. */
static bool on_lines(const struct js_judged *judged, size_t i, const char *const *words,
                     size_t count)
{
    size_t len;
    char *text = i < judged->count ? js_text_utf8(judged->scripts[i].text, &len) : NULL;
    const char *at = text;
    bool good = text != NULL;
    for (size_t n = 0; good && n < count; n++) {
        const size_t end = strcspn(at, "\n");
        const char *found = words[n][0] ? strstr(at, words[n]) : at;
        good = found && found < at + end + 1;
        at += end + (at[end] == '\n');
    }
    free(text);
    return good;
}

static void scripts(void)
{
    static const char *const words[] = {"", "const a", "", "return", "a", "", "f()"};
    struct verdict v;
    judge("// c\nconst a = 1; function f() {\n\n  return (\n    a\n  );\n} f()\n", "strict", false,
          &v);
    tap_ok(v.judged.count == 1 && v.judged.scripts[0].kind == JS_SCRIPT_PROGRAM && v.judged.value &&
               !v.judged.async,
           "a program is one script, whose last value is shown");
    tap_ok(v.judged.count == 1 && JSStringIsEqualToUTF8CString(v.judged.scripts[0].name, "own.js"),
           "the script of a program has its name");
    tap_ok(on_lines(&v.judged, 0, words, 7),
           "what stands on a line of the text stands on that line of the script");
    js_judged_done(&v.judged);
    judge("await 0;\n\nfunction later() {}\n", "strict", true, &v);
    static const char *const declared[] = {"", "", "function later"};
    tap_ok(v.judged.count == 2 && v.judged.async && on_lines(&v.judged, 0, declared, 3),
           "await outside of functions makes two scripts: declarations first, each on its line");
    js_judged_done(&v.judged);
    judge("export const a = 1;\n", "strict", false, &v);
    tap_ok(v.judged.count == 2 && v.judged.scripts[0].kind == JS_SCRIPT_MODULE &&
               v.judged.scripts[1].kind == JS_SCRIPT_LINK,
           "a module is a script, and one that links it");
    js_judged_done(&v.judged);
}

int main(void)
{
    struct err err = ERR_INIT;
    texts();
    tap_ok(js_engine_start(&err) == 0 && js_judge_start(&err) == 0, "engine and judge start");
    tap_ok(js_engine_start(&err) == 0 && js_judge_start(&err) == 0, "a second start does nothing");
    scripts();
    refuses("\n eval('1')", "js.name.eval", 2, 2);
    refuses("const x = {};\nx.__proto__", "js.attr.__proto__", 2, 1);
    refuses("let a = ;", "syntax", 1, 9);
    refuses("import './nothing.mjs'", "js.module.missing", 1, 1);
    refuses("\n\n$cordonFlag", "js.form.own-name", 3, 1);
    tap_ok(js_judge_incomplete(policy_profile_find("strict"), "function f() {", false) &&
               !js_judge_incomplete(policy_profile_find("strict"), "f(); )", false),
           "a text that may go on is told from one that is broken");
    return tap_done();
}
