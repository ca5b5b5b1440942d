/* SPDX-License-Identifier: Apache-2.0 */
/* Reports: order, ceilings, and the sentences of findings. */
#include "base/tap.h"
#include "check/report.h"
#include "check/sentence.h"

static void add(struct check_report *r, const char *rule, const char *message, uint32_t line,
                uint32_t column)
{
    const struct check_finding f = {rule, "input", "x", message, "do y", line, column};
    tap_eq_int(check_report_add(r, &f), 0, "a finding is added to a report: %s", message);
}

static void say(const struct check_report *r, const char *want_risk, const char *want_message,
                const char *want_json)
{
    struct buf b;
    buf_init(&b, 1 << 20);
    tap_eq_str(check_report_risk(r), want_risk, "the report has its risk");
    tap_eq_int(check_report_message(r, &b), 0, "the message of a finding is made");
    tap_eq_str(b.data, want_message, "the message of a finding is as expected");
    buf_reset(&b);
    tap_eq_int(check_report_print_json(r, &b), 0, "the JSON of a report is made");
    if (want_json)
        tap_eq_str(b.data, want_json, "the JSON of a report is as expected");
    buf_done(&b);
}

static void verdicts(void)
{
    struct check_report r;
    check_report_init(&r);
    check_report_end(&r);
    tap_ok(check_report_safe(&r), "nothing found is safe");
    say(&r, "safe", "Code passed validation",
        "{\"status\": \"ok\", \"layer\": null, \"is_safe\": true, \"risk_level\": \"safe\", "
        "\"blocked_operations\": [], \"message\": "
        "\"Code passed validation\", \"violations\": []}");
    check_report_done(&r);

    check_report_init(&r);
    add(&r, "py.module.os", "Blocked import: os", 2, 1);
    add(&r, "py.call.eval", "Blocked function: eval", 1, 5);
    add(&r, "py.call.eval", "Blocked function: eval", 1, 5);
    add(&r, "py.call.eval", "Blocked function: eval", 1, 9);
    check_report_end(&r);
    tap_eq_int(r.count, 3, "a finding that is repeated exactly is one");
    tap_eq_int(r.findings[0].column, 5, "findings are sorted by line and column");
    say(&r, "high", "Security violations: Blocked function: eval, Blocked import: os", NULL);
    struct check_place places[2] = {{0}};
    tap_eq_int(check_report_places(&r, 0, places, 2), 2, "the same finding has two places");
    tap_ok(places[0].column == 5 && places[1].column == 9, "the places of a finding are in order");
    tap_eq_int(check_report_places(&r, 1, NULL, 0), 0,
               "a finding that repeats another is no entry");
    tap_eq_int(check_report_places(&r, 0, places, 1), 2, "places that find no room are counted");
    struct buf b;
    buf_init(&b, 4096);
    tap_eq_int(check_report_print_text(&r, "a.py", &b), 0, "the text of a report is made");
    tap_eq_str(b.data,
               "a.py:1:5: Blocked function: eval [py.call.eval]\n    and at 1:9\n    do y\n"
               "a.py:2:1: Blocked import: os [py.module.os]\n    do y\n3 findings, risk high\n",
               "the text of a report is as expected");
    buf_done(&b);
    check_report_done(&r);

    check_report_init(&r);
    add(&r, "syntax", "Syntax error: invalid syntax (<unknown>, line 1)", 1, 3);
    check_report_end(&r);
    say(&r, "high", "Syntax error: invalid syntax (<unknown>, line 1)",
        "{\"status\": \"blocked\", \"layer\": \"input\", \"is_safe\": false, \"risk_level\": "
        "\"high\", \"blocked_operations\": "
        "[\"syntax_error\"], \"message\": \"Syntax error: invalid syntax (<unknown>, line 1)\", "
        "\"violations\": [{\"layer\": \"input\", \"rule\": \"syntax\", \"detail\": \"Syntax error: "
        "invalid syntax (<unknown>, line 1)\", \"operand\": \"x\", \"line\": 1, \"column\": 3, "
        "\"places\": [{\"line\": 1, \"column\": 3}], \"hint\": \"do y\"}]}");
    check_report_done(&r);

    check_report_init(&r);
    add(&r, "py.form.star-import", "Blocked: star import", 1, 1);
    check_report_end(&r);
    say(&r, "medium", "Security violations: Blocked: star import", NULL);
    check_report_done(&r);

    check_report_init(&r);
    add(&r, "size", "Code exceeds size limit (50KB)", 0, 0);
    check_report_end(&r);
    say(&r, "high", "Security violations: Code exceeds size limit (50KB)",
        "{\"status\": \"blocked\", \"layer\": \"input\", \"is_safe\": false, \"risk_level\": "
        "\"high\", \"blocked_operations\": [\"Code exceeds "
        "size limit (50KB)\"], \"message\": \"Security violations: Code exceeds size limit "
        "(50KB)\", \"violations\": [{\"layer\": \"input\", \"rule\": \"size\", \"detail\": \"Code "
        "exceeds size limit (50KB)\", \"operand\": \"x\", \"line\": null, \"column\": null, "
        "\"places\": [{\"line\": null, \"column\": null}], \"hint\": \"do y\"}]}");
    check_report_done(&r);
}

static void ceilings(void)
{
    static char longest[1 << 16];
    memset(longest, 'e', sizeof longest - 1);
    memcpy(longest + 1023, "\xc3\xa9", 2); /* a character that the cut would halve */
    struct check_report r;
    check_report_init(&r);
    int bad = 0;
    for (uint32_t i = 0; i < 5000; i++) { /* from the end of the source to its beginning */
        const struct check_finding f = {"py.call.eval", "input",  longest, longest,
                                        longest,        5000 - i, 1};
        bad |= check_report_add(&r, &f);
    }
    check_report_end(&r);
    tap_eq_int(bad, 0, "five thousand findings of 64 KB are added");
    tap_eq_int(r.count, CHECK_FINDINGS_MAX, "a hundred of five thousand findings are kept");
    tap_eq_int(r.dropped, 4900, "findings beyond a hundred are counted");
    tap_eq_int(strlen(r.findings[0].operand), 1023, "long text is cut at a whole character");
    tap_ok(!check_report_safe(&r), "a report with dropped findings is not safe");
    check_report_done(&r);

    check_report_init(&r);
    for (uint32_t i = 0; i < 150; i++) {
        const struct check_finding f = {"py.call.eval", "input", "eval", "m", "", 150 - i, 1};
        bad |= check_report_add(&r, &f);
    }
    check_report_end(&r);
    tap_ok(bad == 0 && r.findings[0].line == 1 && r.findings[99].line == 100,
           "the first hundred of the source are the ones kept");
    const struct check_finding nothing = {0};
    check_report_done(&r);
    check_report_init(&r);
    tap_eq_int(check_report_add(&r, &nothing), 0, "a finding of NULLs is added");
    check_report_end(&r);
    tap_eq_str(r.findings[0].rule, "", "a finding of NULLs has empty words");
    check_report_done(&r);
}

static void sentences(void)
{
    static const struct {
        enum check_sentence what;
        const char *operand, *want;
    } t[] = {
        {CHECK_SAY_FUNCTION, "eval", "Blocked function: eval"},
        {CHECK_SAY_IMPORT, "os", "Blocked import: os"},
        {CHECK_SAY_METACLASS, "metaclass", "Blocked: metaclass usage"},
        {CHECK_SAY_METHOD, "__get__", "Blocked descriptor method: __get__"},
        {CHECK_SAY_SIZE, "50KB", "Code exceeds size limit (50KB)"},
        {CHECK_SAY_SYNTAX, "bad\ninput\x1b[31m", "Syntax error: bad input [31m"},
    };
    char out[64];
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        check_sentence(t[i].what, t[i].operand, out, sizeof out);
        tap_eq_str(out, t[i].want, "sentence %zu of a finding is as expected", i);
    }
    check_operand("a\0b\xff\xe2\x80\xa8", 7, out, sizeof out);
    tap_eq_str(out, "a b? ", "an operand of odd bytes is made readable");
    check_operand("\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 12, out, 12);
    tap_eq_str(out, "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9...", "a long operand is cut, and says so");
}

int main(void)
{
    sentences();
    verdicts();
    ceilings();
    return tap_done();
}
