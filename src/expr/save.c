/* SPDX-License-Identifier: Apache-2.0 */
/* A saved program is little-endian, self-contained and small: header, key names, constants,
 * instructions, spans, source. The checksum finds damage; it is not a proof of anything. The proof
 * is the verifier: a loaded program is checked by the same pass as a fresh one before anything of
 * it runs, constants are re-made value by value, and slots are bound by name to the schema at hand.
 */
#include "base/utf8.h"
#include "expr/big.h"
#include "expr/code.h"
#include "expr/fast.h"

#include <string.h>

#define MAGIC   "CDNX"
#define VERSION 1u

struct writer {
    unsigned char *out;
    size_t size, len;
    uint32_t sum;
};

static void put(struct writer *w, const void *data, size_t n)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < n; i++) {
        if (w->len < w->size)
            w->out[w->len] = p[i];
        w->len++;
        w->sum = (w->sum ^ p[i]) * 16777619u;
    }
}

static void put_int(struct writer *w, uint64_t v, unsigned bytes)
{
    unsigned char b[8];
    for (unsigned i = 0; i < bytes; i++)
        b[i] = (unsigned char)(v >> (8 * i));
    put(w, b, bytes);
}

static void put_value(struct writer *w, const struct expr_value *v)
{
    uint64_t bits;
    put_int(w, v->kind, 1);
    switch (v->kind) {
    case K_BOOL:
    case K_INT:
        put_int(w, (uint64_t)v->i, 8);
        break;
    case K_FLOAT:
        memcpy(&bits, &v->f, 8);
        put_int(w, bits, 8);
        break;
    case K_STR:
        put_int(w, v->len, 4);
        put(w, v->s, v->len);
        break;
    case K_BIG:
        put_int(w, v->neg, 1);
        put_int(w, v->len, 4);
        for (uint32_t i = 0; i < v->len; i++)
            put_int(w, v->limb[i], 8);
        break;
    default:
        break;
    }
}

size_t cordon_save(const struct cordon_program *p, void *out, size_t size)
{
    struct writer w = {.out = out, .size = size, .sum = 2166136261u};
    uint32_t keys = 0;
    uint16_t number[CORDON_KEYS_MAX];
    for (uint32_t s = 0; s < p->schema->count; s++)
        if (cordon_uses(p, s))
            number[s] = (uint16_t)keys++;
    put(&w, MAGIC, 4);
    put_int(&w, VERSION, 4);
    put_int(&w, keys, 4);
    put_int(&w, p->konst_count, 4);
    put_int(&w, p->count, 4);
    put_int(&w, p->source_len, 4);
    for (uint32_t s = 0; s < p->schema->count; s++)
        if (cordon_uses(p, s)) {
            put_int(&w, p->schema->keys[s].len, 4);
            put(&w, p->schema->keys[s].name, p->schema->keys[s].len);
        }
    for (uint32_t i = 0; i < p->konst_count; i++)
        put_value(&w, &p->konst[i]);
    for (uint32_t i = 0; i < p->count; i++) {
        put_int(&w, p->code[i].op, 1);
        put_int(&w, p->code[i].op == OP_SLOT ? number[p->code[i].slot] : p->code[i].arg, 4);
        put_int(&w, p->span[i].start, 4);
        put_int(&w, p->span[i].end, 4);
    }
    put(&w, p->source, p->source_len);
    put_int(&w, w.sum, 4);
    return w.len;
}

struct source {
    const unsigned char *s;
    size_t len, at;
    bool short_; /* it ended too early */
};

static const unsigned char *get(struct source *r, size_t n)
{
    if (n > r->len - r->at) {
        r->short_ = true;
        return NULL;
    }
    const unsigned char *p = r->s + r->at;
    r->at += n;
    return p;
}

static uint64_t get_int(struct source *r, unsigned bytes)
{
    const unsigned char *p = get(r, bytes);
    uint64_t v = 0;
    for (unsigned i = 0; p && i < bytes; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

static int damaged(struct cordon_error *err, const char *what)
{
    return expr_fail(err, CORDON_BYTECODE, "%s", what);
}

static int get_value(struct source *r, const struct cordon_schema *s, struct expr_area *area,
                     struct expr_value *ret, struct cordon_error *err)
{
    uint64_t kind = get_int(r, 1), bits;
    double f;
    switch (kind) {
    case K_NONE:
        *ret = expr_none();
        return 0;
    case K_BOOL:
        bits = get_int(r, 8);
        *ret = expr_bool(bits & 1);
        return bits > 1 ? damaged(err, "a bool that is neither") : 0;
    case K_INT:
        *ret = expr_int((int64_t)get_int(r, 8));
        return 0;
    case K_FLOAT:
        bits = get_int(r, 8);
        memcpy(&f, &bits, 8);
        *ret = expr_float(f);
        return 0;
    case K_STR: {
        uint64_t n = get_int(r, 4);
        const unsigned char *p = n <= CORDON_STRING_MAX ? get(r, (size_t)n) : NULL;
        char *copy = p ? expr_area_take(area, n ? (size_t)n : 1) : NULL;
        if (!p || utf8_valid_prefix(p, (size_t)n) != n)
            return damaged(err, "a string constant that is none");
        if (!copy)
            return expr_fail(err, CORDON_MEMORY, "the memory given is too small to load this");
        memcpy(copy, p, (size_t)n);
        *ret = expr_str(copy, (uint32_t)n);
        ret->code = expr_schema_code(s, copy, (size_t)n);
        return 0;
    }
    case K_BIG: {
        bool neg = get_int(r, 1) & 1;
        uint64_t n = get_int(r, 4);
        if (n == 0 || n > CORDON_BITS_MAX / 64 || n * 8 > r->len - r->at)
            return damaged(err, "an integer constant of a wrong length");
        uint64_t *limb = expr_area_take(area, (size_t)n * sizeof *limb);
        if (!limb)
            return expr_fail(err, CORDON_MEMORY, "the memory given is too small to load this");
        for (uint64_t i = 0; i < n; i++)
            limb[i] = get_int(r, 8);
        *ret = expr_from_limbs(limb, (uint32_t)n, neg);
        return 0;
    }
    default:
        return damaged(err, "a constant of an unknown kind");
    }
}

size_t cordon_load_size(size_t saved_len)
{
    /* 13 bytes an instruction become 16 and three steps of typed code; a constant takes 5 to 16 */
    return sizeof(struct cordon_program) + 16 * saved_len + 80 * 1024;
}

static int load_keys(struct source *r, uint64_t keys, struct cordon_program *p, uint16_t *slots,
                     struct cordon_error *err)
{
    for (uint64_t i = 0; i < keys; i++) {
        uint64_t n = get_int(r, 4);
        const unsigned char *name = n <= r->len ? get(r, (size_t)n) : NULL;
        if (!name)
            return damaged(err, "the saved program ends too early");
        int slot = expr_schema_slot(p->schema, (const char *)name, (size_t)n);
        if (slot < 0) {
            char text[400];
            struct expr_text t = {.out = text, .size = sizeof text};
            expr_text_repr(&t, (const char *)name, n < 80 ? (size_t)n : 80);
            expr_text_end(&t);
            return expr_fail(err, CORDON_BYTECODE,
                             "the saved program reads a key that the schema lacks: %s", text);
        }
        slots[i] = (uint16_t)slot;
        expr_use(p, (uint32_t)slot);
    }
    p->reads_twice = true; /* the keys do not tell how often */
    return 0;
}

static int load_code(struct source *r, struct cordon_program *p, const uint16_t *slots,
                     uint64_t keys, struct cordon_error *err)
{
    for (uint32_t i = 0; i < p->count; i++) {
        struct expr_insn *c = &p->code[i];
        *c = (struct expr_insn){.op = (uint8_t)get_int(r, 1), .arg = (uint32_t)get_int(r, 4)};
        p->span[i].start = (uint32_t)get_int(r, 4);
        p->span[i].end = (uint32_t)get_int(r, 4);
        if (p->span[i].start > p->span[i].end || p->span[i].end > p->source_len)
            return damaged(err, "an instruction outside the source");
        if (c->op == OP_SLOT) {
            if (c->arg >= keys)
                return damaged(err, "an instruction reads an unknown key");
            c->slot = slots[c->arg];
            c->arg = 0;
        }
    }
    return 0;
}

int cordon_load(const struct cordon_schema *s, const void *saved, size_t len, void *mem,
                size_t mem_len, struct cordon_program **ret_program, struct cordon_error *err)
{
    struct expr_area area = expr_area_of(mem, mem_len);
    struct source r = {.s = saved, .len = len};
    uint16_t slots[CORDON_KEYS_MAX];
    int e;
    if (len < 28 || len > 64u * 1024 * 1024 || memcmp(saved, MAGIC, 4) != 0)
        return damaged(err, "not a saved program");
    uint32_t sum = 2166136261u;
    for (size_t i = 0; i < len - 4; i++)
        sum = (sum ^ r.s[i]) * 16777619u;
    r.at = len - 4;
    if (get_int(&r, 4) != sum)
        return damaged(err, "the checksum is wrong");
    r.at = 4;
    r.len = len - 4;
    if (get_int(&r, 4) != VERSION)
        return damaged(err, "a saved program of another version");
    uint64_t keys = get_int(&r, 4), konst = get_int(&r, 4), count = get_int(&r, 4),
             text = get_int(&r, 4);
    if (keys > s->count || konst > count || count > CORDON_NODES_MAX + 1 ||
        text > CORDON_SOURCE_MAX || count * 13 > len)
        return damaged(err, "the header promises more than the limits allow");
    struct cordon_program *p = expr_area_take(&area, sizeof *p);
    if (!p)
        return expr_fail(err, CORDON_MEMORY, "the memory given is too small to load this");
    memset(p, 0, sizeof *p);
    p->schema = s;
    p->count = (uint32_t)count;
    p->konst_count = (uint32_t)konst;
    p->source_len = (uint32_t)text;
    p->code = expr_area_take(&area, (size_t)count * sizeof *p->code);
    p->span = expr_area_take(&area, (size_t)count * sizeof *p->span);
    p->konst = expr_area_take(&area, (size_t)konst * sizeof *p->konst);
    char *source = expr_area_take(&area, (size_t)text + 1);
    if (!p->code || !p->span || !p->konst || !source)
        return expr_fail(err, CORDON_MEMORY, "the memory given is too small to load this");
    if ((e = load_keys(&r, keys, p, slots, err)))
        return e;
    for (uint64_t i = 0; i < konst; i++)
        if ((e = get_value(&r, s, &area, &p->konst[i], err)))
            return e;
    if ((e = load_code(&r, p, slots, keys, err)))
        return e;
    const unsigned char *from = get(&r, (size_t)text);
    if (r.short_ || r.at != r.len || !from)
        return damaged(err, "the saved program ends too early or too late");
    if (utf8_valid_prefix(from, (size_t)text) != text || memchr(from, 0, (size_t)text))
        return damaged(err, "the source is not text");
    memcpy(source, from, (size_t)text);
    source[text] = 0;
    p->source = source;
    if ((e = expr_verify(p, &area, err)))
        return e;
    expr_quicken(p, &area);
    *ret_program = p;
    return 0;
}
