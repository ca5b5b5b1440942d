/* getopt_long would accept abbreviations, which makes tomorrow's new option break today's script,
 * and cannot say which option was probably meant. */
#include "options.h"

#include "base/units.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static size_t distance(const char *a, const char *b)
{
    size_t row[64], la = strlen(a), lb = strlen(b);
    if (lb >= 64)
        return 99;
    for (size_t j = 0; j <= lb; j++)
        row[j] = j;
    for (size_t i = 1; i <= la; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= lb; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]), above = row[j];
            if (above + 1 < best)
                best = above + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            diagonal = above;
            row[j] = best;
        }
    }
    return row[lb];
}

static int unknown(const char *name, const struct option_row *rows, size_t count, struct err *err)
{
    const char *near = NULL;
    size_t least = 3;
    for (size_t i = 0; i < count; i++)
        if (rows[i].kind != OPTION_GROUP && distance(name, rows[i].name) < least) {
            least = distance(name, rows[i].name);
            near = rows[i].name;
        }
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

/* The option at argv[*i], with its value; *i is left at the last word taken. */
static int take_at(int argc, char **argv, int *i, const struct option_row *rows, size_t count,
                   struct err *err)
{
    char name[64];
    const char *word = argv[*i], *equals = strchr(word, '=');
    size_t len = equals ? (size_t)(equals - word) - 2 : strlen(word) - 2;
    if (len >= sizeof name)
        return err_set(err, ERR_USAGE, "unknown option %.40s...; see --help", word);
    memcpy(name, word + 2, len);
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
        if (word[1] != '-')
            return err_set(err, ERR_USAGE,
                           "unknown option %.40s; options have two dashes, see --help", word);
        int r = take_at(argc, argv, &i, rows, count, err);
        if (r < 0)
            return r;
    }
    *ret_next = i;
    return 0;
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
        if (!only_words && w[0] == '-' && w[1] == '-' && w[2] >= 'a' && w[2] <= 'z')
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
        snprintf(left, sizeof left, "--%s%s%s", rows[i].name, rows[i].word ? " " : "",
                 rows[i].word ? rows[i].word : "");
        printf("  %-26s %s\n", left, rows[i].help);
    }
}
