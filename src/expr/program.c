/* SPDX-License-Identifier: Apache-2.0 */
/* Compile: copy the source, parse, verify, quicken. Our own parser's output goes through the same
 * verifier as a loaded program, so that there is one place that vouches for what eval.c runs. */
#include "base/utf8.h"
#include "expr/code.h"
#include "expr/fast.h"

#include <string.h>

size_t cordon_compile_size(size_t source_len)
{
    size_t n = source_len < CORDON_SOURCE_MAX ? source_len : CORDON_SOURCE_MAX;
    size_t nodes = n + 2 < CORDON_NODES_MAX + 2 ? n + 2 : CORDON_NODES_MAX + 2;
    /* source; code, spans, constants; decoded literals; the larger of parser's and later stacks */
    return sizeof(struct cordon_program) + n + nodes * (8 + 8 + 16) + 8 * n + 40 * 1024 +
           nodes * 3 * sizeof(struct fast_insn) + 1024;
}

static int check_source(const char *source, size_t len, struct cordon_error *err)
{
    if (len > CORDON_SOURCE_MAX)
        return expr_fail(err, CORDON_UNSAFE, "The expression is longer than %u bytes (%zu)",
                         CORDON_SOURCE_MAX, len);
    const char *nul = len ? memchr(source, 0, len) : NULL;
    if (nul) {
        expr_fail(err, CORDON_UNSAFE,
                  "Invalid expression syntax: source code cannot contain null bytes");
        expr_place(err, source, len, (size_t)(nul - source), (size_t)(nul - source) + 1);
        return CORDON_UNSAFE;
    }
    uint64_t high = 0, word;
    size_t i = 0;
    for (; i + 8 <= len; i += 8) {
        memcpy(&word, source + i, 8);
        high |= word;
    }
    for (; i < len; i++)
        high |= (unsigned char)source[i];
    size_t good = high & 0x8080808080808080ULL ? utf8_valid_prefix(source, len) : len;
    if (good != len) {
        expr_fail(err, CORDON_UNSAFE, "Invalid expression syntax: the source is not valid UTF-8");
        expr_place(err, source, len, good, good + 1);
        return CORDON_UNSAFE;
    }
    return 0;
}

int cordon_compile(const struct cordon_schema *s, const char *source, size_t len, void *mem,
                   size_t mem_len, struct cordon_program **ret_program, struct cordon_error *err)
{
    struct expr_area area = expr_area_of(mem, mem_len);
    int r = check_source(source, len, err);
    if (r)
        return r;
    struct cordon_program *p = expr_area_take(&area, sizeof *p);
    char *copy = expr_area_take(&area, len + 1);
    if (!p || !copy)
        return expr_fail(err, CORDON_MEMORY, "the memory given is too small to compile this");
    memset(p, 0, sizeof *p);
    if (len)
        memcpy(copy, source, len);
    copy[len] = 0;
    p->schema = s;
    p->source = copy;
    p->source_len = (uint32_t)len;
    if ((r = expr_parse(p, &area, err)) || (r = expr_verify(p, &area, err)))
        return r;
    expr_quicken(p, &area);
    *ret_program = p;
    return 0;
}

int cordon_validate(const struct cordon_schema *s, const char *source, size_t len, void *mem,
                    size_t mem_len, struct cordon_error *err)
{
    struct cordon_program *p;
    return cordon_compile(s, source, len, mem, mem_len, &p, err);
}

const struct cordon_certificate *cordon_certify(const struct cordon_program *p)
{
    return &p->certificate;
}

bool cordon_uses(const struct cordon_program *p, size_t slot)
{
    return slot < CORDON_KEYS_MAX && p->uses[slot / 64] >> (slot % 64) & 1;
}
