/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a JSON context: reading must stay inside the text and the memory it asks for. */
#include "cordon.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char schema_mem[16384], ctx_mem[2048];
    static struct cordon_schema *schema;
    const char *text = "{\"keys\":[\"a\",\"b\",\"c\",\"\",\"\\u00e9\"]}";
    struct cordon_error err = {0};
    if (!schema &&
        cordon_schema_read(text, strlen(text), schema_mem, sizeof schema_mem, &schema, &err))
        abort();
    struct cordon_ctx *c = cordon_ctx_init(ctx_mem, sizeof ctx_mem, schema, 0);
    size_t need = 2 * size + 64;
    void *mem = malloc(need);
    int r = cordon_ctx_json(c, (const char *)data, size, mem, need, &err);
    if (r && (r != CORDON_CONTEXT || err.message[0] == 0))
        abort();
    free(mem);
    return 0;
}
