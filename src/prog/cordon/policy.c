/* SPDX-License-Identifier: Apache-2.0 */
/* `cordon policy`: what is in force and where it came from; what is wrong with a file before it is. */
#include "base/jsonw.h"
#include "base/limits.h"
#include "base/near.h"
#include "commands.h"
#include "options.h"
#include "output/visible.h"
#include "policy/check.h"
#include "policy/schema.h"
#include "policy/show.h"
#include "result.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct policy_options {
    bool json, yaml, origin, help;
    const char *policy;
    struct option_list words;
};

static int complain(const char *text)
{
    result_complain("cordon policy", text);
    return EXIT_USAGE;
}

static int put(const struct buf *out)
{
    return fwrite(out->data ? out->data : "", 1, out->len, stdout) == out->len ? EXIT_DONE
                                                                               : EXIT_FAILED;
}

/* ---- show ---- */

/* PART is no section and no key of a policy. */
static int no_part(const char *part)
{
    enum { SECTIONS = 32, PARTS = 256 };
    char sections[SECTIONS][POLICY_KEY_MAX], line[200];
    const char *parts[PARTS];
    size_t nsections = 0, n = 0;
    for (size_t i = 0; policy_named[i] && n < PARTS; i++)
        parts[n++] = policy_named[i];
    for (size_t i = 0; i < policy_nkeys && n + 1 < PARTS; i++) {
        const char *path = policy_keys[i].path;
        char section[POLICY_KEY_MAX];
        snprintf(section, sizeof section, "%.*s", (int)strcspn(path, "."), path);
        parts[n++] = path;
        if (nsections < SECTIONS && (!nsections || strcmp(sections[nsections - 1], section) != 0)) {
            memcpy(sections[nsections], section, sizeof section);
            parts[n++] = sections[nsections++];
        }
    }
    const char *near = near_word(part, parts, n);
    snprintf(line, sizeof line, "there is no '%.60s' in a policy; %s%s%s", part,
             near ? "did you mean '" : "cordon policy show prints all of it", near ? near : "",
             near ? "'?" : "");
    return complain(line);
}

static int show(const struct policy_options *o)
{
    const char *part = o->words.count > 1 ? o->words.items[1] : NULL;
    struct policy_store *store = NULL;
    struct err err = ERR_INIT;
    struct buf out;
    bool found = false;
    if (o->words.count > 2)
        return complain("show takes one part of the policy: cordon policy show limits");
    if (policy_open(o->policy, &store, &err) < 0)
        return complain(err.msg);
    buf_init(&out, 64 * MIB);
    int r = o->json
                ? policy_show_json(policy_now(store), part, o->origin, &out, &found)
                : policy_show_yaml(policy_now(store), part, o->origin || !o->yaml, &out, &found);
    int status = EXIT_FAILED;
    if (r < 0) {
        complain("no memory");
    } else if (!found) {
        status = no_part(part);
    } else {
        status = put(&out);
    }
    buf_done(&out);
    policy_close(store);
    return status;
}

/* ---- check ---- */

static int line_of(const struct policy_problem *p, struct buf *out)
{
    struct output_visible v = {.one_line = true};
    char place[40] = "";
    if (p->line)
        snprintf(place, sizeof place, ":%u:%u", p->line, p->column);
    int r = output_visible_add(&v, p->file, strlen(p->file), out);
    r = r < 0 ? r : buf_printf(out, "%s: %s: ", place, p->warning ? "warning" : "error");
    r = r < 0 ? r : output_visible_add(&v, p->text, strlen(p->text), out);
    r = r < 0 ? r : output_visible_end(&v, out);
    return r < 0 ? r : buf_str(out, "\n");
}

static int text_report(const char *file, const struct policy_problems *p, size_t warnings,
                       struct buf *out)
{
    int r = 0;
    for (size_t i = 0; i < p->count && r == 0; i++)
        r = line_of(&p->items[i], out);
    if (r == 0 && p->dropped)
        r = buf_printf(out, "... and %zu more\n", p->dropped);
    if (r == 0)
        r = p->errors ? buf_printf(out, "%s: %zu error%s, %zu warning%s\n", file, p->errors,
                                   p->errors == 1 ? "" : "s", warnings, warnings == 1 ? "" : "s")
                      : buf_printf(out, "%s: good, %zu warning%s\n", file, warnings,
                                   warnings == 1 ? "" : "s");
    return r;
}

static int json_report(const char *file, const struct policy_problems *p, size_t warnings,
                       struct buf *out)
{
    struct jsonw j = {.out = out};
    jsonw_open(&j, NULL, '{');
    jsonw_string(&j, "file", file);
    jsonw_bool(&j, "ok", p->errors == 0);
    jsonw_int(&j, "errors", (int64_t)p->errors);
    jsonw_int(&j, "warnings", (int64_t)warnings);
    jsonw_open(&j, "problems", '[');
    for (size_t i = 0; i < p->count; i++) {
        jsonw_open(&j, NULL, '{');
        jsonw_string(&j, "severity", p->items[i].warning ? "warning" : "error");
        jsonw_string(&j, "file", p->items[i].file);
        jsonw_int(&j, "line", p->items[i].line);
        jsonw_int(&j, "column", p->items[i].column);
        jsonw_string(&j, "message", p->items[i].text);
        jsonw_close(&j, '}');
    }
    jsonw_close(&j, ']');
    jsonw_close(&j, '}');
    return j.bad ? j.bad : buf_str(out, "\n");
}

static int check_one(const struct policy_options *o, const char *file)
{
    struct policy_problems problems;
    struct err err = ERR_INIT;
    struct buf out;
    int status = EXIT_FAILED;
    policy_problems_init(&problems);
    buf_init(&out, 16 * MIB);
    if (policy_check_file(file, &problems, &err) < 0) {
        char line[400];
        if (err.sys_errno == ENOENT && !strpbrk(file, "./"))
            snprintf(line, sizeof line,
                     "%.200s; check takes files; one that is shipped is shown by `cordon policy "
                     "show --policy %.60s`",
                     err.msg, file);
        else
            snprintf(line, sizeof line, "%.399s", err.msg);
        status = complain(line);
    } else {
        size_t warnings = problems.count + problems.dropped - problems.errors;
        int r = o->json ? json_report(file, &problems, warnings, &out)
                        : text_report(file, &problems, warnings, &out);
        status = r < 0 ? complain("no memory") : put(&out);
        if (status == EXIT_DONE && problems.errors)
            status = EXIT_FAILED;
    }
    buf_done(&out);
    policy_problems_done(&problems);
    return status;
}

static int check(const struct policy_options *o)
{
    int worst = EXIT_DONE;
    if (o->words.count < 2)
        return complain("check needs a file: cordon policy check FILE");
    if (o->origin || o->yaml || o->policy)
        return complain("check takes --json and files, nothing else");
    for (size_t i = 1; i < o->words.count; i++) {
        int status = check_one(o, o->words.items[i]);
        worst = status > worst ? status : worst;
    }
    return worst;
}

int cmd_policy(int argc, char **argv)
{
    struct policy_options o = {0};
    struct err err = ERR_INIT;
    const struct option_row rows[] = {
        {"policy", OPTION_STRING, &o.policy, "FILE|NAME",
         "show it with this file on top; max-safety and production are shipped by name"},
        {"yaml", OPTION_FLAG, &o.yaml, NULL, "YAML, without the origins: a policy file"},
        {"json", OPTION_FLAG, &o.json, NULL, "one JSON object"},
        {"origin", OPTION_FLAG, &o.origin, NULL, "with where each value came from"},
        {"help", OPTION_FLAG, &o.help, NULL, "this text"},
    };
    const size_t count = sizeof rows / sizeof *rows;
    if (options_parse_mixed(argc, argv, rows, count, &o.words, &err) < 0)
        return complain(err.msg);
    if (o.help) {
        puts("usage: cordon policy show [PART] [OPTIONS]\n"
             "       cordon policy check FILE... [--json]\n\n"
             "show prints the policy in force, whole, with the origin of each value: built-in, or "
             "the\n"
             "file and line. PART is a section (limits), a key (limits.timeout) or a thing by its "
             "name\n"
             "(roles.explore, profiles.strict). check reports everything that is wrong with a "
             "file,\n"
             "with line and column, and what is unwise.\n");
        options_print(rows, count);
        puts("\nFiles, later ones win: /etc/cordon/policy.yaml, "
             "$XDG_CONFIG_HOME/cordon/policy.yaml,\n"
             "--policy. Warnings do not change the exit status.");
        exits_print(EXITS_OTHER);
        return EXIT_DONE;
    }
    const char *what = o.words.count ? o.words.items[0] : "";
    if (o.json && o.yaml)
        return complain("--json or --yaml, not both");
    if (strcmp(what, "show") == 0)
        return show(&o);
    if (strcmp(what, "check") == 0)
        return check(&o);
    static const char *const verbs[] = {"show", "check"};
    options_no_verb(o.words.count ? what : NULL, verbs, 2, &err);
    return complain(err.msg);
}
