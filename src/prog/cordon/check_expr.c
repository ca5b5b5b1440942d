/* `cordon check --lang expr`: judge conditions without a context. A refusal blocks (exit status 3);
 * what the analysis found (always true, contradictions, misspelt enum values) is reported and does
 * not. */
#include "commands.h"
#include "expr_common.h"
#include "options.h"
#include "result.h"

#include <stdlib.h>
#include <string.h>

#define FINDINGS 64 /* printed for one condition */

struct report {
    bool json;
    const char *file;
    size_t conditions, refused, findings;
    FILE *violations, *found; /* JSON, collected */
};

static void refuse(struct report *r, const struct cordon_error *err, unsigned line,
                   const char *source, size_t len)
{
    expr_log_refusal(err, source, len);
    if (!r->json) {
        char name[600];
        snprintf(name, sizeof name, "%s:%u", r->file, line);
        expr_print_error(stdout, name, err, source, len);
    } else {
        fprintf(r->violations,
                "%s{\"layer\":\"input\",\"rule\":\"UnsafeExpressionError\",\"detail\":",
                r->refused ? "," : "");
        expr_json_string(r->violations, err->message, strlen(err->message));
        fprintf(r->violations,
                ",\"line\":%u,\"column\":%u,\"hint\":", line + (err->line ? err->line - 1 : 0),
                err->column);
        if (err->hint[0])
            expr_json_string(r->violations, err->hint, strlen(err->hint));
        else
            fputs("null", r->violations);
        fputs("}", r->violations);
    }
    r->refused++;
}

static void report_finding(struct report *r, const struct cordon_finding *f, unsigned line,
                           const char *source)
{
    const char *text = source + f->offset;
    size_t n = f->end - f->offset;
    if (!r->json) {
        printf("%s:%u:%zu: %s: %s: %.*s\n", r->file, line, f->offset + 1,
               cordon_finding_name(f->kind), f->message, (int)(n < 200 ? n : 200), text);
    } else {
        fprintf(r->found,
                "%s{\"kind\":\"%s\",\"line\":%u,\"column\":%zu,\"text\":", r->findings ? "," : "",
                cordon_finding_name(f->kind), line, f->offset + 1);
        expr_json_string(r->found, text, n);
        fputs(",\"message\":", r->found);
        expr_json_string(r->found, f->message, strlen(f->message));
        fputs("}", r->found);
    }
    r->findings++;
}

static int check_one(struct report *r, const struct cordon_schema *s, unsigned line,
                     const char *source, size_t len)
{
    static struct cordon_finding findings[FINDINGS];
    struct cordon_error err = {0};
    struct cordon_program *p;
    size_t size = cordon_compile_size(len);
    void *mem = malloc(size);
    r->conditions++;
    if (!mem)
        return 1;
    if (cordon_compile(s, source, len, mem, size, &p, &err)) {
        refuse(r, &err, line, source, len);
        free(mem);
        return 0;
    }
    size_t room = cordon_analyse_size(p);
    void *work = malloc(room);
    size_t n = work ? cordon_analyse(p, work, room, findings, FINDINGS) : 0;
    for (size_t i = 0; i < n && i < FINDINGS; i++)
        report_finding(r, &findings[i], line, source);
    free(work);
    free(mem);
    return work ? 0 : 1;
}

/* Whether the whole text is one condition, spread over lines inside its parentheses. */
static bool is_one(const struct cordon_schema *s, const struct text *t)
{
    size_t size = cordon_compile_size(t->len);
    void *mem = malloc(size);
    bool one = mem && cordon_validate(s, t->data, t->len, mem, size, NULL) == 0;
    free(mem);
    return one;
}

static int finish(struct report *r, char **violations, char **found)
{
    if (r->json) {
        fclose(r->violations);
        fclose(r->found);
        printf("{\"status\":\"%s\",\"layer\":%s,\"conditions\":%zu,\"violations\":[%s],"
               "\"findings\":[%s]}\n",
               r->refused ? "blocked" : "ok", r->refused ? "\"input\"" : "null", r->conditions,
               *violations, *found);
        free(*violations);
        free(*found);
    } else {
        printf("%zu conditions: %zu refused, %zu findings\n", r->conditions, r->refused,
               r->findings);
    }
    return r->refused ? 3 : 0;
}

static int complain(const char *text)
{
    result_complain("cordon check", text);
    return EXIT_USAGE;
}

int cmd_check(int argc, char **argv)
{
    const char *lang = NULL, *schema = NULL, *expr = NULL;
    struct report r = {0};
    struct option_list words = {0};
    struct err err = ERR_INIT;
    bool help = false;
    const struct option_row rows[] = {
        {"lang", OPTION_STRING, &lang, "LANG", "the language: expr (the only one so far)"},
        {"schema", OPTION_STRING, &schema, "FILE", "declared keys (default: the shipped ones)"},
        {"expr", OPTION_STRING, &expr, "EXPR", "this condition instead of a file; also -e EXPR"},
        {"json", OPTION_FLAG, &r.json, NULL, "print one JSON object"},
        {"help", OPTION_FLAG, &help, NULL, "this text"},
    };
    if (options_parse_mixed(argc, argv, rows, sizeof rows / sizeof *rows, &words, &err) < 0)
        return complain(err.msg);
    if (help) {
        puts("usage: cordon check --lang expr [OPTIONS] [FILE | - | -e EXPR]\n\n"
             "Judges conditions without a context. A file holds one condition a line (or one over\n"
             "several, in parentheses); blank lines and lines that begin with # are skipped.\n");
        options_print(rows, sizeof rows / sizeof *rows);
        return EXIT_DONE;
    }
    if (!lang || strcmp(lang, "expr") != 0)
        return complain(lang ? "--lang: only expr can be judged so far"
                             : "--lang is missing: expr");
    if (words.count > (expr ? 0U : 1U))
        return complain("one FILE, or -e EXPR, not more; see --help");
    struct text t = {0};
    r.file = expr ? "expression" : words.count ? words.items[0] : "-";
    if (!expr && expr_read_file("check", r.file, CORDON_CONTEXT_MAX, &t))
        return 2;
    void *schema_mem;
    struct cordon_schema *s = expr_open_schema("check", schema, NULL, 0, &schema_mem);
    char *violations = NULL, *found = NULL;
    size_t a, b, at = 0, len;
    unsigned line = 0;
    const char *source;
    int bad = s == NULL ? 2 : 0;
    if (s && r.json) {
        r.violations = open_memstream(&violations, &a);
        r.found = open_memstream(&found, &b);
        bad = r.violations && r.found ? 0 : 1;
    }
    if (!bad && expr)
        bad = check_one(&r, s, 1, expr, strlen(expr));
    bool whole = !bad && !expr && is_one(s, &t);
    if (whole)
        bad = check_one(&r, s, 1, t.data, t.len);
    while (!bad && !expr && !whole && expr_next_line(&t, &at, &line, &source, &len))
        bad = check_one(&r, s, line, source, len);
    if (!bad)
        bad = finish(&r, &violations, &found);
    free(schema_mem);
    free(t.data);
    return bad;
}
