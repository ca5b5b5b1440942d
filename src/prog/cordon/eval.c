/* SPDX-License-Identifier: Apache-2.0 */
/* `cordon eval`: one condition over one context, over a stream of contexts, or many conditions at
 * once. All memory of a run is taken once, before the first evaluation; a stream of any length needs no more.
 *
 * Waits: getline in stream; whoever writes the contexts; none (a stream is as long as its writer's: a signal ends it); ends with it */
#include "commands.h"
#include "expr_common.h"
#include "options.h"
#include "result.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct options {
    const char *expr, *schema, *file, *save, *load;
    struct text ctx;
    bool ndjson, explain, json, prompt, certificate, require, strict, has_ctx;
    unsigned flags;
};

struct runner {
    const struct options *o;
    struct cordon_schema *schema;
    struct cordon_ctx *ctx;
    void *ctx_mem, *json_mem, *scratch;
    size_t json_size, scratch_size;
};

static int no_memory(void)
{
    fprintf(stderr, "cordon eval: no memory\n");
    return 1;
}

static int grow(void **mem, size_t *size, size_t want)
{
    if (*size >= want)
        return 0;
    free(*mem);
    *mem = malloc(want);
    *size = *mem ? want : 0;
    return *mem ? 0 : no_memory();
}

static int print_failure(const struct runner *r, const char *name, const struct cordon_error *err,
                         const char *source, size_t len)
{
    if (r->o->json) {
        printf("{\"value\":null,\"type\":null,\"error\":");
        expr_json_error(stdout, err);
        printf("}\n");
    } else {
        expr_print_error(stderr, name, err, source, len);
    }
    return err->status == CORDON_UNSAFE    ? EXIT_UNSAFE
           : err->status == CORDON_CONTEXT ? EXIT_USAGE
                                           : EXIT_FAILED;
}

#define READINGS 32 /* keys shown for one leaf */

static void print_readings(const struct runner *r, const struct cordon_program *p,
                           const struct cordon_reason *x)
{
    struct cordon_reading reading[READINGS];
    size_t n = cordon_readings(p, r->ctx, x, reading, READINGS);
    for (size_t i = 0; i < n && i < READINGS; i++) {
        size_t len;
        const char *key = cordon_schema_key(r->schema, reading[i].slot, &len);
        struct cordon_value name = {.type = CORDON_STR, .s = key, .len = len};
        const struct cordon_value *v = reading[i].readable ? &reading[i].value : NULL;
        if (r->o->json) {
            printf("%s", i ? "," : "");
            expr_json_value(stdout, &name);
            printf(":");
            expr_json_value(stdout, v);
        } else {
            printf("%sctx[", i ? ", " : "    ");
            expr_print_value(stdout, &name);
            printf("] = ");
            if (v)
                expr_print_value(stdout, v);
            else
                printf("(unreadable)");
        }
    }
    if (!r->o->json && n)
        printf("\n");
}

static void print_reason(const struct runner *r, const struct cordon_program *p,
                         const struct cordon_reason *x, const char *source)
{
    if (r->o->json) {
        printf("{\"text\":");
        expr_json_string(stdout, source + x->offset, x->end - x->offset);
        printf(",\"truth\":%s,\"value\":", x->truth < 0 ? "null" : x->truth ? "true" : "false");
        expr_json_value(stdout, x->truth < 0 ? NULL : &x->value);
        printf(",\"raises\":");
        if (x->truth < 0)
            printf("\"%s\"", cordon_class(x->raised));
        else
            printf("null");
        printf(",\"reads\":{");
        print_readings(r, p, x);
        printf("}}");
        return;
    }
    printf("  %.*s  is  ", (int)(x->end - x->offset), source + x->offset);
    if (x->truth < 0)
        printf("%s", cordon_class(x->raised));
    else
        expr_print_value(stdout, &x->value);
    printf("\n");
    print_readings(r, p, x);
}

/* The leaves that forced the answer, and the keys they read. */
static int print_explanation(const struct runner *r, const struct cordon_program *p,
                             const char *source)
{
    size_t size = cordon_explain_size(p), count = 0;
    void *mem = malloc(size);
    const struct cordon_reason *reasons;
    if (!mem)
        return no_memory();
    cordon_explain(p, r->ctx, mem, size, &reasons, &count);
    if (r->o->json)
        printf(",\"explain\":[");
    else
        printf(count ? "because\n" : "because of nothing in the context\n");
    for (size_t i = 0; i < count; i++) {
        if (r->o->json && i)
            printf(",");
        print_reason(r, p, &reasons[i], source);
    }
    if (r->o->json)
        printf("]");
    free(mem);
    return 0;
}

static void print_names(FILE *to, const char *label, unsigned set, bool status)
{
    const char *between = "";
    fprintf(to, "%s", label);
    for (unsigned i = 0; i < 16; i++)
        if (set >> i & 1) {
            fprintf(to, "%s%s", between,
                    status ? cordon_class((enum cordon_status)i)
                           : expr_type_word((enum cordon_type)i));
            between = ", ";
        }
    fprintf(to, "%s\n", set ? "" : "nothing");
}

static void print_certificate(const struct cordon_program *p)
{
    const struct cordon_certificate *c = cordon_certify(p);
    print_names(stdout, "gives:        ", c->types, false);
    print_names(stdout, "can raise:    ", c->raises, true);
    printf("instructions: at most %u, each once\n", c->steps);
    printf("stack:        %u values\n", c->stack);
    printf("integers:     at most %u bits computed\n", c->bits);
    printf("strings:      at most %u bytes computed\n", c->text);
    printf("work:         at most %llu word operations\n", (unsigned long long)c->work);
    printf("scratch:      at most %llu bytes\n", (unsigned long long)c->scratch);
}

/* Evaluates P over the context at hand and prints the answer. */
static int answer(const struct runner *r, const struct cordon_program *p, const char *name,
                  const char *source, size_t len)
{
    struct cordon_value v;
    struct cordon_error err = {0};
    int e = cordon_eval(p, r->ctx, r->scratch, r->scratch_size, &v, &err), status = 0;
    if (r->o->json) {
        printf("{\"value\":");
        expr_json_value(stdout, e ? NULL : &v);
        if (e)
            printf(",\"type\":null,\"error\":");
        else
            printf(",\"type\":\"%s\",\"error\":", expr_type_word(v.type));
        if (e)
            expr_json_error(stdout, &err);
        else
            printf("null");
        if (r->o->explain)
            status = print_explanation(r, p, source);
        printf("}\n");
        return e ? 1 : status;
    }
    if (e) {
        expr_print_error(stderr, name, &err, source, len);
    } else {
        if (name)
            printf("%s: ", name);
        expr_print_value(stdout, &v);
        printf("\n");
    }
    if (r->o->explain)
        status = print_explanation(r, p, source);
    return e ? 1 : status;
}

static int set_context(struct runner *r, const char *text, size_t len, struct cordon_error *err)
{
    if (grow(&r->json_mem, &r->json_size, 2 * len + 64))
        return CORDON_MEMORY;
    cordon_ctx_clear(r->ctx);
    return cordon_ctx_json(r->ctx, text, len, r->json_mem, r->json_size, err);
}

/* Each line a context; the filter prints those for which the condition holds. */
static int stream(struct runner *r, const struct cordon_program *p, const char *source, size_t len)
{
    char *line = NULL;
    size_t cap = 0, number = 0;
    ssize_t n;
    int worst = 0;
    while ((n = getline(&line, &cap, stdin)) > 0) {
        struct cordon_error err = {0};
        size_t size = (size_t)n - (line[n - 1] == '\n');
        char name[40];
        snprintf(name, sizeof name, "context %zu", ++number);
        if (size == 0)
            continue;
        int e = set_context(r, line, size, &err), t = 0;
        if (e) {
            print_failure(r, name, &err, line, size);
            worst = 1;
            continue;
        }
        if (r->o->json) {
            int status = answer(r, p, NULL, source, len);
            worst = status > worst ? status : worst;
            continue;
        }
        t = cordon_test(p, r->ctx, r->scratch, r->scratch_size);
        if (t == 1) {
            fwrite(line, 1, size, stdout);
            fputc('\n', stdout);
        } else if (t < 0) {
            struct cordon_value v;
            cordon_eval(p, r->ctx, r->scratch, r->scratch_size, &v, &err);
            expr_print_error(stderr, name, &err, source, len);
            worst = 1;
        }
    }
    free(line);
    return worst;
}

static int save(const struct cordon_program *p, const char *path)
{
    size_t size = cordon_save(p, NULL, 0);
    void *out = malloc(size);
    FILE *f = out ? fopen(path, "we") : NULL;
    int bad = !f;
    if (f) {
        cordon_save(p, out, size);
        bad = fwrite(out, 1, size, f) != size;
        bad = fclose(f) != 0 || bad;
    }
    if (bad)
        fprintf(stderr, "cordon eval: %s: %s\n", path, strerror(errno));
    free(out);
    return bad ? EXIT_USAGE : 0;
}

/* One condition: SOURCE, or the saved program SAVED. */
static int run_one(struct runner *r, const char *name, const char *source, size_t len,
                   const struct text *saved)
{
    struct cordon_error err = {0};
    struct cordon_program *p = NULL;
    size_t size = saved ? cordon_load_size(saved->len) : cordon_compile_size(len);
    void *mem = malloc(size);
    if (!mem)
        return no_memory();
    int e = saved ? cordon_load(r->schema, saved->data, saved->len, mem, size, &p, &err)
                  : cordon_compile(r->schema, source, len, mem, size, &p, &err);
    int status = 0;
    if (e) {
        if (err.status == CORDON_UNSAFE)
            expr_log_refusal(&err, source, len);
        status = print_failure(r, name, &err, source, len);
        if (err.status == CORDON_BYTECODE)
            status = EXIT_UNSAFE;
    } else if (r->o->save) {
        status = save(p, r->o->save);
    } else if (r->o->certificate) {
        print_certificate(p);
    } else if (grow(&r->scratch, &r->scratch_size, cordon_scratch_size(p))) {
        status = 1;
    } else if (r->o->ndjson) {
        status = stream(r, p, source, len);
    } else {
        status = answer(r, p, name, source, len);
    }
    free(mem);
    return status;
}

static int run_file(struct runner *r)
{
    struct text t;
    size_t at = 0, len, good = 0, bad = 0;
    unsigned line = 0;
    const char *source;
    int worst = 0;
    if (expr_read_file("eval", r->o->file, CORDON_CONTEXT_MAX, &t))
        return 2;
    while (expr_next_line(&t, &at, &line, &source, &len)) {
        char name[600];
        snprintf(name, sizeof name, "%s:%u", r->o->file, line);
        int status = run_one(r, name, source, len, NULL);
        good += status != EXIT_UNSAFE;
        bad += status == EXIT_UNSAFE;
        worst = status > worst ? status : worst;
    }
    fprintf(stderr, "%zu conditions compiled, %zu skipped\n", good, bad);
    free(t.data);
    return worst;
}

static int prompt(const struct cordon_schema *s)
{
    size_t n = cordon_prompt(s, NULL, 0);
    char *out = malloc(n + 1);
    if (!out)
        return no_memory();
    cordon_prompt(s, out, n + 1);
    fwrite(out, 1, n, stdout);
    free(out);
    return 0;
}

static int complain(const char *text)
{
    result_complain("cordon eval", text);
    return EXIT_USAGE;
}

static void help(const struct option_row *rows, size_t count)
{
    puts("usage: cordon eval EXPR [--ctx JSON | --ctx-file FILE] [OPTIONS]\n"
         "       cordon eval EXPR --ndjson [OPTIONS]     contexts on standard input, one a line;\n"
         "                                               prints those that hold, with --json all\n"
         "       cordon eval --file FILE [OPTIONS]       every condition of a file; bad ones are\n"
         "                                               skipped and reported\n"
         "       cordon eval --load FILE [OPTIONS]       a program that --save FILE wrote\n"
         "       cordon eval --prompt [--schema FILE]    the paragraph for a model's prompt\n\n"
         "Without --schema the shipped keys are declared, and those of --ctx.\n");
    options_print(rows, count);
    exits_print(EXITS_EVAL);
}

/* 0: go on; otherwise *ret_status is the exit status. */
static bool read_options(int argc, char **argv, struct options *o, int *ret_status)
{
    const char *ctx_file = NULL, *ctx = NULL;
    struct option_list words = {0};
    struct err err = ERR_INIT;
    bool asked = false;
    const struct option_row rows[] = {
        {"ctx", OPTION_STRING, &ctx, "JSON", "the context"},
        {"ctx-file", OPTION_STRING, &ctx_file, "FILE", "the context, from a file"},
        {"schema", OPTION_STRING, &o->schema, "FILE",
         "declared keys with types, ranges and domains"},
        {"ndjson", OPTION_FLAG, &o->ndjson, NULL, "a filter over a stream of contexts"},
        {"file", OPTION_STRING, &o->file, "FILE", "a file of conditions"},
        {"save", OPTION_STRING, &o->save, "FILE", "write the compiled condition"},
        {"load", OPTION_STRING, &o->load, "FILE", "read one; it is verified"},
        {"explain", OPTION_FLAG, &o->explain, NULL, "the leaves that forced the answer"},
        {"certificate", OPTION_FLAG, &o->certificate, NULL,
         "what it can cost and raise, before any run"},
        {"require-keys", OPTION_FLAG, &o->require, NULL,
         "a declared key that is missing is KeyError, not None"},
        {"strict", OPTION_FLAG, &o->strict, NULL,
         "a value that the schema does not allow is an error"},
        {"prompt", OPTION_FLAG, &o->prompt, NULL, "print the paragraph for a model's prompt"},
        {"json", OPTION_FLAG, &o->json, NULL, "print JSON"},
        {"help", OPTION_FLAG, &asked, NULL, "this text"},
    };
    const size_t count = sizeof rows / sizeof *rows;
    *ret_status = EXIT_DONE;
    if (options_parse_conditions(argc, argv, rows, count, &words, &err) < 0) {
        *ret_status = complain(err.msg);
        return false;
    }
    if (asked) {
        help(rows, count);
        return false;
    }
    o->expr = words.count ? words.items[0] : NULL;
    o->flags = (o->require ? CORDON_REQUIRE_KEYS : 0) | (o->strict ? CORDON_STRICT : 0);
    int work = (o->prompt != 0) + (o->file != NULL) + (o->load != NULL) + (o->expr != NULL);
    const char *wrong = work == 0 ? "a condition is missing; see --help"
                        : work > 1 || words.count > 1
                            ? "one condition, --file, --load or --prompt, not more; see --help"
                        : ctx && ctx_file ? "--ctx or --ctx-file, not both"
                        : o->ndjson && (ctx || ctx_file || o->file)
                            ? "--ndjson takes its contexts from standard input"
                            : NULL;
    if (wrong) {
        *ret_status = complain(wrong);
        return false;
    }
    o->has_ctx = ctx || ctx_file;
    if (ctx_file) {
        *ret_status = expr_read_file("eval", ctx_file, CORDON_CONTEXT_MAX, &o->ctx);
        return *ret_status == 0;
    }
    o->ctx = (struct text){.data = strdup(ctx ? ctx : "{}"), .len = ctx ? strlen(ctx) : 2};
    if (!o->ctx.data)
        *ret_status = no_memory();
    return o->ctx.data != NULL;
}

int cmd_eval(int argc, char **argv)
{
    struct options o = {0};
    struct runner r = {.o = &o};
    struct text saved = {0};
    struct cordon_error err = {0};
    void *schema_mem = NULL;
    int status;
    if (!read_options(argc, argv, &o, &status)) {
        free(o.ctx.data);
        return status;
    }
    status = EXIT_USAGE;
    r.schema =
        expr_open_schema("eval", o.schema, o.has_ctx ? o.ctx.data : NULL, o.ctx.len, &schema_mem);
    if (!r.schema)
        goto out;
    if (o.prompt) {
        status = prompt(r.schema);
        goto out;
    }
    size_t ctx_size = cordon_ctx_size(r.schema);
    r.ctx_mem = malloc(ctx_size);
    r.ctx = r.ctx_mem ? cordon_ctx_init(r.ctx_mem, ctx_size, r.schema, o.flags) : NULL;
    if (!r.ctx) {
        status = no_memory();
        goto out;
    }
    /* the condition is judged before the context is looked at: a refusal outranks a bad context */
    int context = o.ndjson ? 0 : set_context(&r, o.ctx.data, o.ctx.len, &err);
    if (context) {
        struct cordon_error refusal = {0};
        size_t n = o.expr ? strlen(o.expr) : 0, size = cordon_compile_size(n);
        void *mem = o.expr ? malloc(size) : NULL;
        bool refused =
            mem && cordon_validate(r.schema, o.expr, n, mem, size, &refusal) == CORDON_UNSAFE;
        free(mem);
        if (refused)
            expr_log_refusal(&refusal, o.expr, n);
        status = refused ? print_failure(&r, NULL, &refusal, o.expr, n)
                         : print_failure(&r, NULL, &err, o.ctx.data, o.ctx.len);
    } else if (o.file) {
        status = run_file(&r);
    } else if (o.load) {
        status = expr_read_file("eval", o.load, CORDON_CONTEXT_MAX, &saved);
        status = status ? status : run_one(&r, NULL, "", 0, &saved);
    } else {
        status = o.expr ? run_one(&r, NULL, o.expr, strlen(o.expr), NULL) : EXIT_USAGE;
    }
out:
    free(saved.data);
    free(o.ctx.data);
    free(r.ctx_mem);
    free(r.json_mem);
    free(r.scratch);
    free(schema_mem);
    return status;
}
