/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a schema; one that is accepted must serve a compilation and a prompt. */
#include "cordon.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char program_mem[1 << 17], work[1 << 20], text[4096];
    struct cordon_error err = {0};
    struct cordon_schema *s;
    struct cordon_program *p;
    struct cordon_finding findings[4];
    const char *source = "ctx['a'] > 0.5 and ctx['b'] == 'low' or not ctx['c'] < 3";
    size_t need = cordon_schema_size(size);
    void *mem = malloc(need);
    int r = cordon_schema_read((const char *)data, size, mem, need, &s, &err);
    if (r && (r != CORDON_SCHEMA || err.message[0] == 0))
        abort();
    if (r == 0) {
        cordon_prompt(s, text, sizeof text);
        if (cordon_compile(s, source, strlen(source), program_mem, sizeof program_mem, &p, &err) ==
                0 &&
            cordon_analyse_size(p) <= sizeof work)
            cordon_analyse(p, work, sizeof work, findings, 4);
    }
    free(mem);
    return 0;
}
