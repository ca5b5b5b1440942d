/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a saved program. The checksum is set right first, else the fuzzer would never get
 * past it; what then verifies must run, explain and analyse without leaving its memory. */
#include "expr/code.h"
#include "expr/eval.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char schema_text[] = "{\"keys\":{\"a\":\"any\",\"f\":\"float\",\"i\":\"int\",\"s\":{"
                                  "\"type\":\"str\",\"enum\":[\"low\",\"high\"]},\"p\":\"bool\"}}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char schema_mem[16384], ctx_mem[2048], json_mem[1024];
    static char *scratch, *work;
    static struct cordon_schema *schema;
    const size_t scratch_size = 1 << 22, work_size = 1 << 24;
    const char *context = "{\"a\":9223372036854775807,\"f\":0.5,\"i\":3,\"s\":\"low\",\"p\":true}";
    struct cordon_error err = {0};
    if (!scratch) {
        scratch = malloc(scratch_size);
        work = malloc(work_size);
        if (!scratch || !work ||
            cordon_schema_read(schema_text, strlen(schema_text), schema_mem, sizeof schema_mem,
                               &schema, &err))
            abort();
    }
    unsigned char *saved = malloc(size ? size : 1);
    size_t need = cordon_load_size(size);
    void *mem = malloc(need);
    struct cordon_program *p;
    if (!saved || !mem)
        abort();
    memcpy(saved, data, size);
    if (size >= 4) {
        uint32_t sum = 2166136261u;
        for (size_t i = 0; i < size - 4; i++)
            sum = (sum ^ saved[i]) * 16777619u;
        for (unsigned i = 0; i < 4; i++)
            saved[size - 4 + i] = (unsigned char)(sum >> (8 * i));
    }
    if (cordon_load(schema, saved, size, mem, need, &p, &err) == 0) {
        struct cordon_ctx *c = cordon_ctx_init(ctx_mem, sizeof ctx_mem, schema, 0);
        struct cordon_value v;
        const struct cordon_reason *reasons;
        struct cordon_finding findings[4];
        size_t count;
        int fast, slow;
        if (cordon_ctx_json(c, context, strlen(context), json_mem, sizeof json_mem, &err))
            abort();
        cordon_eval(p, c, scratch, scratch_size, &v, &err);
        fast = cordon_test(p, c, scratch, scratch_size);
        slow = expr_test_exact(p, c, scratch, scratch_size);
        if (fast != slow)
            abort();
        if (cordon_explain_size(p) <= work_size)
            cordon_explain(p, c, work, work_size, &reasons, &count);
        if (cordon_analyse_size(p) <= work_size)
            cordon_analyse(p, work, work_size, findings, 4);
    } else if (err.message[0] == 0) {
        abort();
    }
    free(mem);
    free(saved);
    return 0;
}
