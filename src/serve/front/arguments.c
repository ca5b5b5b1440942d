/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments against the table of a tool. Each mistake names the argument, what came and what is wanted, because whoever
 * reads it is a model that can do better. */
#include "serve/front/inside.h"

#include <stdio.h>
#include <string.h>

#define WHY  300
#define MOST ((uint64_t)INT64_MAX) /* of a count: what is beyond it is as good as that */

static const char *kind_of(const json_t *v)
{
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "a boolean";
    case JSON_NULL:
        break;
    }
    return "null";
}

static bool wrong(char *why, const struct serve_arg *a, const json_t *v, const char *wanted)
{
    snprintf(why, WHY, "%s must be %s, not %s", a->name, wanted, kind_of(v));
    return false;
}

/* A number that is none of those wanted is told as it came. */
static bool wrong_number(char *why, const struct serve_arg *a, const json_t *v, const char *wanted)
{
    if (json_is_string(v))
        snprintf(why, WHY, "%s must be %s, not '%.40s'", a->name, wanted, json_string_value(v));
    else if (json_is_number(v))
        snprintf(why, WHY, "%s must be %s, not %.15g", a->name, wanted, json_number_value(v));
    else
        return wrong(why, a, v, wanted);
    return false;
}

/* JSON Schema calls 3.0 an integer, and so do clients whose language has one kind of number. They write 1e21 for a number
 * that is whole as well, and means: as much as there is. */
static bool take_whole(const json_t *v, uint64_t *ret)
{
    const double real = json_real_value(v), most = 1ULL << 53; /* up to there each has its own */
    const json_int_t n = json_is_integer(v)          ? json_integer_value(v)
                         : real > -1 && real <= most ? (json_int_t)real
                                                     : -1;
    const double whole = (double)n;
    *ret = real > most ? MOST : (uint64_t)n;
    if (real > most)
        return true;
    return n >= 0 &&
           (json_is_integer(v) || (json_is_real(v) && !(real < whole) && !(real > whole)));
}

/* Digits, and zeros behind a point. */
static bool take_digits(const json_t *v, uint64_t *ret)
{
    const char *s = json_string_value(v), *end = s + strspn(s, "0123456789");
    uint64_t n = 0;
    for (const char *d = s; d < end; d++)
        n = n > (MOST - 9) / 10 ? MOST : 10 * n + (uint64_t)(*d - '0');
    *ret = n;
    if (end > s && end[0] == '.' && end[1] == '0')
        end += 1 + strspn(end + 1, "0");
    return end > s && end == s + json_string_length(v);
}

static bool take_text(const struct serve_arg *a, const json_t *v, struct serve_value *out,
                      char *why)
{
    if (!json_is_string(v))
        return wrong(why, a, v, "a string");
    out->text = json_string_value(v);
    out->len = json_string_length(v);
    if (memchr(out->text, 0, out->len))
        snprintf(why, WHY, "%s contains a NUL character", a->name);
    else if (a->kind == SERVE_ARG_NAME && out->len > SERVE_NAME)
        snprintf(why, WHY, "%s has %zu bytes; %d are the most", a->name, out->len, SERVE_NAME);
    else
        return true;
    return false;
}

static bool take_count(const struct serve_arg *a, const json_t *v, struct serve_value *out,
                       char *why)
{
    const bool good =
        json_is_string(v) ? take_digits(v, &out->number) : take_whole(v, &out->number);
    const uint64_t least = a->kind == SERVE_ARG_COUNT;
    if (!good || out->number < least)
        return wrong_number(why, a, v,
                            least ? "a whole number of 1 or more" : "a whole number of 0 or more");
    return true;
}

static bool take_flag(const struct serve_arg *a, const json_t *v, struct serve_value *out,
                      char *why)
{
    const char *s = json_is_string(v) ? json_string_value(v) : "";
    if (strlen(s) != (json_is_string(v) ? json_string_length(v) : 0))
        s = ""; /* a NUL, and something behind it */
    if (!json_is_boolean(v) && strcmp(s, "true") != 0 && strcmp(s, "false") != 0)
        return wrong(why, a, v, "true or false");
    out->number = json_is_true(v) || strcmp(s, "true") == 0;
    return true;
}

static bool take_word(const struct serve_arg *a, const json_t *v, struct serve_value *out,
                      char *why)
{
    if (!take_text(a, v, out, why))
        return false;
    for (const char *w = a->words; *w;) {
        const size_t n = strcspn(w, " ");
        if (n == out->len && memcmp(w, out->text, n) == 0)
            return true;
        w += n + (w[n] == ' ');
    }
    snprintf(why, WHY, "%s: '%.40s' is none of: %s", a->name, out->text, a->words);
    return false;
}

static bool take_json(const struct serve_arg *a, json_t *v, struct serve_value *out, char *why)
{
    if (json_is_object(v)) {
        out->json = v;
        return true;
    }
    return json_is_string(v) ? take_text(a, v, out, why) : wrong(why, a, v, "an object");
}

static bool take(const struct serve_arg *a, json_t *v, struct serve_value *out, char *why)
{
    out->given = true;
    switch (a->kind) {
    case SERVE_ARG_TEXT:
    case SERVE_ARG_NAME:
        return take_text(a, v, out, why);
    case SERVE_ARG_COUNT:
    case SERVE_ARG_OFFSET:
        return take_count(a, v, out, why);
    case SERVE_ARG_FLAG:
        return take_flag(a, v, out, why);
    case SERVE_ARG_WORD:
        return take_word(a, v, out, why);
    case SERVE_ARG_JSON:
        break;
    }
    return take_json(a, v, out, why);
}

static bool unknown(const struct serve_tool *t, const char *key, char *why)
{
    int n = snprintf(why, WHY, "%s has no argument '%.40s'; it has:", t->name, key);
    for (size_t i = 0; i < SERVE_ARGS && t->args[i].name && n > 0 && n < WHY; i++)
        n += snprintf(why + n, (size_t)(WHY - n), "%s %s", i ? "," : "", t->args[i].name);
    return false;
}

bool serve_tools_arguments(const struct serve_tool *t, json_t *arguments,
                           struct serve_value v[SERVE_ARGS], char *why)
{
    const char *key;
    json_t *value;
    if (arguments)
        json_object_foreach(arguments, key, value)
        {
            size_t i = 0;
            while (i < SERVE_ARGS && t->args[i].name && strcmp(t->args[i].name, key) != 0)
                i++;
            if (i == SERVE_ARGS || !t->args[i].name)
                return unknown(t, key, why);
            if (json_is_null(value) && !t->args[i].required)
                continue; /* as if it were not there: clients fill in what they do not know */
            if (!take(&t->args[i], value, &v[i], why))
                return false;
        }
    for (size_t i = 0; i < SERVE_ARGS && t->args[i].name; i++)
        if (t->args[i].required && !v[i].given) {
            snprintf(why, WHY, "%s is missing: %s", t->args[i].name, t->args[i].text);
            return false;
        }
    return true;
}
