/* SPDX-License-Identifier: Apache-2.0 */
/* getopt_long would accept abbreviations, which makes tomorrow's new option break today's script,
 * and cannot say which option was probably meant. */
#include "options.h"

#include "base/near.h"
#include "base/units.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static int unknown(const char *name, const struct option_row *rows, size_t count, struct err *err)
{
    const char *names[OPTION_ROWS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < count && n < OPTION_ROWS_MAX; i++)
        if (rows[i].kind != OPTION_GROUP)
            names[n++] = rows[i].name;
    const char *near = near_word(name, names, n);
    return near ? err_set(err, ERR_USAGE, "unknown option --%.40s; did you mean --%s?", name, near)
                : err_set(err, ERR_USAGE, "unknown option --%.40s; see --help", name);
}

static int take(const struct option_row *o, const char *value, struct err *err)
{
    int r = 0;
    switch (o->kind) {
    case OPTION_FLAG:
        *(bool *)o->target = true;
        return 0;
    case OPTION_STRING:
        *(const char **)o->target = value;
        return 0;
    case OPTION_LIST: {
        struct option_list *l = o->target;
        if (l->count == OPTION_LIST_MAX)
            return err_set(err, ERR_USAGE, "--%s is given more than %d times", o->name,
                           OPTION_LIST_MAX);
        l->items[l->count++] = value;
        return 0;
    }
    case OPTION_COUNT:
        r = units_count(value, o->target);
        break;
    case OPTION_BYTES:
        r = units_bytes(value, o->target);
        break;
    case OPTION_MILLIS:
        r = units_millis(value, o->target);
        break;
    case OPTION_GROUP:
        break;
    }
    return r < 0 ? err_set(err, ERR_USAGE, "--%s: '%.60s' is not a %s", o->name, value,
                           o->kind == OPTION_COUNT   ? "whole number"
                           : o->kind == OPTION_BYTES ? "size such as 64k, 512m or 1g"
                                                     : "time such as 200ms, 30s or 2m")
                 : 0;
}

/* One letter means the same in every command that has the option. */
static const struct {
    char letter;
    const char *name;
} letters[] = {{'h', "help"},   {'c', "code"},  {'p', "profile"}, {'t', "timeout"},
               {'m', "memory"}, {'q', "quiet"}, {'n', "lines"},   {'f', "follow"}};

char options_letter(const char *name)
{
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
        if (strcmp(letters[i].name, name) == 0)
            return letters[i].letter;
    return 0;
}

/* `-t 5s` as the name of its option; NULL: no such letter. */
static const char *long_name(const char *word)
{
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
        if (word[1] == letters[i].letter && word[2] == 0)
            return letters[i].name;
    return NULL;
}

/* The option at argv[*i], with its value; *i is left at the last word taken. */
static int take_at(int argc, char **argv, int *i, const struct option_row *rows, size_t count,
                   struct err *err)
{
    char name[64];
    const char *word = argv[*i], *equals = strchr(word, '=');
    const bool letter = word[1] != '-';
    const char *long_word = letter ? long_name(word) : word + 2;
    if (!long_word)
        return err_set(err, ERR_USAGE, "unknown option %.40s; see --help", word);
    size_t len = equals && !letter ? (size_t)(equals - word) - 2 : strlen(long_word);
    if (len >= sizeof name)
        return err_set(err, ERR_USAGE, "unknown option %.40s...; see --help", word);
    memcpy(name, long_word, len);
    name[len] = 0;
    const struct option_row *found = NULL;
    for (size_t k = 0; k < count; k++)
        if (rows[k].kind != OPTION_GROUP && strcmp(rows[k].name, name) == 0)
            found = &rows[k];
    if (!found)
        return unknown(name, rows, count, err);
    const char *value = equals ? equals + 1 : NULL;
    if (found->kind == OPTION_FLAG && value)
        return err_set(err, ERR_USAGE, "--%s takes no value", name);
    if (found->kind != OPTION_FLAG && !value) {
        if (*i + 1 >= argc || strcmp(argv[*i + 1], "--") == 0)
            return err_set(err, ERR_USAGE, "--%s needs a value (%s)", name, found->word);
        value = argv[++*i];
    }
    return take(found, value, err);
}

int options_parse(int argc, char **argv, const struct option_row *rows, size_t count, int *ret_next,
                  struct err *err)
{
    int i = 1;
    for (; i < argc; i++) {
        const char *word = argv[i];
        if (strcmp(word, "--") == 0) {
            i++;
            break;
        }
        if (word[0] != '-' || word[1] == 0)
            break;
        int r = take_at(argc, argv, &i, rows, count, err);
        if (r < 0)
            return r;
    }
    *ret_next = i;
    return 0;
}

/* Where words may begin with a minus: two dashes and a letter, or the letter of an option that the command has. */
static bool is_option(const char *word, const struct option_row *rows, size_t count)
{
    if (word[0] != '-' || word[1] == 0)
        return false;
    if (word[1] == '-')
        return word[2] >= 'a' && word[2] <= 'z';
    const char *name = long_name(word);
    for (size_t i = 0; name && i < count; i++)
        if (rows[i].kind != OPTION_GROUP && strcmp(rows[i].name, name) == 0)
            return true;
    return false;
}

int options_parse_mixed(int argc, char **argv, const struct option_row *rows, size_t count,
                        struct option_list *ret_words, struct err *err)
{
    static char long_e[] = "--expr";
    bool only_words = false;
    for (int i = 1; i < argc; i++) {
        if (!only_words && strcmp(argv[i], "--") == 0) {
            only_words = true;
            continue;
        }
        if (!only_words && strcmp(argv[i], "-e") == 0)
            argv[i] = long_e;
        const char *w = argv[i];
        int r = 0;
        if (!only_words && is_option(w, rows, count))
            r = take_at(argc, argv, &i, rows, count, err);
        else if (ret_words->count == OPTION_LIST_MAX)
            r = err_set(err, ERR_USAGE, "more than %d words", OPTION_LIST_MAX);
        else
            ret_words->items[ret_words->count++] = w;
        if (r < 0)
            return r;
    }
    return 0;
}

void options_print(const struct option_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char left[64];
        if (rows[i].kind == OPTION_GROUP) {
            printf("\n%s\n", rows[i].help);
            continue;
        }
        const char letter = options_letter(rows[i].name);
        const char dash[] = {letter ? '-' : ' ', letter ? letter : ' ', letter ? ',' : ' ', 0};
        snprintf(left, sizeof left, "%s --%s%s%s", dash, rows[i].name, rows[i].word ? " " : "",
                 rows[i].word ? rows[i].word : "");
        printf("  %-30s %s\n", left, rows[i].help);
    }
}
