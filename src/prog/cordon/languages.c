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

int languages_choose(const char *word, const char *file, struct err *err)
{
    const char *dot = file ? strrchr(file, '.') : NULL;
    char all[80] = "";
    for (size_t i = 0; i < sizeof languages / sizeof *languages; i++) {
        if (word ? strcmp(word, languages[i].name) == 0
                 : dot && strcmp(dot, languages[i].ending) == 0)
            return (int)languages[i].language;
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? ", " : "",
                 languages[i].name);
    }
    if (!word)
        return LANGUAGE_PYTHON;
    return err_set(err, ERR_USAGE, "--lang: '%.40s' is none of: %s", word, all);
}
