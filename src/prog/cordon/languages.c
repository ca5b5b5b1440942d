/* SPDX-License-Identifier: Apache-2.0 */
/* A condition is a language without a worker: it is evaluated, not run. */
#include "languages.h"

#include <stdio.h>
#include <string.h>

static bool is_here(const struct language *l)
{
    return l->worker || (l->name && strcmp(l->name, "expr") == 0);
}

static void list(bool conditions, char *all, size_t size)
{
    *all = 0;
    for (const struct language *l = language_next(NULL); l; l = language_next(l))
        if (l->worker || (conditions && is_here(l)))
            snprintf(all + strlen(all), size - strlen(all), "%s%s", *all ? ", " : "", l->name);
}

const char *languages_help(bool conditions)
{
    static char text[120];
    char all[80];
    list(conditions, all, sizeof all);
    /* Node is no language: it is another interpreter of one, and `run` alone starts it */
    const bool node = !conditions && language_named("javascript")->worker;
    snprintf(text, sizeof text, "%s%s (by the file's ending, else %s)", all, node ? ", node" : "",
             language_default()->name);
    return text;
}

const char *languages_workers_help(void)
{
    static char text[120];
    char all[80];
    list(false, all, sizeof all);
    snprintf(text, sizeof text, "%s (%s)", all, language_default()->name);
    return text;
}

/* Its worker is optional, and was not built. */
static int not_built(const struct language *l, struct err *err)
{
    return err_set(err, ERR_USAGE,
                   "this Cordon was built without %s; in its source folder `make clean setup all` "
                   "builds it with all that it can run",
                   l->title);
}

static int unknown(const char *word, bool conditions, struct err *err)
{
    char all[80];
    const struct language *l = language_named(word);
    if (l && !is_here(l))
        return not_built(l, err);
    list(conditions, all, sizeof all);
    return err_set(err, ERR_USAGE, "--lang: '%.40s' is none of: %s", word, all);
}

int languages_worker(const char *word, const struct language **ret, struct err *err)
{
    const struct language *l = word ? language_named(word) : language_default();
    if (!l || !l->worker)
        return unknown(word, false, err);
    *ret = l;
    return 0;
}

int languages_choose(const char *word, const char *file, bool conditions,
                     const struct language **ret, struct err *err)
{
    const char *dot = file ? strrchr(file, '.') : NULL;
    const struct language *l = word ? language_named(word) : dot ? language_ending(dot) : NULL;
    if (word && (!l || !is_here(l)))
        return unknown(word, conditions, err);
    if (l && !is_here(l) && l->name)
        return not_built(l, err);
    if (l && !is_here(l))
        return err_set(err, ERR_USAGE,
                       "%.80s is %s by its ending, and there is no judge for that; run it unjudged "
                       "with `cordon exec`, or say --lang python",
                       file, l->title);
    *ret = l ? l : language_default();
    return 0;
}

int languages_intake(const char *how, const char *file, bool *ret_raw, struct err *err)
{
    const char *dot = strrchr(file, '.');
    const struct language *l = dot ? language_ending(dot) : NULL;
    if (how && strcmp(how, "text") != 0 && strcmp(how, "source") != 0)
        return err_set(err, ERR_USAGE, "--intake: '%.40s' is none of: text, source", how);
    *ret_raw = how ? strcmp(how, "text") == 0 : !l || !is_here(l);
    return 0;
}
