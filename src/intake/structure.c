/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a text has the words of a method. A look at words, not at what they mean: the judge's compiler has the last word, and
 * comes later, behind the rules about what a program does. */
#include "intake/intake.h"

#include <string.h>

static bool in_word(unsigned char c)
{
    return c == '_' || c >= 0x80 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
           (c >= 'A' && c <= 'Z');
}

/* Behind the first WORD that stands alone from AT on; NULL: there is none. */
static const char *behind(const char *word, const char *text, const char *at, const char *end)
{
    const size_t len = strlen(word);
    for (; at && (size_t)(end - at) >= len; at++)
        if (*at == *word && memcmp(at, word, len) == 0 &&
            (at == text || !in_word((unsigned char)at[-1])) &&
            (at + len == end || !in_word((unsigned char)at[len])))
            return at + len;
    return NULL;
}

const char *intake_lacks(const char *language, const char *text, size_t len)
{
    if (strcmp(language, "ruby") != 0)
        return NULL;
    const char *def = behind("def", text, text, text + len);
    if (!def)
        return "def ... end";
    return behind("end", text, def, text + len) ? NULL : "end behind its def";
}
