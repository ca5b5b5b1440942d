/* SPDX-License-Identifier: Apache-2.0 */
/* The part of JSON Schema that describes arguments: type, enum, bounds of numbers, texts and lists, properties, required.
 * A word of a schema that is not known refuses every call: a bound that nobody checks is no bound. Properties
 * that a schema does not have are refused, whether or not it says so. */
#include "tools/inside.h"

#include "base/argwords.h"
#include "base/limits.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define DEPTH_MAX 16

struct checking {
    char *why;
    size_t size;
    int depth;
};

static bool no(struct checking *k, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static bool no(struct checking *k, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(k->why, k->size, fmt, ap);
    va_end(ap);
    return false;
}

static bool is_type(const json_t *v, const char *type)
{
    static const struct {
        const char *name;
        json_type type;
    } rows[] = {{"string", JSON_STRING}, {"integer", JSON_INTEGER}, {"number", JSON_INTEGER},
                {"number", JSON_REAL},   {"boolean", JSON_TRUE},    {"boolean", JSON_FALSE},
                {"object", JSON_OBJECT}, {"array", JSON_ARRAY},     {"null", JSON_NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].name, type) == 0 && json_typeof(v) == rows[i].type)
            return true;
    return false;
}

static bool fits(struct checking *k, const json_t *schema, const json_t *v, const char *name);

static bool fits_properties(struct checking *k, const json_t *schema, const json_t *v,
                            const char *name)
{
    const json_t *known = json_object_get(schema, "properties");
    const json_t *needed = json_object_get(schema, "required");
    const char *key;
    json_t *one;
    size_t i;
    json_object_foreach((json_t *)v, key, one)
    {
        const json_t *of = json_object_get(known, key);
        if (!of)
            return no(k, "there is no argument '%.60s'", key);
        if (!fits(k, of, one, key))
            return false;
    }
    json_array_foreach(
        (json_t *)needed, i,
        one) if (!json_object_get(v, json_string_value(one))) return no(k, "%s%s'%.60s' is missing",
                                                                        name,
                                                                        *name ? ": "
                                                                              : "the argument ",
                                                                        json_string_value(one));
    return true;
}

static bool fits_items(struct checking *k, const json_t *schema, const json_t *v, const char *name)
{
    const json_t *of = json_object_get(schema, "items");
    size_t i;
    json_t *one;
    json_array_foreach((json_t *)v, i, one) if (of && !fits(k, of, one, name)) return false;
    return true;
}

static bool fits_enum(struct checking *k, const json_t *list, const json_t *v, const char *name)
{
    size_t i;
    json_t *one;
    json_array_foreach((json_t *)list, i, one) if (json_equal(one, v)) return true;
    return no(k, "'%.60s' is none of the values that it may have", name);
}

/* How much of V a bound is about: characters, items, or the number itself. A whole number may have more digits than a
 * double tells apart: 2^53 + 1 is not within 2^53. */
static long double measure(const json_t *v)
{
    return json_is_string(v)    ? utf8_count(json_string_value(v), json_string_length(v))
           : json_is_array(v)   ? json_array_size(v)
           : json_is_integer(v) ? (long double)json_integer_value(v)
                                : (long double)json_number_value(v);
}

/* The property names a file: host.c opens it. */
static bool is_file(const struct checking *k, const json_t *of, const json_t *v)
{
    return k->depth == 2 && json_is_string(v) && json_is_string(of) &&
           strcmp(json_string_value(of), ARGWORDS_FILE) == 0;
}

static bool not_within(struct checking *k, const char *word, const json_t *of, const json_t *v,
                       const char *name)
{
    const char *what = json_is_string(v)  ? " characters long"
                       : json_is_array(v) ? " items long"
                                          : "";
    const int digits = json_is_real(v) || json_is_real(of) ? 15 : 19; /* all that they have */
    return no(k, "'%.60s' is %.*Lg%s; %s is %.*Lg", name, digits, measure(v), what, word, digits,
              measure(of));
}

/* 1: it is none of these words. */
static int fits_bound(struct checking *k, const char *word, const json_t *of, const json_t *v,
                      const char *name)
{
#define BOUND(word, least) {word, least},
    static const struct {
        const char *word;
        bool least;
    } bounds[] = {ARGWORDS_BOUNDS(BOUND)};
#undef BOUND
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
        if (strcmp(bounds[i].word, word) == 0) {
            const bool good =
                bounds[i].least ? measure(v) >= measure(of) : measure(v) <= measure(of);
            return good || not_within(k, word, of, v, name) ? 0 : -1;
        }
    return 1;
}

static bool fits_word(struct checking *k, const char *word, const json_t *of, const json_t *v,
                      const json_t *schema, const char *name)
{
#define PLAIN(word) word,
    static const char *const plain[] = {ARGWORDS_PLAIN(PLAIN)};
#undef PLAIN
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (strcmp(plain[i], word) == 0)
            return true;
    const int bound = fits_bound(k, word, of, v, name);
    if (bound <= 0)
        return bound == 0;
    if (strcmp(word, "type") == 0)
        return (json_is_string(of) && is_type(v, json_string_value(of))) ||
               no(k, "'%.60s' is not of type %.20s", name,
                  json_is_string(of) ? json_string_value(of) : "?");
    if (strcmp(word, "enum") == 0)
        return fits_enum(k, of, v, name);
    if (strcmp(word, "items") == 0)
        return fits_items(k, schema, v, name);
    if (strcmp(word, "properties") == 0)
        return fits_properties(k, schema, v, name);
    if (strcmp(word, "additionalProperties") == 0 && json_is_false(of))
        return true;
    if (strcmp(word, "format") == 0 && is_file(k, of, v))
        return true;
    return no(k, "the schema of the tool has '%.40s', which is not checked: ask its operator",
              word);
}

static bool fits(struct checking *k, const json_t *schema, const json_t *v, const char *name)
{
    const char *word;
    json_t *of;
    bool good = ++k->depth <= DEPTH_MAX || no(k, "'%.60s' is nested too deeply", name);
    /* the type first: a bound means something only of it */
    const json_t *type = json_object_get(schema, "type");
    if (good && !type)
        good = no(k, "the schema of the tool does not say the type of '%.60s'", name);
    good = good && fits_word(k, "type", type, v, schema, name);
    json_object_foreach((json_t *)schema, word, of) good =
        good && fits_word(k, word, of, v, schema, name);
    k->depth--;
    return good;
}

/* Positional arguments get the names of the properties, in their order. */
static bool name_args(struct checking *k, const json_t *schema, const json_t *given, json_t *ret)
{
    const json_t *list = json_object_get(given, "args"), *named = json_object_get(given, "kwargs");
    json_t *known = json_object_get(schema, "properties"), *one;
    void *at = json_object_iter(known);
    const char *key;
    size_t i;
    json_array_foreach((json_t *)list, i, one)
    {
        if (!at)
            return no(k, "%zu arguments are too many", json_array_size(list));
        if (json_object_set(ret, json_object_iter_key(at), one) < 0)
            return no(k, "no memory");
        at = json_object_iter_next(known, at);
    }
    json_object_foreach((json_t *)named, key, one)
    {
        if (json_object_get(ret, key))
            return no(k, "the argument '%.60s' comes twice", key);
        if (json_object_set(ret, key, one) < 0)
            return no(k, "no memory");
    }
    return true;
}

/* ONE, of which nothing but its length may be told: there is no name to know a secret by. */
static size_t bytes_of(const json_t *one)
{
    return json_dumpb(one, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY);
}

static int add_again(json_t *ret, const char *key, json_t *one)
{
    char name[128];
    if (!json_object_get(ret, key))
        return json_object_set(ret, key, one);
    snprintf(name, sizeof name, "%.100s_again", key);
    return json_object_set(ret, name, one);
}

static int name_all(const json_t *schema, const json_t *given, json_t *ret)
{
    json_t *known = json_object_get(schema, "properties"), *one;
    void *at = json_object_iter(known);
    size_t i, count = 0, bytes = 0;
    const char *key;
    int r = 0;
    json_array_foreach(json_object_get(given, "args"), i, one)
    {
        r |= at ? json_object_set(ret, json_object_iter_key(at), one) : 0;
        count += !at;
        bytes += at ? 0 : bytes_of(one);
        at = at ? json_object_iter_next(known, at) : NULL;
    }
    json_object_foreach(json_object_get(given, "kwargs"), key, one) r |= add_again(ret, key, one);
    if (count)
        r |= json_object_set_new(
            ret, "arguments without a name",
            json_pack("{s:I, s:I}", "count", (json_int_t)count, "bytes", (json_int_t)bytes));
    return r;
}

json_t *tools_named(const char *schema, const void *given, size_t len)
{
    json_t *rules = schema ? json_loads(schema, JSON_REJECT_DUPLICATES, NULL) : NULL;
    json_t *said = json_loadb(given, len, JSON_REJECT_DUPLICATES, NULL);
    json_t *named = json_is_object(said) ? json_object() : NULL;
    if (named && name_all(rules, said, named) < 0) {
        json_decref(named);
        named = NULL;
    }
    json_decref(rules);
    json_decref(said);
    return named;
}

int tools_check(const char *schema, const void *given, size_t len, json_t **ret_args, char *why,
                size_t size)
{
    struct checking k = {.why = why, .size = size};
    json_error_t error;
    json_t *rules = schema ? json_loads(schema, JSON_REJECT_DUPLICATES, &error) : NULL;
    json_t *said = json_loadb(given, len, JSON_REJECT_DUPLICATES, &error);
    json_t *args = json_object();
    bool good = args && (!schema || json_is_object(rules) ||
                         no(&k, "the schema of the tool is not JSON: ask its operator"));
    good =
        good && (json_is_object(said) ||
                 /* what jansson says of it quotes it, and a reason is put on record */
                 no(&k,
                    "the arguments are not JSON, from byte %d on: there is no NaN or Infinity, a "
                    "whole number has 64 bits, a text no NUL and no half of a surrogate pair",
                    said ? 0 : error.position));
    if (good && schema)
        good = name_args(&k, rules, said, args) && fits(&k, rules, args, "");
    if (good)
        *ret_args = json_incref(schema ? args : said);
    json_decref(rules);
    json_decref(said);
    json_decref(args);
    return good ? 0 : -1;
}
