/* SPDX-License-Identifier: Apache-2.0 */
/* `cordon check --lang expr`: judge conditions without a context. A refusal blocks (EXIT_FAILED);
 * what the analysis found (always true, contradictions, misspelt enum values) is reported and does
 * not. */
#include "check.h"

#include "commands.h"
#include "expr_common.h"

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
        return EXIT_USAGE;
    if (cordon_compile(s, source, len, mem, size, &p, &err)) {
        refuse(r, &err, line, source, len);
        free(mem);
        return 0;
    }
    size_t cap = cordon_analyse_size(p);
    void *work = malloc(cap);
    size_t n = work ? cordon_analyse(p, work, cap, findings, FINDINGS) : 0;
    for (size_t i = 0; i < n && i < FINDINGS; i++)
        report_finding(r, &findings[i], line, source);
    free(work);
    free(mem);
    return work ? 0 : EXIT_USAGE;
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
        printf("%zu condition%s: %zu refused, %zu finding%s\n", r->conditions,
               r->conditions == 1 ? "" : "s", r->refused, r->findings, r->findings == 1 ? "" : "s");
    }
    return r->refused ? EXIT_FAILED : EXIT_DONE;
}

int check_expr(const struct check_options *o)
{
    struct report r = {.json = o->json};
    struct text t = {0};
    r.file = o->expr ? "expression" : o->file;
    if (!o->expr && expr_read_file("check", r.file, CORDON_CONTEXT_MAX, &t))
        return EXIT_USAGE;
    void *schema_mem;
    struct cordon_schema *s = expr_open_schema("check", o->schema, NULL, 0, &schema_mem);
    char *violations = NULL, *found = NULL;
    size_t a, b, at = 0, len;
    unsigned line = 0;
    const char *source;
    int bad = s == NULL ? EXIT_USAGE : 0;
    if (s && r.json) {
        r.violations = open_memstream(&violations, &a);
        r.found = open_memstream(&found, &b);
        bad = r.violations && r.found ? 0 : EXIT_USAGE;
    }
    if (!bad && o->expr)
        bad = check_one(&r, s, 1, o->expr, strlen(o->expr));
    bool whole = !bad && !o->expr && is_one(s, &t);
    if (whole)
        bad = check_one(&r, s, 1, t.data, t.len);
    while (!bad && !o->expr && !whole && expr_next_line(&t, &at, &line, &source, &len))
        bad = check_one(&r, s, line, source, len);
    if (!bad)
        bad = finish(&r, &violations, &found);
    free(schema_mem);
    free(t.data);
    return bad;
}
