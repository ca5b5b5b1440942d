/* SPDX-License-Identifier: Apache-2.0 */
/* The declared keys: their slots, types, ranges and enum domains.
 *
 * Takes:   a JSON schema text.
 * Gives:   slots in sorted order of the names, found by hash; enum strings numbered across it.
 * Never:   changes after it was read, so any number of threads may use it.
 * Runs in: `cordon`, cordon-tool, and every program that links libcordon.
 */
#ifndef EXPR_SCHEMA_H
#define EXPR_SCHEMA_H

#include "expr/area.h"
#include "expr/error.h"
#include "expr/value.h"

#define TYPE_BIT(t)  (1u << (t))
#define TYPE_NUMBER  (TYPE_BIT(CORDON_INT) | TYPE_BIT(CORDON_FLOAT))
#define TYPE_ANY     31u
#define EXPR_NO_KIND 255 /* the slot has no one kind that fast code could count on */

struct expr_key {
    const char *name;
    uint32_t len;
    uint8_t types; /* of a value that follows the schema, None apart */
    uint8_t kind;  /* enum expr_kind that fast code counts on, or EXPR_NO_KIND */
    bool required; /* absence is KeyError */
    bool has_min, has_max;
    uint16_t first_enum, enums; /* its domain in `members`, if any */
    uint32_t doc_len;
    struct expr_value min, max;
    const char *doc;
};

struct cordon_schema {
    uint32_t count, hash_mask, enum_count, enum_mask, member_count;
    struct expr_key *keys;      /* by slot, sorted by name */
    uint16_t *hash;             /* slot + 1, open addressing */
    struct expr_value *strings; /* by code - 1 */
    uint16_t *enum_hash;        /* code, open addressing */
    uint16_t *members;          /* codes, each key's domain in a row */
};

uint32_t expr_schema_hash(const char *s, size_t len);
int expr_schema_slot(const struct cordon_schema *s, const char *name, size_t len);      /* -1 */
uint16_t expr_schema_code(const struct cordon_schema *s, const char *text, size_t len); /* 0 */
bool expr_schema_member(const struct cordon_schema *s, const struct expr_key *k, uint16_t code);
/* Whether V is what key K declares; a missing one is not asked about. */
bool expr_schema_fits(const struct cordon_schema *s, const struct expr_key *k,
                      const struct expr_value *v);

/* The index of the nearest of COUNT names (by GET) to NAME, or -1 when none is near. */
int expr_nearest(const char *name, size_t len, size_t count,
                 const char *(*get)(const void *from, size_t i, size_t *ret_len), const void *from);
const char *expr_schema_get_key(const void *schema, size_t i, size_t *ret_len);

#endif
