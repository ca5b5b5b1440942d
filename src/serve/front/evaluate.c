/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions are evaluated in the front itself: the language has nothing to contain, no state and no cost that its length
 * does not bound, and the front is contained. Expression and context come from the same caller, who therefore may declare
 * keys by them; nobody else's data is reached. */
#include "serve/front/inside.h"

#include "cordon.h"

#include <stdlib.h>
#include <string.h>

enum { EXPRESSION, CONTEXT };

struct evaluation {
    struct cordon_error err;
    struct cordon_value value;
    bool held; /* VALUE is one */
    void *mem[5];
    size_t used;
};

static void *take(struct evaluation *e, size_t size)
{
    base_assert(e->used < sizeof e->mem / sizeof *e->mem);
    return e->mem[e->used++] = malloc(size ? size : 1);
}

static void no_memory(struct evaluation *e)
{
    e->err.status = CORDON_MEMORY;
    memcpy(e->err.message, "no memory", sizeof "no memory");
}

/* The condition is judged before the context is looked at: a refusal outranks a bad context. */
static void evaluate(struct evaluation *e, const char *source, size_t len, const char *context,
                     size_t context_len)
{
    struct cordon_schema *schema = NULL;
    struct cordon_program *program = NULL;
    const size_t keys_len = strlen(cordon_schema_example),
                 schema_size = cordon_schema_size(keys_len + context_len),
                 program_size = cordon_compile_size(len);
    void *schema_mem = take(e, schema_size), *program_mem = take(e, program_size),
         *json_mem = take(e, 2 * context_len + 64);
    if (!schema_mem || !program_mem || !json_mem) {
        no_memory(e);
        return;
    }
    if (cordon_schema_read_with(cordon_schema_example, keys_len, context, context_len, schema_mem,
                                schema_size, &schema, &e->err) ||
        cordon_compile(schema, source, len, program_mem, program_size, &program, &e->err))
        return;
    const size_t ctx_size = cordon_ctx_size(schema), scratch_size = cordon_scratch_size(program);
    void *ctx_mem = take(e, ctx_size), *scratch = take(e, scratch_size);
    struct cordon_ctx *ctx = ctx_mem ? cordon_ctx_init(ctx_mem, ctx_size, schema, 0) : NULL;
    if (!ctx || !scratch)
        no_memory(e);
    else if (!cordon_ctx_json(ctx, context, context_len, json_mem, 2 * context_len + 64, &e->err) &&
             !cordon_eval(program, ctx, scratch, scratch_size, &e->value, &e->err))
        e->held = true;
}

static int write_value(struct jsonw *j, const struct cordon_value *v)
{
    char small[256], *out = small;
    void *work = malloc(cordon_print_size(v) + 1);
    const size_t n = work ? cordon_json(v, work, small, sizeof small) : 0;
    if (n >= sizeof small) {
        out = malloc(n + 1);
        if (out)
            cordon_json(v, work, out, n + 1);
    }
    const int r = work && out ? 0 : ERR_MEMORY;
    if (r == 0)
        jsonw_raw(j, "value", out, n);
    if (out != small)
        free(out);
    free(work);
    return r;
}

static void write_error(struct jsonw *j, const struct cordon_error *err)
{
    jsonw_open(j, "error", '{');
    jsonw_string(j, "type", cordon_class(err->status));
    jsonw_string(j, "message", err->message);
    if (err->line) {
        jsonw_int(j, "line", err->line);
        jsonw_int(j, "column", err->column);
    } else {
        jsonw_null(j, "line");
        jsonw_null(j, "column");
    }
    if (err->hint[0])
        jsonw_string(j, "hint", err->hint);
    jsonw_close(j, '}');
}

static int write_all(struct jsonw *j, const struct evaluation *e)
{
    static const char *const types[] = {"None", "bool", "int", "float", "str"};
    int r = 0;
    jsonw_open(j, NULL, '{');
    if (e->held) {
        r = write_value(j, &e->value);
        jsonw_string(j, "type", types[e->value.type]);
        jsonw_null(j, "error");
    } else {
        jsonw_null(j, "value");
        jsonw_null(j, "type");
        write_error(j, &e->err);
    }
    jsonw_close(j, '}');
    return r < 0 ? r : j->bad;
}

void serve_evaluate(struct serve_front *f, const struct serve_reply *to, const char *token,
                    const struct serve_value *v)
{
    struct evaluation *e = calloc(1, sizeof *e);
    char *dumped = v[CONTEXT].json
                       ? json_dumps(v[CONTEXT].json, JSON_COMPACT | JSON_REAL_PRECISION(17))
                       : NULL;
    const char *context = dumped ? dumped : v[CONTEXT].text ? v[CONTEXT].text : "{}";
    struct buf out;
    struct jsonw j = {.out = &out};
    (void)token; /* no progress is told: the evaluation ends first */
    buf_init(&out, LIMIT_SERVE_ANSWER);
    int r = e && (dumped || !v[CONTEXT].json) ? 0 : ERR_MEMORY;
    if (r == 0) {
        evaluate(e, v[EXPRESSION].text, v[EXPRESSION].len, context, strlen(context));
        r = write_all(&j, e);
    }
    if (r == 0)
        serve_reply_tool(f, to, out.data, out.len, out.data, out.len, !e->held);
    else
        serve_reply_tool(f, to, "no memory", 9, NULL, 0, true);
    for (size_t i = 0; e && i < e->used; i++)
        free(e->mem[i]);
    free(e);
    free(dumped);
    buf_done(&out);
}
