/* SPDX-License-Identifier: Apache-2.0 */
/* The names are those of the table of languages. */
#include "intake/tags.h"

#include "base/languages.h"

#include <stdbool.h>
#include <string.h>

const char *intake_tag_language(const char *tag)
{
    const struct language *l = language_tagged(tag);
    return l ? l->name : NULL;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* The next word from *AT to END: its last path component up to a dot, so that python3.11 is python3. False: no more. */
static bool next_name(const char **at, const char *end, char *name, size_t size)
{
    const char *p = *at;
    while (p < end && is_blank(*p))
        p++;
    const char *word = p;
    for (; p < end && !is_blank(*p); p++)
        if (*p == '/')
            word = p + 1;
    *at = p;
    size_t n = 0;
    for (; word + n < p && n < size - 1 && word[n] != '.'; n++)
        name[n] = word[n];
    name[n] = 0;
    return n > 0;
}

/* The program is the first word, or behind `env` the first that is no option. */
const char *intake_shebang_language(const char *code, size_t len)
{
    if (len < 2 || code[0] != '#' || code[1] != '!')
        return NULL;
    const char *line_end = memchr(code, '\n', len), *at = code + 2;
    const char *end = line_end ? line_end : code + len;
    char name[16];
    while (next_name(&at, end, name, sizeof name))
        if (strcmp(name, "env") != 0 && name[0] != '-')
            return intake_tag_language(name);
    return NULL;
}
