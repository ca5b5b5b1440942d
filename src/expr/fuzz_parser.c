/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a condition: compiling must not crash, what is refused must be said in valid text, and
 * what compiles must survive every pass over it and evaluate within its certificate and within the
 * memory that it asks for. */
#include "base/utf8.h"
#include "expr/code.h"
#include "expr/eval.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char schema_text[] =
    "{\"keys\":{\"a\":\"any\",\"f\":\"float\",\"i\":\"int\",\"u\":{\"type\":\"number\",\"min\":0,"
    "\"max\":1},"
    "\"s\":{\"type\":\"str\",\"enum\":[\"low\",\"high\"]},\"p\":\"bool\"}}";
static const char *const contexts[] = {
    "{}",
    "{\"a\":9223372036854775807,\"f\":0.5,\"i\":3,\"u\":1,\"s\":\"low\",\"p\":true}",
    "{\"a\":\"x\",\"f\":NaN,\"i\":99999999999999999999,\"u\":0.25,\"s\":\"high\",\"p\":false}",
};

static bool is_text(const char *s)
{
    return utf8_valid_prefix(s, strlen(s)) == strlen(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char schema_mem[16384], ctx_mem[2048], json_mem[1024];
    static char *scratch, *work;
    static struct cordon_schema *schema;
    const size_t most = CORDON_SCRATCH_MAX + (32u << 20); /* touched only where it is needed */
    struct cordon_error err = {0};
    if (!scratch) {
        scratch = malloc(most);
        work = malloc(most);
        if (!scratch || !work ||
            cordon_schema_read(schema_text, strlen(schema_text), schema_mem, sizeof schema_mem,
                               &schema, &err))
            abort();
    }
    struct cordon_program *p;
    size_t need = cordon_compile_size(size);
    void *mem = malloc(need); /* exactly what is asked for: too small a bound is a finding */
    int r = cordon_compile(schema, (const char *)data, size, mem, need, &p, &err);
    char caret[512];
    if (r &&
        (r != CORDON_UNSAFE || err.message[0] == 0 || !is_text(err.message) || !is_text(err.hint)))
        abort();
    if (r)
        cordon_caret(&err, (const char *)data, size, caret, sizeof caret);
    for (size_t i = 0; r == 0 && i < sizeof contexts / sizeof *contexts; i++) {
        struct cordon_ctx *c = cordon_ctx_init(ctx_mem, sizeof ctx_mem, schema, 0);
        struct cordon_value v;
        struct cordon_certificate cost;
        const struct cordon_reason *reasons;
        size_t count;
        if (cordon_ctx_json(c, contexts[i], strlen(contexts[i]), json_mem, sizeof json_mem, &err))
            abort();
        size_t enough = cordon_scratch_size(p);
        const struct cordon_certificate *k = cordon_certify(p);
        int e = cordon_eval(p, c, scratch, enough, &v, &err);
        if (cordon_measure(p, c, scratch, enough, &cost) != e || e == CORDON_MEMORY)
            abort();
        if (cost.steps > k->steps || cost.stack > k->stack ||
            (cost.conforming && (cost.raises & ~k->raises)))
            abort();
        int truth = cordon_test(p, c, scratch, enough);
        if (cordon_explain(p, c, work, cordon_explain_size(p), &reasons, &count) != truth)
            abort();
    }
    struct cordon_finding findings[4];
    if (r == 0)
        cordon_analyse(p, work, cordon_analyse_size(p), findings, 4);
    free(mem);
    return 0;
}
