/* SPDX-License-Identifier: Apache-2.0 */
/* The words lie in one block, one NUL behind each. */
#include "worker/frame/given.h"

#include "base/limits.h"
#include "worker/frame/language.h"

#include <stdlib.h>
#include <string.h>

/* Two places: what C libraries read, and what the language made of it. */
static int set_one(const char *word, size_t len)
{
    char *pair = malloc(len + 1);
    if (!pair)
        return -1;
    memcpy(pair, word, len);
    pair[len] = 0;
    char *equals = strchr(pair, '=');
    int r = !equals || equals == pair || strlen(pair) != len ? -1 : 0;
    if (r == 0) {
        *equals = 0;
        r = setenv(pair, equals + 1, 1);
        if (worker_language->set_variable)
            worker_language->set_variable(pair, equals + 1);
    }
    free(pair);
    return r;
}

int worker_given_variables(struct wire_reader *r)
{
    size_t count = wire_get_list(r), len;
    if (count > LIMIT_ENV)
        return -1;
    for (; count; count--) {
        const char *word = wire_next(r, &len);
        if (set_one(word, len) < 0)
            return -1;
    }
    return 0;
}

static struct {
    char *text;
    size_t count, start[LIMIT_ARGS];
} words;

int worker_given_words(struct wire_reader *r)
{
    size_t count = wire_get_list(r), len, end = 0;
    words.count = 0;
    if (count > LIMIT_ARGS)
        return -1;
    for (size_t i = 0; i < count; i++) {
        const char *word = wire_next(r, &len);
        char *text = memchr(word, 0, len) ? NULL : realloc(words.text, end + len + 1);
        if (!text)
            return -1;
        memcpy(text + end, word, len);
        text[end + len] = 0;
        words.text = text;
        words.start[i] = end;
        end += len + 1;
    }
    words.count = count;
    return 0;
}

size_t worker_given_count(void)
{
    return words.count;
}

const char *worker_given_word(size_t i)
{
    return words.text + words.start[i];
}

static struct {
    char name[64];
    char *json;
    size_t len;
} method;

int worker_given_method(struct wire_reader *r)
{
    size_t len;
    wire_get_text(r, method.name, sizeof method.name);
    const void *json = wire_get_bytes(r, &len);
    char *copy = *method.name && len <= LIMIT_CALL ? realloc(method.json, len + 1) : NULL;
    if (!copy)
        return -1;
    memcpy(copy, json, len);
    copy[len] = 0;
    method.json = copy;
    method.len = len;
    return 0;
}

const char *worker_given_method_name(void)
{
    return *method.name ? method.name : NULL;
}

const char *worker_given_method_json(size_t *ret_len)
{
    *ret_len = method.len;
    return method.json;
}
