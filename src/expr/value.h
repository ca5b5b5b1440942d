/* SPDX-License-Identifier: Apache-2.0 */
/* The five value types of the language, as the engine holds them.
 *
 * Takes:   nothing: plain values.
 * Gives:   16 bytes that fit two registers, and the names CPython gives the types.
 * Never:   owns memory: strings and limbs live in the program, the context or the scratch.
 * Runs in: `cordon`, cordon-tool, and every program that links libcordon.
 */
#ifndef EXPR_VALUE_H
#define EXPR_VALUE_H

#include "cordon.h"

#include <stdbool.h>
#include <stdint.h>

/* The first five are enum cordon_type; an int past 64 bits is K_BIG, always too long for K_INT. */
enum expr_kind {
    K_NONE = CORDON_NONE,
    K_BOOL = CORDON_BOOL,
    K_INT = CORDON_INT,
    K_FLOAT = CORDON_FLOAT,
    K_STR = CORDON_STR,
    K_BIG,
    K_ABSENT,  /* only in a context: the key is not there */
    K_FOREIGN, /* only in a context: a list (i = 1) or an object (i = 0) */
    K_UNREAD,  /* only in a context: the caller will say when it is reached */
};

struct expr_value {
    uint8_t kind;
    uint8_t neg;   /* K_BIG */
    uint16_t code; /* K_STR of a context or constant: its number in the schema's enums, or 0 */
    uint32_t len;  /* bytes of a string, limbs of a K_BIG */
    union {
        int64_t i; /* also K_BOOL */
        double f;
        const char *s;
        const uint64_t *limb;
    };
};

static inline struct expr_value expr_none(void)
{
    return (struct expr_value){.kind = K_NONE};
}
static inline struct expr_value expr_bool(bool b)
{
    return (struct expr_value){.kind = K_BOOL, .i = b};
}
static inline struct expr_value expr_int(int64_t i)
{
    return (struct expr_value){.kind = K_INT, .i = i};
}
static inline struct expr_value expr_float(double f)
{
    return (struct expr_value){.kind = K_FLOAT, .f = f};
}
static inline struct expr_value expr_str(const char *s, uint32_t len)
{
    return (struct expr_value){.kind = K_STR, .len = len, .s = s};
}

static inline enum cordon_type expr_type(const struct expr_value *v)
{
    return v->kind == K_BIG ? CORDON_INT : (enum cordon_type)v->kind;
}

static inline bool expr_truth(const struct expr_value *v)
{
    switch (v->kind) {
    case K_NONE:
        return false;
    case K_FLOAT:
        return v->f != 0;
    case K_STR:
        return v->len != 0;
    case K_BIG:
        return true;
    default:
        return v->i != 0;
    }
}

/* "NoneType", "bool", "int", "float", "str" */
const char *expr_type_name(enum cordon_type t);

/* An int of any size in its shortest kind; LIMB must outlive the value. */
struct expr_value expr_from_limbs(const uint64_t *limb, uint32_t n, bool neg);
/* The limbs of an int or bool; ROOM holds the one limb of a small one. */
uint32_t expr_to_limbs(const struct expr_value *v, uint64_t *cap, const uint64_t **ret_limb,
                       bool *ret_neg);
struct cordon_value expr_export(const struct expr_value *v);

#endif
