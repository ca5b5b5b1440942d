/* SPDX-License-Identifier: Apache-2.0 */
/* Existing C readers stop at 64 bits or recurse; this one is a flat state machine with one bit of
 * stack a level. It accepts what Python's json.loads accepts, apart from lone surrogates: a string
 * of the language is always valid UTF-8. */
#include "expr/json.h"

#include "base/utf8.h"
#include "expr/error.h"
#include "expr/number.h"

#include <math.h>
#include <string.h>

enum { WANT_VALUE, WANT_VALUE_OR_END, WANT_KEY, WANT_KEY_OR_END, WANT_COMMA, WANT_NOTHING };

void json_init(struct json *j, const char *text, size_t len, enum cordon_status blame,
               struct cordon_error *err)
{
    *j = (struct json){.text = text, .len = len, .blame = blame, .err = err};
}

int json_fail(struct json *j, const struct json_token *t, const char *what)
{
    size_t at = t ? t->start : j->at;
    int r = expr_fail(j->err, j->blame, "%s", what);
    expr_place(j->err, j->text, j->len, at, t ? t->end : at + 1);
    return r;
}

static bool inside_object(const struct json *j)
{
    return j->in_object[(j->depth - 1) / 8] >> ((j->depth - 1) % 8) & 1;
}

static int open_level(struct json *j, bool object)
{
    if (j->depth == CORDON_JSON_DEPTH)
        return json_fail(j, NULL, "JSON nested too deeply");
    unsigned bit = 1u << (j->depth % 8);
    uint8_t *byte = &j->in_object[j->depth / 8];
    *byte = (uint8_t)(object ? *byte | bit : *byte & ~bit);
    j->depth++;
    j->state = object ? WANT_KEY_OR_END : WANT_VALUE_OR_END;
    return 0;
}

static void after_value(struct json *j)
{
    j->state = j->depth ? WANT_COMMA : WANT_NOTHING;
}

static void skip_space(struct json *j)
{
    while (j->at < j->len && (j->text[j->at] == ' ' || j->text[j->at] == '\n' ||
                              j->text[j->at] == '\t' || j->text[j->at] == '\r'))
        j->at++;
}

static int hex4(const char *s, const char *end, uint32_t *ret)
{
    *ret = 0;
    if (end - s < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        char c = s[i];
        bool good = (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'f');
        if (!good)
            return -1;
        *ret = *ret << 4 | (uint32_t)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
    }
    return 0;
}

/* Whether an escape stands at S, behind the backslash. That a surrogate is not alone is asked only
 * where the string is read: one that is stepped over may hold what Python's json module takes. */
static bool is_escape(const char *s, const char *end)
{
    uint32_t unit;
    return s < end && *s &&
           (strchr("\"\\/bfnrt", *s) || (*s == 'u' && hex4(s + 1, end, &unit) == 0));
}

static int scan_string(struct json *j, struct json_token *t)
{
    t->start = ++j->at;
    for (; j->at < j->len; j->at++) {
        unsigned char c = (unsigned char)j->text[j->at];
        if (c == '"') {
            t->end = j->at++;
            size_t n = t->end - t->start;
            size_t good = utf8_valid_prefix(j->text + t->start, n);
            if (good == n)
                return 0;
            j->at = t->start + good;
            return json_fail(j, NULL, "a string that is not UTF-8");
        }
        if (c < 0x20)
            return json_fail(j, NULL, "a control character in a string");
        if (c == '\\') {
            if (!is_escape(j->text + j->at + 1, j->text + j->len))
                return json_fail(j, NULL, "a wrong escape in a string");
            t->escaped = true;
            j->at++;
        }
    }
    j->at = t->start - 1;
    return json_fail(j, NULL, "a string without its end");
}

static size_t digits(struct json *j)
{
    size_t from = j->at;
    while (j->at < j->len && j->text[j->at] >= '0' && j->text[j->at] <= '9')
        j->at++;
    return j->at - from;
}

static bool word(struct json *j, const char *w)
{
    size_t n = strlen(w);
    if (j->len - j->at < n || memcmp(j->text + j->at, w, n) != 0)
        return false;
    j->at += n;
    return true;
}

static int scan_number(struct json *j, struct json_token *t)
{
    t->start = j->at;
    t->kind = JSON_INTEGER;
    if (j->text[j->at] == '-')
        j->at++;
    if (word(j, "Infinity") || (j->at == t->start && word(j, "NaN"))) {
        t->kind = JSON_FLOAT;
        t->end = j->at;
        return 0;
    }
    size_t first = j->at;
    size_t n = digits(j);
    if (n == 0 || (n > 1 && j->text[first] == '0')) {
        j->at = t->start;
        return json_fail(j, NULL, "not a JSON value");
    }
    if (j->at < j->len && j->text[j->at] == '.') {
        j->at++;
        t->kind = JSON_FLOAT;
        if (digits(j) == 0)
            return json_fail(j, NULL, "a number without digits after its point");
    }
    if (j->at < j->len && (j->text[j->at] | 32) == 'e') {
        j->at++;
        t->kind = JSON_FLOAT;
        if (j->at < j->len && (j->text[j->at] == '+' || j->text[j->at] == '-'))
            j->at++;
        if (digits(j) == 0)
            return json_fail(j, NULL, "a number without digits in its exponent");
    }
    t->end = j->at;
    return 0;
}

static int scan_value(struct json *j, struct json_token *t)
{
    int r = 0;
    t->start = j->at;
    switch (j->text[j->at]) {
    case '{':
    case '[':
        t->kind = j->text[j->at] == '{' ? JSON_OBJECT : JSON_ARRAY;
        t->end = j->at + 1;
        r = open_level(j, t->kind == JSON_OBJECT);
        j->at++;
        return r;
    case '"':
        t->kind = JSON_STRING;
        r = scan_string(j, t);
        break;
    case 't':
    case 'f':
    case 'n':
        if (word(j, "true"))
            t->kind = JSON_TRUE;
        else if (word(j, "false"))
            t->kind = JSON_FALSE;
        else if (word(j, "null"))
            t->kind = JSON_NULL;
        else
            r = json_fail(j, NULL, "not a JSON value");
        t->end = j->at;
        break;
    default:
        r = scan_number(j, t);
    }
    after_value(j);
    return r;
}

static int scan_key(struct json *j, struct json_token *t)
{
    if (j->text[j->at] != '"')
        return json_fail(j, NULL, "a member needs a name in double quotes");
    t->kind = JSON_KEY;
    int r = scan_string(j, t);
    if (r)
        return r;
    skip_space(j);
    if (j->at == j->len || j->text[j->at] != ':')
        return json_fail(j, NULL, "a member needs ':' after its name");
    j->at++;
    j->state = WANT_VALUE;
    return 0;
}

int json_next(struct json *j, struct json_token *ret)
{
    *ret = (struct json_token){0};
    for (;;) {
        skip_space(j);
        ret->start = ret->end = j->at;
        if (j->at == j->len) {
            ret->kind = JSON_END;
            return j->state == WANT_NOTHING ? 0
                                            : json_fail(j, NULL, "the JSON text ends too early");
        }
        char c = j->text[j->at];
        switch (j->state) {
        case WANT_NOTHING:
            return json_fail(j, NULL, "text after the end of the JSON value");
        case WANT_COMMA:
            if (c == ',') {
                j->at++;
                j->state = inside_object(j) ? WANT_KEY : WANT_VALUE;
                continue;
            }
            if (c != (inside_object(j) ? '}' : ']'))
                return json_fail(j, NULL, "',' or the closing bracket is missing");
            break;
        case WANT_KEY_OR_END:
            if (c != '}')
                return scan_key(j, ret);
            break;
        case WANT_VALUE_OR_END:
            if (c != ']')
                return scan_value(j, ret);
            break;
        case WANT_KEY:
            return scan_key(j, ret);
        default:
            return scan_value(j, ret);
        }
        ret->kind = c == '}' ? JSON_OBJECT_END : JSON_ARRAY_END;
        ret->end = ++j->at;
        j->depth--;
        after_value(j);
        return 0;
    }
}

int json_skip(struct json *j, const struct json_token *t)
{
    if (t->kind != JSON_OBJECT && t->kind != JSON_ARRAY)
        return 0;
    unsigned base = j->depth - 1;
    struct json_token x;
    while (j->depth > base) {
        int r = json_next(j, &x);
        if (r)
            return r;
    }
    return 0;
}

/* One escape at S (behind the backslash); returns the bytes read, 0 if it is wrong. */
static size_t unescape(const char *s, const char *end, char *out, size_t *ret_len)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *p = *s ? strchr(from, *s) : NULL;
    uint32_t cp, low;
    if (p) {
        out[0] = to[p - from];
        *ret_len = 1;
        return 1;
    }
    if (*s != 'u' || hex4(s + 1, end, &cp) < 0)
        return 0;
    size_t used = 5;
    if (cp >= 0xd800 && cp <= 0xdbff) {
        if (end - s < 11 || s[5] != '\\' || s[6] != 'u' || hex4(s + 7, end, &low) < 0 ||
            low < 0xdc00 || low > 0xdfff)
            return 0;
        cp = 0x10000 + ((cp - 0xd800) << 10) + (low - 0xdc00);
        used = 11;
    }
    int n = utf8_encode(cp, out);
    *ret_len = (size_t)n;
    return n > 0 ? used : 0;
}

size_t json_decode(const char *s, size_t n, char *out, size_t *ret_len)
{
    const char *at = s, *end = s + n;
    size_t len = 0;
    while (at < end) {
        if (*at != '\\') {
            out[len++] = *at++;
            continue;
        }
        size_t put = 0, used = at + 1 < end ? unescape(at + 1, end, out + len, &put) : 0;
        if (used == 0)
            break;
        at += used + 1;
        len += put;
    }
    *ret_len = len;
    return (size_t)(at - s);
}

int json_unescape(struct json *j, const struct json_token *t, struct expr_area *area,
                  const char **ret, uint32_t *ret_len)
{
    size_t n = t->end - t->start;
    if (n > CORDON_STRING_MAX)
        return json_fail(j, t, "a string longer than the limit");
    if (!t->escaped) {
        *ret = j->text + t->start;
        *ret_len = (uint32_t)n;
        return 0;
    }
    char *out = expr_area_take(area, n ? n : 1);
    if (!out)
        return expr_fail(j->err, CORDON_MEMORY, "no room for a decoded string");
    size_t len;
    const size_t bad = json_decode(j->text + t->start, n, out, &len);
    if (bad < n) {
        j->at = t->start + bad;
        return json_fail(j, NULL, "an escape that is wrong or a lone surrogate");
    }
    *ret = out;
    *ret_len = (uint32_t)len;
    return 0;
}

static int integer(struct json *j, const struct json_token *t, struct expr_area *area,
                   struct expr_value *ret)
{
    const char *s = j->text + t->start;
    size_t n = t->end - t->start;
    bool neg = *s == '-';
    s += neg;
    n -= neg;
    if (n <= 18) {
        int64_t i = 0;
        for (size_t k = 0; k < n; k++)
            i = i * 10 + (s[k] - '0');
        *ret = expr_int(neg ? -i : i);
        return 0;
    }
    if (n > CORDON_BITS_MAX / 3)
        return json_fail(j, t, "an integer longer than the limit");
    size_t mark = area->used;
    uint64_t *limb = expr_area_take(area, number_limbs(n) * sizeof *limb);
    if (!limb)
        return expr_fail(j->err, CORDON_MEMORY, "no room for an integer");
    uint32_t count = number_integer(s, n, 10, limb);
    if (count > CORDON_BITS_MAX / 64)
        return json_fail(j, t, "an integer longer than the limit");
    *ret = expr_from_limbs(limb, count, neg);
    if (ret->kind == K_INT)
        area->used = mark;
    return 0;
}

int json_value(struct json *j, const struct json_token *t, struct expr_area *area,
               struct expr_value *ret)
{
    const char *s = j->text + t->start;
    switch (t->kind) {
    case JSON_NULL:
        *ret = expr_none();
        return 0;
    case JSON_TRUE:
    case JSON_FALSE:
        *ret = expr_bool(t->kind == JSON_TRUE);
        return 0;
    case JSON_STRING:
        *ret = expr_str("", 0);
        return json_unescape(j, t, area, &ret->s, &ret->len);
    case JSON_INTEGER:
        return integer(j, t, area, ret);
    case JSON_FLOAT: {
        bool neg = *s == '-';
        char c = s[neg];
        double d = c == 'I'   ? INFINITY
                   : c == 'N' ? NAN
                              : number_double(s + neg, t->end - t->start - neg);
        *ret = expr_float(neg ? -d : d);
        return 0;
    }
    case JSON_OBJECT:
    case JSON_ARRAY:
        *ret = (struct expr_value){.kind = K_FOREIGN, .i = t->kind == JSON_ARRAY};
        return json_skip(j, t);
    default:
        return json_fail(j, t, "a value is missing");
    }
}
