/* SPDX-License-Identifier: Apache-2.0 */
/* `cordon check`: judge code without running it. Each language has its own judge; this is the table of
 * options before them. */
#include "check.h"

#include "commands.h"
#include "languages.h"
#include "options.h"
#include "result.h"

#include <stdio.h>
#include <string.h>

static void help(const struct option_row *rows, size_t count)
{
    puts("usage: cordon check [--lang LANG] [OPTIONS] [FILE | - | -c CODE | -e EXPR]\n\n"
         "Judges a program by the rules of a profile, with the language's own parser, inside the\n"
         "jail; nothing of it runs. Every finding has its line, its rule and what to write "
         "instead.\n"
         "Conditions (--lang expr): one a line, or one over several lines in parentheses; blank\n"
         "lines and lines that begin with # are skipped.\n");
    options_print(rows, count);
    exits_print(EXITS_CHECK);
    puts("\n  cordon check program.py\n"
         "  cordon check --profile standard --json - < program.py\n"
         "  cordon check --lang expr -e \"ctx['status'] == 'ok'\"");
}

/* Whether what was said goes with the language. */
static int fits_language(const struct check_options *o, const struct language *l, struct err *err)
{
    if (l->worker && (o->schema || o->expr))
        return err_set(err, ERR_USAGE, "--schema and --expr are for --lang expr");
    if (!l->worker && o->code)
        return err_set(err, ERR_USAGE, "--code is a program; a condition is -e EXPR");
    if (!l->worker && (o->profile || o->policy || o->workspace))
        return err_set(err, ERR_USAGE,
                       "--profile, --policy and --workspace are not for --lang expr");
    return 0;
}

int cmd_check(int argc, char **argv)
{
    struct check_options o = {0};
    struct option_list words = {0};
    struct err err = ERR_INIT;
    const char *lang = NULL;
    const struct language *l = language_default();
    bool wants_help = false;
    const struct option_row rows[] = {
        {"code", OPTION_STRING, &o.code, "CODE", "the program itself, instead of a FILE"},
        {"lang", OPTION_STRING, &lang, "LANG", languages_help(true)},
        {"profile", OPTION_STRING, &o.profile, "NAME",
         "the rules: strict, locked, standard, open (strict)"},
        {"intake", OPTION_STRING, &o.intake, "HOW",
         "text: find the program in a model's answer; source: the file is the program"},
        {"policy", OPTION_STRING, &o.policy, "FILE", "a policy on top of the machine's"},
        {"workspace", OPTION_STRING, &o.workspace, "W",
         "the program would run in this workspace: imports that find nothing are told"},
        {"schema", OPTION_STRING, &o.schema, "FILE",
         "expr: declared keys (default: the shipped ones)"},
        {"expr", OPTION_STRING, &o.expr, "EXPR", "expr: this condition instead of a file"},
        {"json", OPTION_FLAG, &o.json, NULL, "print one JSON object"},
        {"help", OPTION_FLAG, &wants_help, NULL, "this text"},
    };
    int r = options_parse_mixed(argc, argv, rows, sizeof rows / sizeof *rows, &words, &err);
    if (r == 0 && wants_help) {
        help(rows, sizeof rows / sizeof *rows);
        return EXIT_DONE;
    }
    if (r == 0 && words.count + (o.code != NULL) + (o.expr != NULL) > 1)
        r = err_set(&err, ERR_USAGE, "one FILE, -c CODE or -e EXPR, not more; see --help");
    o.file = words.count ? words.items[0] : "-";
    if (r == 0)
        r = languages_choose(lang     ? lang
                             : o.expr ? "expr"
                                      : NULL,
                             o.code ? NULL : o.file, true, &l, &err);
    if (r == 0)
        r = fits_language(&o, l, &err);
    if (r < 0)
        return result_unjudged("cordon check", o.json, &err);
    o.lang = lang;
    o.language = l;
    return l->worker ? check_program(&o) : check_expr(&o);
}
