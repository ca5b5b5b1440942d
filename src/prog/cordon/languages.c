/* SPDX-License-Identifier: Apache-2.0 */
/* One table. */
#include "languages.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *ending;
    enum language language;
} languages[] = {
    {"python", ".py", LANGUAGE_PYTHON},
    {"expr", ".expr", LANGUAGE_EXPR},
};

/* What is surely something else. */
static const struct {
    const char *ending, *name;
} others[] = {
    {".js", "JavaScript"},
    {".mjs", "JavaScript"},
    {".cjs", "JavaScript"},
    {".ts", "TypeScript"},
    {".rb", "Ruby"},
    {".sh", "shell"},
    {".bash", "shell"},
    {".pl", "Perl"},
    {".lua", "Lua"},
    {".php", "PHP"},
    {".go", "Go"},
    {".rs", "Rust"},
    {".c", "C"},
    {".cc", "C++"},
    {".cpp", "C++"},
    {".java", "Java"},
    {".r", "R"},
    {".R", "R"},
};

static int not_python(const char *file, const char *dot, struct err *err)
{
    for (size_t i = 0; dot && i < sizeof others / sizeof *others; i++)
        if (strcmp(dot, others[i].ending) == 0)
            return err_set(
                err, ERR_USAGE,
                "%.80s is %s by its ending, and `run` judges Python only; run it unjudged "
                "with `cordon exec`, or say --lang python",
                file, others[i].name);
    return LANGUAGE_PYTHON;
}

int languages_choose(const char *word, const char *file, bool conditions, struct err *err)
{
    const char *dot = file ? strrchr(file, '.') : NULL;
    char all[80] = "";
    for (size_t i = 0; i < sizeof languages / sizeof *languages; i++) {
        if (word ? strcmp(word, languages[i].name) == 0
                 : dot && strcmp(dot, languages[i].ending) == 0)
            return (int)languages[i].language;
        if (conditions || languages[i].language != LANGUAGE_EXPR)
            snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", *all ? ", " : "",
                     languages[i].name);
    }
    if (!word)
        return not_python(file, dot, err);
    return err_set(err, ERR_USAGE, "--lang: '%.40s' is none of: %s", word, all);
}

int languages_intake(const char *how, const char *file, bool *ret_raw, struct err *err)
{
    const char *dot = strrchr(file, '.');
    bool ending = false;
    for (size_t i = 0; dot && i < sizeof languages / sizeof *languages; i++)
        ending = ending || strcmp(dot, languages[i].ending) == 0;
    if (how && strcmp(how, "text") != 0 && strcmp(how, "source") != 0)
        return err_set(err, ERR_USAGE, "--intake: '%.40s' is none of: text, source", how);
    *ret_raw = how ? strcmp(how, "text") == 0 : !ending;
    return 0;
}
