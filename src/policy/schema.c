/* SPDX-License-Identifier: Apache-2.0 */
/* One table, keys.inc, and what can be said about a row of it without a file. Numbers go through
 * base/units.c, as on the command line, so 512m means the same everywhere. */
#include "policy/schema.h"

#include "base/limits.h"
#include "base/near.h"
#include "base/units.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

const struct policy_key policy_keys[] = {
#define KEY(type, path, field, min, max, words, doc)                                               \
    {path, POLICY_TYPE_##type, offsetof(struct policy, field), min, max, words},
#include "policy/keys.inc"
#undef KEY
};
const size_t policy_nkeys = sizeof policy_keys / sizeof *policy_keys;

const char *const policy_named[] = {"profiles", "roles", "tools", "naming", "upstreams", NULL};

int policy_key_find(const char *path)
{
    for (size_t i = 0; i < policy_nkeys; i++)
        if (strcmp(policy_keys[i].path, path) == 0)
            return (int)i;
    return -1;
}

/* ---- words ---- */

bool policy_enum_word(const char *words, size_t index, char out[64])
{
    for (const char *at = words; *at;) {
        size_t len = strcspn(at, " ");
        if (index-- == 0) {
            snprintf(out, 64, "%.*s", (int)len, at);
            return true;
        }
        at += len + (at[len] == ' ');
    }
    return false;
}

int policy_enum_find(const char *words, const char *word)
{
    char one[64];
    for (int i = 0; policy_enum_word(words, (size_t)i, one); i++)
        if (strcmp(one, word) == 0)
            return i;
    return -1;
}

bool policy_name_good(const char *s)
{
    size_t len = strlen(s);
    if (len == 0 || len > 64 || !isalnum((unsigned char)s[0]))
        return false;
    for (size_t i = 0; i < len; i++)
        if (!isascii(s[i]) || !(isalnum((unsigned char)s[i]) || strchr("_-.", s[i])))
            return false;
    return true;
}

/* ---- text to value ---- */

static void *field(struct policy *p, const struct policy_key *key)
{
    return (char *)p + key->offset;
}

static const void *const_field(const struct policy *p, const struct policy_key *key)
{
    return (const char *)p + key->offset;
}

static void number_text(const struct policy_key *key, uint64_t n, char out[32])
{
    if (key->type == POLICY_TYPE_MILLIS)
        policy_millis_text(n, out);
    else if (key->type == POLICY_TYPE_BYTES)
        policy_bytes_text(n, out);
    else
        snprintf(out, 32, "%llu", (unsigned long long)n);
}

static int read_number(const struct policy_key *key, const char *text, uint64_t *ret,
                       struct err *err)
{
    static const struct {
        int (*read)(const char *, uint64_t *);
        const char *like;
    } by_type[] = {
        [POLICY_TYPE_COUNT] = {units_count, "a number: 64"},
        [POLICY_TYPE_MILLIS] = {units_millis, "a duration: 30s, 1.5s, 200ms, 2m, 1h"},
        [POLICY_TYPE_BYTES] = {units_bytes, "a size: 100, 64k, 512m, 1g"},
    };
    uint64_t n = 0;
    if (by_type[key->type].read(text, &n) < 0)
        return err_set(err, ERR_FORMAT, "'%.60s' is not %s", text, by_type[key->type].like);
    if (n < key->min || n > key->max) {
        char low[32], high[32];
        number_text(key, key->min, low);
        number_text(key, key->max, high);
        return err_set(err, ERR_FORMAT, "%.60s is outside %s to %s", text, low, high);
    }
    *ret = n;
    return 0;
}

static int wrong_word(const char *word, const char *words, struct err *err)
{
    char list[16][64];
    const char *candidates[16];
    size_t n = 0;
    while (n < 16 && policy_enum_word(words, n, list[n])) {
        candidates[n] = list[n];
        n++;
    }
    const char *near = near_word(word, candidates, n);
    char all[160] = "";
    for (size_t i = 0; i < n && strlen(all) < sizeof all - 66; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%.63s", i ? ", " : "", list[i]);
    if (n == 1)
        return err_set(err, ERR_FORMAT, "'%.40s' is not %s, the only value", word, all);
    return err_set(err, ERR_FORMAT, "'%.40s' is none of %s%s%s%s", word, all,
                   near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static int good_text(const char *text, struct err *err)
{
    if (strlen(text) > POLICY_WORD_MAX)
        return err_set(err, ERR_FORMAT, "longer than %d bytes", POLICY_WORD_MAX);
    for (const char *c = text; *c; c++)
        if (iscntrl((unsigned char)*c))
            return err_set(err, ERR_FORMAT, "a control character in '%.40s'", text);
    return 0;
}

int policy_value_read(const struct policy_key *key, const char *text, struct arena *mem,
                      struct policy *p, struct err *err)
{
    const char *copy;
    int i;
    switch (key->type) {
    case POLICY_TYPE_COUNT:
    case POLICY_TYPE_MILLIS:
    case POLICY_TYPE_BYTES:
        return read_number(key, text, field(p, key), err);
    case POLICY_TYPE_BOOL:
        if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
            return err_set(err, ERR_FORMAT, "'%.40s' is neither true nor false", text);
        *(bool *)field(p, key) = text[0] == 't';
        return 0;
    case POLICY_TYPE_ENUM:
        i = policy_enum_find(key->words, text);
        if (i < 0)
            return wrong_word(text, key->words, err);
        *(int *)field(p, key) = i; /* every enum of struct policy is an int to the compiler */
        return 0;
    case POLICY_TYPE_NAME:
    case POLICY_TYPE_FILE:
        if (key->type == POLICY_TYPE_NAME && !policy_name_good(text))
            return err_set(err, ERR_FORMAT, "'%.40s' is no name: letters, digits, - and _", text);
        if (key->type == POLICY_TYPE_FILE && *text && *text != '/')
            return err_set(err, ERR_FORMAT, "'%.60s' is no absolute path", text);
        if (good_text(text, err) < 0)
            return ERR_FORMAT;
        copy = arena_strdup(mem, text);
        if (!copy)
            return err_set(err, ERR_MEMORY, "no memory");
        *(const char **)field(p, key) = copy;
        return 0;
    case POLICY_TYPE_WORDS:
        break;
    }
    return err_set(err, ERR_FORMAT, "a list is wanted here: [a, b]");
}

int policy_word_check(const struct policy_key *key, const char *word, struct err *err)
{
    if (key->words[0] && policy_enum_find(key->words, word) < 0)
        return wrong_word(word, key->words, err);
    if (!*word)
        return err_set(err, ERR_FORMAT, "an empty word");
    return good_text(word, err);
}

/* ---- value to text ---- */

void policy_millis_text(uint64_t ms, char out[32])
{
    if (ms % 1000)
        snprintf(out, 32, "%llums", (unsigned long long)ms);
    else if (ms && ms % 3600000 == 0)
        snprintf(out, 32, "%lluh", (unsigned long long)ms / 3600000);
    else if (ms > 300000 && ms % 60000 == 0)
        snprintf(out, 32, "%llum", (unsigned long long)ms / 60000);
    else
        snprintf(out, 32, "%llus", (unsigned long long)ms / 1000);
}

void policy_bytes_text(uint64_t bytes, char out[32])
{
    static const char *const units[] = {"", "k", "m", "g"};
    size_t i = 0;
    while (i < 3 && bytes && bytes % 1024 == 0) {
        bytes /= 1024;
        i++;
    }
    snprintf(out, 32, "%llu%s", (unsigned long long)bytes, units[i]);
}

/* What another YAML reader would take for something else than this text. */
static bool needs_quotes(const char *s)
{
    static const char words[] = " null ~ true false yes no on off y n ";
    char with_blanks[40];
    if (!*s || strlen(s) > 30)
        return true;
    for (const char *c = s; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("_-./", *c))
            return true;
    snprintf(with_blanks, sizeof with_blanks, " %s ", s);
    return !isalpha((unsigned char)*s) || strcasestr(words, with_blanks) != NULL;
}

int policy_scalar_write(const char *text, struct buf *out)
{
    if (!needs_quotes(text))
        return buf_str(out, text);
    int r = buf_str(out, "\"");
    for (const char *c = text; *c && r == 0; c++)
        if (*c == '"' || *c == '\\')
            r = buf_printf(out, "\\%c", *c);
        else if ((unsigned char)*c < 0x20 || *c == 0x7f)
            r = buf_printf(out, "\\x%02X", (unsigned char)*c);
        else
            r = buf_add(out, c, 1);
    return r < 0 ? r : buf_str(out, "\"");
}

int policy_value_write(const struct policy_key *key, const struct policy *p, struct buf *out)
{
    const void *at = const_field(p, key);
    char text[64] = "";
    switch (key->type) {
    case POLICY_TYPE_COUNT:
    case POLICY_TYPE_MILLIS:
    case POLICY_TYPE_BYTES:
        number_text(key, *(const uint64_t *)at, text);
        return buf_str(out, text);
    case POLICY_TYPE_BOOL:
        return buf_str(out, *(const bool *)at ? "true" : "false");
    case POLICY_TYPE_ENUM:
        policy_enum_word(key->words, (size_t) * (const int *)at, text);
        return policy_scalar_write(text, out);
    case POLICY_TYPE_NAME:
    case POLICY_TYPE_FILE:
        return policy_scalar_write(*(const char *const *)at, out);
    case POLICY_TYPE_WORDS:
        break;
    }
    const struct policy_words *w = at;
    int r = buf_str(out, "[");
    for (size_t i = 0; i < w->count && r == 0; i++) {
        r = i ? buf_str(out, ", ") : 0;
        if (r == 0)
            r = policy_scalar_write(w->items[i], out);
    }
    return r < 0 ? r : buf_str(out, "]");
}
