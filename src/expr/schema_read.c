/* SPDX-License-Identifier: Apache-2.0 */
/* {"keys": {"n": "int", "x": {"type": "number", "min": 0, "max": 1, "required": true, "doc":
 * "..."}, "level": {"type": "str", "enum": ["low", "high"]}}}   or   {"keys": ["a", "b"]} One pass
 * collects, one sort gives the slots their order, one pass fills the hashes. Types may be joined:
 * "int|str". What the reader does not know is an error: a misspelt "mim" must not pass. */
#include "expr/json.h"
#include "expr/ops.h"
#include "expr/schema.h"

#include <string.h>

static size_t at_most(size_t a, size_t b)
{
    return a < b ? a : b;
}

static uint32_t table_size(size_t entries)
{
    uint32_t n = 16;
    while (n < entries * 2)
        n *= 2;
    return n;
}

/* Enough for any text of that length: a key takes four bytes, an enum value three. */
size_t cordon_schema_size(size_t json_len)
{
    size_t keys = at_most(json_len / 4 + 1, CORDON_KEYS_MAX),
           enums = at_most(json_len / 3 + 1, CORDON_ENUM_MAX);
    return sizeof(struct cordon_schema) + keys * sizeof(struct expr_key) +
           table_size(keys) * sizeof(uint16_t) + table_size(enums) * sizeof(uint16_t) +
           enums * (sizeof(struct expr_value) + sizeof(uint16_t)) + 2 * json_len + 256;
}

struct reader {
    struct json j;
    struct expr_area area;
    struct cordon_schema *s;
    uint32_t key_room, enum_cap;
};

static int no_memory(struct reader *r)
{
    return expr_fail(r->j.err, CORDON_MEMORY, "the memory given is too small for this schema");
}

static bool is(const struct reader *r, const struct json_token *t, const char *w)
{
    return t->end - t->start == strlen(w) && memcmp(r->j.text + t->start, w, strlen(w)) == 0;
}

/* Strings outlive the text they were read from. */
static int keep_string(struct reader *r, const struct json_token *t, const char **ret,
                       uint32_t *ret_len)
{
    int e = json_unescape(&r->j, t, &r->area, ret, ret_len);
    if (e || t->escaped)
        return e;
    char *copy = expr_area_take(&r->area, *ret_len ? *ret_len : 1);
    if (!copy)
        return no_memory(r);
    memcpy(copy, *ret, *ret_len);
    *ret = copy;
    return 0;
}

static int read_types(struct reader *r, const struct json_token *t, uint8_t *ret)
{
    static const struct {
        const char *name;
        unsigned types;
    } known[] = {
        {"any", TYPE_ANY},       {"int", TYPE_BIT(CORDON_INT)},   {"float", TYPE_BIT(CORDON_FLOAT)},
        {"number", TYPE_NUMBER}, {"bool", TYPE_BIT(CORDON_BOOL)}, {"str", TYPE_BIT(CORDON_STR)},
    };
    if (t->kind != JSON_STRING)
        return json_fail(&r->j, t, "a type is a string");
    const char *s = r->j.text + t->start, *end = r->j.text + t->end;
    *ret = 0;
    for (;;) {
        const char *stop = memchr(s, '|', (size_t)(end - s));
        size_t n = (size_t)((stop ? stop : end) - s), i = 0;
        while (i < sizeof known / sizeof *known &&
               (strlen(known[i].name) != n || memcmp(known[i].name, s, n) != 0))
            i++;
        if (i == sizeof known / sizeof *known)
            return json_fail(&r->j, t,
                             "unknown type; known are any, int, float, number, bool, str");
        *ret |= (uint8_t)known[i].types;
        if (!stop)
            return 0;
        s = stop + 1;
    }
}

static int add_enum(struct reader *r, struct expr_key *k, const struct json_token *t)
{
    struct cordon_schema *s = r->s;
    struct expr_value v = expr_str("", 0);
    if (t->kind != JSON_STRING)
        return json_fail(&r->j, t, "enum values are strings");
    int e = keep_string(r, t, &v.s, &v.len);
    if (e)
        return e;
    uint16_t code = expr_schema_code(s, v.s, v.len);
    if (code && expr_schema_member(s, k, code))
        return json_fail(&r->j, t, "an enum value is there twice");
    if (s->enum_count == r->enum_cap || s->member_count == r->enum_cap)
        return json_fail(&r->j, t, "too many enum values");
    if (!code) {
        code = (uint16_t)(s->enum_count + 1);
        v.code = code;
        s->strings[s->enum_count++] = v;
        uint32_t h = expr_schema_hash(v.s, v.len);
        while (s->enum_hash[h & s->enum_mask])
            h++;
        s->enum_hash[h & s->enum_mask] = code;
    }
    s->members[s->member_count++] = code;
    k->enums++;
    return 0;
}

static int read_domain(struct reader *r, struct expr_key *k, const struct json_token *t)
{
    struct json_token x;
    int e;
    if (t->kind != JSON_ARRAY)
        return json_fail(&r->j, t, "\"enum\" is a list");
    if (k->enums)
        return json_fail(&r->j, t, "\"enum\" is there twice");
    k->first_enum = (uint16_t)r->s->member_count;
    while ((e = json_next(&r->j, &x)) == 0 && x.kind != JSON_ARRAY_END)
        if ((e = add_enum(r, k, &x)))
            return e;
    if (e == 0 && k->enums == 0)
        return json_fail(&r->j, t, "an empty domain: no value could follow it");
    return e;
}

static int read_bound(struct reader *r, const struct json_token *t, struct expr_value *ret,
                      bool *has)
{
    int e = json_value(&r->j, t, &r->area, ret);
    if (e)
        return e;
    bool number =
        ret->kind == K_INT || ret->kind == K_BIG || (ret->kind == K_FLOAT && !isnan(ret->f));
    if (!number)
        return json_fail(&r->j, t, "a bound is a number");
    *has = true;
    return 0;
}

static int read_options(struct reader *r, struct expr_key *k)
{
    struct json_token name, t;
    int e;
    while ((e = json_next(&r->j, &name)) == 0 && name.kind == JSON_KEY) {
        if ((e = json_next(&r->j, &t)))
            return e;
        if (is(r, &name, "type")) {
            e = read_types(r, &t, &k->types);
        } else if (is(r, &name, "min")) {
            e = read_bound(r, &t, &k->min, &k->has_min);
        } else if (is(r, &name, "max")) {
            e = read_bound(r, &t, &k->max, &k->has_max);
        } else if (is(r, &name, "enum")) {
            e = read_domain(r, k, &t);
        } else if (is(r, &name, "required") && (t.kind == JSON_TRUE || t.kind == JSON_FALSE)) {
            k->required = t.kind == JSON_TRUE;
        } else if (is(r, &name, "doc") && t.kind == JSON_STRING) {
            e = keep_string(r, &t, &k->doc, &k->doc_len);
        } else {
            e = json_fail(&r->j, &name,
                          "unknown property; known are type, min, max, enum, required, doc");
        }
        if (e)
            return e;
    }
    if (e)
        return e;
    if (k->enums && k->types == TYPE_ANY)
        k->types = TYPE_BIT(CORDON_STR);
    if (k->enums && !(k->types & TYPE_BIT(CORDON_STR)))
        return json_fail(&r->j, &name, "an enum needs the type str");
    if ((k->has_min || k->has_max) && k->types == TYPE_ANY)
        k->types = TYPE_NUMBER;
    if ((k->has_min || k->has_max) && !(k->types & (TYPE_NUMBER | TYPE_BIT(CORDON_BOOL))))
        return json_fail(&r->j, &name, "a range needs a type of numbers");
    if (k->has_min && k->has_max && expr_order(&k->min, &k->max) > 0)
        return json_fail(&r->j, &name, "min is above max: no value could follow it");
    return 0;
}

static void insert(struct cordon_schema *s, uint32_t slot)
{
    uint32_t h = expr_schema_hash(s->keys[slot].name, s->keys[slot].len);
    while (s->hash[h & s->hash_mask])
        h++;
    s->hash[h & s->hash_mask] = (uint16_t)(slot + 1);
}

/* It stands last among the keys. */
static int add_key(struct reader *r, const struct json_token *t)
{
    if (r->s->count == r->key_room)
        return json_fail(&r->j, t, "too many keys");
    struct expr_key *k = &r->s->keys[r->s->count++];
    *k = (struct expr_key){.types = TYPE_ANY};
    int e = keep_string(r, t, &k->name, &k->len);
    if (e)
        return e;
    if (expr_schema_slot(r->s, k->name, k->len) >= 0)
        return json_fail(&r->j, t, "a key is declared twice");
    insert(r->s, r->s->count - 1);
    return 0;
}

static int read_keys(struct reader *r)
{
    struct json_token t, v;
    int e = json_next(&r->j, &t);
    if (e)
        return e;
    if (t.kind != JSON_OBJECT && t.kind != JSON_ARRAY)
        return json_fail(&r->j, &t, "\"keys\" is an object or a list of names");
    bool list = t.kind == JSON_ARRAY;
    while ((e = json_next(&r->j, &t)) == 0 && (t.kind == JSON_KEY || t.kind == JSON_STRING)) {
        if ((e = add_key(r, &t)))
            return e;
        if (list)
            continue;
        if ((e = json_next(&r->j, &v)))
            return e;
        struct expr_key *k = &r->s->keys[r->s->count - 1];
        if (v.kind == JSON_STRING)
            e = read_types(r, &v, &k->types);
        else if (v.kind == JSON_OBJECT)
            e = read_options(r, k);
        else
            e = json_fail(&r->j, &v, "a key is described by a type or an object");
        if (e)
            return e;
    }
    if (e == 0 && t.kind != JSON_OBJECT_END && t.kind != JSON_ARRAY_END)
        return json_fail(&r->j, &t, "names of keys are strings");
    return e;
}

static int compare_names(const struct expr_key *a, const struct expr_key *b)
{
    uint32_t n = a->len < b->len ? a->len : b->len;
    int c = n ? memcmp(a->name, b->name, n) : 0;
    return c ? c : (a->len > b->len) - (a->len < b->len);
}

static uint8_t fast_kind(const struct expr_key *k)
{
    switch (k->types) {
    case TYPE_BIT(CORDON_INT):
        return K_INT;
    case TYPE_BIT(CORDON_BOOL):
        return K_BOOL;
    case TYPE_BIT(CORDON_FLOAT):
    case TYPE_NUMBER:
        return K_FLOAT;
    case TYPE_BIT(CORDON_STR):
        return K_STR;
    default:
        return EXPR_NO_KIND;
    }
}

/* Shell sort: no recursion, no memory, and at most 1024 keys. Until here slots were in the order of
 * the text, so the hash is made anew. */
static void finish(struct cordon_schema *s)
{
    for (uint32_t gap = s->count / 2; gap; gap /= 2)
        for (uint32_t i = gap; i < s->count; i++) {
            struct expr_key k = s->keys[i];
            uint32_t j = i;
            for (; j >= gap && compare_names(&s->keys[j - gap], &k) > 0; j -= gap)
                s->keys[j] = s->keys[j - gap];
            s->keys[j] = k;
        }
    memset(s->hash, 0, (s->hash_mask + 1u) * sizeof *s->hash);
    for (uint32_t i = 0; i < s->count; i++) {
        s->keys[i].kind = fast_kind(&s->keys[i]);
        insert(s, i);
    }
}

/* The members of a context that no key declares, as keys of any type. */
static int add_members(struct reader *r, const char *context, size_t len, struct cordon_error *err)
{
    struct json_token t, v;
    json_init(&r->j, context, len, CORDON_CONTEXT, err);
    int e = json_next(&r->j, &t);
    if (e == 0 && t.kind != JSON_OBJECT)
        return json_fail(&r->j, &t, "a context is a JSON object");
    while (e == 0 && (e = json_next(&r->j, &t)) == 0 && t.kind == JSON_KEY) {
        const char *name;
        uint32_t n;
        size_t mark = r->area.used;
        if ((e = json_unescape(&r->j, &t, &r->area, &name, &n)))
            return e;
        int known = expr_schema_slot(r->s, name, n);
        r->area.used = mark;
        if (known < 0 && (e = add_key(r, &t)))
            return e;
        if ((e = json_next(&r->j, &v)) == 0)
            e = json_skip(&r->j, &v);
    }
    return e ? e : json_next(&r->j, &t);
}

static void *zeroed(struct expr_area *a, size_t size)
{
    void *p = expr_area_take(a, size);
    if (p)
        memset(p, 0, size);
    return p;
}

int cordon_schema_read(const char *json, size_t len, void *mem, size_t mem_len,
                       struct cordon_schema **ret_schema, struct cordon_error *err)
{
    return cordon_schema_read_with(json, len, NULL, 0, mem, mem_len, ret_schema, err);
}

int cordon_schema_read_with(const char *json, size_t len, const char *context, size_t context_len,
                            void *mem, size_t mem_len, struct cordon_schema **ret_schema,
                            struct cordon_error *err)
{
    struct reader r = {.area = expr_area_of(mem, mem_len),
                       .key_room = (uint32_t)at_most((len + context_len) / 4 + 1, CORDON_KEYS_MAX),
                       .enum_cap = (uint32_t)at_most((len + context_len) / 3 + 1, CORDON_ENUM_MAX)};
    if (len > CORDON_CONTEXT_MAX || context_len > CORDON_CONTEXT_MAX)
        return expr_fail(err, CORDON_SCHEMA, "a schema of more than %u bytes", CORDON_CONTEXT_MAX);
    json_init(&r.j, json, len, CORDON_SCHEMA, err);
    struct cordon_schema *s = r.s = zeroed(&r.area, sizeof *s);
    if (!s)
        return no_memory(&r);
    s->hash_mask = table_size(r.key_room) - 1;
    s->enum_mask = table_size(r.enum_cap) - 1;
    s->keys = zeroed(&r.area, r.key_room * sizeof *s->keys);
    s->hash = zeroed(&r.area, (s->hash_mask + 1u) * sizeof *s->hash);
    s->strings = zeroed(&r.area, r.enum_cap * sizeof *s->strings);
    s->enum_hash = zeroed(&r.area, (s->enum_mask + 1u) * sizeof *s->enum_hash);
    s->members = zeroed(&r.area, r.enum_cap * sizeof *s->members);
    if (!s->keys || !s->hash || !s->strings || !s->enum_hash || !s->members)
        return no_memory(&r);
    struct json_token t;
    bool seen = false;
    int e = json_next(&r.j, &t);
    if (e == 0 && t.kind != JSON_OBJECT)
        e = json_fail(&r.j, &t, "a schema is an object with \"keys\"");
    while (e == 0 && (e = json_next(&r.j, &t)) == 0 && t.kind == JSON_KEY) {
        if (is(&r, &t, "keys") && !seen) {
            seen = true;
            e = read_keys(&r);
        } else if (is(&r, &t, "doc")) {
            e = json_next(&r.j, &t);
            if (e == 0 && t.kind != JSON_STRING)
                e = json_fail(&r.j, &t, "\"doc\" is a string");
        } else {
            e = json_fail(&r.j, &t, "unknown property of a schema; known are keys and doc");
        }
    }
    if (e == 0)
        e = json_next(&r.j, &t); /* nothing may follow */
    if (e == 0 && !seen)
        e = expr_fail(err, CORDON_SCHEMA, "a schema needs \"keys\"");
    if (e == 0 && context)
        e = add_members(&r, context, context_len, err);
    if (e)
        return e;
    finish(s);
    *ret_schema = s;
    return 0;
}
