/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that depends on one value alone is decided when it is set, not when it is read: its
 * number in the enums, whether it follows the schema, whether it has the kind that fast code counts
 * on. An evaluation then asks one question of all its slots together. */
#include "expr/context.h"

#include "base/utf8.h"
#include "expr/json.h"

#include <string.h>

size_t cordon_ctx_size(const struct cordon_schema *s)
{
    return sizeof(struct cordon_ctx) + s->count * sizeof(struct expr_value) +
           s->count / 64 * sizeof(struct expr_bits) + 16;
}

struct cordon_ctx *cordon_ctx_init(void *mem, size_t mem_len, const struct cordon_schema *s,
                                   unsigned flags)
{
    struct expr_area a = expr_area_of(mem, mem_len);
    struct cordon_ctx *c = expr_area_take(&a, sizeof *c + s->count * sizeof c->value[0] +
                                                  s->count / 64 * sizeof *c->more);
    if (!c)
        return NULL;
    c->words = s->count / 64 + 1;
    c->more = (struct expr_bits *)(c->value + s->count);
    c->schema = s;
    c->flags = flags;
    cordon_ctx_clear(c);
    return c;
}

void cordon_ctx_clear(struct cordon_ctx *c)
{
    for (uint32_t w = 0; w < c->words; w++)
        *expr_ctx_bits(c, w) = (struct expr_bits){0};
    for (uint32_t i = 0; i < c->schema->count; i++) {
        c->value[i] = (struct expr_value){.kind = K_ABSENT};
        if (c->schema->keys[i].required)
            expr_ctx_bits(c, i / 64)->off |= 1ULL << (i % 64);
    }
}

void expr_ctx_set(struct cordon_ctx *c, size_t slot, struct expr_value v)
{
    const struct expr_key *k = &c->schema->keys[slot];
    struct expr_bits *bits = expr_ctx_bits(c, slot / 64);
    uint64_t bit = 1ULL << (slot % 64);
    v.code = v.kind == K_STR && k->enums ? expr_schema_code(c->schema, v.s, v.len) : 0;
    bool fits = expr_schema_fits(c->schema, k, &v);
    bool kind = v.kind == k->kind && (v.kind != K_STR || k->enums == 0 || v.code);
    bits->ready = kind ? bits->ready | bit : bits->ready & ~bit;
    bits->off = fits ? bits->off & ~bit : bits->off | bit;
    c->value[slot] = v;
}

static void set(struct cordon_ctx *c, size_t slot, struct expr_value v)
{
    if (slot < c->schema->count)
        expr_ctx_set(c, slot, v);
}

void cordon_ctx_none(struct cordon_ctx *c, size_t slot)
{
    set(c, slot, expr_none());
}

void cordon_ctx_bool(struct cordon_ctx *c, size_t slot, bool v)
{
    set(c, slot, expr_bool(v));
}

void cordon_ctx_int(struct cordon_ctx *c, size_t slot, int64_t v)
{
    set(c, slot, expr_int(v));
}

void cordon_ctx_float(struct cordon_ctx *c, size_t slot, double v)
{
    set(c, slot, expr_float(v));
}

void cordon_ctx_absent(struct cordon_ctx *c, size_t slot)
{
    if (slot >= c->schema->count)
        return;
    set(c, slot, (struct expr_value){.kind = K_ABSENT});
    if (!c->schema->keys[slot].required)
        expr_ctx_bits(c, slot / 64)->off &= ~(1ULL << (slot % 64));
}

void cordon_ctx_unread(struct cordon_ctx *c, size_t slot)
{
    if (slot >= c->schema->count)
        return;
    set(c, slot, (struct expr_value){.kind = K_UNREAD});
    expr_ctx_bits(c, slot / 64)->off &= ~(1ULL << (slot % 64)); /* nothing is known against it */
}

bool cordon_ctx_str(struct cordon_ctx *c, size_t slot, const char *s, size_t len)
{
    if (len > CORDON_STRING_MAX || utf8_valid_prefix(s, len) != len)
        return false;
    set(c, slot, expr_str(s, (uint32_t)len));
    return true;
}

bool cordon_ctx_big(struct cordon_ctx *c, size_t slot, const uint64_t *words, size_t count,
                    bool negative)
{
    while (count && words[count - 1] == 0)
        count--;
    if (count > CORDON_BITS_MAX / 64)
        return false;
    set(c, slot, expr_from_limbs(words, (uint32_t)count, negative));
    return true;
}

void cordon_ctx_foreign(struct cordon_ctx *c, size_t slot, bool is_list)
{
    set(c, slot, (struct expr_value){.kind = K_FOREIGN, .i = is_list});
}

bool cordon_ctx_conforms(const struct cordon_ctx *c)
{
    uint64_t any = c->bits.off;
    for (uint32_t w = 1; w < c->words; w++)
        any |= c->more[w - 1].off;
    return any == 0;
}

int cordon_ctx_json(struct cordon_ctx *c, const char *text, size_t len, void *mem, size_t mem_len,
                    struct cordon_error *err)
{
    struct expr_area area = expr_area_of(mem, mem_len);
    struct json j;
    struct json_token t, v;
    if (len > CORDON_CONTEXT_MAX)
        return expr_fail(err, CORDON_CONTEXT, "a context of more than %u bytes",
                         CORDON_CONTEXT_MAX);
    json_init(&j, text, len, CORDON_CONTEXT, err);
    int e = json_next(&j, &t);
    if (e)
        return e;
    if (t.kind != JSON_OBJECT)
        return json_fail(&j, &t, "a context is a JSON object");
    while ((e = json_next(&j, &t)) == 0 && t.kind == JSON_KEY) {
        const char *name;
        uint32_t name_len;
        size_t mark = area.used;
        struct expr_value x;
        if ((e = json_unescape(&j, &t, &area, &name, &name_len)))
            return e;
        int slot = expr_schema_slot(c->schema, name, name_len);
        area.used = mark;
        if ((e = json_next(&j, &v)))
            return e;
        if (slot < 0) {
            if ((e = json_skip(&j, &v)))
                return e;
            continue;
        }
        if ((e = json_value(&j, &v, &area, &x)))
            return e;
        expr_ctx_set(c, (size_t)slot, x);
        if (c->flags & CORDON_STRICT && expr_ctx_bits(c, (size_t)slot / 64)->off >> (slot % 64) & 1)
            return json_fail(&j, &v, "a value that the schema does not allow for its key");
    }
    return e ? e : json_next(&j, &t);
}
