/* SPDX-License-Identifier: Apache-2.0 */
/* getopt_long would accept abbreviations, which makes tomorrow's new option break today's script,
 * and cannot say which option was probably meant. */
#include "options.h"

#include "base/near.h"
#include "base/units.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* One letter means the same in every command that has the option. */
static const struct {
    char letter;
    const char *name;
} letters[] = {{'h', "help"},    {'c', "code"},   {'e', "expr"},  {'p', "profile"},
               {'t', "timeout"}, {'m', "memory"}, {'n', "lines"}, {'f', "follow"}};

char options_letter(const char *name)
{
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
        if (strcmp(letters[i].name, name) == 0)
            return letters[i].letter;
    return 0;
}

/* The row of the option that is called the LEN bytes at NAME; NULL: none. */
static const struct option_row *row_of(const char *name, size_t len, const struct option_row *rows,
                                       size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (rows[i].kind != OPTION_GROUP && strlen(rows[i].name) == len &&
            memcmp(rows[i].name, name, len) == 0)
            return &rows[i];
    return NULL;
}

/* The row of `-t`, `-t5s` or `-t=5s`; NULL: the command has no such letter. */
static const struct option_row *row_of_letter(const char *word, const struct option_row *rows,
                                              size_t count)
{
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
        if (word[1] == letters[i].letter)
            return row_of(letters[i].name, strlen(letters[i].name), rows, count);
    return NULL;
}

/* WORD, as it was typed, is no option; the LEN bytes at NAME are what it was probably meant to name. */
static int unknown(const char *word, const char *name, size_t len, const struct option_row *rows,
                   size_t count, struct err *err)
{
    char copy[64];
    const char *names[OPTION_ROWS_MAX], *near = NULL;
    const int shown = (int)(name - word) + (int)(len < 40 ? len : 40);
    size_t n = 0;
    for (size_t i = 0; i < count && n < OPTION_ROWS_MAX; i++)
        if (rows[i].kind != OPTION_GROUP && rows[i].kind != OPTION_NOT_HERE)
            names[n++] = rows[i].name;
    if (len > 1 && len < sizeof copy) { /* one letter is near to nothing */
        memcpy(copy, name, len);
        copy[len] = 0;
        const struct option_row *same = row_of(name, len, rows, count); /* -json */
        near = same ? same->name : near_word(copy, names, n);
    }
    return near ? err_set(err, ERR_USAGE, "unknown option %.*s; did you mean --%s?", shown, word,
                          near)
                : err_set(err, ERR_USAGE, "unknown option %.*s; see --help", shown, word);
}

/* SAID: the option as it was typed. */
static int take(const struct option_row *o, const char *said, const char *value, struct err *err)
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
            return err_set(err, ERR_USAGE, "%s is given more than %d times", said, OPTION_LIST_MAX);
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
    case OPTION_NOT_HERE:
        break;
    }
    return r < 0 ? err_set(err, ERR_USAGE, "%s: '%.60s' is not a %s", said, value,
                           o->kind == OPTION_COUNT   ? "whole number"
                           : o->kind == OPTION_BYTES ? "size such as 64k, 512m or 1g"
                                                     : "time such as 200ms, 30s or 2m")
                 : 0;
}

/* The option at argv[*i], with its value; *i is left at the last word taken. */
static int take_at(int argc, char **argv, int *i, const struct option_row *rows, size_t count,
                   struct err *err)
{
    char said[64];
    const char *word = argv[*i], *value = NULL;
    const bool letter = word[1] != '-';
    const char *name = word + (letter ? 1 : 2);
    const size_t len = strcspn(name, "=");
    const struct option_row *found =
        letter ? row_of_letter(word, rows, count) : row_of(name, len, rows, count);
    /* -timeout is no -t: whoever types it means --timeout */
    if (!found || (letter && len > 1 && row_of(name, len, rows, count)))
        return unknown(word, name, len, rows, count, err);
    if (found->kind == OPTION_NOT_HERE)
        return err_set(err, ERR_USAGE, "--%s is not for this command: %s", found->name,
                       found->help);
    if (letter) {
        snprintf(said, sizeof said, "-%c (--%s)", word[1], found->name);
        value = word[2] == 0 ? NULL : word + (word[2] == '=' ? 3 : 2);
    } else {
        snprintf(said, sizeof said, "--%s", found->name);
        value = name[len] == '=' ? name + len + 1 : NULL;
    }
    if (found->kind == OPTION_FLAG && value)
        return err_set(err, ERR_USAGE, "%s takes no value", said);
    if (found->kind != OPTION_FLAG && !value) {
        if (*i + 1 >= argc || strcmp(argv[*i + 1], "--") == 0)
            return err_set(err, ERR_USAGE, "%s needs a value (%s)", said, found->word);
        value = argv[++*i];
    }
    return take(found, said, value, err);
}

static bool begins_with_minus(const char *word)
{
    return word[0] == '-' && word[1] != 0;
}

int options_parse(int argc, char **argv, const struct option_row *rows, size_t count, int *ret_next,
                  struct err *err)
{
    int i = 1;
    for (; i < argc; i++) {
        if (strcmp(argv[i], "--") == 0) {
            i++;
            break;
        }
        if (!begins_with_minus(argv[i]))
            break;
        int r = take_at(argc, argv, &i, rows, count, err);
        if (r < 0)
            return r;
    }
    *ret_next = i;
    return 0;
}

/* A condition such as `-x > 1` is none; two dashes and a letter, or one letter alone that some command has, are. */
static bool is_no_condition(const char *word)
{
    if (word[1] == '-')
        return word[2] >= 'a' && word[2] <= 'z';
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
        if (word[1] == letters[i].letter && word[2] == 0)
            return true;
    return false;
}

static int parse_all(int argc, char **argv, const struct option_row *rows, size_t count,
                     bool conditions, struct option_list *ret_words, struct err *err)
{
    bool only_words = false;
    for (int i = 1; i < argc; i++) {
        const char *w = argv[i];
        int r = 0;
        if (!only_words && strcmp(w, "--") == 0)
            only_words = true;
        else if (!only_words && begins_with_minus(w) && (!conditions || is_no_condition(w)))
            r = take_at(argc, argv, &i, rows, count, err);
        else if (ret_words->count == OPTION_LIST_MAX)
            r = err_set(err, ERR_USAGE, "more than %d arguments", OPTION_LIST_MAX);
        else
            ret_words->items[ret_words->count++] = w;
        if (r < 0)
            return r;
    }
    return 0;
}

int options_parse_mixed(int argc, char **argv, const struct option_row *rows, size_t count,
                        struct option_list *ret_words, struct err *err)
{
    return parse_all(argc, argv, rows, count, false, ret_words, err);
}

int options_parse_conditions(int argc, char **argv, const struct option_row *rows, size_t count,
                             struct option_list *ret_words, struct err *err)
{
    return parse_all(argc, argv, rows, count, true, ret_words, err);
}

bool options_among(const char *words, const char *word)
{
    char padded[44];
    snprintf(padded, sizeof padded, " %.40s ", word);
    return *word && !strchr(word, ' ') && strstr(words, padded);
}

/* What other programs call the same thing: "session end" is not a mistyped "session close". */
static const char *same_meaning(const char *word, const char *const *names, size_t count)
{
    static const char *const groups[] = {" new create start add open make ",
                                         " list ls ps ",
                                         " close end stop delete rm remove kill drop quit ",
                                         " run exec eval call send ",
                                         " show get cat info status view ",
                                         " yes accept ok allow grant ",
                                         " no reject deny refuse ",
                                         " log history tail ",
                                         " restore reset revert checkout rollback undo ",
                                         " snapshot commit save "};
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
        for (size_t i = 0; options_among(groups[g], word) && i < count; i++)
            if (options_among(groups[g], names[i]))
                return names[i];
    return NULL;
}

int options_no_verb(const char *word, const char *const *names, size_t count, struct err *err)
{
    char all[160] = "";
    for (size_t i = 0; i < count; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? ", " : "", names[i]);
    if (!word)
        return err_set(err, ERR_USAGE, "a subcommand is missing, one of: %s; see --help", all);
    const char *near = near_word(word, names, count);
    near = near ? near : same_meaning(word, names, count);
    return near ? err_set(err, ERR_USAGE, "'%.40s' is none of: %s; did you mean '%s'?", word, all,
                          near)
                : err_set(err, ERR_USAGE, "'%.40s' is none of: %s; see --help", word, all);
}

void options_print(const struct option_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char left[64];
        if (rows[i].kind == OPTION_GROUP) {
            printf("\n%s\n", rows[i].help);
            continue;
        }
        if (rows[i].kind == OPTION_NOT_HERE)
            continue;
        const char letter = options_letter(rows[i].name);
        const char dash[] = {letter ? '-' : ' ', letter ? letter : ' ', letter ? ',' : ' ', 0};
        snprintf(left, sizeof left, "%s --%s%s%s", dash, rows[i].name, rows[i].word ? " " : "",
                 rows[i].word ? rows[i].word : "");
        printf("  %-30s %s\n", left, rows[i].help);
    }
}
