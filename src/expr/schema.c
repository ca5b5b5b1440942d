/* SPDX-License-Identifier: Apache-2.0 */
/* Keys are looked up once a condition, at compile time, and once a member of a JSON context; a hash
 * with open addressing makes both independent of the size of the schema. The hash is not keyed:
 * only the operator's own names are stored in it, and probing is bounded by the table. */
#include "expr/schema.h"

#include "base/hash.h"
#include "expr/ops.h"

#include <string.h>

uint32_t expr_schema_hash(const char *s, size_t len)
{
    uint32_t h = hash_bytes(HASH_START, s, len);
    return h ^ h >> 15;
}

int expr_schema_slot(const struct cordon_schema *s, const char *name, size_t len)
{
    for (uint32_t h = expr_schema_hash(name, len);; h++) {
        uint16_t x = s->hash[h & s->hash_mask];
        if (x == 0)
            return -1;
        const struct expr_key *k = &s->keys[x - 1];
        if (k->len == len && memcmp(k->name, name, len) == 0)
            return x - 1;
    }
}

uint16_t expr_schema_code(const struct cordon_schema *s, const char *text, size_t len)
{
    if (s->enum_count == 0)
        return 0;
    for (uint32_t h = expr_schema_hash(text, len);; h++) {
        uint16_t x = s->enum_hash[h & s->enum_mask];
        if (x == 0)
            return 0;
        const struct expr_value *v = &s->strings[x - 1];
        if (v->len == len && (len == 0 || memcmp(v->s, text, len) == 0))
            return x;
    }
}

bool expr_schema_member(const struct cordon_schema *s, const struct expr_key *k, uint16_t code)
{
    for (uint32_t i = 0; i < k->enums; i++)
        if (s->members[k->first_enum + i] == code)
            return true;
    return false;
}

bool expr_schema_fits(const struct cordon_schema *s, const struct expr_key *k,
                      const struct expr_value *v)
{
    if (v->kind == K_NONE)
        return !k->required;
    if (v->kind > K_BIG || !(k->types & TYPE_BIT(expr_type(v))))
        return false;
    if (v->kind == K_STR)
        return k->enums == 0 || expr_schema_member(s, k, v->code);
    if (v->kind == K_FLOAT && (k->has_min || k->has_max) && isnan(v->f))
        return false;
    return (!k->has_min || expr_order(v, &k->min) >= 0) &&
           (!k->has_max || expr_order(v, &k->max) <= 0);
}

size_t cordon_schema_count(const struct cordon_schema *s)
{
    return s->count;
}

const char *cordon_schema_key(const struct cordon_schema *s, size_t slot, size_t *ret_len)
{
    if (slot >= s->count)
        return NULL;
    if (ret_len)
        *ret_len = s->keys[slot].len;
    return s->keys[slot].name;
}

int cordon_schema_slot(const struct cordon_schema *s, const char *key, size_t len)
{
    return expr_schema_slot(s, key, len);
}

const char *expr_schema_get_key(const void *schema, size_t i, size_t *ret_len)
{
    return cordon_schema_key(schema, i, ret_len);
}

/* Edit distance with neighbours swapped, at most LIMIT + 1; both at most NEAR bytes long. */
#define NEAR 64
static unsigned distance(const char *a, size_t na, const char *b, size_t nb)
{
    unsigned char row[3][NEAR + 1];
    for (size_t j = 0; j <= nb; j++)
        row[0][j] = (unsigned char)j;
    for (size_t i = 1; i <= na; i++) {
        unsigned char *now = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
        now[0] = (unsigned char)i;
        for (size_t j = 1; j <= nb; j++) {
            unsigned d = last[j - 1] + (a[i - 1] != b[j - 1]);
            if (last[j] + 1u < d)
                d = last[j] + 1u;
            if (now[j - 1] + 1u < d)
                d = now[j - 1] + 1u;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1u < d)
                d = before[j - 2] + 1u;
            now[j] = (unsigned char)d;
        }
    }
    return row[na % 3][nb];
}

int expr_nearest(const char *name, size_t len, size_t count,
                 const char *(*get)(const void *from, size_t i, size_t *ret_len), const void *from)
{
    int best = -1;
    unsigned least = (unsigned)(len < 4 ? 1 : len / 3) + 1;
    if (len > NEAR)
        return -1;
    for (size_t i = 0; i < count; i++) {
        size_t n;
        const char *s = get(from, i, &n);
        if (n > NEAR || (n > len ? n - len : len - n) >= least)
            continue;
        if (n == len && memcmp(s, name, n) == 0)
            continue;
        unsigned d = distance(name, len, s, n);
        if (d < least && d < n) {
            least = d;
            best = (int)i;
        }
    }
    return best;
}
