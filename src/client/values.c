/* SPDX-License-Identifier: Apache-2.0 */
/* Members of a JSON text, found by reading it from its beginning: replies are read a few times at most. */
#include "client/inside.h"

#include <stdlib.h>
#include <string.h>

static bool take_value(struct json *j, const char *text, struct client_value *ret)
{
    struct json_token t;
    if (json_next(j, &t) || json_skip(j, &t))
        return false;
    const bool within = t.kind == JSON_OBJECT || t.kind == JSON_ARRAY;
    const size_t end = within ? j->at : t.end;
    *ret = (struct client_value){t.kind, t.escaped, text + t.start, end - t.start};
    return true;
}

bool client_member(const char *text, size_t len, const char *key, struct client_value *ret)
{
    struct cordon_error err;
    struct json j;
    struct json_token t;
    const size_t key_len = strlen(key);
    json_init(&j, text, len, CORDON_CONTEXT, &err);
    if (json_next(&j, &t) || t.kind != JSON_OBJECT)
        return false;
    while (!json_next(&j, &t) && t.kind == JSON_KEY) {
        const bool same = t.end - t.start == key_len && memcmp(text + t.start, key, key_len) == 0;
        if (!take_value(&j, text, ret))
            return false;
        if (same)
            return true;
    }
    return false;
}

bool client_integer(const struct client_value *v, int64_t *ret)
{
    char digits[32], *end;
    if (v->kind != JSON_INTEGER || v->len >= sizeof digits)
        return false;
    memcpy(digits, v->text, v->len);
    digits[v->len] = 0;
    *ret = strtoll(digits, &end, 10);
    return *end == 0;
}

char *client_decode(const struct client_value *v, size_t *ret_len)
{
    char *out = malloc(v->len + 1);
    if (!out)
        return NULL;
    if (json_decode(v->text, v->len, out, ret_len) != v->len) {
        free(out);
        return NULL;
    }
    out[*ret_len] = 0;
    return out;
}
